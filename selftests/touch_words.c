// SPDX-License-Identifier: GPL-2.0-only
/*
 * A touch word touches its token by a store into memory that is shared with the
 * kernel. Whatever a program stores, no token is early (P1) and none is lost (P5). A
 * checked touch that succeeded keeps its token for its whole timeout (P4). A token
 * without touches is on time (P2). Other wheels are not affected.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include <linux/mman.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "tw_delivery.h"
#include "tw_fault.h"
#include "tw_named.h"
#include "tw_process.h"
#include "tw_test.h"
#include "tw_uring.h"

#define TW_GROUP	"/sys/fs/cgroup/timewheel-words"
#include "tw_group.h"

#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define WORDS_SIZE	(2 * PAGE)
#define MAX_TOKENS	(WORDS_SIZE / 8 - 24)
#define TIMEOUT		10
#define FAR		(1ULL << 32)

/*
 * A read into this memory faults. The pointer is not static, because the compiler
 * would then know its value.
 */
void *nowhere = (void *)8;

/* Returns the word that a touch of this handle's token on this tick stores. */
static __u64 stamped(__u64 handle, __u64 tick)
{
	return (handle & 0xffffffff00000000ULL) |
	       ((__u32)tick ? (__u32)tick : 1);
}

static void store(__u64 *words, __u64 handle, __u64 word)
{
	__atomic_store_n(&words[(__u32)handle], word, __ATOMIC_RELAXED);
}

static __u64 load(const __u64 *words, __u64 handle)
{
	return __atomic_load_n(&words[(__u32)handle], __ATOMIC_RELAXED);
}

static void touch(__u64 *words, __u64 handle, __u64 tick)
{
	store(words, handle, stamped(handle, tick));
}

/*
 * Touches a token if it is pending, and returns whether it was. A later tick that
 * another thread has stored stays.
 */
static bool touch_checked(__u64 *words, __u64 handle, __u64 tick)
{
	__u64 *word = &words[(__u32)handle];
	__u64 seen = __atomic_load_n(word, __ATOMIC_RELAXED);
	__u64 touched = stamped(handle, tick);

	while (seen >> 32 == handle >> 32) {
		if ((__u32)seen && (__s32)((__u32)seen - (__u32)touched) >= 0)
			return true;
		if (__atomic_compare_exchange_n(word, &seen, touched, false,
						__ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* Returns the bytes of the words of @n tokens, rounded up to pages. */
static size_t words_size(__u64 n)
{
	return (n * 8 + PAGE - 1) / PAGE * PAGE;
}

/* Maps all words of the wheel of @fd. Returns MAP_FAILED and sets errno on failure. */
static __u64 *map_words(int fd, int prot)
{
	struct timewheel_info info;

	if (tw_info(fd, &info) < 0)
		return MAP_FAILED;
	return mmap(NULL, words_size(info.max_tokens), prot, MAP_SHARED, fd,
		    TIMEWHEEL_MAP_WORDS);
}

FIXTURE(touch_words) {
	int fd;
	__u64 *words;
};

/* Replaces the fixture's wheel by a new manual wheel with words. */
static void new_wheel(struct __test_metadata *_metadata,
		      FIXTURE_DATA(touch_words) *self, __u64 tick, __u64 start)
{
	if (self->words)
		ASSERT_EQ(0, munmap(self->words, WORDS_SIZE));
	if (self->fd >= 0)
		close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup(self->fd, TIMEWHEEL_CLOCK_MANUAL, 60, tick,
			      MAX_TOKENS, TIMEWHEEL_SETUP_TOUCH_WORDS, start));
	self->words = map_words(self->fd, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, (void *)self->words);
}

FIXTURE_SETUP(touch_words)
{
	self->fd = -1;
	self->words = NULL;
	new_wheel(_metadata, self, TW_SEC, 100);
}

FIXTURE_TEARDOWN(touch_words)
{
	if (self->words)
		munmap(self->words, WORDS_SIZE);
	close(self->fd);
}

static __u64 must_register(struct __test_metadata *_metadata, int fd, __u64 id,
			   __u64 ticks)
{
	__u64 handle;

	ASSERT_EQ(0, tw_register(fd, id, ticks * TW_SEC, 0, &handle));
	return handle;
}

/* Returns on which tick the token is due, as GET tells. */
static __u64 due_of(struct __test_metadata *_metadata, int fd, __u64 handle)
{
	struct timewheel_token token;

	ASSERT_EQ(0, tw_get(fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &token));
	return token.deadline / TW_SEC;
}

/* Expects that the token expires on tick @due, and not on the tick before. */
static void expect_expiry(struct __test_metadata *_metadata, int fd,
			  __u64 handle, __u64 due)
{
	struct timewheel_event event;

	ASSERT_EQ(0, tw_advance(fd, due - 1));
	tw_expect_nothing(fd);
	ASSERT_EQ(0, tw_advance(fd, due));
	EXPECT_TRUE(tw_readable(fd));
	ASSERT_EQ(1, tw_read(fd, &event, 1)) {
		TH_LOG("due on %llu", due);
	}
	EXPECT_EQ(handle, event.handle);
	EXPECT_EQ(due * TW_SEC, event.deadline);
	EXPECT_EQ(due * TW_SEC, event.taken);
}

static __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/*
 * A touched token comes on its new tick, also if no call looks at the token before
 * the read.
 */
TEST_F(touch_words, a_touched_token_comes_on_its_tick)
{
	__u64 start = 100, handle;

	for (__u64 at = 1; at <= TIMEOUT; at++) {
		handle = must_register(_metadata, self->fd, 1, TIMEOUT);
		ASSERT_EQ(0, tw_advance(self->fd, start + at));
		touch(self->words, handle, start + at);
		expect_expiry(_metadata, self->fd, handle,
			      start + at + 1 + TIMEOUT);
		start += at + 1 + TIMEOUT;
	}
	/* A token stays pending as long as it is touched, and is then on time. */
	handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	for (int i = 0; i < 100; i++) {
		start += 1 + i % TIMEOUT;
		ASSERT_EQ(0, tw_advance(self->fd, start));
		if (i % 3)
			touch(self->words, handle, start);
		else
			EXPECT_TRUE(touch_checked(self->words, handle, start));
		tw_expect_nothing(self->fd);
	}
	expect_expiry(_metadata, self->fd, handle, start + 1 + TIMEOUT);
}

/* P2: the longest timeouts that a wheel with words accepts are exact. */
TEST_F(touch_words, longest_timeouts)
{
	const __u64 half = 1ULL << 30;
	const __u64 ticks[] = { TW_SEC, 100000 };
	struct timewheel_token token;

	for (size_t t = 0; t < ARRAY_SIZE(ticks); t++) {
		const __u64 tick = ticks[t];
		const __u64 delays[] = {
			(half - 3) * tick, (half - 2) * tick - 1,
			(half - 2) * tick, (half - 2) * tick + 1,
			(half - 1) * tick - 1,
		};

		for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
			__u64 count = (delays[i] + tick - 1) / tick, handle;
			struct timewheel_event event;

			new_wheel(_metadata, self, tick, 7);
			ASSERT_EQ(0, tw_register(self->fd, 1, delays[i], 0,
						 &handle));
			touch(self->words, handle, 7);
			ASSERT_EQ(0, tw_advance(self->fd, 7 + count));
			tw_expect_nothing(self->fd);
			ASSERT_EQ(0, tw_advance(self->fd, 8 + count));
			EXPECT_EQ(1, tw_read(self->fd, &event, 1)) {
				TH_LOG("delay %llu of ticks of %llu", delays[i],
				       tick);
			}
			EXPECT_EQ((8 + count) * tick, event.deadline);
		}
		new_wheel(_metadata, self, tick, 7);
		ASSERT_EQ(0, tw_register(self->fd, 1, tick, 0, NULL));
		for (__u64 more = 0; more < 2; more++) {
			__u64 delay = (half - 1 + more * half) * tick + more;

			EXPECT_EQ(-ERANGE, tw_ret(tw_register(self->fd, 2,
							      delay, 0, NULL)));
			EXPECT_EQ(-ERANGE,
				  tw_ret(tw_touch_or_register(self->fd, 2,
							      delay, 0)));
			EXPECT_EQ(-ERANGE, tw_ret(tw_move(self->fd, 0, 1,
							  delay)));
		}
		/*
		 * A token with a time needs no timeout, and its time may be as far as
		 * on any wheel.
		 */
		EXPECT_EQ(0, tw_register_at(self->fd, 2, 3 * half * tick, 0));
		ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
		EXPECT_EQ(8 * tick, token.deadline);
		EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, 3, &token)));
	}
}

/* Deadlines of tokens that can be touched are less than this many ticks ahead. */
#define MAX_AHEAD	(1ULL << 30)

/*
 * P2: a token is touched right after its deadline was moved far ahead. The touch does
 * not make it late, whether readers look at it on the way (@step ticks apart) or the
 * first reader comes long after the deadline.
 */
