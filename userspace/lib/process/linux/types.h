/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: types, and access to memory. */
#ifndef TW_LINUX_TYPES_H
#define TW_LINUX_TYPES_H

#include_next <linux/types.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Other threads may come between at such a place. A test of races defines the macro. */
#ifndef tw_race
#define tw_race()	do { } while (0)
#endif

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef unsigned int gfp_t;

#define sizeof_field(type, member)	sizeof(((type *)0)->member)

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)

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

#endif /* TW_LINUX_TYPES_H */
