// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's event ring: what is due comes to it, in order and once, as there
 * is room; who consumes goes on where the one before has stopped.
 */
#define _FILE_OFFSET_BITS 64
#include <sys/epoll.h>

#include "lib_test.h"

#define NAME	"lib-ring"
#define SIZE	8

static struct timewheel_setup with_ring(const struct timewheel_setup *as)
{
	struct timewheel_setup setup = *as;

	setup.events = SIZE;
	setup.max_tokens = 1000;
	return setup;
}

FIXTURE(ring)
{
	struct tw_wheel *wheel, *real;
	struct tw_event_ring *ring, *real_ring;
};

FIXTURE_SETUP(ring)
{
	struct timewheel_setup setup = with_ring(&manual);

	self->wheel = open_wheel(&setup);
	self->ring = tw_event_ring_map(self->wheel);
	setup = with_ring(&monotonic);
	self->real = open_wheel(&setup);
	self->real_ring = tw_event_ring_map(self->real);
	ASSERT_NE(NULL, self->ring);
	ASSERT_NE(NULL, self->real_ring);
}

FIXTURE_TEARDOWN(ring)
{
	tw_event_ring_unmap(self->ring);
	tw_event_ring_unmap(self->real_ring);
	tw_wheel_close(self->wheel);
	tw_wheel_close(self->real);
}

/*
 * Registers @count tokens from @first on, each due on a tick of its own, and puts
 * the hand of a manual wheel so that all are due. Returns how many failed.
 */
static int register_due(struct tw_wheel *wheel, uint64_t first, int count)
{
	uint64_t last = info_of(wheel).hand + count;
	int failed = 0;

	for (int i = 0; i < count; i++)
		failed += !!tw_wheel_register(wheel, first + i, (i + 1) * SEC,
					      first + i, 0, NULL);
	failed += !!tw_wheel_advance(wheel, last);
	return failed;
}

/* Consumes what comes, which has to be @next and so on. Returns what is next. */
static uint64_t consume(struct tw_event_ring *ring, uint64_t next)
{
	const struct timewheel_event *events;
	ssize_t n;

	while ((n = tw_event_ring_wait(ring, &events, 0)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (events[i].id != next + i || events[i].cookie != next + i)
				return 0;
		if (tw_event_ring_advance(ring, n))
			return 0;
		next += n;
	}
	return n ? 0 : next;
}

TEST_F(ring, empty)
{
	const struct timewheel_event *events = (void *)1;

	EXPECT_EQ(0, tw_event_ring_peek(self->ring, &events));
	EXPECT_EQ(0, tw_event_ring_wait(self->ring, &events, 0));
	EXPECT_EQ(0, tw_event_ring_wait(self->ring, &events, 3 * MS));
	EXPECT_EQ((void *)1, events);
	EXPECT_EQ(0, tw_event_ring_advance(self->ring, 0));
	EXPECT_ERR(EDOM, tw_event_ring_advance(self->ring, 1));
}

/* In the order of their deadlines, with all that a read would tell. */
TEST_F(ring, events)
{
	const struct timewheel_event *events;

	for (uint64_t i = 1; i <= 3; i++)
		ASSERT_EQ(0, tw_wheel_register(self->wheel, i, (4 - i) * SEC,
					       i * 10, 0, NULL));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 110));
	/* Nobody has polled. */
	EXPECT_EQ(0, tw_event_ring_peek(self->ring, &events));
	ASSERT_EQ(3, tw_event_ring_wait(self->ring, &events, 0));
	for (uint64_t i = 0; i < 3; i++) {
		EXPECT_EQ(3 - i, events[i].id);
		EXPECT_EQ((3 - i) * 10, events[i].cookie);
		EXPECT_EQ((101 + i) * SEC, events[i].deadline);
		EXPECT_EQ(110 * SEC, events[i].taken);
	}
}