static void expect_far_deadline(struct __test_metadata *_metadata,
				FIXTURE_DATA(touch_words) *self, __u64 ahead,
				__u64 step, __u64 late)
{
	const __u64 tick = 100000, start = 7, due = start + ahead;
	struct timewheel_event event;
	__u64 handle, now = start;

	new_wheel(_metadata, self, tick, start);
	ASSERT_EQ(0, tw_register(self->fd, 1, 30 * TW_SEC, 0, &handle));
	ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, 1, due * tick));
	touch(self->words, handle, start);
	for (int i = 0; now + step < due; i++) {
		now += step;
		ASSERT_EQ(0, tw_advance(self->fd, now));
		if (i % 3 == 2)
			tw_expect_nothing(self->fd);
	}
	if (!late) {
		ASSERT_EQ(0, tw_advance(self->fd, due - 1));
		tw_expect_nothing(self->fd);
	}
	ASSERT_EQ(0, tw_advance(self->fd, due + late));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1)) {
		TH_LOG("%llu ticks ahead, in steps of %llu, late by %llu", ahead,
		       step, late);
	}
	EXPECT_EQ(due * tick, event.deadline);
	EXPECT_EQ((due + late) * tick, event.taken);
}

TEST_F_TIMEOUT(touch_words, touch_of_a_far_deadline, 120)
{
	const __u64 aheads[] = { MAX_AHEAD / 2, MAX_AHEAD - 2, MAX_AHEAD - 1 };
	const __u64 steps[] = { 1 << 20, (1 << 25) + 12345, MAX_AHEAD };

	for (size_t i = 0; i < ARRAY_SIZE(aheads); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(steps); j++) {
			expect_far_deadline(_metadata, self, aheads[i],
					    steps[j], 0);
			expect_far_deadline(_metadata, self, aheads[i],
					    steps[j], MAX_AHEAD - 1);
		}
	}
}

/*
 * Registers and reads token @id, with this @timeout (0 for none). Returns its held
 * delivery.
 */
static struct timewheel_event hold(struct __test_metadata *_metadata, int fd,
				   __u64 id, __u64 timeout)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = id, .time = 100 * TW_SEC, .timeout = timeout,
	};
	struct timewheel_event event;

	ASSERT_EQ(0, tw_op(fd, &op));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	ASSERT_EQ(id, event.id);
	return event;
}

/*
 * Carries out every operation that gives a token a deadline @ahead ticks after tick
 * 100. Token 1 has a timeout, and its operations return @expected. Tokens 2 and 3
 * have no timeout, and their operations succeed.
 */
static void expect_ahead(struct __test_metadata *_metadata, __u32 flags,
			 __u64 ahead, int expected)
{
	const __u32 absolute = TIMEWHEEL_OPF_ABSOLUTE;
	const __u64 time = (100 + ahead) * TW_SEC;
	int fd = TW_OPEN_WHEEL(.flags = flags | TIMEWHEEL_SETUP_PERIODS,
			       .start = 100, .lease = 5 * TW_SEC);
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = absolute, .id = 1,
		.time = time, .timeout = TIMEOUT * TW_SEC,
	};

	EXPECT_EQ(expected, tw_ret(tw_op(fd, &op)));
	EXPECT_EQ(0, tw_register_at(fd, 2, time, 0));
	EXPECT_EQ(0, tw_register_periodic(fd, absolute, 3, time, TW_SEC));
	if (!expected)
		ASSERT_EQ(0, tw_cancel(fd, 0, 1));

	/*
	 * The moves are of a token with a timeout, of a token that gets one, and of
	 * others.
	 */
	must_register(_metadata, fd, 1, TIMEOUT);
	EXPECT_EQ(expected, tw_ret(tw_move(fd, absolute, 1, time)));
	op.code = TIMEWHEEL_OP_MOVE;
	op.id = 2;
	EXPECT_EQ(expected, tw_ret(tw_op(fd, &op)));
	ASSERT_EQ(0, tw_cancel(fd, 0, 2));
	ASSERT_EQ(0, tw_register_at(fd, 2, 110 * TW_SEC, 0));
	EXPECT_EQ(0, tw_move(fd, absolute, 2, time));
	EXPECT_EQ(0, tw_move(fd, absolute, 3, time + TW_SEC));
	ASSERT_EQ(0, tw_cancel(fd, 0, 1));
	ASSERT_EQ(0, tw_cancel(fd, 0, 2));

	/* The delay of a NACK does not become a timeout. */
	for (int by_delay = 0; by_delay < 2; by_delay++) {
		__u64 when = by_delay ? ahead * TW_SEC : time;
		__u32 how = by_delay ? 0 : absolute;
		struct timewheel_event event;

		event = hold(_metadata, fd, 1, TIMEOUT * TW_SEC);
		EXPECT_EQ(expected, tw_ret(tw_answer(fd, TIMEWHEEL_OP_NACK, how, 1,
						     event.delivery, when))) {
			TH_LOG("by delay: %d", by_delay);
		}
		ASSERT_LE(0, tw_key_op(fd, TIMEWHEEL_OP_DELETE, 0, 1, 0));
		event = hold(_metadata, fd, 2, 0);
		EXPECT_EQ(0, tw_ret(tw_answer(fd, TIMEWHEEL_OP_NACK, how, 2,
					      event.delivery, when))) {
			TH_LOG("without timeout, by delay: %d", by_delay);
		}
		ASSERT_LE(0, tw_key_op(fd, TIMEWHEEL_OP_DELETE, 0, 2, 0));
	}
	close(fd);
}

/* A token with a timeout cannot have a deadline farther ahead than stamps can tell. */
TEST_F(touch_words, deadlines_too_far_ahead)
{
	const __u64 far[] = {
		MAX_AHEAD, MAX_AHEAD + 1, 2 * MAX_AHEAD, 4 * MAX_AHEAD + 7,
	};
	struct timewheel_caps caps = { .size = sizeof(caps) };

	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_CAPS, &caps));
	EXPECT_EQ(MAX_AHEAD, caps.max_word_ticks);
	expect_ahead(_metadata, TIMEWHEEL_SETUP_TOUCH_WORDS, MAX_AHEAD - 2, 0);
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		expect_ahead(_metadata, TIMEWHEEL_SETUP_TOUCH_WORDS, far[i],
			     -ERANGE);
		expect_ahead(_metadata, 0, far[i], 0);
	}
}

/* A stamp that does not change the deadline is cleared when a call sees it. */
TEST_F(touch_words, stamp_that_adds_nothing)
{
	enum { BY_ID, BY_HANDLE, BY_LIST, BY_READ, BY_POLL, BY_TOUCH, WAYS };
	static struct timewheel_token tokens[TW_LISTED];

	NEEDS_KERNEL("an fd is readable only while a token is due");
	for (int way = 0; way < WAYS; way++) {
		struct timewheel_event event;
		__u64 handle;

		new_wheel(_metadata, self, TW_SEC, 100);
		handle = must_register(_metadata, self->fd, 1, TIMEOUT);
		ASSERT_EQ(0, tw_move(self->fd, TIMEWHEEL_OPF_ABSOLUTE, 1,
				     200 * TW_SEC));
		touch(self->words, handle, 100);
		ASSERT_EQ(0, tw_advance(self->fd, 189));
		switch (way) {
		case BY_ID:
			EXPECT_EQ(0, tw_get(self->fd, 0, 1, tokens));
			break;
		case BY_HANDLE:
			EXPECT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					    handle, tokens));
			break;
		case BY_LIST:
			EXPECT_EQ(1, tw_list(self->fd, tokens));
			break;
		case BY_READ:
			EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
			break;
		case BY_POLL:
			EXPECT_FALSE(tw_readable(self->fd));
			break;
		case BY_TOUCH:
			EXPECT_EQ(0, tw_touch(self->fd, 0, 1));
			break;
		}
		EXPECT_EQ(handle & ~0xffffffffULL, load(self->words, handle)) {
			TH_LOG("seen in way %d", way);
		}
		EXPECT_EQ(200ULL, due_of(_metadata, self->fd, handle));
		expect_expiry(_metadata, self->fd, handle, 200);
	}
}

/* P4: a touch moves a deadline at most to the last of all ticks. */
TEST_F(touch_words, touch_near_the_last_tick)
{
	const __u64 last = INT64_MAX / TW_SEC;
	struct timewheel_event event;
	__u64 handle;

	new_wheel(_metadata, self, TW_SEC, last - TIMEOUT);
	handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	touch(self->words, handle, last - TIMEOUT);
	EXPECT_EQ(last, due_of(_metadata, self->fd, handle));
	ASSERT_EQ(0, tw_advance(self->fd, last - 1));
	EXPECT_EQ(-ERANGE, tw_ret(tw_touch(self->fd, 0, 1)));
	touch(self->words, handle, last - 1);
	tw_expect_nothing(self->fd);
	ASSERT_EQ(0, tw_advance(self->fd, last));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(last * TW_SEC, event.deadline);
}

