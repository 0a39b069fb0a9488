// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program tests how expired tokens are announced: by poll, select, epoll in all
 * its modes, io_uring, and blocking readers. Most tests use MANUAL wheels, where the
 * test decides when a token becomes due. No wake-up may be lost (the harness ends a
 * test that hangs), and no event may reach two readers.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"
#include "tw_uring.h"

#define STOP_ID	(1ULL << 32)	/* ids from here on end a thread */

static int watch(int epoll, int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Tests with many wheels or tokens take longer than the default timeout on some kernels. */
FIXTURE(many) {
};

FIXTURE_SETUP(many)
{
}

FIXTURE_TEARDOWN(many)
{
}

/* A file is readable for poll and select exactly while a token is due. */
TEST(readable_while_due)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };
	struct timeval zero = {};
	fd_set set;

	NEEDS_KERNEL("an fd is readable only while a token is due");
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, 5 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 4));
	EXPECT_EQ(0, poll(&p, 1, 0));

	ASSERT_EQ(0, tw_advance(fd, 5));
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(1, poll(&p, 1, 0));
		EXPECT_EQ(POLLIN, p.revents);
	}
	p.events = POLLIN | POLLRDNORM;
	ASSERT_EQ(1, poll(&p, 1, -1));
	EXPECT_EQ(POLLIN | POLLRDNORM, p.revents);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	EXPECT_EQ(1, select(fd + 1, &set, NULL, NULL, &zero));
	FD_SET(fd, &set);
	EXPECT_EQ(0, select(fd + 1, NULL, &set, NULL, &zero));

	/*
	 * The file is not readable after the hand went back, or when all tokens were
	 * taken.
	 */
	ASSERT_EQ(0, tw_advance(fd, 4));
	EXPECT_EQ(0, poll(&p, 1, 0));
	ASSERT_EQ(0, tw_advance(fd, 5));
	EXPECT_EQ(1, poll(&p, 1, 0));
	ASSERT_EQ(TIMEWHEEL_RES_WAS_DUE, tw_cancel(fd, 0, 1));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(1, tw_read_all(fd));
	EXPECT_EQ(0, poll(&p, 1, 0));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	EXPECT_EQ(0, select(fd + 1, &set, NULL, NULL, &zero));
}

/* A poll that began before the file was set up wakes for its first token. */
TEST(poll_before_set_up)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct tw_sleeper sleeper;

	NEEDS_KERNEL("a poll under way is told of a setup");
	ASSERT_TRUE(tw_put_to_sleep(&sleeper, fd, tw_sleep_in_poll));
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(0, pthread_join(sleeper.thread, NULL));
	EXPECT_EQ(1, sleeper.ret);
}

/* A level-triggered epoll returns the wheel each time as long as a token is due. */
TEST(epoll_level)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct timewheel_event event;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, watch(epoll, fd, EPOLLIN | EPOLLOUT));
	EXPECT_EQ(0U, tw_epoll_now(epoll));
	ASSERT_EQ(3UL, tw_register_many(fd, 1, 3, 0, TW_SEC));
	EXPECT_EQ(0U, tw_epoll_now(epoll));
	ASSERT_EQ(0, tw_advance(fd, 1));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
		EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
		ASSERT_EQ(1, tw_read(fd, &event, 1));
	}
	EXPECT_EQ(0U, tw_epoll_now(epoll));
}

/*
 * An edge-triggered epoll returns the wheel once, and again after all tokens had been
 * read.
 */
TEST(epoll_edge)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, watch(epoll, fd, EPOLLIN | EPOLLET));
	for (__u64 hand = 1; hand <= 100; hand++) {
		ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
		EXPECT_EQ(0U, tw_epoll_now(epoll));
		ASSERT_EQ(0, tw_advance(fd, hand));
		ASSERT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
		EXPECT_EQ(0U, tw_epoll_now(epoll));
		ASSERT_EQ(1, tw_read_all(fd));
	}
}

