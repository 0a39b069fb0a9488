// SPDX-License-Identifier: GPL-2.0-only
/*
 * The event ring: expired tokens read from memory that is shared with the
 * kernel. Each is there exactly once, in the order of the due ticks (P3), what
 * does not fit is pending as before (P5), and whatever the consumers write into
 * their page, nothing is lost that they did not say they had consumed.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tw_clock.h"
#include "tw_named.h"
#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"
#include "tw_uring.h"

#define MAX_TOKENS	5000

/* A wheel's event ring as a consumer has it mapped. */
struct ring {
	const struct timewheel_produced *produced;
	const struct timewheel_event *events;
	struct timewheel_consumed *consumed;
	size_t len;	/* of the kernel's part */
	__u32 size;
};

static size_t produced_len(__u32 events)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t len = TIMEWHEEL_EVENTS_AT +
		     events * sizeof(struct timewheel_event);

	return (len + page - 1) / page * page;
}

static bool map_ring(int fd, struct ring *ring)
{
	struct timewheel_info info;
	void *produced, *consumed;

	if (tw_info(fd, &info) < 0 || !info.events)
		return false;
	ring->size = info.events;
	ring->len = produced_len(info.events);
	produced = mmap(NULL, ring->len, PROT_READ, MAP_SHARED, fd,
			TIMEWHEEL_MAP_PRODUCED);
	consumed = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, TIMEWHEEL_MAP_CONSUMED);
	ring->produced = produced;
	ring->events = (void *)((char *)produced + TIMEWHEEL_EVENTS_AT);
	ring->consumed = consumed;
	return produced != MAP_FAILED && consumed != MAP_FAILED;
}

static void unmap_ring(struct ring *ring)
{
	munmap((void *)ring->produced, ring->len);
	munmap((void *)ring->consumed, sysconf(_SC_PAGESIZE));
}

static __u64 tail_of(const struct ring *ring)
{
	return __atomic_load_n(&ring->produced->tail, __ATOMIC_ACQUIRE);
}

static __u64 head_of(const struct ring *ring)
{
	return __atomic_load_n(&ring->consumed->head, __ATOMIC_RELAXED);
}

static void set_head(struct ring *ring, __u64 head)
{
	__atomic_store_n(&ring->consumed->head, head, __ATOMIC_RELEASE);
}

/* Consumes up to @max events, as the header says. Returns how many. */
static __u32 consume(struct ring *ring, struct timewheel_event *events,
		     __u32 max)
{
	__u64 head = head_of(ring), tail = tail_of(ring);
	__u32 n = 0;

	for (; head != tail && n < max; head++)
		events[n++] = ring->events[head % ring->size];
	set_head(ring, head);
	return n;
}

static int setup_ring(int fd, __u32 clock, __u64 tick, __u64 max_tokens,
		      __u32 events, __u32 flags)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .flags = flags, .clock = clock,
		.slots = 60, .tick = tick, .max_tokens = max_tokens,
		.events = events,
	};

	return ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup);
}

FIXTURE(ring) {
	int fd;
	struct ring ring;
};

static void new_wheel(struct __test_metadata *_metadata,
		      FIXTURE_DATA(ring) *self, __u32 events)
{
	if (self->fd >= 0) {
		close(self->fd);
		unmap_ring(&self->ring);
	}
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, setup_ring(self->fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC,
				MAX_TOKENS, events, 0));
	ASSERT_TRUE(map_ring(self->fd, &self->ring));
}

FIXTURE_SETUP(ring)
{
	self->fd = -1;
	new_wheel(_metadata, self, 64);
}

FIXTURE_TEARDOWN(ring)
{
	if (self->fd >= 0)
		close(self->fd);
	unmap_ring(&self->ring);
}

static __u64 pending(struct __test_metadata *_metadata, int fd)
{
	struct timewheel_info info;

	ASSERT_EQ(0, tw_info(fd, &info));
	ASSERT_EQ(0ULL, info.taken);
	return info.pending;
}

/* Tokens @first, @first + 1, ... due one on each tick from @tick on. */
static void register_due(struct __test_metadata *_metadata, int fd,
			 __u64 first, __u64 n, __u64 tick)
{
	for (__u64 i = 0; i < n; i++)
		ASSERT_LE(0, tw_register_at(fd, first + i, (tick + i) * TW_SEC,
					    ~(first + i)));
}

/* All that is in the ring is these, in this order, as they were registered. */
static void expect_ids(struct __test_metadata *_metadata, struct ring *ring,
		       __u64 first, __u32 n, __u64 first_tick, __u64 now)
{
	struct timewheel_event event;

	for (__u32 i = 0; i < n; i++) {
		ASSERT_EQ(1U, consume(ring, &event, 1)) {
			TH_LOG("event %u of %u", i, n);
		}
		ASSERT_EQ(first + i, event.id);
		ASSERT_EQ(~(first + i), event.cookie);
		ASSERT_NE(0ULL, event.handle);
		ASSERT_EQ((first_tick + i) * TW_SEC, event.deadline);
		ASSERT_EQ(now * TW_SEC, event.taken);
		ASSERT_EQ(0U, event.lease);
		ASSERT_EQ(0U, event.missed);
	}
	ASSERT_EQ(0U, consume(ring, &event, 1));
}

