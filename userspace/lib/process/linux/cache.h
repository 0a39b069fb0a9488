/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: cache lines as on x86 and arm64. */
#ifndef TW_LINUX_CACHE_H
#define TW_LINUX_CACHE_H

#define ____cacheline_aligned_in_smp	__attribute__((__aligned__(64)))

#endif /* TW_LINUX_CACHE_H */
