// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight threads carry out all operations on one wheel at once, and still each
 * registration has exactly one end: its event or its cancellation (P3). Of several calls
 * that want the same token the first call gets it (P4), and no token comes early
 * (P1). At the end of each run the test reads all tokens that are left, and the
 * counts have to be exact.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "tw_test.h"

#define THREADS		8
#define FAULT_ROUNDS	5000	/* rounds of each thread, at least */
#define LONG		280	/* seconds; guests may be emulated */

/*
 * An entry of the ledger, for a try to register. Its index is the token's cookie.
 * @deadline is the deadline that the last successful operation promised, if only one
 * thread changes the token. @exact tells whether @deadline is the exact deadline or
 * only a lower bound.
 */
struct entry {
	__u64 id, deadline;
	atomic_ullong handle;
	bool registered, owned, exact;
	atomic_uchar events, cancels;
	__u64 event_id, event_handle, event_deadline;
};

#define SHARED_IDS	512	/* ids that all threads use */
#define OWN_IDS		16	/* ids of each thread alone */
#define IDS		(SHARED_IDS + THREADS * OWN_IDS)
#define MOST_OPS	32	/* operations in one batch */
#define MOST_EVENTS	64	/* events of one read */
#define TOKENS		500	/* tokens of a contest */

static struct {
	int fd;
	unsigned long rounds;
	unsigned long capacity;
	struct entry *entries;
	atomic_ulong next;
	atomic_ulong cancels_by_id[IDS];
	atomic_ulong registered, cancelled, moved, delivered;
	__u64 tick;
	bool manual, backwards, faults;
} mix;

struct worker {
	pthread_t thread;
	int number;
	__u64 seed;
	__u64 hand;
	unsigned long current[OWN_IDS];	/* index of the entry, plus 1 */
	char *hole;			/* a page without access, behind a page with access */
};

/* The token that an operation was meant for. The result is noted in its entry. */
struct intent {
	unsigned long entry;
	int own;	/* -1 for a shared id */
};

#define NO_ENTRY	(~0UL)

static void plan_operation(struct worker *w, struct timewheel_op *op,
			   struct intent *intent)
{
	static const __u32 codes[] = {
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_REGISTER,
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH_OR_REGISTER,
		TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OP_TOUCH_OR_REGISTER,
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_TOUCH,
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_MOVE,
		TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OP_CANCEL,
	};
	unsigned long newest = atomic_load(&mix.next);

	memset(op, 0, sizeof(*op));
	op->size = sizeof(*op);
	op->code = codes[tw_random(&w->seed) % ARRAY_SIZE(codes)];
	op->time = (1 + tw_random(&w->seed) % 40) * mix.tick;
	intent->entry = NO_ENTRY;
	intent->own = -1;
	if (mix.faults && op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER)
		op->code = TIMEWHEEL_OP_REGISTER;
	if (tw_random(&w->seed) % 4 == 0) {
		intent->own = tw_random(&w->seed) % OWN_IDS;
		op->id = SHARED_IDS + w->number * OWN_IDS + intent->own;
	} else {
		op->id = tw_random(&w->seed) % SHARED_IDS;
	}

	if (op->code == TIMEWHEEL_OP_REGISTER ||
	    op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER) {
		struct entry *e;

		intent->entry = atomic_fetch_add(&mix.next, 1);
		if (intent->entry >= mix.capacity) {
			tw_fail("the ledger is full");
			exit(1);
		}
		e = &mix.entries[intent->entry];
		e->id = op->id;
		e->owned = intent->own >= 0;
		op->cookie = intent->entry;
	} else if (tw_random(&w->seed) % 2 ||
		   (mix.faults && intent->own >= 0)) {
		/* The operation names its token by a handle, which is often stale. */
		if (intent->own >= 0)
			intent->entry = w->current[intent->own] - 1;
		else if (newest)
			intent->entry = newest - 1 - tw_random(&w->seed) %
				(newest < 2000 ? newest : 2000);
		/* The handle of an entry is written after all its other fields. */
		if (intent->entry >= newest ||
		    !mix.entries[intent->entry].handle ||
		    (intent->own < 0 && mix.entries[intent->entry].owned)) {
			/*
			 * No handle is known, and the operation takes any of the
			 * shared ids.
			 */
			intent->entry = NO_ENTRY;
			intent->own = -1;
			op->id = tw_random(&w->seed) % SHARED_IDS;
			return;
		}
		op->flags = TIMEWHEEL_OPF_BY_HANDLE;
		op->handle = mix.entries[intent->entry].handle;
	}
}