/* A checked touch succeeds exactly while the token is pending. */
TEST_F(touch_words, checked_touch_tells)
{
	struct timewheel_event event;
	__u64 next, handle;

	handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	EXPECT_TRUE(touch_checked(self->words, handle, 100));
	EXPECT_FALSE(touch_checked(self->words, handle - FAR, 100));
	EXPECT_FALSE(touch_checked(self->words, handle + FAR, 100));
	expect_expiry(_metadata, self->fd, handle, 101 + TIMEOUT);
	EXPECT_FALSE(touch_checked(self->words, handle, 111));
	EXPECT_EQ(0ULL, load(self->words, handle));

	next = must_register(_metadata, self->fd, 1, TIMEOUT);
	ASSERT_EQ((__u32)next, (__u32)handle);
	EXPECT_FALSE(touch_checked(self->words, handle, 111));
	EXPECT_TRUE(touch_checked(self->words, next, 111));
	EXPECT_EQ(112 + TIMEOUT, due_of(_metadata, self->fd, next));
	ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
	EXPECT_FALSE(touch_checked(self->words, next, 111));

	/* A touch of a token that is due but not taken wins. */
	next = must_register(_metadata, self->fd, 1, TIMEOUT);
	ASSERT_EQ(0, tw_advance(self->fd, 130));
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_TRUE(touch_checked(self->words, next, 130));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
	expect_expiry(_metadata, self->fd, next, 131 + TIMEOUT);
	EXPECT_FALSE(touch_checked(self->words, next, 141));
}

/* A store after the token's end does not touch the next token in its place. */
TEST_F(touch_words, store_after_the_end)
{
	__u64 old = must_register(_metadata, self->fd, 1, TIMEOUT), handle;

	for (int i = 0; i < 50; i++) {
		struct timewheel_event event;

		if (i & 1) {
			ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
		} else {
			ASSERT_EQ(0, tw_advance(self->fd, 1000 * (i + 1)));
			ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		}
		touch(self->words, old, 1000 * (i + 1));
		tw_expect_nothing(self->fd);
		ASSERT_EQ(0, tw_advance(self->fd, 1000 * (i + 1)));
		handle = must_register(_metadata, self->fd, 1, TIMEOUT);
		ASSERT_EQ((__u32)old, (__u32)handle);
		EXPECT_EQ(1000 * (i + 1) + TIMEOUT,
			  (int)due_of(_metadata, self->fd, handle));
		EXPECT_TRUE(touch_checked(self->words, handle,
					  1000 * (i + 1) - 500));
		EXPECT_EQ(1000 * (i + 1) + TIMEOUT,
			  (int)due_of(_metadata, self->fd, handle));
		old = handle;
	}
}

/* A token without a timeout cannot be touched, whatever is stored in its word. */
TEST_F(touch_words, tokens_without_timeout)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = 1, .time = 110 * TW_SEC,
	};
	struct timewheel_event event;
	__u64 at, zero;

	ASSERT_EQ(0, tw_op(self->fd, &op));
	at = op.handle;
	touch(self->words, at, 100);
	EXPECT_EQ(110ULL, due_of(_metadata, self->fd, at));
	store(self->words, at, ~0ULL);
	EXPECT_EQ(110ULL, due_of(_metadata, self->fd, at));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, 1)));
	expect_expiry(_metadata, self->fd, at, 110);

	ASSERT_EQ(0, tw_register(self->fd, 2, 0, 0, &zero));
	touch(self->words, zero, 110);
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(110 * TW_SEC, event.deadline);

	/* A checked touch of such a token still returns whether it is pending. */
	ASSERT_EQ(0, tw_register(self->fd, 3, 0, 0, &zero));
	EXPECT_TRUE(touch_checked(self->words, zero, 110));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_FALSE(touch_checked(self->words, zero, 110));
	ASSERT_EQ(0, tw_register(self->fd, 3, 0, 0, &zero));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, 3));
	EXPECT_FALSE(touch_checked(self->words, zero, 110));
}

/* A move by a delay also sets the timeout. A move to a time leaves the timeout. */
TEST_F(touch_words, moves_and_timeouts)
{
	__u64 handle;

	ASSERT_EQ(0, tw_register(self->fd, 1, 0, 0, &handle));
	touch(self->words, handle, 100);
	/* A move clears the stamp that was stored before it. */
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, 1, 20 * TW_SEC));
	EXPECT_EQ(120ULL, due_of(_metadata, self->fd, handle));
	ASSERT_EQ(0, tw_advance(self->fd, 105));
	touch(self->words, handle, 105);
	EXPECT_EQ(126ULL, due_of(_metadata, self->fd, handle));
	/* After a move to a nearer time an earlier touch does not count any more. */
	ASSERT_EQ(0, tw_key_op(self->fd, TIMEWHEEL_OP_MOVE, 0, 1, 2 * TW_SEC));
	EXPECT_EQ(107ULL, due_of(_metadata, self->fd, handle));
	touch(self->words, handle, 105);
	EXPECT_EQ(108ULL, due_of(_metadata, self->fd, handle));
	ASSERT_EQ(0, tw_key_op(self->fd, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OPF_ABSOLUTE |
			       TIMEWHEEL_OPF_BY_HANDLE, handle, 106 * TW_SEC));
	EXPECT_EQ(106ULL, due_of(_metadata, self->fd, handle));
	touch(self->words, handle, 105);
	EXPECT_EQ(108ULL, due_of(_metadata, self->fd, handle));
	expect_expiry(_metadata, self->fd, handle, 108);
}

/* If a token is touched by its word and by calls, the later deadline counts. */
TEST_F(touch_words, touches_by_call)
{
	struct timewheel_op op = { .code = TIMEWHEEL_OP_TOUCH, .id = 1 };
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	const __u64 keys[] = { 1, 1 };
	struct timewheel_info info;
	__u32 done;

	ASSERT_EQ(0, tw_advance(self->fd, 103));
	touch(self->words, handle, 103);
	ASSERT_EQ(0, tw_op(self->fd, &op));
	EXPECT_EQ((104 + TIMEOUT) * TW_SEC, op.deadline);
	ASSERT_EQ(0, tw_advance(self->fd, 106));
	EXPECT_EQ(0, tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle));
	EXPECT_EQ(106 + TIMEOUT, due_of(_metadata, self->fd, handle));
	touch(self->words, handle, 104);
	EXPECT_EQ(106 + TIMEOUT, due_of(_metadata, self->fd, handle));
	EXPECT_EQ(0, tw_touch_or_register(self->fd, 1, TW_SEC, 0));
	touch(self->words, handle, 106);
	EXPECT_EQ(0, tw_touch(self->fd, 0, 1));
	EXPECT_EQ(1U, tw_touch_each(self->fd, 1, 1));
	EXPECT_EQ(107 + TIMEOUT, due_of(_metadata, self->fd, handle));
	touch(self->words, handle, 105);
	ASSERT_EQ(0, tw_advance(self->fd, 108));
	EXPECT_EQ(0, tw_touch_keys(self->fd, 0, keys, 2, &done));
	EXPECT_EQ(2U, done);
	EXPECT_EQ(108 + TIMEOUT, due_of(_metadata, self->fd, handle));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(7ULL, info.touched);
	EXPECT_EQ(0ULL, info.moved);
	expect_expiry(_metadata, self->fd, handle, 108 + TIMEOUT);
	EXPECT_EQ(-ESTALE, tw_ret(tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					   handle)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, 1)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch_keys(self->fd, 0, keys, 2, &done)));
	EXPECT_EQ(0U, done);
}

/* Every operation that returns a token's deadline reads the token's word first. */
TEST_F(touch_words, operations_tell_what_the_word_says)
{
	const __u32 codes[] = {
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	const __u64 deadlines[] = { 115 + TIMEOUT, 116 };
	struct timewheel_token token;
	struct timewheel_op op;
	__u64 handle;

	for (int saved = 0; saved < 2; saved++) {
		int was = saved ? 0 : TIMEWHEEL_RES_WAS_DUE;
		__u64 due = saved ? 118 : 110;

		for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
			ASSERT_EQ(0, tw_advance(self->fd, 100));
			handle = must_register(_metadata, self->fd, 1, TIMEOUT);
			ASSERT_EQ(0, tw_advance(self->fd, 115));
			if (saved)
				touch(self->words, handle, 107);
			memset(&op, 0, sizeof(op));
			op.id = 1;
			op.time = TW_SEC;
			op.code = codes[i];
			EXPECT_EQ(was, tw_op(self->fd, &op));
			EXPECT_EQ((i < 2 ? deadlines[i] : due) * TW_SEC,
				  op.deadline);
			if (codes[i] != TIMEWHEEL_OP_CANCEL)
				ASSERT_LE(0, tw_cancel(self->fd, 0, 1));
		}
		ASSERT_EQ(0, tw_advance(self->fd, 100));
		handle = must_register(_metadata, self->fd, 1, TIMEOUT);
		ASSERT_EQ(0, tw_advance(self->fd, 115));
		if (saved)
			touch(self->words, handle, 107);
		ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
		EXPECT_EQ(due * TW_SEC, token.deadline);
		EXPECT_EQ(saved ? 3 * TW_SEC : 0, token.left);
		EXPECT_EQ(0ULL, token.cycle);
		EXPECT_EQ(due % 60, token.slot);
		EXPECT_EQ(was, tw_touch(self->fd, 0, 1));
		ASSERT_LE(0, tw_cancel(self->fd, 0, 1));
	}
}

