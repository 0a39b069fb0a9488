// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory cannot be read or written while the kernel copies: no token is lost and
 * nothing is done twice. An event that could not be copied is read again (P5), a batch
 * tells exactly how far it came, and a copy that takes its time, in a page fault of its
 * own, stops nobody else.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "tw_fault.h"
#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"

#define N		140	/* number of due tokens, one on each tick from 1 on */
#define PAGES		4
#define EVENT		sizeof(struct timewheel_event)
#define OP		sizeof(struct timewheel_op)

FIXTURE(faults) {
	int fd;
	size_t page_size;
	char *pages;	/* PAGES pages */
	char *hole;	/* as many pages behind them, without access */
	__u64 handles[N + 1];
};

/* Makes a new wheel with N due tokens, in place of the old wheel. */
static void refill(struct __test_metadata *_metadata, FIXTURE_DATA(faults) *self)
{
	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, 10 * N, 0));
	for (__u64 id = 1; id <= N; id++) {
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, ~id,
					 &self->handles[id]));
	}
	ASSERT_EQ(0, tw_advance(self->fd, N));
}

FIXTURE_SETUP(faults)
{
	self->page_size = sysconf(_SC_PAGESIZE);
	self->pages = mmap(NULL, 2 * PAGES * self->page_size,
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->pages);
	self->hole = self->pages + PAGES * self->page_size;
	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size, PROT_NONE));
	self->fd = -1;
	refill(_metadata, self);
}

FIXTURE_TEARDOWN(faults)
{
	close(self->fd);
}

/* Expects the events of the ids @first, @first + 1, ... as they were registered. */
static void expect_events(struct __test_metadata *_metadata,
			  const FIXTURE_DATA(faults) *self,
			  const struct timewheel_event *events, int n,
			  __u64 first)
{
	for (int i = 0; i < n; i++) {
		__u64 id = first + i;

		ASSERT_EQ(id, events[i].id);
		ASSERT_EQ(~id, events[i].cookie);
		ASSERT_EQ(self->handles[id], events[i].handle);
		ASSERT_EQ(id * TW_SEC, events[i].deadline);
	}
}

/* Expects to read all tokens from @first on, in order, and no token after them. */
static void expect_rest(struct __test_metadata *_metadata,
			const FIXTURE_DATA(faults) *self, __u64 first)
{
	struct timewheel_event events[N];
	int left = N + 1 - first;

	if (left) {
		ASSERT_EQ(left, tw_read(self->fd, events, N));
		expect_events(_metadata, self, events, left, first);
	}
	ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, events, 1)));
}

/* Expects that @delivered events were read and the other tokens were put back. */
static void expect_put_back(struct __test_metadata *_metadata,
			    const FIXTURE_DATA(faults) *self, __u64 delivered)
{
	struct timewheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(delivered, info.delivered);
	EXPECT_EQ(N - delivered, info.pending);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_LE(1ULL, info.put_back);
	EXPECT_TRUE(delivered == N || tw_readable(self->fd));
}

TEST_F(faults, read_into_a_buffer_that_ends_too_early)
{
	const size_t whole[] = { 0, 1, 2, 7, 8, 9, 63, 64, 65, 100, N - 1 };
	const size_t extra[] = { 0, 1, 24, 47 };

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(extra); j++) {
			size_t fit = whole[i];
			char *at = self->hole - fit * EVENT - extra[j];

			refill(_metadata, self);
			EXPECT_EQ(fit ? (int)(fit * EVENT) : -EFAULT,
				  tw_ret(read(self->fd, at, 2 * N * EVENT))) {
				TH_LOG("room for %zu and %zu bytes", fit,
				       extra[j]);
			}
			expect_events(_metadata, self, (void *)at, fit, 1);
			expect_put_back(_metadata, self, fit);
			expect_rest(_metadata, self, 1 + fit);
		}
	}
}

TEST_F(faults, read_into_memory_without_access)
{
	void *const bad[] = {
		self->hole, NULL, (void *)8, (void *)-4096L,
#ifdef __x86_64__
		(void *)0xffff888000000000, (void *)0x0000800000000000,
#endif
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EFAULT, tw_ret(read(self->fd, bad[i], N * EVENT))) {
			TH_LOG("%p", bad[i]);
		}
		EXPECT_EQ(-EFAULT, tw_ret(read(self->fd, bad[i], EVENT)));
	}
	ASSERT_EQ(0, mprotect(self->pages, self->page_size, PROT_READ));
	EXPECT_EQ(-EFAULT, tw_ret(read(self->fd, self->pages, N * EVENT)));
	expect_put_back(_metadata, self, 0);
	expect_rest(_metadata, self, 1);
}

/*
 * The read fails many times, so that tokens which were put back are taken and put back
 * again.
 */
TEST_F(faults, read_again_and_again)
{
	struct timewheel_event event;

	for (__u64 id = 1; id <= N; id++) {
		for (int i = 0; i < 3; i++)
			ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, self->hole,
						       N * EVENT)));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		expect_events(_metadata, self, &event, 1, id);
	}
	ASSERT_EQ(-EAGAIN, tw_ret(read(self->fd, self->hole, N * EVENT)));
}