static void book_registration(struct worker *w, const struct timewheel_op *op,
			      const struct intent *intent)
{
	struct entry *e = &mix.entries[intent->entry];

	if (!op->handle)
		tw_fail("a registration without a handle");
	e->registered = true;
	e->deadline = op->deadline;
	e->exact = true;
	e->handle = op->handle;
	atomic_fetch_add(&mix.registered, 1);
	if (intent->own >= 0)
		w->current[intent->own] = intent->entry + 1;
}

static void book_operation(struct worker *w, const struct timewheel_op *op,
			   const struct intent *intent)
{
	bool by_handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE;
	struct entry *own = NULL;
	unsigned long n = 0;

	if (op->result < 0) {
		int gone = by_handle ? -ESTALE : -ENOENT;

		if (op->code == TIMEWHEEL_OP_REGISTER)
			gone = -EEXIST;
		if (op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER ||
		    op->result != gone)
			tw_fail("operation %u%s: %d", op->code,
				by_handle ? " by handle" : "", op->result);
		return;
	}
	if (op->code == TIMEWHEEL_OP_REGISTER ||
	    op->result & TIMEWHEEL_RES_REGISTERED) {
		book_registration(w, op, intent);
		return;
	}
	if (intent->own >= 0) {
		n = by_handle ? intent->entry + 1 : w->current[intent->own];
		/*
		 * A token may be taken and put back while its id is registered anew.
		 * It then stays pending beside the new token.
		 */
		if (!n || (n != w->current[intent->own] && !mix.faults)) {
			tw_fail("operation %u changed a token that had ended",
				op->code);
			return;
		}
		own = &mix.entries[n - 1];
	}
	switch (op->code) {
	case TIMEWHEEL_OP_MOVE:
		atomic_fetch_add(&mix.moved, 1);
		__attribute__((fallthrough));
	case TIMEWHEEL_OP_TOUCH:
	case TIMEWHEEL_OP_TOUCH_OR_REGISTER:
		if (own && op->code != TIMEWHEEL_OP_MOVE &&
		    op->deadline < own->deadline)
			tw_fail("a touch brought a deadline nearer");
		if (own) {
			own->deadline = op->deadline;
			own->exact = true;
		}
		break;
	case TIMEWHEEL_OP_CANCEL:
		atomic_fetch_add(&mix.cancelled, 1);
		if (own)
			atomic_fetch_add(&own->cancels, 1);
		else if (by_handle)
			atomic_fetch_add(&mix.entries[intent->entry].cancels, 1);
		else
			atomic_fetch_add(&mix.cancels_by_id[op->id], 1);
		if (own && w->current[intent->own] == n)
			w->current[intent->own] = 0;
		break;
	}
}

static void run_operations(struct worker *w, unsigned int n)
{
	struct timewheel_op ops[MOST_OPS];
	struct intent intents[MOST_OPS];
	__u32 done = n;

	for (unsigned int i = 0; i < n; i++)
		plan_operation(w, &ops[i], &intents[i]);
	if (n == 1) {
		if (ioctl(mix.fd, TIMEWHEEL_IOC_OP, &ops[0]) < 0)
			ops[0].result = -errno;
	} else if (tw_batch(mix.fd, ops, n, &done) < 0 || done != n) {
		tw_fail("a batch of %u: done %u, errno %d", n, done, errno);
	}
	for (unsigned int i = 0; i < done; i++)
		book_operation(w, &ops[i], &intents[i]);
}

/*
 * Touches by the short call, which does not return the deadline. The known deadline
 * is then only a lower bound.
 */
static void run_touch(struct worker *w)
{
	int own = tw_random(&w->seed) % OWN_IDS;
	struct entry *e;
	__u64 handle;
	int ret;

	if (!w->current[own])
		return;
	e = &mix.entries[w->current[own] - 1];
	handle = e->handle;
	if (tw_random(&w->seed) % 4 == 0)
		ret = tw_touch_keys(mix.fd, TIMEWHEEL_OPF_BY_HANDLE, &handle, 1,
				    NULL);
	else if (mix.faults || tw_random(&w->seed) % 2)
		ret = tw_touch(mix.fd, TIMEWHEEL_OPF_BY_HANDLE, handle);
	else
		ret = tw_touch(mix.fd, 0, e->id);
	if (ret < 0)
		return;
	e->exact = false;
}

