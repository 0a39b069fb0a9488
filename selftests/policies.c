// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests the settings of a wheel, contradictions between them, slack, and
 * the states that a program can set while the wheel runs: pause, resume and drain.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "tw_delivery.h"
#include "tw_named.h"
#include "tw_process.h"
#include "tw_sleeper.h"

#define MIN_TICK_NS	"/sys/module/timewheel/parameters/min_tick_ns"
#define MAX_TOKENS	"/sys/module/timewheel/parameters/max_tokens"
#define HOUR		(3600 * TW_SEC)
#define DAY		(24 * HOUR)
#define S64_LAST	0x7fffffffffffffffULL
#define PAUSED		TIMEWHEEL_CONTROL_PAUSED
#define DRAINING	TIMEWHEEL_CONTROL_DRAINING
#define BOTH		(PAUSED | DRAINING)

#pragma GCC diagnostic ignored "-Woverride-init"

/* A manual wheel with leases, of which one delivery may be out. */
#define LEASED(...)	TW_MANUAL(.lease = TW_SEC, .max_held = 1, __VA_ARGS__)

static void _expect_setup(struct __test_metadata *_metadata, int expected,
			  struct timewheel_setup s, int line)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_info info;
	char name[TIMEWHEEL_NAME_SIZE] = {};

	EXPECT_EQ(expected, tw_ret(tw_set_up(fd, s))) {
		TH_LOG("in line %d", line);
	}
	if (expected < 0) {
		/* The file has no wheel, and can be set up now. */
		EXPECT_EQ(-EBADFD, tw_ret(tw_info(fd, &info)));
		EXPECT_EQ(0, tw_set_up(fd, TW_MANUAL(.max_tokens = 10)));
	} else {
		EXPECT_EQ(0, tw_info(fd, &info));
		EXPECT_EQ(s.slots, info.slots);
		EXPECT_EQ(s.tick, info.tick);
		EXPECT_EQ(s.max_tokens, info.max_tokens);
		if (s.clock == TIMEWHEEL_CLOCK_MANUAL)
			EXPECT_EQ(s.start, info.hand);
		EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
		EXPECT_EQ(s.flags, info.setup_flags);
		EXPECT_EQ(s.clock, info.clock);
		EXPECT_EQ(s.lease, info.lease);
		EXPECT_EQ(s.max_held, info.max_held);
		EXPECT_EQ(0ULL, info.held);
		EXPECT_EQ(s.slack, info.slack);
		EXPECT_EQ(0U, info.state);
	}
	close(fd);
	/* CREATE of a named wheel has the same result as SETUP. */
	fd = TW_OPEN(O_RDWR);
	snprintf(name, sizeof(name), "policies-%d", getpid());
	EXPECT_EQ(expected, tw_ret(tw_create_named(fd, name, s))) {
		TH_LOG("by name, in line %d", line);
	}
	EXPECT_EQ(expected ? -ENOENT : 0, tw_ret(tw_destroy_named(fd, name)));
	close(fd);
}

#define expect_setup(expected, ...)					\
	_expect_setup(_metadata, expected, TW_MANUAL(__VA_ARGS__), __LINE__)

#define expect_leased(expected, ...)					\
	_expect_setup(_metadata, expected, LEASED(__VA_ARGS__), __LINE__)

#define REAL	.clock = TIMEWHEEL_CLOCK_MONOTONIC