/* What has not been advanced over is there again. */
TEST_F(ring, advance)
{
	const struct timewheel_event *first, *events;

	ASSERT_EQ(0, register_due(self->wheel, 1, 3));
	EXPECT_TRUE(readable(self->wheel));
	ASSERT_EQ(3, tw_event_ring_peek(self->ring, &first));
	ASSERT_EQ(3, tw_event_ring_peek(self->ring, &events));
	EXPECT_EQ(first, events);
	EXPECT_ERR(EDOM, tw_event_ring_advance(self->ring, 4));
	EXPECT_EQ(0, tw_event_ring_advance(self->ring, 2));
	ASSERT_EQ(1, tw_event_ring_peek(self->ring, &events));
	EXPECT_EQ(first + 2, events);
	EXPECT_EQ(3, events->id);
	EXPECT_EQ(0, tw_event_ring_advance(self->ring, 1));
	EXPECT_EQ(0, tw_event_ring_peek(self->ring, &events));
	EXPECT_FALSE(readable(self->wheel));
}

/* P5: what does not fit stays pending, and comes when there is room. */
TEST_F(ring, overflow)
{
	const struct timewheel_event *events;

	ASSERT_EQ(0, register_due(self->wheel, 1, 3 * SIZE));
	ASSERT_EQ(SIZE, tw_event_ring_wait(self->ring, &events, 0));
	EXPECT_EQ(2 * SIZE, info_of(self->wheel).pending);
	/* It can still be cancelled. */
	EXPECT_LE(0, tw_wheel_cancel(self->wheel, 3 * SIZE, 0));
	EXPECT_EQ(3 * SIZE, consume(self->ring, 1));
}

/* Around the end of the ring, in spans of which none is beyond it. */
TEST_F(ring, wraps)
{
	const struct timewheel_event *events, *first;
	uint64_t next = 1;

	ASSERT_EQ(0, register_due(self->wheel, 1, 5));
	ASSERT_EQ(5, tw_event_ring_wait(self->ring, &first, 0));
	ASSERT_EQ(0, tw_event_ring_advance(self->ring, 5));
	ASSERT_EQ(0, register_due(self->wheel, 6, 6));
	ASSERT_EQ(3, tw_event_ring_wait(self->ring, &events, 0));
	EXPECT_EQ(first + 5, events);
	ASSERT_EQ(0, tw_event_ring_advance(self->ring, 3));
	ASSERT_EQ(3, tw_event_ring_peek(self->ring, &events));
	EXPECT_EQ(first, events);
	EXPECT_EQ(9, events->id);
	next = consume(self->ring, 9);
	EXPECT_EQ(12, next);

	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, register_due(self->wheel, next, 1 + i % (2 * SIZE)));
		ASSERT_EQ(next + 1 + i % (2 * SIZE), consume(self->ring, next));
		next += 1 + i % (2 * SIZE);
	}
}

/* A read takes what is not in the ring, which is not disturbed by that. */
TEST_F(ring, reads_beside_it)
{
	struct tw_events *read = tw_events_new(2 * SIZE);
	const struct timewheel_event *events;

	ASSERT_EQ(0, register_due(self->wheel, 1, SIZE + 3));
	ASSERT_EQ(SIZE, tw_event_ring_wait(self->ring, &events, 0));
	ASSERT_EQ(3, tw_events_read(read, self->wheel, 0));
	EXPECT_EQ(SIZE + 1, tw_events_at(read, 0)->id);
	EXPECT_EQ(0, tw_events_read(read, self->wheel, 0));
	EXPECT_EQ(SIZE + 1, consume(self->ring, 1));
	tw_events_free(read);
}

/* An edge-triggered waiter is told of each change once it was told of none. */
TEST_F(ring, edge_triggered)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);
	uint64_t next = 1;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tw_wheel_fd(self->wheel),
			       &event));
	for (int i = 0; i < 5; i++) {
		EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
		ASSERT_EQ(0, register_due(self->wheel, next, 3 * SIZE));
		ASSERT_EQ(1, epoll_wait(epoll, &event, 1, -1));
		ASSERT_EQ(next + 3 * SIZE, consume(self->ring, next));
		next += 3 * SIZE;
	}
	close(epoll);
}

TEST_F(ring, wait_ends_without_any)
{
	const struct timewheel_event *events;

	EXPECT_EQ(0, tw_event_ring_wait(self->real_ring, &events, 1));
	ASSERT_EQ(0, tw_wheel_register(self->real, 7, 3600 * SEC, 0, 0, NULL));
	EXPECT_EQ(0, tw_event_ring_wait(self->real_ring, &events, 3 * MS));
}