/* GET of a token that no other thread changes has to return the promised deadline. */
static void run_get(struct worker *w)
{
	unsigned long n = w->current[tw_random(&w->seed) % OWN_IDS];
	struct timewheel_token token;
	const struct entry *e;
	bool by_handle;

	if (!n)
		return;
	e = &mix.entries[n - 1];
	/* With faults the id might mean an older token, which was put back. */
	by_handle = mix.faults || tw_random(&w->seed) % 2;
	if (tw_get(mix.fd, by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0,
		   by_handle ? e->handle : e->id, &token) < 0) {
		if (errno != (by_handle ? ESTALE : ENOENT))
			tw_fail("get: %d", errno);
		return;
	}
	if (token.id != e->id || token.handle != e->handle ||
	    token.cookie != n - 1 || token.state != TIMEWHEEL_STATE_PENDING)
		tw_fail("GET of %llu tells of another token", e->id);
	if (e->exact ? token.deadline != e->deadline :
		       token.deadline < e->deadline)
		tw_fail("a deadline changed by itself");
}

/* Returns memory for fewer than @most events. The memory behind it cannot be written. */
static struct timewheel_event *too_little_memory(struct worker *w, int most)
{
	return (void *)(w->hole - tw_random(&w->seed) %
			(most * sizeof(struct timewheel_event)));
}

static int run_read(struct worker *w, int most)
{
	struct timewheel_event events[MOST_EVENTS], *buffer = events;
	__u64 now;
	int n;

	/*
	 * The write makes the pages exist: only reads that are meant to fail put
	 * tokens back.
	 */
	memset(events, 0, sizeof(events));
	if (mix.faults && w && tw_random(&w->seed) % 2)
		buffer = too_little_memory(w, most);
	n = tw_read(mix.fd, buffer, most);
	now = mix.manual ? ~0ULL : tw_now(CLOCK_MONOTONIC);
	if (n < 0 && errno != EAGAIN && (buffer == events || errno != EFAULT))
		tw_fail("read: %d", errno);
	if (n > 0 && buffer != events)
		memcpy(events, buffer, n * sizeof(*events));
	for (int i = 0; i < n; i++) {
		const struct timewheel_event *event = &events[i];
		struct entry *e;

		if (event->taken < event->deadline || event->taken > now)
			tw_fail("early: deadline %llu taken %llu read %llu",
				event->deadline, event->taken, now);
		if (event->cookie >= atomic_load(&mix.next)) {
			tw_fail("an event that nobody registered");
			continue;
		}
		e = &mix.entries[event->cookie];
		if (atomic_fetch_add(&e->events, 1)) {
			tw_fail("two events of registration %llu", event->cookie);
			continue;
		}
		e->event_id = event->id;
		e->event_handle = event->handle;
		e->event_deadline = event->deadline;
	}
	if (n > 0)
		atomic_fetch_add(&mix.delivered, n);
	return n;
}

static void run_others(struct worker *w)
{
	struct timewheel_info info;

	if (tw_random(&w->seed) % 2) {
		tw_readable(mix.fd);
		return;
	}
	if (tw_info(mix.fd, &info) < 0)
		tw_fail("info: %d", errno);
	else if (info.registered != info.pending + info.taken +
		 info.cancelled + info.delivered)
		tw_fail("registered %llu, pending %llu, taken %llu, cancelled %llu, delivered %llu",
			info.registered, info.pending, info.taken, info.cancelled,
			info.delivered);
}

static void run_clock(struct worker *w)
{
	if (mix.backwards && tw_random(&w->seed) % 8 == 0)
		w->hand -= tw_random(&w->seed) % 30;
	else
		w->hand += 1 + (tw_random(&w->seed) % 64 == 0) * 100;
	if (tw_advance(mix.fd, w->hand) < 0)
		tw_fail("advance: %d", errno);
}

static void *run_mix(void *arg)
{
	struct worker *w = arg;

	for (unsigned long i = 0; i < mix.rounds;) {
		__u32 dice = tw_random(&w->seed) % 64;

		if (mix.manual && w->number == 0 && dice % 4 == 0) {
			run_clock(w);
		} else if (dice < 8) {
			run_read(w, 1 + tw_random(&w->seed) % MOST_EVENTS);
		} else if (dice < 10) {
			run_others(w);
		} else if (dice < 14) {
			run_touch(w);
		} else if (dice < 17) {
			run_get(w);
		} else if (dice < 21) {
			run_operations(w, MOST_OPS);
			i += MOST_OPS - 1;
		} else {
			run_operations(w, 1);
		}
		i++;
	}
	return NULL;
}