TEST_F(touch_words, list_tells_what_the_word_says)
{
	struct timewheel_token tokens[4];
	struct timewheel_list list = {
		.size = sizeof(list), .from = 111 * TW_SEC,
		.to = 113 * TW_SEC, .tokens = (__u64)(uintptr_t)tokens,
		.count = 4, .token_size = sizeof(tokens[0]),
	};
	__u64 handles[3];

	for (__u64 id = 0; id < 3; id++)
		handles[id] = must_register(_metadata, self->fd, id, TIMEOUT);
	ASSERT_EQ(0, tw_advance(self->fd, 104));
	touch(self->words, handles[1], 102);
	touch(self->words, handles[2], 104);
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
	ASSERT_EQ(1U, list.listed);
	EXPECT_EQ(TIMEWHEEL_NEVER, list.cursor);
	EXPECT_EQ(handles[1], tokens[0].handle);
	EXPECT_EQ(113 * TW_SEC, tokens[0].deadline);
	EXPECT_EQ(113U % 60, tokens[0].slot);
}

/*
 * P5: a read that cannot copy a token puts it back. The token is then pending again,
 * with its deadline from before.
 */
TEST_F(touch_words, put_back)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	struct timewheel_event event;

	NEEDS_KERNEL("EFAULT");
	ASSERT_EQ(0, tw_advance(self->fd, 150));
	EXPECT_EQ(-EFAULT, tw_ret(read(self->fd, nowhere, sizeof(event))));
	EXPECT_EQ(110ULL, due_of(_metadata, self->fd, handle));
	EXPECT_TRUE(touch_checked(self->words, handle, 145));
	EXPECT_EQ(156ULL, due_of(_metadata, self->fd, handle));
	expect_expiry(_metadata, self->fd, handle, 156);
	EXPECT_FALSE(touch_checked(self->words, handle, 156));

	handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	ASSERT_EQ(0, tw_advance(self->fd, 200));
	for (int i = 0; i < 5; i++)
		EXPECT_EQ(-EFAULT, tw_ret(read(self->fd, nowhere, sizeof(event))));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(166 * TW_SEC, event.deadline);
}

/* A reader that waits for its memory has taken no token, and touches win (P4). */
TEST_F(touch_words, touched_while_a_reader_waits_for_its_memory)
{
	struct tw_slow_reader r;
	__u64 checked, plain;

	NEEDS_KERNEL("a read waits for its memory");
	checked = must_register(_metadata, self->fd, 1, TIMEOUT);
	plain = must_register(_metadata, self->fd, 2, TIMEOUT);
	ASSERT_EQ(0, tw_advance(self->fd, 110));
	TW_START_SLOW_READER(&r, self->fd, tw_new_pages(PAGE), PAGE);
	EXPECT_TRUE(touch_checked(self->words, checked, 110));
	touch(self->words, plain, 110);

	ASSERT_TRUE(tw_bring_pages(r.uffd, r.pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EAGAIN, r.ret);
	EXPECT_EQ(121ULL, due_of(_metadata, self->fd, checked));
	EXPECT_EQ(121ULL, due_of(_metadata, self->fd, plain));
	close(r.uffd);
	munmap(r.pages, r.size);
}

#define TOKENS		200
#define STEPS		60000

/*
 * A thread keeps storing nonsense in every word. Other threads use the wheel
 * meanwhile: no token is early or lost, and another wheel is not affected.
 */
struct scribbler {
	__u64 *words;
	__u64 *handles;	/* TOKENS handles, which are read while they change */
	__u64 state;
	bool stop;
};

static void *scribble(void *data)
{
	struct scribbler *me = data;

	while (!__atomic_load_n(&me->stop, __ATOMIC_RELAXED)) {
		int place = tw_random(&me->state) % TOKENS;
		__u64 handle = __atomic_load_n(&me->handles[place],
					       __ATOMIC_RELAXED);
		__u64 word = tw_random(&me->state);

		switch (word >> 40 & 7) {
		case 0:
			word = 0;
			break;
		case 1:
		case 2:
		case 3:
			word = (handle & ~0xffffffffULL) | (__u32)word;
			break;
		case 4:
			word = (handle & ~0xffffffffULL) - FAR;
			break;
		case 5:
			word = (handle & ~0xffffffffULL) | (word & 0xffff);
			break;
		}
		store(me->words, tw_random(&me->state) & 1 ? handle :
		      tw_random(&me->state) % MAX_TOKENS / 2, word);
	}
	return NULL;
}

/* Reads and counts the events, and checks that none is early. */
static __u64 read_some(struct __test_metadata *_metadata, int fd, __u64 *handles,
		       const __u64 *earliest, __u64 now)
{
	struct timewheel_event events[16];
	__u64 count = 0;
	int n;

	while ((n = tw_read(fd, events, 16)) > 0) {
		for (int i = 0; i < n; i++) {
			__u64 id = events[i].id;

			ASSERT_LT(id, (__u64)TOKENS);
			ASSERT_EQ(handles[id], events[i].handle);
			ASSERT_LE(earliest[id] * TW_SEC, events[i].deadline);
			ASSERT_LE(events[i].deadline, now * TW_SEC);
			__atomic_store_n(&handles[id], 0, __ATOMIC_RELAXED);
		}
		count += n;
	}
	return count;
}

TEST_F_TIMEOUT(touch_words, nonsense_in_all_words, 120)
{
	struct timewheel_event event;
	struct timewheel_token tokens[TOKENS];
	__u64 handles[TOKENS] = { }, earliest[TOKENS] = { };
	__u64 registered = 0, ended = 0, now = 100, witness;
	struct scribbler scribbler = {
		.words = self->words, .handles = handles, .state = 4711,
	};
	unsigned long steps = tw_scaled(40000);
	struct timewheel_info info;
	__u64 state = 1234567;
	__u64 *other_words;
	pthread_t thread;
	int other;

	other = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup(other, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC,
			      MAX_TOKENS, TIMEWHEEL_SETUP_TOUCH_WORDS, 100));
	other_words = map_words(other, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, (void *)other_words);
	witness = must_register(_metadata, other, 1, TIMEOUT);
	touch(other_words, witness, 95);

	/* The registrations make all words exist to which the thread stores. */
	for (__u64 id = 0; id < TOKENS; id++) {
		handles[id] = must_register(_metadata, self->fd, id, 50);
		earliest[id] = 150;
		registered++;
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &scribbler));
	for (unsigned long step = 0; step < steps; step++) {
		__u64 id = tw_random(&state) % TOKENS;
		__u64 delay = tw_random(&state) % 70;

		if (!(step % 16)) {
			now += tw_random(&state) % 6;
			ASSERT_EQ(0, tw_advance(self->fd, now));
			if (tw_random(&state) & 1)
				tw_readable(self->fd);
			ended += read_some(_metadata, self->fd, handles,
					   earliest, now);
			if (!(step % 256))
				EXPECT_GE(0, read(self->fd, nowhere,
						  8 * sizeof(event)));
			continue;
		}
		if (!handles[id]) {
			__u64 handle;

			ASSERT_EQ(0, tw_register(self->fd, id, delay * TW_SEC,
						 0, &handle));
			__atomic_store_n(&handles[id], handle,
					 __ATOMIC_RELAXED);
			earliest[id] = now + delay;
			registered++;
			continue;
		}
		switch (tw_random(&state) % 5) {
		case 0:
			ASSERT_LE(0, tw_move(self->fd, 0, id, delay * TW_SEC));
			earliest[id] = now + delay;
			break;
		case 1:
			ASSERT_LE(0, tw_cancel(self->fd, 0, id));
			__atomic_store_n(&handles[id], 0, __ATOMIC_RELAXED);
			ended++;
			break;
		case 2:
			ASSERT_EQ(0, tw_get(self->fd, 0, id, tokens));
			ASSERT_LE(earliest[id] * TW_SEC, tokens[0].deadline);
			earliest[id] = later(earliest[id],
					     tokens[0].deadline / TW_SEC);
			break;
		case 3:
			tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handles[id]);
			break;
		default: {
			struct timewheel_list list = {
				.size = sizeof(list), .to = TIMEWHEEL_NEVER,
				.tokens = (__u64)(uintptr_t)tokens,
				.count = TOKENS,
				.token_size = sizeof(tokens[0]),
			};

			if (tw_random(&state) % 16)
				break;
			ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
			EXPECT_EQ(registered - ended, list.listed);
			break;
		}
		}
	}
	__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);

	/*
	 * All tokens come, each once, because all timeouts and delays are shorter
	 * than 100 ticks.
	 */
	for (int i = 0; i < 2; i++) {
		now += 100;
		ASSERT_EQ(0, tw_advance(self->fd, now));
		ended += read_some(_metadata, self->fd, handles, earliest, now);
	}
	EXPECT_EQ(registered, ended);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(registered, info.registered);
	EXPECT_EQ(registered, info.cancelled + info.delivered);
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.taken);

	EXPECT_EQ(stamped(witness, 95), load(other_words, witness));
	expect_expiry(_metadata, other, witness, 110);
	munmap(other_words, WORDS_SIZE);
	close(other);
}