/* A length of a GiB tells nothing about the memory, which ends behind N events. */
TEST_F(faults, read_of_a_huge_length)
{
	char *at = self->hole - N * EVENT;

	EXPECT_EQ((int)(N * EVENT), tw_ret(read(self->fd, at, 1UL << 30)));
	expect_events(_metadata, self, (void *)at, N, 1);
	expect_rest(_metadata, self, N + 1);
}

/* An event may lie in several pieces of memory. An event in the hole is read again. */
TEST_F(faults, readv)
{
	char *at = self->pages;
	struct timewheel_event events[8];
	struct iovec good[] = {
		{ at, 0 }, { at, 1 }, { at + 1, EVENT }, { self->hole, 0 },
		{ at + 1 + EVENT, EVENT - 1 }, { at + 2 * EVENT, 2 * EVENT + 7 },
		{ at + 4 * EVENT + 7, EVENT },
	};
	struct iovec with_hole[] = {
		{ at, EVENT + 20 }, { self->hole, EVENT }, { at, 8 * EVENT },
	};
	struct iovec hole_in_event[] = {
		{ at, 20 }, { self->hole, 8 }, { at + 20, 8 * EVENT },
	};

	EXPECT_EQ((int)(5 * EVENT), tw_ret(readv(self->fd, good,
						 ARRAY_SIZE(good))));
	memcpy(events, at, sizeof(events));
	expect_events(_metadata, self, events, 5, 1);

	EXPECT_EQ((int)EVENT, tw_ret(readv(self->fd, with_hole,
					   ARRAY_SIZE(with_hole))));
	memcpy(events, at, sizeof(events));
	expect_events(_metadata, self, events, 1, 6);

	EXPECT_EQ(-EFAULT, tw_ret(readv(self->fd, hole_in_event,
					ARRAY_SIZE(hole_in_event))));
	expect_put_back(_metadata, self, 6);
	expect_rest(_metadata, self, 7);
}

/* A token that was put back is a token like any other (P4). */
TEST_F(faults, what_was_put_back_can_be_changed)
{
	struct timewheel_event events[N];
	struct timewheel_token token;
	int n;

	ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, self->hole, N * EVENT)));
	EXPECT_EQ(0, tw_get(self->fd, 0, 1, &token));
	EXPECT_EQ(self->handles[1], token.handle);
	EXPECT_EQ(TIMEWHEEL_STATE_PENDING, token.state);
	EXPECT_EQ(TW_SEC, token.deadline);
	EXPECT_EQ(0ULL, token.left);
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, 1));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
						   self->handles[2]));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, 0, 3));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
						  self->handles[4]));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, 5, 20 * TW_SEC));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
						 self->handles[6], 21 * TW_SEC));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, 7, TW_SEC, 0, NULL)));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch_or_register(self->fd, 8, TW_SEC,
							      0));

	/*
	 * The tokens 7, 9 and later are still due; 3, 4 and 8 come due again, and then
	 * 5 and 6.
	 */
	n = tw_read(self->fd, events, N);
	ASSERT_EQ(N - 7, n);
	expect_events(_metadata, self, events, 1, 7);
	expect_events(_metadata, self, events + 1, n - 1, 9);
	ASSERT_EQ(0, tw_advance(self->fd, N + 8));
	ASSERT_EQ(3, tw_read(self->fd, events, N));
	EXPECT_EQ(3ULL, events[0].id);
	EXPECT_EQ((N + 3) * TW_SEC, events[0].deadline);
	EXPECT_EQ(4ULL, events[1].id);
	EXPECT_EQ(8ULL, events[2].id);
	ASSERT_EQ(0, tw_advance(self->fd, N + 19));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, events, N)));
	ASSERT_EQ(0, tw_advance(self->fd, N + 21));
	ASSERT_EQ(2, tw_read(self->fd, events, N));
	EXPECT_EQ(5ULL, events[0].id);
	EXPECT_EQ(6ULL, events[1].id);
}

/* The hand may go back from under the tokens that were put back. */
TEST_F(faults, what_was_put_back_keeps_its_deadline)
{
	struct timewheel_event events[N];

	ASSERT_EQ(-EFAULT, tw_ret(read(self->fd, self->hole, N * EVENT)));
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	ASSERT_EQ(10, tw_read(self->fd, events, N));
	expect_events(_metadata, self, events, 10, 1);
	ASSERT_EQ(0, tw_advance(self->fd, N));
	expect_rest(_metadata, self, 11);
}

/* Makes a new wheel whose tokens @first to @last are due on the ticks of their ids. */
static void refill_with(struct __test_metadata *_metadata,
			FIXTURE_DATA(faults) *self, __u64 first, __u64 last)
{
	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, 10 * N, 0));
	for (__u64 id = first; id <= last; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, ~id, NULL));
	ASSERT_EQ(0, tw_advance(self->fd, last));
}