/* Reads all tokens that are left. The last of them is due within 2^20 ticks. */
static void drain(struct __test_metadata *_metadata, __u64 hand)
{
	struct timewheel_info info;

	if (mix.manual)
		ASSERT_EQ(0, tw_advance(mix.fd, hand + (1 << 20)));
	for (int tries = 0; tries < 10000; tries++) {
		while (run_read(NULL, MOST_EVENTS) > 0)
			;
		ASSERT_EQ(0, tw_info(mix.fd, &info));
		if (!info.pending)
			break;
		tw_sleep_ms(1);
	}
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.taken);
	EXPECT_EQ(mix.faults, info.put_back > 0);
	EXPECT_EQ(mix.registered, info.registered);
	EXPECT_EQ(mix.cancelled, info.cancelled);
	EXPECT_EQ(mix.moved, info.moved);
	EXPECT_EQ(mix.delivered, info.delivered);
	EXPECT_EQ((__u64)TIMEWHEEL_NEVER, info.next);
}

static int compare_u64(const void *a, const void *b)
{
	__u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* Checks that each registration has one end. */
static void audit(struct __test_metadata *_metadata)
{
	unsigned long n = mix.next, good = 0, by_id[IDS] = {};
	__u64 *handles = calloc(n, sizeof(*handles));

	ASSERT_NE(NULL, handles);
	for (unsigned long i = 0; i < n; i++) {
		struct entry *e = &mix.entries[i];
		unsigned int ends = e->events + e->cancels;

		if (!e->registered && ends)
			tw_fail("registration %lu failed and ended", i);
		if (!e->registered)
			continue;
		handles[good++] = e->handle;
		if (ends > 1)
			tw_fail("registration %lu: %u events, %u cancellations",
				i, e->events, e->cancels);
		if (e->owned && ends != 1)
			tw_fail("registration %lu of one owner: %u ends", i,
				ends);
		if (!ends)
			by_id[e->id]++;
		if (!e->events)
			continue;
		if (e->event_id != e->id || e->event_handle != e->handle)
			tw_fail("registration %lu: an event of id %llu", i,
				e->event_id);
		if (e->owned && (e->exact ? e->event_deadline != e->deadline :
					    e->event_deadline < e->deadline))
			tw_fail("registration %lu: promised %llu, event of %llu",
				i, e->deadline, e->event_deadline);
	}
	/*
	 * The test cannot tell which token a cancellation by id has ended, but it can
	 * count them.
	 */
	for (int id = 0; id < IDS; id++)
		if (by_id[id] != mix.cancels_by_id[id])
			tw_fail("id %d: %lu without an end, %lu cancelled", id,
				by_id[id], (unsigned long)mix.cancels_by_id[id]);
	qsort(handles, good, sizeof(*handles), compare_u64);
	for (unsigned long i = 1; i < good; i++)
		if (handles[i] == handles[i - 1])
			tw_fail("handle %#llx twice", handles[i]);
	EXPECT_EQ(good, mix.registered);
	/* A run without deliveries, cancellations and moves would prove nothing. */
	EXPECT_LT(0UL, mix.delivered);
	EXPECT_LT(0UL, mix.cancelled);
	EXPECT_LT(0UL, mix.moved);
	TH_LOG("%lu registered, %lu delivered, %lu cancelled, %lu moved", good,
	       mix.delivered, mix.cancelled, mix.moved);
	free(handles);
}

FIXTURE(mix) {
	struct worker workers[THREADS];
};

FIXTURE_VARIANT(mix) {
	__u32 clock, slots;
	__u64 tick;
	bool backwards, faults;
	unsigned long operations;	/* operations of all threads */
};

FIXTURE_VARIANT_ADD(mix, manual) {
	.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 31, .tick = TW_SEC,
	.operations = 300000,
};

/* The hand goes back at times, on a wheel with one slot. */
FIXTURE_VARIANT_ADD(mix, manual_backwards) {
	.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 1, .tick = TW_SEC,
	.backwards = true, .operations = 200000,
};

/*
 * Half of the reads fail in the middle. The tokens that they had taken come back
 * while their ids may belong to other tokens. An id then does not tell which of them
 * it means.
 */
FIXTURE_VARIANT_ADD(mix, manual_faults) {
	.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 31, .tick = TW_SEC,
	.faults = true, .operations = 200000,
};

FIXTURE_VARIANT_ADD(mix, monotonic) {
	.clock = TIMEWHEEL_CLOCK_MONOTONIC, .slots = 60, .tick = 100000,
	.operations = 250000,
};

FIXTURE_SETUP(mix)
{
	bool manual = variant->clock == TIMEWHEEL_CLOCK_MANUAL;

	memset(&mix, 0, sizeof(mix));
	mix.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	mix.tick = variant->tick;
	mix.manual = manual;
	mix.backwards = variant->backwards;
	mix.faults = variant->faults;
	mix.rounds = tw_scaled(variant->operations) / THREADS + 1;
	/* Few rounds meet a fault at a moment when tokens could be lost. */
	if (mix.faults && mix.rounds < FAULT_ROUNDS)
		mix.rounds = FAULT_ROUNDS;
	mix.capacity = (mix.rounds + MOST_OPS) * THREADS;
	mix.entries = calloc(mix.capacity, sizeof(*mix.entries));
	ASSERT_NE(NULL, mix.entries);
	/* A token that is taken needs room beside the next token of its id. */
	ASSERT_EQ(0, tw_setup(mix.fd, variant->clock, variant->slots, variant->tick,
			      IDS + THREADS * MOST_EVENTS, 0, manual ? 100000 : 0));
}

FIXTURE_TEARDOWN(mix)
{
	close(mix.fd);
	free(mix.entries);
}

TEST_F_TIMEOUT(mix, one_end_for_each_registration, LONG)
{
	const size_t size = sysconf(_SC_PAGESIZE);

	if (variant->faults)
		NEEDS_KERNEL("EFAULT");
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &self->workers[i];

		w->number = i;
		w->seed = 88172645463325252ULL + i * 1000003;
		w->hand = 100000;
		w->hole = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, w->hole);
		w->hole += size;
		ASSERT_EQ(0, mprotect(w->hole, size, PROT_NONE));
		ASSERT_EQ(0, pthread_create(&w->thread, NULL, run_mix, w));
	}
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(self->workers[i].thread, NULL));
	drain(_metadata, self->workers[0].hand);
	audit(_metadata);
	EXPECT_EQ(0, tw_failures);
}

