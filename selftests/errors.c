// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each documented errno of each operation is provoked by one error in otherwise perfect
 * input, and leaves the wheel as it was (P9). The common errors of arguments are in
 * abi.c, the errors of bad memory in faults.c.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tw_commands.h"

#define S64_LAST	0x7fffffffffffffffULL
#define U64_LAST	(~0ULL)

#define WITNESS		1	/* due tick 100, timeout 100 s */
#define TIMELESS	2	/* registered for a time, tick 200: no timeout */
#define ABSENT		3	/* never registered */
#define CAPACITY	1000

/* The wheel is manual, with ticks of 1 s, and its hand stands on tick 10. */
FIXTURE(errors) {
	int fd;
	__u64 handle;	/* of WITNESS */
	__u64 stale;	/* of a token that was cancelled */
	struct tw_state before;
};

FIXTURE_SETUP(errors)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, CAPACITY, 0));
	ASSERT_EQ(0, tw_register(self->fd, ABSENT, 5 * TW_SEC, 0, &self->stale));
	ASSERT_EQ(0, tw_cancel(self->fd, 0, ABSENT));
	ASSERT_EQ(0, tw_register(self->fd, WITNESS, 100 * TW_SEC, 7,
				 &self->handle));
	ASSERT_EQ(0, tw_register_at(self->fd, TIMELESS, 200 * TW_SEC, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
}

FIXTURE_TEARDOWN(errors)
{
	close(self->fd);
}

/*
 * Expects that no call has changed the wheel, or WITNESS, since self->before was taken.
 */
#define expect_unchanged()						\
	tw_expect_state(self->fd, 0, WITNESS, &self->before,		\
			"before line %d", __LINE__)

/* Expects an error of one operation, alone and as an element of a batch. */
#define expect_op_error(expected, ...)					\
	tw_expect_error(self->fd, WITNESS, expected, __VA_ARGS__)

TEST_F(errors, register_eexist)
{
	expect_op_error(-EEXIST, .code = TIMEWHEEL_OP_REGISTER, .id = WITNESS,
			.time = TW_SEC);
	expect_op_error(-EEXIST, .code = TIMEWHEEL_OP_REGISTER, .id = WITNESS,
			.flags = TIMEWHEEL_OPF_ABSOLUTE, .time = 11 * TW_SEC);
	/*
	 * The id also exists when its token is past its deadline: only a reader ends
	 * the token.
	 */
	ASSERT_EQ(0, tw_advance(self->fd, 150));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, WITNESS, TW_SEC, 0,
					      NULL)));
}

/* A deadline that does not fit is refused, never taken for "at once". */
TEST_F(errors, deadline_erange)
{
	/* The time last + 1 is rounded up to the first tick beyond 2^63 ns. */
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	const __u64 times[] = {
		last + 1, S64_LAST - 1, S64_LAST, S64_LAST + 1, S64_LAST + 2,
		U64_LAST - TW_SEC, U64_LAST - 1, U64_LAST,
		/* These values would fit as times, but not as delays from tick 10 on. */
		last, last - 10 * TW_SEC + 1,
	};
	struct timewheel_token token;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_REGISTER,
				.id = ABSENT, .time = times[i]);
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
				.id = ABSENT, .time = times[i]);
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_MOVE, .id = WITNESS,
				.time = times[i]);
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_MOVE,
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.handle = self->handle, .time = times[i]);
		if (times[i] <= last)
			continue;
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_REGISTER,
				.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = ABSENT,
				.time = times[i]);
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_MOVE, .id = WITNESS,
				.flags = TIMEWHEEL_OPF_ABSOLUTE, .time = times[i]);
	}
	EXPECT_EQ(0, tw_register_at(self->fd, ABSENT, last, 0));
	EXPECT_EQ(0, tw_register(self->fd, ABSENT + 1, last - 10 * TW_SEC, 0,
				 NULL));
	/* A refused move has not changed the timeout either. */
	EXPECT_EQ(0, tw_touch(self->fd, 0, WITNESS));
	EXPECT_EQ(0, tw_get(self->fd, 0, WITNESS, &token));
	EXPECT_EQ(110 * TW_SEC, token.deadline);
	EXPECT_EQ(100 * TW_SEC, token.timeout);
}

TEST_F(errors, register_enospc)
{
	struct timewheel_event event;

	ASSERT_EQ(CAPACITY - 2UL, tw_register_many(self->fd, 1000, CAPACITY - 2,
						   0, 50 * TW_SEC));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
	expect_op_error(-ENOSPC, .code = TIMEWHEEL_OP_REGISTER, .id = ABSENT,
			.time = TW_SEC);
	expect_op_error(-ENOSPC, .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
			.id = ABSENT, .time = TW_SEC);
	/*
	 * A token that exists can be touched in a full wheel, and EEXIST comes before
	 * ENOSPC.
	 */
	expect_op_error(-EEXIST, .code = TIMEWHEEL_OP_REGISTER, .id = WITNESS,
			.time = TW_SEC);
	EXPECT_EQ(0, tw_touch_or_register(self->fd, WITNESS, TW_SEC, 0));

	EXPECT_EQ(0, tw_cancel(self->fd, 0, 1000));
	EXPECT_EQ(0, tw_register(self->fd, ABSENT, 0, 0, NULL));
	EXPECT_EQ(-ENOSPC, tw_ret(tw_register(self->fd, 1000, 0, 0, NULL)));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(0, tw_register(self->fd, 1000, 0, 0, NULL));
}

TEST_F(errors, no_such_token)
{
	const __u32 codes[] = {
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
	};
	/*
	 * Handles that were never given out are as dead as handles of tokens that have
	 * ended.
	 */
	const __u64 dead[] = {
		self->stale, 0, 1, U64_LAST, self->handle ^ 1,
		self->handle ^ 0x10000, self->handle ^ 1ULL << 31,
		self->handle ^ 1ULL << 32, self->handle ^ 1ULL << 48,
		self->handle ^ 1ULL << 63, self->handle + 1, ~self->handle,
		self->handle & 0xffffffff, self->handle | 0xffffffff,
	};
	struct timewheel_token token;

	/* No guessed handle shall hit the token TIMELESS. */
	ASSERT_EQ(0, tw_cancel(self->fd, 0, TIMELESS));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		expect_op_error(-ENOENT, .code = codes[i], .id = ABSENT,
				.handle = self->handle, .time = TW_SEC);
		expect_op_error(-ENOENT, .code = codes[i], .id = 0,
				.time = TW_SEC);
		expect_op_error(-ENOENT, .code = codes[i], .id = U64_LAST,
				.time = TW_SEC);
		for (size_t j = 0; j < ARRAY_SIZE(dead); j++)
			expect_op_error(-ESTALE, .code = codes[i],
					.flags = TIMEWHEEL_OPF_BY_HANDLE,
					.id = WITNESS, .handle = dead[j],
					.time = TW_SEC);
	}
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, ABSENT)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, ABSENT, &token)));
	for (size_t j = 0; j < ARRAY_SIZE(dead); j++) {
		EXPECT_EQ(-ESTALE, tw_ret(tw_touch(self->fd,
						   TIMEWHEEL_OPF_BY_HANDLE,
						   dead[j])));
		EXPECT_EQ(-ESTALE, tw_ret(tw_get(self->fd,
						 TIMEWHEEL_OPF_BY_HANDLE,
						 dead[j], &token)));
	}
	expect_unchanged();
}