/* Edge-triggered epoll works also on a real clock, where the timer is armed each time. */
TEST(epoll_edge_real_clock)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 7, TW_MS, 100, 0,
			      0));
	ASSERT_EQ(0, watch(epoll, fd, EPOLLIN | EPOLLET));
	for (int round = 0; round < 30; round++) {
		int n = 0;

		/*
		 * The tokens are due on two ticks. Both may be due by the time of the
		 * first look.
		 */
		ASSERT_EQ(0, tw_register(fd, 1, 3 * TW_MS, 0, NULL));
		ASSERT_EQ(0, tw_register(fd, 2, 20 * TW_MS, 0, NULL));
		while (n < 2) {
			ASSERT_EQ(1, epoll_wait(epoll, &event, 1, -1));
			n += tw_read_all(fd);
		}
		ASSERT_EQ(2, n);
	}
}

/* A one-shot epoll returns the wheel once, until it is armed again. */
TEST(epoll_oneshot)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, watch(epoll, fd, EPOLLIN | EPOLLONESHOT));
	ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
	EXPECT_EQ(0U, tw_epoll_now(epoll));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
	EXPECT_EQ(2, tw_read_all(fd));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
	EXPECT_EQ(0U, tw_epoll_now(epoll));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
}

/* An epoll watches another epoll, and two epolls watch one wheel. */
TEST(epoll_nested_and_two)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int inner = epoll_create1(EPOLL_CLOEXEC);
	int outer = epoll_create1(EPOLL_CLOEXEC);
	int other = epoll_create1(EPOLL_CLOEXEC);
	struct tw_sleeper sleeper[2];

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, watch(inner, fd, EPOLLIN));
	ASSERT_EQ(0, watch(outer, inner, EPOLLIN));
	ASSERT_EQ(0, watch(other, fd, EPOLLIN | EPOLLET));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(0U, tw_epoll_now(outer));
	ASSERT_TRUE(tw_put_to_sleep(&sleeper[0], outer, tw_sleep_in_epoll));
	ASSERT_TRUE(tw_put_to_sleep(&sleeper[1], other, tw_sleep_in_epoll));
	ASSERT_EQ(0, tw_advance(fd, 1));
	for (int i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(sleeper[i].thread, NULL));
		EXPECT_EQ(1, sleeper[i].ret);
	}
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(outer));
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(inner));
	EXPECT_EQ(1, tw_read_all(fd));
	EXPECT_EQ(0U, tw_epoll_now(outer));
	EXPECT_EQ(0U, tw_epoll_now(other));
}

/* A closed wheel leaves its epoll only when the copies of its descriptor are closed, too. */
TEST(epoll_of_a_closed_wheel)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), copy = dup(fd);
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, watch(epoll, fd, EPOLLIN));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	close(fd);
	EXPECT_EQ((__u32)EPOLLIN, tw_epoll_now(epoll));
	close(copy);
	EXPECT_EQ(0U, tw_epoll_now(epoll));
}

/* Allows the process @most more files. Returns how many of them it may really have. */
static unsigned long room_for_files(unsigned long most)
{
	struct rlimit limit = { most + 100, most + 100 };

	if (!setrlimit(RLIMIT_NOFILE, &limit) ||
	    getrlimit(RLIMIT_NOFILE, &limit))
		return most;
	return limit.rlim_cur - 100 < most ? limit.rlim_cur - 100 : most;
}

/*
 * Each of very many wheels has a token that is due on its next tick. Each wheel has
 * one interrupt, and one poll returns all wheels.
 */