FIXTURE(contest) {
	int fd;
};

FIXTURE_SETUP(contest)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_manual(self->fd, 31, TOKENS, 0));
}

FIXTURE_TEARDOWN(contest)
{
	close(self->fd);
}

/*
 * All threads register the same ids at the same time, and then cancel the same tokens.
 * Each start has many tokens, because a start of all threads costs more than their
 * operations.
 */
struct contest {
	int fd, rounds;
	pthread_barrier_t barrier;
	__u64 handles[TOKENS];
	atomic_int registered[TOKENS], cancelled[TOKENS];
};

static void compete_for_id(struct contest *c, __u32 code, int id)
{
	struct timewheel_op op = { .code = code, .id = id, .time = TW_SEC };
	int ret = tw_op(c->fd, &op);

	if (ret >= 0 && (code == TIMEWHEEL_OP_REGISTER || ret & TIMEWHEEL_RES_REGISTERED)) {
		c->handles[id] = op.handle;
		c->registered[id]++;
	} else if (ret < 0 && (code != TIMEWHEEL_OP_REGISTER || errno != EEXIST)) {
		tw_fail("operation %u: %d", code, errno);
	}
}

static void *compete(void *arg)
{
	struct contest *c = arg;

	for (int round = 0; round < c->rounds; round++) {
		bool by_handle = round / 2 % 2;

		pthread_barrier_wait(&c->barrier);
		for (int i = 0; i < TOKENS; i++)
			compete_for_id(c, round % 2 ? TIMEWHEEL_OP_REGISTER :
				       TIMEWHEEL_OP_TOUCH_OR_REGISTER, i);
		pthread_barrier_wait(&c->barrier);
		for (int i = 0; i < TOKENS; i++) {
			if (tw_cancel(c->fd, by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0,
				      by_handle ? c->handles[i] : (__u64)i) >= 0)
				c->cancelled[i]++;
			else if (errno != (by_handle ? ESTALE : ENOENT))
				tw_fail("cancel: %d", errno);
		}
		pthread_barrier_wait(&c->barrier);
	}
	return NULL;
}

TEST_F_TIMEOUT(contest, one_registers_and_one_cancels, LONG)
{
	static struct contest c;
	struct timewheel_info info;
	pthread_t threads[THREADS];

	c.fd = self->fd;
	c.rounds = tw_scaled(20) + 3;	/* so that each kind of round has its turn */
	ASSERT_EQ(0, pthread_barrier_init(&c.barrier, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, compete, &c));
	for (int round = 0; round < c.rounds; round++) {
		memset(c.registered, 0, sizeof(c.registered));
		memset(c.cancelled, 0, sizeof(c.cancelled));
		for (int barrier = 0; barrier < 3; barrier++)
			pthread_barrier_wait(&c.barrier);
		for (int i = 0; i < TOKENS; i++)
			if (c.registered[i] != 1 || c.cancelled[i] != 1)
				tw_fail("id %d: %d registrations, %d cancellations", i,
					c.registered[i], c.cancelled[i]);
		ASSERT_EQ(0, tw_info(self->fd, &info));
		EXPECT_EQ(0ULL, info.pending);
	}
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, tw_failures);
}

