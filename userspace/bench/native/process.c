// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel inside the process, as programs call it, by libtimewheel: in batches and
 * singly, by handle and by id, and touched by words. All that the library does is
 * counted: the calls for the batches, the clock, the lock, and telling the timerfd.
 */
#include <stdlib.h>
#include <unistd.h>

#include <timewheel.h>

#include "bench.h"

#define SECOND	TW_SEC(UNIT)
#define BATCH	64
#define EVENTS	256
#define PAIRS	1000000

static struct {
	struct tw_wheel		*wheel;
	struct tw_words		*words;
	struct tw_batch		*batch;
	struct tw_events	*events;
	__u64			*handles;
	uint64_t		*keys;		/* in the order of their use */
	__u64			start;
	unsigned int		by;		/* flags of operations */
	bool			singly;
} process;

static struct timewheel_info info(void)
{
	struct timewheel_info info = { .size = sizeof(info) };

	MUST(!tw_wheel_info(process.wheel, &info));

	return info;
}

static void setup(__u32 n, __u32 flags, bool singly)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = flags,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 4096,
		.tick = TW_MS(1),
		.max_tokens = n + 1,
	};

	process.wheel = tw_wheel_open_process(&setup);
	MUST(process.wheel);
	if (flags & TIMEWHEEL_SETUP_NO_IDS)
		process.by = TIMEWHEEL_OPF_BY_HANDLE;
	if (flags & TIMEWHEEL_SETUP_TOUCH_WORDS) {
		process.words = tw_words_map(process.wheel);
		MUST(process.words);
	}
	process.singly = singly;
	process.batch = tw_batch_new(BATCH);
	process.events = tw_events_new(singly ? 1 : EVENTS);
	MUST(process.batch && process.events);
	process.handles = bench_alloc(n, sizeof(*process.handles));
	process.keys = bench_alloc(n, sizeof(*process.keys));
	process.start = info().now;
}

static void setup_handle(__u32 n)
{
	setup(n, TIMEWHEEL_SETUP_NO_IDS, false);
}

static void setup_handle_singly(__u32 n)
{
	setup(n, TIMEWHEEL_SETUP_NO_IDS, true);
}

static void setup_id(__u32 n)
{
	setup(n, 0, false);
}

static void setup_id_singly(__u32 n)
{
	setup(n, 0, true);
}

static void setup_words(__u32 n)
{
	setup(n, TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_TOUCH_WORDS, false);
}

static __u64 id_of(__u32 i)
{
	return process.by ? 0 : bench_id(i);
}

static __u64 key_of(__u32 i)
{
	return process.by ? process.handles[i] : bench_id(i);
}

static void prepare(const __u32 *which, __u32 n)
{
	__u32 i;

	for (i = 0; i < n; i++)
		process.keys[i] = key_of(which[i]);
}

static void registration(struct timewheel_op *op, __u32 i)
{
	tw_op_register(op, id_of(i), bench_after(i) * SECOND + bench_mix(i) % (SECOND / 2),
		       i, 0);
	op->timeout = TIMEOUT * SECOND;
}

static __u32 batch_of(__u32 i, __u32 n)
{
	return n - i < BATCH ? n - i : BATCH;
}

static void arm_singly(const __u32 *which, __u32 n)
{
	struct timewheel_op op;
	__u32 i;

	for (i = 0; i < n; i++) {
		registration(&op, which[i]);
		MUST(!tw_wheel_run(process.wheel, &op));
		process.handles[which[i]] = op.handle;
	}
}

static void arm(const __u32 *which, __u32 n)
{
	__u32 i, j, some;

	if (process.singly) {
		arm_singly(which, n);
		return;
	}
	for (i = 0; i < n; i += some) {
		some = batch_of(i, n);
		tw_batch_clear(process.batch);
		for (j = 0; j < some; j++)
			registration(tw_batch_next(process.batch), which[i + j]);
		MUST(!tw_batch_run(process.batch, process.wheel));
		for (j = 0; j < some; j++)
			process.handles[which[i + j]] = tw_batch_op(process.batch, j)->handle;
	}
}

