/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_BITS_H
#define TW_LINUX_BITS_H

#define BIT(nr)			(1UL << (nr))
#define BIT_ULL(nr)		(1ULL << (nr))
#define BITS_PER_LONG		(8 * (int)sizeof(long))
#define BITS_TO_LONGS(bits)	(((bits) + BITS_PER_LONG - 1) / BITS_PER_LONG)

#endif /* TW_LINUX_BITS_H */
