/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_SIZES_H
#define TW_LINUX_SIZES_H

#define SZ_4K	0x1000
#define SZ_32K	0x8000

#endif /* TW_LINUX_SIZES_H */
