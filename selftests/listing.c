// SPDX-License-Identifier: GPL-2.0-only
/*
 * TIMEWHEEL_IOC_LIST lists each token that was pending all the while exactly once, and
 * each other token at most once, with all fields right, even if much goes on meanwhile.
 * No other call waits for a listing. TIMEWHEEL_IOC_GET tells the same records by key. A
 * listed token can be registered again as it was.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "tw_fault.h"
#include "tw_test.h"

#define MANY		10000
#define ROOM		(2 * MANY)	/* more tokens than any wheel here has */
#define SLOTS		60
#define S64_LAST	0x7fffffffffffffffULL

/* Lists tokens by one call, from *cursor on. Returns their number, or -errno. */
static int list_some(int fd, __u64 *cursor, __u64 from, __u64 to,
		     struct timewheel_token *tokens, __u32 count)
{
	struct timewheel_list list = {
		.size = sizeof(list), .cursor = *cursor, .from = from, .to = to,
		.tokens = (__u64)(uintptr_t)tokens, .count = count,
		.token_size = sizeof(*tokens),
	};

	if (ioctl(fd, TIMEWHEEL_IOC_LIST, &list) < 0)
		return -errno;
	*cursor = list.cursor;
	return list.listed <= count ? (int)list.listed : -EOVERFLOW;
}

/*
 * Lists tokens from *cursor to the end, in calls for at most @count tokens. Returns
 * their number, or -errno; -ENOSPC if there are @room tokens or more.
 */
static int list_rest(int fd, __u64 *cursor, __u64 from, __u64 to,
		     struct timewheel_token *tokens, __u32 room, __u32 count)
{
	__u32 n = 0;

	while (*cursor != TIMEWHEEL_NEVER) {
		__u32 left = room - n;
		int ret = left ? list_some(fd, cursor, from, to, tokens + n,
					   left < count ? left : count) : -ENOSPC;

		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

static int list_all(int fd, __u64 from, __u64 to,
		    struct timewheel_token *tokens, __u32 room, __u32 count)
{
	__u64 cursor = 0;

	return list_rest(fd, &cursor, from, to, tokens, room, count);
}

/* The wheel is manual and has ticks of 1 s. */
FIXTURE(listing) {
	int fd;
	struct timewheel_token *tokens;	/* room for ROOM tokens */
};

FIXTURE_SETUP(listing)
{
	self->tokens = calloc(ROOM, sizeof(*self->tokens));
	ASSERT_NE(NULL, self->tokens);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, SLOTS, ROOM, 0));
}

FIXTURE_TEARDOWN(listing)
{
	close(self->fd);
	free(self->tokens);
}

/* Expects the tokens of the ids @first, @first + 1, ..., @last, each of them once. */
static void expect_ids(struct __test_metadata *_metadata,
		       const struct timewheel_token *tokens, int n,
		       __u64 first, __u64 last)
{
	static bool seen[ROOM];

	memset(seen, 0, sizeof(seen));
	EXPECT_EQ((int)(last + 1 - first), n);
	for (int i = 0; i < n; i++) {
		__u64 id = tokens[i].id;

		ASSERT_LE(first, id);
		ASSERT_GE(last, id);
		ASSERT_FALSE(seen[id - first]) {
			TH_LOG("%llu is listed twice", id);
		}
		seen[id - first] = true;
	}
}

/*
 * The first listing of an empty wheel tells the end, and a listing from the end does,
 * too.
 */
TEST_F(listing, empty)
{
	__u64 cursor = 0;

	for (int again = 0; again < 2; again++) {
		EXPECT_EQ(0, list_some(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
				       self->tokens, 10));
		EXPECT_EQ((__u64)TIMEWHEEL_NEVER, cursor);
	}
	/* A wheel that has become empty is listed like a new wheel. */
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_SEC, 1, NULL));
	ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
	cursor = 0;
	EXPECT_EQ(0, list_rest(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
			       self->tokens, ROOM, 10));
	for (int i = 0; i < 10; i++)
		EXPECT_EQ(0ULL, self->tokens[i].handle);
}

/* Nothing is written behind the listed tokens, which are no more than @count. */
TEST_F(listing, stays_within_the_array)
{
	__u64 cursor = 0;

	ASSERT_EQ(20UL, tw_register_many(self->fd, 0, 20, 0, TW_SEC));
	EXPECT_EQ(7, list_some(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
			       self->tokens, 7));
	EXPECT_NE((__u64)TIMEWHEEL_NEVER, cursor);
	EXPECT_NE(0ULL, self->tokens[6].handle);
	EXPECT_EQ(0ULL, self->tokens[7].handle);
	EXPECT_EQ(13, list_rest(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
				self->tokens + 7, ROOM - 7, 100));
	expect_ids(_metadata, self->tokens, 20, 0, 19);
	EXPECT_EQ(0ULL, self->tokens[20].handle);
}