TEST_F_TIMEOUT(many, wheels_in_one_poll, 200)
{
	unsigned long n = room_for_files(tw_scaled(10000));
	struct pollfd *wheels = calloc(n, sizeof(*wheels));
	struct timewheel_event event;
	struct timewheel_info info;

	NEEDS_KERNEL("a wheel takes one fd");
	ASSERT_NE(NULL, wheels);
	for (unsigned long i = 0; i < n; i++) {
		wheels[i].fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		wheels[i].events = POLLIN;
		ASSERT_EQ(0, tw_setup(wheels[i].fd, TIMEWHEEL_CLOCK_MONOTONIC,
				      1 + i % 3, TW_MS / 10, 1, 0, 0)) {
			TH_LOG("%lu: %s", i, strerror(errno));
		}
	}
	for (int round = 1; round <= 2; round++) {
		for (unsigned long i = 0; i < n; i++)
			ASSERT_EQ(0, tw_register(wheels[i].fd, i, 1, i, NULL));
		while ((unsigned long)poll(wheels, n, -1) < n)
			tw_sleep_ms(1);
		tw_sleep_ms(20);
		for (unsigned long i = 0; i < n; i++) {
			ASSERT_EQ(POLLIN, wheels[i].revents);
			ASSERT_EQ(1, tw_read(wheels[i].fd, &event, 1));
			ASSERT_EQ(i, event.cookie);
			ASSERT_LE(event.deadline, event.taken);
			ASSERT_EQ(0, tw_info(wheels[i].fd, &info));
			/*
			 * A token that was due before the timer was armed causes no
			 * interrupt.
			 */
			ASSERT_GE((__u64)round, info.callbacks);
		}
		ASSERT_EQ(0, poll(wheels, n, 0));
	}
	/* The last wheel wakes a poll that sleeps on all of them. */
	ASSERT_EQ(0, tw_register(wheels[n - 1].fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(1, poll(wheels, n, -1));
	ASSERT_EQ(POLLIN, wheels[n - 1].revents);
	TH_LOG("%lu wheels", n);
	for (unsigned long i = 0; i < n; i++)
		close(wheels[i].fd);
	free(wheels);
}

/* An fd_set of the C library is too small for this descriptor's number. */
TEST(select_of_a_high_number)
{
	enum { HIGH = 3000, BITS = 8 * sizeof(long) };
	long set[HIGH / BITS + 1] = {};
	struct timeval zero = {};
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

	if (room_for_files(HIGH + 1) <= HIGH)
		SKIP(return, "no file may have that number");
	ASSERT_EQ(HIGH, dup2(fd, HIGH));
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	set[HIGH / BITS] = 1L << HIGH % BITS;
	EXPECT_EQ(0, select(HIGH + 1, (fd_set *)set, NULL, NULL, &zero));
	EXPECT_EQ(0, set[HIGH / BITS]);
	ASSERT_EQ(0, tw_register(HIGH, 1, 0, 0, NULL));
	set[HIGH / BITS] = 1L << HIGH % BITS;
	EXPECT_EQ(1, select(HIGH + 1, (fd_set *)set, NULL, NULL, NULL));
	EXPECT_EQ(1L << HIGH % BITS, set[HIGH / BITS]);
	EXPECT_EQ(1, tw_read_all(HIGH));
	close(HIGH);
}

/* A reader that leaves due tokens behind wakes the next reader: one wake-up is enough. */
TEST(readers_wake_each_other)
{
	enum { READERS = 6 };
	int fd = TW_OPEN(O_RDWR);
	struct tw_sleeper reader[READERS];
	unsigned int seen = 0;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, READERS, 0));
	ASSERT_EQ((size_t)READERS,
		  tw_register_many(fd, 0, READERS, 0, TW_SEC));
	for (int i = 0; i < READERS; i++)
		ASSERT_TRUE(tw_put_to_sleep(&reader[i], fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_advance(fd, 1));
	for (int i = 0; i < READERS; i++) {
		ASSERT_EQ(0, pthread_join(reader[i].thread, NULL));
		ASSERT_EQ(1, reader[i].ret);
		seen |= 1U << reader[i].event.id;
	}
	EXPECT_EQ((1U << READERS) - 1, seen);
}

/* Each operation that makes a token due wakes a sleeping waiter. */
TEST(whatever_is_due_wakes)
{
	static void (*const function[])(struct tw_sleeper *sleeper) = {
		tw_sleep_in_read, tw_sleep_in_poll, tw_sleep_in_epoll,
	};

	for (size_t f = 0; f < ARRAY_SIZE(function); f++) {
		for (int how = 0; how < 5; how++) {
			int fd = TW_OPEN(O_RDWR);
			int epoll = epoll_create1(EPOLL_CLOEXEC);
			struct tw_sleeper sleeper;

			ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 100));
			ASSERT_EQ(0, tw_register(fd, 1, 50 * TW_SEC, 0, NULL));
			ASSERT_EQ(0, watch(epoll, fd, EPOLLIN));
			ASSERT_TRUE(tw_put_to_sleep(&sleeper,
						    f == 2 ? epoll : fd,
						    function[f]));
			switch (how) {
			case 0:
				ASSERT_EQ(0, tw_advance(fd, 150));
				break;
			case 1:
				ASSERT_EQ(0, tw_register(fd, 2, 0, 0, NULL));
				break;
			case 2:
				ASSERT_EQ(0, tw_register_at(fd, 2, 7, 0));
				break;
			case 3:
				ASSERT_EQ(0, tw_move(fd, 0, 1, 0));
				break;
			case 4:
				ASSERT_EQ(TIMEWHEEL_RES_REGISTERED,
					  tw_touch_or_register(fd, 2, 0, 0));
				break;
			}
			ASSERT_EQ(0, pthread_join(sleeper.thread, NULL));
			EXPECT_EQ(1, sleeper.ret);
			close(epoll);
			close(fd);
		}
	}
}

