// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts instructions per operation with @n timeouts pending. For kinds that collect
 * operations it counts the system call for BATCH of them, without the code that fills the
 * array, because a program may fill it as packets come.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

#define TRIES	4
#define NONE	1e18	/* not counted yet */

/* The costs of reading the clock and of calling an operation are subtracted. */
static u64 clock_cost;
static double call_cost;

static double least(double a, double b)
{
	return a < b ? a : b;
}

static double since(u64 start)
{
	u64 took = count_now() - start;

	return (took - (took < clock_cost ? took : clock_cost)) / (double)BATCH;
}

/* Does @op on the BATCH timeouts in @which, and counts. */
static double count_op(const struct kind *kind, void (*op)(unsigned int i),
		       const u32 *which)
{
	u64 start = count_now();

	for (unsigned int i = 0; i < BATCH; i++)
		op(which[i]);
	/* A touch of a word needs no flush. */
	if (kind->flush && !(kind->stores && op == kind->rearm)) {
		start = count_now();
		kind->flush();
		return since(start);
	}
	return since(start) - call_cost;
}

static void no_op(unsigned int i)
{
	(void)i;
}

static const struct kind *arm_kind;
static u64 arm_time;

static void arm_one(unsigned int i)
{
	arm_kind->arm(i, arm_time, false);
}

static double count_arm(const struct kind *kind, const u32 *which, u64 time)
{
	arm_kind = kind;
	arm_time = time;
	return count_op(kind, arm_one, which);
}

/* Makes the timeouts in @which due at once, reads them and arms them again. */
static double count_reads(const struct kind *kind, const u32 *which)
{
	unsigned int seen = 0;
	double count;
	u64 start;

	count_op(kind, kind->cancel, which);
	count_arm(kind, which, MS);
	/* The sleep lasts longer than the wheel's tick. */
	sleep_until(now_of(CLOCK_MONOTONIC) + 50 * MS);
	start = count_now();
	while (seen < BATCH)
		seen += kind->drain(true);
	count = since(start);
	NEED(seen == BATCH);
	count_arm(kind, which, FAR);
	return count;
}

/*
 * Takes the least of several counts, because first uses of pages and interrupts can
 * only add to one.
 */
static void count_kind(const struct kind *kind, unsigned int n)
{
	double arm = NONE, rearm = NONE, cancel = NONE, move = NONE,
	       upsert = NONE, read = NONE;
	u32 *order = shuffled(n);

	kind->open(kind, n, 10 * MS);
	arm_all(kind, n, FAR, false);
	for (int try = 0; try < TRIES; try++) {
		const u32 *some = order + try * BATCH % (n - BATCH + 1);

		/* The program's loop begins a new turn, on another tick. */
		sleep_until(now_of(CLOCK_MONOTONIC) + 20 * MS);
		NEED(!kind->drain(false));
		rearm = least(rearm, count_op(kind, kind->rearm, some));
		if (kind->move)
			move = least(move, count_op(kind, kind->move, some));
		if (kind->upsert)
			upsert = least(upsert,
				       count_op(kind, kind->upsert, some));
		cancel = least(cancel, count_op(kind, kind->cancel, some));
		arm = least(arm, count_arm(kind, some, FAR));
		read = least(read, count_reads(kind, some));
	}
	put("arm", kind->name, n, arm);
	put("rearm", kind->name, n, rearm);
	put("cancel", kind->name, n, cancel);
	put("read", kind->name, n, read);
	if (kind->move)
		put("move", kind->name, n, move);
	if (kind->upsert)
		put("touch or register", kind->name, n, upsert);
	kind->close();
	free(order);
}

static int bare;

/* A command that the timerfd refuses shows what a system call costs. */
static void bare_ioctl(unsigned int i)
{
	(void)i;
	NEED(ioctl(bare, SIOCINQ, NULL) < 0);
}

/* Counts the whole life of a timerfd that nobody watches. */
static void timerfd_life(unsigned int i)
{
	const struct itimerspec far = { .it_value.tv_sec = FAR / SEC };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	(void)i;
	NEED(fd >= 0);
	NEED(!timerfd_settime(fd, 0, &far, NULL));
	NEED(!close(fd));
}

static void count_limits(void)
{
	const struct kind none = { };
	u32 *which = shuffled(BATCH);
	double ioctls = NONE, lives = NONE;

	clock_cost = count_now();
	clock_cost = count_now() - clock_cost;
	call_cost = count_op(&none, no_op, which);
	bare = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	NEED(bare >= 0);
	for (int try = 0; try < TRIES; try++) {
		ioctls = least(ioctls, count_op(&none, bare_ioctl, which));
		lives = least(lives, count_op(&none, timerfd_life, which));
	}
	put("bare ioctl", "limit", 1, ioctls);
	put("create + settime + close", "timerfd", 1, lives);
	close(bare);
	free(which);
}

void run_counts(unsigned int n, bool limits)
{
	static const struct kind *const kinds[] = {
		&wheel_id, &wheel_handle, &wheel_batch_id, &wheel_batch_handle,
		&wheel_keys_id, &wheel_keys_handle, &wheel_plain, &wheel_word,
		&wheel_checked, &timerfd, &uring,
	};

	NEED(n >= BATCH);
	if (limits)
		count_limits();
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (n <= kinds[i]->most)
			count_kind(kinds[i], n);
}
