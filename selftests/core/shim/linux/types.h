/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, with the functions for tests. */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include "../shim.h"

#include_next <linux/types.h>

#endif /* SHIM_LINUX_TYPES_H */