/* A token due before all other tokens arms the timer anew, by register or by move. */
TEST(earlier_token_rearms)
{
	for (int how = 0; how < 2; how++) {
		int fd = TW_OPEN(O_RDWR);
		struct tw_sleeper reader;

		ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS,
				      10, 0, 0));
		ASSERT_EQ(0, tw_register(fd, 1, 3600 * TW_SEC, 0, NULL));
		ASSERT_EQ(0, tw_register(fd, 2, 7200 * TW_SEC, 0, NULL));
		ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
		ASSERT_EQ(0, how ? tw_move(fd, 0, 2, 20 * TW_MS) :
				   tw_register(fd, 3, 20 * TW_MS, 0, NULL));
		ASSERT_EQ(0, pthread_join(reader.thread, NULL));
		ASSERT_EQ(1, reader.ret);
		EXPECT_EQ(how ? 2ULL : 3ULL, reader.event.id);
		close(fd);
	}
}

/* The timer is armed for the right token after the first tokens are cancelled or moved. */
TEST(rearmed_for_the_next_token)
{
	int fd = TW_OPEN(O_RDWR);
	struct tw_sleeper reader;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 10, 0,
			      0));
	ASSERT_EQ(0, tw_register(fd, 1, 100 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 150 * TW_MS, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 3, 200 * TW_MS, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	/* On a slow machine token 1 may be due before the cancel, and is then read first. */
	if (tw_cancel(fd, 0, 1) == 0 && tw_move(fd, 0, 2, TW_SEC) == 0) {
		ASSERT_EQ(0, pthread_join(reader.thread, NULL));
		EXPECT_EQ(3ULL, reader.event.id);
	} else {
		ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	}
	EXPECT_EQ(1, reader.ret);
}

/* A reader that sleeps while O_NONBLOCK is set still gets its event. */
TEST(nonblock_toggled)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct tw_sleeper reader;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);

	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_RDWR));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_register(fd, 1, 0, 0, NULL));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);
}

static _Atomic int signals;

static void on_signal(int signal)
{
	signals++;
}

/* A signal ends a blocked read, or restarts it, and takes no event with it. */
TEST(signal_consumes_nothing)
{
	struct sigaction action = { .sa_handler = on_signal };
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct tw_sleeper reader;

	NEEDS_KERNEL("SA_RESTART goes on with a read");
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	do {
		pthread_kill(reader.thread, SIGUSR1);
		tw_sleep_ms(5);
	} while (!__atomic_load_n(&reader.ret, __ATOMIC_ACQUIRE) &&
		 signals < 1000);
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(-EINTR, reader.ret);

	action.sa_flags = SA_RESTART;
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	for (int i = 0; i < 20; i++) {
		int before = signals;

		pthread_kill(reader.thread, SIGUSR1);
		while (signals == before)
			tw_sleep_ms(1);
	}
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);
	EXPECT_EQ(1ULL, reader.event.id);

	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK));
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
}

/*
 * A reader is killed while it sleeps, at about the time when a token becomes due. The
 * reader has read the token, or the other reader gets it.
 */