TEST_F(errors, flags_that_do_not_go_with_the_operation)
{
	const struct {
		__u32 code, flags;
	} cases[] = {
		{ TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OPF_BY_HANDLE },
		{ TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OPF_BY_HANDLE },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OPF_ABSOLUTE },
		{ TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OPF_ABSOLUTE },
		{ TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OPF_BY_HANDLE |
					 TIMEWHEEL_OPF_ABSOLUTE },
		{ TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OPF_ABSOLUTE },
		/* The wheel has no leases. */
		{ TIMEWHEEL_OP_ACK, 0 },
		{ TIMEWHEEL_OP_ACK, TIMEWHEEL_OPF_ABSOLUTE },
		/* No operation knows this flag. */
		{ TIMEWHEEL_OP_REGISTER, 4 }, { TIMEWHEEL_OP_TOUCH, 4 },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, 4 },
		{ TIMEWHEEL_OP_MOVE, 4 }, { TIMEWHEEL_OP_CANCEL, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool registers = cases[i].code == TIMEWHEEL_OP_REGISTER ||
				 cases[i].code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;

		expect_op_error(-EINVAL, .code = cases[i].code,
				.flags = cases[i].flags,
				.id = registers ? ABSENT : WITNESS,
				.handle = self->handle, .time = 20 * TW_SEC);
	}
}

TEST_F(errors, no_such_operation)
{
	const __u32 codes[] = {
		TIMEWHEEL_OP_DELETE + 1, 31, 32, 64, 256, 0x10000, 0x7fffffff,
		0x80000000, 0xffffffff,
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		expect_op_error(-EINVAL, .code = codes[i], .id = WITNESS,
				.time = TW_SEC);
}

TEST_F(errors, touch_without_a_timeout)
{
	__u64 handle;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_get(self->fd, 0, TIMELESS, &token));
	handle = token.handle;
	expect_op_error(-EINVAL, .code = TIMEWHEEL_OP_TOUCH, .id = TIMELESS);
	expect_op_error(-EINVAL, .code = TIMEWHEEL_OP_TOUCH,
			.flags = TIMEWHEEL_OPF_BY_HANDLE, .handle = handle);
	expect_op_error(-EINVAL, .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
			.id = TIMELESS, .time = 30 * TW_SEC);
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, TIMELESS)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					   handle)));
	expect_unchanged();
	ASSERT_EQ(0, tw_get(self->fd, 0, TIMELESS, &token));
	EXPECT_EQ(200 * TW_SEC, token.deadline);

	/*
	 * A delay of 0 gives no timeout either; a move by 0 leaves the token's timeout
	 * as it is.
	 */
	ASSERT_EQ(0, tw_register(self->fd, ABSENT, 0, 0, NULL));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, ABSENT)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch_or_register(self->fd, ABSENT, TW_SEC,
						       0)));
	EXPECT_EQ(0, tw_move(self->fd, 0, WITNESS, 0));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, 0, WITNESS));
	ASSERT_EQ(0, tw_get(self->fd, 0, WITNESS, &token));
	EXPECT_EQ(110 * TW_SEC, token.deadline);
	/* A token that had no timeout gets its timeout by a move. */
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, ABSENT, 5 * TW_SEC));
	EXPECT_EQ(0, tw_touch(self->fd, 0, ABSENT));
}

TEST_F(errors, touch_erange)
{
	const __u64 last = S64_LAST / TW_SEC * TW_SEC;
	struct timewheel_token token;

	/* The timeout fitted on tick 10, and no longer fits on tick 11. */
	ASSERT_EQ(0, tw_register(self->fd, ABSENT, last - 10 * TW_SEC, 0,
				 NULL));
	ASSERT_EQ(0, tw_advance(self->fd, 11));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
	expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_TOUCH, .id = ABSENT);
	expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_TOUCH_OR_REGISTER,
			.id = ABSENT, .time = TW_SEC);
	EXPECT_EQ(-ERANGE, tw_ret(tw_touch(self->fd, 0, ABSENT)));
	expect_unchanged();
	ASSERT_EQ(0, tw_get(self->fd, 0, ABSENT, &token));
	EXPECT_EQ(last, token.deadline);
}

#define MANY	200		/* more than the module copies at once */

/*
 * @bad is a key among MANY good keys: the keys before it are touched, the keys behind
 * it are not.
 */
static void expect_touched_up_to(struct __test_metadata *_metadata, int fd,
				 const __u64 *good, __u32 flags, __u64 bad,
				 int expected)
{
	const __u32 places[] = { 0, 1, 62, 63, 64, 65, 127, 128, MANY - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct timewheel_info before, after;
		struct timewheel_token token;
		__u64 keys[MANY];
		__u32 done = 0xcccc;

		memcpy(keys, good, sizeof(keys));
		keys[places[i]] = bad;
		ASSERT_EQ(0, tw_info(fd, &before));
		ASSERT_EQ(0, tw_advance(fd, before.hand + 1));
		EXPECT_EQ(expected, tw_ret(tw_touch_keys(fd, flags, keys, MANY,
							 &done)));
		EXPECT_EQ(places[i], done);
		ASSERT_EQ(0, tw_info(fd, &after));
		EXPECT_EQ(before.touched + places[i], after.touched);
		/*
		 * Only the keys before @bad have a new timeout, which begins on this
		 * tick.
		 */
		for (__u32 k = 0; k < MANY; k++) {
			if (k == places[i])
				continue;
			ASSERT_EQ(0, tw_get(fd, flags, good[k], &token));
			EXPECT_EQ(k < places[i],
				  token.deadline == (after.hand + 100) * TW_SEC) {
				TH_LOG("error %d at %u: %u", expected,
				       places[i], k);
			}
		}
	}
}

/*
 * @done tells the wrong key exactly, for each error: the keys before it are touched,
 * and no others.
 */
TEST_F(errors, touch_many_stops_at_the_first_error)
{
	const __u64 far = S64_LAST / TW_SEC * TW_SEC;
	__u64 ids[MANY], handles[MANY], timeless, beyond;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_get(self->fd, 0, TIMELESS, &token));
	timeless = token.handle;
	ASSERT_EQ(0, tw_register(self->fd, ABSENT + 1, far - 10 * TW_SEC, 0,
				 &beyond));
	for (__u32 i = 0; i < MANY; i++) {
		ids[i] = 1000 + i;
		ASSERT_EQ(0, tw_register(self->fd, ids[i], 100 * TW_SEC, 0,
					 &handles[i]));
	}
	expect_touched_up_to(_metadata, self->fd, ids, 0, ABSENT, -ENOENT);
	expect_touched_up_to(_metadata, self->fd, ids, 0, TIMELESS, -EINVAL);
	expect_touched_up_to(_metadata, self->fd, ids, 0, ABSENT + 1, -ERANGE);
	expect_touched_up_to(_metadata, self->fd, handles, TIMEWHEEL_OPF_BY_HANDLE,
			     self->stale, -ESTALE);
	expect_touched_up_to(_metadata, self->fd, handles, TIMEWHEEL_OPF_BY_HANDLE,
			     U64_LAST, -ESTALE);
	expect_touched_up_to(_metadata, self->fd, handles, TIMEWHEEL_OPF_BY_HANDLE,
			     timeless, -EINVAL);
	expect_touched_up_to(_metadata, self->fd, handles, TIMEWHEEL_OPF_BY_HANDLE,
			     beyond, -ERANGE);
}

