/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_BUG_H
#define TW_LINUX_BUG_H

#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)

#endif /* TW_LINUX_BUG_H */