TEST_F(ring, sizes)
{
	struct timewheel_info info;

	for (__u32 size = 1; size <= 65536; size *= 2) {
		const unsigned char *all;

		new_wheel(_metadata, self, size);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(size, info.events);
		EXPECT_LE(self->ring.len, info.bytes);
		EXPECT_EQ(size, self->ring.produced->size);
		/* All else is 0: nothing of the kernel's shows. */
		all = (const void *)self->ring.produced;
		for (size_t i = 0; i < self->ring.len; i++)
			if (i < 8 || i >= 12)
				ASSERT_EQ(0, all[i]);
		all = (const void *)self->ring.consumed;
		for (size_t i = 0; i < 4096; i++)
			ASSERT_EQ(0, all[i]);
		register_due(_metadata, self->fd, 1, 100, 1);
		ASSERT_EQ(0, tw_advance(self->fd, 200));
		for (__u32 done = 0; done < 100;) {
			__u32 n = 100 - done < size ? 100 - done : size;

			ASSERT_TRUE(tw_readable(self->fd));
			expect_ids(_metadata, &self->ring, 1 + done, n,
				   1 + done, 200);
			done += n;
		}
		EXPECT_FALSE(tw_readable(self->fd));
	}
}

TEST_F(ring, setup_errors)
{
	const __u32 bad[] = {
		3, 5, 6, 7, 12, 63, 65, 65535, 65537, 98304, 131072, 1U << 31,
		~0U,
	};
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = 1, .reserved = 1,
	};
	struct timewheel_info info;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, tw_ret(setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL,
						     TW_SEC, 1, bad[i], 0)));
	EXPECT_EQ(-EINVAL, tw_ret(ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup)));
	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC, 1, 0, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0U, info.events);
	EXPECT_EQ(0U, info.state);
	close(fd);
}

/* P3: FIFO by due tick, each once, around the ring many times. */
TEST_F_TIMEOUT(ring, fifo_many_times_around, 120)
{
	const __u32 sizes[] = { 1, 2, 8, 64, 1024 };
	const __u64 n = tw_scaled(4000);

	for (size_t s = 0; s < ARRAY_SIZE(sizes); s++) {
		__u64 state = 777 + s, seen = 0, now = 0, last = 0;
		unsigned char *got = calloc(n, 1);
		struct timewheel_info info;

		new_wheel(_metadata, self, sizes[s]);
		for (__u64 id = 0; id < n; id++)
			ASSERT_EQ(0, tw_register(self->fd, id, TW_SEC *
						 (1 + tw_random(&state) % 900),
						 ~id, NULL));
		while (seen < n) {
			struct timewheel_event events[64];
			__u32 some = consume(&self->ring, events,
					     1 + tw_random(&state) % 64);

			for (__u32 i = 0; i < some; i++) {
				ASSERT_LT(events[i].id, n);
				ASSERT_EQ(0, got[events[i].id]++);
				ASSERT_EQ(~events[i].id, events[i].cookie);
				ASSERT_LE(last, events[i].deadline);
				ASSERT_LE(events[i].deadline, events[i].taken);
				last = events[i].deadline;
			}
			seen += some;
			if (some && tw_random(&state) % 4)
				continue;
			now += 1 + tw_random(&state) % 20;
			ASSERT_EQ(0, tw_advance(self->fd, now));
			tw_readable(self->fd);
		}
		EXPECT_EQ(n, self->ring.produced->tail);
		EXPECT_EQ(n, self->ring.consumed->head);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(n, info.delivered);
		EXPECT_EQ(0ULL, info.pending);
		free(got);
	}
}

/* P5: the ring is a window on what is due; the rest stays pending. */
TEST_F(ring, full)
{
	struct timewheel_op op;
	__u64 handle;

	new_wheel(_metadata, self, 4);
	register_due(_metadata, self->fd, 1, 4, 1);
	/* The rest has a timeout of its own, so that it can be touched. */
	for (__u64 id = 5; id <= 10; id++)
		ASSERT_EQ(0, tw_register(self->fd, id, id * TW_SEC, ~id,
					 &handle));
	ASSERT_EQ(0, tw_advance(self->fd, 20));
	EXPECT_EQ(0ULL, tail_of(&self->ring));
	for (int i = 0; i < 5; i++)
		EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(4ULL, tail_of(&self->ring));
	EXPECT_EQ(6ULL, pending(_metadata, self->fd));

	/* What is in the ring has been delivered. */
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, 1, &op)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_touch(self->fd, 0, 4)));
	EXPECT_EQ(-ENOENT, tw_ret(tw_cancel(self->fd, 0, 4)));
	EXPECT_EQ(-ESTALE, tw_ret(tw_cancel(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					    self->ring.events[0].handle)));
	/* What is not can still be kept, moved and cancelled. */
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_get(self->fd, 0, 5, &op));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_touch(self->fd, 0, 5));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(self->fd, 0, 6));
	EXPECT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_move(self->fd, 0, 7, 10 * TW_SEC));
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(4ULL, tail_of(&self->ring));

	/* Consumed in part, it is filled up by the next poll, not before. */
	set_head(&self->ring, 2);
	EXPECT_EQ(4ULL, tail_of(&self->ring));
	EXPECT_EQ(5ULL, pending(_metadata, self->fd));
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(6ULL, tail_of(&self->ring));
	EXPECT_EQ(3ULL, self->ring.events[2].id);
	EXPECT_EQ(8ULL, self->ring.events[0].id);
	EXPECT_EQ(9ULL, self->ring.events[1].id);
	set_head(&self->ring, 6);
	EXPECT_TRUE(tw_readable(self->fd));
	expect_ids(_metadata, &self->ring, 10, 1, 10, 20);
	EXPECT_FALSE(tw_readable(self->fd));
	EXPECT_EQ(2ULL, pending(_metadata, self->fd));
	ASSERT_EQ(0, tw_advance(self->fd, 25));
	EXPECT_TRUE(tw_readable(self->fd));
	expect_ids(_metadata, &self->ring, 5, 1, 25, 25);
	ASSERT_EQ(0, tw_advance(self->fd, 30));
	EXPECT_TRUE(tw_readable(self->fd));
	expect_ids(_metadata, &self->ring, 7, 1, 30, 30);
	EXPECT_FALSE(tw_readable(self->fd));
	EXPECT_EQ(0ULL, pending(_metadata, self->fd));
}