/*
 * Threads or processes make checked touches while a reader reads. Each registration
 * of each place has a record, and P4 has to hold exactly.
 */
#define PLACES		48
#define LIVES		3000
#define TOUCHERS	3

struct life {
	__u64 touched;	/* last tick of a successful touch, plus 1 */
	__u64 due;	/* tick of its end, 0 while pending, 1 if cancelled */
	__u64 timeout;
};

struct arena {
	__u64 now;	/* the tick of the hand, or an earlier one */
	__u64 handles[PLACES];
	struct life lives[PLACES][LIVES];
	__u32 first;	/* generation of each place's first life */
	__u64 touches;
	__u64 refused;
	bool stop;
};

struct toucher {
	struct arena *arena;
	__u64 *words;
	__u64 state;
};

static struct life *life_of(struct arena *arena, __u64 handle)
{
	__u32 life = (__u32)(handle >> 32) - arena->first;

	return &arena->lives[(__u32)handle % PLACES][life % LIVES];
}

static void touch_for_the_record(struct toucher *me)
{
	struct arena *arena = me->arena;
	__u64 handle = __atomic_load_n(&arena->handles[tw_random(&me->state) %
						       PLACES],
				       __ATOMIC_ACQUIRE);
	__u64 now = __atomic_load_n(&arena->now, __ATOMIC_ACQUIRE);
	struct life *life;
	__u64 seen;

	/* On a single CPU, too, some lives end between here and the touch. */
	if (!(tw_random(&me->state) % 32))
		sched_yield();
	if (!handle)
		return;
	life = life_of(arena, handle);
	if (!touch_checked(me->words, handle, now)) {
		__atomic_fetch_add(&arena->refused, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&arena->touches, 1, __ATOMIC_RELAXED);
	seen = __atomic_load_n(&life->touched, __ATOMIC_RELAXED);
	while (seen < now + 1 &&
	       !__atomic_compare_exchange_n(&life->touched, &seen, now + 1,
					    false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static void *touch_until_stopped(void *data)
{
	struct toucher *me = data;

	while (!__atomic_load_n(&me->arena->stop, __ATOMIC_RELAXED))
		touch_for_the_record(me);
	return NULL;
}

/* Returns whether a place has had about as many lives as the arena has records. */
static bool arena_full(struct arena *arena, __u64 handle)
{
	__u32 generation = handle >> 32;

	if (!arena->first)
		arena->first = generation;
	return generation - arena->first >= LIVES - 2;
}

/* Runs the wheel for @rounds, and until touches have succeeded and failed. */
static void run_arena(struct __test_metadata *_metadata, int fd,
		      struct arena *arena, __u64 start, unsigned long rounds)
{
	__u64 state = 99991, now = start;

	for (unsigned long round = 0; round < rounds ||
	     !__atomic_load_n(&arena->touches, __ATOMIC_RELAXED) ||
	     !__atomic_load_n(&arena->refused, __ATOMIC_RELAXED); round++) {
		struct timewheel_event events[8];
		bool full = false;
		int n;

		for (__u64 id = 0; id < PLACES; id++) {
			__u64 timeout = 1 + tw_random(&state) % 6, handle;

			if (tw_register(fd, id, timeout * TW_SEC, 0, &handle))
				continue;
			ASSERT_GT((__u64)PLACES, (__u64)(__u32)handle);
			full |= arena_full(arena, handle);
			life_of(arena, handle)->timeout = timeout;
			__atomic_store_n(&arena->handles[(__u32)handle],
					 handle, __ATOMIC_RELEASE);
		}
		now += 1 + tw_random(&state) % 3;
		ASSERT_EQ(0, tw_advance(fd, now));
		__atomic_store_n(&arena->now, now, __ATOMIC_RELEASE);
		/* Without system calls all rounds could be over before a toucher runs. */
		if (tw_random(&state) & 1 || tw_in_process())
			sched_yield();
		while ((n = tw_read(fd, events, 1 + tw_random(&state) % 8)) > 0)
			for (int i = 0; i < n; i++) {
				struct life *life = life_of(arena,
							    events[i].handle);

				ASSERT_EQ(0ULL, life->due);
				life->due = events[i].deadline / TW_SEC;
				ASSERT_LE(life->due, now);
			}
		if (!(tw_random(&state) % 4)) {
			__u64 id = tw_random(&state) % PLACES, handle;

			handle = arena->handles[id];
			if (tw_cancel(fd, TIMEWHEEL_OPF_BY_HANDLE, handle) >= 0)
				life_of(arena, handle)->due = 1;
		}
		if (full)
			break;
	}
	__atomic_store_n(&arena->stop, true, __ATOMIC_RELAXED);
}

/*
 * Checks, after the last touch, that each life ended as its touches say, and that the
 * counts are right.
 */
static void check_arena(struct __test_metadata *_metadata, int fd,
			const struct arena *arena)
{
	__u64 begun = 0, delivered = 0, cancelled = 0;
	struct timewheel_info info;

	for (int place = 0; place < PLACES; place++) {
		for (int i = 0; i < LIVES; i++) {
			const struct life *life = &arena->lives[place][i];

			begun += !!life->timeout;
			cancelled += life->due == 1;
			ASSERT_TRUE(life->timeout || !life->touched);
			if (life->due <= 1)
				continue;
			delivered++;
			if (!life->touched)
				continue;
			ASSERT_LE(life->touched + life->timeout, life->due) {
				TH_LOG("touched on %llu for %llu, due on %llu",
				       life->touched - 1, life->timeout,
				       life->due);
			}
		}
	}
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(begun, info.registered);
	EXPECT_EQ(delivered, info.delivered);
	EXPECT_EQ(cancelled, info.cancelled);
	EXPECT_EQ(begun - delivered - cancelled, info.pending);
	EXPECT_LT(0ULL, arena->touches);
	EXPECT_LT(0ULL, arena->refused);
}

/*
 * Threads make checked touches, or children through the mapping that they have
 * inherited.
 */
static void run_touchers(struct __test_metadata *_metadata,
			 FIXTURE_DATA(touch_words) *self, bool processes)
{
	struct arena *arena = tw_shared_memory(sizeof(*arena));
	struct toucher touchers[TOUCHERS];
	pthread_t threads[TOUCHERS];
	pid_t children[TOUCHERS];

	ASSERT_NE(MAP_FAILED, (void *)arena);
	arena->now = 100;
	for (int i = 0; i < TOUCHERS; i++) {
		touchers[i] = (struct toucher){ arena, self->words, 17 + i };
		if (!processes) {
			ASSERT_EQ(0, pthread_create(&threads[i], NULL,
						    touch_until_stopped, &touchers[i]));
			continue;
		}
		children[i] = fork();
		ASSERT_LE(0, children[i]);
		if (!children[i]) {
			touch_until_stopped(&touchers[i]);
			_exit(0);
		}
	}
	run_arena(_metadata, self->fd, arena, 100, tw_scaled(4000));
	for (int i = 0; i < TOUCHERS; i++)
		ASSERT_EQ(0, processes ? tw_reap(children[i]) :
			  pthread_join(threads[i], NULL));
	check_arena(_metadata, self->fd, arena);
	munmap(arena, sizeof(*arena));
}

TEST_F_TIMEOUT(touch_words, checked_touches_by_threads, 120)
{
	run_touchers(_metadata, self, false);
}

TEST_F_TIMEOUT(touch_words, checked_touches_by_processes, 120)
{
	NEEDS_KERNEL("a child shares a wheel");
	run_touchers(_metadata, self, true);
}

/* The following tests are about the mapping. */

TEST_F(touch_words, mmap_errors)
{
	const int rw = PROT_READ | PROT_WRITE;
	const size_t page = PAGE, len = WORDS_SIZE;
	int fd = self->fd, other;

	NEEDS_KERNEL("mmap(2) of a device");
	EXPECT_EQ(0, tw_map_ret(len, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(0, tw_map_ret(len, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(0, tw_map_ret(len, PROT_NONE, MAP_SHARED, fd, 0));
	EXPECT_EQ(0, tw_map_ret(len, PROT_WRITE, MAP_SHARED, fd, 0));
	EXPECT_EQ(0, tw_map_ret(len, rw, MAP_SHARED | MAP_POPULATE, fd, 0));
	/* The kernel rounds each length up to pages. */
	EXPECT_EQ(0, tw_map_ret(len - page + 1, rw, MAP_SHARED, fd, 0));

	EXPECT_EQ(-EINVAL, tw_map_ret(page, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len + page, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len << 8, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(0, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(page, rw, MAP_SHARED, fd, page));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_SHARED, fd, page));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_SHARED, fd, 8));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_SHARED, fd, FAR - page));
	for (__u64 n = 1; n <= 3; n++) {
		EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_SHARED, fd, n * FAR));
		EXPECT_EQ(-EINVAL, tw_map_ret(page, PROT_READ, MAP_SHARED, fd,
					      n * FAR));
	}
	/*
	 * These mappings end at the largest offset or beyond, and the kernel may
	 * refuse them with other errors.
	 */
	EXPECT_GT(0, tw_map_ret(len, rw, MAP_SHARED, fd, FAR << 31));
	EXPECT_GT(0, tw_map_ret(len, rw, MAP_SHARED, fd, -len));
	EXPECT_GT(0, tw_map_ret(len, rw, MAP_SHARED, fd, -page));
	EXPECT_GT(0, tw_map_ret(-page, rw, MAP_SHARED, fd, 0));

	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw | PROT_EXEC, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ | PROT_EXEC, MAP_SHARED, fd,
				      0));
	/* Files of the device do not know this flag. */
	EXPECT_EQ(-EOPNOTSUPP, tw_map_ret(len, rw,
					  MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0));

	/* The first file is not set up, and then it has a wheel without words. */
	other = TW_OPEN(O_RDWR);
	EXPECT_EQ(-EBADFD, tw_map_ret(len, rw, MAP_SHARED, other, 0));
	EXPECT_EQ(-EBADFD, tw_map_ret(page, rw, MAP_SHARED, other, page));
	ASSERT_EQ(0, tw_setup_manual(other, 60, MAX_TOKENS, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, rw, MAP_SHARED, other, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ, MAP_SHARED, other, 0));
	close(other);
}

