/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_LOG2_H
#define TW_LINUX_LOG2_H

#include <linux/bits.h>

/* @n is 1 or more. */
static inline int ilog2(unsigned long n)
{
	return BITS_PER_LONG - 1 - __builtin_clzl(n);
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return n == 1 ? 1 : 2UL << ilog2(n - 1);
}

#endif /* TW_LINUX_LOG2_H */
