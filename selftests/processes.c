// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many processes, each of which opens the node of the same named wheel, divide its
 * events: no event is read twice or lost, and one expiration wakes one process. A
 * process that is killed or stopped takes nothing away from the others. A wheel can
 * also be given to a process that could not have opened it.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tw_named.h"
#include "tw_process.h"
#include "tw_test.h"

#define PROCESSES	8
#define BATCH		64	/* tokens that a reader takes at a time */
#define LONG		60	/* seconds that a test may take */

/* A process that reads this cookie ends. The cookie ends readers that block. */
#define STOP		(~0ULL)
#define STOP_ID		(1ULL << 40)

/* A registration. Its index in the ledger is the token's cookie. */
struct entry {
	_Atomic __aligned_u64 handle;
	_Atomic __u32 id;
	_Atomic __u8 registered;
	_Atomic __u8 ends;
};

#define ENTRIES		(1 << 16)
#define IDS		2048

/* Shared memory for the processes of a test and the test itself. */
struct shared {
	_Atomic __u32 opened, registrations, tries;
	_Atomic __u32 delivered, cancelled, stops;
	_Atomic __u32 reads, reads_of[PROCESSES];
	_Atomic __u32 cancelled_by_id[IDS];
	struct entry entry[ENTRIES];
};

FIXTURE(processes) {
	char name[32];
	int device;
	bool created;
	struct shared *shared;
	pid_t child[PROCESSES];
};

FIXTURE_SETUP(processes)
{
	self->device = TW_OPEN(O_RDWR);
	snprintf(self->name, sizeof(self->name), "processes-%d", getpid());
	self->shared = tw_shared_memory(sizeof(*self->shared));
	ASSERT_NE(MAP_FAILED, (void *)self->shared);
}

/* Waits for child @i. Returns its exit status, or -1 when a signal ended it. */
static int reap(FIXTURE_DATA(processes) *self, int i)
{
	pid_t child = self->child[i];

	self->child[i] = 0;
	return tw_reap(child);
}