/* Reads into memory that ends behind @n events. */
static void read_and_fault(struct __test_metadata *_metadata,
			   const FIXTURE_DATA(faults) *self, int n)
{
	char *at = self->hole - n * EVENT - 1;

	ASSERT_EQ(n ? (int)(n * EVENT) : -EFAULT,
		  tw_ret(read(self->fd, at, 2 * N * EVENT)));
}

/* Expects to read these ids, in this order, and no token after them. */
static void expect_ids(struct __test_metadata *_metadata,
		       const FIXTURE_DATA(faults) *self, const __u64 *ids, int n)
{
	struct timewheel_event events[N];

	ASSERT_EQ(n, tw_read(self->fd, events, N));
	for (int i = 0; i < n; i++)
		EXPECT_EQ(ids[i], events[i].id);
	ASSERT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, events, 1)));
}

/* A cancelled token leaves the other tokens in the order of their due ticks. */
TEST_F(faults, order_of_what_was_put_back)
{
	const __u64 left[] = { 12, 13, 14, 16 };

	refill_with(_metadata, self, 11, 16);
	read_and_fault(_metadata, self, 1);
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, 15));
	expect_ids(_metadata, self, left, ARRAY_SIZE(left));
}

/* A token that was put back and touched comes among later tokens when it is due again. */
TEST_F(faults, order_of_what_was_put_back_and_touched)
{
	const __u64 order[] = { 11, 13, 14, 15, 16, 20, 27, 12, 29, 40 };

	refill_with(_metadata, self, 11, 16);
	read_and_fault(_metadata, self, 0);
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, 0, 12));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (order[i] <= 16)
			continue;
		ASSERT_EQ(0, tw_register_at(self->fd, order[i],
					    order[i] * TW_SEC, 0));
	}
	/* Nobody reads until long after tick 28, when token 12 is due again. */
	ASSERT_EQ(0, tw_advance(self->fd, 1000));
	expect_ids(_metadata, self, order, ARRAY_SIZE(order));
}

TEST_F(faults, order_after_several_faults)
{
	const __u64 left[] = { 14, 15, 16 };

	refill_with(_metadata, self, 11, 16);
	read_and_fault(_metadata, self, 1);
	read_and_fault(_metadata, self, 2);
	read_and_fault(_metadata, self, 0);
	expect_ids(_metadata, self, left, ARRAY_SIZE(left));
}

/* The later tokens are more slots away than the finest level for put-back tokens has. */
TEST_F(faults, order_of_what_was_put_back_and_is_far_apart)
{
	const __u64 order[] = { 11, 12, 13, 200, 5000, 90000 };

	refill_with(_metadata, self, 11, 13);
	for (size_t i = ARRAY_SIZE(order) - 1; order[i] > 13; i--)
		ASSERT_EQ(0, tw_register_at(self->fd, order[i], order[i] * TW_SEC, 0));
	ASSERT_EQ(0, tw_advance(self->fd, 90000));
	read_and_fault(_metadata, self, 0);
	read_and_fault(_metadata, self, 2);
	expect_ids(_metadata, self, order + 2, ARRAY_SIZE(order) - 2);
}

/*
 * More tokens are put back than a reader takes at a time, and some are cancelled
 * meanwhile.
 */
TEST_F(faults, order_of_many_that_were_put_back)
{
	__u64 left[N];
	int n = 0;

	read_and_fault(_metadata, self, 0);
	for (__u64 id = 5; id <= N; id += 5)
		ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, id));
	/* The read gets the ids up to 87: 70 events, of which 64 are a batch. */
	read_and_fault(_metadata, self, 70);
	for (__u64 id = 98; id <= N; id += 10)
		ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, id));
	for (__u64 id = 88; id <= N; id++) {
		if (id % 5 && (id < 98 || id % 10 != 8))
			left[n++] = id;
	}
	expect_ids(_metadata, self, left, n);
}

static void fill_ops(char *at, __u32 n, size_t last_bytes)
{
	struct timewheel_op op = {
		.size = OP, .code = TIMEWHEEL_OP_REGISTER, .result = -77,
		.time = TW_SEC,
	};

	for (__u32 i = 0; i <= n; i++) {
		op.id = 1000 + i;
		memcpy(at + i * OP, &op, i < n ? OP : last_bytes);
	}
}

/* Expects exactly the first @n of the @of ids from 1000 on. */
static void expect_registered(struct __test_metadata *_metadata,
			      const FIXTURE_DATA(faults) *self, __u32 n,
			      __u32 of)
{
	struct timewheel_token token;
	struct timewheel_info info;

	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)N + n, info.pending);
	EXPECT_EQ((__u64)N + n, info.registered - info.cancelled);
	for (__u32 i = 0; i < of; i++) {
		EXPECT_EQ(i < n ? 0 : -ENOENT,
			  tw_ret(tw_get(self->fd, 0, 1000 + i, &token))) {
			TH_LOG("%u of %u", i, n);
		}
	}
}