/* Only what a wheel can do is set up, and INFO tells all of it. */
TEST(setup_ranges)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fd = TW_OPEN(O_RDWR);

	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));

	for (__u32 clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++)
		expect_setup(0, .clock = clock);
	expect_setup(-EINVAL, .clock = TIMEWHEEL_CLOCK_MANUAL + 1);
	expect_setup(-EINVAL, .clock = 31);
	expect_setup(-EINVAL, .clock = 0x80000000);
	expect_setup(-EINVAL, .clock = 0xffffffff);

	expect_setup(0, .flags = TIMEWHEEL_SETUP_NO_IDS);
	expect_setup(0, .flags = TIMEWHEEL_SETUP_NO_COOKIES);
	expect_setup(0, .flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES);

	expect_setup(-EINVAL, .slots = 0);
	expect_setup(0, .slots = 1);
	expect_setup(0, .slots = 2);
	expect_setup(0, .slots = 31);
	expect_setup(0, .slots = 65535);
	expect_setup(0, .slots = 65536);
	expect_setup(-EINVAL, .slots = 65537);
	expect_setup(-EINVAL, .slots = 0x80000000);
	expect_setup(-EINVAL, .slots = 0xffffffff);

	expect_setup(-EINVAL, .tick = 0);
	expect_setup(-EINVAL, .tick = 1);
	expect_setup(-EINVAL, .tick = caps.min_tick - 1);
	expect_setup(0, .tick = caps.min_tick);
	expect_setup(0, .tick = caps.min_tick + 1);
	expect_setup(0, .tick = caps.max_tick - 1);
	expect_setup(0, .tick = caps.max_tick);
	expect_setup(-EINVAL, .tick = caps.max_tick + 1);
	expect_setup(-EINVAL, .tick = caps.min_tick | 1ULL << 63);
	expect_setup(-EINVAL, .tick = ~0ULL);

	expect_setup(-EINVAL, .max_tokens = 0);
	expect_setup(0, .max_tokens = 1);
	expect_setup(0, .max_tokens = caps.max_tokens);
	expect_setup(-EINVAL, .max_tokens = caps.max_tokens + 1);
	expect_setup(-EINVAL, .max_tokens = 1ULL << 32);
	expect_setup(-EINVAL, .max_tokens = (1ULL << 32) + 1);
	expect_setup(-EINVAL, .max_tokens = ~0ULL);

	/* Only a manual wheel is told where its hand starts. */
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		expect_setup(-EINVAL, .clock = clock, .start = 1);
		expect_setup(-EINVAL, .clock = clock, .start = ~0ULL);
	}
	expect_setup(0, .start = 1);
	expect_setup(0, .start = S64_LAST / TW_SEC);
	expect_setup(-ERANGE, .start = S64_LAST / TW_SEC + 1);
	expect_setup(-ERANGE, .start = ~0ULL);
	expect_setup(0, .tick = 100000, .start = TIMEWHEEL_MAX_TICK);
	expect_setup(-ERANGE, .tick = 100000, .start = TIMEWHEEL_MAX_TICK + 1);
	expect_setup(0, .tick = DAY, .start = S64_LAST / DAY);
	expect_setup(-ERANGE, .tick = DAY, .start = S64_LAST / DAY + 1);
	close(fd);
}

/*
 * The administrator chooses the shortest tick while the module runs, and how many tokens
 * a wheel may have, within the range of a token's index. Existing wheels keep their
 * ticks. The test limits.c tries values that are not accepted.
 */
TEST(min_tick_parameter)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fd = TW_OPEN(O_RDWR);
	char old[32];

	NEEDS_KERNEL("a module has parameters");
	if (access(MIN_TICK_NS, W_OK))
		SKIP(return, "cannot write " MIN_TICK_NS);
	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	snprintf(old, sizeof(old), "%llu", caps.min_tick);

	ASSERT_TRUE(tw_write_file(MIN_TICK_NS, "10000"));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(10000ULL, caps.min_tick);
	expect_setup(0, .tick = 10000);
	expect_setup(-EINVAL, .tick = 9999);
	expect_setup(0, .clock = TIMEWHEEL_CLOCK_MONOTONIC, .tick = 10000);
	/* With ticks as short as these, today is beyond tick 2^46. */
	if (tw_now(CLOCK_REALTIME) / 10000 > TIMEWHEEL_MAX_TICK)
		expect_setup(-ERANGE, .clock = TIMEWHEEL_CLOCK_REALTIME,
			     .tick = 10000);
	EXPECT_EQ(0, tw_set_up(fd, TW_MANUAL(.tick = 10000)));

	EXPECT_TRUE(tw_write_file(MIN_TICK_NS, "1000000"));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(1000000ULL, caps.min_tick);
	expect_setup(-EINVAL, .tick = 999999);
	expect_setup(0, .tick = 1000000);
	EXPECT_EQ(0, tw_register(fd, 1, 10000, 0, NULL));
	EXPECT_EQ(0, tw_advance(fd, 1));
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_TRUE(tw_write_file(MIN_TICK_NS, old));
	close(fd);
}