/* A mapping has the length of all words, which may be one page or many. */
TEST_F(touch_words, lengths)
{
	const __u64 fit = PAGE / 8;
	const __u64 most[] = {
		1, fit - 1, fit, fit + 1, 2 * fit, 2 * fit + 1, 100000,
	};

	for (size_t i = 0; i < ARRAY_SIZE(most); i++) {
		size_t len = words_size(most[i]);
		int fd = TW_OPEN(O_RDWR);

		ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC,
				      most[i], TIMEWHEEL_SETUP_TOUCH_WORDS, 0));
		EXPECT_EQ(0, tw_map_ret(len, PROT_READ, MAP_SHARED, fd, 0));
		EXPECT_EQ(-EINVAL, tw_map_ret(len + PAGE, PROT_READ, MAP_SHARED,
					      fd, 0));
		EXPECT_EQ(-EINVAL, tw_map_ret(len - PAGE, PROT_READ, MAP_SHARED,
					      fd, 0));
		close(fd);
	}
}

/* Every token has its word, up to the last token. */
TEST_F(touch_words, words_of_all_tokens)
{
	const __u64 n = 3000;
	__u64 *handles = calloc(n, sizeof(*handles));
	__u64 *words;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC, n,
			      TIMEWHEEL_SETUP_TOUCH_WORDS | TIMEWHEEL_SETUP_NO_IDS, 0));
	words = map_words(fd, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, (void *)words);
	for (__u64 i = 0; i < n; i++) {
		ASSERT_EQ(0, tw_register(fd, 0, TIMEOUT * TW_SEC, 0,
					 &handles[i]));
		ASSERT_LT((__u32)handles[i], n);
	}
	ASSERT_EQ(-ENOSPC, tw_ret(tw_register(fd, 0, TW_SEC, 0, NULL)));
	for (__u64 i = 0; i < n; i++)
		ASSERT_TRUE(touch_checked(words, handles[i], 1 + i % 7));
	ASSERT_EQ(0, tw_advance(fd, 9));
	for (__u64 i = 0; i < n; i++)
		ASSERT_EQ(2 + i % 7 + TIMEOUT,
			  due_of(_metadata, fd, handles[i]));
	munmap(words, words_size(n));
	close(fd);
	free(handles);
}

/*
 * A file open for reading can map the words to read them. A store needs a file that
 * is also open for writing.
 */
struct named {
	char name[32];
	int control;
};

static void make_named(struct __test_metadata *_metadata, struct named *named)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .flags = TIMEWHEEL_SETUP_TOUCH_WORDS,
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60, .tick = TW_SEC,
		.max_tokens = MAX_TOKENS, .start = 100,
	};

	snprintf(named->name, sizeof(named->name), "words-%d", getpid());
	named->control = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_create_named(named->control, named->name, setup));
}

TEST_F(touch_words, access_modes)
{
	struct timewheel_event event;
	struct named named;
	int reader, writer, both;
	__u64 *words, *seen;
	__u64 handle;

	NEEDS_KERNEL("mmap(2) of a device");
	make_named(_metadata, &named);
	reader = tw_open_named(named.name, O_RDONLY);
	writer = tw_open_named(named.name, O_WRONLY);
	both = tw_open_named(named.name, O_RDWR);
	ASSERT_TRUE(reader >= 0 && writer >= 0 && both >= 0);

	EXPECT_EQ(0, tw_map_ret(WORDS_SIZE, PROT_READ, MAP_SHARED, reader, 0));
	EXPECT_EQ(-EACCES, tw_map_ret(WORDS_SIZE, PROT_READ | PROT_WRITE,
				      MAP_SHARED, reader, 0));
	EXPECT_EQ(-EACCES, tw_map_ret(WORDS_SIZE, PROT_WRITE, MAP_SHARED, reader,
				      0));
	EXPECT_EQ(-EINVAL, tw_map_ret(WORDS_SIZE, PROT_READ, MAP_PRIVATE, reader,
				      0));
	EXPECT_EQ(-EACCES, tw_map_ret(WORDS_SIZE, PROT_WRITE, MAP_SHARED, writer,
				      0));
	EXPECT_EQ(-EACCES, tw_map_ret(WORDS_SIZE, PROT_READ | PROT_WRITE,
				      MAP_SHARED, writer, 0));

	/*
	 * A file open for reading sees each store of the other file, and cannot
	 * change the words.
	 */
	words = map_words(both, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, (void *)words);
	handle = must_register(_metadata, both, 1, TIMEOUT);
	touch(words, handle, 77);
	seen = map_words(reader, PROT_READ);
	EXPECT_NE(MAP_FAILED, (void *)seen);
	if (seen != MAP_FAILED) {
		struct iovec local = { &handle, 8 };
		struct iovec remote = { &seen[(__u32)handle], 8 };
		int mem = open("/proc/self/mem", O_RDWR);
		int zero = open("/dev/zero", O_RDONLY);

		EXPECT_EQ(stamped(handle, 77), load(seen, handle));
		EXPECT_EQ(-EACCES, tw_ret(mprotect(seen, WORDS_SIZE,
						   PROT_READ | PROT_WRITE)));
		EXPECT_GT(0, process_vm_writev(getpid(), &local, 1, &remote, 1,
					       0));
		EXPECT_GT(0, pwrite(mem, &handle, 8,
				    (uintptr_t)&seen[(__u32)handle]));
		EXPECT_EQ(-EFAULT, tw_ret(read(zero, remote.iov_base, 8)));
		/* The wheel does not write its events there, either. */
		ASSERT_EQ(0, tw_register(both, 2, 0, 0, NULL));
		EXPECT_EQ(-EFAULT, tw_ret(read(reader, seen, sizeof(event))));
		EXPECT_EQ(stamped(handle, 77), load(words, handle));
		EXPECT_EQ(1, tw_read(reader, &event, 1));
		close(zero);
		close(mem);
		munmap(seen, WORDS_SIZE);
	}
	munmap(words, WORDS_SIZE);
	close(reader);
	close(writer);
	close(both);
	ASSERT_EQ(0, tw_destroy_named(named.control, named.name));
	close(named.control);
}

/* A kernel before 5.11 changes a mapping's rights without asking the module. */
static bool kernel_asks_for_rights(void)
{
	unsigned int major, minor;
	struct utsname name;

	uname(&name);
	return sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 11));
}

