// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's mapped touches: a store keeps a token for its whole timeout, by
 * the tick that it says; a checked one tells whether the token was there.
 */
#include "lib_test.h"

#define NAME	"lib-words"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x00000080
#endif

#define TOKENS	1000
#define CANCELLED	200

static struct timewheel_setup with_words(const struct timewheel_setup *as)
{
	struct timewheel_setup setup = *as;

	setup.flags = TIMEWHEEL_SETUP_TOUCH_WORDS;
	setup.max_tokens = TOKENS;
	return setup;
}

FIXTURE(words)
{
	struct tw_wheel *wheel;
	struct tw_words *words;
	struct tw_events *events;
	uint64_t handle;
};

/* A token due in 2 s, on tick 102. */
FIXTURE_SETUP(words)
{
	struct timewheel_setup setup = with_words(&manual);

	self->wheel = open_wheel(&setup);
	self->words = tw_words_map(self->wheel);
	ASSERT_NE(NULL, self->words);
	self->events = tw_events_new(4);
	ASSERT_EQ(0, register_token(self->wheel, 7, 2 * SEC, 0, 0,
				    &self->handle));
}

FIXTURE_TEARDOWN(words)
{
	tw_words_unmap(self->words);
	tw_wheel_close(self->wheel);
	tw_events_free(self->events);
}

static uint64_t deadline_of(struct tw_wheel *wheel, uint64_t handle)
{
	struct timewheel_token token;

	if (tw_wheel_get(wheel, handle, TIMEWHEEL_OPF_BY_HANDLE, &token) < 0)
		return 0;
	return token.deadline;
}

TEST(touch_word)
{
	EXPECT_EQ(0x1234567800000065, tw_touch_word(0x123456789abcdef0, 101));
	EXPECT_EQ(0x1234567800000001, tw_touch_word(0x123456789abcdef0, 0));
	EXPECT_EQ(0xffffffffffffffff, tw_touch_word(~0ULL, ~0U));
}

/* The token is due its whole timeout after the end of the tick, and never before. */
TEST_F(words, touch)
{
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	EXPECT_EQ(101, tw_tick(self->words));
	tw_touch(self->words, self->handle, tw_tick(self->words));
	EXPECT_EQ(104 * SEC, deadline_of(self->wheel, self->handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 103));
	EXPECT_EQ(0, tw_events_read(self->events, self->wheel, 0));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 104));
	ASSERT_EQ(1, tw_events_read(self->events, self->wheel, 0));
	EXPECT_EQ(104 * SEC, tw_events_at(self->events, 0)->deadline);
}

/* The first touch after the wrap is by a tick whose low bits are 0. */
TEST_F(words, ticks_wrap)
{
	const uint64_t start = (1ULL << 32) - 1;
	uint64_t handle;

	ASSERT_EQ(0, tw_wheel_advance(self->wheel, start));
	ASSERT_EQ(0, register_token(self->wheel, 8, 5 * SEC, 0, 0, &handle));
	EXPECT_EQ(~0U, tw_tick(self->words));
	EXPECT_TRUE(tw_touch_checked(self->words, handle, tw_tick(self->words)));
	EXPECT_EQ((start + 6) * SEC, deadline_of(self->wheel, handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, start + 1));
	EXPECT_EQ(0, tw_tick(self->words));
	EXPECT_TRUE(tw_touch_checked(self->words, handle, tw_tick(self->words)));
	/* The touch is stored with the tick after, which has not come yet, and counts as now. */
	EXPECT_EQ((start + 7) * SEC, deadline_of(self->wheel, handle));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, start + 4));
	EXPECT_TRUE(tw_touch_checked(self->words, handle, tw_tick(self->words)));
	EXPECT_EQ((start + 10) * SEC, deadline_of(self->wheel, handle));
}

/* A checked touch takes nothing back: an older touch is already done. */
TEST_F(words, checked)
{
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 101));
	EXPECT_TRUE(tw_touch_checked(self->words, self->handle, 101));
	EXPECT_TRUE(tw_touch_checked(self->words, self->handle, 100));
	EXPECT_EQ(tw_touch_word(self->handle, 101),
		  self->words->words[(uint32_t)self->handle].value);
	EXPECT_EQ(104 * SEC, deadline_of(self->wheel, self->handle));
}

/* A checked touch tells that a token has ended, by cancel or by a reader. */
TEST_F(words, checked_tells_of_the_end)
{
	uint64_t handle;

	ASSERT_EQ(0, RUN(self->wheel, cancel, 7, 0));
	EXPECT_FALSE(tw_touch_checked(self->words, self->handle, 100));
	/* Another token has the same place, by another handle. */
	ASSERT_EQ(0, register_token(self->wheel, 8, 2 * SEC, 0, 0, &handle));
	ASSERT_EQ((uint32_t)self->handle, (uint32_t)handle);
	EXPECT_FALSE(tw_touch_checked(self->words, self->handle, 100));
	EXPECT_TRUE(tw_touch_checked(self->words, handle, 100));
	EXPECT_EQ(103 * SEC, deadline_of(self->wheel, handle));

	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 110));
	ASSERT_EQ(1, tw_events_read(self->events, self->wheel, 0));
	EXPECT_FALSE(tw_touch_checked(self->words, handle, 110));
}

/* The tick is the one of the hand, by each clock. */
static int tick_fits(struct tw_wheel *wheel)
{
	struct tw_words *words = tw_words_map(wheel);
	uint32_t before, tick, after;

	if (!words)
		return 1;
	before = info_of(wheel).hand;
	tick = tw_tick(words);
	after = info_of(wheel).hand;
	tw_words_unmap(words);
	return tick - before > after - before;
}