/* Some tokens are due, some are in the first lap, and some in later laps. */
TEST_F(listing, fields)
{
	const __u64 hand = 1000, n = 3000;
	static __u64 handles[3001];
	struct timewheel_token got;

	for (__u64 id = 1; id <= n; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC - id, ~id,
					 &handles[id]));
	ASSERT_EQ(0, tw_advance(self->fd, hand));
	ASSERT_EQ((int)n, list_all(self->fd, 0, TIMEWHEEL_NEVER, self->tokens,
				   ROOM, 100));
	expect_ids(_metadata, self->tokens, n, 1, n);
	for (__u64 i = 0; i < n; i++) {
		const struct timewheel_token *token = &self->tokens[i];
		__u64 id = token->id;

		ASSERT_EQ(handles[id], token->handle);
		ASSERT_EQ(~id, token->cookie);
		ASSERT_EQ(id * TW_SEC, token->deadline);
		ASSERT_EQ(id <= hand ? 0 : (id - hand - 1) / SLOTS,
			  token->cycle);
		ASSERT_EQ(id % SLOTS, token->slot);
		ASSERT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token->state);

		ASSERT_EQ(id <= hand ? 0 : (id - hand) * TW_SEC, token->left);
		ASSERT_EQ(id * TW_SEC - id, token->timeout);
		/* GET writes the same record as LIST. */
		ASSERT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
				    token->handle, &got));
		ASSERT_EQ(0, memcmp(&got, token, sizeof(got)));
	}
}

TEST_F(listing, each_token_exactly_once)
{
	const __u32 counts[] = { 1, 7, 1000, MANY - 1, MANY, ROOM, 0xffffffff };

	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0,
						 50 * TW_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		int n = list_all(self->fd, 0, TIMEWHEEL_NEVER, self->tokens,
				 ROOM, counts[i]);

		expect_ids(_metadata, self->tokens, n, 0, MANY - 1);
	}
}

/* Few of many tokens are left, far apart. */
TEST_F(listing, few_that_are_left_of_many)
{
	const __u32 counts[] = { 1, 7, 1000 };
	__u64 left = 0;

	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0,
						 50 * TW_SEC));
	for (__u64 id = 0; id < MANY; id++) {
		left += !(id % 997);
		if (id % 997)
			ASSERT_EQ(0, tw_cancel(self->fd, 0, id));
	}
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		EXPECT_EQ((int)left,
			  list_all(self->fd, 0, TIMEWHEEL_NEVER, self->tokens,
				   ROOM, counts[i]));
		for (__u64 k = 0; k < left; k++)
			self->tokens[k].id /= 997;
		expect_ids(_metadata, self->tokens, left, 0, left - 1);
	}
}

#define expect_between(from, to, first, last)				\
	expect_ids(_metadata, self->tokens,				\
		   list_all(self->fd, from, to, self->tokens, ROOM, 7),	\
		   first, last)

#define expect_none_between(from, to)					\
	EXPECT_EQ(0, list_all(self->fd, from, to, self->tokens, ROOM, 7))

/*
 * The id of each token is its deadline in seconds. Both ends of a range count, to the
 * ns.
 */
TEST_F(listing, from_and_to)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;

	for (__u64 id = 1; id <= 100; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, 0, NULL));

	expect_between(0, TIMEWHEEL_NEVER, 1, 100);
	expect_between(TW_SEC, 100 * TW_SEC, 1, 100);
	expect_between(50 * TW_SEC, 50 * TW_SEC, 50, 50);
	expect_between(50 * TW_SEC - 1, 50 * TW_SEC + 1, 50, 50);
	expect_between(50 * TW_SEC + 1, 52 * TW_SEC - 1, 51, 51);
	expect_between(50 * TW_SEC, TIMEWHEEL_NEVER, 50, 100);
	expect_between(50 * TW_SEC, TIMEWHEEL_NEVER - 1, 50, 100);
	expect_between(0, 50 * TW_SEC, 1, 50);
	expect_between(100 * TW_SEC, TIMEWHEEL_NEVER, 100, 100);
	expect_between(0, TW_SEC, 1, 1);

	expect_none_between(50 * TW_SEC + 1, 51 * TW_SEC - 1);
	expect_none_between(0, 0);
	expect_none_between(0, TW_SEC - 1);
	expect_none_between(100 * TW_SEC + 1, TIMEWHEEL_NEVER);
	expect_none_between(TIMEWHEEL_NEVER, TIMEWHEEL_NEVER);
	expect_none_between(60 * TW_SEC, 40 * TW_SEC);
	expect_none_between(TIMEWHEEL_NEVER, 0);
	expect_none_between(50 * TW_SEC, 50 * TW_SEC - 1);

	/* The last deadline of all can be listed, also when the other tokens are due. */
	ASSERT_EQ(0, tw_advance(self->fd, 200));
	ASSERT_EQ(0, tw_register_at(self->fd, 101, last, 0));
	expect_between(last, last, 101, 101);
	expect_between(101 * TW_SEC, TIMEWHEEL_NEVER, 101, 101);
	expect_between(0, last - 1, 1, 100);
	expect_none_between(last + 1, TIMEWHEEL_NEVER);
}

/* A listing finds the token that fits, however many other tokens lie between. */
TEST_F(listing, one_of_many_fits)
{
	const __u64 rare[] = { 0, 1, MANY / 2, MANY - 1 };

	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0,
						 50 * TW_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(rare); i++) {
		ASSERT_EQ(0, tw_move(self->fd, 0, rare[i], 70 * TW_SEC));
		expect_between(60 * TW_SEC, 80 * TW_SEC, rare[i], rare[i]);
		ASSERT_EQ(0, tw_move(self->fd, 0, rare[i], 50 * TW_SEC));
	}
	expect_none_between(60 * TW_SEC, 80 * TW_SEC);
}

