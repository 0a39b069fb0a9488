// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of tokens is charged to the memory cgroup of the process that registers
 * them. A registration beyond this group's limit fails, and takes nothing from others
 * (P9). The tests need root and a version 2 hierarchy with the memory controller.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tw_named.h"
#include "tw_process.h"
#include "tw_test.h"

#define TW_GROUP	"/sys/fs/cgroup/timewheel-test"
#include "tw_group.h"

/* The group's limit is 4 MB, and more where pages are larger than 4 KB. */
#define LIMIT		(16 * TW_GROUP_STOCK)
/* So many tokens, or so many deliveries, are more than the group can have. */
#define PLENTY		(LIMIT / 4)
#define AT_ONCE		512
#define LONG		600	/* seconds; guests may be emulated */

FIXTURE(memory) {
	int fd;
};

FIXTURE_SETUP(memory)
{
	TW_MAKE_GROUP(LIMIT);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 60, PLENTY, 0));
}

FIXTURE_TEARDOWN(memory)
{
	close(self->fd);
	rmdir(TW_GROUP);
}

/*
 * Registers as many tokens as it can in a process of the group. Returns the error that
 * ended the process, or -1 if the process came to another end.
 */
static int register_all(int fd)
{
	pid_t child = fork();
	__u64 id = 0;

	if (child < 0)
		return -1;
	if (!child) {
		if (tw_register_many(fd, id, AT_ONCE, 0, TW_SEC) != AT_ONCE ||
		    !tw_group_enter_locked())
			_exit(0);
		do {
			id += AT_ONCE;
		} while (tw_register_many(fd, id, AT_ONCE, 0, TW_SEC) ==
			 AT_ONCE);
		id += AT_ONCE;
		while (tw_register(fd, id, TW_SEC, 0, NULL) >= 0)
			id++;
		_exit(errno);
	}
	return tw_reap(child);
}

/*
 * P5, P9: without memory a registration fails with ENOMEM. No process is killed, every
 * token that was registered is delivered, and other processes still get their tokens.
 */
TEST_F_TIMEOUT(memory, shortage_is_enomem, LONG)
{
	struct timewheel_info info;
	int other;

	ASSERT_EQ(ENOMEM, register_all(self->fd));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_LT(20000ULL, info.registered);
	/*
	 * All memory but the table of ids is charged to the group, and outlives the
	 * child.
	 */
	EXPECT_LT(LIMIT / 2, tw_group_charged());

	other = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup_manual(other, 60, 10000, 0));
	EXPECT_EQ(10000UL, tw_register_many(other, 0, 10000, 0, TW_SEC));
	close(other);

	ASSERT_EQ(0, tw_advance(self->fd, 1));
	EXPECT_EQ(info.registered, (__u64)tw_read_all(self->fd));
}

/* P9: the charge is given back when the wheel is closed. */
TEST_F_TIMEOUT(memory, closing_gives_it_back, LONG)
{
	ASSERT_EQ(ENOMEM, register_all(self->fd));
	EXPECT_LT(LIMIT / 2, tw_group_charged());
	close(self->fd);
	/*
	 * The kernel may need some time to give charges back, and keeps some of them
	 * cached.
	 */
	for (int i = 0; i < 200 && tw_group_charged() > LIMIT / 4; i++)
		tw_sleep_ms(50);
	EXPECT_GT(LIMIT / 4, tw_group_charged());
}

/* Forks a child that may have @limit bytes more than the group has. */
static pid_t fork_short(__u64 limit)
{
	pid_t child = fork();

	if (!child && (!tw_group_enter_locked() ||
		       !tw_group_limit(tw_group_charged() + limit)))
		_exit(255);
	return child;
}

/* These tests are about the memory of deliveries. */

#define LEASED	4096	/* number of tokens */

/*
 * The wheel of @fd has LEASED tokens, all of which may be out; @spare is there to spend
 * memory.
 */
static struct short_reader {
	int fd, spare;
	unsigned char times[LEASED];
	struct timewheel_event events[LEASED];
} reader;

/* Takes all memory of the group, on one CPU, because each CPU has some of it in stock. */
static bool spend_memory(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) ||
	    !tw_group_enter_locked() || !tw_group_limit(tw_group_charged()))
		return false;
	while (tw_register(reader.spare, 0, TW_SEC, 0, NULL) >= 0)
		;
	return errno == ENOMEM;
}

/* Reads all tokens, each once, and holds them. */
static bool read_all(void)
{
	int n = 0, got;

	memset(reader.times, 0, sizeof(reader.times));
	while ((got = tw_read(reader.fd, reader.events + n, LEASED - n)) > 0)
		for (; got; got--)
			reader.times[reader.events[n++].id]++;
	return n == LEASED && !memchr(reader.times, 0, LEASED);
}

/* Answers all deliveries. Returns true if each answer was taken. */
static bool answer_all(__u32 code)
{
	for (int i = 0; i < LEASED; i++)
		if (tw_answer(reader.fd, code, TIMEWHEEL_OPF_BY_HANDLE,
			      reader.events[i].handle, reader.events[i].delivery, 0))
			return false;
	return true;
}

