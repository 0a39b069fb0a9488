// SPDX-License-Identifier: GPL-2.0-only
/*
 * One wheel has millions of tokens, which are all due at once after a stall: each
 * token is delivered exactly once (P3), and in the order of the due ticks (P8). No
 * token is dropped (P5), the counters are exact, and the memory is free again when
 * the wheel is closed (P9).
 *
 * TW_SCALE=64 is the full size: 2^26 tokens without ids, and 10 million tokens with
 * ids and cookies. It needs 6 GB of memory, and minutes:
 *
 *	TW_SCALE=64 make guest TESTS=scale OPTIONS="-m 6144 -t 3600"
 *
 * With less memory the test takes fewer tokens, and prints their number.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "tw_test.h"

#define TW_GROUP	"/sys/fs/cgroup/timewheel-scale"
#include "tw_group.h"

#define WITHOUT_IDS	(1UL << 20)
#define WITH_IDS	(10000000UL >> 6)
#define LEAST		(1UL << 18)
#define MAX_TOKENS	"/sys/module/timewheel/parameters/max_tokens"
#define BATCH		512
#define TICKS		255	/* each token is due on one of the ticks 1..TICKS */
#define CANCELLED	16	/* one token in this many is cancelled, and replaced */
#define SLACK		((__s64)(8 * TW_GROUP_STOCK))	/* 8 CPUs have a stock */

/* Returns the bytes of free memory. */
static __u64 available(void)
{
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	while (file && !kib && fgets(line, sizeof(line), file))
		sscanf(line, "MemAvailable: %llu", &kib);
	if (file)
		fclose(file);
	return kib * 1024;
}

/*
 * @known has an entry for each index of a token: its generation and due tick while
 * the token is pending, else 0.
 */
struct crowd {
	int fd;
	bool ids;
	unsigned long n;
	__u16 *known;
	__u64 last;	/* deadline of the event before */
	unsigned long wrong;
};

static __u64 id_of(__u64 i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ULL;
}

static __u16 tick_of(__u64 i)
{
	return 1 + (__u32)(i * 2654435761U) % TICKS;
}

static __u16 knowledge(__u64 handle, __u64 tick)
{
	return (handle >> 32 & 255) << 8 | tick;
}

/* Carries out @n of the operations, and counts failures in @wrong. */
static void run_batch(struct crowd *crowd, struct timewheel_op *ops, __u32 n)
{
	__u32 done = 0;

	if (tw_batch(crowd->fd, ops, n, &done) < 0 || done != n)
		crowd->wrong++;
	for (__u32 i = 0; i < done; i++)
		crowd->wrong += ops[i].result != 0;
}

static void register_some(struct crowd *crowd, struct timewheel_op *ops, __u64 at,
			  __u32 n, __u32 step)
{
	__u32 count = 0;

	for (__u32 i = 0; i < n; i += step)
		ops[count++] = (struct timewheel_op) {
			.size = sizeof(*ops), .code = TIMEWHEEL_OP_REGISTER,
			.id = crowd->ids ? id_of(at + i) : 0,
			.cookie = crowd->ids ? at + i : 0,
			.time = tick_of(at + i) * TW_SEC,
		};
	run_batch(crowd, ops, count);
	for (__u32 i = 0; i < count; i++) {
		__u32 index = ops[i].handle;

		if (index < crowd->n && !crowd->known[index])
			crowd->known[index] = knowledge(ops[i].handle,
							tick_of(at + i * step));
		else
			crowd->wrong++;
	}
}

static void cancel_some(struct crowd *crowd, struct timewheel_op *ops, __u32 n)
{
	__u32 count = 0;

	for (__u32 i = 0; i < n; i += CANCELLED) {
		crowd->known[(__u32)ops[i].handle] = 0;
		ops[count++] = (struct timewheel_op) {
			.size = sizeof(*ops), .code = TIMEWHEEL_OP_CANCEL,
			.flags = TIMEWHEEL_OPF_BY_HANDLE, .handle = ops[i].handle,
		};
	}
	run_batch(crowd, ops, count);
}

static void register_crowd(struct crowd *crowd)
{
	static struct timewheel_op ops[BATCH];

	for (unsigned long at = 0; at < crowd->n && !crowd->wrong; at += BATCH) {
		__u32 n = crowd->n - at < BATCH ? crowd->n - at : BATCH;

		register_some(crowd, ops, at, n, 1);
		cancel_some(crowd, ops, n);
		register_some(crowd, ops, at, n, CANCELLED);
	}
}

/* An event must be of a pending token, and not earlier than the last event. */
static void check_event(struct crowd *crowd, const struct timewheel_event *event)
{
	__u64 tick = event->deadline / TW_SEC;
	__u32 index = event->handle;

	if (index >= crowd->n || event->deadline < crowd->last ||
	    crowd->known[index] != knowledge(event->handle, tick) ||
	    event->id != (crowd->ids ? id_of(event->cookie) : 0) ||
	    (crowd->ids ? tick_of(event->cookie) != tick : event->cookie)) {
		crowd->wrong++;
		return;
	}
	crowd->known[index] = 0;
	crowd->last = event->deadline;
}