TEST(max_tokens_parameter)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	int fd = TW_OPEN(O_RDWR);
	char old[32];

	NEEDS_KERNEL("a module has parameters");
	if (access(MAX_TOKENS, W_OK))
		SKIP(return, "cannot write " MAX_TOKENS);
	ASSERT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	snprintf(old, sizeof(old), "%llu", caps.max_tokens);

	ASSERT_TRUE(tw_write_file(MAX_TOKENS, "100"));
	EXPECT_EQ(0, ioctl(fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(100ULL, caps.max_tokens);
	expect_setup(0, .max_tokens = 100);
	expect_setup(-EINVAL, .max_tokens = 101);
	EXPECT_TRUE(tw_write_file(MAX_TOKENS, old));
	close(fd);
}

TEST(lease_setup)
{
	expect_setup(0, .lease = 0);
	expect_leased(-EINVAL, .lease = 1);
	expect_leased(-EINVAL, .lease = TW_SEC - 1);
	expect_leased(0, .lease = TW_SEC);
	expect_leased(0, .lease = TW_SEC + 1);
	expect_leased(0, .lease = 86400 * TW_SEC);
	expect_leased(0, .lease = S64_LAST);
	expect_leased(-EINVAL, .lease = S64_LAST + 1);
	expect_leased(-EINVAL, .lease = ~0ULL);
	for (__u32 clock = 0; clock <= TIMEWHEEL_CLOCK_MANUAL; clock++)
		expect_leased(0, .clock = clock);
	expect_leased(0, .flags = TIMEWHEEL_SETUP_NO_IDS |
		      TIMEWHEEL_SETUP_NO_COOKIES | TIMEWHEEL_SETUP_TOUCH_WORDS |
		      TIMEWHEEL_SETUP_PERIODS);
}

/* A wheel with leases needs a max_held of at least 1 and at most max_tokens. */
TEST(max_held_setup)
{
	expect_leased(-EINVAL, .max_held = 0);
	expect_leased(0, .max_held = 999);
	expect_leased(0, .max_held = 1000);
	expect_leased(-EINVAL, .max_held = 1001);
	expect_leased(-EINVAL, .max_held = 1U << 31);
	expect_leased(-EINVAL, .max_held = ~0U);
	expect_leased(0, .max_tokens = 1);
	expect_leased(-EINVAL, .max_tokens = 1, .max_held = 2);

	/* Without leases max_held has to be 0. */
	expect_setup(-EINVAL, .max_held = 1);
	expect_setup(-EINVAL, .max_held = 1000);
	expect_setup(-EINVAL, .max_held = ~0U);
	expect_setup(-EINVAL, .max_held = 1, .flags = TIMEWHEEL_SETUP_PERIODS);
}

/* P9: the memory for deliveries is allocated by the set-up, and INFO counts it. */
TEST(bytes_of_max_held)
{
	static const __u32 max_held[] = { 0, 1, 100, 100000 };
	__u64 bytes[ARRAY_SIZE(max_held)];

	for (size_t i = 0; i < ARRAY_SIZE(max_held); i++) {
		int fd = TW_OPEN_WHEEL(.max_tokens = 100000, .max_held = max_held[i],
				  .lease = max_held[i] ? TW_SEC : 0,
				  .flags = TIMEWHEEL_SETUP_PERIODS);
		struct timewheel_info info;

		ASSERT_EQ(0, tw_info(fd, &info));
		bytes[i] = info.bytes;
		close(fd);
	}
	for (size_t i = 0; i < ARRAY_SIZE(max_held); i++)
		EXPECT_EQ(bytes[0] + 36 * max_held[i], bytes[i]);
}

TEST(slack_setup)
{
	expect_setup(-EINVAL, .slack = 1);
	expect_setup(-EINVAL, .slack = TW_SEC);
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		expect_setup(0, .clock = clock, .slack = 1);
		expect_setup(0, .clock = clock, .slack = S64_LAST);
		expect_setup(-EINVAL, .clock = clock, .slack = S64_LAST + 1);
		expect_setup(-EINVAL, .clock = clock, .slack = ~0ULL);
	}
}

/* The teardown removes the named wheels, however the test has ended. */
FIXTURE(named) {
	char name[TIMEWHEEL_NAME_SIZE];
};

FIXTURE_SETUP(named)
{
	snprintf(self->name, sizeof(self->name), "policies-%d", getpid());
}

FIXTURE_TEARDOWN_PARENT(named)
{
	int device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	tw_destroy_named(device, self->name);
	close(device);
}

/* CREATE does not take a wheel of the same name with other settings for the same wheel. */
TEST_F(named, same_name_other_setup)
{
	const struct timewheel_setup base = {
		.size = sizeof(base), .clock = TIMEWHEEL_CLOCK_REALTIME,
		.slots = 60, .tick = TW_MS, .max_tokens = 10,
		.flags = TIMEWHEEL_SETUP_PERIODS, .lease = TW_SEC, .max_held = 3,
		.slack = TW_MS,
	};
	struct timewheel_setup other[5];
	int fd = TW_OPEN(O_RDWR);

	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		other[i] = base;
	other[0].lease++;
	other[1].max_held++;
	other[2].slack++;
	other[3].lease = 0;
	other[3].max_held = 0;
	other[4].flags = 0;
	ASSERT_EQ(0, tw_create(fd, self->name, 0, &base));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		EXPECT_EQ(-EEXIST, tw_ret(tw_create(fd, self->name, 0,
						    &other[i]))) {
			TH_LOG("case %zu", i);
		}
	}
	EXPECT_EQ(TIMEWHEEL_RES_EXISTED, tw_create(fd, self->name, 0, &base));
	EXPECT_EQ(0, tw_destroy_named(fd, self->name));
	close(fd);
}

/*
 * Slack makes events late, but never early. The test callback.c counts how many
 * interrupts slack saves.
 */
TEST(slack_is_not_early)
{
	for (__u32 clock = 0; clock < TIMEWHEEL_CLOCK_MANUAL; clock++) {
		enum { N = 50 };
		int fd = TW_OPEN_WHEEL(.clock = clock, .tick = TW_MS,
				  .slack = 30 * TW_MS);
		struct timewheel_event event;

		ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
		for (__u64 id = 0; id < N; id++)
			ASSERT_EQ(0, tw_register(fd, id, (id + 1) * 5 * TW_MS,
						 0, NULL));
		for (__u64 id = 0; id < N; id++) {
			ASSERT_EQ(1, tw_read(fd, &event, 1));
			EXPECT_EQ(id, event.id);
			EXPECT_LE(event.deadline, event.taken);
		}
		close(fd);
	}
}

