/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest benchmark: what timeouts cost in a guest that runs one instruction per nanosecond,
 * where clock readings count instructions and repeat on any machine, however busy. Each way of
 * keeping timeouts is a struct kind; the measurements (counts.c, crowd.c, memory.c)
 * know only this struct; scale.c is about the wheel alone.
 *
 * The program prints tables for people, and lines "= NAME<tab>VALUE...", which
 * guest/run collects.
 */
#ifndef BENCH_H
#define BENCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef uint64_t u64;
typedef uint32_t u32;

#define MS	1000000ULL
#define SEC	1000000000ULL
#define BATCH	512		/* operations handed over at once */
#define FAR	(1000 * SEC)	/* later than any measurement ends */

/*
 * A way of keeping timeouts, numbered 0..n-1. Kinds with @flush collect up to
 * BATCH operations, all of one sort, until they are flushed. Any error ends the
 * program, because it leaves no valid figure.
 */
struct kind {
	const char *name;
	const void *config;
	/* Opens the kind for @n timeouts; wheels have ticks of @tick ns. */
	void (*open)(const struct kind *kind, unsigned int n, u64 tick);
	void (*close)(void);
	/* Arms a new timeout, due after @time, or at @time of CLOCK_MONOTONIC. */
	void (*arm)(unsigned int i, u64 time, bool absolute);
	/* Makes the timeout due FAR from now, as it was before. */
	void (*rearm)(unsigned int i);
	void (*cancel)(unsigned int i);
	/* Moves it a little earlier; touches it, or registers it. Both may be NULL. */
	void (*move)(unsigned int i);
	void (*upsert)(unsigned int i);
	void (*flush)(void);
	/*
	 * Waits for expired timeouts, or does not wait, and reads them. Returns how many there
	 * were.
	 */
	unsigned int (*drain)(bool wait);
	unsigned int most;	/* timeouts that it can keep */
	bool stores;		/* ->rearm is a store, with nothing to flush */
};

extern const struct kind wheel_id, wheel_handle, wheel_batch_id,
	wheel_batch_handle, wheel_keys_id, wheel_keys_handle, wheel_word,
	wheel_checked, wheel_plain, wheel_plain_word;
extern const struct kind timerfd, uring;

static inline u64 now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* Returns the instructions so far. */
static inline u64 count_now(void)
{
	return now_of(CLOCK_MONOTONIC_RAW);
}

static inline struct timespec to_timespec(u64 ns)
{
	return (struct timespec){ .tv_sec = ns / SEC, .tv_nsec = ns % SEC };
}

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

/* Ends the program unless @good. */
#define NEED(good) do {							\
	if (!(good))							\
		fail(__FILE__, __LINE__, #good);			\
} while (0)

_Noreturn void fail(const char *file, int line, const char *what);
void *grab(size_t size);
void sleep_until(u64 at);
void raise_limits(void);

/* Returns 0..@n-1 in a random order, which is the same each time. */
u32 *shuffled(unsigned int n);

void arm_all(const struct kind *kind, unsigned int n, u64 time, bool absolute);

/* Tells guest/run a value. */
void put(const char *name, const char *kind, unsigned int n, double value);

/*
 * A thread of real-time priority that measures for how long others keep it from running. It runs
 * all the time, or it @sleeps and wakes each 100 us.
 */
struct watcher {
	pthread_t thread;
	bool sleeps;
	u64 until;		/* when it ends by itself, in time of CLOCK_MONOTONIC */
	atomic_bool over;
	u64 longest;
};

void start_watcher(struct watcher *w);
void join_watcher(struct watcher *w);
void stop_watcher(struct watcher *w);

void run_counts(unsigned int n, bool limits);
void run_crowd(unsigned int n);
void run_memory(unsigned int n);
void run_scale(unsigned int n);

#endif /* BENCH_H */
