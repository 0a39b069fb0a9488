/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tests of libtimewheel share this file: wheels to try things on, and checks that a call
 * fails.
 */
#ifndef LIB_TEST_H
#define LIB_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "timewheel.h"

#include "kselftest_harness.h"

#define MS	TW_MS(1)
#define SEC	TW_SEC(1)

/* The sanitizers need more memory than tests of want of memory leave. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	true
#else
#define SANITIZED	false
#endif

/* Skips a test of something that a wheel of the process does not have: timewheel(7) tells why. */
#define NEEDS_KERNEL(what) do {						\
	const char *kind_ = getenv("TIMEWHEEL");			\
									\
	if (kind_ && !strcmp(kind_, "process"))				\
		SKIP(return, "needs a kernel: " what);			\
} while (0)

/* RUN(wheel, cancel, key, 0) prepares an operation by tw_op_cancel() and carries it out. */
#define RUN(wheel, prepare, ...) ({					\
	struct timewheel_op op_;					\
									\
	tw_op_##prepare(&op_, __VA_ARGS__);				\
	tw_wheel_run(wheel, &op_);					\
})

/* @call fails with @err: -1, or the pointer NULL. */
#define EXPECT_ERR(err, call) do {					\
	errno = 0;							\
	EXPECT_EQ(-1, (long)(call));					\
	EXPECT_EQ(err, errno);						\
} while (0)

#define EXPECT_NONE(err, call) do {					\
	errno = 0;							\
	EXPECT_EQ(NULL, call);						\
	EXPECT_EQ(err, errno);						\
} while (0)

/* A manual wheel with 60 slots of 1 s, its hand on 100, for ten tokens. */
static const struct timewheel_setup manual = {
	.size = sizeof(manual),
	.clock = TIMEWHEEL_CLOCK_MANUAL,
	.slots = 60,
	.tick = SEC,
	.max_tokens = 10,
	.start = 100,
};

/* A wheel of the real clock, with ticks of 1 ms. */
static const struct timewheel_setup monotonic = {
	.size = sizeof(monotonic),
	.clock = TIMEWHEEL_CLOCK_MONOTONIC,
	.slots = 64,
	.tick = MS,
	.max_tokens = 100000,
};

/* Ends a test that cannot run here. */
static inline void skip(const char *why)
{
	printf("# skipped: %s\n", why);
	fflush(stdout);
	_exit(KSFT_SKIP);
}

/* Opens a wheel. Without the device the test is skipped, without a wheel it fails. */
static inline struct tw_wheel *open_wheel(const struct timewheel_setup *setup)
{
	struct tw_wheel *wheel = tw_wheel_open(setup);

	if (wheel)
		return wheel;
	if (errno == ENOENT || errno == ENODEV)
		skip("no device: is the module loaded?");
	perror("tw_wheel_open");
	_exit(KSFT_FAIL);
}

/* Registers a token, and stores its handle if it was registered. */
static inline int register_token(struct tw_wheel *wheel, uint64_t id,
				 uint64_t time, uint64_t cookie,
				 unsigned int flags, uint64_t *handle)
{
	struct timewheel_op op;
	int result;

	tw_op_register(&op, id, time, cookie, flags);
	result = tw_wheel_run(wheel, &op);
	if (result >= 0)
		*handle = op.handle;
	return result;
}

static inline struct timewheel_info info_of(const struct tw_wheel *wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };

	if (tw_wheel_info(wheel, &info) < 0)
		abort();
	return info;
}

/* Waits until the thread @tid sleeps, as it does in a call that blocks. */
static inline void wait_asleep(pid_t tid)
{
	const struct timespec ms = { .tv_nsec = MS };
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	for (int tries = 0; tries < 5000 && state != 'S'; tries++) {
		FILE *file = fopen(path, "r");

		nanosleep(&ms, NULL);
		if (!file)
			continue;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(file);
	}
}

/* Runs @run in a child process. Returns 0 when it returned 0. */
static inline int in_child(int (*run)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(run(arg));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Makes a child the process of another user. */
static inline void become_nobody(void)
{
	if (setgid(65534) || setuid(65534))
		_exit(100);
}

/* Hides the device from a child. */
static inline void hide_device(void)
{
	if (unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev", "tmpfs", 0, NULL))
		_exit(101);
}

/* Refuses all further fds to a child. */
static inline void refuse_fds(void)
{
	struct rlimit none = { };

	if (setrlimit(RLIMIT_NOFILE, &none))
		_exit(102);
}

/* Refuses all further memory mappings to a child. */
static inline void refuse_memory(void)
{
	struct rlimit none = { };

	if (setrlimit(RLIMIT_AS, &none))
		_exit(103);
}

/* Makes a named wheel; the test destroys and closes it. */
static inline struct tw_wheel *open_new(const char *name,
					const struct timewheel_setup *setup)
{
	tw_wheel_close(open_wheel(setup));
	tw_wheel_destroy(name);
	return tw_wheel_open_or_create(name, setup, O_RDWR);
}

static inline void ignore_signal(int sig)
{
	(void)sig;
}

/* Sends signals to a thread until it no longer waits. */
struct pester {
	pthread_t thread;
	struct tw_wheel *wheel;
	atomic_bool done;
};

static inline void *pester(void *arg)
{
	const struct timespec ms = { .tv_nsec = 5 * MS };
	struct pester *p = arg;

	while (!p->done) {
		pthread_kill(p->thread, SIGUSR1);
		nanosleep(&ms, NULL);
	}
	return NULL;
}

#endif /* LIB_TEST_H */
