/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header: cache lines as on x86 and arm64. */
#ifndef SHIM_LINUX_CACHE_H
#define SHIM_LINUX_CACHE_H

#define ____cacheline_aligned_in_smp	__attribute__((__aligned__(64)))

#endif /* SHIM_LINUX_CACHE_H */
