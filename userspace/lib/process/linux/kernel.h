/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: small things that are used everywhere. */
#ifndef TW_LINUX_KERNEL_H
#define TW_LINUX_KERNEL_H

#include <stdio.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif
#define ALIGN(size, unit)	(((size) + (unit) - 1) & ~((unit) - 1))
#define IS_ALIGNED(size, unit)	(!((size) & ((unit) - 1)))

#endif /* TW_LINUX_KERNEL_H */