TEST(tick_is_that_of_the_hand)
{
	const uint32_t clocks[] = {
		TIMEWHEEL_CLOCK_MONOTONIC,
		TIMEWHEEL_CLOCK_BOOTTIME,
		TIMEWHEEL_CLOCK_REALTIME,
	};

	for (int i = 0; i < 3; i++) {
		struct timewheel_setup setup = with_words(&monotonic);
		struct tw_wheel *wheel;

		setup.clock = clocks[i];
		wheel = open_wheel(&setup);
		EXPECT_EQ(0, tick_fits(wheel));
		tw_wheel_close(wheel);
	}
}

static int tick_fits_in_namespace(void *wheel)
{
	return tick_fits(wheel);
}

/* The tick is right also in a time namespace, where the clock shows another time. */
TEST(tick_in_a_time_namespace)
{
	struct timewheel_setup setup = with_words(&monotonic);
	struct tw_wheel *wheel = open_wheel(&setup);
	FILE *offsets;

	NEEDS_KERNEL("a child shares a wheel");
	if (unshare(CLONE_NEWTIME))
		skip("no time namespaces");
	offsets = fopen("/proc/self/timens_offsets", "w");
	ASSERT_NE(NULL, offsets);
	fprintf(offsets, "%d 86400 5\n", CLOCK_MONOTONIC);
	ASSERT_EQ(0, fclose(offsets));
	EXPECT_EQ(0, in_child(tick_fits_in_namespace, wheel));
	tw_wheel_close(wheel);
}

static int maps_no_memory(void *wheel)
{
	refuse_memory();
	return tw_words_map(wheel) || errno != ENOMEM;
}

TEST(map_errors)
{
	struct timewheel_setup setup = with_words(&manual);
	struct tw_wheel *plain = open_wheel(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup);

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_NE(NULL, wheel);
	EXPECT_NONE(EINVAL, tw_words_map(plain));
	EXPECT_EQ(0, in_child(maps_no_memory, wheel));
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	EXPECT_NONE(ENODEV, tw_words_map(wheel));
	tw_wheel_close(wheel);
	tw_wheel_close(plain);
}

TEST(map_needs_both_rights)
{
	static const int rights[] = { O_RDONLY, O_WRONLY };
	struct timewheel_setup setup = with_words(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup), *other;

	ASSERT_NE(NULL, wheel);
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		other = tw_wheel_open_named(NAME, rights[i]);
		ASSERT_NE(NULL, other);
		EXPECT_NONE(EACCES, tw_words_map(other));
		tw_wheel_close(other);
	}
	EXPECT_EQ(0, tw_wheel_destroy(NAME));
	tw_wheel_close(wheel);
}

TEST_F(words, unmap_takes_null_and_leaves_errno)
{
	struct tw_words *other = tw_words_map(self->wheel);

	ASSERT_NE(NULL, other);
	errno = E2BIG;
	tw_words_unmap(NULL);
	tw_words_unmap(other);
	EXPECT_EQ(E2BIG, errno);
}

/* Touches of a destroyed wheel do no harm; its hand is on 0. */
TEST(destroyed)
{
	struct timewheel_setup setup = with_words(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup);
	struct tw_words *words;
	uint64_t handle;

	ASSERT_NE(NULL, wheel);
	words = tw_words_map(wheel);
	ASSERT_NE(NULL, words);
	ASSERT_EQ(0, register_token(wheel, 7, SEC, 0, 0, &handle));
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	EXPECT_EQ(0, tw_tick(words));
	tw_touch(words, handle, 101);
	tw_words_unmap(words);
	tw_wheel_close(wheel);
}

static struct tw_words *shared;
static uint64_t handles[TOKENS];
/* The index of the token that is touched; TOKENS ends the test. */
static atomic_uint current;
/* The flags are set before and after the token's cancellation. */
static atomic_bool ending[TOKENS], ended[TOKENS];
static atomic_uint touched, wrong;

static void *touch_current(void *arg)
{
	unsigned int token;

	while ((token = current) < TOKENS) {
		bool was_over = ended[token];

		/* Each touch has a newer tick, and has to be stored. */
		if (tw_touch_checked(shared, handles[token], 100 + touched))
			wrong += was_over;
		else
			wrong += !ending[token];
		/* The other thread may be waiting for this CPU. */
		if (++touched % 32 == 0)
			sched_yield();
	}
	return arg;
}

/* Waits until the other thread has begun a touch and finished it. */
static void wait_touched(void)
{
	unsigned int before = touched;

	while (touched - before < 2)
		sched_yield();
}

static struct tw_wheel *open_full(void)
{
	struct timewheel_setup setup = with_words(&manual);
	struct tw_wheel *wheel = open_wheel(&setup);

	shared = tw_words_map(wheel);
	for (int i = 0; i < TOKENS; i++)
		if (register_token(wheel, i, 2 * SEC, 0, 0, &handles[i]))
			return NULL;
	return tw_wheel_advance(wheel, 101) ? NULL : wheel;
}

/*
 * Checked touches tell the truth while tokens are cancelled: true before, and false for good
 * after.
 */
TEST(checked_while_cancelled)
{
	struct tw_wheel *wheel = open_full();
	pthread_t thread;

	ASSERT_NE(NULL, wheel);
	ASSERT_EQ(0, pthread_create(&thread, NULL, touch_current, NULL));
	for (unsigned int i = 0; i < CANCELLED; i++) {
		current = i;
		wait_touched();
		ending[i] = true;
		ASSERT_EQ(0, RUN(wheel, cancel, handles[i],
				 TIMEWHEEL_OPF_BY_HANDLE));
		ended[i] = true;
		wait_touched();
	}
	current = TOKENS;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, wrong);
	tw_words_unmap(shared);
	tw_wheel_close(wheel);
}

TEST_HARNESS_MAIN
