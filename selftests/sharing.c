// SPDX-License-Identifier: GPL-2.0-only
/*
 * A private wheel lives exactly as long as its open file, which processes share by
 * dup, fork, execve and messages, close while it is in use, and leave when they die.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tw_process.h"
#include "tw_sleeper.h"
#include "tw_test.h"

/*
 * The visible traces of wheels: references to the module and, if debugfs can be read,
 * accounts.
 */
struct seen {
	long references;
	char users[256];
};

static struct seen see(void)
{
	struct seen seen = { .references = tw_refcnt() };
	int fd = open("/sys/kernel/debug/timewheel/users", O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, seen.users, sizeof(seen.users) - 1) < 0)
		seen.users[0] = 0;
	close(fd);
	return seen;
}

/* Waits until the kernel has removed all that closed files and dead processes have left. */
static bool is_again(struct seen before)
{
	struct seen now = see();

	for (int i = 0; i < 5000 && memcmp(&now, &before, sizeof(now)); i++) {
		tw_sleep_ms(1);
		now = see();
	}
	return !memcmp(&now, &before, sizeof(now));
}

/* Two descriptors of one open file share a wheel. Two opens have two wheels. */
TEST(dup_shares_open_does_not)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	int copy = dup(fd);
	int other = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_token token;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	EXPECT_EQ(-1, tw_setup_manual(copy, 31, 10, 0));
	EXPECT_EQ(EBUSY, errno);
	ASSERT_EQ(0, tw_setup_manual(other, 60, 10, 0));

	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 11, NULL));
	EXPECT_EQ(0, tw_get(copy, 0, 1, &token));
	EXPECT_EQ(11ULL, token.cookie);
	EXPECT_EQ(-1, tw_get(other, 0, 1, &token));
	EXPECT_EQ(ENOENT, errno);

	ASSERT_EQ(0, tw_advance(copy, 1));
	EXPECT_TRUE(tw_readable(fd));
	EXPECT_FALSE(tw_readable(other));
	close(fd);
	ASSERT_EQ(1, tw_read(copy, &event, 1));
	EXPECT_EQ(1ULL, event.id);
	EXPECT_EQ(11ULL, event.cookie);
}

/* Parent and child share the wheel, and each can use it when the other has exited. */
TEST(fork_shares)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/*
		 * The child uses the parent's token, a token of its own, and the
		 * common hand.
		 */
		if (tw_touch(fd, 0, 1))
			_exit(1);
		if (tw_register(fd, 2, 3 * TW_SEC, 0, NULL))
			_exit(2);
		if (tw_register(fd, 3, TW_SEC, 0, NULL))
			_exit(3);
		if (tw_cancel(fd, 0, 1) || tw_advance(fd, 1))
			_exit(4);
		if (tw_read(fd, &event, 1) != 1 || event.id != 3)
			_exit(5);
		close(fd);
		_exit(0);
	}
	ASSERT_EQ(0, tw_reap(child));
	EXPECT_EQ(-1, tw_cancel(fd, 0, 1));
	EXPECT_EQ(ENOENT, errno);
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
	ASSERT_EQ(0, tw_advance(fd, 3));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(2ULL, event.id);
	EXPECT_EQ(0, tw_register(fd, 4, TW_SEC, 0, NULL));
}

/* Makes a wheel with a token that is due soon. Returns its file, or -1. */
static int make_wheel(void)
{
	int fd = open(TW_DEVICE, O_RDWR);

	if (tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 10, 0, 0) ||
	    tw_register(fd, 7, 20 * TW_MS, 70, NULL) ||
	    tw_register(fd, 8, 3600 * TW_SEC, 80, NULL))
		return -1;
	return fd;
}

/* Expects that the wheel works although its maker has died, and leaves nothing behind. */
static void expect_wheel(struct __test_metadata *_metadata, int fd, struct seen before)
{
	struct timewheel_event event;

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(7ULL, event.id);
	EXPECT_EQ(70ULL, event.cookie);
	EXPECT_EQ(0, tw_cancel(fd, 0, 8));
	EXPECT_EQ(0, tw_register(fd, 9, TW_MS, 0, NULL));
	close(fd);
	EXPECT_TRUE(is_again(before));
}