TEST(killed_reader_eats_no_wake_up)
{
	unsigned long rounds = tw_scaled(100);
	struct timewheel_event *shared = tw_shared_memory(sizeof(*shared));
	int fd = TW_OPEN(O_RDWR);
	unsigned int first = 0;

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	for (__u64 round = 1; round <= rounds; round++) {
		struct tw_sleeper reader;
		pid_t child;

		memset(shared, 0, sizeof(*shared));
		ASSERT_EQ(0, tw_register(fd, round, TW_SEC, 0, NULL));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			_exit(tw_read(fd, shared, 1));
		tw_wait_asleep(child);
		/* This reader is behind the child in the wait queue. */
		ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
		if (round % 2) {
			ASSERT_EQ(0, kill(child, SIGKILL));
			ASSERT_EQ(0, tw_advance(fd, round));
		} else {
			/* In some rounds the child has time to take the token. */
			ASSERT_EQ(0, tw_advance(fd, round));
			usleep(round % 20 * 10);
			ASSERT_EQ(0, kill(child, SIGKILL));
		}
		ASSERT_EQ(child, waitpid(child, NULL, 0));
		if (shared->id) {
			first++;
			ASSERT_EQ(round, shared->id);
			ASSERT_EQ(0, tw_register(fd, STOP_ID, 0, 0, NULL));
		}
		ASSERT_EQ(0, pthread_join(reader.thread, NULL));
		ASSERT_EQ(1, reader.ret);
		ASSERT_EQ(shared->id ? STOP_ID : round, reader.event.id);
	}
	TH_LOG("the killed one was first %u times of %lu", first, rounds);
}

/*
 * A reader is killed while it only files touched tokens in their new slots. The
 * killed reader has taken no token, and the other reader has to be woken in time.
 */
TEST_F_TIMEOUT(many, killed_while_it_files_again, 200)
{
	const __u64 n = 400000;
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_info info;
	struct tw_sleeper reader;
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_EQ(0, tw_setup_manual(fd, 60, n, 0));
	ASSERT_EQ(n, tw_register_many(fd, 0, n, 0, 10 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 5));
	ASSERT_EQ(n, tw_touch_each(fd, 0, n));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		struct timewheel_event event;

		_exit(tw_read(fd, &event, 1));
	}
	tw_wait_asleep(child);
	/* This reader is behind the child in the wait queue. */
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_advance(fd, 10));
	do {
		ASSERT_EQ(0, tw_info(fd, &info));
	} while (!info.refiled);
	ASSERT_EQ(0, kill(child, SIGKILL));
	ASSERT_EQ(child, waitpid(child, NULL, 0));

	ASSERT_EQ(0, tw_advance(fd, 15));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);
}

/*
 * A reader that finds a signal and a due token leaves the token. The reader cannot
 * run before both are there, because all threads are SCHED_FIFO on one CPU.
 */
TEST(signal_beside_the_wake_up)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct sched_param fifo = { .sched_priority = 1 };
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct tw_sleeper reader;
	cpu_set_t cpu;

	NEEDS_KERNEL("a signal goes before a token");
	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpu), &cpu));
	if (sched_setscheduler(0, SCHED_FIFO, &fifo))
		SKIP(return, "no real time priority");
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(0, pthread_kill(reader.thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(-EINTR, reader.ret);
	ASSERT_TRUE(tw_readable(fd));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(1ULL, event.id);
}

/* A signal ends a read early, with the events that it has by then, and no event is lost. */
TEST_F_TIMEOUT(many, signal_ends_a_long_read, 200)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = on_signal };
	const __u64 n = 200000;
	struct timewheel_event *events = calloc(n, sizeof(*events));
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	__u64 seen = 0, reads = 0;
	int got;

	NEEDS_KERNEL("a signal ends a call early");
	ASSERT_NE(NULL, events);
	memset(events, 1, n * sizeof(*events));
	ASSERT_EQ(0, tw_setup_manual(fd, 60, n, 0));
	ASSERT_EQ(n, tw_register_many(fd, 0, n, 0, 10 * TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 10));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	while ((got = tw_read(fd, events + seen, n)) > 0 ||
	       (got < 0 && errno == EINTR)) {
		seen += got > 0 ? got : 0;
		reads++;
	}
	EXPECT_EQ(n, seen);
	EXPECT_LT(2ULL, reads);
	free(events);
}

/*
 * Registers @n tokens that the first look has to file in new slots, and 1 token
 * behind them.
 */