/* Each way to wait is there when the token is due. */
TEST_F(ring, wait_brings_what_falls_due)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER - 1, TIMEWHEEL_NEVER };
	const struct timewheel_event *events;

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, tw_wheel_register(self->real, i, 20 * MS, 0, 0, NULL));
		ASSERT_EQ(1, tw_event_ring_wait(self->real_ring, &events, waits[i]));
		EXPECT_EQ(i, events->id);
		EXPECT_LE(events->deadline, events->taken);
		ASSERT_EQ(0, tw_event_ring_advance(self->real_ring, 1));
	}
}

/* A signal ends a wait, but takes nothing from who finds something. */
TEST_F(ring, signal_ends_a_wait)
{
	const struct sigaction action = { .sa_handler = ignore_signal };
	struct pester p = { .thread = pthread_self() };
	const struct timewheel_event *events;
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, pester, &p));
	EXPECT_ERR(EINTR, tw_event_ring_wait(self->real_ring, &events, 3600 * SEC));
	EXPECT_ERR(EINTR, tw_event_ring_wait(self->real_ring, &events,
					     TIMEWHEEL_NEVER));
	ASSERT_EQ(0, tw_wheel_register(self->real, 7, 0, 0, 0, NULL));
	EXPECT_EQ(1, tw_event_ring_wait(self->real_ring, &events, 3600 * SEC));
	p.done = true;
	pthread_join(thread, NULL);
}

static int maps_no_memory(void *wheel)
{
	refuse_memory();
	return tw_event_ring_map(wheel) || errno != ENOMEM;
}

static int maps_no_locked_memory(void *wheel)
{
	refuse_locked_memory();
	return tw_event_ring_map(wheel) || errno != EAGAIN;
}

/* While the wheel is paused what is there stays there, and nothing is added. */
TEST_F(ring, paused)
{
	const struct timewheel_event *events;

	ASSERT_EQ(0, register_due(self->wheel, 1, 3));
	ASSERT_EQ(3, tw_event_ring_wait(self->ring, &events, 0));
	ASSERT_EQ(0, register_due(self->wheel, 4, 2));
	ASSERT_EQ(0, tw_wheel_pause(self->wheel));
	EXPECT_FALSE(readable(self->wheel));
	EXPECT_EQ(3, tw_event_ring_peek(self->ring, &events));
	ASSERT_EQ(0, tw_event_ring_advance(self->ring, 3));
	EXPECT_EQ(0, tw_event_ring_wait(self->ring, &events, MS));
	ASSERT_EQ(0, tw_wheel_resume(self->wheel));
	EXPECT_EQ(6, consume(self->ring, 4));
}

TEST(map_errors)
{
	struct timewheel_setup setup = with_ring(&manual);
	struct tw_wheel *plain = open_wheel(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup);
	struct tw_wheel *reader, *writer;

	ASSERT_NE(NULL, wheel);
	EXPECT_NONE(EINVAL, tw_event_ring_map(plain));
	reader = tw_wheel_open_named(NAME, O_RDONLY);
	writer = tw_wheel_open_named(NAME, O_WRONLY);
	EXPECT_NONE(EACCES, tw_event_ring_map(reader));
	EXPECT_NONE(EACCES, tw_event_ring_map(writer));
	EXPECT_EQ(0, in_child(maps_no_memory, wheel));
	if (!getuid())
		EXPECT_EQ(0, in_child(maps_no_locked_memory, wheel));
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	EXPECT_NONE(ENODEV, tw_event_ring_map(wheel));
	tw_wheel_close(reader);
	tw_wheel_close(writer);
	tw_wheel_close(wheel);
	tw_wheel_close(plain);
}

TEST_F(ring, unmap_takes_null_and_leaves_errno)
{
	struct tw_event_ring *other = tw_event_ring_map(self->wheel);

	ASSERT_NE(NULL, other);
	errno = E2BIG;
	tw_event_ring_unmap(NULL);
	tw_event_ring_unmap(other);
	EXPECT_EQ(E2BIG, errno);
}