/* Returns whether child @i has ended. */
static bool has_ended(const FIXTURE_DATA(processes) *self, int i)
{
	siginfo_t info = {};

	return waitid(P_PID, self->child[i], &info,
		      WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

static int end(FIXTURE_DATA(processes) *self, int i)
{
	kill(self->child[i], SIGKILL);
	return reap(self, i);
}

/* The teardown ends all processes and destroys the wheel, however the test ended. */
FIXTURE_TEARDOWN(processes)
{
	for (int i = 0; i < PROCESSES; i++) {
		if (self->child[i] > 0)
			end(self, i);
	}
	if (self->created)
		EXPECT_EQ(0, tw_destroy_named(self->device, self->name));
	close(self->device);
}

static int open_wheel(const FIXTURE_DATA(processes) *self, int flags)
{
	return tw_open_named(self->name, flags);
}

static int create_wheel(FIXTURE_DATA(processes) *self, __u32 clock, __u64 tick)
{
	const struct timewheel_setup setup = {
		.clock = clock, .slots = 60, .tick = tick,
		.max_tokens = ENTRIES,
	};

	self->created = true;
	return tw_create_named(self->device, self->name, setup);
}

/* Starts child @i, whose exit status is the result of @run. */
static bool start(FIXTURE_DATA(processes) *self, int i,
		  int (*run)(FIXTURE_DATA(processes) *self, int i))
{
	self->child[i] = tw_fork();
	if (self->child[i])
		return self->child[i] > 0;
	_exit(run(self, i));
}

/* Waits until the readers have taken all tokens of the wheel. The caller reads none. */
static bool wait_for_readers(int fd)
{
	struct timewheel_info info;

	for (int tries = 0; tries < 20000; tries++) {
		if (tw_info(fd, &info) < 0)
			return false;
		if (!info.pending && !info.taken)
			return true;
		tw_sleep_ms(1);
	}
	return false;
}

static bool wait_for_count(_Atomic __u32 *count, __u32 value)
{
	for (int tries = 0; tries < 20000 && *count < value; tries++)
		tw_sleep_ms(1);
	return *count >= value;
}

/* The ledger notes each registration and its end. */

static void book_registration(struct shared *shared, __u32 number, __u32 id,
			      __u64 handle)
{
	shared->entry[number].id = id;
	shared->entry[number].registered++;
	shared->entry[number].handle = handle;
}

/* Reads up to @max events into the ledger. Returns their number, or -errno. */
static int read_and_book(struct shared *shared, int i, int fd, size_t max,
			 bool *stop)
{
	struct timewheel_event events[BATCH];
	int got = tw_ret(tw_read(fd, events, max));

	for (int n = 0; n < got; n++) {
		if (events[n].taken < events[n].deadline)
			return -ETIME;
		if (events[n].cookie == STOP) {
			shared->stops++;
			*stop = true;
			continue;
		}
		if (events[n].cookie >= ENTRIES)
			return -ERANGE;
		shared->entry[events[n].cookie].ends++;
		shared->delivered++;
	}
	if (got > 0) {
		shared->reads++;
		shared->reads_of[i]++;
	}
	return got;
}

/* Registers an id that another process may have registered. */
static int try_register(struct shared *shared, int fd, __u32 code)
{
	__u32 number = shared->registrations++;
	struct timewheel_op op = {
		.code = code, .id = rand() % IDS, .cookie = number,
		.time = (1 + rand() % 20) * TW_MS,
	};
	int result = tw_op(fd, &op);

	if (result < 0)
		return errno == EEXIST ? 0 : -errno;
	if (code == TIMEWHEEL_OP_REGISTER || result & TIMEWHEEL_RES_REGISTERED)
		book_registration(shared, number, op.id, op.handle);
	return 0;
}

/* Touches, moves or cancels one of the youngest tokens, of any process. */
static int try_change(struct shared *shared, int fd, __u32 code)
{
	__u32 number = shared->registrations - 1 - rand() % 256;
	struct entry *entry = &shared->entry[number % ENTRIES];
	bool by_handle = rand() % 2 && entry->handle;
	struct timewheel_op op = {
		.code = code, .flags = by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0,
		.id = rand() % IDS, .handle = entry->handle,
		.time = (1 + rand() % 20) * TW_MS,
	};

	if (tw_op(fd, &op) < 0)
		return errno == ENOENT || errno == ESTALE ? 0 : -errno;
	if (code != TIMEWHEEL_OP_CANCEL)
		return 0;
	shared->cancelled++;
	if (by_handle)
		entry->ends++;
	else
		shared->cancelled_by_id[op.id]++;
	return 0;
}

static int try_anything(struct shared *shared, int fd)
{
	switch (rand() % 16) {
	case 0 ... 6:
		return try_register(shared, fd, TIMEWHEEL_OP_REGISTER);
	case 7 ... 9:
		return try_register(shared, fd, TIMEWHEEL_OP_TOUCH_OR_REGISTER);
	case 10 ... 12:
		return try_change(shared, fd, TIMEWHEEL_OP_TOUCH);
	case 13 ... 14:
		return try_change(shared, fd, TIMEWHEEL_OP_MOVE);
	default:
		return try_change(shared, fd, TIMEWHEEL_OP_CANCEL);
	}
}

/*
 * Does all operations in random order. Odd processes block in their reads, and a
 * token tells them to stop. Even processes never block, and read the tokens that
 * remain.
 */
static int do_everything(FIXTURE_DATA(processes) *self, int i)
{
	struct shared *shared = self->shared;
	const __u32 tries = tw_scaled(60000);
	bool blocks = i % 2, stop = false;
	int fd = open_wheel(self, O_RDWR | (blocks ? 0 : O_NONBLOCK));

	if (fd < 0 || tries > ENTRIES)
		return 2;
	shared->opened++;
	if (!wait_for_count(&shared->opened, PROCESSES))
		return 3;
	srand(i);
	while (!stop) {
		bool more = shared->tries++ < tries;
		int got;

		if (!more && !blocks)
			break;
		if (more && try_anything(shared, fd))
			return 4;
		if (more && rand() % 16)
			continue;
		got = read_and_book(shared, i, fd, 1 + rand() % BATCH, &stop);
		if (got < 0 && got != -EAGAIN)
			return 5;
	}
	return 0;
}

/* Registers tokens with the cookie STOP until all readers that block have ended. */
static bool stop_readers(FIXTURE_DATA(processes) *self, int fd, __u32 *sent)
{
	for (int i = 1; i < PROCESSES; i += 2) {
		while (!has_ended(self, i)) {
			__u64 id = STOP_ID + *sent;

			if (tw_register(fd, id, 0, STOP, NULL) < 0)
				return false;
			++*sent;
			tw_sleep_ms(5);
		}
	}
	return true;
}

/*
 * P3: eight processes register, touch, move, cancel and read at the same time. Each
 * registration ends exactly once, by an event or by a cancellation. A cancellation by
 * id tells only the id. The test therefore compares the cancellations by id with the
 * tokens that have no other end, for each id.
 */
TEST_F_TIMEOUT(processes, ledger_of_eight_processes, LONG)
{
	struct shared *shared = self->shared;
	__u32 unended[IDS] = {}, registered = 0, sent = 0;
	struct timewheel_info info;
	int fd, reading = 0;
	bool stop;

	ASSERT_EQ(0, create_wheel(self, TIMEWHEEL_CLOCK_MONOTONIC, TW_MS));
	fd = open_wheel(self, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (int i = 0; i < PROCESSES; i++)
		ASSERT_TRUE(start(self, i, do_everything));
	for (int i = 0; i < PROCESSES; i += 2)
		ASSERT_EQ(0, reap(self, i));
	ASSERT_TRUE(stop_readers(self, fd, &sent));
	for (int i = 1; i < PROCESSES; i += 2)
		ASSERT_EQ(0, reap(self, i));
	do {
		tw_sleep_ms(1);
		read_and_book(shared, 0, fd, BATCH, &stop);
		ASSERT_EQ(0, tw_info(fd, &info));
	} while (info.pending);

	for (__u32 n = 0; n < ENTRIES; n++) {
		const struct entry *entry = &shared->entry[n];

		ASSERT_GE(1, entry->registered);
		ASSERT_GE(entry->registered, entry->ends) {
			TH_LOG("registration %u", n);
		}
		registered += entry->registered;
		if (entry->registered && !entry->ends)
			unended[entry->id]++;
	}
	for (__u32 id = 0; id < IDS; id++)
		ASSERT_EQ(shared->cancelled_by_id[id], unended[id]);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(sent, shared->stops);
	EXPECT_EQ(registered + sent, info.registered);
	EXPECT_EQ(shared->delivered + sent, info.delivered);
	EXPECT_EQ(shared->cancelled, info.cancelled);
	EXPECT_EQ(registered, shared->delivered + shared->cancelled);
	for (int i = 0; i < PROCESSES; i++)
		reading += shared->reads_of[i] > 0;
	EXPECT_LT(1, reading);
	TH_LOG("%u registered, %u cancelled, %d processes read", registered,
	       shared->cancelled, reading);
}

/* The tests from here on count which processes are woken. */

/* Returns how often child @i has gone to sleep, or -1. */
static long sleeps(const FIXTURE_DATA(processes) *self, int i)
{
	char path[64], line[128];
	long count = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", self->child[i]);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "voluntary_ctxt_switches: %ld", &count);
	if (file)
		fclose(file);
	return count;
}

static long all_sleeps(const FIXTURE_DATA(processes) *self)
{
	long sum = 0;

	for (int i = 0; i < PROCESSES; i++)
		sum += sleeps(self, i);
	return sum;
}

static void wait_all_asleep(const FIXTURE_DATA(processes) *self)
{
	for (int i = 0; i < PROCESSES; i++)
		tw_wait_asleep(self->child[i]);
}

static int block_in_read(FIXTURE_DATA(processes) *self, int i)
{
	int fd = open_wheel(self, O_RDONLY);
	bool stop;

	while (read_and_book(self->shared, i, fd, BATCH, &stop) > 0)
		;
	return 1;
}

/* Waits in epoll with EPOLLEXCLUSIVE, and sleeps nowhere else. */
static int block_in_epoll(FIXTURE_DATA(processes) *self, int i)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int fd = open_wheel(self, O_RDONLY | O_NONBLOCK);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	bool stop;

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
		return 1;
	while (epoll_wait(epoll, &event, 1, -1) == 1) {
		int got = read_and_book(self->shared, i, fd, BATCH, &stop);

		if (got < 0 && got != -EAGAIN)
			return 2;
	}
	return 3;
}

/* Registers @n tokens from @number on, all due at @deadline. */
static bool register_at(struct shared *shared, int fd, __u32 number, __u32 n,
			__u64 deadline)
{
	struct timewheel_op ops[BATCH] = {};
	__u32 done;

	for (__u32 i = 0; i < n; i++) {
		ops[i] = (struct timewheel_op) {
			.size = sizeof(*ops), .code = TIMEWHEEL_OP_REGISTER,
			.flags = TIMEWHEEL_OPF_ABSOLUTE, .id = number + i,
			.cookie = number + i, .time = deadline,
		};
	}
	if (tw_batch(fd, ops, n, &done) || done != n)
		return false;
	for (__u32 i = 0; i < n; i++) {
		if (ops[i].result < 0)
			return false;
		book_registration(shared, number + i, number + i,
				  ops[i].handle);
	}
	return true;
}

static bool each_ended_once(const struct shared *shared, __u32 n)
{
	for (__u32 i = 0; i < n; i++) {
		if (shared->entry[i].ends != 1)
			return false;
	}
	return true;
}

/*
 * Eight processes sleep for a few tokens of one tick. About one process wakes, and
 * takes all tokens. The test counts how often the processes went to sleep again. The
 * margin is for a process that the scheduler had stopped on its way to sleep.
 */
static void expect_no_herd(struct __test_metadata *_metadata,
			   FIXTURE_DATA(processes) *self, __u32 clock,
			   int (*run)(FIXTURE_DATA(processes) *self, int i))
{
	enum { TOGETHER = 3 };
	const __u32 rounds = tw_scaled(30);
	struct shared *shared = self->shared;
	__u32 number = 0, counted = 0, reads = 0;
	__u64 delay = 20 * TW_MS;
	long woken = 0;
	int fd;

	ASSERT_EQ(0, create_wheel(self, clock, TW_MS));
	fd = open_wheel(self, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (int i = 0; i < PROCESSES; i++)
		ASSERT_TRUE(start(self, i, run));
	wait_all_asleep(self);
	while (counted < rounds) {
		bool manual = clock == TIMEWHEEL_CLOCK_MANUAL, late = false;
		long slept = all_sleeps(self);
		__u32 had_read = shared->reads;
		__u64 deadline = manual ? (counted + 1) * TW_MS :
					  tw_now(CLOCK_MONOTONIC) + delay;

		ASSERT_TRUE(register_at(shared, fd, number, TOGETHER, deadline));
		number += TOGETHER;
		if (!manual)
			late = tw_now(CLOCK_MONOTONIC) >= deadline;
		else
			ASSERT_EQ(0, tw_advance(fd, counted + 1));
		ASSERT_TRUE(wait_for_count(&shared->delivered, number));
		wait_all_asleep(self);
		/* Tokens registered too late were due one by one, and do not count. */
		if (late) {
			delay *= 2;
			continue;
		}
		woken += all_sleeps(self) - slept;
		reads += shared->reads - had_read;
		counted++;
	}
	EXPECT_TRUE(each_ended_once(shared, number));
	EXPECT_EQ(counted, reads);
	EXPECT_LE(counted, woken);
	EXPECT_GE(2 * counted + 2, woken);
	TH_LOG("%ld wake-ups for %u times %u tokens", woken, counted, TOGETHER);
}

TEST_F_TIMEOUT(processes, one_wakes, LONG)
{
	expect_no_herd(_metadata, self, TIMEWHEEL_CLOCK_MANUAL, block_in_read);
}

TEST_F_TIMEOUT(processes, one_wakes_by_the_timer, LONG)
{
	expect_no_herd(_metadata, self, TIMEWHEEL_CLOCK_MONOTONIC,
		       block_in_read);
}

TEST_F_TIMEOUT(processes, one_wakes_in_epoll, LONG)
{
	expect_no_herd(_metadata, self, TIMEWHEEL_CLOCK_MANUAL, block_in_epoll);
}

TEST_F_TIMEOUT(processes, one_wakes_in_epoll_by_the_timer, LONG)
{
	expect_no_herd(_metadata, self, TIMEWHEEL_CLOCK_MONOTONIC,
		       block_in_epoll);
}

/* Reads once, and then sleeps until it is killed. */
static int read_once(FIXTURE_DATA(processes) *self, int i)
{
	int fd = open_wheel(self, O_RDONLY);
	bool stop;

	if (read_and_book(self->shared, i, fd, BATCH, &stop) < 0)
		return 1;
	for (;;)
		pause();
}

/*
 * Many due tokens wake as many processes as they need, one after the other. Each
 * process takes a batch, wakes the next process and leaves the rest to it.
 */
TEST_F_TIMEOUT(processes, burst_wakes_the_next_in_turn, LONG)
{
	const __u32 readers[] = { 1, 3, PROCESSES };
	struct shared *shared = self->shared;
	__u32 number = 0;
	int fd;

	ASSERT_EQ(0, create_wheel(self, TIMEWHEEL_CLOCK_MANUAL, TW_MS));
	fd = open_wheel(self, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (__u32 i = 0; i < ARRAY_SIZE(readers); i++) {
		__u64 hand = i + 1;
		__u32 before = shared->reads;

		for (int p = 0; p < PROCESSES; p++)
			ASSERT_TRUE(start(self, p, read_once));
		wait_all_asleep(self);
		/* The last process finds half a batch. */
		for (__u32 n = 0; n < 2 * readers[i] - 1; n++) {
			ASSERT_TRUE(register_at(shared, fd, number, BATCH / 2,
						hand * TW_MS));
			number += BATCH / 2;
		}
		ASSERT_EQ(0, tw_advance(fd, hand));
		ASSERT_TRUE(wait_for_count(&shared->delivered, number));
		wait_all_asleep(self);
		EXPECT_EQ(before + readers[i], shared->reads);
		EXPECT_TRUE(each_ended_once(shared, number));
		for (int p = 0; p < PROCESSES; p++)
			end(self, p);
	}
}

/* The tests from here on kill or stop processes. */

#define TOKENS		150	/* in a round: more than two batches */
#define VICTIMS		(PROCESSES - 2)

/* Readers that are killed or stopped have read into this shared memory. */
static struct timewheel_event (*left_behind)[TOKENS];

/* Reads straight into memory that outlives the reader. */
static int read_until_killed(FIXTURE_DATA(processes) *self, int i)
{
	int fd = open_wheel(self, O_RDONLY);
	size_t at = 0;

	for (;;) {
		int got = tw_read(fd, &left_behind[i][at], TOKENS);

		if (got < 0)
			return 1;
		at += got;
	}
}

/*
 * Counts the events that the dead reader @i has left. If an event was not written to
 * its end, it does not count, because its token was put back. The test fills the
 * memory with 0xff, and the end of a written event is 0.
 */
static __u32 book_what_is_left(struct shared *shared, int i)
{
	__u32 n;

	for (n = 0; n < TOKENS && !left_behind[i][n].missed; n++)
		shared->entry[left_behind[i][n].cookie].ends++;
	return n;
}

/*
 * Six readers get a signal while they sleep, are woken or read. Two other readers
 * share the wheel with them and get no signal. Each token is either complete in the
 * memory of one reader or is delivered to another reader. A read that had taken
 * tokens when the signal came has copied them or put them back (P3, P5), and passes
 * its wake-up on to the next reader. Events in the memory of a reader that dies would
 * be lost, but here the memory is shared.
 */
static void expect_nothing_lost(struct __test_metadata *_metadata,
				FIXTURE_DATA(processes) *self,
				bool (*begin)(int i, pid_t child),
				bool (*halt)(int i, pid_t child))
{
	const __u32 rounds = tw_scaled(60);
	struct shared *shared = self->shared;
	__u32 left = 0;
	int fd;

	left_behind = tw_shared_memory(sizeof(*left_behind) * VICTIMS);
	ASSERT_NE(MAP_FAILED, (void *)left_behind);
	ASSERT_EQ(0, create_wheel(self, TIMEWHEEL_CLOCK_MONOTONIC,
				  TW_MS / 10));
	fd = open_wheel(self, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	for (int i = VICTIMS; i < PROCESSES; i++)
		ASSERT_TRUE(start(self, i, block_in_read));
	for (__u32 round = 0; round < rounds; round++) {
		__u32 number = round * TOKENS;

		memset(left_behind, 0xff, sizeof(*left_behind) * VICTIMS);
		for (int i = 0; i < VICTIMS; i++) {
			ASSERT_TRUE(start(self, i, read_until_killed));
			ASSERT_TRUE(!begin || begin(i, self->child[i]));
		}
		for (int i = 0; i < VICTIMS; i++)
			tw_wait_asleep(self->child[i]);
		/*
		 * One third of the tokens are due at once, one third on many ticks,
		 * and one third on one tick.
		 */
		for (__u32 n = 0; n < TOKENS; n++) {
			__u64 delay = n < TOKENS / 3 ? 0 :
				      n < TOKENS / 3 * 2 ? n * TW_MS / 20 :
				      8 * TW_MS;

			ASSERT_EQ(0, tw_register(fd, number + n, delay,
						 number + n, NULL));
		}
		for (int i = 0; i < VICTIMS; i++) {
			usleep(round * 97 % 1500);
			ASSERT_TRUE(halt(i, self->child[i]));
		}
		ASSERT_TRUE(wait_for_readers(fd));
		for (int i = 0; i < VICTIMS; i++) {
			ASSERT_EQ(-1, end(self, i));
			left += book_what_is_left(shared, i);
		}
		ASSERT_TRUE(wait_for_count(&shared->delivered,
					   number + TOKENS - left));
	}
	EXPECT_TRUE(each_ended_once(shared, rounds * TOKENS));
	TH_LOG("%u of %u were read by those that were to die", left,
	       rounds * TOKENS);
}

static bool kill_one(int i, pid_t child)
{
	return !kill(child, SIGKILL);
}

TEST_F_TIMEOUT(processes, killed_readers_lose_nothing, LONG)
{
	expect_nothing_lost(_metadata, self, NULL, kill_one);
}

static bool stop_one(int i, pid_t child)
{
	return !kill(child, SIGSTOP);
}

/* A stopped process keeps no token back from the others. */
TEST_F_TIMEOUT(processes, stopped_readers_lose_nothing, LONG)
{
	expect_nothing_lost(_metadata, self, NULL, stop_one);
}

/*
 * Each process is in a group of its own, which is then frozen. A move of the process
 * into a frozen group would take longer than the delays of the tokens.
 */
#define FREEZER	"/sys/fs/cgroup/timewheel-freezer-"

static bool write_freezer(int i, const char *file, int value)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), FREEZER "%d/cgroup.%s", i, file);
	snprintf(text, sizeof(text), "%d", value);
	return tw_write_file(path, text);
}

static bool enter_freezer(int i, pid_t child)
{
	return write_freezer(i, "freeze", 0) && write_freezer(i, "procs", child);
}

static bool freeze_one(int i, pid_t child)
{
	return write_freezer(i, "freeze", 1);
}

static bool make_freezer(int i)
{
	char path[64];

	snprintf(path, sizeof(path), FREEZER "%d", i);
	return (!mkdir(path, 0755) || errno == EEXIST) &&
	       write_freezer(i, "freeze", 0);
}

static bool remove_freezer(int i)
{
	char path[64];

	snprintf(path, sizeof(path), FREEZER "%d", i);
	return !rmdir(path);
}

TEST_F_TIMEOUT(processes, frozen_readers_lose_nothing, LONG)
{
	for (int i = 0; i < VICTIMS; i++) {
		if (!make_freezer(i))
			SKIP(return, "no freezer here: %s", strerror(errno));
	}
	expect_nothing_lost(_metadata, self, enter_freezer, freeze_one);
	for (int i = 0; i < VICTIMS; i++)
		EXPECT_TRUE(remove_freezer(i));
}

/* The tests from here on give an open wheel to another process. */

/*
 * Sends the open wheel to @socket. After the end of this process only the message
 * holds it.
 */
static int open_and_send(const FIXTURE_DATA(processes) *self, int socket,
			 int flags)
{
	int fd = open_wheel(self, flags);

	return fd < 0 || tw_send_fd(socket, fd, 0);
}

/* Takes from the process the right to open the node. */
static int become_nobody(void)
{
	/* PR_SET_DUMPABLE lets the process use its own files in /proc/self. */
	return setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	       setresuid(65534, 65534, 65534) || prctl(PR_SET_DUMPABLE, 1);
}

static int lose_the_node(void)
{
	return unshare(CLONE_NEWNS) ||
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	       mount("none", "/dev", "tmpfs", 0, NULL);
}

/* Uses a file that was given for reading and writing. All operations have to work. */
static int use(int fd)
{
	struct timewheel_event events[4];
	struct timewheel_token token;

	/* Tokens 1 and 2 are due. Token 3 is not. */
	if (!tw_readable(fd) || tw_cancel(fd, 0, 1) != TIMEWHEEL_RES_WAS_DUE ||
	    tw_read(fd, events, 4) != 1 || events[0].id != 2)
		return 10;
	if (tw_get(fd, 0, 3, &token) ||
	    tw_touch(fd, TIMEWHEEL_OPF_BY_HANDLE, token.handle))
		return 11;
	if (tw_register(fd, 4, 7 * TW_MS, 44, NULL) || tw_advance(fd, 2))
		return 12;
	return 0;
}

/* Uses a file that was given for reading only. Changes have to fail. */
static int use_for_reading(int fd)
{
	struct timewheel_event event;
	struct timewheel_token token;
	char again[64];

	if (tw_register(fd, 5, TW_MS, 0, NULL) >= 0 || errno != EBADF ||
	    tw_cancel(fd, 0, 3) >= 0 || errno != EBADF ||
	    tw_advance(fd, 9) >= 0 || errno != EBADF)
		return 20;
	if (tw_get(fd, 0, 3, &token) || tw_read(fd, &event, 1) >= 0 ||
	    errno != EAGAIN)
		return 21;
	/* The process cannot reopen the file with more rights. */
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	if (!geteuid())
		return 0;
	return open(again, O_RDWR) >= 0 || errno != EACCES ? 22 : 0;
}

/*
 * A wheel in a message survives its sender, and serves a process that could not have
 * opened it. A process that opens the node later gets the same wheel.
 */
static void give_away(struct __test_metadata *_metadata,
		      FIXTURE_DATA(processes) *self, int (*become)(void),
		      int error)
{
	struct timewheel_event events[4];
	int fd, sockets[2], status;
	pid_t child;

	TW_NEEDS_ROOT();
	ASSERT_EQ(0, create_wheel(self, TIMEWHEEL_CLOCK_MANUAL, TW_MS));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		fd = open_wheel(self, O_RDWR);
		if (tw_register_many(fd, 1, 2, 0, TW_MS) != 2 ||
		    tw_register(fd, 3, 5 * TW_MS, 33, NULL) ||
		    tw_advance(fd, 1))
			_exit(1);
		_exit(open_and_send(self, sockets[0], O_RDWR | O_NONBLOCK) ||
		      open_and_send(self, sockets[0], O_RDONLY | O_NONBLOCK));
	}
	ASSERT_EQ(0, tw_reap(child));

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(self->device);
		if (become())
			_exit(77);
		if (open_wheel(self, O_RDONLY) >= 0 || errno != error)
			_exit(2);
		status = use(tw_receive_fd(sockets[1], 0));
		_exit(status ?: use_for_reading(tw_receive_fd(sockets[1],
							      0)));
	}
	status = tw_reap(child);
	if (status == 77)
		SKIP(return, "cannot become somebody else here");
	ASSERT_EQ(0, status);
	close(sockets[0]);
	close(sockets[1]);

	/* The wheel was without an open file for a moment. Token 3 was touched on tick 1. */
	fd = open_wheel(self, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, tw_advance(fd, 6));
	ASSERT_EQ(1, tw_read(fd, events, 4));
	EXPECT_EQ(3ULL, events[0].id);
	EXPECT_EQ(33ULL, events[0].cookie);
	ASSERT_EQ(0, tw_advance(fd, 8));
	ASSERT_EQ(1, tw_read(fd, events, 4));
	EXPECT_EQ(4ULL, events[0].id);
	EXPECT_EQ(44ULL, events[0].cookie);
	EXPECT_EQ(8 * TW_MS, events[0].deadline);
}

TEST_F(processes, given_to_a_user_who_may_not_open_it)
{
	give_away(_metadata, self, become_nobody, EACCES);
}

TEST_F(processes, given_to_where_there_is_no_node)
{
	give_away(_metadata, self, lose_the_node, ENOENT);
}

TEST_HARNESS_MAIN