/*
 * REGISTER_MANY gives each entry, wherever in the array the entry is, the result that a
 * REGISTER of its own would have had, and carries out all other entries.
 */
TEST_F(errors, register_many_has_a_result_for_each)
{
	const __u64 far = S64_LAST / TW_SEC * TW_SEC;
	struct timewheel_entry entries[MANY] = {};
	struct timewheel_token token;
	struct timewheel_info info;
	__u32 done = 0;

	for (__u32 i = 0; i < MANY; i++) {
		entries[i].id = 1000 + i;
		entries[i].time = (1 + i % 7) * TW_SEC;
		entries[i].cookie = 3 * i;
		entries[i].result = 77;
	}
	entries[0].id = WITNESS;
	entries[31].time = far + TW_SEC;
	entries[32].time = S64_LAST + 1;
	entries[64].reserved = 1;
	entries[65].id = 1064;		/* free, because entry 64 has failed */
	entries[66].id = 1065;
	entries[MANY - 1].id = 1001;
	ASSERT_EQ(0, tw_register_entries(self->fd, 0, 0, entries, MANY, &done));
	EXPECT_EQ((__u32)MANY, done);
	EXPECT_EQ(-EEXIST, entries[0].result);
	EXPECT_EQ(-ERANGE, entries[31].result);
	EXPECT_EQ(-ERANGE, entries[32].result);
	EXPECT_EQ(-EINVAL, entries[64].result);
	EXPECT_EQ(-EEXIST, entries[MANY - 1].result);
	for (__u32 i = 1; i < MANY - 1; i++) {
		if (i == 31 || i == 32 || i == 64)
			continue;
		ASSERT_EQ(0, entries[i].result);
		ASSERT_EQ(0, tw_get(self->fd, 0, entries[i].id, &token));
		EXPECT_EQ(entries[i].handle, token.handle);
		EXPECT_EQ(entries[i].cookie, token.cookie);
		EXPECT_EQ(entries[i].time, token.timeout);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->before.info.registered + MANY - 5, info.registered);
}

/* The entries have times of the clock, and all have the same timeout. */
TEST_F(errors, register_many_by_the_clock)
{
	struct timewheel_entry entries[3] = {
		{ .id = 1000, .time = 0 },
		{ .id = 1001, .time = 500 * TW_SEC },
		{ .id = 1002, .time = U64_LAST },
	};
	struct timewheel_token token;
	__u32 done = 0;

	ASSERT_EQ(0, tw_register_entries(self->fd, TIMEWHEEL_OPF_ABSOLUTE,
					 40 * TW_SEC, entries, 3, &done));
	EXPECT_EQ(0, entries[0].result);
	EXPECT_EQ(-ERANGE, entries[2].result);
	ASSERT_EQ(0, tw_get(self->fd, 0, 1001, &token));
	EXPECT_EQ(500 * TW_SEC, token.deadline);
	EXPECT_EQ(40 * TW_SEC, token.timeout);
	/* Tokens that are registered without a timeout cannot be touched. */
	entries[0].id = 1003;
	ASSERT_EQ(0, tw_register_entries(self->fd, TIMEWHEEL_OPF_ABSOLUTE, 0,
					 entries, 1, &done));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(self->fd, 0, 1003)));
}

/*
 * A wheel is full at an exact number, refuses new tokens while it drains, and refuses
 * ids or cookies if it was set up without them.
 */
TEST_F(errors, register_many_of_what_a_wheel_has_not)
{
	struct timewheel_entry entries[MANY] = {};
	int fd = TW_OPEN(O_RDWR);
	__u64 handles[MANY];
	__s32 results[MANY];
	__u32 done = 0;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC, 100,
			      TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
			      0));
	for (__u32 i = 0; i < MANY; i++)
		entries[i].time = TW_SEC;
	entries[5].id = 1;
	entries[6].cookie = 1;
	ASSERT_EQ(0, tw_register_entries(fd, 0, 0, entries, MANY, &done));
	EXPECT_EQ((__u32)MANY, done);
	for (__u32 i = 0; i < MANY; i++) {
		EXPECT_EQ(i == 5 || i == 6 ? -EINVAL : i < 102 ? 0 : -ENOSPC,
			  entries[i].result) {
			TH_LOG("entry %u", i);
		}
		handles[i] = entries[i].handle;
	}
	/* The wheel has no ids to cancel by. */
	ASSERT_EQ(0, tw_cancel_keys(fd, 0, handles, results, 1, &done));
	EXPECT_EQ(-EINVAL, results[0]);
	ASSERT_EQ(0, tw_cancel_keys(fd, TIMEWHEEL_OPF_BY_HANDLE, handles,
				    results, MANY, &done));
	for (__u32 i = 0; i < MANY; i++)
		EXPECT_EQ(i == 5 || i == 6 || i > 101 ? -ESTALE : 0, results[i]);
	ASSERT_EQ(0, tw_control(fd, TIMEWHEEL_CONTROL_DRAINING,
				TIMEWHEEL_CONTROL_DRAINING));
	ASSERT_EQ(0, tw_register_entries(fd, 0, 0, entries, 1, &done));
	EXPECT_EQ(-ESHUTDOWN, entries[0].result);
	close(fd);
}

TEST_F(errors, cancel_many_has_a_result_for_each)
{
	__u64 ids[MANY], handles[MANY];
	struct timewheel_info info;
	__s32 results[MANY];
	__u32 done = 0;

	for (__u32 i = 0; i < MANY; i++) {
		ids[i] = 1000 + i;
		ASSERT_EQ(0, tw_register(self->fd, ids[i],
					 (i == 70 ? 1 : 100) * TW_SEC, 0,
					 &handles[i]));
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	ASSERT_EQ(0, tw_advance(self->fd, info.hand + 2));
	ids[0] = ABSENT;
	ids[64] = ids[63];
	ASSERT_EQ(0, tw_cancel_keys(self->fd, 0, ids, results, MANY, &done));
	EXPECT_EQ((__u32)MANY, done);
	for (__u32 i = 0; i < MANY; i++) {
		EXPECT_EQ(i == 0 || i == 64 ? -ENOENT :
			  i == 70 ? TIMEWHEEL_RES_WAS_DUE : 0, results[i]) {
			TH_LOG("key %u", i);
		}
	}
	ASSERT_EQ(0, tw_cancel_keys(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handles,
				    results, MANY, &done));
	for (__u32 i = 0; i < MANY; i++)
		EXPECT_EQ(i == 0 || i == 64 ? 0 : -ESTALE, results[i]);
}

/*
 * The arrays end where no memory follows: the entries before the fault are done and
 * counted.
 */
TEST_F(errors, many_that_meet_a_fault)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const __u32 there = 40;
	struct timewheel_entry *entries;
	struct timewheel_info info;
	__s32 results[MANY];
	__u32 done = 0;
	__u64 *keys;

	NEEDS_KERNEL("EFAULT");
	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, munmap(map + page, page));
	/* Only 8 bytes of the entry behind these are mapped. */
	entries = (void *)(map + page - there * sizeof(*entries) - 8);
	for (__u32 i = 0; i < there; i++)
		entries[i] = (struct timewheel_entry) {
			.id = 1000 + i, .time = 100 * TW_SEC, .result = 77,
		};
	EXPECT_EQ(-EFAULT, tw_ret(tw_register_entries(self->fd, 0, 0, entries,
						      MANY, &done)));
	EXPECT_EQ(there, done);
	for (__u32 i = 0; i < there; i++)
		EXPECT_EQ(0, entries[i].result);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->before.info.pending + there, info.pending);

	keys = (void *)(map + page - 10 * sizeof(*keys));
	for (__u32 i = 0; i < 10; i++)
		keys[i] = 1000 + i;
	EXPECT_EQ(-EFAULT, tw_ret(tw_cancel_keys(self->fd, 0, keys, results,
						 MANY, &done)));
	EXPECT_EQ(10U, done);
	/* The keys have been carried out although their results cannot be written. */
	for (__u32 i = 0; i < 10; i++)
		keys[i] = 1010 + i;
	EXPECT_EQ(-EFAULT, tw_ret(tw_cancel_keys(self->fd, 0, keys,
						 (void *)(map + page), 10,
						 &done)));
	EXPECT_EQ(10U, done);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->before.info.pending + there - 20, info.pending);
	munmap(map, page);
}

