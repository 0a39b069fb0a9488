// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares two threads with one: how much more work two of them do in the same time,
 * each with its own tokens, on one wheel or each on its own wheel.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "wheel.h"

#define ROUNDS	9

struct worker {
	pthread_t		thread;
	pthread_barrier_t	*begin;
	int			cpu;
	void			(*work)(struct worker *worker);
	struct tw_ring		*wheel;
	u32			*which;
	u64			*keys;
	u32			n;
	double			begun, ended;
};

static struct worker workers[2];
static struct tw_now now;
static u32 *which;
static u64 *keys;

/* Keeps other programs off the thread's CPU, if it may: they would make figures random. */
static void keep_cpu(int cpu)
{
	const struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

static void *thread(void *arg)
{
	struct worker *worker = arg;

	keep_cpu(worker->cpu);
	pthread_barrier_wait(worker->begin);
	worker->begun = bench_wall_ns();
	worker->work(worker);
	worker->ended = bench_wall_ns();

	return NULL;
}

/* Returns the operations per ns of some workers together. */
static double rate(u32 first, u32 last, void (*work)(struct worker *worker))
{
	double begun = 1e300, ended = 0, ops = 0;
	pthread_barrier_t begin;
	u32 i;

	now = wheel_at(now.tick + 1);
	pthread_barrier_init(&begin, NULL, last - first + 1);
	for (i = first; i <= last; i++) {
		workers[i].begin = &begin;
		workers[i].work = work;
		MUST(!pthread_create(&workers[i].thread, NULL, thread,
				     &workers[i]));
	}
	for (i = first; i <= last; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].begun < begun)
			begun = workers[i].begun;
		if (workers[i].ended > ended)
			ended = workers[i].ended;
		ops += workers[i].n;
	}
	pthread_barrier_destroy(&begin);

	return ops / (ended - begun);
}

static void measure(const char *op, void (*work)(struct worker *worker))
{
	double times[ROUNDS];
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		double both = rate(0, 1, work);

		times[i] = both / ((rate(0, 0, work) + rate(1, 1, work)) / 2);
	}
	bench_report(op, bench_quantile(times, ROUNDS, 0.5));
}

/* Registers n tokens, with handles and timers in the order of @which. */
static void register_all(u32 n)
{
	u32 i;

	now = wheel_at(BASE);
	which = bench_permutation(n, 21);
	keys = bench_alloc(n, sizeof(*keys));
	wheel_register(&ring, which, keys, n, &now);
	for (i = 0; i < 2; i++) {
		workers[i].cpu = i;
		workers[i].wheel = &ring;
		workers[i].n = n / 2;
		workers[i].which = bench_alloc(n / 2, sizeof(*which));
		workers[i].keys = bench_alloc(n / 2, sizeof(*keys));
	}
}

/*
 * Gives each worker half of the tokens. The halves are apart in memory, or mixed, so
 * that tokens of two workers often share a cache line.
 */
static void deal(u32 n, bool apart)
{
	u32 i, dealt[2] = { 0, 0 };

	for (i = 0; i < n / 2 * 2; i++) {
		u32 to = apart ? (u32)keys[i] >= n / 2 : i % 2;

		MUST(dealt[to] < n / 2);
		workers[to].keys[dealt[to]] = keys[i];
		workers[to].which[dealt[to]++] = which[i];
	}
}

/*
 * Checks that @pending tokens are on each wheel, and due a timeout after the last
 * touch, if that is expected.
 */
static void check_workers(u32 pending, int due)
{
	struct tw_found found;
	u32 i, j;

	for (i = 0; i < 2; i++) {
		struct tw_ring *wheel = workers[i].wheel;

		MUST(wheel->pending == pending);
		spin_lock(&wheel->lock);
		for (j = 0; j < workers[i].n; j++) {
			MUST(!tw_ring_by_handle(wheel, workers[i].keys[j], NULL,
						&found));
			tw_look_apply_stamp(wheel, &found, now.tick);
			MUST(!due || (int)(tw_word_due(found.word) -
					   now.tick) >= due);
		}
		spin_unlock(&wheel->lock);
	}
}

static void stamp(struct worker *worker)
{
	wheel_stamp(worker->keys, worker->n, now.tick);
}

static void touch(struct worker *worker)
{
	wheel_touch(worker->keys, worker->n, &now);
}

/* Does as many operations as the other functions do, half of them of each kind. */
static void replace(struct worker *worker)
{
	u32 i;

	for (i = 0; i + HOLD <= worker->n / 2; i += HOLD) {
		wheel_cancel(worker->wheel, worker->keys + i, HOLD);
		wheel_register(worker->wheel, worker->which + i,
			       worker->keys + i, HOLD, &now);
	}
}

static void setup_mapped(u32 n)
{
	wheel_setup(&ring, n, false, true);
	register_all(n);
}

static void setup_batch(u32 n)
{
	wheel_setup(&ring, n, false, false);
	register_all(n);
}

static void setup_own(u32 n)
{
	u32 i;

	now = wheel_at(BASE);
	for (i = 0; i < 2; i++) {
		struct worker *worker = &workers[i];

		worker->cpu = i;
		worker->wheel = bench_alloc(1, sizeof(*worker->wheel));
		worker->n = n / 2;
		worker->which = bench_permutation(n / 2, 21 + i);
		worker->keys = bench_alloc(n / 2, sizeof(*keys));
		wheel_setup(worker->wheel, n / 2, false, false);
		wheel_register(worker->wheel, worker->which, worker->keys,
			       n / 2, &now);
	}
}

static void extra_mapped(u32 n)
{
	deal(n, true);
	measure("scale_apart", stamp);
	check_workers(n, TIMEOUT);
}

static void extra_batch(u32 n)
{
	deal(n, false);
	measure("scale_touch", touch);
	check_workers(n, TIMEOUT - 1);
	now = wheel_at(BASE);
	measure("scale_replace", replace);
	check_workers(n, 0);
}

static void extra_own(u32 n)
{
	measure("scale_replace", replace);
	check_workers(n / 2, 0);
}

const struct contender threads_mapped = {
	.name = "threads-mapped", .what = "two threads, mapped touches",
	.ours = true, .most = 1000000, .setup = setup_mapped,
	.extra = extra_mapped,
};

const struct contender threads_batch = {
	.name = "threads-batch", .what = "two threads, batches", .ours = true,
	.most = 1000000, .setup = setup_batch, .extra = extra_batch,
};

const struct contender threads_own = {
	.name = "threads-own", .what = "two threads, a wheel each", .ours = true,
	.most = 1000000, .setup = setup_own, .extra = extra_own,
};