/* A mapping cannot be split, and its rights cannot be changed in part. */
TEST_F(touch_words, mapping_stays_as_it_is)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	char *words = (char *)self->words;
	void *room = mmap(NULL, 4 * WORDS_SIZE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEEDS_KERNEL("a mapping of a device");
	ASSERT_NE(MAP_FAILED, room);
	EXPECT_EQ(-EINVAL, tw_ret(munmap(words, PAGE)));
	EXPECT_EQ(-EINVAL, tw_ret(munmap(words + PAGE, PAGE)));

	/* The mapping cannot grow, shrink, move or be doubled. */
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, 2 * WORDS_SIZE, 0));
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, 2 * WORDS_SIZE,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, PAGE, 0));
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, WORDS_SIZE,
				     MREMAP_MAYMOVE | MREMAP_FIXED, room));
	EXPECT_EQ(MAP_FAILED, mremap(words + PAGE, PAGE, PAGE,
				     MREMAP_MAYMOVE | MREMAP_FIXED,
				     (char *)room + WORDS_SIZE));
	EXPECT_EQ(MAP_FAILED, mremap(words, 0, WORDS_SIZE, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(words, 0, PAGE, MREMAP_MAYMOVE));
#ifdef MREMAP_DONTUNMAP
	EXPECT_EQ(MAP_FAILED, mremap(words, WORDS_SIZE, WORDS_SIZE,
				     MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
#endif
	if (!kernel_asks_for_rights())
		EXPECT_EQ(-EINVAL, tw_ret(mprotect(words, PAGE, PROT_READ)));
	for (int prot = 0; prot < 8 && kernel_asks_for_rights(); prot++) {
		EXPECT_EQ(-EACCES, tw_ret(mprotect(words, WORDS_SIZE, prot)));
		EXPECT_EQ(-EACCES, tw_ret(mprotect(words, PAGE, prot)));
	}
	EXPECT_NE(0, syscall(SYS_remap_file_pages, words, PAGE, 0, 1, 0));

	/* The mapping is still there, and still has the words. */
	touch(self->words, handle, 100);
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, self->fd, handle));
	expect_expiry(_metadata, self->fd, handle, 101 + TIMEOUT);
	/* Another mapping at its address ends it, as a munmap of the whole mapping does. */
	ASSERT_NE(MAP_FAILED, mmap(words, WORDS_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				   0));
	munmap(room, 4 * WORDS_SIZE);
}

/* Returns whether the mapping at @at has this flag in smaps. */
static bool mapping_has(const void *at, const char *flag)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	char line[512] = "", begins[32];
	bool here = false, has;

	snprintf(begins, sizeof(begins), "%08lx-", (unsigned long)at);
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, begins, strlen(begins)))
			here = true;
		else if (here && !strncmp(line, "VmFlags:", 8))
			break;
	}
	has = here && strstr(line, flag);
	if (file)
		fclose(file);
	return has;
}

/* A mapping is left out of core dumps and cannot be extended. */
TEST_F(touch_words, mapping_flags)
{
	NEEDS_KERNEL("a mapping of a device");
	EXPECT_TRUE(mapping_has(self->words, " dd"));
	EXPECT_TRUE(mapping_has(self->words, " de"));
}

TEST_F(touch_words, mapped_twice)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	__u64 *again = map_words(self->fd, PROT_READ | PROT_WRITE);
	__u64 *seen = map_words(self->fd, PROT_READ);

	ASSERT_NE(MAP_FAILED, (void *)again);
	ASSERT_NE(MAP_FAILED, (void *)seen);
	touch(again, handle, 100);
	EXPECT_EQ(stamped(handle, 100), load(self->words, handle));
	EXPECT_EQ(stamped(handle, 100), load(seen, handle));
	ASSERT_EQ(0, munmap(again, WORDS_SIZE));
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, self->fd, handle));
	touch(self->words, handle, 99);
	EXPECT_EQ(stamped(handle, 99), load(seen, handle));
	ASSERT_EQ(0, munmap(seen, WORDS_SIZE));
}

static sigjmp_buf after_fault;

static void on_fault(int sig)
{
	siglongjmp(after_fault, sig);
}

/* Returns the signal that a load or a store causes, or 0. */
static int fault_at(__u64 *word, bool store_there)
{
	struct sigaction action = { .sa_handler = on_fault }, bus, segv;
	int sig;

	sigaction(SIGBUS, &action, &bus);
	sigaction(SIGSEGV, &action, &segv);
	sig = sigsetjmp(after_fault, 1);
	if (!sig) {
		if (store_there)
			__atomic_store_n(word, 0, __ATOMIC_RELAXED);
		else
			__atomic_load_n(word, __ATOMIC_RELAXED);
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

/*
 * An access to a word that no token has had yet causes SIGBUS, because there is no
 * memory.
 */
TEST_F(touch_words, no_word_without_token)
{
	struct iovec local = { (char[8]){ }, 8 };
	struct iovec remote = { &self->words[0], 8 };
	int null = open("/dev/zero", O_RDWR), mem;
	struct timewheel_info before, after;
	__u64 handle, *words;

	NEEDS_KERNEL("a mapping of a device");
	EXPECT_EQ(SIGBUS, fault_at(&self->words[0], false));
	EXPECT_EQ(SIGBUS, fault_at(&self->words[0], true));
	EXPECT_EQ(SIGBUS, fault_at(&self->words[WORDS_SIZE / 8 - 1], true));
	EXPECT_GT(0, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(-EFAULT, tw_ret(read(null, self->words, 8)));
	mem = open("/proc/self/mem", O_RDWR);
	EXPECT_GT(0, pread(mem, local.iov_base, 8, (uintptr_t)self->words));
	close(mem);
	close(null);
	words = mmap(NULL, WORDS_SIZE, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, self->fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)words);
	EXPECT_EQ(SIGBUS, fault_at(&words[0], false));

	/*
	 * The accesses have allocated no memory. A registration allocates a page of
	 * words.
	 */
	ASSERT_EQ(0, tw_info(self->fd, &before));
	handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	ASSERT_EQ(0, tw_info(self->fd, &after));
	EXPECT_LE(before.bytes + PAGE, after.bytes);
	EXPECT_EQ(0, fault_at(&self->words[(__u32)handle], false));
	touch(words, handle, 100);
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, self->fd, handle));
	munmap(words, WORDS_SIZE);
}

/* No call such as madvise(2), mlock(2) or mremap(2) does harm to the mapping. */
TEST_F(touch_words, advice)
{
	const int all[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
		MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DONTFORK,
		MADV_DOFORK, MADV_MERGEABLE, MADV_UNMERGEABLE, MADV_HUGEPAGE,
		MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK,
		MADV_KEEPONFORK, MADV_COLD, MADV_PAGEOUT, 22, 23, 24, 25,
	};
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	char *words = (char *)self->words;

	NEEDS_KERNEL("a mapping of a device");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		touch(self->words, handle, 60 + i);
		madvise(words, WORDS_SIZE, all[i]);
		madvise(words, PAGE, all[i]);
		EXPECT_EQ(stamped(handle, 60 + i), load(self->words, handle)) {
			TH_LOG("advice %d", all[i]);
		}
	}
	for (int mode = 0; mode < 5; mode++) {
		unsigned long node = 1;
		void *page = words;
		int to = 0, status;

		touch(self->words, handle, 90 + mode);
		/* The flags are MPOL_MF_MOVE, without and with MPOL_MF_STRICT. */
		syscall(SYS_mbind, words, WORDS_SIZE, mode, &node, 8, 2);
		syscall(SYS_mbind, words, WORDS_SIZE, mode, &node, 8, 3);
		syscall(SYS_move_pages, 0, 1, &page, &to, &status, 2);
		syscall(SYS_migrate_pages, 0, 8, &node, &node);
		EXPECT_EQ(stamped(handle, 90 + mode), load(self->words, handle));
	}
	/* A program cannot have the words in its core dumps. */
	EXPECT_NE(0, madvise(words, WORDS_SIZE, MADV_DODUMP));
	mlock(words, WORDS_SIZE);
	munlock(words, WORDS_SIZE);
	EXPECT_LE(-1, mlockall(MCL_CURRENT | MCL_FUTURE));
	munlockall();
	msync(words, WORDS_SIZE, MS_SYNC);
	msync(words, WORDS_SIZE, MS_INVALIDATE | MS_ASYNC);
	touch(self->words, handle, 100);
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, self->fd, handle));
}

