/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header: a spinlock that costs what the
 * kernel's does while nobody else wants it, one atomic operation and one store.
 */
#ifndef BENCH_LINUX_SPINLOCK_H
#define BENCH_LINUX_SPINLOCK_H

typedef struct {
	u32	held;
} spinlock_t;

static inline void spin_lock_init(spinlock_t *lock)
{
	lock->held = 0;
}

static inline void spin_lock(spinlock_t *lock)
{
	u32 none = 0;

	while (!__atomic_compare_exchange_n(&lock->held, &none, 1, false,
					    __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		while (READ_ONCE(lock->held))
			__builtin_ia32_pause();
		none = 0;
	}
}

static inline void spin_unlock(spinlock_t *lock)
{
	smp_store_release(&lock->held, 0);
}

#endif /* BENCH_LINUX_SPINLOCK_H */