/* A timeout that is too long is refused with any deadline, even if no touch comes. */
TEST_F(errors, timeout_erange)
{
	const __u64 timeouts[] = { S64_LAST + 1, S64_LAST + 2, U64_LAST };
	const __u32 flags[] = { 0, TIMEWHEEL_OPF_ABSOLUTE };
	struct timewheel_token token;

	for (size_t i = 0; i < 2 * ARRAY_SIZE(timeouts); i++) {
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_REGISTER,
				.flags = flags[i % 2], .id = ABSENT,
				.time = 20 * TW_SEC,
				.timeout = timeouts[i / 2]);
		expect_op_error(-ERANGE, .code = TIMEWHEEL_OP_MOVE,
				.flags = flags[i % 2], .id = WITNESS,
				.time = 20 * TW_SEC,
				.timeout = timeouts[i / 2]);
	}
	/*
	 * The longest timeout is accepted, but a touch fails: the new deadline does not
	 * fit.
	 */
	EXPECT_EQ(0, tw_register_timeout(self->fd, 0, ABSENT, TW_SEC, S64_LAST));
	ASSERT_EQ(0, tw_get(self->fd, 0, ABSENT, &token));
	EXPECT_EQ(11 * TW_SEC, token.deadline);
	EXPECT_EQ(S64_LAST, token.timeout);
	EXPECT_EQ(-ERANGE, tw_ret(tw_touch(self->fd, 0, ABSENT)));
}

/*
 * None of these operations takes the number of a delivery, or a reserved field that is
 * set.
 */
TEST_F(errors, delivery_and_reserved)
{
	for (__u32 code = 0; code <= TIMEWHEEL_OP_CANCEL; code++) {
		__u64 id = code == TIMEWHEEL_OP_REGISTER ? ABSENT : WITNESS;

		for (int bit = 0; bit < 32; bit++) {
			expect_op_error(-EINVAL, .code = code, .id = id,
					.time = 20 * TW_SEC,
					.delivery = 1U << bit);
			expect_op_error(-EINVAL, .code = code, .id = id,
					.time = 20 * TW_SEC,
					.reserved = 1U << bit);
		}
	}
	/* A registration takes no period either on a wheel without periods. */
	expect_op_error(-EINVAL, .code = TIMEWHEEL_OP_REGISTER, .id = ABSENT,
			.time = TW_SEC, .period = TW_SEC);
	expect_op_error(-EINVAL, .code = TIMEWHEEL_OP_REGISTER, .id = ABSENT,
			.time = TW_SEC, .timeout = TW_SEC, .period = TW_SEC);
}

#define WHEELS	16

/* No call takes @handle, which names a token of another wheel: the error is ESTALE. */
static void expect_foreign(struct __test_metadata *_metadata, int fd,
			   __u64 handle, __u64 own, bool leases)
{
	const __u32 codes[] = {
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
		TIMEWHEEL_OP_DELETE, TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK,
		TIMEWHEEL_OP_EXTEND,
	};
	const __u64 keys[] = { own, handle };
	struct timewheel_token tokens[2];
	__u32 done = 0;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		bool answers = codes[i] >= TIMEWHEEL_OP_ACK &&
			       codes[i] <= TIMEWHEEL_OP_EXTEND;

		if (codes[i] >= TIMEWHEEL_OP_ACK && !leases)
			continue;
		tw_expect_error(fd, WITNESS, -ESTALE, .code = codes[i],
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.id = WITNESS, .handle = handle,
				.delivery = answers, .time = TW_SEC);
	}
	EXPECT_EQ(-ESTALE, tw_ret(tw_touch(fd, TIMEWHEEL_OPF_BY_HANDLE,
					   handle)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_touch_keys(fd, TIMEWHEEL_OPF_BY_HANDLE,
						&handle, 1, &done)));
	EXPECT_EQ(0U, done);
	EXPECT_EQ(-ESTALE, tw_ret(tw_get(fd, TIMEWHEEL_OPF_BY_HANDLE, handle,
					 &tokens[0])));
	EXPECT_EQ(0, tw_get_keys(fd, TIMEWHEEL_OPF_BY_HANDLE, keys, 2, tokens,
				 &done));
	EXPECT_EQ(2U, done);
	EXPECT_EQ(own, tokens[0].handle);
	EXPECT_EQ((__u32)TIMEWHEEL_STATE_NONE, tokens[1].state);
}

/*
 * Each wheel's first generation is random: a handle names no token of another wheel. A
 * module that is built for tests may give all wheels the same first generation;
 * TW_FIXED_GENERATION tells the test about such a module.
 */
TEST_F(errors, handles_of_other_wheels)
{
	const bool fixed = getenv("TW_FIXED_GENERATION");
	struct timewheel_event event;
	int fds[WHEELS], different = 0;
	__u64 handles[WHEELS];

	for (int i = 0; i < WHEELS; i++) {
		fds[i] = TW_OPEN_WHEEL(.lease = i % 2 * 30 * TW_SEC);
		ASSERT_EQ(0, tw_register(fds[i], WITNESS, 10 * TW_SEC, 0,
					 &handles[i]));
		different += handles[i] != handles[0];
		/* The generations differ; the places are the same. */
		EXPECT_EQ((__u32)handles[0], (__u32)handles[i]);
		EXPECT_NE(0ULL, handles[i] >> 32);
	}
	EXPECT_EQ(fixed, !different);
	/*
	 * The tokens are pending in the first round. In the second round each token of
	 * a wheel with leases is held.
	 */
	for (int held = 0; held < 2; held++) {
		for (int i = held; i < WHEELS; i += 1 + held) {
			if (held) {
				ASSERT_EQ(0, tw_advance(fds[i], 10));
				ASSERT_EQ(1, tw_read(fds[i], &event, 1));
				EXPECT_EQ(handles[i], event.handle);
			}
			for (int k = 0; k < WHEELS; k++) {
				if (handles[k] == handles[i])
					continue;
				expect_foreign(_metadata, fds[i], handles[k],
					       handles[i], i % 2);
			}
			if (held)
				EXPECT_EQ(0, tw_ack(fds[i], &event));
		}
	}
	for (int i = 0; i < WHEELS; i++)
		close(fds[i]);
}

