/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: the bits of a set. */
#ifndef TW_LINUX_BITMAP_H
#define TW_LINUX_BITMAP_H

#include <linux/bits.h>
#include <linux/types.h>

static inline void __set_bit(unsigned long nr, unsigned long *bits)
{
	bits[nr / BITS_PER_LONG] |= 1UL << nr % BITS_PER_LONG;
}

static inline void __clear_bit(unsigned long nr, unsigned long *bits)
{
	bits[nr / BITS_PER_LONG] &= ~(1UL << nr % BITS_PER_LONG);
}

static inline bool test_bit(unsigned long nr, const unsigned long *bits)
{
	return bits[nr / BITS_PER_LONG] >> nr % BITS_PER_LONG & 1;
}

/* Returns the first set bit from @from on, or @size if no bit is set. */
static inline unsigned long find_next_bit(const unsigned long *bits,
					  unsigned long size,
					  unsigned long from)
{
	while (from < size) {
		unsigned long rest =
			bits[from / BITS_PER_LONG] >> from % BITS_PER_LONG;

		if (rest) {
			from += __builtin_ctzl(rest);
			break;
		}
		from += BITS_PER_LONG - from % BITS_PER_LONG;
	}

	return from < size ? from : size;
}

static inline unsigned long find_first_bit(const unsigned long *bits,
					   unsigned long size)
{
	return find_next_bit(bits, size, 0);
}

#endif /* TW_LINUX_BITMAP_H */