/* Who has the ring mapped may write nonsense: it is told, and no event made up. */
TEST_F(ring, nonsense)
{
	const uint64_t nonsense[] = { 1, SIZE, 1ULL << 63, -SIZE - 1ULL };
	const struct timewheel_event *events = (void *)1;
	struct timewheel_consumed *consumed;

	consumed = mmap(NULL, sizeof(*consumed), PROT_READ | PROT_WRITE,
			MAP_SHARED, tw_wheel_fd(self->wheel),
			TIMEWHEEL_MAP_CONSUMED);
	ASSERT_NE(MAP_FAILED, consumed);
	for (int i = 0; i < 4; i++) {
		consumed->head = nonsense[i];
		EXPECT_ERR(EBADMSG, tw_event_ring_peek(self->ring, &events));
		EXPECT_ERR(EBADMSG, tw_event_ring_wait(self->ring, &events, SEC));
		EXPECT_ERR(EBADMSG, tw_event_ring_advance(self->ring, 0));
	}
	EXPECT_EQ((void *)1, events);
	/* It makes sense again, and nothing was lost. */
	consumed->head = 0;
	ASSERT_EQ(0, register_due(self->wheel, 1, 3));
	EXPECT_EQ(4, consume(self->ring, 1));
	munmap(consumed, sizeof(*consumed));
}

/* Another process goes on where this one stopped, and this one after it. */
static int consumes_two(void *arg)
{
	const struct timewheel_event *events;
	struct tw_event_ring *ring = arg;

	if (tw_event_ring_peek(ring, &events) != 4 || events->id != 2)
		return 1;
	return tw_event_ring_advance(ring, 2);
}

TEST_F(ring, fork_shares)
{
	const struct timewheel_event *events;

	ASSERT_EQ(0, register_due(self->wheel, 1, 5));
	ASSERT_EQ(5, tw_event_ring_wait(self->ring, &events, 0));
	ASSERT_EQ(0, tw_event_ring_advance(self->ring, 1));
	EXPECT_EQ(0, in_child(consumes_two, self->ring));
	EXPECT_EQ(6, consume(self->ring, 4));
}

/* Nothing is kept by who is gone: what it had not advanced over comes again. */
TEST(successor_goes_on)
{
	struct timewheel_setup setup = with_ring(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup);
	const struct timewheel_event *events;
	struct tw_event_ring *ring;

	ASSERT_NE(NULL, wheel);
	ring = tw_event_ring_map(wheel);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(0, register_due(wheel, 1, 5));
	ASSERT_EQ(5, tw_event_ring_wait(ring, &events, 0));
	ASSERT_EQ(0, tw_event_ring_advance(ring, 3));
	tw_event_ring_unmap(ring);
	tw_wheel_close(wheel);

	wheel = tw_wheel_open_named(NAME, O_RDWR);
	ring = tw_event_ring_map(wheel);
	ASSERT_NE(NULL, ring);
	ASSERT_EQ(2, tw_event_ring_peek(ring, &events));
	EXPECT_EQ(4, events->id);
	EXPECT_EQ(6, consume(ring, 4));
	tw_event_ring_unmap(ring);
	tw_wheel_destroy(NAME);
	tw_wheel_close(wheel);
}

struct waiter {
	struct tw_event_ring *ring;
	uint64_t timeout;
	atomic_int tid;
	ssize_t got;
	int err;
};

static void *wait_for_one(void *arg)
{
	const struct timewheel_event *events;
	struct waiter *w = arg;

	w->tid = syscall(SYS_gettid);
	w->got = tw_event_ring_wait(w->ring, &events, w->timeout);
	w->err = errno;
	return NULL;
}

static void start_waiter(struct waiter *waiter, pthread_t *thread)
{
	if (pthread_create(thread, NULL, wait_for_one, waiter))
		abort();
	while (!waiter->tid)
		sched_yield();
	wait_asleep(waiter->tid);
}

/* Who sleeps is woken by what another thread does. */
TEST_F(ring, sleepers_are_woken)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER };

	for (int i = 0; i < 2; i++) {
		struct waiter w = { .ring = self->ring, .timeout = waits[i] };
		pthread_t thread;

		start_waiter(&w, &thread);
		ASSERT_EQ(0, register_due(self->wheel, 1 + i, 1));
		pthread_join(thread, NULL);
		EXPECT_EQ(1, w.got);
		ASSERT_EQ(2 + i, consume(self->ring, 1 + i));
	}
}

