/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_PREFETCH_H
#define TW_LINUX_PREFETCH_H

#define prefetch(p)	__builtin_prefetch(p)
#define prefetchw(p)	__builtin_prefetch(p, 1)

#endif /* TW_LINUX_PREFETCH_H */