TEST_F(errors, wheel_without_ids)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .id = 5, .time = TW_SEC,
	};
	struct timewheel_token token;
	struct timewheel_event event;
	struct tw_state before;
	__u64 handle;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC, 10,
			      TIMEWHEEL_SETUP_NO_IDS, 0));
	ASSERT_EQ(0, tw_register(fd, 0, TW_SEC, 9, &handle));
	ASSERT_EQ(0, tw_get_state(fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &before));
	EXPECT_EQ(-EINVAL, tw_ret(tw_op(fd, &op)));
	for (__u32 code = TIMEWHEEL_OP_TOUCH; code <= TIMEWHEEL_OP_CANCEL; code++) {
		EXPECT_EQ(-EINVAL, tw_ret(tw_key_op(fd, code, 0, 0, TW_SEC))) {
			TH_LOG("operation %u by id", code);
		}
		EXPECT_EQ(-EINVAL, tw_ret(tw_key_op(fd, code, 0, 5, TW_SEC)));
	}
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch(fd, 0, 0)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch_keys(fd, 0, &handle, 1, NULL)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_get(fd, 0, 0, &token)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_get(fd, 0, handle, &token)));
	/* A GET by id is refused even if it has no key. */
	EXPECT_EQ(-EINVAL, tw_ret(tw_get_keys(fd, 0, NULL, 0, NULL, NULL)));
	tw_expect_state(fd, TIMEWHEEL_OPF_BY_HANDLE, handle, &before, "by id");
	EXPECT_EQ(0ULL, before.witness.id);
	EXPECT_EQ(9ULL, before.witness.cookie);

	/* Any number of tokens may have no id. */
	EXPECT_EQ(0, tw_register(fd, 0, TW_SEC, 9, NULL));
	EXPECT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(0ULL, event.id);
	EXPECT_EQ(9ULL, event.cookie);
	close(fd);
}

TEST_F(errors, wheel_without_cookies)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC, 10,
			      TIMEWHEEL_SETUP_NO_COOKIES, 0));
	EXPECT_EQ(-EINVAL, tw_ret(tw_register(fd, 1, TW_SEC, 1, NULL)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_touch_or_register(fd, 1, TW_SEC, 1)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(fd, 0, 1, &token)));
	EXPECT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(TIMEWHEEL_RES_REGISTERED, tw_touch_or_register(fd, 2, TW_SEC, 0));
	EXPECT_EQ(0, tw_get(fd, 0, 1, &token));
	EXPECT_EQ(0ULL, token.cookie);
	EXPECT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(0ULL, event.cookie);
	close(fd);
}

TEST_F(errors, advance)
{
	const __u64 beyond_last[] = {
		TIMEWHEEL_MAX_TICK + 1, S64_LAST / TW_SEC + 1, S64_LAST, U64_LAST,
	};
	int clocks[] = {
		TIMEWHEEL_CLOCK_MONOTONIC, TIMEWHEEL_CLOCK_BOOTTIME,
		TIMEWHEEL_CLOCK_REALTIME,
	};

	/*
	 * A tick of 1 s is so long that 2^63 ns are fewer ticks than
	 * TIMEWHEEL_MAX_TICK.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(beyond_last); i++)
		EXPECT_EQ(-ERANGE, tw_ret(tw_advance(self->fd,
						     beyond_last[i])));
	expect_unchanged();
	EXPECT_EQ(0, tw_advance(self->fd, S64_LAST / TW_SEC));
	EXPECT_EQ(0, tw_advance(self->fd, 0));

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		int fd = TW_OPEN(O_RDWR);

		ASSERT_EQ(0, tw_setup(fd, clocks[i], 60, TW_SEC, 10, 0, 0));
		EXPECT_EQ(-EINVAL, tw_ret(tw_advance(fd, 1)));
		close(fd);
	}
}

TEST_F(errors, read)
{
	struct timewheel_event events[2];
	struct iovec iov = { events, sizeof(events) };
	struct iovec pieces[2] = { { events, 24 }, { events, 23 } };
	int fd;

	EXPECT_EQ(-EAGAIN, tw_ret(read(self->fd, events, sizeof(events))));
	EXPECT_EQ(-EAGAIN, tw_ret(readv(self->fd, &iov, 1)));
	ASSERT_EQ(0, tw_register(self->fd, ABSENT, 0, 0, NULL));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
	for (size_t size = 0; size < sizeof(events[0]); size++) {
		EXPECT_EQ(-EINVAL, tw_ret(read(self->fd, events, size))) {
			TH_LOG("%zu bytes", size);
		}
	}
	EXPECT_EQ(-EINVAL, tw_ret(readv(self->fd, pieces, 2)));
	expect_unchanged();
	EXPECT_EQ(1, tw_read(self->fd, events, 2));

	/* A read with RWF_NOWAIT fails where a plain read would block. */
	fd = self->fd;
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	EXPECT_EQ(-EAGAIN, tw_ret(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)));
	ASSERT_EQ(0, tw_register(fd, ABSENT, 0, 0, NULL));
	EXPECT_EQ((int)sizeof(events[0]),
		  tw_ret(preadv2(fd, &iov, 1, -1, RWF_NOWAIT)));
}

static void ignore(int signal)
{
	(void)signal;
}

/* A signal ends a blocked read; with SA_RESTART the read goes on. */
TEST_F(errors, read_eintr)
{
	struct sigaction action = { .sa_handler = ignore };
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct timewheel_event event;
	pid_t child;

	NEEDS_KERNEL("SA_RESTART goes on with a read");
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	EXPECT_EQ(-EINTR, tw_ret(read(self->fd, &event, sizeof(event))));
	expect_unchanged();

	action.sa_flags = SA_RESTART;
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child) {
		tw_sleep_ms(200);
		_exit(tw_advance(self->fd, 110));
	}
	EXPECT_EQ((ssize_t)sizeof(event), read(self->fd, &event, sizeof(event)));
	EXPECT_EQ((__u64)WITNESS, event.id);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
}

TEST_F(errors, setup_ebusy)
{
	EXPECT_EQ(-EBUSY, tw_ret(tw_setup_manual(self->fd, 60, CAPACITY, 0)));
	EXPECT_EQ(-EBUSY, tw_ret(tw_setup(self->fd, TIMEWHEEL_CLOCK_MONOTONIC,
					  31, TW_MS, 1, 0, 0)));
	expect_unchanged();
}

#define BATCH	70

static void fill_batch(struct timewheel_op *ops, __u32 n)
{
	memset(ops, 0, n * sizeof(*ops));
	for (__u32 i = 0; i < n; i++) {
		ops[i].size = sizeof(*ops);
		ops[i].code = TIMEWHEEL_OP_REGISTER;
		ops[i].id = 1000 + i;
		ops[i].time = TW_SEC;
	}
}

static void cancel_batch(int fd, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		tw_cancel(fd, 0, 1000 + i);
}