/* Reads all events, and returns how many there were. */
static unsigned long read_crowd(struct crowd *crowd)
{
	static struct timewheel_event events[4096];
	unsigned long total = 0;
	int n;

	/* The write makes the pages exist, and the reads put no token back. */
	memset(events, 0, sizeof(events));
	while ((n = tw_read(crowd->fd, events, ARRAY_SIZE(events))) > 0) {
		for (int i = 0; i < n; i++)
			check_event(crowd, &events[i]);
		total += n;
	}
	return n < 0 && errno == EAGAIN ? total : 0;
}

/* Returns @n, or as many tokens as half of the memory can hold. */
static unsigned long fitting(unsigned long n, unsigned int bytes)
{
	while (n > 1 && n * bytes > available() / 2)
		n /= 2;
	return n;
}

static void expect_info(struct __test_metadata *_metadata, struct crowd *crowd,
			__u64 delivered, struct timewheel_info *info)
{
	const __u64 again = crowd->n / BATCH * (BATCH / CANCELLED) +
			    (crowd->n % BATCH + CANCELLED - 1) / CANCELLED;

	ASSERT_EQ(0, tw_info(crowd->fd, info));
	EXPECT_EQ(crowd->n + again, info->registered);
	EXPECT_EQ(again, info->cancelled);
	EXPECT_EQ(delivered, info->delivered);
	EXPECT_EQ(crowd->n - delivered, info->pending);
	EXPECT_EQ(0ULL, info->taken);
	EXPECT_EQ(0ULL, info->put_back);
	/* A token is filed again once for each level on its way, and here is one level. */
	EXPECT_GE(crowd->n + again, info->refiled);
}

FIXTURE(scale) {
	struct crowd crowd;
};

FIXTURE_VARIANT(scale) {
	unsigned long tokens;
	unsigned int bytes;	/* of the wheel that a token takes at most */
	__u32 flags;
};

FIXTURE_VARIANT_ADD(scale, without_ids) {
	.tokens = WITHOUT_IDS, .bytes = 32,
	.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
};

FIXTURE_VARIANT_ADD(scale, ids_and_cookies) {
	.tokens = WITH_IDS, .bytes = 72, .flags = 0,
};

FIXTURE_SETUP(scale)
{
	self->crowd.fd = -1;
	self->crowd.ids = !variant->flags;
	self->crowd.n = tw_scaled(variant->tokens);
	if (self->crowd.n < LEAST)
		self->crowd.n = LEAST;
	self->crowd.n = fitting(self->crowd.n, variant->bytes + 2);
	self->crowd.known = calloc(self->crowd.n, sizeof(*self->crowd.known));
	ASSERT_NE(NULL, self->crowd.known);
	/* The pages of @known must exist before free memory is measured. */
	memset(self->crowd.known, 1, self->crowd.n * sizeof(__u16));
	memset(self->crowd.known, 0, self->crowd.n * sizeof(__u16));
	mkdir(TW_GROUP, 0755);
	tw_group_enter();
	TH_LOG("%lu tokens", self->crowd.n);
	if (self->crowd.n > 1 << 24 && !tw_write_file(MAX_TOKENS, "67108864"))
		SKIP(return, "max_tokens of the module does not let us");
}

FIXTURE_TEARDOWN(scale)
{
	if (self->crowd.n > 1 << 24)
		tw_write_file(MAX_TOKENS, "16777216");
	free(self->crowd.known);
	tw_write_file("/sys/fs/cgroup/cgroup.procs", "0");
	rmdir(TW_GROUP);
}

TEST_F_TIMEOUT(scale, each_once_in_order_and_memory_back, 3000)
{
	struct crowd *crowd = &self->crowd;
	struct timewheel_info info;
	__s64 before = tw_group_charged(), after;

	crowd->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup(crowd->fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC,
			      crowd->n, variant->flags, 0));
	register_crowd(crowd);
	ASSERT_EQ(0UL, crowd->wrong);
	expect_info(_metadata, crowd, 0, &info);
	EXPECT_FALSE(tw_readable(crowd->fd));

	/* The charge is at most the reported bytes. The table of ids is not charged. */
	after = tw_group_charged() - before;
	EXPECT_GE((__s64)info.bytes + SLACK, after);
	EXPECT_LE((__s64)info.bytes / 4 * (before ? 3 : 0), after + SLACK);
	EXPECT_GE(crowd->n * variant->bytes + 65536, info.bytes);
	TH_LOG("bytes each: %.2f, and %.2f charged",
	       info.bytes / (double)crowd->n, after / (double)crowd->n);

	ASSERT_EQ(0, tw_advance(crowd->fd, 100 * TICKS));
	EXPECT_TRUE(tw_readable(crowd->fd));
	EXPECT_EQ(crowd->n, read_crowd(crowd));
	EXPECT_EQ(0UL, crowd->wrong);
	EXPECT_FALSE(tw_readable(crowd->fd));
	expect_info(_metadata, crowd, crowd->n, &info);

	/* The kernel frees the memory some time after the close. */
	close(crowd->fd);
	for (int i = 0; i < 200 && tw_group_charged() > before + SLACK; i++)
		tw_sleep_ms(50);
	EXPECT_GE(before + SLACK, tw_group_charged());
}

TEST_HARNESS_MAIN
