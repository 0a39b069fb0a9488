// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Tests of wheels inside the process: their fd, forks, threads, and want of memory and of fds.
 * All other tests, with TIMEWHEEL=process in the environment, show that such a wheel does what
 * a wheel of the kernel does.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sanitizer/asan_interface.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "lib_test.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS	_IOW('T', 0, uint64_t)
#endif

#define MANY	1000
/* A read that sleeps has less than this on the stack. */
#define STACK_OF_A_READ	16384

static struct tw_wheel *open_own(const struct timewheel_setup *setup)
{
	struct tw_wheel *wheel = tw_wheel_open_process(setup);

	if (!wheel) {
		perror("tw_wheel_open_process");
		_exit(errno == ENOSYS ? KSFT_SKIP : KSFT_FAIL);
	}
	return wheel;
}

static bool is_readable(const struct tw_wheel *wheel, int timeout)
{
	struct pollfd pollfd = { .fd = tw_wheel_fd(wheel), .events = POLLIN };

	return poll(&pollfd, 1, timeout) == 1;
}

/* Returns the ns from now until the timerfd goes off, 0 when it is not running. */
static uint64_t runs_for(const struct tw_wheel *wheel)
{
	struct itimerspec left;

	if (timerfd_gettime(tw_wheel_fd(wheel), &left))
		abort();
	return left.it_value.tv_sec * SEC + left.it_value.tv_nsec;
}

FIXTURE(process) {
	struct tw_wheel	*wheel;		/* its clock is real */
	struct tw_wheel	*hand;		/* its clock is moved by hand */
};

FIXTURE_SETUP(process)
{
	self->wheel = open_own(&monotonic);
	self->hand = open_own(&manual);
}

FIXTURE_TEARDOWN(process)
{
	tw_wheel_close(self->wheel);
	tw_wheel_close(self->hand);
}

TEST_F(process, is_told_from_one_of_the_kernel)
{
	EXPECT_EQ(1, tw_wheel_is_process(self->wheel));
	EXPECT_EQ(0, fcntl(tw_wheel_fd(self->wheel), F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(FD_CLOEXEC, fcntl(tw_wheel_fd(self->wheel), F_GETFD));
	EXPECT_ERR(ENOTTY, tw_wheel_open_fd(tw_wheel_fd(self->wheel)) ? 0 : -1);
}

TEST_F(process, its_fd_is_readable_when_a_token_is_due)
{
	struct timewheel_event event;

	EXPECT_EQ(0, RUN(self->wheel, register, 1, 20 * MS, 5, 0));
	EXPECT_FALSE(is_readable(self->wheel, 0));
	EXPECT_TRUE(is_readable(self->wheel, -1));
	EXPECT_TRUE(is_readable(self->wheel, 0));
	ASSERT_EQ(1, tw_wheel_read(self->wheel, &event, 1, 1));
	EXPECT_EQ(5, event.cookie);
	EXPECT_GE(event.taken, event.deadline);
	EXPECT_FALSE(is_readable(self->wheel, 0));
	EXPECT_ERR(EAGAIN, tw_wheel_read(self->wheel, &event, 1, 1));
}

TEST_F(process, read_answers_as_the_kernel_does)
{
	const int fd = tw_wheel_fd(self->hand);
	struct timewheel_event events[2];

	EXPECT_ERR(EINVAL, tw_wheel_read(self->hand, events, 0, 1));
	EXPECT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERR(EAGAIN, tw_wheel_read(self->hand, events, 2, 0));
	EXPECT_EQ(0, RUN(self->hand, register, 1, SEC, 0, 0));
	EXPECT_EQ(0, tw_wheel_advance(self->hand, 101));
	EXPECT_EQ(1, tw_wheel_read(self->hand, events, 2, 0));
}

/* Most tokens are touched, or cancelled in time, and this costs no system call for the timerfd. */
TEST_F(process, a_deadline_that_is_put_off_is_not_told)
{
	struct timewheel_event event;
	uint64_t left;

	EXPECT_EQ(0, runs_for(self->wheel));
	EXPECT_EQ(0, RUN(self->wheel, register, 1, SEC, 0, 0));
	left = runs_for(self->wheel);
	EXPECT_LT(0, left);
	EXPECT_GE(SEC + MS, left);
	EXPECT_EQ(0, RUN(self->wheel, move, 1, 9 * SEC, 0));
	EXPECT_GE(SEC + MS, runs_for(self->wheel));
	/* A nearer deadline is told. */
	EXPECT_EQ(0, RUN(self->wheel, register, 2, 50 * MS, 0, 0));
	EXPECT_GE(51 * MS, runs_for(self->wheel));
	EXPECT_EQ(0, RUN(self->wheel, cancel, 2, 0));

	/* A look then finds nothing, and tells the timerfd the deadline that counts. */
	EXPECT_TRUE(is_readable(self->wheel, -1));
	EXPECT_ERR(EAGAIN, tw_wheel_read(self->wheel, &event, 1, 1));
	EXPECT_FALSE(is_readable(self->wheel, 0));
	EXPECT_LT(5 * SEC, runs_for(self->wheel));
	EXPECT_EQ(0, RUN(self->wheel, cancel, 1, 0));
}

static void fill(struct tw_wheel *wheel, int count)
{
	for (int i = 1; i <= count; i++)
		if (RUN(wheel, register, i, MS, i, 0))
			abort();
}

static void expect_edges(struct __test_metadata *_metadata, FIXTURE_DATA(process) *self)
{
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLET }, got;
	struct timewheel_event events[7];
	int epoll = epoll_create1(EPOLL_CLOEXEC), taken = 0, n;

	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tw_wheel_fd(self->wheel), &wanted));
	fill(self->wheel, MANY);
	/* Each edge is answered by one read, which leaves most of the events. */
	while (taken < MANY && epoll_wait(epoll, &got, 1, 10000) == 1) {
		n = tw_wheel_read(self->wheel, events, 7, 1);
		ASSERT_LE(0, n < 0 && errno == EAGAIN ? 0 : n);
		taken += n > 0 ? n : 0;
	}
	EXPECT_EQ(MANY, taken);
	EXPECT_EQ(0, RUN(self->wheel, register, 1, MS, 0, 0));
	EXPECT_EQ(1, epoll_wait(epoll, &got, 1, 10000));
	close(epoll);
}