/* Ids and cookies are 0 on a wheel without them, and all other fields are there. */
TEST_F(listing, wheels_without_ids_and_cookies)
{
	for (__u32 flags = 0; flags < 4; flags++) {
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		bool ids = !(flags & TIMEWHEEL_SETUP_NO_IDS);
		bool cookies = !(flags & TIMEWHEEL_SETUP_NO_COOKIES);
		__u64 handles[100];
		int n;

		ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, SLOTS, TW_SEC,
				      100, flags, 0));
		for (__u64 i = 0; i < 100; i++)
			ASSERT_EQ(0, tw_register(fd, ids ? ~i : 0,
						 (i + 1) * TW_SEC,
						 cookies ? i + 7 : 0,
						 &handles[i]));
		n = list_all(fd, 0, TIMEWHEEL_NEVER, self->tokens, ROOM, 7);
		ASSERT_EQ(100, n);
		for (int k = 0; k < n; k++) {
			struct timewheel_token *token = &self->tokens[k];
			__u64 i = token->deadline / TW_SEC - 1;

			ASSERT_GT(100ULL, i);
			EXPECT_EQ(ids ? ~i : 0, token->id);
			EXPECT_EQ(cookies ? i + 7 : 0, token->cookie);
			EXPECT_EQ(handles[i], token->handle);
			EXPECT_EQ(i / SLOTS, token->cycle);
			EXPECT_EQ((i + 1) % SLOTS, token->slot);
			token->id = i;
		}
		expect_ids(_metadata, self->tokens, n, 0, 99);
		close(fd);
	}
}

/*
 * Newer programs know larger tokens: fields that the module does not know are zero, even
 * if there is no token. GET by id writes a record for each token, and LIST for each that
 * is there.
 */
TEST_F(listing, larger_tokens)
{
	const __u32 known = sizeof(struct timewheel_token), n = 30;
	const __u32 sizes[] = { known, known + 8, known + 24, 4096 };
	char zero[4096] = {};
	__u64 ids[30];

	for (__u64 i = 0; i < n; i++) {
		ids[i] = i;
		if (i % 3)
			ASSERT_EQ(0, tw_register(self->fd, i, TW_SEC, 0, NULL));
	}
	for (size_t s = 0; s < 2 * ARRAY_SIZE(sizes); s++) {
		const __u32 size = sizes[s / 2], count = s % 2 ? n : n / 3 * 2;
		char *array = malloc((count + 1) * size);
		struct timewheel_list list = {
			.size = sizeof(list), .to = TIMEWHEEL_NEVER,
			.tokens = (__u64)(uintptr_t)array, .count = count,
			.token_size = size,
		};
		struct timewheel_get get = {
			.size = sizeof(get), .keys = (__u64)(uintptr_t)ids,
			.tokens = (__u64)(uintptr_t)array, .count = count,
			.token_size = size,
		};

		ASSERT_NE(NULL, array);
		memset(array, 0xcc, (count + 1) * size);
		if (s % 2) {
			ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_GET, &get));
			ASSERT_EQ(count, get.done);
		} else {
			ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
			ASSERT_EQ(count, list.listed);
		}
		for (__u32 i = 0; i < count; i++) {
			const __u64 id = s % 2 ? i : 1 + i / 2 * 3 + i % 2;
			struct timewheel_token token;

			memcpy(&token, array + i * size, known);
			EXPECT_EQ(id % 3 ? id : 0, token.id);
			EXPECT_EQ(!(id % 3), !token.handle);
			EXPECT_EQ(id % 3 ? TIMEWHEEL_STATE_PENDING :
				  TIMEWHEEL_STATE_NONE, token.state);
			EXPECT_EQ(0, memcmp(zero, array + i * size + known,
					    size - known));
		}
		for (__u32 i = 0; i < size; i++)
			ASSERT_EQ(0xcc, (__u8)array[count * size + i]);
		free(array);
	}
}

static void ignore(int signal)
{
	(void)signal;
}

/* GET writes this record, byte by byte, for a key that names no token. */
static const struct timewheel_token none;

#define KEYS	1000

/* One key in ten names no token: its token has been cancelled, or was never there. */
TEST_F(listing, get_many_with_missing_ones)
{
	const __u32 counts[] = { 0, 1, 2, 7, 8, 9, 16, 63, 64, 65, KEYS };
	static __u64 ids[KEYS], handles[KEYS];
	static bool there[KEYS];
	struct timewheel_token untouched;
	__u32 done;

	memset(&untouched, 0xcc, sizeof(untouched));
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	for (__u64 i = 0; i < KEYS; i++) {
		/* The keys have an order of their own. */
		ids[i] = i * 389 % KEYS;
		there[i] = i % 10;
		if (i % 20 != 10)
			ASSERT_EQ(0, tw_register(self->fd, ids[i],
						 (i + 1) * TW_SEC - i, ~i,
						 &handles[i]));
		if (!(i % 20))
			ASSERT_EQ(0, tw_cancel(self->fd, 0, ids[i]));
	}
	for (size_t c = 0; c < 2 * ARRAY_SIZE(counts); c++) {
		const __u32 count = counts[c / 2];
		const bool by_handle = c % 2;

		memset(self->tokens, 0xcc, (KEYS + 1) * sizeof(none));
		done = 0xcccc;
		ASSERT_EQ(0, tw_get_keys(self->fd, by_handle ?
					 TIMEWHEEL_OPF_BY_HANDLE : 0,
					 by_handle ? handles : ids, count,
					 self->tokens, &done));
		EXPECT_EQ(count, done);
		for (__u64 i = 0; i < count; i++) {
			const struct timewheel_token expected = {
				.id = ids[i], .handle = handles[i],
				.cookie = ~i, .deadline = (i + 6) * TW_SEC,
				.left = (i + 1) * TW_SEC,
				.timeout = (i + 1) * TW_SEC - i,
				.cycle = i / SLOTS, .slot = (i + 6) % SLOTS,
				.state = TIMEWHEEL_STATE_PENDING,
			};

			ASSERT_EQ(0, memcmp(there[i] ? &expected : &none,
					    &self->tokens[i], sizeof(none))) {
				TH_LOG("key %llu of %u", i, count);
			}
		}
		ASSERT_EQ(0, memcmp(&untouched, &self->tokens[count],
				    sizeof(untouched)));
	}
	/* A call may get the same token as often as it likes. */
	for (__u64 i = 0; i < KEYS; i++)
		ids[i] = 389;
	ASSERT_EQ(0, tw_get_keys(self->fd, 0, ids, KEYS, self->tokens, &done));
	for (__u64 i = 0; i < KEYS; i++)
		ASSERT_EQ(handles[1], self->tokens[i].handle);
}

