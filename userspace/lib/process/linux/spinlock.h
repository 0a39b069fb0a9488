/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. A holder may lose the CPU, and waiters sleep. */
#ifndef TW_LINUX_SPINLOCK_H
#define TW_LINUX_SPINLOCK_H

#include <pthread.h>

typedef struct {
	pthread_mutex_t	mutex;
} spinlock_t;

static inline void spin_lock_init(spinlock_t *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
}

static inline void spin_lock(spinlock_t *lock)
{
	pthread_mutex_lock(&lock->mutex);
}

static inline void spin_unlock(spinlock_t *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}

#endif /* TW_LINUX_SPINLOCK_H */