/* More than one poll moves in one go: it says so until all is there. */
TEST_F(ring, mass_expiry)
{
	const __u64 n = 20000;
	__u64 seen = 0;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), polls = 0;
	struct ring ring;

	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC, n, 32768,
				0));
	ASSERT_TRUE(map_ring(fd, &ring));
	ASSERT_EQ(n, tw_register_many(fd, 0, n, 0, TW_SEC));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_advance(fd, 5));
	while (tw_readable(fd)) {
		__u64 tail = tail_of(&ring);

		ASSERT_LT(polls++, 1000);
		seen += tail - head_of(&ring);
		set_head(&ring, tail);
	}
	EXPECT_EQ(n, seen);
	unmap_ring(&ring);
	close(fd);
}

/*
 * Touched tokens are filed again on the way, more than one poll does: it says so
 * until all are, else nobody would look, and nobody be told of the next one.
 */
TEST_F(ring, many_filed_again_and_none_due)
{
	const __u64 n = 40000;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), polls = 0;
	struct timewheel_info info;
	struct ring ring;

	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC, n + 1, 16,
				0));
	ASSERT_TRUE(map_ring(fd, &ring));
	ASSERT_EQ(n, tw_register_many(fd, 1, n, 0, 10 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 5));
	ASSERT_EQ(n, tw_touch_many(fd, 1, n));
	ASSERT_EQ(0, tw_advance(fd, 10));
	while (tw_readable(fd))
		ASSERT_LT(polls++, 1000);
	EXPECT_EQ(0ULL, tail_of(&ring));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(n, info.refiled);
	EXPECT_EQ(15 * TW_SEC, info.next);
	unmap_ring(&ring);
	close(fd);
}

/* Says EPOLLIN while there is something in it, and not when all is consumed. */
TEST_F(ring, poll_says_what_is_in_it)
{
	struct timewheel_event event;

	EXPECT_FALSE(tw_readable(self->fd));
	register_due(_metadata, self->fd, 1, 3, 1);
	EXPECT_FALSE(tw_readable(self->fd));
	for (__u64 tick = 1; tick <= 3; tick++) {
		ASSERT_EQ(0, tw_advance(self->fd, tick));
		EXPECT_TRUE(tw_readable(self->fd));
		EXPECT_TRUE(tw_readable(self->fd));
		EXPECT_EQ(tick, tail_of(&self->ring));
		ASSERT_EQ(1U, consume(&self->ring, &event, 64));
		EXPECT_EQ(tick, event.id);
		EXPECT_FALSE(tw_readable(self->fd));
	}
	/* In the ring, while nothing is due any more. */
	register_due(_metadata, self->fd, 4, 2, 4);
	ASSERT_EQ(0, tw_advance(self->fd, 5));
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(0ULL, pending(_metadata, self->fd));
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(1U, consume(&self->ring, &event, 1));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(1U, consume(&self->ring, &event, 1));
	EXPECT_FALSE(tw_readable(self->fd));
}

/* An index that is not between tail - size and tail stops it: nothing is lost. */
TEST_F(ring, consumed_index_is_nonsense)
{
	const __u64 bad[] = {
		5, 6, 4 + 65536, ~0ULL, 1ULL << 63, (1ULL << 63) + 4,
		1ULL << 32, (1ULL << 32) + 4,
	};
	struct timewheel_event event;

	new_wheel(_metadata, self, 4);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		new_wheel(_metadata, self, 4);
		register_due(_metadata, self->fd, 1, 4, 1);
		ASSERT_EQ(0, tw_advance(self->fd, 4));
		EXPECT_TRUE(tw_readable(self->fd));
		EXPECT_EQ(4ULL, tail_of(&self->ring));
		register_due(_metadata, self->fd, 5, 4, 5);
		ASSERT_EQ(0, tw_advance(self->fd, 8));
		set_head(&self->ring, bad[i]);
		for (int tries = 0; tries < 3; tries++) {
			EXPECT_TRUE(tw_readable(self->fd));
			EXPECT_EQ(4ULL, tail_of(&self->ring)) {
				TH_LOG("head %llx", bad[i]);
			}
		}
		EXPECT_EQ(4ULL, pending(_metadata, self->fd));
		/* Others than its consumers are not concerned. */
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		EXPECT_EQ(5ULL, event.id);
		set_head(&self->ring, 0);
		expect_ids(_metadata, &self->ring, 1, 4, 1, 4);
		EXPECT_TRUE(tw_readable(self->fd));
		expect_ids(_metadata, &self->ring, 6, 3, 6, 8);
		EXPECT_FALSE(tw_readable(self->fd));
	}
	/* Backwards: not further than the ring is long. */
	EXPECT_EQ(7ULL, tail_of(&self->ring));
	register_due(_metadata, self->fd, 9, 2, 9);
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	set_head(&self->ring, 2);
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(7ULL, tail_of(&self->ring));
	set_head(&self->ring, 3);
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(7ULL, tail_of(&self->ring));
	/* There are the last four events to be seen again. */
	EXPECT_EQ(4U, self->ring.events[3].id);
	set_head(&self->ring, 4);
	EXPECT_TRUE(tw_readable(self->fd));
	EXPECT_EQ(8ULL, tail_of(&self->ring));
	EXPECT_EQ(9ULL, self->ring.events[3].id);
}

struct scribbler {
	struct ring *ring;
	__u64 state;
	bool stop;
};

static void *scribble(void *data)
{
	struct scribbler *me = data;

	while (!__atomic_load_n(&me->stop, __ATOMIC_RELAXED)) {
		__u64 head = tw_random(&me->state);

		if (head >> 40 & 3)
			head = tail_of(me->ring) + 10 - head % 80;
		set_head(me->ring, head);
	}
	return NULL;
}