/* A store by another way into the same memory is a touch, too. */
TEST_F(touch_words, stores_of_other_kinds)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT), word, got;
	struct iovec local = { &word, 8 };
	struct iovec remote = { &self->words[(__u32)handle], 8 };
	int mem = open("/proc/self/mem", O_RDWR), pipes[2];

	word = stamped(handle, 101);
	ASSERT_EQ(0, tw_advance(self->fd, 104));
	EXPECT_EQ(8, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(102 + TIMEOUT, due_of(_metadata, self->fd, handle));
	word = stamped(handle, 102);
	EXPECT_EQ(8, pwrite(mem, &word, 8, (uintptr_t)remote.iov_base));
	EXPECT_EQ(103 + TIMEOUT, due_of(_metadata, self->fd, handle));
	ASSERT_EQ(0, pipe(pipes));
	word = stamped(handle, 103);
	ASSERT_EQ(8, write(pipes[1], &word, 8));
	ASSERT_EQ(8, read(pipes[0], remote.iov_base, 8));
	EXPECT_EQ(104 + TIMEOUT, due_of(_metadata, self->fd, handle));
	local.iov_base = &got;
	EXPECT_EQ(8, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_EQ(word, got);
	close(mem);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * A page of words that the kernel still uses elsewhere outlives the wheel. A pipe has
 * the word of @handle, and an io_uring keeps its page as a fixed buffer, or refuses it.
 */
TEST_F(touch_words, page_outlives_the_wheel)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT), got;
	struct iovec page = { self->words, PAGE };
	struct iovec word = { &self->words[(__u32)handle], 8 };
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_WRITE_FIXED, .off = -1, .len = 8,
		.addr = (uintptr_t)word.iov_base,
	};
	struct tw_uring ring;
	const bool opened = !tw_uring_open(&ring);
	struct io_uring_cqe cqe;
	int pipes[2], ret;

	touch(self->words, handle, 102);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_EQ(8, vmsplice(pipes[1], &word, 1, 0));
	ret = !opened ? -EOPNOTSUPP :
	      tw_ret(syscall(SYS_io_uring_register, ring.fd,
			     IORING_REGISTER_BUFFERS, &page, 1));
	EXPECT_TRUE(!ret || ret == -EOPNOTSUPP || ret == -EFAULT) {
		TH_LOG("%d", ret);
	}
	new_wheel(_metadata, self, TW_SEC, 0);
	for (int i = 0; i < 500; i++)
		must_register(_metadata, self->fd, i, TIMEOUT);
	if (!ret) {
		sqe.fd = pipes[1];
		ASSERT_EQ(1, tw_uring_submit(&ring, &sqe));
		ASSERT_TRUE(tw_uring_next(&ring, true, &cqe));
		EXPECT_EQ(8, cqe.res);
	}
	for (int i = 0; i < 1 + !ret; i++) {
		ASSERT_EQ(8, read(pipes[0], &got, 8));
		EXPECT_EQ(stamped(handle, 102), got);
	}
	if (opened)
		tw_uring_close(&ring);
	close(pipes[0]);
	close(pipes[1]);
}

/* A mapping holds the wheel and the module, as an open file does. */
TEST_F(touch_words, close_and_keep_the_mapping)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	long refs = tw_refcnt();

	NEEDS_KERNEL("a mapping of a device");
	touch(self->words, handle, 102);
	close(self->fd);
	EXPECT_EQ(refs, tw_refcnt());
	EXPECT_EQ(stamped(handle, 102), load(self->words, handle));
	/* The words are there also after the page table entries are gone. */
	madvise(self->words, WORDS_SIZE, MADV_DONTNEED);
	EXPECT_EQ(stamped(handle, 102), load(self->words, handle));
	EXPECT_TRUE(touch_checked(self->words, handle, 103));
	EXPECT_EQ(refs, tw_refcnt());
	ASSERT_EQ(0, munmap(self->words, WORDS_SIZE));
	if (refs > 0)
		EXPECT_EQ(refs - 1, tw_refcnt());
	self->words = NULL;
	self->fd = -1;
}

/* A child has a mapping of its own, which it can unmap. An exec(2) unmaps it. */
TEST_F(touch_words, fork_and_exec)
{
	__u64 handle = must_register(_metadata, self->fd, 1, TIMEOUT);
	long refs = tw_refcnt();
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		touch(self->words, handle, 100);
		_exit(munmap(self->words, WORDS_SIZE));
	}
	EXPECT_EQ(0, tw_reap(child));
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, self->fd, handle));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	EXPECT_EQ(0, tw_reap(child));
	EXPECT_EQ(refs, tw_refcnt());
	EXPECT_TRUE(touch_checked(self->words, handle, 100));
}

/* Two processes have opened a wheel by its name, and one of them is killed. */
TEST_F(touch_words, named_wheel_of_two_processes)
{
	struct timewheel_event event;
	struct named named;
	int fd, status, pipes[2];
	__u64 handle, *words;
	pid_t child;
	char c;

	NEEDS_KERNEL("other processes see a wheel");
	make_named(_metadata, &named);
	fd = tw_open_named(named.name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	words = map_words(fd, PROT_READ | PROT_WRITE);
	ASSERT_NE(MAP_FAILED, (void *)words);
	handle = must_register(_metadata, fd, 1, TIMEOUT);
	ASSERT_EQ(0, pipe(pipes));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		__u64 *mine = map_words(tw_open_named(named.name, O_RDWR),
					PROT_READ | PROT_WRITE);

		if (!touch_checked(mine, handle, 100))
			_exit(1);
		c = write(pipes[1], "x", 1);
		for (;;)
			store(mine, handle, stamped(handle, 100));
	}
	ASSERT_EQ(1, read(pipes[0], &c, 1));
	kill(child, SIGKILL);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(101 + TIMEOUT, due_of(_metadata, fd, handle));
	EXPECT_TRUE(touch_checked(words, handle, 100));
	expect_expiry(_metadata, fd, handle, 101 + TIMEOUT);

	/* A destroyed wheel's memory stays as long as the mapping. */
	handle = must_register(_metadata, fd, 1, TIMEOUT);
	ASSERT_EQ(0, tw_destroy_named(named.control, named.name));
	EXPECT_EQ(-ENODEV, tw_map_ret(WORDS_SIZE, PROT_READ, MAP_SHARED, fd, 0));
	EXPECT_EQ(-ENODEV, tw_map_ret(PAGE, PROT_READ, MAP_SHARED, fd, PAGE));
	touch(words, handle, 100);
	madvise(words, WORDS_SIZE, MADV_DONTNEED);
	EXPECT_EQ(stamped(handle, 100), load(words, handle));
	EXPECT_EQ(-ENODEV, tw_ret(tw_read(fd, &event, 1)));
	close(fd);
	EXPECT_EQ(stamped(handle, 100), load(words, handle));
	munmap(words, WORDS_SIZE);
	close(named.control);
	close(pipes[0]);
	close(pipes[1]);
}

/*
 * P9: the words are charged to the process that registers, and credited when the last
 * mapping is gone. The test needs root and a version 2 hierarchy with the memory
 * controller.
 */
#define MANY		200000ULL

/*
 * Registers MANY tokens in the group. Stores the group's charge in @full, and in
 * @mapped the charge after all words were used. Returns 0, or the number of the step
 * that failed.
 */
static int charge_in_group(bool with_words, __u64 *full, __u64 *mapped)
{
	size_t len = words_size(MANY);
	__u32 flags = TIMEWHEEL_SETUP_NO_COOKIES;
	char *words = MAP_FAILED;
	int fd;

	fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd < 0 || !tw_group_enter() ||
	    tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC, MANY,
		     flags | (with_words ? TIMEWHEEL_SETUP_TOUCH_WORDS : 0), 0))
		return 1;
	if (tw_register_many(fd, 0, MANY, 0, TW_SEC) != MANY)
		return 2;
	*full = tw_group_charged();
	if (with_words) {
		words = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			     0);
		if (words == MAP_FAILED)
			return 3;
		for (size_t at = 0; at < MANY * 8; at += PAGE)
			words[at]++;
	}
	*mapped = tw_group_charged();
	return 0;
}

TEST_F_TIMEOUT(touch_words, charged_to_the_cgroup, 120)
{
	__u64 *figures = tw_shared_memory(PAGE);
	/* The stock of the CPUs matters only if pages are large. */
	const __u64 slack = sysconf(_SC_NPROCESSORS_ONLN) *
			    (TW_GROUP_STOCK - 64 * 4096);
	__u64 left = 0;

	NEEDS_KERNEL("a cgroup is charged");
	ASSERT_NE(MAP_FAILED, (void *)figures);
	TW_MAKE_GROUP(256 << 20);
	for (int with = 0; with < 2; with++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child)
			_exit(charge_in_group(with, &figures[2 * with],
					      &figures[2 * with + 1]));
		ASSERT_EQ(0, tw_reap(child));
	}
	/*
	 * The words are 8 bytes more for each token, mapped or not. The limits leave
	 * room, because the kernel charges many pages at a time.
	 */
	EXPECT_LE(figures[0] + MANY * 4, figures[2] + slack);
	EXPECT_GE(figures[2] + MANY * 3 + slack, figures[3]);
	for (int tries = 0; tries < 300; tries++) {
		left = tw_group_charged();
		if (left < MANY)
			break;
		tw_sleep_ms(20);
	}
	EXPECT_GT(MANY * 8 + slack, left);
	EXPECT_EQ(0, rmdir(TW_GROUP));
	munmap(figures, PAGE);
}

TEST_HARNESS_MAIN
