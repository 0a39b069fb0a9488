// SPDX-License-Identifier: GPL-2.0-only
/*
 * @n tokens on one wheel, all due on one distant tick: tokens with a handle only, or
 * with TW_KIND=1 tokens with ids and cookies. The program prints:
 *
 * setup: instructions of opening and setting up;
 * register, sort, take, close: of the system calls, per token, from registering it
 *	to closing the wheel; sort: filing all that are due at once into the user's
 *	ring, from an outer level, when it is looked at for the first time;
 * wait: the longest time that a real-time thread, which wakes each 100 us, had to
 *	wait meanwhile; nothing is preempted in this kernel while it holds a lock;
 * bytes: each, by INFO;
 * callbacks: how often the wheel's timer went off in 10 s.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/timewheel.h>

#include "bench.h"

#define MAX_TOKENS	"/sys/module/timewheel/parameters/max_tokens"
#define TICK		(10 * MS)
#define SLOTS		3600
#define SLEEP		(10 * SEC)
/* The delay is longer than registering takes, and longer than the ring. */
#define DELAY(n)	(SLEEP + 2 * SLOTS * TICK + (n) * 3000ULL)

static const char *name;
static unsigned int number;
static bool ids;
static int fd;

static u64 used_now(void)
{
	return now_of(CLOCK_THREAD_CPUTIME_ID);
}

static struct timewheel_info info_now(void)
{
	struct timewheel_info info = { .size = sizeof(info) };

	NEED(!ioctl(fd, TIMEWHEEL_IOC_INFO, &info));
	return info;
}

static void open_wheel(void)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = SLOTS, .tick = TICK, .max_tokens = number,
		.flags = ids ? 0 : TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
	};
	u64 begun = used_now();

	fd = open("/dev/timewheel", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	NEED(fd >= 0);
	NEED(!ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));
	put("setup", name, number, used_now() - begun);
}

/* Returns the instructions of the system calls. */
static u64 register_all(u64 due)
{
	static struct timewheel_op ops[BATCH];
	struct timewheel_batch batch = {
		.size = sizeof(batch), .ops = (uintptr_t)ops,
		.op_size = sizeof(ops[0]),
	};
	u64 took = 0;

	for (unsigned int at = 0; at < number; at += batch.count) {
		u64 begun;

		batch.count = number - at < BATCH ? number - at : BATCH;
		for (unsigned int i = 0; i < batch.count; i++) {
			ops[i].size = sizeof(ops[i]);
			ops[i].code = TIMEWHEEL_OP_REGISTER;
			ops[i].flags = TIMEWHEEL_OPF_ABSOLUTE;
			ops[i].time = due;
			ops[i].id = ids ? (at + i + 1) * 2654435761ULL : 0;
			ops[i].cookie = ids ? at + i : 0;
		}
		begun = used_now();
		NEED(!ioctl(fd, TIMEWHEEL_IOC_BATCH, &batch));
		took += used_now() - begun;
		NEED(batch.done == batch.count);
		for (unsigned int i = 0; i < batch.count; i++)
			NEED(!ops[i].result);
	}
	return took;
}

/* One poll sorts some thousands of tokens at most, and says "readable" until all are sorted. */
static u64 sort_all(u64 due)
{
	u64 begun;

	(void)due;
	begun = used_now();
	while (info_now().refiled < number) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		NEED(poll(&p, 1, 0) == 1);
	}
	return used_now() - begun;
}

static u64 take_all(u64 due)
{
	static struct timewheel_event events[1024];
	u64 begun = used_now(), took;
	unsigned int seen = 0;
	ssize_t bytes;

	while ((bytes = read(fd, events, sizeof(events))) > 0) {
		seen += bytes / sizeof(events[0]);
		NEED(events[0].deadline >= due);
	}
	took = used_now() - begun;
	NEED(errno == EAGAIN && seen == number);
	return took;
}

static u64 close_wheel(u64 due)
{
	u64 begun = used_now();

	(void)due;
	NEED(!close(fd));
	return used_now() - begun;
}

/* Prints the cost of a phase per token, and how long it keeps other threads waiting. */
static void phase(const char *what, u64 (*run)(u64 due), u64 due)
{
	struct watcher urgent = { .sleeps = true };
	char wait[32];
	u64 took;

	start_watcher(&urgent);
	took = run(due);
	stop_watcher(&urgent);
	put(what, name, number, took / (double)number);
	snprintf(wait, sizeof(wait), "wait, %s", what);
	put(wait, name, number, urgent.longest);
}

static u64 nothing(u64 due)
{
	u64 begun = used_now();

	(void)due;
	while (used_now() - begun < 200 * MS)
		;
	return 0;
}

static void put_callbacks(const char *what)
{
	u64 before = info_now().callbacks;

	sleep_until(now_of(CLOCK_MONOTONIC) + SLEEP);
	put(what, name, number, info_now().callbacks - before);
}

static void raise_max_tokens(void)
{
	FILE *file = fopen(MAX_TOKENS, "w");

	NEED(file && fprintf(file, "%u", 1 << 28) > 0 && !fclose(file));
}

void run_scale(unsigned int n)
{
	u64 due;

	ids = getenv("TW_KIND") && atoi(getenv("TW_KIND"));
	name = ids ? "wheel: id, cookie" : "wheel: handle only";
	number = n;
	raise_max_tokens();
	phase("idle", nothing, 0);
	open_wheel();
	put_callbacks("callbacks, empty");
	due = now_of(CLOCK_MONOTONIC) + DELAY(n);
	due -= due % TICK;
	phase("register", register_all, due);
	put("bytes", name, n, info_now().bytes / (double)n);
	put_callbacks("callbacks, none due");
	NEED(now_of(CLOCK_MONOTONIC) + SLOTS * TICK < due);
	sleep_until(due + TICK);
	phase("sort", sort_all, due);
	phase("take", take_all, due);
	phase("close", close_wheel, due);
}