/*
 * A consumers' page that changes all the time: what is produced is produced once
 * and whole, and with the page in order again the rest comes.
 */
TEST_F_TIMEOUT(ring, consumed_index_changes_at_random, 120)
{
	const __u64 rounds = tw_scaled(3000);
	__u64 registered = 0, read_ = 0, last = 0, now = 0, tail;
	struct timewheel_event events[16];
	struct scribbler scribbler = { .ring = &self->ring, .state = 31415 };
	struct timewheel_info info;
	pthread_t thread;
	int n;

	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &scribbler));
	for (__u64 round = 0; round < rounds; round++) {
		if (registered < 4000 + self->ring.produced->tail)
			register_due(_metadata, self->fd, registered, 8,
				     now + 1);
		else
			continue;
		registered += 8;
		now += 8;
		ASSERT_EQ(0, tw_advance(self->fd, now));
		tw_readable(self->fd);
		ASSERT_LE(last, self->ring.produced->tail);
		last = self->ring.produced->tail;
		ASSERT_EQ(64U, self->ring.produced->size);
		if (!(round % 64)) {
			n = tw_read(self->fd, events, 3);
			read_ += n > 0 ? n : 0;
		}
	}
	__atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);

	tail = tail_of(&self->ring);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(registered, info.registered);
	EXPECT_EQ(tail + read_, info.delivered);
	EXPECT_EQ(registered, info.delivered + info.pending);
	/* Those that are in the ring are whole, and in order. */
	for (__u64 i = tail > 64 ? tail - 64 : 0; i < tail; i++) {
		const struct timewheel_event *e = &self->ring.events[i % 64];

		ASSERT_EQ(~e->id, e->cookie);
		ASSERT_EQ((e->id + 1) * TW_SEC, e->deadline);
		if (i > 64 && i > tail - 64)
			ASSERT_LT(self->ring.events[(i - 1) % 64].id, e->id);
	}
	set_head(&self->ring, tail);
	while (tw_readable(self->fd)) {
		struct timewheel_event event;

		while (consume(&self->ring, &event, 1))
			read_++;
	}
	EXPECT_EQ(registered, tail + read_);
	EXPECT_EQ(0ULL, pending(_metadata, self->fd));
}