static bool fill_with_touched(int fd, __u64 n)
{
	if (tw_setup_manual(fd, 60, n + 1, 0) ||
	    tw_register_many(fd, 1, n, 0, 10 * TW_SEC) != n ||
	    tw_advance(fd, 5))
		return false;
	if (tw_touch_each(fd, 1, n) != n)
		return false;
	return !tw_register_at(fd, 0, 11 * TW_SEC, 0) && !tw_advance(fd, 11);
}

/*
 * A poll looks at a limited number of touched tokens, and then returns readable. The
 * token that is due behind them is not overlooked.
 */
TEST(poll_behind_touched_tokens)
{
	const __u64 n = 10000;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_info info;

	NEEDS_KERNEL("a poll looks at tokens");
	ASSERT_TRUE(fill_with_touched(fd, n));
	EXPECT_TRUE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_LT(0ULL, info.refiled);
	EXPECT_GE(5000ULL, info.refiled);
	EXPECT_EQ(0ULL, info.quiet);
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(0ULL, event.id);
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(n, info.refiled);

	/* INFO counts an alarm after which a look finds no due token. */
	ASSERT_EQ(0, tw_register(fd, 0, 2 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 12));
	ASSERT_EQ(0, tw_touch(fd, 0, 0));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(0ULL, info.quiet);
	ASSERT_EQ(0, tw_advance(fd, 13));
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.quiet);
	EXPECT_FALSE(tw_readable(fd));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.quiet);
}

/* A read with RWF_NOWAIT returns due events or EAGAIN, also on a blocking file. */
TEST(read_nowait)
{
	int fd = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct iovec iov = { .iov_base = &event, .iov_len = sizeof(event) };

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	EXPECT_EQ(-1, preadv2(fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, tw_advance(fd, 1));
	EXPECT_EQ((ssize_t)sizeof(event),
		  preadv2(fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(1ULL, event.id);
	EXPECT_EQ(-1, preadv2(fd, &iov, 1, -1, RWF_NOWAIT));
	EXPECT_EQ(EAGAIN, errno);
}

FIXTURE(uring) {
	struct tw_uring ring;
	int fd;
};

FIXTURE_SETUP(uring)
{
	self->fd = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 31, 10, 0));
	if (tw_uring_open(&self->ring))
		SKIP(return, "no io_uring: %s", strerror(errno));
}

FIXTURE_TEARDOWN(uring)
{
	tw_uring_close(&self->ring);
	close(self->fd);
}

TEST_F(uring, poll_once)
{
	struct io_uring_cqe cqe;

	ASSERT_EQ(1, tw_uring_poll(&self->ring, self->fd, 0));
	EXPECT_FALSE(tw_uring_next(&self->ring, false, &cqe));
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_SEC, 0, NULL));
	EXPECT_FALSE(tw_uring_next(&self->ring, false, &cqe));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
	EXPECT_EQ(7ULL, cqe.user_data);
	EXPECT_EQ(POLLIN, cqe.res);

	/* A poll completes at once if a token is due when it is submitted. */
	ASSERT_EQ(1, tw_uring_poll(&self->ring, self->fd, 0));
	ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
	EXPECT_EQ(POLLIN, cqe.res);
	EXPECT_FALSE(tw_uring_next(&self->ring, false, &cqe));
}

TEST_F(uring, poll_multishot)
{
	struct io_uring_cqe cqe;

	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	ASSERT_EQ(1, tw_uring_poll(&self->ring, self->fd,
				   IORING_POLL_ADD_MULTI));
	for (__u64 hand = 1; hand <= 20; hand++) {
		int n = 0;

		ASSERT_EQ(0, tw_register(self->fd, hand, TW_SEC, 0, NULL));
		ASSERT_EQ(0, tw_advance(self->fd, hand));
		/* The poll may complete more often than there is an event to read. */
		do {
			ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
			if (cqe.res == -EINVAL && hand == 1)
				SKIP(return, "no multishot poll");
			ASSERT_EQ(POLLIN, cqe.res);
			ASSERT_NE(0U, cqe.flags & IORING_CQE_F_MORE);
			n += tw_read_all(self->fd);
		} while (!n);
		ASSERT_EQ(1, n);
	}
}

