// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger of a wheel with leases, id by id: each registered token was acked or
 * deleted, or is still there, even if processes died meanwhile. No token is lost, and
 * no token comes again after its ACK. Hundreds of consumers are killed, daemons are
 * replaced under load, and many tokens are due after a long silence.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "tw_delivery.h"
#include "tw_named.h"
#include "tw_process.h"

#define CONSUMERS	4
#define LONG		600	/* seconds; guests may be emulated */

/* Processes note the life of one id here, in memory that outlives them. */
struct entry {
	_Atomic __u8 registered;
	_Atomic __u8 delivered;
	_Atomic __u8 answering;	/* a process is about to ask for the end */
	_Atomic __u8 acked;	/* the wheel has granted the ACK */
	_Atomic __u8 deleted;
};

struct shared {
	_Atomic __u32 stop;
	_Atomic __u32 faults;	/* errors found by any process */
	_Atomic __u32 reads[CONSUMERS];
	_Atomic __u32 next;	/* id to register */
	struct entry entry[];
};

FIXTURE(ledger) {
	int device, fd;
	char name[TIMEWHEEL_NAME_SIZE];
	bool created;
	__u32 tokens;
	struct shared *shared;
	pid_t child[CONSUMERS + 1];
};

FIXTURE_SETUP(ledger)
{
	self->device = TW_OPEN(O_RDWR);
	self->fd = -1;
	snprintf(self->name, sizeof(self->name), "ledger-%d", getpid());
}

FIXTURE_TEARDOWN_PARENT(ledger)
{
	int device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= CONSUMERS; i++) {
		if (self->child[i] > 0)
			kill(self->child[i], SIGKILL);
	}
	if (self->created)
		EXPECT_EQ(0, tw_destroy_named(device, self->name));
	close(device);
}