/* The kernel's part cannot be written, in whatever way. */
TEST_F(ring, produced_part_is_read_only)
{
	const size_t len = self->ring.len;
	void *at = (void *)self->ring.produced;
	char *events = (char *)at + TIMEWHEEL_EVENTS_AT;
	__u64 word = ~0ULL;
	struct iovec local = { &word, 8 }, remote = { at, 8 };
	int fd = self->fd, mem, zero;

	EXPECT_EQ(0, tw_map_ret(len, PROT_READ, MAP_SHARED, fd,
				TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(0, tw_map_ret(len, PROT_NONE, MAP_SHARED, fd,
				TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EACCES, tw_map_ret(len, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				      TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EACCES, tw_map_ret(len, PROT_WRITE, MAP_SHARED, fd,
				      TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ, MAP_PRIVATE, fd,
				      TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ | PROT_EXEC, MAP_SHARED, fd,
				      TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EACCES, tw_ret(mprotect(at, len, PROT_READ | PROT_WRITE)));
	EXPECT_EQ(-EACCES, tw_ret(mprotect(events, 4096, PROT_WRITE)));

	mem = open("/proc/self/mem", O_RDWR);
	ASSERT_LE(0, mem);
	for (int i = 0; i < 2; i++) {
		EXPECT_GT(0, pwrite(mem, &word, 8, (uintptr_t)remote.iov_base));
		EXPECT_GT(0, process_vm_writev(getpid(), &local, 1, &remote, 1,
					       0));
		remote.iov_base = events;
	}
	close(mem);
	zero = open("/dev/zero", O_RDONLY);
	EXPECT_EQ(-EFAULT, tw_ret(read(zero, events, 8)));
	close(zero);
	/* Nor by this module itself. */
	register_due(_metadata, fd, 1, 1, 1);
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ(-EFAULT, tw_ret(read(fd, events, 48)));
	EXPECT_EQ(0ULL, tail_of(&self->ring));
	EXPECT_EQ(64U, self->ring.produced->size);
	EXPECT_TRUE(tw_readable(fd));
	expect_ids(_metadata, &self->ring, 1, 1, 1, 1);
}

TEST_F(ring, mmap_errors)
{
	const int rw = PROT_READ | PROT_WRITE;
	const __u64 produced = TIMEWHEEL_MAP_PRODUCED;
	const __u64 consumed = TIMEWHEEL_MAP_CONSUMED;
	const size_t len = self->ring.len;
	int fd = self->fd, other;

	EXPECT_EQ(-EINVAL, tw_map_ret(len + 4096, PROT_READ, MAP_SHARED, fd,
				      produced));
	EXPECT_EQ(-EINVAL, tw_map_ret(4096, PROT_READ, MAP_SHARED, fd, produced));
	EXPECT_EQ(-EINVAL, tw_map_ret(4096, PROT_READ, MAP_SHARED, fd,
				      produced + 4096));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ, MAP_SHARED, fd,
				      produced - 4096));
	EXPECT_EQ(0, tw_map_ret(4096, rw, MAP_SHARED, fd, consumed));
	EXPECT_EQ(0, tw_map_ret(4096, PROT_READ, MAP_SHARED, fd, consumed));
	EXPECT_EQ(-EINVAL, tw_map_ret(8192, rw, MAP_SHARED, fd, consumed));
	EXPECT_EQ(-EINVAL, tw_map_ret(4096, rw, MAP_PRIVATE, fd, consumed));
	EXPECT_EQ(-EINVAL, tw_map_ret(4096, rw | PROT_EXEC, MAP_SHARED, fd,
				      consumed));
	/* This one has no words. */
	EXPECT_EQ(-EINVAL, tw_map_ret(40960, rw, MAP_SHARED, fd, 0));
	EXPECT_EQ(-EINVAL, tw_ret(munmap((char *)self->ring.produced + 4096,
					 4096)));
	EXPECT_EQ(MAP_FAILED, mremap((void *)self->ring.consumed, 4096, 8192,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap((void *)self->ring.produced, 0, len,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(-EACCES, tw_ret(mprotect((void *)self->ring.consumed, 4096,
					   PROT_READ)));

	other = TW_OPEN(O_RDWR);
	EXPECT_EQ(-EBADFD, tw_map_ret(len, PROT_READ, MAP_SHARED, other,
				      produced));
	EXPECT_EQ(-EBADFD, tw_map_ret(4096, rw, MAP_SHARED, other, consumed));
	ASSERT_EQ(0, tw_setup_manual(other, 60, 1, 0));
	EXPECT_EQ(-EINVAL, tw_map_ret(len, PROT_READ, MAP_SHARED, other,
				      produced));
	EXPECT_EQ(-EINVAL, tw_map_ret(4096, rw, MAP_SHARED, other, consumed));
	close(other);
}

/* What read(2) takes does not come in the ring, and the other way round. */
TEST_F(ring, read_beside_the_ring)
{
	struct timewheel_event events[16];

	new_wheel(_metadata, self, 4);
	register_due(_metadata, self->fd, 1, 12, 1);
	ASSERT_EQ(0, tw_advance(self->fd, 12));
	ASSERT_EQ(2, tw_read(self->fd, events, 2));
	EXPECT_EQ(1ULL, events[0].id);
	EXPECT_EQ(0ULL, tail_of(&self->ring));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(2, tw_read(self->fd, events, 2));
	EXPECT_EQ(7ULL, events[0].id);
	expect_ids(_metadata, &self->ring, 3, 4, 3, 12);
	ASSERT_EQ(4, tw_read(self->fd, events, 16));
	EXPECT_EQ(9ULL, events[0].id);
	EXPECT_FALSE(tw_readable(self->fd));
	EXPECT_EQ(4ULL, tail_of(&self->ring));
}

/* Readers and a consumer at once: each event goes to one of them. */
struct reader {
	int fd;
	unsigned char *got;
	__u64 read;
	bool *stop;
};

static void *read_until_stopped(void *data)
{
	struct reader *me = data;

	while (!__atomic_load_n(me->stop, __ATOMIC_RELAXED)) {
		struct timewheel_event events[5];
		int n = tw_read(me->fd, events, 5);

		for (int i = 0; i < n; i++)
			__atomic_fetch_add(&me->got[events[i].id], 1,
					   __ATOMIC_RELAXED);
		me->read += n > 0 ? n : 0;
		sched_yield();
	}
	return NULL;
}

/* Polls as anybody may who has it open: consumers or not. */
static void *poll_until_stopped(void *data)
{
	struct reader *me = data;

	while (!__atomic_load_n(me->stop, __ATOMIC_RELAXED)) {
		tw_readable(me->fd);
		sched_yield();
	}
	return NULL;
}

TEST_F_TIMEOUT(ring, readers_pollers_and_a_consumer, 120)
{
	const __u64 n = tw_scaled(30000);
	unsigned char *got = calloc(n, 1);
	bool stop = false;
	struct reader readers[2] = {
		{ self->fd, got, 0, &stop }, { self->fd, got, 0, &stop },
	};
	pthread_t threads[4];
	__u64 consumed = 0, registered = 0, now = 0;
	struct timewheel_info info;

	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    read_until_stopped, &readers[i]));
		ASSERT_EQ(0, pthread_create(&threads[2 + i], NULL,
					    poll_until_stopped, &readers[i]));
	}
	do {
		struct timewheel_event events[16];
		__u32 some;

		ASSERT_EQ(0, tw_info(self->fd, &info));
		if (registered + 50 <= n && info.pending + info.taken < 4000) {
			ASSERT_EQ(50U, tw_register_many(self->fd, registered,
							50, 0, TW_SEC));
			registered += 50;
		}
		ASSERT_EQ(0, tw_advance(self->fd, ++now));
		tw_readable(self->fd);
		while ((some = consume(&self->ring, events, 16))) {
			for (__u32 i = 0; i < some; i++)
				__atomic_fetch_add(&got[events[i].id], 1,
						   __ATOMIC_RELAXED);
			consumed += some;
		}
		ASSERT_EQ(0, tw_info(self->fd, &info));
	} while (registered + 50 <= n || info.pending + info.taken);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	/* What others have moved to the ring last. */
	for (struct timewheel_event event; consume(&self->ring, &event, 1);
	     consumed++)
		got[event.id]++;
	EXPECT_EQ(registered, consumed + readers[0].read + readers[1].read);
	for (__u64 i = 0; i < registered; i++)
		ASSERT_EQ(1, got[i]);
	free(got);
}

/*
 * The protocol of an edge-triggered waiter, as a multishot poll of io_uring is one
 * too, and of a level-triggered one: a real clock, a ring that is often full, and
 * nothing that is not heard of.
 */
struct producer {
	int fd;
	__u64 n;
};

static void *produce(void *data)
{
	struct producer *me = data;
	__u64 state = 271828;

	for (__u64 id = 0; id < me->n;) {
		__u64 some = 1 + tw_random(&state) % 30;

		for (; some && id < me->n; some--, id++)
			while (tw_register(me->fd, id,
					   tw_random(&state) % (4 * TW_MS), 0,
					   NULL) < 0)
				sched_yield();
		if (tw_random(&state) & 1)
			usleep(tw_random(&state) % 3000);
	}
	return NULL;
}

enum how { EDGE, LEVEL, POLL, URING, MULTISHOT };

static void consume_all(struct __test_metadata *_metadata, int fd,
			struct ring *ring, __u64 n, enum how how)
{
	unsigned char *got = calloc(n, 1);
	struct epoll_event event = {
		.events = EPOLLIN | (how == EDGE ? EPOLLET : 0),
	};
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	const __u32 flags = how == MULTISHOT ? IORING_POLL_ADD_MULTI : 0;
	struct io_uring_cqe cqe = { .flags = 0 };
	struct tw_uring uring;
	__u64 seen = 0;

	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event));
	if (how >= URING)
		ASSERT_EQ(0, tw_uring_open(&uring));
	while (seen < n) {
		struct timewheel_event events[4];
		__u32 some;

		while ((some = consume(ring, events, 4)))
			for (__u32 i = 0; i < some; i++, seen++)
				ASSERT_EQ(0, got[events[i].id]++);
		if ((how == EDGE || how == MULTISHOT) && tw_readable(fd))
			continue;
		/* What is not told of now is lost. */
		if (seen < n && how >= URING) {
			/* One with many answers comes to its end at times. */
			if (!(cqe.flags & IORING_CQE_F_MORE))
				ASSERT_EQ(1, tw_uring_poll(&uring, fd, flags));
			ASSERT_TRUE(tw_uring_next(&uring, true, &cqe));
			ASSERT_EQ(POLLIN, cqe.res);
		} else if (seen < n) {
			int told = how == POLL ? poll(&p, 1, 20000) :
				   epoll_wait(ep, &event, 1, 20000);

			ASSERT_EQ(1, told) {
				TH_LOG("%llu of %llu", seen, n);
			}
		}
	}
	if (how >= URING)
		tw_uring_close(&uring);
	close(ep);
	free(got);
}

static void wait_for_events(struct __test_metadata *_metadata, enum how how)
{
	for (__u32 size = 2; size <= 128; size *= 8) {
		struct producer producer = { .n = tw_scaled(1500) };
		struct ring ring;
		pthread_t thread;

		producer.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		ASSERT_EQ(0, setup_ring(producer.fd, TIMEWHEEL_CLOCK_MONOTONIC,
					TW_MS, MAX_TOKENS, size, 0));
		ASSERT_TRUE(map_ring(producer.fd, &ring));
		ASSERT_EQ(0, pthread_create(&thread, NULL, produce, &producer));
		consume_all(_metadata, producer.fd, &ring, producer.n, how);
		pthread_join(thread, NULL);
		EXPECT_EQ(0ULL, pending(_metadata, producer.fd));
		unmap_ring(&ring);
		close(producer.fd);
	}
}

TEST_F_TIMEOUT(ring, waiting_for_events, 120)
{
	for (enum how how = EDGE; how <= POLL; how++)
		wait_for_events(_metadata, how);
}

/* Apart: what io_uring leaves behind ends an epoll_wait(2) early. */
TEST_F_TIMEOUT(ring, waiting_for_events_by_io_uring, 120)
{
	struct tw_uring uring;

	if (tw_uring_open(&uring))
		SKIP(return, "no io_uring: %s", strerror(errno));
	tw_uring_close(&uring);
	wait_for_events(_metadata, URING);
	wait_for_events(_metadata, MULTISHOT);
}

/* It is the poll of io_uring that moves what is due to the ring: nobody else does. */
TEST_F(ring, io_uring_poll_fills_it)
{
	struct io_uring_cqe cqe;
	struct tw_uring uring;

	new_wheel(_metadata, self, 4);
	if (tw_uring_open(&uring))
		SKIP(return, "no io_uring: %s", strerror(errno));
	ASSERT_EQ(1, tw_uring_poll(&uring, self->fd, 0));
	EXPECT_FALSE(tw_uring_next(&uring, false, &cqe));
	register_due(_metadata, self->fd, 1, 6, 1);
	EXPECT_FALSE(tw_uring_next(&uring, false, &cqe));
	ASSERT_EQ(0, tw_advance(self->fd, 6));
	ASSERT_TRUE(tw_uring_next(&uring, true, &cqe));
	EXPECT_EQ(POLLIN, cqe.res);
	EXPECT_EQ(2ULL, pending(_metadata, self->fd));
	expect_ids(_metadata, &self->ring, 1, 4, 1, 6);

	/* What had no room is told of at once, and so is what is in the ring. */
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(1, tw_uring_poll(&uring, self->fd, 0));
		ASSERT_TRUE(tw_uring_next(&uring, false, &cqe));
		EXPECT_EQ(POLLIN, cqe.res);
		EXPECT_EQ(0ULL, pending(_metadata, self->fd));
	}
	expect_ids(_metadata, &self->ring, 5, 2, 5, 6);
	ASSERT_EQ(1, tw_uring_poll(&uring, self->fd, 0));
	EXPECT_FALSE(tw_uring_next(&uring, false, &cqe));
	tw_uring_close(&uring);
}

