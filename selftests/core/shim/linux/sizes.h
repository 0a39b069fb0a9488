/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header. */
#ifndef SHIM_LINUX_SIZES_H
#define SHIM_LINUX_SIZES_H

#define SZ_4K	0x1000
#define SZ_32K	0x8000

#endif /* SHIM_LINUX_SIZES_H */
