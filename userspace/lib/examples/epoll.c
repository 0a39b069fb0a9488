// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in an edge-triggered epoll(7) with several threads: each reads, into a
 * buffer of its own, until nothing is due; no event comes to two of them, and
 * none is left behind.
 *
 *	cc epoll.c $(pkg-config --cflags --libs libtimewheel) -lpthread
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <timewheel.h>

#define THREADS	4
#define TOKENS	10000

static struct tw_wheel *wheel;
static int epoll;
/* It becomes readable, for all threads and for good, when there is no more to do. */
static int over;
static atomic_uint seen;
static atomic_uint touched;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Touches a token that this thread or another one may have read by now. */
static void hear_of(uint64_t id)
{
	if (tw_wheel_touch(wheel, id, 0) >= 0)
		touched++;
	else if (errno != ENOENT)
		fail("touch");
}

static void read_all(struct tw_events *events)
{
	const uint64_t one = 1;
	ssize_t n;

	while ((n = tw_events_read(events, wheel, 0)) > 0) {
		hear_of(tw_events_at(events, 0)->id ^ 1);
		if (atomic_fetch_add(&seen, n) + n == TOKENS &&
		    write(over, &one, sizeof(one)) < 0)
			fail("write");
	}
	if (n < 0)
		fail("read");
}

static void *worker(void *arg)
{
	struct tw_events *events = tw_events_new(64);
	struct epoll_event event;

	if (!events)
		fail("no memory");
	do {
		if (epoll_wait(epoll, &event, 1, -1) < 0)
			fail("epoll_wait");
		if (event.data.fd != over)
			read_all(events);
	} while (event.data.fd != over);
	tw_events_free(events);
	return arg;
}

static void begin(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 64,
		.tick = TW_MS(1),
		.max_tokens = TOKENS,
	};

	wheel = tw_wheel_open(&setup);
	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!wheel)
		fail("no wheel");
	epoll = epoll_create1(EPOLL_CLOEXEC);
	over = eventfd(0, EFD_CLOEXEC);
	if (epoll < 0 || over < 0)
		fail("no epoll");
}

static void watch(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll_ctl");
}

/* Registers TOKENS tokens by a batch. They are due within the next 100 ms. */
static void register_all(void)
{
	struct tw_batch *batch = tw_batch_new(TOKENS);

	if (!batch)
		fail("no memory");
	for (uint64_t id = 0; id < TOKENS; id++)
		tw_op_register(tw_batch_next(batch), id, TW_MS(1 + id % 100), 0,
			       0);
	if (tw_batch_run(batch, wheel))
		fail("register");
	tw_batch_free(batch);
}

int main(void)
{
	pthread_t threads[THREADS];

	begin();
	watch(tw_wheel_fd(wheel), EPOLLIN | EPOLLET);
	watch(over, EPOLLIN);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, NULL))
			fail("pthread_create");
	register_all();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	tw_wheel_close(wheel);
	printf("epoll: %u of %d expirations seen by %d threads, %u touches\n",
	       seen, TOKENS, THREADS, touched);
	return seen != TOKENS;
}