/* A look finds a due token, however late its slack allows the timer to be. */
TEST(slack_of_an_earlier_token)
{
	int fd = TW_OPEN_WHEEL(REAL, .tick = TW_MS, .slack = HOUR);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event event;

	ASSERT_EQ(0, tw_register(fd, 1, 20 * TW_MS, 0, NULL));
	EXPECT_FALSE(tw_readable(fd));
	tw_sleep_ms(30);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	close(fd);
}

/* The tests from here on pause, resume and drain a wheel. */

static int control(int fd, __u32 state, __u32 mask)
{
	return tw_ret(tw_control(fd, state, mask));
}

static __u32 state_of(int fd)
{
	struct timewheel_info info;

	return tw_info(fd, &info) < 0 ? ~0U : info.state;
}

TEST(control_changes_what_is_in_the_mask)
{
	int fd = TW_OPEN_WHEEL();

	EXPECT_EQ(0U, state_of(fd));
	for (__u32 from = 0; from <= BOTH; from++) {
		for (__u32 mask = 0; mask <= BOTH; mask++) {
			for (__u32 state = 0; state <= BOTH; state++) {
				bool good = !(state & ~mask);

				ASSERT_EQ(0, control(fd, from, BOTH));
				ASSERT_EQ(from, state_of(fd));
				EXPECT_EQ(good ? 0 : -EINVAL,
					  control(fd, state, mask));
				EXPECT_EQ(good ? (from & ~mask) | state : from,
					  state_of(fd));
			}
		}
	}
	close(fd);
}

TEST_F(named, control_errors)
{
	int fd = TW_OPEN_WHEEL(), fresh = TW_OPEN(O_RDWR);
	struct timewheel_setup s = TW_MANUAL(.size = sizeof(s));
	const char *name = self->name;
	int reader;

	ASSERT_EQ(0, control(fd, DRAINING, DRAINING));
	for (int bit = 2; bit < 32; bit++) {
		EXPECT_EQ(-EINVAL, control(fd, 1U << bit, 1U << bit));
		EXPECT_EQ(-EINVAL, control(fd, 0, 1U << bit));
		EXPECT_EQ(-EINVAL, control(fd, 0, BOTH | 1U << bit));
		EXPECT_EQ(-EINVAL, control(fd, PAUSED | 1U << bit, BOTH));
	}
	EXPECT_EQ((__u32)DRAINING, state_of(fd));
	EXPECT_EQ(-EBADFD, control(fresh, PAUSED, PAUSED));
	EXPECT_EQ(-EBADFD, control(fresh, 0, 0));

	/* CONTROL changes the wheel, and therefore needs a file open for writing. */
	ASSERT_EQ(0, tw_create_named(fresh, name, s));
	reader = tw_open_named(name, O_RDONLY);
	ASSERT_LE(0, reader);
	EXPECT_EQ(-EBADF, control(reader, PAUSED, PAUSED));
	EXPECT_EQ(0U, state_of(reader));
	ASSERT_EQ(0, tw_destroy_named(fresh, name));
	close(reader);
	reader = TW_OPEN(O_WRONLY);
	ASSERT_EQ(0, tw_set_up(reader, TW_MANUAL()));
	EXPECT_EQ(0, control(reader, PAUSED, PAUSED));
	close(reader);
	close(fresh);
	close(fd);
}

static void _expect_quiet(struct __test_metadata *_metadata, int fd, int line)
{
	struct timewheel_event event;
	struct iovec iov = { &event, sizeof(event) };

	EXPECT_FALSE(tw_readable(fd)) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &event, 1))) {
		TH_LOG("in line %d", line);
	}
	EXPECT_EQ(-EAGAIN, tw_ret(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)));
}

#define expect_quiet(fd)	_expect_quiet(_metadata, fd, __LINE__)

/*
 * While a wheel is paused, time passes and all operations work, but no event is
 * delivered.
 */