static void _make(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self,
		  __u32 tokens, struct timewheel_setup setup)
{
	self->tokens = tokens;
	self->shared = tw_shared_memory(sizeof(*self->shared) +
					tokens * sizeof(struct entry));
	ASSERT_NE(MAP_FAILED, (void *)self->shared);
	setup.max_tokens = tokens;
	setup = tw_hold_all(setup);
	ASSERT_EQ(0, tw_create_named(self->device, self->name, setup));
	self->created = true;
	self->fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

#define make(tokens, ...)						\
	_make(_metadata, self, tokens, (struct timewheel_setup) {	\
		.clock = TIMEWHEEL_CLOCK_MONOTONIC, .slots = 60,	\
		.tick = TW_MS, .lease = 3600 * TW_SEC, __VA_ARGS__ })

#pragma GCC diagnostic ignored "-Woverride-init"

/* Starts process @i, whose exit status is the result of @run. */
static bool start(FIXTURE_DATA(ledger) *self, int i,
		  int (*run)(FIXTURE_DATA(ledger) *self, int i))
{
	pid_t child = tw_fork();

	if (!child) {
		srand(getpid());
		_exit(run(self, i));
	}
	self->child[i] = child;	/* in memory that all processes share */
	return child > 0;
}

/* Registers all tokens, in small steps, due within the next milliseconds. */
static int produce(FIXTURE_DATA(ledger) *self, int i)
{
	int fd = tw_open_named(self->name, O_RDWR);

	(void)i;
	while (self->shared->next < self->tokens) {
		struct timewheel_op ops[32];
		__u32 first = self->shared->next, n = self->tokens - first;

		n = n < 32 ? n : 32;
		memset(ops, 0, sizeof(ops));
		for (__u32 k = 0; k < n; k++) {
			ops[k].size = sizeof(ops[k]);
			ops[k].id = first + k;
			ops[k].time = rand() % 20 * TW_MS;
			self->shared->entry[first + k].registered = 1;
		}
		if (tw_batch(fd, ops, n, NULL) < 0)
			return 1;
		for (__u32 k = 0; k < n; k++)
			if (ops[k].result < 0)
				return 2;
		self->shared->next += n;
		if (first % 1024 == 0)
			sched_yield();
	}
	return 0;
}

/*
 * Deals with one delivery. Leases are long: no other process has a delivery of the
 * same token meanwhile, so an earlier ACK is visible here.
 */
static void deal_with(struct shared *shared, int fd,
		      const struct timewheel_event *event, bool tidy)
{
	struct entry *entry = &shared->entry[event->id];
	int choice = tidy ? 0 : rand() % 16, ret;

	shared->faults += !entry->registered || entry->acked ||
			  entry->deleted;
	entry->delivered = 1;
	switch (choice) {
	default:
		entry->answering = 1;
		ret = tw_ack(fd, event);
		shared->faults += ret != 0;
		entry->acked++;
		break;
	case 1:
	case 2:
	case 3:
		ret = tw_answer(fd, TIMEWHEEL_OP_NACK, TIMEWHEEL_OPF_BY_HANDLE,
				event->handle, event->delivery,
				rand() % 3 * TW_MS);
		shared->faults += ret != 0;
		break;
	case 4:
		entry->answering = 1;
		ret = tw_answer(fd, TIMEWHEEL_OP_DELETE, 0, event->id, 0, 0);
		shared->faults += ret != 0;
		entry->deleted++;
		break;
	case 5:
		ret = tw_answer(fd, TIMEWHEEL_OP_EXTEND, 0, event->id,
				event->delivery, 0);
		shared->faults += ret != 0;
		/*
		 * The process gives no answer: the token comes back when the process
		 * dies, or at the end.
		 */
		break;
	}
}

static int consume(FIXTURE_DATA(ledger) *self, int i)
{
	int fd = tw_open_named(self->name, O_RDWR);

	for (;;) {
		struct timewheel_event events[16];
		int n = tw_read(fd, events, 1 + rand() % 16);

		if (n < 0)
			return 1;
		for (int k = 0; k < n; k++)
			deal_with(self->shared, fd, &events[k], false);
		self->shared->reads[i]++;
	}
}

/* Checks the whole ledger. This file may still hold tokens. */
static void expect_ledger(struct __test_metadata *_metadata,
			  FIXTURE_DATA(ledger) *self)
{
	__u64 ended = 0, there = 0;
	struct timewheel_info info;

	for (__u32 id = 0; id < self->tokens; id++) {
		const struct entry *entry = &self->shared->entry[id];
		struct timewheel_token token;
		int ret = tw_ret(tw_get(self->fd, 0, id, &token));

		ASSERT_EQ(1, entry->registered);
		if (ret == -ENOENT) {
			/* A missing token must have been ended by a process. */
			ASSERT_EQ(1, entry->answering) {
				TH_LOG("token %u is lost", id);
			}
			ASSERT_GE(1, entry->acked + entry->deleted) {
				TH_LOG("token %u has ended twice", id);
			}
			ended++;
			continue;
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, entry->acked + entry->deleted) {
			TH_LOG("token %u is there after its end", id);
		}
		there++;
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(self->tokens, info.registered);
	EXPECT_EQ(ended, info.acked + info.deleted);
	EXPECT_EQ(there, info.pending + info.held);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(0ULL, info.lapsed);
	EXPECT_EQ(0ULL, info.cancelled);
	EXPECT_EQ(0U, self->shared->faults);
	tw_expect_balance(self->fd);
	TH_LOG("%llu acked, %llu deleted, %llu there", info.acked, info.deleted,
	       there);
	TH_LOG("%llu delivered, %llu nacked, %llu came back by death",
	       info.delivered, info.nacked, info.returned);
}

/*
 * Kills one consumer after the other, at least @kills in all, until all tokens are
 * registered. Returns how many were killed.
 */
static __u32 kill_consumers(struct __test_metadata *_metadata,
			    FIXTURE_DATA(ledger) *self, __u32 kills)
{
	__u32 killed = 0;

	while (killed < kills || self->shared->next < self->tokens) {
		int i = rand() % CONSUMERS;
		__u32 before = self->shared->reads[i];

		/* The kill mostly hits the consumer in the middle of some work. */
		for (int spin = rand() % 50; spin > 0; spin--) {
			sched_yield();
			if (self->shared->reads[i] > before + spin)
				break;
		}
		EXPECT_TRUE(tw_kill(self->child[i]));
		killed++;
		if (!start(self, i, consume))
			break;
		if (killed >= kills)
			tw_sleep_ms(10);
	}
	return killed;
}

TEST_F_TIMEOUT(ledger, consumers_are_killed, LONG)
{
	const __u32 kills = tw_scaled(1000);
	struct timewheel_event events[64];
	struct timewheel_token token;
	int n;

	/* As many deliveries are out as may be, most of the time. */
	make(tw_scaled(100000), .max_held = 100);
	for (int i = 0; i < CONSUMERS; i++)
		ASSERT_TRUE(start(self, i, consume));
	ASSERT_TRUE(start(self, CONSUMERS, produce));
	TH_LOG("%u killed", kill_consumers(_metadata, self, kills));
	ASSERT_EQ(0, tw_reap(self->child[CONSUMERS]));
	self->child[CONSUMERS] = 0;
	for (int i = 0; i < CONSUMERS; i++) {
		EXPECT_TRUE(tw_kill(self->child[i]));
		self->child[i] = 0;
	}
	expect_ledger(_metadata, self);

	/* All remaining tokens come now, and get their answers. */
	tw_sleep_ms(50);
	while ((n = tw_read(self->fd, events, 64)) > 0)
		for (int i = 0; i < n; i++)
			deal_with(self->shared, self->fd, &events[i], true);
	expect_ledger(_metadata, self);
	tw_expect_balance(self->fd);
	for (__u32 id = 0; id < self->tokens; id++)
		ASSERT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, id,
						 &token)));
}

/* A daemon ends properly: it finishes its deliveries, and reads no more. */
static _Atomic int leaving;

static void leave(int signal)
{
	(void)signal;
	leaving = 1;
}

