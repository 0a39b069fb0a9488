// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtimewheel's events: what is due is read, in order, with as much of a wait
 * as the caller wants and no more. How long a wait took is not looked at, but
 * whether it came to its end and what it brought.
 */
#include "lib_test.h"

FIXTURE(events)
{
	struct tw_wheel *wheel, *real;
	struct tw_events *events;
};

FIXTURE_SETUP(events)
{
	self->wheel = open_wheel(&manual);
	self->real = open_wheel(&monotonic);
	self->events = tw_events_new(4);
	ASSERT_NE(NULL, self->events);
}

FIXTURE_TEARDOWN(events)
{
	tw_wheel_close(self->wheel);
	tw_wheel_close(self->real);
	tw_events_free(self->events);
}

TEST(new_errors)
{
	EXPECT_NONE(EINVAL, tw_events_new(0));
	EXPECT_NONE(ENOMEM, tw_events_new(SIZE_MAX));
	EXPECT_NONE(ENOMEM, tw_events_new(SIZE_MAX / 64));
}

TEST(free_takes_null)
{
	errno = E2BIG;
	tw_events_free(NULL);
	tw_events_free(tw_events_new(1));
	EXPECT_EQ(E2BIG, errno);
}

/* Events come in the order of the deadlines; events that do not fit come the next time. */
TEST_F(events, read)
{
	const struct timewheel_event *event;

	for (uint64_t i = 1; i <= 6; i++)
		ASSERT_EQ(0, RUN(self->wheel, register, i, (7 - i) * SEC,
				 i * 10, 0));
	ASSERT_EQ(0, tw_wheel_advance(self->wheel, 110));
	ASSERT_EQ(4, tw_events_read(self->events, self->wheel, 0));
	EXPECT_EQ(4, tw_events_count(self->events));
	for (uint64_t i = 0; i < 4; i++) {
		event = tw_events_at(self->events, i);
		ASSERT_NE(NULL, event);
		EXPECT_EQ(tw_events_at(self->events, 0) + i, event);
		EXPECT_EQ(6 - i, event->id);
		EXPECT_EQ((6 - i) * 10, event->cookie);
		EXPECT_EQ((101 + i) * SEC, event->deadline);
		EXPECT_EQ(110 * SEC, event->taken);
	}
	EXPECT_NONE(EDOM, tw_events_at(self->events, 4));

	ASSERT_EQ(2, tw_events_read(self->events, self->wheel, SEC));
	EXPECT_EQ(1, tw_events_at(self->events, 1)->id);
	EXPECT_NONE(EDOM, tw_events_at(self->events, 2));

	EXPECT_EQ(0, tw_events_read(self->events, self->wheel, 0));
	EXPECT_EQ(0, tw_events_count(self->events));
	EXPECT_NONE(EDOM, tw_events_at(self->events, 0));
}

/* A new buffer has no events. */
TEST_F(events, none_before_a_read)
{
	EXPECT_EQ(0, tw_events_count(self->events));
	EXPECT_NONE(EDOM, tw_events_at(self->events, 0));
}

TEST_F(events, wait_ends_without_any)
{
	EXPECT_EQ(0, tw_events_read(self->events, self->real, 1));
	EXPECT_EQ(0, tw_events_read(self->events, self->real, 3 * MS));
	ASSERT_EQ(0, RUN(self->real, register, 7, 3600 * SEC, 0, 0));
	EXPECT_EQ(0, tw_events_read(self->events, self->real, 3 * MS));
}

/* Each kind of wait ends when the token is due. */
TEST_F(events, wait_brings_what_falls_due)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER - 1, TIMEWHEEL_NEVER };

	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, RUN(self->real, register, i, 20 * MS, 0, 0));
		ASSERT_EQ(1, tw_events_read(self->events, self->real, waits[i]));
		EXPECT_EQ(i, tw_events_at(self->events, 0)->id);
	}
}