/* Told again each time, as long as the ring is found empty in between. */
TEST_F(ring, io_uring_multishot_poll)
{
	struct io_uring_cqe cqe;
	struct tw_uring uring;

	if (tw_uring_open(&uring))
		SKIP(return, "no io_uring: %s", strerror(errno));
	ASSERT_EQ(1, tw_uring_poll(&uring, self->fd, IORING_POLL_ADD_MULTI));
	for (__u64 tick = 1; tick <= 50; tick++) {
		EXPECT_FALSE(tw_readable(self->fd));
		register_due(_metadata, self->fd, tick, 1, tick);
		ASSERT_EQ(0, tw_advance(self->fd, tick));
		do {
			ASSERT_TRUE(tw_uring_next(&uring, true, &cqe));
			ASSERT_EQ(POLLIN, cqe.res);
			ASSERT_NE(0U, cqe.flags & IORING_CQE_F_MORE);
		} while (tail_of(&self->ring) < tick);
		expect_ids(_metadata, &self->ring, tick, 1, tick, tick);
	}
	tw_uring_close(&uring);
}

/* A sleeper in read(2) is not forgotten because somebody polls. */
TEST_F(ring, blocking_reader_beside_a_poller)
{
	int fd = TW_OPEN(O_RDWR);
	struct tw_sleeper reader;
	struct ring ring;

	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC, 10, 2, 0));
	ASSERT_TRUE(map_ring(fd, &ring));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	register_due(_metadata, fd, 1, 1, 1);
	/* More than the ring has room for, so that one is left to be read. */
	register_due(_metadata, fd, 2, 3, 2);
	ASSERT_EQ(0, tw_advance(fd, 9));
	tw_readable(fd);
	pthread_join(reader.thread, NULL);
	EXPECT_EQ(1, reader.ret);
	EXPECT_LE(1ULL, pending(_metadata, fd));
	unmap_ring(&ring);
	close(fd);
}