TEST(paused)
{
	int fd = TW_OPEN_WHEEL();
	struct timewheel_event events[8];
	struct timewheel_token token;

	ASSERT_EQ(4UL, tw_register_many(fd, 1, 4, 0, 5 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 4));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	EXPECT_EQ((__u32)PAUSED, state_of(fd));
	expect_quiet(fd);
	ASSERT_EQ(0, tw_advance(fd, 7));
	expect_quiet(fd);
	EXPECT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token.state);
	EXPECT_EQ(0ULL, token.left);
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(fd, 0, 1));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 2));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(fd, 0, 3, 100 * TW_SEC));
	EXPECT_EQ(0, tw_register(fd, 5, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_register(fd, 6, 0, 0, NULL));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(fd, 6, 0, 0, NULL)));
	EXPECT_NE(NULL, tw_find(fd, 6));
	expect_quiet(fd);
	ASSERT_EQ(0, tw_advance(fd, 8));
	expect_quiet(fd);
	tw_expect_figures(fd, .registered = 6, .pending = 5, .cancelled = 1,
			  .moved = 1);
	/* A second pause of a paused wheel changes nothing. */
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	ASSERT_EQ(0, control(fd, DRAINING, DRAINING));
	expect_quiet(fd);

	ASSERT_EQ(0, control(fd, 0, PAUSED));
	EXPECT_EQ((__u32)DRAINING, state_of(fd));
	EXPECT_TRUE(tw_readable(fd));
	ASSERT_EQ(3, tw_read(fd, events, 8));
	EXPECT_EQ(4ULL, events[0].id);
	EXPECT_EQ(5 * TW_SEC, events[0].deadline);
	EXPECT_EQ(8 * TW_SEC, events[0].taken);
	EXPECT_EQ(6ULL, events[1].id);
	EXPECT_EQ(5ULL, events[2].id);
	expect_quiet(fd);
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	ASSERT_EQ(0, tw_advance(fd, 12));
	EXPECT_EQ(1, tw_read(fd, events, 8));
	EXPECT_EQ(1ULL, events[0].id);
	close(fd);
}

/* The hand goes far ahead and back while the wheel is paused. */
TEST(paused_while_the_hand_moves)
{
	int fd = TW_OPEN_WHEEL();
	struct timewheel_event events[64];
	int n = 0, got;

	for (__u64 id = 1; id <= 500; id++)
		ASSERT_EQ(0, tw_register(fd, id, id * id * TW_SEC, 0, NULL));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	for (__u64 hand = 1; hand < 1000000; hand = hand * 3 + 7) {
		ASSERT_EQ(0, tw_advance(fd, hand));
		expect_quiet(fd);
	}
	ASSERT_EQ(0, tw_advance(fd, 10000));
	expect_quiet(fd);
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	while ((got = tw_read(fd, events, 64)) > 0) {
		for (int i = 0; i < got; i++)
			EXPECT_EQ((__u64)++n, events[i].id);
	}
	EXPECT_EQ(100, n);
	tw_expect_figures(fd, .registered = 500, .pending = 400,
			  .delivered = 100);
	close(fd);
}

/* Leases end, and leases are answered, while no event is delivered. */
TEST(paused_with_leases)
{
	int fd = TW_OPEN_WHEEL(.lease = 10 * TW_SEC, .flags = TIMEWHEEL_SETUP_PERIODS);
	struct timewheel_event events[8];

	ASSERT_EQ(4UL, tw_register_many(fd, 1, 4, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(4, tw_read(fd, events, 8));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	EXPECT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_ACK, 0, 1, 1, 0));
	EXPECT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 2, 1, 0));
	expect_quiet(fd);
	ASSERT_EQ(0, tw_advance(fd, 11));
	expect_quiet(fd);
	ASSERT_EQ(0, tw_advance(fd, 50));
	expect_quiet(fd);
	EXPECT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 3, 1, 0));
	expect_quiet(fd);
	/*
	 * The lease is over, but no program has looked. An answer is therefore still
	 * in time.
	 */
	EXPECT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_EXTEND, 0, 4, 1, 20 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 75));
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	ASSERT_EQ(3, tw_read(fd, events, 8));
	EXPECT_EQ(2ULL, events[0].id);
	EXPECT_EQ(3ULL, events[1].id);
	EXPECT_EQ(4ULL, events[2].id);
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(2U, events[i].delivery);
	tw_expect_figures(fd, .registered = 4, .acked = 1, .nacked = 2,
			  .held = 3, .delivered = 7, .lapsed = 1);
	close(fd);
}

/* During a pause a look ends no lease, even if max_held deliveries are out. */
TEST(paused_over_the_last_lease)
{
	int fd = TW_OPEN_WHEEL(.lease = 10 * TW_SEC, .max_held = 1);
	struct timewheel_event event;

	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	ASSERT_EQ(0, tw_advance(fd, 100));
	expect_quiet(fd);
	EXPECT_EQ(0, tw_ack(fd, &event));
	tw_expect_figures(fd, .registered = 1, .acked = 1, .delivered = 1);
	close(fd);
}

/* Periods pass during a pause. The event after the pause counts the missed periods. */
TEST(paused_over_periods)
{
	int fd = TW_OPEN_WHEEL(.flags = TIMEWHEEL_SETUP_PERIODS);
	struct timewheel_event event;

	ASSERT_EQ(0, tw_register_periodic(fd, 0, 1, 10 * TW_SEC, 10 * TW_SEC));
	ASSERT_EQ(0, control(fd, BOTH, BOTH));
	ASSERT_EQ(0, tw_advance(fd, 55));
	expect_quiet(fd);
	tw_expect_figures(fd, .registered = 1, .pending = 1);
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(4U, event.missed);
	/* Periodic tokens have events also while the wheel drains. */
	ASSERT_EQ(0, tw_advance(fd, 60));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(60 * TW_SEC, event.deadline);
	close(fd);
}

