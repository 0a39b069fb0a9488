/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * In a process, all that the module's files above the core need of the kernel. The core's
 * needs are in core.h, which the tests of the core have, too.
 *
 * Users' memory is the process's own: an address that is not valid ends the program.
 */
#ifndef TW_PROCESS_KERNEL_H
#define TW_PROCESS_KERNEL_H

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <linux/ioctl.h>

#include "core.h"

/* This part has words of the kernel's C. */
#define static_assert(condition)	_Static_assert(condition, #condition)
#define __user
#define __percpu
#define __acquires(lock)
#define __releases(lock)
#define noinline		__attribute__((__noinline__))
#define noinline_for_stack	noinline
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))
#define roundup(x, y)		({ __typeof__(y) y_ = (y); ((x) + y_ - 1) / y_ * y_; })
#define fls64(x)		((x) ? 64 - __builtin_clzll(x) : 0)
#define check_add_overflow(a, b, sum)	__builtin_add_overflow(a, b, sum)
#define NSEC_PER_SEC		1000000000ULL
#define ERESTARTSYS		EINTR

/*
 * The kernel counts by CPU, and this file counts by thread. Some threads may share a counter.
 * Each counter has a cache line of its own.
 */
#define TW_COUNTERS		16
#define TW_COUNTER_BYTES	64

static size_t tw_counter_offset(void);

#define alloc_percpu_gfp(type, gfp) \
	((type *)calloc(TW_COUNTERS, TW_COUNTER_BYTES))
#define free_percpu(memory)	free(memory)
#define num_possible_cpus()	(TW_COUNTERS * TW_COUNTER_BYTES / sizeof(u64))
#define for_each_possible_cpu(cpu) \
	for ((cpu) = 0; (cpu) < TW_COUNTERS; (cpu)++)
#define per_cpu_ptr(memory, cpu) \
	((__typeof__(memory))((char *)(memory) + (cpu) * TW_COUNTER_BYTES))
#define this_cpu_inc(counter) \
	((void)__atomic_fetch_add((u64 *)((char *)&(counter) + tw_counter_offset()), \
				  1, __ATOMIC_RELAXED))

/* This part has locks that sleep. */
struct mutex {
	pthread_mutex_t	mutex;
};

#define mutex_init(lock)	pthread_mutex_init(&(lock)->mutex, NULL)
#define mutex_destroy(lock)	pthread_mutex_destroy(&(lock)->mutex)
#define mutex_lock(lock)	pthread_mutex_lock(&(lock)->mutex)
#define mutex_unlock(lock)	pthread_mutex_unlock(&(lock)->mutex)

/* This part has clocks. A process and its timerfds are in one time namespace. */
struct timespec64 {
	s64	tv_sec;
	long	tv_nsec;
};

typedef s64 ktime_t;

static inline u64 ktime_get_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);

	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

#define ktime_get_ns()		ktime_get_clock_ns(CLOCK_MONOTONIC)
#define ktime_get_boottime_ns()	ktime_get_clock_ns(CLOCK_BOOTTIME)
#define ktime_get_real_ns()	ktime_get_clock_ns(CLOCK_REALTIME)
#define timens_add_monotonic(offset)	((void)(offset))
#define timens_add_boottime(offset)	((void)(offset))
#define timespec64_to_ktime(time)	((time).tv_sec * (s64)NSEC_PER_SEC + (time).tv_nsec)
#define ktime_to_ns(time)	(time)
#define ns_to_ktime(ns)		((ktime_t)(ns))

/* The timer is a timerfd. This part also has its waiters: see timer.c. */
enum hrtimer_restart { HRTIMER_NORESTART };
enum hrtimer_mode { HRTIMER_MODE_ABS };

#define TW_TIMER_NEVER		(~0ULL)
#define TW_TIMER_NOW		0ULL

/**
 * struct hrtimer - a timer that is a file descriptor
 * @fd: the timerfd, or why there is none as a negative errno; constant
 * @wanted: when it is to go off, TW_TIMER_NEVER for not at all; the wheel's lock
 * @told: what the timerfd was told last; TW_TIMER_NOW while it is readable, as far as a thread
 *	has seen it; written under the wheel's lock, read anywhere
 * @telling: held while the timerfd is told, so that it is told in order; taken before
 *	the wheel's lock
 */
struct hrtimer {
	int		fd;
	u64		wanted;
	u64		told;
	struct mutex	telling;
};

static void hrtimer_setup(struct hrtimer *timer,
			  enum hrtimer_restart (*function)(struct hrtimer *timer),
			  clockid_t clock, enum hrtimer_mode mode);
static void hrtimer_cancel(struct hrtimer *timer);
static void tw_timer_settle(struct hrtimer *timer);

static inline void hrtimer_start_range_ns(struct hrtimer *timer, ktime_t time, u64 slack,
					  enum hrtimer_mode mode)
{
	(void)slack;
	(void)mode;
	WRITE_ONCE(timer->wanted, time > 0 ? (u64)time : 1);
}

