/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native benchmark: the wheel's core, built in user space, beside other ways to keep many
 * timeouts. Each contender has one file. This header has what a contender offers to the
 * driver, bench.c, and what it may use.
 *
 * The scene: connections with an idle timeout of 30 seconds. Each has a timer, which is
 * between 8 and 30 seconds from its deadline; a touch makes it 30 again. For contenders on a
 * real clock a second lasts UNIT seconds, so that no timer falls due by accident.
 */
#ifndef BENCH_H
#define BENCH_H

#include <linux/types.h>
#include <stdbool.h>

#define TIMEOUT		30	/* seconds */
#define UNIT		1000	/* real seconds in one such second */

/**
 * struct contender - one way to keep timeouts
 * @name: the name in tables and files, without blanks
 * @what: the same for people
 * @ours: it is the wheel
 * @one_timeout: its timers are all armed for the whole TIMEOUT
 * @most: most timers that it is asked to keep, 0 for any number
 * @setup: make n timers, none armed
 * @prepare: optional, before each round of @touch or @cancel, not timed
 * @arm: arm these timers, each for bench_after() seconds
 * @finish: optional, after each round of @arm, not timed
 * @touch: make each of these due TIMEOUT seconds from now
 * @cancel: disarm these timers
 * @slot: in how many seconds from the start a timer is due, -1 if not armed
 * @check: optional, in place of @slot: has all that was done taken effect?
 * @soon: make each of these timers due very soon, all at once
 * @run: call bench_fired() for each timer that is due
 * @extra: optional: measure and bench_report() its own figures; all n are armed
 *
 * A contender that has only @setup, @touch and @check is a limit to compare with.
 * Others have only @setup and @extra.
 */
struct contender {
	const char	*name;
	const char	*what;
	bool		ours;
	bool		one_timeout;
	__u32		most;
	void		(*setup)(__u32 n);
	void		(*prepare)(const __u32 *which, __u32 n);
	void		(*arm)(const __u32 *which, __u32 n);
	void		(*finish)(const __u32 *which, __u32 n);
	void		(*touch)(const __u32 *which, __u32 n);
	void		(*cancel)(const __u32 *which, __u32 n);
	int		(*slot)(__u32 i);
	bool		(*check)(void);
	void		(*soon)(const __u32 *which, __u32 n);
	void		(*run)(void);
	void		(*extra)(__u32 n);
};

extern const struct contender wheel_handle, wheel_ids, wheel_words;
extern const struct contender store, ioctls, timerfds;
extern const struct contender linked_wheel, heap4, uv, event_heap, event_common,
	ev, dpdk;
extern const struct contender process_handle, process_handle_singly, process_ids,
	process_ids_singly, process_words;
extern const struct contender threads_mapped, threads_batch, threads_own;

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

/* fired[] counts how often each timer was fired. */
extern __u8 *fired;

/* Prints the error and ends the program, because no figure can be trusted then. */
void bench_fail(const char *format, ...)
	__attribute__((noreturn, format(printf, 1, 2)));

#define MUST(condition) do {						\
	if (!(condition))						\
		bench_fail("%s:%d: not so: %s", __FILE__, __LINE__,	\
			   #condition);					\
} while (0)

void *bench_alloc(__u64 n, __u64 size);
__u32 *bench_permutation(__u32 n, __u64 seed);
void bench_report(const char *op, double value);
double bench_cpu_ns(void);
double bench_wall_ns(void);
double bench_quantile(double *values, __u32 n, double which);

/* The last step of splitmix64 gives a different random number for each argument. */
static inline __u64 bench_mix(__u64 z)
{
	z += 0x9e3779b97f4a7c15ULL;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;

	return z ^ z >> 31;
}

/* Returns a random u64 that names timer i, and tells a callback which timer it is. */
static inline __u64 bench_id(__u32 i)
{
	return bench_mix(i) << 32 | i;
}

/* Returns in how many seconds timer i is due after it was armed: 8 to 30. */
static inline __u32 bench_after(__u32 i)
{
	return 8 + ((i * 0x9e3779b1U) >> 16) % (TIMEOUT - 7);
}

/* Every callback calls this. */
static inline void bench_fired(__u32 i)
{
	fired[i]++;
}

#endif /* BENCH_H */