/*
 * Named wheels: consumers come and go, one after the other.
 */
struct named {
	char name[32];
	int control;
};

static void make_named(struct __test_metadata *_metadata, struct named *named,
		       __u32 events)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = MAX_TOKENS,
		.events = events,
	};

	snprintf(named->name, sizeof(named->name), "ring-%d", getpid());
	named->control = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_create_named(named->control, named->name, setup));
	/* With another ring it would be another wheel. */
	ASSERT_EQ(TIMEWHEEL_RES_EXISTED,
		  tw_create(named->control, named->name, 0, &setup));
	setup.events *= 2;
	EXPECT_EQ(-EEXIST, tw_ret(tw_create(named->control, named->name, 0,
					    &setup)));
}

/* A consumer that dies leaves what it had not said it had consumed. */
TEST_F(ring, consumer_is_killed_and_replaced)
{
	const __u64 n = 100;
	struct named named;
	__u64 *shared = tw_shared_memory(4096);
	__u64 seen = 0;
	int fd, status;

	ASSERT_NE(MAP_FAILED, (void *)shared);
	make_named(_metadata, &named, 16);
	fd = tw_open_named(named.name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	register_due(_metadata, fd, 0, n, 1);
	ASSERT_EQ(0, tw_advance(fd, n));
	for (int round = 0; seen < n; round++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		ASSERT_LT(round, 100);
		if (!child) {
			int mine = tw_open_named(named.name, O_RDWR | O_NONBLOCK);
			struct timewheel_event event;
			struct ring ring;

			if (!map_ring(mine, &ring))
				_exit(1);
			for (int i = 0; i < 7 && tw_readable(mine); i++) {
				if (!consume(&ring, &event, 1))
					_exit(2);
				if (event.id != *shared)
					_exit(3);
				++*shared;
			}
			/* It has seen one more, but died before it said so. */
			if (ring.events[head_of(&ring) % ring.size].id !=
			    *shared && *shared < n && tw_readable(mine))
				_exit(4);
			raise(SIGKILL);
		}
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) {
			TH_LOG("status %x", status);
		}
		seen = *shared;
	}
	EXPECT_EQ(n, seen);
	EXPECT_FALSE(tw_readable(fd));

	/* Destroyed: what is there can still be looked at, no more comes. */
	struct ring ring;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	ASSERT_TRUE(map_ring(fd, &ring));
	register_due(_metadata, fd, 5, 20, n + 1);
	ASSERT_EQ(0, tw_advance(fd, n + 20));
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_EQ(n + 16, tail_of(&ring));
	ASSERT_EQ(0, tw_destroy_named(named.control, named.name));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLHUP | POLLERR, p.revents);
	EXPECT_EQ(-ENODEV, tw_map_ret(4096, PROT_READ, MAP_SHARED, fd,
				      TIMEWHEEL_MAP_CONSUMED));
	madvise((void *)ring.produced, ring.len, MADV_DONTNEED);
	close(fd);
	EXPECT_EQ(n + 16, tail_of(&ring));
	for (__u64 i = 0; i < 16; i++)
		EXPECT_EQ(5 + i, ring.events[(n + i) % 16].id);
	set_head(&ring, n + 16);
	unmap_ring(&ring);
	close(named.control);
	munmap(shared, 4096);
}

/* Whether the flags of the mapping at @at, as smaps has them, have this one. */
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

/* Neither in a core dump nor made longer. */
TEST_F(ring, mapping_flags)
{
	EXPECT_TRUE(mapping_has(self->ring.produced, " dd"));
	EXPECT_TRUE(mapping_has(self->ring.consumed, " dd"));
	EXPECT_TRUE(mapping_has(self->ring.produced, " de"));
	EXPECT_TRUE(mapping_has(self->ring.consumed, " de"));
}