/* Registers a token again, as the description of struct timewheel_token says. */
static int register_again(int fd, const struct timewheel_token *token)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = token->id, .cookie = token->cookie,
		.time = token->period ? token->base : token->deadline,
		.timeout = token->timeout, .period = token->period,
	};

	return tw_ret(tw_op(fd, &op));
}

#define AGAIN	100

static int make_wheel(struct timewheel_setup setup)
{
	int fd = open(TW_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	setup.slots = SLOTS;
	setup.max_tokens = AGAIN;
	setup.flags = TIMEWHEEL_SETUP_PERIODS;
	return tw_set_up(fd, setup) < 0 ? -1 : fd;
}

/*
 * Expects that each token listed on @from, when it is registered on @to, is there as it
 * was.
 */
static void expect_same_again(struct __test_metadata *_metadata, int from, int to)
{
	struct timewheel_token old[AGAIN];
	int n = list_all(from, 0, TIMEWHEEL_NEVER, old, AGAIN, 7);

	ASSERT_LT(0, n);
	for (int i = 0; i < n; i++) {
		struct timewheel_token new;

		ASSERT_EQ(0, register_again(to, &old[i]));
		ASSERT_EQ(0, tw_get(to, 0, old[i].id, &new));
		EXPECT_NE(0ULL, new.handle);
		new.handle = old[i].handle;
		/* The delivery and the attempts do not survive. */
		EXPECT_EQ(0U, new.delivery);
		EXPECT_EQ(0U, new.attempts);
		old[i].delivery = 0;
		old[i].attempts = 0;
		EXPECT_EQ(0, memcmp(&old[i], &new, sizeof(new))) {
			TH_LOG("token %llu", new.id);
		}
	}
}

/* Expects the same next @n events of token @id on both wheels, field by field. */
static void expect_same_events(struct __test_metadata *_metadata, int a, int b,
			       __u64 id, int n)
{
	for (int i = 0; i < n; i++) {
		struct timewheel_event event[2];
		struct timewheel_token token;

		ASSERT_EQ(0, tw_get(a, 0, id, &token));
		ASSERT_EQ(0, tw_advance(a, token.deadline / TW_SEC));
		ASSERT_EQ(0, tw_advance(b, token.deadline / TW_SEC));
		ASSERT_EQ(1, tw_read(a, &event[0], 1));
		ASSERT_EQ(1, tw_read(b, &event[1], 1));
		EXPECT_EQ(id, event[0].id);
		event[1].handle = event[0].handle;
		EXPECT_EQ(0, memcmp(&event[0], &event[1], sizeof(event[0]))) {
			TH_LOG("event %d: %llu and %llu", i, event[0].deadline,
			       event[1].deadline);
		}
	}
}

/*
 * The tokens that are registered again are periodic (to the ns, also after some
 * periods), idle, due, or without a timeout. Each is as it was.
 */
TEST_F(listing, registered_again_on_a_manual_wheel)
{
	const __u64 period = 7 * TW_SEC + 123456789;
	const struct timewheel_setup setup = {
		.clock = TIMEWHEEL_CLOCK_MANUAL, .tick = TW_SEC, .start = 1000,
	};
	struct timewheel_setup later = setup;
	struct timewheel_op periodic = {
		.code = TIMEWHEEL_OP_REGISTER, .flags = TIMEWHEEL_OPF_ABSOLUTE,
		.id = 4, .cookie = 70, .time = 1003 * TW_SEC + 1,
		.period = period,
	};
	struct timewheel_event event, again;
	struct timewheel_token token;
	int from = make_wheel(setup), to;

	ASSERT_LE(0, from);
	/* Token 1 is touched on tick 1012, and idle since then. */
	ASSERT_EQ(0, tw_register(from, 1, 100 * TW_SEC, 71, NULL));
	/*
	 * Tokens 2 and 3 have a point of time, without and with a timeout. Token 5
	 * comes due.
	 */
	ASSERT_EQ(0, tw_register_at(from, 2, 2000 * TW_SEC, 72));
	ASSERT_EQ(0, tw_register_timeout(from, TIMEWHEEL_OPF_ABSOLUTE, 3,
					 3000 * TW_SEC, 5 * TW_SEC + 1));
	ASSERT_EQ(0, tw_register(from, 5, 15 * TW_SEC + 1, 75, NULL));
	ASSERT_EQ(0, tw_op(from, &periodic));
	for (int n = 0; n < 2; n++) {
		ASSERT_EQ(0, tw_advance(from, 1004 + n * 8));
		ASSERT_EQ(1, tw_read(from, &event, 1));
		EXPECT_EQ(4ULL, event.id);
	}
	ASSERT_EQ(0, tw_get(from, 0, 4, &token));
	EXPECT_EQ(1003 * TW_SEC + 1 + 2 * period, token.base);
	EXPECT_EQ(period, token.period);
	EXPECT_EQ(0ULL, token.timeout);
	ASSERT_EQ(0, tw_touch(from, 0, 1));
	ASSERT_EQ(0, tw_advance(from, 1016));

	later.start = 1016;
	to = make_wheel(later);
	ASSERT_LE(0, to);
	expect_same_again(_metadata, from, to);
	/* The idle token still has its timeout. */
	ASSERT_EQ(0, tw_touch(to, 0, 1));
	ASSERT_EQ(0, tw_get(to, 0, 1, &token));
	EXPECT_EQ(1116 * TW_SEC, token.deadline);
	for (int id = 1; id <= 5; id++) {
		ASSERT_LE(0, id == 4 ? 0 : tw_cancel(from, 0, id));
		ASSERT_LE(0, id == 4 ? 0 : tw_cancel(to, 0, id));
	}
	/* Each of a thousand periods ends at the same ns. */
	expect_same_events(_metadata, from, to, 4, 1000);
	close(to);

	/*
	 * A token that is some periods late gives the same event, with as many missed
	 * periods.
	 */
	ASSERT_EQ(0, tw_get(from, 0, 4, &token));
	later.start = token.deadline / TW_SEC + 100;
	ASSERT_EQ(0, tw_advance(from, later.start));
	ASSERT_EQ(0, tw_get(from, 0, 4, &token));
	to = make_wheel(later);
	ASSERT_LE(0, to);
	ASSERT_EQ(0, register_again(to, &token));
	ASSERT_EQ(1, tw_read(from, &event, 1));
	ASSERT_EQ(1, tw_read(to, &again, 1));
	EXPECT_LT(10U, event.missed);
	again.handle = event.handle;
	EXPECT_EQ(0, memcmp(&event, &again, sizeof(event)));
	expect_same_events(_metadata, from, to, 4, 10);
	close(to);
	close(from);
}

/*
 * A held token is due at once where it is registered again, because its reader is gone.
 */
TEST_F(listing, held_and_registered_again)
{
	const struct timewheel_setup setup = {
		.clock = TIMEWHEEL_CLOCK_MANUAL, .tick = TW_SEC, .start = 1000,
		.lease = 30 * TW_SEC, .max_held = 10,
	};
	struct timewheel_event events[3];
	struct timewheel_token token;
	int from = make_wheel(setup), to = make_wheel(setup);

	ASSERT_LE(0, from);
	ASSERT_LE(0, to);
	ASSERT_EQ(0, tw_register(from, 1, 10 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register_periodic(from, TIMEWHEEL_OPF_ABSOLUTE, 2,
					  1010 * TW_SEC - 1, 20 * TW_SEC + 1));
	ASSERT_EQ(0, tw_advance(from, 1012));
	ASSERT_EQ(0, tw_advance(to, 1012));
	ASSERT_EQ(2, tw_read(from, events, 3));
	for (__u64 id = 1; id <= 2; id++) {
		ASSERT_EQ(0, tw_get(from, 0, id, &token));
		EXPECT_EQ((__u32)TIMEWHEEL_STATE_HELD, token.state);
		EXPECT_EQ(0ULL, token.deadline);
		EXPECT_EQ(1042 * TW_SEC, token.lease_end);
		EXPECT_EQ(id == 2 ? 1010 * TW_SEC - 1 : 0, token.base);
		ASSERT_EQ(0, register_again(to, &token));
		ASSERT_EQ(1, tw_read(to, events, 3));
		EXPECT_EQ(id, events[0].id);
		EXPECT_EQ(1U, events[0].delivery);
		if (id == 2)
			EXPECT_EQ(1010 * TW_SEC, events[0].deadline);
		EXPECT_EQ(0, tw_ack(to, &events[0]));
	}
	/* The next period of token 2 is as it was before. */
	ASSERT_EQ(0, tw_get(to, 0, 2, &token));
	EXPECT_EQ(1030 * TW_SEC, token.base);
	EXPECT_EQ(20 * TW_SEC + 1, token.period);
	close(to);
	close(from);
}

/* A made-up cursor lists some tokens or is refused, and has no other effect. */
TEST_F(listing, made_up_cursors)
{
	const __u64 cursors[] = {
		1, 99, 100, 101, 255, 256, 65535, 65536, 0x7fffffff, 0x80000000,
		0xfffffffe, 0xffffffff, 0x100000000, 0x100000001, 1ULL << 63,
		TIMEWHEEL_NEVER - 1,
	};

	ASSERT_EQ(100UL, tw_register_many(self->fd, 0, 100, 0, TW_SEC));
	for (size_t i = 0; i < ARRAY_SIZE(cursors); i++) {
		__u64 cursor = cursors[i];
		int n = list_rest(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
				  self->tokens, ROOM, 7);

		EXPECT_TRUE(n == -EINVAL || (n >= 0 && n <= 100)) {
			TH_LOG("%#llx: %d", cursors[i], n);
		}
		for (int k = 0; k < n; k++)
			EXPECT_GT(100ULL, self->tokens[k].id);
	}
}

/*
 * Half of the tokens are listed, and then all slots change: the listed tokens are
 * cancelled, and their ids and memory go to new tokens; the other tokens move to where
 * the listed tokens were.
 */
TEST_F(listing, changes_between_two_calls)
{
	const int half = MANY / 2;
	static bool listed[MANY];
	__u64 cursor = 0;
	int n = 0, rest, others = 0;

	for (__u64 id = 0; id < MANY; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, (1 + id % 500) * TW_SEC,
					 0, NULL));
	while (n < half) {
		int ret = list_some(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
				    self->tokens + n, half - n);

		ASSERT_LE(0, ret);
		n += ret;
	}
	for (int i = 0; i < half; i++) {
		__u64 id = self->tokens[i].id;

		ASSERT_FALSE(listed[id]);
		listed[id] = true;
		ASSERT_EQ(0, tw_cancel(self->fd, 0, id));
	}
	for (int i = 0; i < half; i++)
		ASSERT_EQ(0, tw_register(self->fd, self->tokens[i].id, TW_SEC,
					 1, NULL));
	for (__u64 id = 0; id < MANY; id++) {
		if (!listed[id])
			ASSERT_EQ(0, tw_move(self->fd, 0, id,
					     (1 + id % 7) * TW_SEC));
	}

	rest = list_rest(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
			 self->tokens + half, ROOM - half, 100);
	ASSERT_LE(half, rest);
	for (int i = half; i < half + rest; i++) {
		__u64 id = self->tokens[i].id;

		if (self->tokens[i].cookie)
			continue;	/* a new token may be listed or not */
		ASSERT_FALSE(listed[id]);
		listed[id] = true;
		others++;
	}
	EXPECT_EQ(half, others);
}

/* All tokens are read when the listing is half through: the listing ends. */
TEST_F(listing, nothing_is_left_to_list)
{
	__u64 cursor = 0;

	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0, TW_SEC));
	ASSERT_LE(0, list_some(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
			       self->tokens, MANY / 2));
	ASSERT_NE((__u64)TIMEWHEEL_NEVER, cursor);
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	for (int n = 0; n < MANY;) {
		static struct timewheel_event events[1000];
		int ret = tw_read(self->fd, events, 1000);

		ASSERT_LT(0, ret);
		n += ret;
	}
	EXPECT_EQ(0, list_rest(self->fd, &cursor, 0, TIMEWHEEL_NEVER,
			       self->tokens, ROOM, 1000));
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, cursor);
}