/* The elements before the unreadable element are done, and @done counts them. */
TEST_F(faults, batch_that_ends_too_early)
{
	const __u32 whole[] = { 0, 1, 15, 16, 17, 32, 60, 100 };
	const size_t extra[] = { 0, 1, 4, 16, 40, OP - 1 };
	const __u32 count = 120;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(extra); j++) {
			char *at = self->hole - whole[i] * OP - extra[j];
			struct timewheel_op *ops = (void *)at;
			__u32 done = 0xcccc;

			fill_ops(at, whole[i], extra[j]);
			EXPECT_EQ(-EFAULT, tw_ret(tw_batch(self->fd, ops, count,
							   &done)));
			EXPECT_EQ(whole[i], done) {
				TH_LOG("%u and %zu bytes", whole[i], extra[j]);
			}
			expect_registered(_metadata, self, done, count);
			for (__u32 k = 0; k < done; k++) {
				struct timewheel_op op;

				memcpy(&op, at + k * OP, OP);
				EXPECT_EQ(0, op.result);
				EXPECT_EQ(0, tw_cancel(self->fd,
						       TIMEWHEEL_OPF_BY_HANDLE,
						       op.handle));
			}
			expect_registered(_metadata, self, 0, count);
		}
	}
}

/* A caller that mends its memory goes on from @done. */
TEST_F(faults, batch_that_is_continued)
{
	const __u32 count = 120;
	char *at = self->hole - 50 * OP - 30;
	struct timewheel_op *ops = (void *)at;
	__u32 done, more;

	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size,
			      PROT_READ | PROT_WRITE));
	fill_ops(at, count, 0);
	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size, PROT_NONE));
	EXPECT_EQ(-EFAULT, tw_ret(tw_batch(self->fd, ops, count, &done)));
	expect_registered(_metadata, self, done, count);
	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size,
			      PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, tw_batch(self->fd, (void *)(at + done * OP), count - done,
			      &more));
	EXPECT_EQ(count, done + more);
	expect_registered(_metadata, self, count, count);
	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size, PROT_NONE));
}

/* The operations that @done counts are done although their results cannot be written. */
TEST_F(faults, batch_in_read_only_memory)
{
	const __u32 whole[] = { 0, 1, 15, 16, 17, 40 };
	const __u32 count = 60;

	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		char *at = self->hole - whole[i] * OP - 20 * !!whole[i];
		struct timewheel_op op;
		__u32 done = 0xcccc;

		ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size,
				      PROT_READ | PROT_WRITE));
		fill_ops(at, count, 0);
		ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size,
				      PROT_READ));
		EXPECT_EQ(-EFAULT, tw_ret(tw_batch(self->fd, (void *)at, count,
						   &done)));
		EXPECT_LT(whole[i], done);
		EXPECT_GT(count, done);
		expect_registered(_metadata, self, done, count);
		for (__u32 k = 0; k < count; k++) {
			memcpy(&op, at + k * OP, OP);
			EXPECT_TRUE(op.result == -77 ||
				    (k < done && op.result == 0));
			tw_cancel(self->fd, 0, 1000 + k);
		}
		expect_registered(_metadata, self, 0, count);
	}
	ASSERT_EQ(0, mprotect(self->hole, PAGES * self->page_size, PROT_NONE));
}

/*
 * The larger operations of a newer program are answered one by one, and are done
 * although their results cannot be written.
 */
TEST_F(faults, batch_of_wider_operations_in_read_only_memory)
{
	const __u32 count = 3, size = OP + 8;
	struct timewheel_batch batch = {
		.size = sizeof(batch), .ops = (uintptr_t)self->pages,
		.count = count, .op_size = size,
	};

	memset(self->pages, 0, self->page_size);
	for (__u32 i = 0; i < count; i++) {
		const struct timewheel_op op = {
			.size = size, .code = TIMEWHEEL_OP_REGISTER,
			.id = 1000 + i, .time = TW_SEC,
		};

		memcpy(self->pages + i * size, &op, OP);
	}
	ASSERT_EQ(0, mprotect(self->pages, self->page_size, PROT_READ));
	EXPECT_EQ(-EFAULT, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_BATCH, &batch)));
	EXPECT_EQ(count, batch.done);
	expect_registered(_metadata, self, count, count);
}

TEST_F(faults, batch_at_a_bad_address)
{
	const __u64 bad[] = {
		0, 8, (__u64)(uintptr_t)self->hole, ~0ULL, 1 - OP,
		~0ULL - 4095, 1ULL << 63, 0xffff888000000000, 0x800000000000,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct timewheel_batch batch = {
			.size = sizeof(batch), .ops = bad[i], .count = 100,
			.op_size = OP, .done = 0xcccc,
		};

		EXPECT_EQ(-EFAULT, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_BATCH,
						&batch))) {
			TH_LOG("%#llx", bad[i]);
		}
		EXPECT_EQ(0U, batch.done);
	}
	expect_registered(_metadata, self, 0, 1);
	expect_rest(_metadata, self, 1);
}