/* A wrong element gets its own result, and all other elements are carried out. */
TEST_F(errors, bad_element_of_a_batch)
{
	const __u32 bad_one[] = { 0, 1, BATCH / 2, BATCH - 1 };
	const struct {
		const char *what;
		size_t offset, size;
		__u64 value;
		int result;
	} cases[] = {
#define AT(field) offsetof(struct timewheel_op, field), \
		sizeof(((struct timewheel_op *)NULL)->field)
		{ "size 0", AT(size), 0, -EINVAL },
		{ "size too small", AT(size), 79, -EINVAL },
		{ "size not op_size", AT(size), sizeof(struct timewheel_op) + 8, -EINVAL },
		{ "undefined flag", AT(flags), 8, -EINVAL },
		{ "undefined flag", AT(flags), 4, -EINVAL },
		{ "undefined flag", AT(flags), 1U << 31, -EINVAL },
		{ "by handle", AT(flags), TIMEWHEEL_OPF_BY_HANDLE, -EINVAL },
		{ "no such code", AT(code), TIMEWHEEL_OP_DELETE + 1, -EINVAL },
		{ "no leases", AT(code), TIMEWHEEL_OP_ACK, -EINVAL },
		{ "no delivery", AT(delivery), 1, -EINVAL },
		{ "reserved", AT(reserved), 1, -EINVAL },
		{ "no periods", AT(period), 1ULL << 32, -EINVAL },
		{ "not there", AT(code), TIMEWHEEL_OP_CANCEL, -ENOENT },
		{ "there already", AT(id), WITNESS, -EEXIST },
		{ "too far", AT(time), ~0ULL << 32, -ERANGE },
		{ "too long", AT(timeout), ~0ULL << 32, -ERANGE },
#undef AT
	};

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		for (size_t k = 0; k < ARRAY_SIZE(bad_one); k++) {
			struct timewheel_op ops[BATCH], old;
			struct timewheel_info info;
			__u32 done = 0;
			void *at;

			fill_batch(ops, BATCH);
			at = (char *)&ops[bad_one[k]] + cases[c].offset;
			if (cases[c].size == sizeof(__u64))
				*(__u64 *)at = cases[c].value;
			else
				*(__u32 *)at = cases[c].value;
			old = ops[bad_one[k]];
			old.result = cases[c].result;
			EXPECT_EQ(0, tw_batch(self->fd, ops, BATCH, &done));
			EXPECT_EQ((__u32)BATCH, done);
			for (__u32 i = 0; i < BATCH; i++) {
				EXPECT_EQ(i == bad_one[k] ? cases[c].result : 0,
					  ops[i].result) {
					TH_LOG("%s: %u of %u", cases[c].what, i,
					       bad_one[k]);
				}
			}
			EXPECT_EQ(0, memcmp(&old, &ops[bad_one[k]], sizeof(old)));
			ASSERT_EQ(0, tw_info(self->fd, &info));
			EXPECT_EQ(self->before.info.pending + BATCH - 1,
				  info.pending);
			cancel_batch(self->fd, BATCH);
		}
	}
}

/*
 * No command with an array does anything if the count is too large. A count of 0 needs
 * no array, and MAX_BATCH elements are carried out.
 */
TEST_F(errors, counts)
{
	static const __u32 too_many[] = {
		TIMEWHEEL_MAX_BATCH + 1, 0x20000000, 0x20000001, 0x7fffffff,
		0x80000000, 0xffffffff,
		/* In 32 bits these counts times 80 or 96 wrap to little. */
		0x100000000ULL / 80 + 1, 0x0ccccccd, 0x100000000ULL / 96 + 1, 0xaaaaaab,
	};
	static const struct {
		unsigned int number;
		size_t array, count, done;
	} commands[] = {
#define COMMAND(NAME, type, array)					\
	{ TIMEWHEEL_IOC_##NAME, offsetof(struct timewheel_##type, array),	\
	  offsetof(struct timewheel_##type, count),			\
	  offsetof(struct timewheel_##type, done) }
		COMMAND(BATCH, batch, ops),
		COMMAND(TOUCH_MANY, touch_many, keys),
		COMMAND(REGISTER_MANY, register_many, entries),
		COMMAND(CANCEL_MANY, cancel_many, keys),
		COMMAND(GET, get, keys),
#undef COMMAND
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct tw_command *c = &tw_commands[_IOC_NR(commands[i].number)];
		__u64 arg[8], old[8];
		__u32 *count = (void *)((char *)arg + commands[i].count);
		__u32 *done = (void *)((char *)arg + commands[i].done);

		ASSERT_EQ(commands[i].number, c->number);
		c->fill(arg);
		*done = 0xcccc;
		for (size_t k = 0; k < ARRAY_SIZE(too_many); k++) {
			*count = too_many[k];
			memcpy(old, arg, c->size);
			EXPECT_EQ(-EINVAL, tw_ret(ioctl(self->fd, c->number, arg))) {
				TH_LOG("%s: %#x", c->name, too_many[k]);
			}
			EXPECT_EQ(0, memcmp(old, arg, c->size));
		}
		*count = 0;
		memset((char *)arg + commands[i].array, 0, sizeof(__u64));
		EXPECT_EQ(0, ioctl(self->fd, c->number, arg)) {
			TH_LOG("%s: no element", c->name);
		}
		EXPECT_EQ(0U, *done);
		expect_unchanged();
	}
}

/* The elements are as many as one call may have; a call may touch a token as often as it likes. */
TEST_F(errors, largest_count)
{
	struct timewheel_op *ops = calloc(TIMEWHEEL_MAX_BATCH, sizeof(*ops));
	__u64 *keys = calloc(TIMEWHEEL_MAX_BATCH, sizeof(*keys));
	struct timewheel_info info;
	__u32 done = 7;

	ASSERT_TRUE(ops && keys);
	for (__u32 i = 0; i < TIMEWHEEL_MAX_BATCH; i++)
		keys[i] = WITNESS;
	EXPECT_EQ(0, tw_touch_keys(self->fd, 0, keys, TIMEWHEEL_MAX_BATCH,
				   &done));
	EXPECT_EQ((__u32)TIMEWHEEL_MAX_BATCH, done);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)TIMEWHEEL_MAX_BATCH, info.touched);

	fill_batch(ops, TIMEWHEEL_MAX_BATCH);
	EXPECT_EQ(0, tw_batch(self->fd, ops, TIMEWHEEL_MAX_BATCH, &done));
	EXPECT_EQ((__u32)TIMEWHEEL_MAX_BATCH, done);
	for (__u32 i = 0; i < TIMEWHEEL_MAX_BATCH; i++)
		ASSERT_EQ(i < CAPACITY - 2 ? 0 : -ENOSPC, ops[i].result);
	free(keys);
	free(ops);
}

/* Elements are at least as large as in the first release, at most a page, and aligned. */
TEST_F(errors, element_sizes)
{
	static const struct {
		unsigned int number;
		size_t size, count;
		__u32 first;	/* size in the first release */
	} commands[] = {
		{ TIMEWHEEL_IOC_BATCH, offsetof(struct timewheel_batch, op_size),
		  offsetof(struct timewheel_batch, count), 80 },
		{ TIMEWHEEL_IOC_LIST, offsetof(struct timewheel_list, token_size),
		  offsetof(struct timewheel_list, count), 96 },
		{ TIMEWHEEL_IOC_GET, offsetof(struct timewheel_get, token_size),
		  offsetof(struct timewheel_get, count), 96 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct tw_command *c = &tw_commands[_IOC_NR(commands[i].number)];
		const __u32 first = commands[i].first;
		const __u32 sizes[] = {
			0, 1, 8, first - 8, first - 1, first + 1, first + 2, first + 4,
			first + 7, 4095, sysconf(_SC_PAGESIZE) + 8, 0x7ffffff8,
			0xffffffff,
		};

		for (size_t k = 0; k < 2 * ARRAY_SIZE(sizes); k++) {
			__u64 arg[8], old[8];

			c->fill(arg);
			*(__u32 *)((char *)arg + commands[i].size) = sizes[k / 2];
			/* The size is checked even if there is no element. */
			if (k % 2)
				*(__u32 *)((char *)arg + commands[i].count) = 0;
			memcpy(old, arg, c->size);
			memset(tw_tokens, 0xcc, sizeof(tw_tokens));
			EXPECT_EQ(-EINVAL, tw_ret(ioctl(self->fd, c->number, arg))) {
				TH_LOG("%s: elements of %u bytes", c->name,
				       sizes[k / 2]);
			}
			EXPECT_EQ(0, memcmp(old, arg, c->size));
			EXPECT_EQ(0xccccccccU, tw_tokens[0].state);
		}
		expect_unchanged();
	}
}

/*
 * Elements of a newer program are larger, and zero in the fields that the module does
 * not know.
 */
TEST_F(errors, batch_of_larger_elements)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	__u32 sizes[] = { 0, 128, 4096 };

	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_CAPS, &caps));
	sizes[0] = caps.op_size + 8;
	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		char *array = calloc(BATCH, sizes[s]);
		struct timewheel_batch batch = {
			.size = sizeof(batch), .ops = (__u64)(uintptr_t)array,
			.count = BATCH, .op_size = sizes[s],
		};

		ASSERT_NE(NULL, array);
		for (__u32 i = 0; i < BATCH; i++) {
			struct timewheel_op *op = (void *)(array + i * sizes[s]);

			fill_batch(op, 1);
			op->size = sizes[s];
			op->id = 1000 + i;
		}
		/* One byte of one tail is not zero. */
		array[BATCH / 2 * sizes[s] + sizes[s] - 1] = 1;
		/* The size in one element is smaller than the size of all elements. */
		((struct timewheel_op *)array)->size = sizeof(struct timewheel_op);
		EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_BATCH, &batch));
		EXPECT_EQ((__u32)BATCH, batch.done);
		for (__u32 i = 0; i < BATCH; i++) {
			struct timewheel_op *op = (void *)(array + i * sizes[s]);

			EXPECT_EQ(!i ? -EINVAL : i == BATCH / 2 ? -E2BIG : 0,
				  op->result) {
				TH_LOG("op_size %u, %u", sizes[s], i);
			}
			EXPECT_EQ(i ? sizes[s] : sizeof(*op), op->size);
			EXPECT_EQ(1000 + i, op->id);
			if (!op->result)
				EXPECT_EQ(11 * TW_SEC, op->deadline);
			EXPECT_EQ(!i || i == BATCH / 2 ? -ENOENT : 0,
				  tw_ret(tw_cancel(self->fd, 0, 1000 + i)));
		}
		free(array);
	}
}