static int signal_every_ms(void)
{
	struct sigaction action = { .sa_handler = ignore };
	struct itimerval often = {
		.it_value.tv_usec = 1000, .it_interval.tv_usec = 1000,
	};

	return sigaction(SIGALRM, &action, NULL) ?:
	       setitimer(ITIMER_REAL, &often, NULL);
}

/* Signals may end a call early, and no token is lost. */
TEST_F(listing, signals)
{
	int early = 0;

	NEEDS_KERNEL("a signal ends a call early");
	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0, TW_SEC));
	ASSERT_EQ(0, signal_every_ms());
	for (int pass = 0; pass < 100 && early < 20; pass++) {
		__u64 cursor = 0;
		int n = 0;

		while (cursor != TIMEWHEEL_NEVER) {
			int ret = list_some(self->fd, &cursor, 0,
					    TIMEWHEEL_NEVER, self->tokens + n,
					    ROOM - n);

			ASSERT_LE(0, ret);
			n += ret;
			ASSERT_LE(n, MANY);
			early += cursor != TIMEWHEEL_NEVER;
		}
		expect_ids(_metadata, self->tokens, n, 0, MANY - 1);
	}
	EXPECT_LT(0, early);
}

/*
 * LIST holds no lock for more than a few hundred tokens, even when none of them fits: a
 * signal ends a call between two locks.
 */
