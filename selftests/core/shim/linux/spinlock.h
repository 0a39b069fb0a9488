/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-space stand-in for the kernel's header. The lock knows its owner, and each
 * thread counts its locks: a function that may sleep must be called without a lock.
 */
#ifndef SHIM_LINUX_SPINLOCK_H
#define SHIM_LINUX_SPINLOCK_H

#include <pthread.h>

typedef struct {
	pthread_mutex_t	mutex;
	const int	*owner;
} spinlock_t;

extern __thread int shim_locks_held;

static inline void spin_lock_init(spinlock_t *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->owner = NULL;
}

static inline bool spin_is_mine(const spinlock_t *lock)
{
	return READ_ONCE(lock->owner) == &shim_locks_held;
}

static inline void spin_lock(spinlock_t *lock)
{
	if (spin_is_mine(lock))
		shim_bug("deadlock", __FILE__, __LINE__);
	pthread_mutex_lock(&lock->mutex);
	WRITE_ONCE(lock->owner, &shim_locks_held);
	shim_locks_held++;
}

static inline void spin_unlock(spinlock_t *lock)
{
	if (!spin_is_mine(lock))
		shim_bug("unlock without lock", __FILE__, __LINE__);
	shim_locks_held--;
	WRITE_ONCE(lock->owner, NULL);
	pthread_mutex_unlock(&lock->mutex);
}

#define might_sleep() do {						\
	if (shim_locks_held)						\
		shim_bug("may sleep with a lock held", __FILE__, __LINE__); \
} while (0)

#define lockdep_assert_held(lock) do {					\
	if (!spin_is_mine(lock))					\
		shim_bug("lock not held", __FILE__, __LINE__);		\
} while (0)

#endif /* SHIM_LINUX_SPINLOCK_H */