/*
 * The closest race: threads touch a few tokens by handle without a pause, while the
 * tokens are taken and their places are used again at once, with another timeout. A
 * touch that returned success has to keep its token for the whole timeout of the
 * handle's registration.
 */
#define HOT		8

struct life {
	atomic_ullong handle, promised;
	__u64 timeout, event_deadline;
	atomic_int events;
};

static struct {
	int fd;
	unsigned long most;
	struct life *lives;		/* lives by cookie */
	atomic_ulong current[HOT];	/* cookie of each token */
	atomic_ullong hand;		/* the wheel's hand is here, or further */
	atomic_bool stop;
	atomic_ulong kept;
} hot;

static void promise(atomic_ullong *promised, __u64 deadline)
{
	__u64 old = *promised;

	while (old < deadline &&
	       !atomic_compare_exchange_weak(promised, &old, deadline))
		;
}

static void *touch_hot(void *arg)
{
	struct timewheel_op ops[4 * HOT];
	unsigned long cookies[4 * HOT];
	__u32 done;

	while (!hot.stop) {
		__u64 hand = hot.hand;

		for (int i = 0; i < 4 * HOT; i++) {
			cookies[i] = hot.current[i % HOT];
			ops[i] = (struct timewheel_op) {
				.size = sizeof(ops[i]),
				.code = TIMEWHEEL_OP_TOUCH,
				.flags = TIMEWHEEL_OPF_BY_HANDLE,
				.handle = hot.lives[cookies[i]].handle,
			};
		}
		if (tw_batch(hot.fd, ops, 4 * HOT, &done) < 0)
			tw_fail("batch: %d", errno);
		for (int i = 0; i < 4 * HOT; i++) {
			struct life *life = &hot.lives[cookies[i]];

			if (ops[i].result == -ESTALE)
				continue;
			if (ops[i].result < 0)
				tw_fail("touch: %d", ops[i].result);
			if (ops[i].deadline < (hand + life->timeout) * TW_SEC)
				tw_fail("on %llu a timeout of %llu was touched to %llu",
					hand, life->timeout, ops[i].deadline);
			promise(&life->promised, ops[i].deadline);
			hot.kept++;
		}
	}
	return arg;
}

/* Begins the next life of the token at place @id. */
static void begin_life(__u64 id, unsigned long cookie)
{
	struct life *life = &hot.lives[cookie];
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_REGISTER, .id = id, .cookie = cookie,
	};

	/* Long and short timeouts take turns, so that a mix-up of two lives shows. */
	life->timeout = cookie % 2 ? 60 : 2;
	op.time = life->timeout * TW_SEC;
	if (tw_op(hot.fd, &op) < 0)
		tw_fail("register: %d", errno);
	life->handle = op.handle;
	promise(&life->promised, op.deadline);
	hot.current[id] = cookie;
}

static int end_lives(void)
{
	struct timewheel_event events[HOT];
	int n = tw_read(hot.fd, events, HOT);

	for (int i = 0; i < n; i++) {
		struct life *life = &hot.lives[events[i].cookie];

		if (life->events++)
			tw_fail("two events of one life");
		life->event_deadline = events[i].deadline;
	}
	return n;
}

TEST_F_TIMEOUT(contest, touch_against_take_and_reuse, LONG)
{
	const int touchers = sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 3 : 1;
	pthread_t threads[3];
	unsigned long next = HOT;
	__u64 seed = 424242;

	memset(&hot, 0, sizeof(hot));
	hot.fd = self->fd;
	hot.most = tw_scaled(300000) + 2 * HOT;
	hot.lives = calloc(hot.most, sizeof(*hot.lives));
	ASSERT_NE(NULL, hot.lives);
	for (int i = 0; i < HOT; i++)
		begin_life(i, i);
	for (int i = 0; i < touchers; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, touch_hot, NULL));
	while (next + HOT < hot.most && !tw_failures) {
		static const __u64 steps[] = { 1, 2, 3, 61 };
		__u64 to = hot.hand + steps[tw_random(&seed) % 4];
		int n;

		ASSERT_EQ(0, tw_advance(hot.fd, to));
		hot.hand = to;
		n = end_lives();
		for (int id = 0; n > 0 && id < HOT; id++)
			if (hot.lives[hot.current[id]].events)
				begin_life(id, next++);
	}
	hot.stop = true;
	for (int i = 0; i < touchers; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	ASSERT_EQ(0, tw_advance(hot.fd, hot.hand + 1000));
	while (end_lives() > 0)
		;
	for (unsigned long i = 0; i < next; i++) {
		struct life *life = &hot.lives[i];

		if (life->events != 1)
			tw_fail("life %lu: %d events", i, life->events);
		if (life->event_deadline != life->promised)
			tw_fail("life %lu: promised %llu, event of %llu", i,
				(__u64)life->promised, life->event_deadline);
	}
	TH_LOG("%lu lives, %lu touches", next, hot.kept);
	EXPECT_EQ(0, tw_failures);
	EXPECT_LT(0UL, hot.kept);
	free(hot.lives);
}