/* The keys before the unreadable key are touched, and @done counts them. */
TEST_F(faults, keys_that_end_too_early)
{
	const __u32 whole[] = { 0, 1, 63, 64, 65, 128, 200 };
	const __u64 key = 1000;
	struct timewheel_info info;
	__u64 touched = 0, *keys;
	__u32 done;

	ASSERT_EQ(0, tw_register(self->fd, key, TW_SEC, 0, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t extra = 0; extra < sizeof(key); extra++) {
			char *at = self->hole - whole[i] * sizeof(key) - extra;

			for (__u32 k = 0; k < whole[i]; k++)
				memcpy(at + k * sizeof(key), &key, sizeof(key));
			done = 0xcccc;
			EXPECT_EQ(-EFAULT, tw_ret(tw_touch_keys(self->fd, 0,
								(void *)at, 300,
								&done)));
			EXPECT_EQ(whole[i], done) {
				TH_LOG("%u and %zu bytes", whole[i], extra);
			}
			touched += whole[i];
			ASSERT_EQ(0, tw_info(self->fd, &info));
			EXPECT_EQ(touched, info.touched);
		}
	}
	/*
	 * The error of a wrong key comes before the fault of an unreadable key behind
	 * it.
	 */
	keys = (void *)self->hole;
	keys[-2] = key;
	keys[-1] = key + 1;
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch_keys(self->fd, 0, keys - 2, 300,
						&done)));
	EXPECT_EQ(1U, done);
	EXPECT_EQ(0, tw_cancel(self->fd, 0, key));
}

/* GET changes nothing, and counts the keys for which it has written tokens. */
TEST_F(faults, get_at_the_end_of_memory)
{
	const size_t size = sizeof(struct timewheel_token);
	const __u32 whole[] = { 0, 1, 7, 8, 9, 20 };
	struct timewheel_token tokens[N];
	struct tw_state before, after;
	__u64 keys[N];
	__u32 done;

	for (__u64 i = 0; i < N; i++)
		keys[i] = i + 1;
	ASSERT_EQ(0, tw_get_state(self->fd, 0, 1, &before));
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t extra = 0; extra < sizeof(__u64); extra++) {
			char *at = self->hole - whole[i] * sizeof(__u64) - extra;

			/* There are fewer keys in memory than the count tells. */
			memcpy(at, keys, whole[i] * sizeof(__u64));
			EXPECT_EQ(-EFAULT, tw_ret(tw_get_keys(self->fd, 0,
							      (void *)at, N,
							      tokens, &done))) {
				TH_LOG("%u keys", whole[i]);
			}
			EXPECT_EQ(whole[i], done);
			/* There is less room for tokens than the count tells. */
			at = self->hole - whole[i] * size - extra;
			EXPECT_EQ(-EFAULT, tw_ret(tw_get_keys(self->fd, 0, keys,
							      N, (void *)at,
							      &done))) {
				TH_LOG("room for %u", whole[i]);
			}
			EXPECT_GE(whole[i], done);
		}
	}
	ASSERT_EQ(0, tw_get_state(self->fd, 0, 1, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(after)));
	EXPECT_EQ(0, tw_get_keys(self->fd, 0, keys, N, tokens, &done));
	EXPECT_EQ((__u32)N, done);
	for (__u32 i = 0; i < N; i++)
		EXPECT_EQ(self->handles[i + 1], tokens[i].handle);
	expect_rest(_metadata, self, 1);
}

TEST_F(faults, keys_at_a_bad_address)
{
	const __u64 bad[] = {
		0, 8, (__u64)(uintptr_t)self->hole, ~0ULL, ~0ULL - 7,
		~0ULL - 4095, 1ULL << 63, 0xffff888000000000, 0x800000000000,
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct timewheel_touch_many many = {
			.size = sizeof(many), .keys = bad[i], .count = 100,
			.done = 0xcccc,
		};

		EXPECT_EQ(-EFAULT, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_TOUCH_MANY,
						&many))) {
			TH_LOG("%#llx", bad[i]);
		}
		EXPECT_EQ(0U, many.done);
	}
	expect_rest(_metadata, self, 1);
}

/* The array may lie over the header; the call uses the header that it has read. */
TEST_F(faults, batch_over_its_own_header)
{
	struct timewheel_batch *batch = (void *)self->pages;

	memset(self->pages, 0, self->page_size);
	*batch = (struct timewheel_batch) {
		.size = sizeof(*batch), .ops = (__u64)(uintptr_t)batch,
		.count = 20, .op_size = OP,
	};
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_BATCH, batch));
	EXPECT_EQ(20U, batch->done);
	expect_registered(_metadata, self, 0, 1);
}

/*
 * Keys may lie over the header, too: the size and flags of the header are the first
 * key.
 */