/*
 * A wheel sent over a socket outlives its sender. While only the socket holds the
 * wheel, its time goes on, and it holds the module.
 */
TEST(sent_wheel_outlives_sender)
{
	struct seen before = see();
	int sockets[2], fd;
	pid_t child;

	NEEDS_KERNEL("an fd is passed on");
	close(TW_OPEN(O_RDWR));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(tw_send_fd(sockets[0], make_wheel(), 0) ? 1 : 0);
	ASSERT_EQ(0, tw_reap(child));
	if (before.references >= 0)
		EXPECT_EQ(before.references + 1, tw_refcnt());
	tw_sleep_ms(30);
	expect_wheel(_metadata, tw_receive_fd(sockets[1], 0), before);

	/* A wheel that was sent and never received ends with the socket. */
	fd = make_wheel();
	ASSERT_EQ(0, tw_send_fd(sockets[0], fd, 0));
	close(fd);
	if (before.references >= 0)
		EXPECT_EQ(before.references + 1, tw_refcnt());
	close(sockets[0]);
	close(sockets[1]);
	EXPECT_TRUE(is_again(before));
}

/* A wheel that another process takes out of a process by pidfd outlives that process. */
TEST(taken_by_pidfd)
{
	struct seen before = see();
	int ready[2], pidfd, fd;
	pid_t child;
	char number;

	NEEDS_KERNEL("an fd is passed on");
	close(TW_OPEN(O_RDWR));
	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		number = make_wheel();
		if (write(ready[1], &number, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(ready[0], &number, 1));
	pidfd = syscall(SYS_pidfd_open, child, 0);
	if (pidfd < 0)
		SKIP(return, "no pidfd: %s", strerror(errno));
	fd = syscall(SYS_pidfd_getfd, pidfd, number, 0);
	ASSERT_TRUE(tw_kill(child));
	expect_wheel(_metadata, fd, before);
}

/* Runs @command in a shell, after execve. Returns its exit status. */
static int run_shell(const char *command)
{
	pid_t child = fork();

	if (!child) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	return tw_reap(child);
}

/* A program that is started gets the wheel, unless the file has O_CLOEXEC. */
TEST(next_program)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct timewheel_info info;

	NEEDS_KERNEL("the next program has a wheel");
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(2UL, tw_register_many(fd, 1, 2, 0, TW_SEC));
	ASSERT_EQ(0, tw_advance(fd, 1));

	ASSERT_EQ(9, dup3(fd, 9, O_CLOEXEC));
	EXPECT_EQ(1, run_shell("test -e /proc/self/fd/9"));

	/* The other program reads one of the two events. */
	ASSERT_EQ(9, dup2(fd, 9));
	EXPECT_EQ(0, run_shell("dd bs=56 count=1 of=/dev/null <&9 2>/dev/null"));
	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(1ULL, info.delivered);
	EXPECT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(-1, tw_read(fd, &event, 1));
}

/* A reader gets its event also if another thread closes the file meanwhile. */
TEST(close_while_reading)
{
	struct seen before = see();
	int fd = TW_OPEN(O_RDWR);
	struct tw_sleeper reader;

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 31, TW_MS, 10, 0,
			      0));
	ASSERT_EQ(0, tw_register(fd, 7, 200 * TW_MS, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	close(fd);
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);
	EXPECT_EQ(7ULL, reader.event.id);
	EXPECT_TRUE(is_again(before));
}

/* A reader keeps its wheel when dup2 gives its descriptor to another wheel. */
TEST(dup2_while_reading)
{
	struct seen before = see();
	int fd = TW_OPEN(O_RDWR), copy = dup(fd);
	int other = TW_OPEN(O_RDWR);
	struct timewheel_event event;
	struct tw_sleeper reader;

	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_setup_manual(other, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 7, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register(other, 8, TW_SEC, 0, NULL));
	ASSERT_TRUE(tw_put_to_sleep(&reader, fd, tw_sleep_in_read));
	ASSERT_EQ(fd, dup2(other, fd));
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(1, tw_read(fd, &event, 1));
	EXPECT_EQ(8ULL, event.id);
	ASSERT_EQ(0, tw_advance(copy, 1));
	ASSERT_EQ(0, pthread_join(reader.thread, NULL));
	EXPECT_EQ(1, reader.ret);
	EXPECT_EQ(7ULL, reader.event.id);
	close(copy);
	close(fd);
	close(other);
	EXPECT_TRUE(is_again(before));
}