static int deliver_without_memory(void)
{
	if (!spend_memory())
		return 1;
	if (!read_all())
		return 2;
	if (!answer_all(TIMEWHEEL_OP_NACK) || !read_all())
		return 3;
	/* The leases end, and the tokens come again. */
	if (tw_advance(reader.fd, 1000) || !read_all())
		return 4;
	if (!answer_all(TIMEWHEEL_OP_EXTEND) || !answer_all(TIMEWHEEL_OP_ACK))
		return 5;
	return tw_register(reader.spare, 0, TW_SEC, 0, NULL) >= 0 ? 6 : 0;
}

/* P5: SETUP takes all memory of deliveries, and none of it is missing later. */
TEST_F_TIMEOUT(memory, deliveries_need_none, LONG)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = LEASED,
		.lease = 10 * TW_SEC, .max_held = LEASED,
	};
	struct timewheel_info info;
	__u64 bytes;
	pid_t child;

	reader = (struct short_reader) {
		.fd = TW_OPEN(O_RDWR | O_NONBLOCK), .spare = TW_OPEN(O_RDWR),
	};
	ASSERT_EQ(0, tw_setup(reader.spare, TIMEWHEEL_CLOCK_MANUAL, 60, TW_SEC,
			      PLENTY, TIMEWHEEL_SETUP_NO_IDS, 0));
	ASSERT_EQ(0, ioctl(reader.fd, TIMEWHEEL_IOC_SETUP, &setup));
	ASSERT_EQ((size_t)LEASED, tw_register_many(reader.fd, 0, LEASED, 0, 0));
	/* A worker of the kernel makes the table of ids larger. */
	tw_sleep_ms(200);
	ASSERT_EQ(0, tw_info(reader.fd, &info));
	bytes = info.bytes;
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		_exit(deliver_without_memory());
	EXPECT_EQ(0, tw_reap(child));
	ASSERT_EQ(0, tw_info(reader.fd, &info));
	EXPECT_EQ(3ULL * LEASED, info.delivered);
	EXPECT_EQ((__u64)LEASED, info.nacked);
	EXPECT_EQ((__u64)LEASED, info.lapsed);
	EXPECT_EQ((__u64)LEASED, info.acked);
	EXPECT_EQ(0ULL, info.pending + info.held + info.taken);
	EXPECT_GE(bytes, info.bytes);
	close(reader.fd);
	close(reader.spare);
}

/*
 * Sets up a wheel with @max_held deliveries, of 36 bytes each, in a process of the
 * group.
 */
static int hold_in_group(int fd, __u32 max_held)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 60, .tick = TW_SEC, .max_tokens = PLENTY,
		.lease = TW_SEC, .max_held = max_held,
		.flags = TIMEWHEEL_SETUP_NO_IDS,
	};
	pid_t child = fork();

	if (!child)
		_exit(!tw_group_enter_locked() ? 255 :
		      ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup) < 0 ? errno : 0);
	return child < 0 ? -1 : tw_reap(child);
}

/* P9: the process that makes a wheel is charged for its deliveries at once. */
TEST_F_TIMEOUT(memory, setup_is_charged_for_deliveries, LONG)
{
	const __u32 some = LIMIT / 2 / 36;
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK);

	EXPECT_EQ(ENOMEM, hold_in_group(fd, PLENTY));
	ASSERT_EQ(0, hold_in_group(fd, some));
	EXPECT_LE(LIMIT / 2 - LIMIT / 16, tw_group_charged());
	close(fd);
	for (int i = 0; i < 200 && tw_group_charged() > LIMIT / 4; i++)
		tw_sleep_ms(50);
	EXPECT_GT(LIMIT / 4, tw_group_charged());
}

/*
 * Makes a wheel with tokens in the group, and takes ever more pages, until the process
 * is killed.
 */
static void ask_for_too_much(void)
{
	int fd = open(TW_DEVICE, O_RDWR);
	char *pages;

	if (!tw_group_enter() ||
	    tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS, 30000, 0, 0) ||
	    tw_register_many(fd, 0, 10000, 0, 0) != 10000 ||
	    tw_register_many(fd, 10000, 20000, 0, 3600 * TW_SEC) != 20000)
		_exit(1);
	pages = mmap(NULL, 4 * LIMIT, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t at = 0; at < 4 * LIMIT; at += 4096)
		pages[at] = 1;
	_exit(2);
}

/*
 * Waits until the wheel's references and memory are gone, which the kernel may free
 * later.
 */
static bool is_over(long refs)
{
	bool over = false;

	for (int i = 0; i < 400 && !over; i++) {
		over = tw_refcnt() <= refs &&
		       tw_group_charged() < LIMIT / 4;
		if (!over)
			tw_sleep_ms(50);
	}
	return over;
}