/*
 * One of many set-ups of a file succeeds. A user of the file sees no wheel or a
 * complete one.
 */
static struct {
	_Atomic int fd;
	pthread_barrier_t barrier;
	int rounds;
	atomic_int winners;
	atomic_int slots;
	atomic_bool stop;
	atomic_ulong calls;
} race;

static void *run_setup(void *arg)
{
	int thread = (int)(intptr_t)arg;

	for (int i = 0; i < race.rounds; i++) {
		struct timewheel_info info;

		pthread_barrier_wait(&race.barrier);
		if (thread == THREADS - 1) {
			tw_readable(race.fd);
			if (tw_register(race.fd, 1, TW_SEC, 0, NULL) < 0 &&
			    errno != EBADFD)
				tw_fail("register: %d", errno);
			if (tw_info(race.fd, &info) < 0) {
				if (errno != EBADFD)
					tw_fail("info: %d", errno);
			} else if (info.tick != TW_SEC || info.slots < 10) {
				tw_fail("half a wheel");
			}
		} else if (tw_setup_manual(race.fd, 10 + thread, 10, 0) == 0) {
			race.winners++;
			race.slots = 10 + thread;
		} else if (errno != EBUSY) {
			tw_fail("setup: %d", errno);
		}
		pthread_barrier_wait(&race.barrier);
	}
	return NULL;
}

TEST_F_TIMEOUT(contest, one_setup_wins, LONG)
{
	pthread_t threads[THREADS];
	struct timewheel_info info;

	race.rounds = tw_scaled(300);
	ASSERT_EQ(0, pthread_barrier_init(&race.barrier, NULL, THREADS + 1));
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_setup,
					    (void *)(intptr_t)i));
	for (int i = 0; i < race.rounds; i++) {
		race.fd = TW_OPEN(O_RDWR | O_NONBLOCK);
		race.winners = 0;
		pthread_barrier_wait(&race.barrier);
		pthread_barrier_wait(&race.barrier);
		EXPECT_EQ(1, race.winners);
		EXPECT_EQ(0, tw_info(race.fd, &info));
		EXPECT_EQ((__u32)race.slots, info.slots);
		close(race.fd);
	}
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, tw_failures);
}

/* Reads the fdinfo of a file that may be closed at the same time. */
static void look_at(int fd)
{
	char text[512];
	int fdinfo;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	fdinfo = open(text, O_RDONLY | O_CLOEXEC);
	if (fdinfo < 0)
		return;
	/*
	 * The read fails if the file was closed in between. It reads from position 0,
	 * because another thread may have closed this number and read the file that
	 * has it now.
	 */
	if (pread(fdinfo, text, sizeof(text), 0) <= 0 && errno != ENOENT)
		tw_fail("fdinfo: %d", errno);
	close(fdinfo);
}

/* Uses files that are closed during calls, and whose numbers come back for other wheels. */
static void *run_on_closing(void *arg)
{
	__u64 seed = 77777 + (intptr_t)arg * 101;
	struct timewheel_event events[8];
	struct timewheel_info info;
	unsigned long n = 0;

	while (!race.stop) {
		int fd = race.fd, ret = 0;
		__u64 id = tw_random(&seed) % 64;

		switch (n++ % 9) {
		case 0:
		case 1:
			ret = tw_register(fd, id, (1 + id % 4) * TW_MS, 0, NULL);
			break;
		case 2:
			ret = tw_touch(fd, 0, id);
			break;
		case 3:
			ret = tw_cancel(fd, 0, id);
			break;
		case 4:
			ret = tw_read(fd, events, 8);
			break;
		case 5:
			tw_readable(fd);
			break;
		case 6:
			ret = tw_info(fd, &info);
			break;
		case 7:
			ret = tw_register_many(fd, 1000 + id, 32, 0, TW_MS) > 32;
			break;
		case 8:
			look_at(fd);
		}
		/* ENOTTY means that the number belongs to another thread's fdinfo by now. */
		if (ret < 0 && errno != EBADF && errno != EBADFD &&
		    errno != EEXIST && errno != ENOENT && errno != EAGAIN &&
		    errno != ENOSPC && errno != ENOTTY)
			tw_fail("call %lu: %d", n, errno);
		race.calls++;
	}
	return NULL;
}