/* A thread that has left the common table of files keeps the wheel by its own table. */
static struct {
	pthread_barrier_t barrier;
	int fd;
	const char *wrong;
} leaver;

static void *leave(void *arg)
{
	struct timewheel_event event;

	if (unshare(CLONE_FILES))
		leaver.wrong = "unshare";
	pthread_barrier_wait(&leaver.barrier);
	/*
	 * The parent has closed its file meanwhile. The file in this thread's table
	 * stays open.
	 */
	pthread_barrier_wait(&leaver.barrier);
	if (tw_register(leaver.fd, 1, TW_SEC, 0, NULL) ||
	    tw_advance(leaver.fd, 1) ||
	    tw_read(leaver.fd, &event, 1) != 1 || event.id != 1)
		leaver.wrong = "the wheel is gone";
	return arg;
}

TEST(thread_with_files_of_its_own)
{
	struct seen before = see();
	pthread_t thread;

	NEEDS_KERNEL("a table of open files");
	leaver.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(leaver.fd, 31, 10, 0));
	ASSERT_EQ(0, pthread_barrier_init(&leaver.barrier, NULL, 2));
	ASSERT_EQ(0, pthread_create(&thread, NULL, leave, NULL));
	pthread_barrier_wait(&leaver.barrier);
	close(leaver.fd);
	EXPECT_EQ(-EBADF, tw_ret(tw_touch(leaver.fd, 0, 1)));
	if (before.references >= 0)
		EXPECT_EQ(before.references + 1, tw_refcnt());
	pthread_barrier_wait(&leaver.barrier);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_NULL(leaver.wrong);
	EXPECT_TRUE(is_again(before));
}

/* Many wheels with tokens are closed by one call, also out of a copied table of files. */
TEST(close_range_ends_them)
{
	enum { FIRST = 500, WHEELS = 20, UNSHARE = 2 /* CLOSE_RANGE_UNSHARE */ };
	struct seen before = see();

	NEEDS_KERNEL("close_range(2) of a device");
	for (int flags = 0; flags <= UNSHARE; flags += UNSHARE) {
		for (int i = 0; i < WHEELS; i++) {
			int fd = TW_OPEN(O_RDWR);

			ASSERT_EQ(FIRST + i, dup2(fd, FIRST + i));
			close(fd);
			ASSERT_EQ(0, tw_setup(FIRST + i,
					      TIMEWHEEL_CLOCK_MONOTONIC, 31,
					      TW_MS, 1000, 0, 0));
			ASSERT_EQ(500UL, tw_register_many(FIRST + i, 0, 500, 0,
							  i * TW_MS));
			ASSERT_EQ(500UL, tw_register_many(FIRST + i, 500, 500,
							  0, 3600 * TW_SEC));
		}
		if (syscall(SYS_close_range, FIRST, FIRST + WHEELS - 1, flags))
			SKIP(return, "no close_range");
		EXPECT_EQ(-EBADF, tw_ret(tw_touch(FIRST, 0, 1)));
		EXPECT_TRUE(is_again(before));
	}
}

/*
 * A process under seccomp's strict mode may only read from the file that it was
 * given. An ioctl kills it.
 */
static void read_confined(int fd, struct timewheel_event *event)
{
	struct timewheel_touch touch = { .size = sizeof(touch), .key = 2 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chroot("/proc") ||
	    chdir("/") || setgroups(0, NULL) ||
	    setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(1);
	if (read(fd, event, sizeof(*event)) != sizeof(*event))
		syscall(SYS_exit, 2);
	ioctl(fd, TIMEWHEEL_IOC_TOUCH, &touch);
	syscall(SYS_exit, 3);
}

TEST(confined)
{
	struct timewheel_event *shared = tw_shared_memory(4096);
	int fd = TW_OPEN(O_RDWR), status;
	struct timewheel_token before, after;
	pid_t child;

	NEEDS_KERNEL("a child shares a wheel");
	TW_NEEDS_ROOT();
	ASSERT_NE(MAP_FAILED, (void *)shared);
	ASSERT_EQ(0, tw_setup_manual(fd, 31, 10, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 11, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 9 * TW_SEC, 22, NULL));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		read_confined(fd, shared);
	tw_wait_asleep(child);
	ASSERT_EQ(0, tw_advance(fd, 1));
	ASSERT_EQ(0, tw_get(fd, 0, 2, &before));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
		TH_LOG("status %#x", status);
	}
	EXPECT_EQ(1ULL, shared->id);
	EXPECT_EQ(11ULL, shared->cookie);
	ASSERT_EQ(0, tw_get(fd, 0, 2, &after));
	EXPECT_EQ(before.deadline, after.deadline);
	EXPECT_EQ(0, tw_cancel(fd, 0, 2));
}