static bool is_asleep(const struct tw_sleeper *s)
{
	void *result;

	tw_sleep_ms(50);
	return pthread_tryjoin_np(s->thread, &result) == EBUSY;
}

/* Every waiter sleeps during the pause, and the resume wakes it. */
TEST(resume_wakes)
{
	for (int before = 0; before < 2; before++) {
		struct epoll_event event = { .events = EPOLLIN };
		int fd = TW_OPEN_WHEEL(), level, edge;
		struct tw_sleeper s[5];

		ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
		level = epoll_create1(EPOLL_CLOEXEC);
		edge = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_EQ(0, epoll_ctl(level, EPOLL_CTL_ADD, fd, &event));
		event.events = EPOLLIN | EPOLLET;
		ASSERT_EQ(0, epoll_ctl(edge, EPOLL_CTL_ADD, fd, &event));
		ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, 5 * TW_SEC));
		/* The tokens become due before the pause, or during the pause. */
		if (before)
			ASSERT_EQ(0, tw_advance(fd, 5));
		ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
		EXPECT_EQ(0, epoll_wait(level, &event, 1, 0));
		ASSERT_TRUE(tw_put_to_sleep(&s[0], fd, tw_sleep_in_poll));
		ASSERT_TRUE(tw_put_to_sleep(&s[1], level, tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&s[2], edge, tw_sleep_in_epoll));
		ASSERT_TRUE(tw_put_to_sleep(&s[3], fd, tw_sleep_in_read));
		ASSERT_TRUE(tw_put_to_sleep(&s[4], fd, tw_sleep_in_read));
		ASSERT_EQ(0, tw_advance(fd, 6));
		ASSERT_EQ(0, tw_register(fd, 3, 0, 0, NULL));
		for (int i = 0; i < 5; i++) {
			EXPECT_TRUE(is_asleep(&s[i])) {
				TH_LOG("sleeper %d woke", i);
			}
		}
		ASSERT_EQ(0, control(fd, 0, PAUSED));
		/*
		 * Three tokens are due. The readers take two of them, and the pollers
		 * see the last.
		 */
		for (int i = 0; i < 5; i++) {
			ASSERT_EQ(0, pthread_join(s[i].thread, NULL));
			EXPECT_EQ(1, s[i].ret);
			EXPECT_EQ(i < 3 ? POLLIN : 0U, s[i].events) {
				TH_LOG("sleeper %d", i);
			}
		}
		close(fd);
		close(level);
		close(edge);
	}
}

/* A reader that slept before the pause does not get tokens that become due in the pause. */
TEST(pause_under_a_blocked_reader)
{
	int fd = TW_OPEN_WHEEL();
	struct tw_sleeper s;

	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&s, fd, tw_sleep_in_read));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_TRUE(is_asleep(&s));
	/*
	 * The token is cancelled in the pause. The reader therefore sleeps on after
	 * the resume.
	 */
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	EXPECT_TRUE(is_asleep(&s));
	ASSERT_EQ(0, tw_register(fd, 2, 0, 0, NULL));
	ASSERT_EQ(0, pthread_join(s.thread, NULL));
	EXPECT_EQ(1, s.ret);
	EXPECT_EQ(2ULL, s.event.id);
	close(fd);
}

/* An edge-triggered waiter gets one edge for each resume after which a token is due. */
TEST(resume_is_an_edge)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int fd = TW_OPEN_WHEEL(), edge = epoll_create1(EPOLL_CLOEXEC);
	struct timewheel_event got;

	ASSERT_EQ(0, epoll_ctl(edge, EPOLL_CTL_ADD, fd, &event));
	for (__u64 id = 1; id <= 5; id++) {
		ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
		ASSERT_EQ(0, tw_register(fd, id, 0, 0, NULL));
		EXPECT_EQ(0, epoll_wait(edge, &event, 1, 0));
		ASSERT_EQ(0, control(fd, 0, PAUSED));
		EXPECT_EQ(1, epoll_wait(edge, &event, 1, 0));
		EXPECT_EQ(1, tw_read(fd, &got, 1));
		EXPECT_EQ(-EAGAIN, tw_ret(tw_read(fd, &got, 1)));
	}
	close(fd);
	close(edge);
}