/* An fd that does not block makes no difference. */
TEST_F(events, wait_on_nonblocking_fd)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER };

	ASSERT_EQ(0, fcntl(tw_wheel_fd(self->real), F_SETFL, O_NONBLOCK));
	EXPECT_EQ(0, tw_events_read(self->events, self->real, 0));
	EXPECT_EQ(0, tw_events_read(self->events, self->real, 3 * MS));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, RUN(self->real, register, i, 20 * MS, 0, 0));
		ASSERT_EQ(1, tw_events_read(self->events, self->real, waits[i]));
		EXPECT_EQ(i, tw_events_at(self->events, 0)->id);
	}
}

/*
 * A signal ends each wait. The buffer is empty then, whatever it held; nothing
 * due is lost.
 */
TEST_F(events, signal_ends_a_wait)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER };
	const struct sigaction action = { .sa_handler = ignore_signal };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < 2; i++) {
		struct pester p = { .thread = pthread_self() };
		pthread_t thread;

		ASSERT_EQ(0, RUN(self->real, register, i, 0, 0, 0));
		ASSERT_EQ(1, tw_events_read(self->events, self->real, SEC));
		ASSERT_EQ(0, pthread_create(&thread, NULL, pester, &p));
		EXPECT_ERR(EINTR, tw_events_read(self->events, self->real,
						 waits[i]));
		p.done = true;
		pthread_join(thread, NULL);
		EXPECT_EQ(0, tw_events_count(self->events));
	}
}

static void *signal_then_register(void *arg)
{
	const struct timespec ms = { .tv_nsec = 5 * MS };
	struct pester *p = arg;

	for (int i = 0; i < 5; i++) {
		pthread_kill(p->thread, SIGUSR1);
		nanosleep(&ms, NULL);
	}
	p->done = !RUN(p->wheel, register, 7, 0, 0, 0);
	return NULL;
}

/* A wait without end goes on after a signal whose handler is set up with SA_RESTART. */
TEST_F(events, restarting_signals_do_not_end_a_wait)
{
	const struct sigaction action = {
		.sa_handler = ignore_signal,
		.sa_flags = SA_RESTART,
	};
	struct pester p = { .thread = pthread_self(), .wheel = self->real };
	pthread_t thread;

	NEEDS_KERNEL("SA_RESTART goes on with a wait");
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, signal_then_register, &p));
	EXPECT_EQ(1, tw_events_read(self->events, self->real, TIMEWHEEL_NEVER));
	pthread_join(thread, NULL);
	EXPECT_TRUE(p.done);
}

struct reader {
	struct tw_wheel *wheel;
	uint64_t timeout;
	atomic_int tid;
	ssize_t got;
	uint64_t id;
};

static void *reader(void *arg)
{
	struct tw_events *events = tw_events_new(1);
	struct reader *r = arg;

	r->tid = syscall(SYS_gettid);
	r->got = tw_events_read(events, r->wheel, r->timeout);
	if (r->got == 1)
		r->id = tw_events_at(events, 0)->id;
	tw_events_free(events);
	return NULL;
}

/* A thread that sleeps is woken by another thread's operation. */
TEST_F(events, sleepers_are_woken)
{
	const uint64_t waits[] = { 3600 * SEC, TIMEWHEEL_NEVER };

	for (int i = 0; i < 2; i++) {
		struct reader r = { .wheel = self->wheel, .timeout = waits[i] };
		pthread_t thread;

		ASSERT_EQ(0, pthread_create(&thread, NULL, reader, &r));
		while (!r.tid)
			sched_yield();
		wait_asleep(r.tid);
		ASSERT_EQ(0, RUN(self->wheel, register, 7 + i, 0, 0, 0));
		pthread_join(thread, NULL);
		EXPECT_EQ(1, r.got);
		EXPECT_EQ(7 + i, r.id);
	}
}

TEST_HARNESS_MAIN