FIXTURE(sharing) {
	struct seen before;
};

FIXTURE_SETUP(sharing)
{
	int fd = TW_OPEN(O_RDWR);

	close(fd);
	self->before = see();
}

FIXTURE_TEARDOWN(sharing)
{
}

/* Threads are in all calls at once, and some of them sleep. None of them ends by itself. */
static struct {
	_Atomic unsigned long calls;
	unsigned long tokens;
	int fd;
} last;

static void *call_for_ever(void *arg)
{
	int how = (int)(intptr_t)arg;
	struct pollfd p = { .fd = last.fd, .events = POLLIN };
	struct timewheel_event events[64];
	struct timewheel_token tokens[64];

	for (unsigned long n = how;; n += 997) {
		struct timewheel_list list = {
			.size = sizeof(list), .to = TIMEWHEEL_NEVER,
			.tokens = (__u64)(uintptr_t)tokens, .count = 64,
			.token_size = sizeof(tokens[0]),
		};
		unsigned long id = n % last.tokens;

		last.calls++;
		switch (how) {
		case 0:
			while (poll(&p, 1, -1) == 1)
				tw_read(last.fd, events, 64);
			break;
		case 1:
			tw_read(last.fd, events, 3);
			break;
		case 2:
			tw_register_many(last.fd, id, 256, 0, n % 7 * TW_MS);
			break;
		case 3:
			tw_touch_each(last.fd, id, 256);
			break;
		case 4:
			tw_op_many(last.fd, TIMEWHEEL_OP_CANCEL, id, 32, 0, 0);
			break;
		default:
			ioctl(last.fd, TIMEWHEEL_IOC_LIST, &list);
		}
	}
	return NULL;
}

/*
 * Runs the process that is to die, with a full wheel, of which a tenth is due, and
 * threads.
 */
static void live(int ready, bool exits)
{
	enum { THREADS = 6 };
	pthread_t thread;

	last.fd = open(TW_DEVICE, O_RDWR);
	if (tw_setup(last.fd, TIMEWHEEL_CLOCK_MONOTONIC, 3600, TW_MS,
		     last.tokens, 0, 0) ||
	    tw_register_many(last.fd, 0, last.tokens / 10, 0, 0) !=
	    last.tokens / 10 ||
	    tw_register_many(last.fd, last.tokens / 10,
			     last.tokens / 10 * 9, 0, 3600 * TW_SEC) !=
	    last.tokens / 10 * 9)
		_exit(1);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, call_for_ever, (void *)i))
			_exit(2);
	while (last.calls < 100)
		sched_yield();
	if (write(ready, "", 1) != 1)
		_exit(3);
	if (!exits)
		for (;;)
			pause();
	tw_sleep_ms(2);
	_exit(0);
}

/*
 * A process that is killed or exits while its threads are in all calls leaves nothing
 * behind.
 */
TEST_F_TIMEOUT(sharing, in_all_calls, 200)
{
	NEEDS_KERNEL("a killed process leaves nothing");
	for (int round = 0; round < 12; round++) {
		bool exits = round % 2;
		int ready[2];
		pid_t child;
		char byte;

		last.tokens = round ? 1000 * round : tw_scaled(1000000) + 10;
		ASSERT_EQ(0, pipe(ready));
		child = fork();
		ASSERT_LE(0, child);
		if (!child)
			live(ready[1], exits);
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		close(ready[0]);
		tw_sleep_ms(round);
		if (!exits)
			ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(exits ? 0 : -1, tw_reap(child));
		EXPECT_TRUE(is_again(self->before));
	}
}

TEST_HARNESS_MAIN