TEST_F(faults, keys_over_their_own_header)
{
	struct timewheel_touch_many *many = (void *)self->pages;
	__u64 first;

	*many = (struct timewheel_touch_many) {
		.size = sizeof(*many), .keys = (__u64)(uintptr_t)many,
		.count = 2,
	};
	memcpy(&first, many, sizeof(first));
	/*
	 * On a little-endian machine the first key is a token's id: then EEXIST comes
	 * here.
	 */
	tw_register(self->fd, first, TW_SEC, 0, NULL);
	EXPECT_EQ(-ENOENT, tw_ret(ioctl(self->fd, TIMEWHEEL_IOC_TOUCH_MANY, many)));
	EXPECT_EQ(1U, many->done);
	EXPECT_EQ(sizeof(*many), many->size);
	EXPECT_EQ(0, tw_cancel(self->fd, 0, first));
}

/* LIST writes its header last, over the tokens that lay there. */
TEST_F(faults, list_over_its_own_header)
{
	struct timewheel_list *list = (void *)self->pages;
	struct timewheel_token *tokens = (void *)self->pages;

	*list = (struct timewheel_list) {
		.size = sizeof(*list), .to = TIMEWHEEL_NEVER, .count = 3,
		.tokens = (__u64)(uintptr_t)list, .token_size = sizeof(*tokens),
	};
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, list));
	EXPECT_EQ(sizeof(*list), list->size);
	EXPECT_EQ(3U, list->listed);
	EXPECT_EQ(3U, list->count);
	for (int i = 1; i < 3; i++) {
		ASSERT_LE(1ULL, tokens[i].id);
		ASSERT_GE((__u64)N, tokens[i].id);
		EXPECT_EQ(~tokens[i].id, tokens[i].cookie);
		EXPECT_EQ(self->handles[tokens[i].id], tokens[i].handle);
	}
	expect_rest(_metadata, self, 1);
}

TEST_F(faults, histogram_over_its_own_header)
{
	static __u64 lateness[TIMEWHEEL_BUCKETS];
	struct timewheel_stats *stats = (void *)self->pages;
	struct timewheel_stats apart = {
		.size = sizeof(apart), .lateness = (__u64)(uintptr_t)lateness,
	};

	expect_rest(_metadata, self, 1);
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_STATS, &apart));
	*stats = (struct timewheel_stats) {
		.size = sizeof(*stats), .lateness = (__u64)(uintptr_t)stats,
	};
	EXPECT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_STATS, stats));
	EXPECT_EQ(0, memcmp(stats, lateness, sizeof(lateness)));
}

/*
 * Does everything that others do while a reader or a batch waits for its memory. No
 * token is taken meanwhile; the tokens 1 and 2 are cancelled here, and 3 is read.
 */
static void expect_all_works(struct __test_metadata *_metadata,
			     const FIXTURE_DATA(faults) *self)
{
	struct timewheel_event event;
	struct timewheel_info before, info;
	struct timewheel_token token;
	char path[64];
	int fdinfo;

	ASSERT_EQ(0, tw_info(self->fd, &before));
	EXPECT_EQ(0ULL, before.taken);
	for (__u64 id = 1; id <= N; id++) {
		EXPECT_EQ(0, tw_get(self->fd, 0, id, &token));
		EXPECT_EQ(self->handles[id], token.handle);
		EXPECT_EQ((__u32)TIMEWHEEL_STATE_PENDING, token.state);
		EXPECT_EQ(id * TW_SEC, token.deadline);
	}
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, 1));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
						   self->handles[2]));
	EXPECT_EQ(0, tw_register(self->fd, 500, TW_SEC, 0, NULL));
	EXPECT_EQ(0, tw_touch(self->fd, 0, 500));
	EXPECT_EQ(0, tw_move(self->fd, 0, 500, 2 * TW_SEC));
	EXPECT_EQ(0, tw_get(self->fd, 0, 500, &token));
	EXPECT_EQ(0, tw_cancel(self->fd, 0, 500));
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(1, tw_read(self->fd, &event, 1));
	expect_events(_metadata, self, &event, 1, 3);
	EXPECT_EQ(0, tw_advance(self->fd, N));
	EXPECT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(before.pending - 3, info.pending);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	fdinfo = open(path, O_RDONLY | O_CLOEXEC);
	EXPECT_LT(0, read(fdinfo, path, sizeof(path)));
	close(fdinfo);
}

