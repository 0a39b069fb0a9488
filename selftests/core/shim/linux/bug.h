/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header. */
#ifndef SHIM_LINUX_BUG_H
#define SHIM_LINUX_BUG_H

#include "../shim.h"

#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)

#endif /* SHIM_LINUX_BUG_H */