TEST_F(ring, access_modes)
{
	const size_t len = produced_len(16);
	struct named named;
	int reader, writer;

	make_named(_metadata, &named, 16);
	reader = tw_open_named(named.name, O_RDONLY | O_NONBLOCK);
	writer = tw_open_named(named.name, O_WRONLY | O_NONBLOCK);
	ASSERT_TRUE(reader >= 0 && writer >= 0);
	EXPECT_EQ(0, tw_map_ret(len, PROT_READ, MAP_SHARED, reader,
				TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(0, tw_map_ret(4096, PROT_READ, MAP_SHARED, reader,
				TIMEWHEEL_MAP_CONSUMED));
	EXPECT_EQ(-EACCES, tw_map_ret(len, PROT_READ | PROT_WRITE, MAP_SHARED,
				      reader, TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EACCES, tw_map_ret(4096, PROT_READ | PROT_WRITE, MAP_SHARED,
				      reader, TIMEWHEEL_MAP_CONSUMED));
	EXPECT_EQ(-EACCES, tw_map_ret(len, PROT_READ, MAP_SHARED, writer,
				      TIMEWHEEL_MAP_PRODUCED));
	EXPECT_EQ(-EACCES, tw_map_ret(4096, PROT_WRITE, MAP_SHARED, writer,
				      TIMEWHEEL_MAP_CONSUMED));
	close(reader);
	close(writer);
	ASSERT_EQ(0, tw_destroy_named(named.control, named.name));
	close(named.control);
}

/* A mapping holds the wheel, and what is in its ring stays readable. */
TEST_F(ring, close_and_keep_the_mapping)
{
	long refs = tw_refcnt();
	pid_t child;

	register_due(_metadata, self->fd, 1, 10, 1);
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	EXPECT_TRUE(tw_readable(self->fd));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(refs, tw_refcnt());
	madvise((void *)self->ring.produced, self->ring.len, MADV_DONTNEED);
	madvise((void *)self->ring.consumed, 4096, MADV_DONTNEED);
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct timewheel_event events[4];

		_exit(consume(&self->ring, events, 4) != 4 ||
		      events[3].id != 4);
	}
	EXPECT_EQ(0, tw_reap(child));
	expect_ids(_metadata, &self->ring, 5, 6, 5, 10);
}

/* Counted as delivered, and how late, as what is read is. */
TEST_F(ring, counted_as_delivered)
{
	__u64 lateness[TIMEWHEEL_BUCKETS], wake[TIMEWHEEL_BUCKETS], sum = 0;
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (__u64)(uintptr_t)lateness,
		.wake = (__u64)(uintptr_t)wake,
	};
	struct timewheel_event events[4];
	struct timewheel_info info;

	register_due(_metadata, self->fd, 1, 10, 1);
	ASSERT_EQ(0, tw_advance(self->fd, 10));
	ASSERT_EQ(4, tw_read(self->fd, events, 4));
	EXPECT_TRUE(tw_readable(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(10ULL, info.delivered);
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.put_back);
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_STATS, &stats));
	for (int i = 0; i < TIMEWHEEL_BUCKETS; i++)
		sum += lateness[i];
	EXPECT_EQ(10ULL, sum);
	EXPECT_EQ(1ULL, lateness[0]);
	/* Consuming them is nobody's business. */
	expect_ids(_metadata, &self->ring, 5, 6, 5, 10);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(10ULL, info.delivered);
}

/* In a time namespace: read(2) tells the caller's time, the ring the wheel's. */
static int in_time_namespace(int fd)
{
	struct timewheel_event event;
	struct timewheel_info info;
	struct timewheel_op op;
	struct ring ring;
	__u64 now;

	if (tw_info(fd, &info) || info.offset != 1000000 * (__s64)TW_SEC)
		return 1;
	if (!map_ring(fd, &ring))
		return 2;
	now = tw_now(CLOCK_MONOTONIC);
	for (__u64 id = 1; id <= 2; id++) {
		op = (struct timewheel_op) {
			.code = TIMEWHEEL_OP_REGISTER,
			.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = id,
			.time = now - id * TW_SEC,
		};
		if (tw_op(fd, &op) < 0)
			return 3;
		if (id == 2 && (!tw_readable(fd) ||
				consume(&ring, &event, 1) != 1 ||
				event.id != 2))
			return 4;
		if (id == 2 && (event.deadline + info.offset != op.deadline ||
				event.taken + info.offset < now))
			return 5;
		if (id == 1 && (tw_read(fd, &event, 1) != 1 || event.id != 1))
			return 6;
		if (id == 1 && (event.deadline != op.deadline ||
				event.taken < now))
			return 7;
	}
	return 0;
}

TEST_F(ring, time_namespace)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), status;
	pid_t child;

	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MONOTONIC, TW_MS, 10, 4,
				0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		if (!tw_enter_time_namespace(CLOCK_MONOTONIC, 1000000))
			_exit(77);
		_exit(in_time_namespace(fd));
	}
	status = tw_reap(child);
	if (status == 77)
		SKIP(return, "no time namespaces");
	EXPECT_EQ(0, status);
	close(fd);
}

/* Both parts of what can be mapped, on one wheel. */
TEST_F(ring, with_touch_words)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	__u64 handles[8], *words;
	struct ring ring;

	ASSERT_EQ(0, setup_ring(fd, TIMEWHEEL_CLOCK_MANUAL, TW_SEC, 512, 4,
				TIMEWHEEL_SETUP_TOUCH_WORDS));
	ASSERT_TRUE(map_ring(fd, &ring));
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		     TIMEWHEEL_MAP_WORDS);
	ASSERT_NE(MAP_FAILED, (void *)words);
	for (__u64 id = 0; id < 8; id++)
		ASSERT_EQ(0, tw_register(fd, id, (10 + id) * TW_SEC, ~id,
					 &handles[id]));
	ASSERT_EQ(0, tw_advance(fd, 30));
	EXPECT_TRUE(tw_readable(fd));
	/* In the ring: too late. Not in it: in time. */
	words[(__u32)handles[0]] = (handles[0] & ~0xffffffffULL) | 29;
	words[(__u32)handles[5]] = (handles[5] & ~0xffffffffULL) | 29;
	expect_ids(_metadata, &ring, 0, 4, 10, 30);
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_EQ(7ULL, tail_of(&ring));
	EXPECT_EQ(4ULL, ring.events[4 % 4].id);
	EXPECT_EQ(6ULL, ring.events[5 % 4].id);
	EXPECT_EQ(7ULL, ring.events[6 % 4].id);
	ASSERT_EQ(0, tw_advance(fd, 45));
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_EQ(8ULL, tail_of(&ring));
	EXPECT_EQ(45 * TW_SEC, ring.events[7 % 4].deadline);
	EXPECT_EQ(5ULL, ring.events[7 % 4].id);
	munmap(words, 4096);
	unmap_ring(&ring);
	close(fd);
}

TEST_HARNESS_MAIN