/*
 * A batch is carried out in order: an operation sees the effects of the operations
 * before.
 */
TEST_F(errors, one_token_twice_in_a_batch)
{
	static const struct {
		__u32 code;
		int result;
	} cases[] = {
		{ TIMEWHEEL_OP_REGISTER, 0 },
		{ TIMEWHEEL_OP_REGISTER, -EEXIST },
		{ TIMEWHEEL_OP_TOUCH, 0 },
		{ TIMEWHEEL_OP_TOUCH, 0 },
		{ TIMEWHEEL_OP_CANCEL, 0 },
		{ TIMEWHEEL_OP_CANCEL, -ENOENT },
		{ TIMEWHEEL_OP_TOUCH, -ENOENT },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_RES_REGISTERED },
		{ TIMEWHEEL_OP_TOUCH_OR_REGISTER, 0 },
		{ TIMEWHEEL_OP_CANCEL, 0 },
	};
	struct timewheel_op ops[ARRAY_SIZE(cases)];
	__u32 done;

	fill_batch(ops, ARRAY_SIZE(cases));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ops[i].id = 1000;
		ops[i].code = cases[i].code;
	}
	EXPECT_EQ(0, tw_batch(self->fd, ops, ARRAY_SIZE(cases), &done));
	EXPECT_EQ(ARRAY_SIZE(cases), done);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		EXPECT_EQ(cases[i].result, ops[i].result) {
			TH_LOG("operation %zu", i);
		}
	}
	EXPECT_NE(ops[0].handle, ops[7].handle);

	fill_batch(ops, 3);
	for (__u32 i = 0; i < 3; i++) {
		ops[i].code = TIMEWHEEL_OP_CANCEL;
		ops[i].flags = TIMEWHEEL_OPF_BY_HANDLE;
		ops[i].handle = self->handle;
	}
	EXPECT_EQ(0, tw_batch(self->fd, ops, 3, &done));
	EXPECT_EQ(0, ops[0].result);
	EXPECT_EQ(-ESTALE, ops[1].result);
	EXPECT_EQ(-ESTALE, ops[2].result);
}

/*
 * A signal ends a batch early with the exact count. The caller goes on behind the
 * counted operations, and at the end each operation has been carried out once (P3).
 * The other commands with an array go over its elements by the same loop.
 */
TEST_F_TIMEOUT(errors, signal_in_mid_batch, 120)
{
	struct sigaction action = { .sa_handler = ignore };
	const __u32 n = TIMEWHEEL_MAX_BATCH;
	struct timewheel_op *ops = calloc(n, sizeof(*ops));
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_info info;
	int early = 0;

	NEEDS_KERNEL("a signal ends a call early");
	ASSERT_NE(NULL, ops);
	ASSERT_EQ(0, tw_setup_manual(fd, 60, n, 0));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	/* The signal comes later and later, until it comes in the middle of a batch. */
	for (int try = 0; try < 200 && !early; try++) {
		struct itimerval soon = { .it_value.tv_usec = 100 + 50 * try };
		__u32 at = 0;

		fill_batch(ops, n);
		ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
		while (at < n) {
			__u32 done = 0;

			ASSERT_EQ(0, tw_batch(fd, ops + at, n - at, &done));
			ASSERT_GE(n - at, done);
			early += done > 0 && done < n - at;
			at += done;
			ASSERT_EQ(0, tw_info(fd, &info));
			ASSERT_EQ((__u64)at, info.pending);
		}
		for (__u32 i = 0; i < n; i++)
			ASSERT_EQ(0, ops[i].result);
		/* Each token was registered once, so each can be cancelled once. */
		for (__u32 i = 0; i < n; i++)
			ops[i].code = TIMEWHEEL_OP_CANCEL;
		for (at = 0; at < n;) {
			__u32 done = 0;

			ASSERT_EQ(0, tw_batch(fd, ops + at, n - at, &done));
			at += done;
		}
		for (__u32 i = 0; i < n; i++)
			ASSERT_EQ(0, ops[i].result);
		ASSERT_EQ(0, tw_info(fd, &info));
		ASSERT_EQ(0ULL, info.pending);
	}
	EXPECT_GT(early, 0);
	close(fd);
	free(ops);
}

/*
 * Registers all tokens and cancels all tokens, for ever, in a process that will be
 * killed. The process gets little of the CPU.
 */
static void register_and_cancel(int fd, struct timewheel_op *ops, __u32 n)
{
	struct sched_param param = {};

	sched_setscheduler(0, SCHED_IDLE, &param);
	for (;;) {
		fill_batch(ops, n);
		tw_batch(fd, ops, n, NULL);
		for (__u32 i = 0; i < n; i++)
			ops[i].code = TIMEWHEEL_OP_CANCEL;
		tw_batch(fd, ops, n, NULL);
	}
}

/*
 * A process is killed in the middle of a batch: the batch ends at once, its operations
 * are done in order up to some point, and the wheel's sums are right (P3).
 */