TEST_F_TIMEOUT(listing, none_fits_and_a_signal_comes, 120)
{
	const size_t n = 200000;
	int early = 0;
	int fd = TW_OPEN(O_RDWR);

	NEEDS_KERNEL("a signal ends a call early");
	ASSERT_EQ(0, tw_setup_manual(fd, SLOTS, n, 0));
	ASSERT_EQ(n, tw_register_many(fd, 0, n, 0, 50 * TW_SEC));
	ASSERT_EQ(0, signal_every_ms());
	for (int pass = 0; pass < 100 && !early; pass++) {
		__u64 cursor = 0;

		while (cursor != TIMEWHEEL_NEVER) {
			ASSERT_EQ(0, list_some(fd, &cursor, 60 * TW_SEC,
					       TIMEWHEEL_NEVER, self->tokens,
					       10));
			early += cursor != TIMEWHEEL_NEVER;
		}
	}
	EXPECT_LT(0, early);
	close(fd);
}

/* A slow thread lists into a page that comes only when its userfaultfd is closed. */
struct slow {
	pthread_t thread;
	int fd, ret;
	__u64 cursor;
	void *page;
};

static void *list_slowly(void *arg)
{
	struct slow *slow = arg;

	slow->ret = list_some(slow->fd, &slow->cursor, 0, TIMEWHEEL_NEVER,
			      slow->page, 26);
	return NULL;
}