TEST_F_TIMEOUT(contest, close_while_in_use, LONG)
{
	const unsigned long rounds = tw_scaled(1500);
	pthread_t threads[THREADS];
	long references = tw_refcnt();

	NEEDS_KERNEL("an fd is a device's, not a timerfd's");
	race.fd = -1;
	for (long i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_on_closing,
					    (void *)i));
	for (unsigned long i = 0; i < rounds; i++) {
		unsigned long calls = race.calls;
		int fd = TW_OPEN(O_RDWR | O_NONBLOCK), copy = -1;

		race.fd = fd;
		ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 60, TW_MS,
				      1000, 0, 0));
		if (i % 2)
			copy = dup(fd);
		for (int j = 0; j < 100 && race.calls < calls + 20 + i % 30; j++)
			sched_yield();
		if (copy >= 0) {
			race.fd = copy;
			close(fd);
			sched_yield();
		}
		close(race.fd);
	}
	race.stop = true;
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, tw_failures);
	EXPECT_LT(rounds, race.calls);
	EXPECT_EQ(references, tw_refcnt());
}

/*
 * Touches without end keep no event back. The wheel has one slot with more tokens
 * than one step looks at. Half of the threads touch one and the same token, and the
 * other half touch many tokens in turn. Each token that no thread touches has to come
 * once, when it is due. Each of the other tokens has to come when it is no longer
 * touched.
 */
#define TOUCHED	600
#define VICTIM	1000	/* ids from here on are not touched */

static struct {
	int fd;
	atomic_bool stop;
	atomic_ulong touches, registered;
} heat;

static void touch_or_register(__u64 id)
{
	int ret = tw_touch_or_register(heat.fd, id, 3 * TW_MS, 0);

	if (ret < 0)
		tw_fail("%llu: %d", id, errno);
	heat.registered += ret == TIMEWHEEL_RES_REGISTERED;
}

static void *keep_touching(void *arg)
{
	long thread = (intptr_t)arg;
	__u64 keys[TOUCHED];

	for (unsigned long n = 0; !heat.stop; n++) {
		__u32 done = 0;

		if (thread % 2) {
			/* Odd threads touch one token, by two different calls. */
			touch_or_register(0);
			tw_touch(heat.fd, 0, 0);
			heat.touches += 2;
			continue;
		}
		for (int i = 0; i < TOUCHED; i++)
			keys[i] = (n + i + thread) % TOUCHED;
		/* The call stops at an expired token, which is then registered again. */
		tw_touch_keys(heat.fd, 0, keys, TOUCHED, &done);
		heat.touches += done;
		if (done < TOUCHED)
			touch_or_register(keys[done]);
	}
	return NULL;
}

TEST(storm_of_touches)
{
	const unsigned long rounds = tw_scaled(300);
	struct timewheel_event events[64];
	struct timewheel_info info;
	pthread_t threads[THREADS];
	__u64 latest = 0;

	heat.fd = TW_OPEN(O_RDWR);
	ASSERT_EQ(0, tw_setup(heat.fd, TIMEWHEEL_CLOCK_MONOTONIC, 1, TW_MS,
			      1000, 0, 0));
	for (long i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, keep_touching,
					    (void *)i));
	for (unsigned long round = 0; round < rounds; round++) {
		struct timewheel_op victim = {
			.code = TIMEWHEEL_OP_REGISTER, .id = VICTIM + round,
			.time = round % 9 * TW_MS,
		};
		bool come = false;

		ASSERT_EQ(0, tw_op(heat.fd, &victim));
		while (!come) {
			int n = tw_read(heat.fd, events, ARRAY_SIZE(events));

			ASSERT_LT(0, n);
			for (int i = 0; i < n; i++) {
				ASSERT_LE(events[i].deadline, events[i].taken);
				if (events[i].id < TOUCHED)
					continue;
				ASSERT_EQ(victim.id, events[i].id);
				ASSERT_EQ(victim.deadline, events[i].deadline);
				ASSERT_FALSE(come);
				come = true;
				if (latest < events[i].taken - events[i].deadline)
					latest = events[i].taken -
						 events[i].deadline;
			}
		}
	}
	heat.stop = true;
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	for (;;) {
		ASSERT_EQ(0, tw_info(heat.fd, &info));
		if (!info.pending)
			break;
		ASSERT_LT(0, tw_read(heat.fd, events, ARRAY_SIZE(events)));
	}
	EXPECT_EQ(rounds + heat.registered, info.delivered);
	TH_LOG("%lu events, the latest by %llu us, beside %lu touches", rounds,
	       latest / 1000, heat.touches);
	EXPECT_EQ(0, tw_failures);
	close(heat.fd);
}

TEST_HARNESS_MAIN