TEST_F_TIMEOUT(errors, killed_in_mid_batch, 120)
{
	const __u32 n = TIMEWHEEL_MAX_BATCH;
	struct timewheel_op *ops = calloc(n, sizeof(*ops));
	const unsigned long rounds = tw_scaled(20);
	struct timewheel_info info;
	unsigned long in_the_middle = 0;
	int fd = TW_OPEN(O_RDWR);
	__u64 registered;

	NEEDS_KERNEL("other processes see a wheel");
	ASSERT_NE(NULL, ops);
	ASSERT_EQ(0, tw_setup_manual(fd, 60, n, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	for (unsigned long i = 0; i < rounds || !in_the_middle; i++) {
		pid_t child = fork();
		bool there = false;
		__u32 edges = 0;

		ASSERT_LE(0, child);
		if (!child)
			register_and_cancel(fd, ops, n);
		/*
		 * The kill comes at some moment after the child has begun. The parent
		 * sleeps meanwhile, because the child needs the CPU.
		 */
		for (registered = info.registered; registered == info.registered;) {
			usleep(1000);
			ASSERT_EQ(0, tw_info(fd, &info));
		}
		usleep(i * 7919 % 50000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, NULL, 0));
		ASSERT_EQ(0, tw_info(fd, &info));
		ASSERT_EQ(info.registered, info.cancelled + info.pending);
		in_the_middle += info.pending && info.pending < n;
		/*
		 * The remaining tokens are the first tokens or the last tokens of the
		 * batch.
		 */
		fill_batch(ops, n);
		for (__u32 k = 0; k < n; k++)
			ops[k].code = TIMEWHEEL_OP_CANCEL;
		ASSERT_EQ(0, tw_batch(fd, ops, n, NULL));
		for (__u32 k = 0; k < n; k++) {
			ASSERT_TRUE(!ops[k].result || ops[k].result == -ENOENT);
			info.pending -= !ops[k].result;
			edges += k && there != !ops[k].result;
			there = !ops[k].result;
		}
		ASSERT_EQ(0ULL, info.pending);
		ASSERT_GE(1U, edges);
	}
	TH_LOG("%lu of them in the middle", in_the_middle);
	close(fd);
	free(ops);
}

/* The listing is valid but for the given fields, and its structure stays as it was. */
#define expect_list_error(expected, ...) do {				\
	struct timewheel_list list_ = {					\
		.size = sizeof(list_), .to = TIMEWHEEL_NEVER,		\
		.tokens = (__u64)(uintptr_t)tokens, .count = 2,		\
		.token_size = sizeof(tokens[0]), .listed = 0xcccc,	\
		__VA_ARGS__ };						\
	struct timewheel_list old_ = list_;				\
									\
	EXPECT_EQ(expected, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list_))); \
	EXPECT_EQ(0, memcmp(&old_, &list_, sizeof(old_)));		\
	expect_unchanged();						\
} while (0)

TEST_F(errors, list_einval)
{
	struct timewheel_token tokens[2];

	expect_list_error(-EINVAL, .count = 0);
	/* No listing has given these cursors. */
	expect_list_error(-EINVAL, .cursor = TIMEWHEEL_NEVER - 1);
	expect_list_error(-EINVAL, .cursor = 1ULL << 63);
}

/*
 * Returns the end of two pages, behind which nothing is mapped. The first page is
 * read-only.
 */
static char *end_of_memory(void)
{
	const size_t page_size = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 3 * page_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages, page_size, PROT_READ) ||
	    munmap(pages + 2 * page_size, page_size))
		return NULL;
	return pages + 2 * page_size;
}

/*
 * No token is lost to an array that cannot be written: the same cursor lists the same
 * tokens again.
 */
TEST_F(errors, list_efault)
{
	const size_t page_size = sysconf(_SC_PAGESIZE);
	const size_t fit[] = { 0, 1, 2, 11, 12, 13, 38 };
	struct timewheel_token tokens[100], again[100];
	struct timewheel_list first = {
		.size = sizeof(first), .to = TIMEWHEEL_NEVER,
		.tokens = (__u64)(uintptr_t)tokens, .count = 100,
		.token_size = sizeof(tokens[0]),
	}, second;
	char *end;

	NEEDS_KERNEL("EFAULT");
	ASSERT_EQ(500UL, tw_register_many(self->fd, 1000, 500, 0, TW_SEC));
	ASSERT_EQ(0, tw_get_state(self->fd, 0, WITNESS, &self->before));
	end = end_of_memory();
	ASSERT_NE(NULL, end);

	/* The listings that fail begin in the middle of the wheel. */
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &first));
	ASSERT_EQ(100U, first.listed);
	second = first;
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &second));
	ASSERT_EQ(100U, second.listed);

	for (size_t i = 0; i < ARRAY_SIZE(fit); i++) {
		for (size_t extra = 0; extra < sizeof(tokens[0]); extra += 8) {
			char *at = end - fit[i] * sizeof(tokens[0]) - extra;

			expect_list_error(-EFAULT, .cursor = first.cursor,
					  .tokens = (__u64)(uintptr_t)at,
					  .count = 100);
		}
	}
	expect_list_error(-EFAULT, .cursor = first.cursor, .tokens = 0);
	expect_list_error(-EFAULT, .cursor = first.cursor, .tokens = 8);
	expect_list_error(-EFAULT, .cursor = first.cursor,
			  .tokens = (__u64)(uintptr_t)(end - 2 * page_size));
	expect_list_error(-EFAULT, .cursor = first.cursor,
			  .tokens = 0xffff888000000000);
	expect_list_error(-EFAULT, .cursor = first.cursor, .tokens = U64_LAST);

	first.tokens = (__u64)(uintptr_t)again;
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &first));
	EXPECT_EQ(second.listed, first.listed);
	EXPECT_EQ(second.cursor, first.cursor);
	EXPECT_EQ(0, memcmp(tokens, again, sizeof(tokens)));
}

/* Either array of a GET is nowhere, or the array of tokens is read-only. */
TEST_F(errors, get_efault)
{
	char *end = end_of_memory(), *read_only = end - 2 * sysconf(_SC_PAGESIZE);
	const __u64 bad[] = { 0, 8, 0xffff888000000000, U64_LAST };
	const __u64 keys[] = { WITNESS, ABSENT };
	struct timewheel_token tokens[2];

	NEEDS_KERNEL("EFAULT");
	ASSERT_NE(NULL, end);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(bad) + 1; i++) {
		struct timewheel_get get = {
			.size = sizeof(get), .keys = (__u64)(uintptr_t)keys,
			.tokens = (__u64)(uintptr_t)read_only, .count = 2,
			.token_size = sizeof(tokens[0]), .done = 0xcccc,
		}, old;

		if (i < 2 * ARRAY_SIZE(bad))
			get.tokens = i % 2 ? bad[i / 2] : (__u64)(uintptr_t)tokens;
		if (i < 2 * ARRAY_SIZE(bad) && i % 2 == 0)
			get.keys = bad[i / 2];
		old = get;
		old.done = 0;
		EXPECT_EQ(-EFAULT, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_GET, &get)));
		EXPECT_EQ(0, memcmp(&old, &get, sizeof(old)));
		expect_unchanged();
	}
	/* Keys may lie in read-only memory. */
	EXPECT_EQ(0, tw_get_keys(self->fd, 0, (void *)read_only, 2, tokens, NULL));
	expect_unchanged();
}

TEST_HARNESS_MAIN