/* A pause of a named wheel holds for all its files, and each of them may resume it. */
TEST_F(named, pause)
{
	int device = TW_OPEN(O_RDWR), fd;
	const char *name = self->name;
	struct tw_sleeper s;
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_EQ(0, tw_create_named(device, name, TW_MANUAL()));
	fd = tw_open_named(name, O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int other = tw_open_named(name, O_RDWR | O_NONBLOCK);

		if (control(other, BOTH, BOTH) || tw_readable(other))
			_exit(1);
		_exit(0);
	}
	/* The wheel stays paused when the process that has paused it has exited. */
	EXPECT_EQ(0, tw_reap(child));
	EXPECT_EQ(BOTH, state_of(fd));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_TRUE(tw_put_to_sleep(&s, fd, tw_sleep_in_read));
	EXPECT_EQ(-ESHUTDOWN, tw_ret(tw_register(fd, 2, 0, 0, NULL)));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		int other = tw_open_named(name, O_WRONLY);

		_exit(control(other, 0, BOTH) != 0);
	}
	EXPECT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, pthread_join(s.thread, NULL));
	EXPECT_EQ(1, s.ret);
	EXPECT_EQ(0, tw_register(fd, 2, 0, 0, NULL));

	/* The wheel keeps its state while no file is open. */
	ASSERT_EQ(0, control(fd, BOTH, BOTH));
	close(fd);
	fd = tw_open_named(name, O_RDWR);
	EXPECT_EQ(BOTH, state_of(fd));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_destroy_named(device, name));
	close(fd);
	close(device);
}

/* All sleepers get the error when a paused wheel is destroyed. */
TEST_F(named, destroyed_while_paused)
{
	int device = TW_OPEN(O_RDWR), fd, epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	const char *name = self->name;
	struct timewheel_event got;
	struct tw_sleeper s[3];
	struct pollfd p;

	NEEDS_KERNEL("poll tells of a wheel that has been destroyed");
	ASSERT_EQ(0, tw_create_named(device, name,
				     tw_hold_all(TW_MANUAL(.lease = 10 * TW_SEC))));
	fd = tw_open_named(name, O_RDWR);
	ASSERT_LE(0, fd);
	ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, 0));
	ASSERT_EQ(1, tw_read(fd, &got, 1));
	ASSERT_EQ(0, control(fd, BOTH, BOTH));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	ASSERT_TRUE(tw_put_to_sleep(&s[0], fd, tw_sleep_in_read));
	ASSERT_TRUE(tw_put_to_sleep(&s[1], fd, tw_sleep_in_poll));
	ASSERT_TRUE(tw_put_to_sleep(&s[2], epoll, tw_sleep_in_epoll));
	ASSERT_EQ(0, tw_destroy_named(device, name));
	for (int i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(s[i].thread, NULL));
	EXPECT_EQ(-ENODEV, s[0].ret);
	EXPECT_EQ(POLLHUP | POLLERR, s[1].events & (POLLHUP | POLLERR));
	EXPECT_EQ(EPOLLHUP | EPOLLERR, s[2].events & (EPOLLHUP | EPOLLERR));
	EXPECT_EQ(-ENODEV, control(fd, 0, BOTH));
	p = (struct pollfd) { .fd = fd, .events = POLLIN };
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &got, 1)));
	close(fd);
	close(epoll);
	close(device);
}

/* P7: no program may read in a pause. There is therefore no interrupt. */
TEST(no_callbacks_while_paused)
{
	int fd = TW_OPEN_WHEEL(REAL, .tick = TW_MS);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct timewheel_event events[16];
	struct timewheel_info info;

	NEEDS_KERNEL("an fd is readable only while a token is due");
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	for (__u64 id = 0; id < 10; id++)
		ASSERT_EQ(0, tw_register(fd, id, (id + 1) * 5 * TW_MS, 0,
					 NULL));
	EXPECT_EQ(0, poll(&p, 1, 100));
	expect_quiet(fd);
	EXPECT_EQ(0, poll(&p, 1, 100));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.callbacks);
	EXPECT_EQ(10ULL, info.pending);
	EXPECT_LT(50 * TW_MS, info.now);

	/* The ten tokens have become due during the pause. */
	ASSERT_EQ(0, tw_register(fd, 10, HOUR, 0, NULL));
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(10, tw_read(fd, events, 16));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ((__u64)i, events[i].id);
	/* The resume and the read have armed the timer again for the next token. */
	ASSERT_EQ(0, tw_register(fd, 11, 20 * TW_MS, 0, NULL));
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(1, tw_read(fd, events, 16));
	EXPECT_EQ(11ULL, events[0].id);

	/*
	 * The alarm is set before the pause, for a time after the pause, and wakes a
	 * later waiter.
	 */
	ASSERT_EQ(0, tw_register(fd, 12, 100 * TW_MS, 0, NULL));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, control(fd, PAUSED, PAUSED));
	ASSERT_EQ(0, control(fd, 0, PAUSED));
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(1, tw_read(fd, events, 16));
	EXPECT_EQ(12ULL, events[0].id);
	close(fd);
}

/*
 * Pauses and resumes the wheel again and again while a reader reads. Each token comes
 * once.
 */
static void *pause_and_resume(void *arg)
{
	struct tw_sleeper *s = arg;

	while (!__atomic_load_n(&s->ret, __ATOMIC_ACQUIRE)) {
		tw_control(s->fd, PAUSED, PAUSED);
		sched_yield();
		tw_control(s->fd, 0, PAUSED);
		sched_yield();
	}
	return NULL;
}