static inline void hrtimer_try_to_cancel(struct hrtimer *timer)
{
	WRITE_ONCE(timer->wanted, TW_TIMER_NEVER);
}

/*
 * Threads that read sleep until the timerfd is readable. Nobody knows here which threads
 * poll the timerfd. A wake-up of the wheel's pollers makes the timerfd readable anew, which
 * wakes readers, too.
 * @timer: the wheel's timer
 * @rings: the queue has the pollers
 */
typedef struct {
	struct hrtimer	*timer;
	bool		rings;
} wait_queue_head_t;

static int tw_timer_sleep(struct hrtimer *timer);
static void tw_timer_ring(struct hrtimer *timer);

static inline void init_waitqueue_head(wait_queue_head_t *queue)
{
	*queue = (wait_queue_head_t) { };
}

static inline void wake_up(wait_queue_head_t *queue)
{
	if (queue->rings)
		tw_timer_ring(queue->timer);
}

#define wake_up_all(queue)	wake_up(queue)
#define wait_event_interruptible_exclusive(queue, condition) ({		\
	int err_ = 0;							\
									\
	while (!err_ && !(condition))					\
		err_ = tw_timer_sleep((queue).timer);			\
	err_;								\
})

/* A signal only ends a sleep, and needs no further look. */
#define current			NULL
#define task_sigpending(task)	((void)(task), false)

/* This part has the memory of users. */
#define u64_to_user_ptr(address)	((void *)(uintptr_t)(address))
/* The memory may lie at any address. */
#define get_user(to, from)		(memcpy(&(to), from, sizeof(to)), 0)
#define put_user(value, to)		(memcpy(to, &(value), sizeof(*(to))), 0)
#define copy_from_user(to, from, n)	(memcpy(to, from, n), 0)
#define copy_to_user(to, from, n)	(memcpy(to, from, n), 0)
#define clear_user(to, n)		(memset(to, 0, n), 0)
#define user_access_begin(from, n)	true
#define user_access_end()		do { } while (0)
#define user_write_access_begin(to, n)	user_access_begin(to, n)
#define user_write_access_end()		user_access_end()
#define unsafe_put_user(value, to, label) do {				\
	if (0)								\
		goto label;						\
	memcpy(to, &(value), sizeof(*(to)));				\
} while (0)
#define unsafe_get_user(to, from, label) do {				\
	if (0)								\
		goto label;						\
	memcpy(&(to), from, sizeof(to));				\
} while (0)
#define pagefault_disable()		do { } while (0)
#define pagefault_enable()		do { } while (0)

/* Returns the first byte that is not @c, NULL if all bytes are. */
static inline void *memchr_inv(const void *memory, int c, size_t n)
{
	const unsigned char *at = memory;

	for (; n; at++, n--)
		if (*at != (unsigned char)c)
			return (void *)at;

	return NULL;
}

static inline int check_zeroed_user(const void *from, size_t n)
{
	return !memchr_inv(from, 0, n);
}

static inline int copy_struct_from_user(void *to, size_t known, const void *from,
					size_t size)
{
	size_t some = size < known ? size : known;

	if (size > known && !check_zeroed_user((const char *)from + known, size - known))
		return -E2BIG;
	memcpy(to, from, some);
	memset((char *)to + some, 0, known - some);

	return 0;
}

struct iov_iter {
	char	*at;
	size_t	left;
};

#define iov_iter_count(iter)	((iter)->left)
#define fault_in_iov_iter_writeable(iter, n)	((void)(iter), (size_t)0)

static inline size_t copy_to_iter(const void *from, size_t n, struct iov_iter *to)
{
	memcpy(to->at, from, n);
	to->at += n;
	to->left -= n;

	return n;
}

static inline void iov_iter_revert(struct iov_iter *iter, size_t n)
{
	iter->at -= n;
	iter->left += n;
}

/* This part has files. */
#define FMODE_READ		1
#define FMODE_WRITE		2
#define IOCB_NOWAIT		1
#define EPOLLIN			POLLIN
#define EPOLLRDNORM		POLLRDNORM
#define EPOLLHUP		POLLHUP
#define EPOLLERR		POLLERR

typedef unsigned int __poll_t;
typedef struct poll_table poll_table;

struct file {
	void		*private_data;
	unsigned int	f_mode;
	unsigned int	f_flags;
};

struct kiocb {
	struct file	*ki_filp;
	int		ki_flags;
};

#define poll_wait(file, queue, wait)	((void)(file), (void)(queue), (void)(wait))

struct inode;
struct file_operations;
struct seq_file;
typedef unsigned int kuid_t;

/* There are no tracepoints. */
#define TP_PROTO(...)		(__VA_ARGS__)
#define TP_ARGS(...)
#define TRACE_EVENT(name, proto, ...)					\
	static inline void trace_##name proto { }			\
	static inline bool trace_##name##_enabled(void) { return false; }
#define DECLARE_EVENT_CLASS(...)
#define DEFINE_EVENT(class, name, proto, ...)				\
	TRACE_EVENT(name, proto)

#endif /* TW_PROCESS_KERNEL_H */