TEST_F(process, edges_come_as_long_as_tokens_are_due)
{
	expect_edges(_metadata, self);
}

/* The kernel looks like one without CONFIG_CHECKPOINT_RESTORE. */
TEST_F(process, edges_come_where_a_timerfd_has_no_ioctl)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TFD_IOC_SET_TICKS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_SIZE(filter), filter };

	ASSERT_EQ(0, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	ASSERT_EQ(0, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	expect_edges(_metadata, self);
}

/* The threads of one wheel share this. */
struct shared {
	struct tw_wheel	*wheel;
	atomic_int	taken;
	pid_t		tid;
};

/*
 * AddressSanitizer marks what lies around variables on the stack. A function that a cancellation
 * ends leaves its marks there, and what the thread calls at its end would seem to be at fault.
 */
static void remove_marks(void *unused)
{
	char *here = __builtin_frame_address(0);

	(void)unused;
	ASAN_UNPOISON_MEMORY_REGION(here - STACK_OF_A_READ, STACK_OF_A_READ);
}

/* Waits in a read, which a cancellation or a token ends. */
static void *take_one(void *arg)
{
	struct shared *shared = arg;
	struct timewheel_event event;

	atomic_store(&shared->taken, 0);
	__atomic_store_n(&shared->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	pthread_cleanup_push(remove_marks, NULL);
	if (tw_wheel_read(shared->wheel, &event, 1, 0) == 1)
		atomic_store(&shared->taken, event.id);
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_t start_reader(struct shared *shared)
{
	pthread_t thread;

	shared->tid = 0;
	if (pthread_create(&thread, NULL, take_one, shared))
		abort();
	while (!__atomic_load_n(&shared->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	wait_asleep(shared->tid);
	return thread;
}

TEST_F(process, a_cancelled_read_takes_nothing_along)
{
	static struct shared first, second;
	pthread_t threads[2];
	void *end;

	first.wheel = self->wheel;
	second.wheel = self->wheel;
	threads[0] = start_reader(&first);
	threads[1] = start_reader(&second);
	EXPECT_EQ(0, pthread_cancel(threads[0]));
	EXPECT_EQ(0, pthread_join(threads[0], &end));
	EXPECT_EQ(PTHREAD_CANCELED, end);
	EXPECT_EQ(0, RUN(self->wheel, register, 3, MS, 0, 0));
	EXPECT_EQ(0, pthread_join(threads[1], NULL));
	EXPECT_EQ(3, second.taken);
}

/* A program that closes the fd by mistake harms nobody who gets its number. */
TEST_F(process, a_closed_fd_is_left_alone)
{
	const int fd = tw_wheel_fd(self->wheel);
	int stranger = timerfd_create(CLOCK_MONOTONIC, 0), other;
	struct timewheel_event event;
	struct itimerspec left;

	ASSERT_LE(0, stranger);
	close(fd);
	other = dup(stranger);
	ASSERT_EQ(fd, other);
	EXPECT_EQ(0, RUN(self->wheel, register, 1, 5 * MS, 0, 0));
	EXPECT_EQ(0, timerfd_gettime(stranger, &left));
	EXPECT_EQ(0, left.it_value.tv_sec + left.it_value.tv_nsec);
	EXPECT_EQ(1, tw_wheel_read(self->wheel, &event, 1, 0));
	close(stranger);
}

/* A read is about the wheel and needs no fd; a wait with a timeout waits by the fd. */
TEST_F(process, a_closed_fd_is_no_endless_wait)
{
	struct tw_events *events = tw_events_new(1);
	struct timewheel_event event;

	close(tw_wheel_fd(self->wheel));
	EXPECT_EQ(0, RUN(self->wheel, register, 1, 5 * MS, 0, 0));
	EXPECT_EQ(1, tw_wheel_read(self->wheel, &event, 1, 0));
	EXPECT_ERR(EBADF, tw_events_read(events, self->wheel, TW_DAY(1)));
	tw_events_free(events);
}

/* Tries all calls that a child might make on its parent's wheel. */
static int all_say_nodev(void *arg)
{
	struct tw_wheel *wheel = arg, *own;
	struct timewheel_info info = { .size = sizeof(info) };
	struct timewheel_event event;
	struct timewheel_op op;
	int good = 0;

	tw_op_register(&op, 9, SEC, 0, 0);
	good += tw_wheel_run(wheel, &op) == -1 && errno == ENODEV;
	good += tw_wheel_touch(wheel, 1, 0) == -1 && errno == ENODEV;
	good += tw_wheel_info(wheel, &info) == -1 && errno == ENODEV;
	good += tw_wheel_read(wheel, &event, 1, 0) == -1 && errno == ENODEV;
	good += !tw_words_map(wheel) && errno == ENODEV;
	/* The child may have a wheel of its own, and neither is the other. */
	own = tw_wheel_open_process(&manual);
	good += own && !tw_wheel_run(own, &op) && !RUN(own, cancel, 9, 0);
	good += tw_wheel_touch(wheel, 1, 0) == -1 && errno == ENODEV;
	tw_wheel_close(own);
	tw_wheel_close(wheel);
	return good != 7;
}

static int child_says_nodev(void *arg)
{
	struct tw_wheel *own = tw_wheel_open_process(&manual);

	/* A grandchild cannot use the wheels of its parent, either. */
	return !own || in_child(all_say_nodev, arg) || in_child(all_say_nodev, own) ||
	       tw_wheel_touch(arg, 1, 0) != -1 || errno != ENODEV;
}

TEST_F(process, a_child_has_no_part_in_it)
{
	struct timewheel_event event;

	EXPECT_EQ(0, RUN(self->wheel, register, 1, 50 * MS, 0, 0));
	EXPECT_EQ(0, in_child(all_say_nodev, self->wheel));
	EXPECT_EQ(0, in_child(child_says_nodev, self->wheel));
	/* None of these calls has touched the parent's wheel. */
	EXPECT_EQ(1, tw_wheel_read(self->wheel, &event, 1, 0));
	EXPECT_EQ(1, event.id);
}

/* Changes a wheel all the time, and opens and closes other wheels. */
static void *keep_busy(void *arg)
{
	struct shared *shared = arg;

	while (!atomic_load(&shared->taken)) {
		struct tw_wheel *other = tw_wheel_open_process(&manual);

		RUN(shared->wheel, register, 2, SEC, 0, 0);
		RUN(shared->wheel, cancel, 2, 0);
		tw_wheel_close(other);
	}
	return NULL;
}

TEST_F(process, a_fork_while_a_thread_is_inside_harms_neither)
{
	static struct shared shared;
	pthread_t thread;

	shared.wheel = self->wheel;
	ASSERT_EQ(0, pthread_create(&thread, NULL, keep_busy, &shared));
	for (int i = 0; i < 100; i++)
		EXPECT_EQ(0, in_child(all_say_nodev, self->wheel));
	atomic_store(&shared.taken, 1);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, info_of(self->wheel).pending);
}

static int fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Whether an open fails with another error than EMFILE, or leaves something open. */
static bool opens_with_so_few(rlim_t fd_limit)
{
	struct rlimit limit = { fd_limit, fd_limit };
	int before = fds();

	return setrlimit(RLIMIT_NOFILE, &limit) || tw_wheel_open_process(&manual) ||
	       errno != EMFILE || fds() != before;
}

static int no_fd(void *arg)
{
	struct tw_wheel *wheel = tw_wheel_open_process(&manual);
	int lowest = dup(0);

	(void)arg;
	close(lowest);
	/* At first one fd is left, for the timer and not for the program, and then none. */
	return !wheel || opens_with_so_few(lowest + 1) || opens_with_so_few(lowest) ||
	       RUN(wheel, register, 1, SEC, 0, 0);
}

TEST_F(process, want_of_fds_is_told_and_leaves_nothing_behind)
{
	EXPECT_EQ(0, in_child(no_fd, NULL));
}

/* Registers until memory runs out. The tokens that are there stay as they were. */
static int no_memory(void *arg)
{
	/* The limit is less than all tokens need; addresses do not count. */
	const struct rlimit limit = { 16 << 20, 16 << 20 };
	struct timewheel_setup setup = monotonic;
	struct tw_wheel *wheel;
	uint64_t done = 0;

	(void)arg;
	setup.max_tokens = 1 << 20;
	wheel = tw_wheel_open_process(&setup);
	if (!wheel || setrlimit(RLIMIT_DATA, &limit))
		return 1;
	while (!RUN(wheel, register, done + 1, TW_DAY(1), 0, 0))
		done++;
	if (errno != ENOMEM || !done || info_of(wheel).pending != done)
		return 3;
	for (uint64_t id = 1; id <= done; id++)
		if (RUN(wheel, cancel, id, 0))
			return 4;
	return RUN(wheel, register, 1, SEC, 0, 0) != 0;
}

static int no_addresses(void *arg)
{
	struct timewheel_setup setup = monotonic;

	refuse_memory();
	return tw_wheel_open_process(&setup) || errno != ENOMEM || !arg;
}

TEST_F(process, want_of_memory_is_told_and_loses_nothing)
{
	if (!SANITIZED)
		EXPECT_EQ(0, in_child(no_memory, NULL));
	if (!SANITIZED)
		EXPECT_EQ(0, in_child(no_addresses, self->wheel));
}

TEST_F(process, words_stay_until_they_are_unmapped)
{
	struct timewheel_setup setup = manual;
	struct tw_words *words;
	struct tw_wheel *wheel;
	uint64_t handle;

	setup.flags = TIMEWHEEL_SETUP_TOUCH_WORDS;
	wheel = open_own(&setup);
	words = tw_words_map(wheel);
	ASSERT_NE(NULL, words);
	ASSERT_EQ(0, register_token(wheel, 1, 2 * SEC, 0, 0, &handle));
	EXPECT_EQ(0, tw_wheel_advance(wheel, 101));
	tw_touch(words, handle, 101);
	EXPECT_EQ(0, tw_wheel_advance(wheel, 102));
	EXPECT_EQ(1, info_of(wheel).pending);
	EXPECT_ERR(EAGAIN, tw_wheel_read(wheel, &(struct timewheel_event) {}, 1, 1));
	tw_wheel_close(wheel);
	tw_touch(words, handle, 102);
	tw_words_unmap(words);
}

TEST_HARNESS_MAIN
