/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * In user space, what the module's core needs of the kernel. Memory, locks and the table of ids
 * are in linux/, and tests have other headers in their place.
 */
#ifndef TW_PROCESS_CORE_H
#define TW_PROCESS_CORE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include <linux/limits.h>
#include <linux/types.h>

/* Other threads may come between at such a place. A test of races defines the macro. */
#ifndef tw_race
#define tw_race()	do { } while (0)
#endif

/* This part has types and their limits. */
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef unsigned int gfp_t;

#define U16_MAX		((u16)~0U)
#define U32_MAX		((u32)~0U)
#define U64_MAX		((u64)~0ULL)
#define S32_MAX		((s32)(U32_MAX >> 1))
#define S64_MAX		((s64)(U64_MAX >> 1))

#define sizeof_field(type, member)	sizeof(((type *)0)->member)
#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif
#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)

/* This part has arithmetic. min() and max() are as strict about types as the kernel's. */
#define tw_select(x, op, y) ({						\
	__typeof__(x) x_ = (x);						\
	__typeof__(y) y_ = (y);						\
	_Static_assert(__builtin_types_compatible_p(__typeof__(x_),	\
						    __typeof__(y_)),	\
		       "min or max of two types");			\
	x_ op y_ ? x_ : y_;						\
})

#define min(x, y)		tw_select(x, <, y)
#define max(x, y)		tw_select(x, >, y)
#define min_t(type, x, y)	min((type)(x), (type)(y))
#define max_t(type, x, y)	max((type)(x), (type)(y))

#define ALIGN(size, unit)	(((size) + (unit) - 1) & ~((unit) - 1))
#define IS_ALIGNED(size, unit)	(!((size) & ((unit) - 1)))

#define BIT(nr)			(1UL << (nr))
#define BIT_ULL(nr)		(1ULL << (nr))
#define BITS_PER_LONG		(8 * (int)sizeof(long))
#define BITS_TO_LONGS(bits)	(((bits) + BITS_PER_LONG - 1) / BITS_PER_LONG)

/* @n is 1 or more. */
static inline int ilog2(unsigned long n)
{
	return BITS_PER_LONG - 1 - __builtin_clzl(n);
}

static inline unsigned long roundup_pow_of_two(unsigned long n)
{
	return n == 1 ? 1 : 2UL << ilog2(n - 1);
}

static inline u32 get_random_u32(void)
{
	u32 number;

	/* getrandom() gives so few bytes at once, and all of them. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		abort();

	return number;
}

/* This part has sets of bits. */
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

/* This part has access to memory. Cache lines are as on x86 and arm64. */
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define prefetch(p)	__builtin_prefetch(p)
#define prefetchw(p)	__builtin_prefetch(p, 1)
#define array_index_nospec(index, size)	((index) < (size) ? (index) : 0)
#define ____cacheline_aligned_in_smp	__attribute__((__aligned__(64)))

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value)	__atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) \
	__atomic_store_n(p, value, __ATOMIC_RELEASE)

#define xchg(p, value) ({						\
	tw_race();							\
	__atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);		\
})
#define try_cmpxchg64(p, old, new) ({					\
	tw_race();							\
	__atomic_compare_exchange_n(p, old, new, false,			\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
})

/* The thread sanitizer knows no fence, but an addition of 0 gives the same order. */
#ifdef __SANITIZE_THREAD__
static int tw_nothing __attribute__((__unused__));

#define smp_mb()	((void)__atomic_fetch_add(&tw_nothing, 0, __ATOMIC_SEQ_CST))
#define smp_rmb()	smp_mb()
#else
#define smp_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* This part has sizes and flags of memory. */
#define SZ_4K		0x1000
#define SZ_32K		0x8000
#undef PAGE_SIZE
#ifdef TW_PAGE_SIZE
#define PAGE_SIZE	TW_PAGE_SIZE
#else
#define PAGE_SIZE	4096UL
#endif
#define PAGE_ALIGN(size)	ALIGN(size, PAGE_SIZE)

#define __GFP_ZERO		1U
#define GFP_KERNEL		2U
#define GFP_KERNEL_ACCOUNT	6U
#define __GFP_RETRY_MAYFAIL	8U
#define __GFP_NOWARN		16U

#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

/* A test whose locks know their owners defines these macros. */
#ifndef might_sleep
#define might_sleep()	do { } while (0)
#define lockdep_assert_held(lock)	((void)(lock))
#endif
#define cond_resched()	might_sleep()

#endif /* TW_PROCESS_CORE_H */
