/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header: types, and access to memory. */
#ifndef SHIM_LINUX_TYPES_H
#define SHIM_LINUX_TYPES_H

#include_next <linux/types.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "../shim.h"

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
	shim_race();							\
	__atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);		\
})
#define try_cmpxchg64(p, old, new) ({					\
	shim_race();							\
	__atomic_compare_exchange_n(p, old, new, false,			\
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
})

/*
 * Orders loads. The fence of C11 is more than the thread sanitizer knows, and
 * an atomic addition of nothing does as well.
 */
static inline void smp_rmb(void)
{
	static int nothing;

	__atomic_fetch_add(&nothing, 0, __ATOMIC_SEQ_CST);
}

#endif /* SHIM_LINUX_TYPES_H */