TEST_F(uring, read)
{
	struct timewheel_event events[4] = {};
	struct io_uring_sqe sqe = {
		.opcode = IORING_OP_READ, .fd = self->fd, .off = -1,
		.addr = (__u64)(uintptr_t)events, .len = sizeof(events),
	};
	struct io_uring_cqe cqe;

	NEEDS_KERNEL("an fd is read by read(2)");
	ASSERT_EQ(2UL, tw_register_many(self->fd, 1, 2, 0, TW_SEC));
	ASSERT_EQ(1, tw_uring_submit(&self->ring, &sqe));
	EXPECT_FALSE(tw_uring_next(&self->ring, false, &cqe));
	ASSERT_EQ(0, tw_advance(self->fd, 1));
	ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
	EXPECT_EQ(2 * (int)sizeof(*events), cqe.res);
	EXPECT_EQ(TW_SEC, events[0].deadline);
	EXPECT_EQ(3ULL, events[0].id + events[1].id);

	/* A read completes at once if a token is due when it is submitted. */
	ASSERT_EQ(0, tw_register(self->fd, 9, 0, 0, NULL));
	ASSERT_EQ(1, tw_uring_submit(&self->ring, &sqe));
	ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
	EXPECT_EQ((int)sizeof(*events), cqe.res);
	EXPECT_EQ(9ULL, events[0].id);
}

/* Submits a request that ends after @ns. Its completion has the user_data 8. */
static int uring_timeout(struct tw_uring *ring,
			 struct __kernel_timespec *time, __u64 ns)
{
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_TIMEOUT, .fd = -1, .len = 1,
		.addr = (__u64)(uintptr_t)time, .user_data = 8,
	};

	*time = (struct __kernel_timespec) { .tv_nsec = ns };
	return tw_uring_submit(ring, &sqe);
}

/*
 * Other requests of the ring end while a read files touched tokens in their new
 * slots. A request's end is no signal, and the read goes on to the token that is due
 * behind them.
 */
TEST_F_TIMEOUT(uring, read_beside_other_requests, 200)
{
	const __u64 n = 3000, delay = 10;
	unsigned long rounds = tw_scaled(300);
	struct __kernel_timespec times[4];
	struct timewheel_event event;
	struct io_uring_sqe read = {
		.opcode = IORING_OP_READ, .off = -1,
		.addr = (__u64)(uintptr_t)&event, .len = sizeof(event),
	};
	unsigned long during = 0;
	__u64 filed = delay;

	NEEDS_KERNEL("an fd is read by read(2)");
	close(self->fd);
	self->fd = TW_OPEN(O_RDWR);
	read.fd = self->fd;
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, n + 1, 0));
	ASSERT_EQ(n, tw_register_many(self->fd, 1, n, 0, delay * TW_SEC));
	for (unsigned long round = 0; round < rounds; round++) {
		size_t left = ARRAY_SIZE(times) + 1;
		struct io_uring_cqe cqe;
		bool done = false;

		ASSERT_EQ(0, tw_advance(self->fd, filed - 1));
		ASSERT_EQ(n, tw_touch_each(self->fd, 1, n));
		ASSERT_EQ(0, tw_register_at(self->fd, 0, (filed + 1) * TW_SEC,
					    round));
		ASSERT_EQ(0, tw_advance(self->fd, filed + 1));
		filed += delay - 1;

		for (size_t i = 0; i < ARRAY_SIZE(times); i++)
			ASSERT_EQ(1, uring_timeout(&self->ring, &times[i],
						   20000ULL << 2 * i));
		ASSERT_EQ(1, tw_uring_submit(&self->ring, &read));
		for (; left; left--) {
			ASSERT_TRUE(tw_uring_next(&self->ring, true, &cqe));
			if (cqe.user_data == 8) {
				ASSERT_EQ(-ETIME, cqe.res);
				during += !done;
				continue;
			}
			done = true;
			ASSERT_EQ((int)sizeof(event), cqe.res) {
				TH_LOG("round %lu", round);
			}
			ASSERT_EQ(0ULL, event.id);
			ASSERT_EQ(round, event.cookie);
		}
	}
	TH_LOG("%lu requests ended before %lu reads", during, rounds);
}

TEST_HARNESS_MAIN