TEST_F(faults, slow_reader_stops_nobody)
{
	struct tw_slow_reader r;

	TW_START_SLOW_READER(&r, self->fd, self->pages, 2 * self->page_size);
	expect_all_works(_metadata, self);
	ASSERT_TRUE(tw_bring_pages(r.uffd, self->pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ((int)((N - 3) * EVENT), r.ret);
	expect_events(_metadata, self, (void *)self->pages, N - 3, 4);
	expect_rest(_metadata, self, N + 1);
	close(r.uffd);
}

/* Another reader gets all due tokens, although the slow reader came before it. */
TEST_F(faults, slow_reader_keeps_nothing)
{
	struct timewheel_info info;
	struct tw_slow_reader r;

	TW_START_SLOW_READER(&r, self->fd, self->pages, self->page_size);
	expect_rest(_metadata, self, 1);
	/* No token is left for the slow reader. */
	ASSERT_TRUE(tw_bring_pages(r.uffd, self->pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EAGAIN, r.ret);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ((__u64)N, info.delivered);
	close(r.uffd);
}

/* The buffer is lost while a reader waits for it. All tokens are there as before. */
TEST_F(faults, slow_reader_fails)
{
	struct tw_slow_reader r;

	TW_START_SLOW_READER(&r, self->fd, self->pages, 2 * self->page_size);
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, 1, TW_SEC, 0, NULL)));
	ASSERT_TRUE(tw_lose_pages(r.uffd, self->pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EFAULT, r.ret);
	expect_put_back(_metadata, self, 0);
	expect_rest(_metadata, self, 1);
	close(r.uffd);
}

/* The end of the buffer is lost. The events that were copied before the end count. */
TEST_F(faults, slow_reader_fails_in_the_end)
{
	char *last = self->pages + self->page_size, *at = last - 7 * EVENT - 5;
	struct tw_slow_reader r = {
		.fd = self->fd, .pages = at, .size = 20 * EVENT,
		.uffd = tw_open_userfaultfd(last, self->page_size),
	};

	if (r.uffd < 0)
		SKIP(return, "no userfaultfd for faults of the kernel");
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, tw_read_slowly, &r));
	ASSERT_TRUE(tw_wait_for_fault(r.uffd));
	expect_put_back(_metadata, self, 7);
	ASSERT_TRUE(tw_lose_pages(r.uffd, last, self->page_size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ((int)(7 * EVENT), r.ret);
	expect_events(_metadata, self, (void *)at, 7, 1);
	expect_rest(_metadata, self, 8);
	close(r.uffd);
}

/*
 * The reader whose memory comes first gets the earliest tokens, not the reader who
 * asked first.
 */
TEST_F(faults, order_of_two_slow_readers)
{
	struct tw_slow_reader r[2];
	int first, second;

	for (int i = 0; i < 2; i++) {
		TW_START_SLOW_READER(&r[i], self->fd,
				     self->pages + i * self->page_size,
				     self->page_size);
	}
	expect_put_back(_metadata, self, 0);
	for (int i = 1; i >= 0; i--) {
		ASSERT_TRUE(tw_bring_pages(r[i].uffd, r[i].pages, r[i].size));
		ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
		close(r[i].uffd);
	}
	first = self->page_size / EVENT < N ? self->page_size / EVENT : N;
	second = N - first < first ? N - first : first;
	ASSERT_EQ((int)(first * EVENT), r[1].ret);
	ASSERT_EQ(second ? (int)(second * EVENT) : -EAGAIN, r[0].ret);
	expect_events(_metadata, self, r[1].pages, first, 1);
	expect_events(_metadata, self, r[0].pages, second, first + 1);
	expect_rest(_metadata, self, first + second + 1);
}

TEST_F(faults, two_slow_readers_fail)
{
	struct tw_slow_reader r[2];

	for (int i = 0; i < 2; i++) {
		TW_START_SLOW_READER(&r[i], self->fd,
				     self->pages + i * self->page_size,
				     self->page_size);
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(tw_lose_pages(r[i].uffd, r[i].pages, r[i].size));
		ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
		EXPECT_EQ(-EFAULT, r[i].ret);
		close(r[i].uffd);
	}
	expect_put_back(_metadata, self, 0);
	expect_rest(_metadata, self, 1);
}

/* The memory comes when the wheel is paused and delivers no token any more. */
TEST_F(faults, slow_reader_of_a_paused_wheel)
{
	struct tw_slow_reader r;

	TW_START_SLOW_READER(&r, self->fd, self->pages, self->page_size);
	ASSERT_EQ(0, tw_control(self->fd, TIMEWHEEL_CONTROL_PAUSED,
				TIMEWHEEL_CONTROL_PAUSED));
	ASSERT_TRUE(tw_bring_pages(r.uffd, self->pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EAGAIN, r.ret);
	ASSERT_EQ(0, tw_control(self->fd, 0, TIMEWHEEL_CONTROL_PAUSED));
	expect_rest(_metadata, self, 1);
	close(r.uffd);
}

static void ignore(int signal)
{
	(void)signal;
}

/*
 * A signal comes while a reader waits for its memory: the read ends when the memory is
 * there.
 */
TEST_F(faults, signal_for_a_slow_reader)
{
	struct sigaction action = { .sa_handler = ignore };
	struct tw_slow_reader r;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	TW_START_SLOW_READER(&r, self->fd, self->pages, self->page_size);
	ASSERT_EQ(0, pthread_kill(r.thread, SIGUSR1));
	tw_sleep_ms(100);
	ASSERT_TRUE(tw_bring_pages(r.uffd, self->pages, r.size));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(-EINTR, r.ret);
	expect_put_back(_metadata, self, 0);
	expect_rest(_metadata, self, 1);
	close(r.uffd);
}

/* Forks a process that reads into pages which never come. Returns its pid, or -1. */
static pid_t fork_slow_reader(int fd, void *pages, size_t size)
{
	pid_t child;
	int ready[2];
	char ok = 0;

	if (pipe(ready))
		return -1;
	child = fork();
	if (!child) {
		ok = tw_open_userfaultfd(pages, size) >= 0;
		if (write(ready[1], &ok, 1) != 1 || !ok)
			_exit(1);
		_exit(read(fd, pages, size) < 0);
	}
	if (child > 0 && (read(ready[0], &ok, 1) != 1 || !ok)) {
		waitpid(child, NULL, 0);
		child = -1;
	}
	close(ready[0]);
	close(ready[1]);
	return child;
}

/*
 * Waits until a reader has put back its tokens: from then on the reader waits for its
 * memory.
 */
static bool wait_for_put_back(int fd)
{
	struct timewheel_info info;

	for (int tries = 0; tries < 10000; tries++) {
		if (tw_info(fd, &info) < 0)
			return false;
		if (info.put_back && !info.taken)
			return true;
		tw_sleep_ms(1);
	}
	return false;
}

/* A reader that is killed while it waits for its memory takes no event with it (P5). */
TEST_F(faults, slow_reader_is_killed)
{
	pid_t child;

	child = fork_slow_reader(self->fd, self->pages, 2 * self->page_size);
	if (child < 0)
		SKIP(return, "no userfaultfd for faults of the kernel");
	ASSERT_TRUE(wait_for_put_back(self->fd));
	ASSERT_TRUE(tw_kill(child));
	expect_put_back(_metadata, self, 0);
	expect_rest(_metadata, self, 1);
}

static void *slow_memory;

static void read_into_slow_memory(struct tw_sleeper *sleeper)
{
	sleeper->ret = tw_ret(read(sleeper->fd, slow_memory, EVENT));
}

/* The reader that was woken for a token wakes the next reader, and then waits. */
TEST_F(faults, slow_reader_wakes_the_next)
{
	struct timewheel_event events[N];
	struct tw_sleeper slow, next;
	int uffd;

	ASSERT_EQ(N, tw_read(self->fd, events, N));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	slow_memory = self->pages;
	uffd = tw_open_userfaultfd(self->pages, self->page_size);
	if (uffd < 0)
		SKIP(return, "no userfaultfd for faults of the kernel");
	ASSERT_TRUE(tw_put_to_sleep(&slow, self->fd, read_into_slow_memory));
	ASSERT_TRUE(tw_put_to_sleep(&next, self->fd, tw_sleep_in_read));

	/* There is only one token, which the next reader takes. */
	ASSERT_EQ(0, tw_register(self->fd, 900, 0, 0, NULL));
	ASSERT_TRUE(tw_wait_for_fault(uffd));
	ASSERT_EQ(0, pthread_join(next.thread, NULL));
	EXPECT_EQ(1, next.ret);
	EXPECT_EQ(900ULL, next.event.id);

	/*
	 * The slow reader then finds no token, and sleeps until there is another token.
	 */
	ASSERT_TRUE(tw_bring_pages(uffd, self->pages, self->page_size));
	tw_wait_asleep(slow.tid);
	ASSERT_EQ(0, tw_register(self->fd, 901, 0, 0, NULL));
	ASSERT_EQ(0, pthread_join(slow.thread, NULL));
	EXPECT_EQ((int)EVENT, slow.ret);
	EXPECT_EQ(901ULL, ((struct timewheel_event *)self->pages)->id);
	close(uffd);
}

/* A batch does not stop others either while its memory is fetched. */
struct slow_batch {
	int fd;
	void *ops;
	__u32 done;
	int ret;
};

static void *batch_slowly(void *arg)
{
	struct slow_batch *b = arg;

	b->ret = tw_ret(tw_batch(b->fd, b->ops, 50, &b->done));
	return NULL;
}

TEST_F(faults, slow_batch_stops_nobody)
{
	/* 20 whole elements are there, the next elements are not. */
	char *at = self->pages + self->page_size - 20 * OP;
	struct slow_batch b = { .fd = self->fd, .ops = at };
	pthread_t thread;
	int uffd;

	uffd = tw_open_userfaultfd(self->pages + self->page_size,
				   self->page_size);
	if (uffd < 0)
		SKIP(return, "no userfaultfd for faults of the kernel");
	fill_ops(at, 20, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, batch_slowly, &b));
	ASSERT_TRUE(tw_wait_for_fault(uffd));
	expect_all_works(_metadata, self);

	/* The pages come as zeroes: elements whose size is wrong. */
	ASSERT_TRUE(tw_bring_pages(uffd, self->pages + self->page_size,
				   self->page_size));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, b.ret);
	EXPECT_EQ(50U, b.done);
	for (__u32 i = 0; i < 50; i++) {
		struct timewheel_op op;

		memcpy(&op, at + i * OP, OP);
		EXPECT_EQ(i < 20 ? 0 : -EINVAL, op.result);
	}
	close(uffd);
}

TEST_HARNESS_MAIN