/* The end of a wheel is told who waits, and who has seen what was in the ring. */
TEST(destroyed)
{
	struct timewheel_setup setup = with_ring(&manual);
	struct tw_wheel *wheel = open_new(NAME, &setup);
	const struct timewheel_event *events;
	struct waiter w = { .timeout = TIMEWHEEL_NEVER };
	pthread_t thread;

	ASSERT_NE(NULL, wheel);
	w.ring = tw_event_ring_map(wheel);
	ASSERT_NE(NULL, w.ring);
	start_waiter(&w, &thread);
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	pthread_join(thread, NULL);
	EXPECT_EQ(-1, w.got);
	EXPECT_EQ(ENODEV, w.err);
	tw_event_ring_unmap(w.ring);
	tw_wheel_close(wheel);

	wheel = open_new(NAME, &setup);
	w.ring = tw_event_ring_map(wheel);
	ASSERT_NE(NULL, w.ring);
	ASSERT_EQ(0, register_due(wheel, 1, 2));
	EXPECT_TRUE(readable(wheel));
	ASSERT_EQ(0, tw_wheel_destroy(NAME));
	EXPECT_EQ(2, tw_event_ring_wait(w.ring, &events, 0));
	EXPECT_EQ(0, tw_event_ring_advance(w.ring, 2));
	EXPECT_EQ(0, tw_event_ring_peek(w.ring, &events));
	EXPECT_ERR(ENODEV, tw_event_ring_wait(w.ring, &events, 0));
	EXPECT_ERR(ENODEV, tw_event_ring_wait(w.ring, &events, SEC));
	tw_event_ring_unmap(w.ring);
	tw_wheel_close(wheel);
}

#define WORKERS	3
#define ROUNDS	3000
#define IDS	500

static struct tw_wheel *shared;
static pthread_mutex_t consumers = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool over;
static atomic_ulong registered, cancelled, consumed, surprises;

static void *work(void *arg)
{
	unsigned int seed = (uintptr_t)arg;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t id = rand_r(&seed) % IDS;
		int ret;

		if (rand_r(&seed) % 4) {
			ret = tw_wheel_touch_or_register(shared, id, 2 * MS, id,
							 0, NULL);
			registered += ret == TIMEWHEEL_RES_REGISTERED;
			surprises += ret < 0;
		} else {
			ret = tw_wheel_cancel(shared, id, 0);
			cancelled += ret >= 0;
			surprises += ret < 0 && errno != ENOENT;
		}
	}
	return NULL;
}

/* Two take turns; each wants events only, and has a mapping of its own. */
static void *consume_all(void *arg)
{
	struct tw_event_ring *ring = tw_event_ring_map(shared);
	const struct timewheel_event *events;
	ssize_t n;

	while (ring && (!over || info_of(shared).pending)) {
		pthread_mutex_lock(&consumers);
		n = tw_event_ring_wait(ring, &events, MS);
		surprises += n < 0;
		for (ssize_t i = 0; i < n; i++)
			surprises += events[i].cookie != events[i].id ||
				     events[i].taken < events[i].deadline;
		if (n > 0) {
			consumed += n;
			surprises += tw_event_ring_advance(ring, n) < 0;
		}
		pthread_mutex_unlock(&consumers);
	}
	surprises += !ring;
	tw_event_ring_unmap(ring);
	return arg;
}

/* P3: each registration comes to one end, which one thread is told. */
TEST(threads)
{
	struct timewheel_setup setup = with_ring(&monotonic);
	pthread_t workers[WORKERS], readers[2];
	const struct timewheel_event *events;
	struct tw_event_ring *ring;
	ssize_t n;

	setup.events = 64;
	shared = open_wheel(&setup);
	for (uintptr_t i = 0; i < WORKERS; i++)
		ASSERT_EQ(0, pthread_create(&workers[i], NULL, work, (void *)i));
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&readers[i], NULL, consume_all, NULL));
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	/* What the last poll moved there when nothing was pending any more. */
	ring = tw_event_ring_map(shared);
	while ((n = tw_event_ring_peek(ring, &events)) > 0) {
		consumed += n;
		ASSERT_EQ(0, tw_event_ring_advance(ring, n));
	}
	tw_event_ring_unmap(ring);

	EXPECT_EQ(0, surprises);
	EXPECT_NE(0, consumed);
	EXPECT_EQ(registered, cancelled + consumed);
	EXPECT_EQ(registered, info_of(shared).registered);
	EXPECT_EQ(consumed, info_of(shared).delivered);
	tw_wheel_close(shared);
}

TEST_HARNESS_MAIN