static int serve(FIXTURE_DATA(ledger) *self, int i)
{
	struct sigaction action = { .sa_handler = leave };
	struct pollfd p = { .events = POLLIN };

	p.fd = tw_open_named(self->name, O_RDWR | O_NONBLOCK);
	sigaction(SIGTERM, &action, NULL);
	self->shared->reads[i]++;
	while (!leaving) {
		struct timewheel_event events[16];
		int n = tw_read(p.fd, events, 16);

		/* The read fails with EINTR if the daemon is told to end meanwhile. */
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return 1;
		for (int k = 0; k < n; k++) {
			self->shared->faults +=
				self->shared->entry[events[k].id].delivered;
			deal_with(self->shared, p.fd, &events[k], true);
		}
		/*
		 * The poll is short, because the daemon may be told to end just before
		 * it.
		 */
		if (n < 0)
			poll(&p, 1, 20);
	}
	return 0;
}

/*
 * A daemon is replaced again and again: the new daemon is there before the old one
 * leaves.
 */
TEST_F_TIMEOUT(ledger, daemon_is_replaced_under_load, LONG)
{
	const __u32 upgrades = tw_scaled(100);
	struct timewheel_info info;
	int now = 0;

	make(tw_scaled(100000));
	ASSERT_TRUE(start(self, now, serve));
	while (!self->shared->reads[now])
		tw_sleep_ms(1);
	ASSERT_TRUE(start(self, CONSUMERS, produce));
	for (__u32 n = 0; n < upgrades || self->shared->next < self->tokens;
	     n++) {
		int then = !now;
		__u32 before = self->shared->reads[then];

		ASSERT_TRUE(start(self, then, serve));
		while (self->shared->reads[then] == before)
			tw_sleep_ms(1);
		ASSERT_EQ(0, kill(self->child[now], SIGTERM));
		ASSERT_EQ(0, tw_reap(self->child[now]));
		self->child[now] = 0;
		now = then;
	}
	ASSERT_EQ(0, tw_reap(self->child[CONSUMERS]));
	self->child[CONSUMERS] = 0;
	do {
		tw_sleep_ms(5);
		ASSERT_EQ(0, tw_info(self->fd, &info));
	} while (info.acked < self->tokens && !self->shared->faults);
	ASSERT_EQ(0, kill(self->child[now], SIGTERM));
	ASSERT_EQ(0, tw_reap(self->child[now]));
	self->child[now] = 0;
	/* No token was affected: each token came once, and each delivery was answered. */
	tw_expect_figures(self->fd, .registered = self->tokens,
			  .acked = self->tokens, .delivered = self->tokens);
	expect_ledger(_metadata, self);
}

/* After an hour without a reader all tokens come, in order, each of them once. */
TEST_F_TIMEOUT(ledger, after_an_hour_without_a_consumer, LONG)
{
	enum { TICKS = 3600, BATCH = 512 };
	const __u32 tokens = tw_scaled(1000000);
	static struct timewheel_event events[BATCH];
	static struct timewheel_op acks[BATCH];
	__u64 last = 0, got = 0;
	int n;

	make(tokens, .clock = TIMEWHEEL_CLOCK_MANUAL, .tick = TW_SEC,
	     .lease = 600 * TW_SEC);
	for (__u32 id = 0; id < tokens; id += 1000)
		ASSERT_EQ(tokens - id < 1000 ? tokens - id : 1000UL,
			  tw_register_many(self->fd, id, tokens - id < 1000 ?
					   tokens - id : 1000, 0,
					   (1 + id % TICKS) * TW_SEC));
	ASSERT_EQ(0, tw_advance(self->fd, TICKS));
	EXPECT_TRUE(tw_readable(self->fd));
	/* The pages of the buffer are in memory, so that nothing is put back. */
	memset(events, 0xff, sizeof(events));
	while ((n = tw_read(self->fd, events, BATCH)) > 0) {
		for (int i = 0; i < n; i++) {
			ASSERT_LE(last, events[i].deadline);
			ASSERT_EQ(1U, events[i].delivery);
			ASSERT_EQ(0, self->shared->entry[events[i].id].delivered++);
			last = events[i].deadline;
		}
		got += n;
	}
	ASSERT_EQ(tokens, got);
	tw_expect_figures(self->fd, .registered = tokens, .held = tokens,
			  .delivered = tokens);

	/* The tokens come again, because no delivery was answered in time. */
	ASSERT_EQ(0, tw_advance(self->fd, TICKS + 600));
	while ((n = tw_read(self->fd, events, BATCH)) > 0) {
		memset(acks, 0, sizeof(acks));
		for (int i = 0; i < n; i++) {
			ASSERT_EQ(2U, events[i].delivery);
			ASSERT_EQ(1, self->shared->entry[events[i].id].delivered++);
			acks[i].size = sizeof(acks[i]);
			acks[i].code = TIMEWHEEL_OP_ACK;
			acks[i].id = events[i].id;
			acks[i].delivery = 2;
		}
		ASSERT_EQ(0, tw_batch(self->fd, acks, n, NULL));
		for (int i = 0; i < n; i++)
			ASSERT_EQ(0, acks[i].result);
	}
	tw_expect_figures(self->fd, .registered = tokens, .acked = tokens,
			  .delivered = 2 * tokens, .lapsed = tokens);
}

TEST_HARNESS_MAIN