/* P9: a process is killed because it has no memory left: its wheel's memory comes back. */
TEST_F_TIMEOUT(memory, killed_for_memory, LONG)
{
	long refs = tw_refcnt();

	for (int round = 0; round < 5; round++) {
		pid_t child = fork();
		int status;

		ASSERT_LE(0, child);
		if (!child) {
			close(self->fd);
			ask_for_too_much();
		}
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status)) {
			TH_LOG("status %#x", status);
		}
		EXPECT_EQ(SIGKILL, WTERMSIG(status));
		EXPECT_TRUE(is_over(refs));
	}
}

/* Returns the result of a set-up with at most @limit bytes of memory. */
static int setup_short(int fd, __u64 limit)
{
	struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 65536, .tick = TW_SEC, .max_tokens = PLENTY,
		.flags = TIMEWHEEL_SETUP_TOUCH_WORDS,
	};
	pid_t child = fork_short(limit);

	if (child < 0)
		return -1;
	if (!child)
		_exit(ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup) < 0 ? errno : 0);
	return tw_reap(child);
}

/*
 * P9: a set-up that fails for want of memory, wherever it fails, leaves nothing behind:
 * the file can be set up in another way, and has nothing of the first set-up.
 */
TEST_F_TIMEOUT(memory, failed_setup_leaves_nothing, LONG)
{
	int i, failed = 0;

	for (i = 0; i < 64; i++) {
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		struct pollfd pollfd = { .fd = fd, .events = POLLIN };
		int err = setup_short(fd, i * LIMIT / 128);
		struct timewheel_info info;

		ASSERT_TRUE(!err || err == ENOMEM) {
			TH_LOG("%s", strerror(err));
		}
		if (err) {
			failed++;
			ASSERT_EQ(0, tw_setup_manual(fd, 60, 100, 0));
			ASSERT_EQ(0, tw_info(fd, &info));
			EXPECT_EQ(0U, info.setup_flags);
			EXPECT_EQ(-EINVAL,
				  tw_map_ret(4096, PROT_READ | PROT_WRITE,
					     MAP_SHARED, fd,
					     TIMEWHEEL_MAP_WORDS));
			EXPECT_EQ(0, poll(&pollfd, 1, 0));
		}
		close(fd);
		ASSERT_TRUE(tw_group_limit(LIMIT));
	}
	/* Where pages are large, the stock of a CPU is enough for a set-up. */
	EXPECT_TRUE(failed || sysconf(_SC_PAGESIZE) > 4096);
	EXPECT_GT(64, failed);
}

enum { BEFORE, CALLING, RETURNED };

/*
 * Creates a wheel, whose memory is some MB, while the kernel puts the process to sleep for
 * each bit of memory.
 */
static void create_slowly(int *where)
{
	const struct timewheel_setup setup = {
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60, .tick = TW_SEC,
		.max_tokens = LIMIT / 2 / 36, .lease = TW_SEC, .max_held = LIMIT / 2 / 36,
	};
	int fd = open(TW_DEVICE, O_RDWR);

	if (tw_group_enter_locked() && tw_group_set("memory.high", 0)) {
		__atomic_store_n(where, CALLING, __ATOMIC_RELEASE);
		tw_create_named(fd, "memory-slow", setup);
	}
	__atomic_store_n(where, RETURNED, __ATOMIC_RELEASE);
	_exit(0);
}

/* Waits until a process sleeps in such a way that no signal but a kill can wake it. */
static bool sleeps_for_memory(pid_t pid)
{
	char path[32], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 2000 && state != 'D'; i++) {
		FILE *file = fopen(path, "re");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (file)
			fclose(file);
		tw_sleep_ms(5);
	}
	return state == 'D';
}

/*
 * P9: a group that has more memory than it should has to give memory back within a
 * set-up, or sleeps there. Users of other groups make and end private and named wheels
 * meanwhile.
 */
TEST_F_TIMEOUT(memory, reclaiming_stalls_nobody, LONG)
{
	const struct timewheel_setup small = {
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60, .tick = TW_SEC,
		.max_tokens = 100,
	};
	int *where = tw_shared_memory(sizeof(*where));
	int fd = TW_OPEN(O_RDWR);
	pid_t child;

	ASSERT_NE(MAP_FAILED, (void *)where);
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child)
		create_slowly(where);
	while (__atomic_load_n(where, __ATOMIC_ACQUIRE) == BEFORE)
		tw_sleep_ms(1);
	ASSERT_TRUE(sleeps_for_memory(child));

	EXPECT_EQ(0, tw_setup_manual(fd, 60, 100, 0));
	close(fd);
	EXPECT_EQ(0, tw_create_named(self->fd, "memory-other", small));
	EXPECT_EQ(0, tw_destroy_named(self->fd, "memory-other"));
	EXPECT_EQ(CALLING, __atomic_load_n(where, __ATOMIC_ACQUIRE)) {
		TH_LOG("they waited for the slow one");
	}

	EXPECT_TRUE(tw_kill(child));
	tw_destroy_named(self->fd, "memory-slow");
	munmap(where, sizeof(*where));
}

TEST_HARNESS_MAIN