TEST(paused_and_resumed_all_the_time)
{
	const __u64 n = tw_scaled(20000);
	int fd = TW_OPEN_WHEEL(REAL, .tick = TW_MS, .max_tokens = n + 1);
	struct tw_sleeper s[2] = { { .fd = fd }, { .fd = fd } };
	__u8 *seen = calloc(n, 1);
	__u64 got = 0;

	ASSERT_NE(NULL, seen);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL,
					    pause_and_resume, &s[i]));
	for (__u64 id = 0; id < n; id++)
		ASSERT_EQ(0, tw_register(fd, id, id * 7919 % 200 * TW_MS, 0,
					 NULL));
	while (got < n) {
		struct timewheel_event events[16];
		int some = tw_read(fd, events, 16);

		ASSERT_LT(0, some);
		for (int i = 0; i < some; i++)
			ASSERT_EQ(0, seen[events[i].id]++);
		got += some;
	}
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&s[i].ret, 1, __ATOMIC_RELEASE);
		ASSERT_EQ(0, pthread_join(s[i].thread, NULL));
	}
	tw_expect_figures(fd, .registered = n, .delivered = n);
	free(seen);
	close(fd);
}

/* A draining wheel takes no new token. The tokens that exist end as usual. */
TEST(draining)
{
	int fd = TW_OPEN_WHEEL(.lease = 10 * TW_SEC, .flags = TIMEWHEEL_SETUP_PERIODS);
	struct timewheel_event event;
	struct timewheel_op ops[] = {
		{ .code = TIMEWHEEL_OP_REGISTER, .id = 9, .time = TW_SEC },
		{ .code = TIMEWHEEL_OP_REGISTER, .id = 9, .time = TW_SEC,
		  .flags = TIMEWHEEL_OPF_ABSOLUTE },
		{ .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = 9,
		  .time = TW_SEC },
		{ .code = TIMEWHEEL_OP_REGISTER, .id = 9, .time = TW_SEC,
		  .period = TW_SEC },
	};

	ASSERT_EQ(4UL, tw_register_many(fd, 1, 4, 0, 5 * TW_SEC));
	ASSERT_EQ(0, tw_register_periodic(fd, 0, 5, 50 * TW_SEC,
					  50 * TW_SEC));
	ASSERT_EQ(0, control(fd, DRAINING, DRAINING));
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct timewheel_op op = ops[i];

		_tw_expect_error(_metadata, fd, 1, -ESHUTDOWN, op, __LINE__);
		op.id = 1;
		if (op.code != TIMEWHEEL_OP_TOUCH_OR_REGISTER)
			_tw_expect_error(_metadata, fd, 1, -EEXIST, op,
					 __LINE__);
	}

	EXPECT_EQ(0, tw_touch_or_register(fd, 1, TW_SEC, 0));
	EXPECT_EQ(0, tw_touch(fd, 0, 1));
	EXPECT_EQ(0, tw_move(fd, 0, 2, 6 * TW_SEC));
	EXPECT_EQ(0, tw_cancel(fd, 0, 3));
	ASSERT_EQ(0, tw_advance(fd, 5));
	for (__u32 n = 1; n <= 2; n++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(0, event.id != 1 ? tw_ack(fd, &event) :
			  tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 1, 1, 3 * TW_SEC));
	}
	ASSERT_EQ(0, tw_advance(fd, 8));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(0, tw_ack(fd, &event));
	}
	for (__u64 n = 1; n <= 5; n++) {
		ASSERT_EQ(0, tw_advance(fd, n * 50));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
		EXPECT_EQ(5ULL, event.id);
		EXPECT_EQ(0, tw_ack(fd, &event));
	}
	ASSERT_EQ(0, tw_answer(fd, TIMEWHEEL_OP_DELETE, 0, 5, 0, 0));
	tw_expect_figures(fd, .registered = 5, .cancelled = 1, .moved = 1,
			  .acked = 8, .nacked = 1, .delivered = 9,
			  .deleted = 1);
	/* A drained wheel takes new tokens when it no longer drains. */
	EXPECT_EQ(-ESHUTDOWN, tw_ret(tw_register(fd, 9, 0, 0, NULL)));
	ASSERT_EQ(0, control(fd, 0, DRAINING));
	EXPECT_EQ(0, tw_register(fd, 9, 0, 0, NULL));
	close(fd);
}

/* Errors in the input are reported before the error of the drain. */
TEST(draining_without_ids)
{
	int fd = TW_OPEN_WHEEL(.flags = TIMEWHEEL_SETUP_NO_IDS);

	ASSERT_EQ(0, control(fd, DRAINING, DRAINING));
	EXPECT_EQ(-ESHUTDOWN, tw_ret(tw_register(fd, 0, TW_SEC, 0, NULL)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_register(fd, 1, TW_SEC, 0, NULL)));
	tw_expect_figures(fd);
	close(fd);
}

TEST_HARNESS_MAIN