static void touch(const __u32 *which, __u32 n)
{
	__u32 i;

	(void)which;
	for (i = 0; process.singly && i < n; i++)
		MUST(!tw_wheel_touch(process.wheel, process.keys[i], process.by));
	for (i = 0; !process.singly && i < n; i += BATCH)
		MUST(!tw_wheel_touch_many(process.wheel, process.keys + i, batch_of(i, n),
					  process.by, NULL));
}

/* A program computes the tick once per turn of its loop. */
static void touch_words(const __u32 *which, __u32 n)
{
	__u32 i, tick = tw_tick(process.words);

	(void)which;
	for (i = 0; i < n; i++)
		tw_touch(process.words, process.keys[i], tick);
}

static void cancel(const __u32 *which, __u32 n)
{
	struct timewheel_op op;
	__u32 i, j;

	(void)which;
	for (i = 0; process.singly && i < n; i++) {
		tw_op_cancel(&op, process.keys[i], process.by);
		MUST(!tw_wheel_run(process.wheel, &op));
	}
	for (i = 0; !process.singly && i < n; i += BATCH) {
		tw_batch_clear(process.batch);
		for (j = 0; j < batch_of(i, n); j++)
			tw_op_cancel(tw_batch_next(process.batch), process.keys[i + j],
				     process.by);
		MUST(!tw_batch_run(process.batch, process.wheel));
	}
}

static int slot(__u32 i)
{
	struct timewheel_token token;

	if (tw_wheel_get(process.wheel, key_of(i), process.by, &token) < 0)
		return -1;

	return (token.deadline - process.start) / SECOND;
}

/* The deadlines are random within a millisecond, which is a tick or two. */
static void soon(const __u32 *which, __u32 n)
{
	__u32 i, j;

	prepare(which, n);
	for (i = 0; i < n; i += BATCH) {
		tw_batch_clear(process.batch);
		for (j = 0; j < batch_of(i, n); j++)
			tw_op_move(tw_batch_next(process.batch), process.keys[i + j],
				   bench_mix(which[i + j]) % TW_MS(1), process.by);
		MUST(tw_batch_run(process.batch, process.wheel) >= 0);
	}
	usleep(5000);
}

static void run(void)
{
	ssize_t n, i;

	while ((n = tw_events_read(process.events, process.wheel, 0)) > 0)
		for (i = 0; i < n; i++)
			bench_fired(tw_events_at(process.events, i)->cookie);
	MUST(!n);
}

/* One token is always in the cache, and shows what the calls themselves cost. */
static void report_pair(void)
{
	const __u64 id = process.by ? 0 : 1;
	struct timewheel_op op;
	double ns = bench_cpu_ns();
	__u32 i;

	for (i = 0; i < PAIRS; i++) {
		tw_op_register(&op, id, TIMEOUT * SECOND, 0, 0);
		MUST(!tw_wheel_run(process.wheel, &op));
		tw_op_cancel(&op, process.by ? op.handle : id, process.by);
		MUST(!tw_wheel_run(process.wheel, &op));
	}
	bench_report("hot_pair", (bench_cpu_ns() - ns) / PAIRS);
}

static void extra(__u32 n)
{
	bench_report("bytes", (double)info().bytes / n);
	if (process.singly)
		report_pair();
}

#define PROCESS(touches)						\
	.ours = true, .prepare = prepare, .arm = arm, .touch = touches, .cancel = cancel, \
	.slot = slot, .soon = soon, .run = run, .extra = extra

const struct contender process_handle = {
	PROCESS(touch), .name = "process", .setup = setup_handle,
	.what = "timewheel in the process, by handle, 64 at once",
};

const struct contender process_handle_singly = {
	PROCESS(touch), .name = "process-singly", .setup = setup_handle_singly,
	.what = "timewheel in the process, by handle, singly",
};

const struct contender process_ids = {
	PROCESS(touch), .name = "process-id", .setup = setup_id,
	.what = "timewheel in the process, by id, 64 at once",
};

const struct contender process_ids_singly = {
	PROCESS(touch), .name = "process-id-singly", .setup = setup_id_singly,
	.what = "timewheel in the process, by id, singly",
};

const struct contender process_words = {
	PROCESS(touch_words), .name = "process-words", .setup = setup_words,
	.what = "timewheel in the process, touched by words",
};