/* A listing that waits for its memory stops nobody, and goes on well afterwards. */
TEST_F(listing, slow_listing_stops_nobody)
{
	struct slow slow = { .fd = self->fd };
	struct timewheel_event event;
	struct timewheel_token *tokens;
	const size_t page_size = sysconf(_SC_PAGESIZE);
	int uffd, stable = 0;

	slow.page = tw_new_pages(page_size);
	uffd = tw_open_userfaultfd(slow.page, page_size);
	if (uffd < 0)
		SKIP(return, "no userfaultfd for faults of the kernel");
	ASSERT_EQ(200UL, tw_register_many(self->fd, 0, 200, 0, 9 * TW_SEC));
	ASSERT_EQ(0, pthread_create(&slow.thread, NULL, list_slowly, &slow));
	ASSERT_TRUE(tw_wait_for_fault(uffd));

	EXPECT_EQ(0, tw_register(self->fd, 500, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_touch(self->fd, 0, 500));
	EXPECT_EQ(0, tw_move(self->fd, 0, 100, 2 * TW_SEC));
	EXPECT_EQ(0, tw_cancel(self->fd, 0, 500));
	EXPECT_EQ(0, tw_register(self->fd, 501, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_advance(self->fd, 1));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(501ULL, event.id);
	expect_between(0, TIMEWHEEL_NEVER, 0, 199);

	close(uffd);
	ASSERT_EQ(0, pthread_join(slow.thread, NULL));
	ASSERT_LE(0, slow.ret);
	tokens = calloc(1000, sizeof(*tokens));
	ASSERT_NE(NULL, tokens);
	memcpy(tokens, slow.page, slow.ret * sizeof(*tokens));
	ASSERT_LE(200 - slow.ret,
		  list_rest(self->fd, &slow.cursor, 0, TIMEWHEEL_NEVER,
			    tokens + slow.ret, 900, 100));
	for (int i = 0; i < 1000; i++)
		stable += tokens[i].handle && tokens[i].id < 200;
	EXPECT_EQ(200, stable);
	free(tokens);
}

/*
 * The storm: stable tokens are touched and moved, other tokens come and go by
 * cancellations and reads, and all tokens are listed meanwhile.
 */
#define STABLE		20000
#define FLEETING	2000	/* ids of each thread for tokens that come and go */
#define STORM_TICK	TW_MS
#define LISTERS		2
#define LONG		120	/* seconds; guests may be emulated */

static struct {
	int fd;
	__u64 handles[STABLE];
	atomic_bool stop;
	atomic_ulong comings, goings, changes, reads;
	unsigned long passes;
} storm;

/* Touches and moves the stable tokens, of which none falls due. */
static void *change(void *arg)
{
	for (unsigned long i = 0; !storm.stop; i++) {
		__u64 id = i * 7919 % STABLE;
		int ret;

		if (i % 3)
			ret = tw_touch(storm.fd, 0, id);
		else
			ret = tw_move(storm.fd, 0, id,
				      (1000 + i % 5000) * TW_SEC);
		if (ret)
			tw_fail("%llu: touch or move: %d", id, tw_ret(ret));
		storm.changes++;
	}
	return NULL;
}

/* Registers tokens for a few ms, and cancels half of the tokens that are still there. */
static void *come_and_go(void *arg)
{
	const __u64 first = STABLE + (uintptr_t)arg * FLEETING;

	for (unsigned long i = 0; !storm.stop; i++) {
		__u64 id = first + i % FLEETING;

		if (!tw_register(storm.fd, id, i % 50 * TW_MS, ~id, NULL))
			storm.comings++;
		if (i % 2)
			id = first + (i + FLEETING / 2) % FLEETING;
		if (i % 4 < 2 && tw_cancel(storm.fd, 0, id) >= 0)
			storm.goings++;
	}
	return NULL;
}

static void *read_all(void *arg)
{
	static struct timewheel_event events[100];

	while (!storm.stop) {
		int n = tw_read(storm.fd, events, ARRAY_SIZE(events));

		if (n < 0)
			tw_sleep_ms(1);
		for (int i = 0; i < n; i++) {
			if (events[i].id < STABLE)
				tw_fail("read %llu", events[i].id);
		}
		storm.reads += n > 0 ? n : 0;
	}
	return NULL;
}

/* Checks the fields of a listed token by rules that hold at any time of the storm. */
static void check_token(const struct timewheel_token *token)
{
	const bool stable = token->id < STABLE;

	if (token->cookie != (stable ? 0 : ~token->id) || !token->handle ||
	    (stable && token->handle != storm.handles[token->id]))
		tw_fail("%llu: handle %#llx, cookie %#llx", token->id,
			token->handle, token->cookie);
	if (token->state != TIMEWHEEL_STATE_PENDING &&
	    (stable || token->state != TIMEWHEEL_STATE_TAKEN))
		tw_fail("%llu: state %u", token->id, token->state);
	if (token->deadline % STORM_TICK ||
	    token->slot != token->deadline / STORM_TICK % SLOTS)
		tw_fail("%llu: deadline %llu, slot %u", token->id,
			token->deadline, token->slot);
}

static int compare_handles(const void *a, const void *b)
{
	const struct timewheel_token *one = a, *other = b;

	return (one->handle > other->handle) - (one->handle < other->handle);
}

/* Lists again and again, each time in calls for another count. */
static void *list_in_a_storm(void *arg)
{
	const __u32 counts[] = { 1000, 64, 7, 0xffffffff, 500 };
	const __u32 room = 2 * STABLE;
	struct timewheel_token *tokens = calloc(room, sizeof(*tokens));

	for (unsigned long pass = 0; tokens && pass < storm.passes; pass++) {
		__u32 count = counts[(pass + (uintptr_t)arg) % 5];
		int n = list_all(storm.fd, 0, TIMEWHEEL_NEVER, tokens, room,
				 count);
		int stable = 0;

		if (n < 0)
			tw_fail("listing: %d", n);
		for (int i = 0; i < n; i++) {
			check_token(&tokens[i]);
			stable += tokens[i].id < STABLE;
		}
		if (n > 0)
			qsort(tokens, n, sizeof(*tokens), compare_handles);
		for (int i = 1; i < n; i++) {
			if (tokens[i].handle == tokens[i - 1].handle)
				tw_fail("%llu is listed twice", tokens[i].id);
		}
		/* No token is listed twice, so each stable token has been listed once. */
		if (stable != STABLE)
			tw_fail("pass %lu by %u: %d of %u", pass, count, stable,
				STABLE);
	}
	if (!tokens)
		tw_fail("no memory");
	free(tokens);
	return NULL;
}

TEST_F_TIMEOUT(listing, storm, LONG)
{
	void *(*const others[])(void *) = {
		change, come_and_go, come_and_go, read_all,
	};
	pthread_t threads[ARRAY_SIZE(others)], listers[LISTERS];
	struct timewheel_info info;
	struct timewheel_token token;

	storm.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	storm.passes = tw_scaled(30);
	ASSERT_EQ(0, tw_setup(storm.fd, TIMEWHEEL_CLOCK_MONOTONIC, SLOTS,
			      STORM_TICK, 2 * STABLE, 0, 0));
	/*
	 * The stable tokens have a gap between them for other tokens, which a listing
	 * meets on its way.
	 */
	ASSERT_EQ(STABLE / 2UL, tw_register_many(storm.fd, 0, STABLE / 2, 0,
						 1000 * TW_SEC));
	ASSERT_EQ((size_t)FLEETING, tw_register_many(storm.fd, STABLE, FLEETING,
						     0, 1000 * TW_SEC));
	ASSERT_EQ(STABLE / 2UL, tw_register_many(storm.fd, STABLE / 2,
						 STABLE / 2, 0, 1000 * TW_SEC));
	for (__u64 id = STABLE; id < STABLE + FLEETING; id++)
		ASSERT_EQ(0, tw_cancel(storm.fd, 0, id));
	for (__u64 id = 0; id < STABLE; id++) {
		ASSERT_EQ(0, tw_get(storm.fd, 0, id, &token));
		storm.handles[id] = token.handle;
	}

	for (uintptr_t i = 0; i < ARRAY_SIZE(others); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, others[i],
					    (void *)i));
	for (uintptr_t i = 0; i < LISTERS; i++)
		ASSERT_EQ(0, pthread_create(&listers[i], NULL, list_in_a_storm,
					    (void *)i));
	for (int i = 0; i < LISTERS; i++)
		ASSERT_EQ(0, pthread_join(listers[i], NULL));
	storm.stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));

	EXPECT_EQ(0, tw_failures);
	/* All kinds of changes have happened in the storm. */
	EXPECT_LT(100UL, storm.changes);
	EXPECT_LT(100UL, storm.comings);
	EXPECT_LT(0UL, storm.goings);
	EXPECT_LT(0UL, storm.reads);
	TH_LOG("%lu changes, %lu came, %lu cancelled, %lu read", storm.changes,
	       storm.comings, storm.goings, storm.reads);

	/*
	 * The listing has as many tokens as the wheel counts, in the calm after the
	 * storm.
	 */
	ASSERT_EQ(0, tw_info(storm.fd, &info));
	free(self->tokens);
	self->tokens = calloc(2 * STABLE, sizeof(*self->tokens));
	ASSERT_NE(NULL, self->tokens);
	EXPECT_EQ((int)info.pending,
		  list_all(storm.fd, 0, TIMEWHEEL_NEVER, self->tokens,
			   2 * STABLE, 1000));
	EXPECT_EQ(STABLE, list_all(storm.fd, tw_now(CLOCK_MONOTONIC) +
				   100 * TW_SEC, TIMEWHEEL_NEVER, self->tokens,
				   2 * STABLE, 1000));
	close(storm.fd);
}

static void *read_into(void *nowhere)
{
	while (!storm.stop) {
		int ret = tw_ret(tw_read(storm.fd, nowhere, 100));

		if (ret != -EFAULT)
			tw_fail("read: %d", ret);
	}
	return NULL;
}

/* A listing neither misses nor repeats tokens that readers take and put back. */
TEST_F_TIMEOUT(listing, taken_and_put_back, LONG)
{
	struct timewheel_info info;
	pthread_t thread;

	NEEDS_KERNEL("EFAULT");
	storm.fd = self->fd;
	ASSERT_EQ((size_t)MANY, tw_register_many(self->fd, 0, MANY, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_into, NULL));
	do {
		tw_sleep_ms(1);
		ASSERT_EQ(0, tw_info(self->fd, &info));
	} while (!info.put_back);
	for (unsigned long pass = 0; pass < tw_scaled(20); pass++)
		expect_between(0, TIMEWHEEL_NEVER, 0, MANY - 1);
	storm.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, tw_failures);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)MANY, info.pending);
}

TEST_HARNESS_MAIN
