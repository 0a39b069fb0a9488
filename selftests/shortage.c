// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads use a wheel while the kernel's allocations and copies fail at random: each
 * token whose registration succeeded ends once, and a token whose registration failed
 * never appears. If the answer of a call was lost, both are possible. One in a
 * hundred allocations fails, and one in ten copies, because most copies that fail are
 * tried again piece by piece. The test needs root, and a kernel that injects faults.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tw_delivery.h"
#include "tw_inject.h"
#include "tw_named.h"

#define LONG		1200	/* seconds; guests may be emulated */
#define THREADS		4
#define NAME		"shortage"
#define OWN		64	/* number of latest ids that a thread uses again */
#define AT_ONCE		20	/* operations in a batch, and events in a read */
#define MOST		4096	/* tokens */
#define LOST		(-9999)	/* stands for a result that was lost */
#define FAR		(1ULL << 24)
#define LEASE		(1ULL << 31)

/* An attempt to register. Its index is the id. */
struct entry {
	atomic_bool	sure;		/* the answer was success */
	atomic_bool	unsure;		/* the answer was lost */
	atomic_bool	unsure_end;	/* a cancellation may have been carried out */
	bool		periodic;
	atomic_uint	events;
	atomic_uint	ends;
};

static struct {
	struct timewheel_setup setup;
	struct entry *entries;
	unsigned long capacity, rounds;
	atomic_ulong next, acks, delivered;
	atomic_int faults;
	char said[8][128];
} all;

struct worker {
	pthread_t thread;
	int number, fd, device;
	__u64 seed, hand;
	unsigned long own[OWN];
	unsigned long kept;
};

/* Notes an error. The errors are printed at the end, because a print may be made to fail. */
static void __attribute__((format(printf, 1, 2))) fault(const char *format, ...)
{
	int n = atomic_fetch_add(&all.faults, 1);
	va_list args;

	if (n >= (int)ARRAY_SIZE(all.said))
		return;
	va_start(args, format);
	vsnprintf(all.said[n], sizeof(all.said[n]), format, args);
	va_end(args);
}

static __u32 dice(struct worker *w, __u32 sides)
{
	return tw_random(&w->seed) % sides;
}

/* Expects success, a lost answer, a lack of memory, @or1 or @or2. Returns @ret. */
static int may(const char *what, int ret, int or1, int or2)
{
	if (ret < 0 && ret != -EFAULT && ret != -ENOMEM && ret != or1 &&
	    ret != or2)
		fault("%s: %s", what, strerror(-ret));
	return ret;
}

/* Repeats GET until its answer is not lost. Returns whether the token exists. */
static bool is_there(struct worker *w, __u64 id)
{
	struct timewheel_token token;
	int ret;

	do {
		ret = may("GET", tw_ret(tw_get(w->fd, 0, id, &token)), -ENOENT,
			  0);
	} while (ret == -EFAULT);
	return ret >= 0;
}

/* The following functions register tokens. */

static bool plan(struct worker *w, struct timewheel_op *op)
{
	bool periods = all.setup.flags & TIMEWHEEL_SETUP_PERIODS;
	unsigned long id = atomic_fetch_add(&all.next, 1);

	if (id >= all.capacity)
		return false;
	*op = (struct timewheel_op) {
		.size = sizeof(*op), .result = LOST, .id = id, .cookie = ~id,
		.code = TIMEWHEEL_OP_REGISTER, .time = dice(w, 40) * TW_SEC,
	};
	if (periods && !dice(w, 8)) {
		op->period = (1 + dice(w, 20)) * TW_SEC;
		all.entries[id].periodic = true;
	} else if (!dice(w, 4)) {
		op->code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	}
	return true;
}

static void book(struct worker *w, __u64 id, int ret)
{
	struct entry *entry = &all.entries[id];

	if (ret == LOST || ret == -EFAULT) {
		if (!is_there(w, id)) {
			entry->unsure = true;
			return;
		}
	} else if (may("REGISTER", ret, -ENOSPC, 0) < 0) {
		return;
	}
	entry->sure = true;
	w->own[w->kept++ % OWN] = id;
}

static void run_register(struct worker *w)
{
	struct timewheel_op op;

	if (plan(w, &op))
		book(w, op.id, tw_ret(tw_op(w->fd, &op)));
}

static void run_batch(struct worker *w)
{
	struct timewheel_op ops[AT_ONCE];
	__u32 n = 0, done = 0;
	int ret;

	while (n < AT_ONCE && plan(w, &ops[n]))
		n++;
	ret = may("BATCH", tw_ret(tw_batch(w->fd, ops, n, &done)), 0, 0);
	if (done > n || (!ret && done < n))
		fault("BATCH: %u of %u done", done, n);
	for (__u32 i = 0; i < done; i++)
		book(w, ops[i].id, ops[i].result);
}

/* The following functions end tokens. */

/* Ends a token by id. If answers were lost, an earlier attempt may have ended it. */
static void finish(struct worker *w, __u32 code, __u64 id)
{
	struct entry *entry = &all.entries[id];
	bool lost = false;
	int ret;

	do {
		ret = may("an end", tw_ret(tw_key_op(w->fd, code, 0, id, 0)),
			  -ENOENT, -ESTALE);
		lost |= ret == -EFAULT;
	} while (ret == -EFAULT);
	if (ret >= 0)
		entry->ends++;
	else if (lost)
		entry->unsure_end = true;
}

/*
 * Answers a delivery, which no other thread can answer. If the answer to an ACK was
 * lost, the next ACK fails because the first one was carried out. A periodic token
 * may be deleted only while this thread holds it, because otherwise another thread's
 * delivery of the token would end.
 */
static void acknowledge(struct worker *w, const struct timewheel_event *event)
{
	struct entry *entry = &all.entries[event->id];
	bool lost = false;
	int ret;

	if (entry->periodic && !dice(w, 4)) {
		finish(w, TIMEWHEEL_OP_DELETE, event->id);
		return;
	}
	do {
		ret = may("ACK", tw_ret(tw_ack(w->fd, event)), -ESTALE, 0);
		lost |= ret == -EFAULT;
	} while (ret == -EFAULT);
	if (ret < 0 && !lost) {
		fault("ACK of %llu: %s", event->id, strerror(-ret));
		return;
	}
	all.acks++;
	if (!entry->periodic)
		entry->ends++;
}

static void deal_with(struct worker *w, const struct timewheel_event *event)
{
	struct entry *entry;

	all.delivered++;
	if (event->id >= all.next || event->cookie != ~event->id) {
		fault("an event of nothing: %llu", event->id);
		return;
	}
	entry = &all.entries[event->id];
	entry->events++;
	if (!all.setup.lease)
		entry->ends++;
	else if (dice(w, 8))
		acknowledge(w, event);
	else if (dice(w, 2))
		may("NACK", tw_ret(tw_answer(w->fd, TIMEWHEEL_OP_NACK,
					     TIMEWHEEL_OPF_BY_HANDLE, event->handle,
					     event->delivery, TW_SEC)), 0, 0);
	/* A token without an answer comes again when the file is closed. */
}

static int run_read(struct worker *w)
{
	struct timewheel_event events[AT_ONCE];
	int n = may("read", tw_ret(tw_read(w->fd, events, 1 + dice(w, AT_ONCE))),
		    -EAGAIN, 0);

	for (int i = 0; i < n; i++)
		deal_with(w, &events[i]);
	return n;
}

static void run_poll(struct worker *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	may("poll", tw_ret(poll(&p, 1, 0)), 0, 0);
}

/* The following functions carry out all other operations. */

/*
 * Changes tokens, which may have ended. Periodic tokens have no timeout, and cannot
 * be touched.
 */
static void run_change(struct worker *w)
{
	__u64 id = w->own[dice(w, w->kept < OWN ? w->kept : OWN)];
	__u64 ids[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		ids[i] = w->own[dice(w, OWN)];
	switch (dice(w, 6)) {
	case 0:
		finish(w, TIMEWHEEL_OP_CANCEL, id);
		break;
	case 1:
		may("MOVE", tw_ret(tw_move(w->fd, 0, id, dice(w, 9) * TW_SEC)),
		    -ENOENT, 0);
		break;
	case 2:
		may("TOUCH", tw_ret(tw_touch(w->fd, 0, id)), -ENOENT, -EINVAL);
		break;
	case 3:
		may("TOUCH_MANY", tw_ret(tw_touch_keys(w->fd, 0, ids, AT_ONCE,
						       NULL)),
		    -ENOENT, -EINVAL);
		break;
	case 4:
		may("TOUCH_TOKEN", tw_ret(tw_key_op(w->fd, TIMEWHEEL_OP_TOUCH,
						    0, id, 0)),
		    -ENOENT, -EINVAL);
		break;
	default:
		is_there(w, id);
	}
}

/* Lists tokens, reads figures, or pauses and resumes the wheel. */
static void run_look(struct worker *w)
{
	struct timewheel_token tokens[50];
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER,
		.tokens = (uintptr_t)tokens, .count = ARRAY_SIZE(tokens),
		.token_size = sizeof(tokens[0]),
	};
	__u64 buckets[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)buckets,
	};
	struct timewheel_info info;

	switch (dice(w, 4)) {
	case 0:
		may("LIST", tw_ret(ioctl(w->fd, TIMEWHEEL_IOC_LIST, &list)), 0, 0);
		break;
	case 1:
		may("STATS", tw_ret(ioctl(w->fd, TIMEWHEEL_IOC_STATS, &stats)), 0, 0);
		break;
	case 2:
		may("INFO", tw_ret(tw_info(w->fd, &info)), 0, 0);
		break;
	default:
		while (tw_control(w->fd, TIMEWHEEL_CONTROL_PAUSED, TIMEWHEEL_CONTROL_PAUSED) < 0)
			;
		while (tw_control(w->fd, 0, TIMEWHEEL_CONTROL_PAUSED) < 0)
			;
	}
}

/* Opens another file. The tokens that the old file holds come back. */
static void run_reopen(struct worker *w)
{
	close(w->fd);
	do {
		w->fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
		may("open", tw_ret(w->fd), 0, 0);
	} while (w->fd < 0);
}

/* Returns the name of the wheels that a worker creates. */
static const char *name_of(const struct worker *w)
{
	static const char *const names[THREADS] = {
		NAME "-0", NAME "-1", NAME "-2", NAME "-3",
	};

	return names[w->number];
}

/* Creates and destroys wheels. If DESTROY fails, the next turn finds the wheel. */
static void run_wheels(struct worker *w)
{
	struct timewheel_setup setup = all.setup;
	int fd = tw_ret(open(TW_DEVICE, O_RDWR | O_CLOEXEC));
	const char *name = name_of(w);

	may("CREATE", tw_ret(tw_create_named(w->device, name, setup)),
	    -EEXIST, 0);
	if (may("open", fd, 0, 0) >= 0) {
		int ret = tw_ret(ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup));

		if (may("SETUP", ret, 0, 0) >= 0)
			may("REGISTER", tw_ret(tw_register(fd, 1, TW_SEC, 0,
							   NULL)), 0, 0);
		close(fd);
	}
	may("DESTROY", tw_ret(tw_destroy_named(w->device, name)), -ENOENT, 0);
}

/* Maps touch words, which other threads may use too. */
static void run_map(struct worker *w)
{
	const size_t size = MOST * sizeof(__u64);
	void *at;

	if (!(all.setup.flags & TIMEWHEEL_SETUP_TOUCH_WORDS))
		return;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, w->fd,
		  TIMEWHEEL_MAP_WORDS);
	if (at == MAP_FAILED) {
		may("mmap", -errno, 0, 0);
		return;
	}
	/* The random value counts as a touch at the present tick. */
	if (w->kept)
		__atomic_store_n((__u64 *)at, dice(w, 1000), __ATOMIC_RELAXED);
	while (munmap(at, size))
		;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	int make = tw_inject_open("make-it-fail");

	tw_inject_switch(make, "1");
	for (unsigned long i = 0; i < all.rounds; i++) {
		__u32 what = dice(w, 64);

		if (what < 6)
			run_register(w);
		else if (what < 10)
			run_batch(w);
		else if (what < 30)
			run_read(w);
		else if (what < 50 && w->kept)
			run_change(w);
		else if (what < 54)
			run_look(w);
		else if (what < 56)
			run_poll(w);
		else if (what < 57)
			run_reopen(w);
		else if (what < 58)
			run_wheels(w);
		else if (what < 59)
			run_map(w);
		else if (!w->number && !tw_advance(w->fd, w->hand + 1))
			w->hand++;
	}
	tw_inject_switch(make, "0");
	close(make);
	return NULL;
}

FIXTURE(shortage) {
	long references;	/* references to the module, before the test */
	int device;
	struct worker worker[THREADS];
};

FIXTURE_VARIANT(shortage) {
	__u32 flags;
	__u64 lease;
};

FIXTURE_VARIANT_ADD(shortage, plain) {
};

FIXTURE_VARIANT_ADD(shortage, mapped) {
	.flags = TIMEWHEEL_SETUP_TOUCH_WORDS,
};

FIXTURE_VARIANT_ADD(shortage, leases) {
	.flags = TIMEWHEEL_SETUP_PERIODS, .lease = LEASE * TW_SEC,
};

FIXTURE_SETUP(shortage)
{
	if (!tw_inject_init())
		SKIP(return, "no injection of faults here, or not for this user");
	self->references = tw_refcnt();
	self->device = TW_OPEN(O_RDWR);
	memset(&all, 0, sizeof(all));
	all.setup = tw_hold_all((struct timewheel_setup) {
		.size = sizeof(all.setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 31, .tick = TW_SEC, .max_tokens = MOST,
		.flags = variant->flags, .lease = variant->lease,
	});
	all.rounds = tw_scaled(400000) / THREADS;
	all.capacity = all.rounds * THREADS * 2;
	all.entries = calloc(all.capacity, sizeof(*all.entries));
	ASSERT_NE(NULL, all.entries);
	ASSERT_EQ(0, tw_create_named(self->device, NAME, all.setup));
}

FIXTURE_TEARDOWN(shortage)
{
	tw_inject_init();
	for (int i = 0; i < THREADS; i++) {
		close(self->worker[i].fd);
		/* The last DESTROY of a worker may have failed and left its wheel. */
		if (tw_destroy_named(self->device, name_of(&self->worker[i])))
			EXPECT_EQ(ENOENT, errno);
	}
	EXPECT_EQ(0, tw_destroy_named(self->device, NAME));
	close(self->device);
	EXPECT_TRUE(tw_refcnt_becomes(self->references)) {
		TH_LOG("%ld references, were %ld", tw_refcnt(), self->references);
	}
	free(all.entries);
}

static void start(struct __test_metadata *_metadata, struct worker *w, int i,
		  int device)
{
	w->number = i;
	w->device = device;
	w->seed = 88172645463325252ULL + i * 1000003;
	w->fd = tw_open_named(NAME, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, w->fd);
}

/* Checks which attempts have registered a token, and how each token has ended. */
static void audit(struct __test_metadata *_metadata,
		  const struct timewheel_info *info)
{
	unsigned long registered = 0, cancelled = 0, unsure = 0, ends = 0;

	for (unsigned long id = 0; id < all.next && id < all.capacity; id++) {
		const struct entry *entry = &all.entries[id];
		bool came = entry->events || entry->ends;

		unsure += entry->unsure || entry->unsure_end;
		ends += entry->ends;
		if (!entry->sure && !(entry->unsure && came)) {
			if (came)
				fault("%lu came of nothing", id);
			continue;
		}
		registered++;
		if (entry->ends > 1)
			fault("%lu has ended %u times", id, entry->ends);
		if (!entry->ends && !entry->unsure_end)
			fault("%lu is lost", id);
		cancelled += !entry->ends;
	}
	/* Tokens were put back, because some copies of events have failed twice. */
	EXPECT_LT(0ULL, info->put_back);
	EXPECT_EQ(registered, info->registered);
	EXPECT_EQ(registered, ends + cancelled);
	EXPECT_EQ(all.delivered, info->delivered);
	EXPECT_EQ(all.acks, info->acked);
	EXPECT_EQ(0ULL, info->pending + info->taken + info->held);
	TH_LOG("%lu registered, %llu delivered, %llu put back, %llu returned, %lu answers lost",
	       registered, info->delivered, info->put_back, info->returned,
	       unsure);
}

static unsigned long injected(const char *who)
{
	unsigned long left = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/times", who);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%lu", &left) != 1)
		return 0;
	fclose(file);
	return 1000000000 - left;
}

TEST_F_TIMEOUT(shortage, each_registration_ends_once, LONG)
{
	static const char *const who[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};
	static const char *const percent[] = { "1", "1", "10" };
	struct worker *w = &self->worker[0];
	struct timewheel_info info;

	for (int i = 0; i < THREADS; i++)
		start(_metadata, &self->worker[i], i, self->device);
	for (int i = 0; i < 3; i++)
		ASSERT_TRUE(tw_inject_percent(who[i], percent[i]));
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&self->worker[i].thread, NULL, run,
					    &self->worker[i]));
	for (int i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_join(self->worker[i].thread, NULL));
	for (int i = 0; i < 3; i++) {
		TH_LOG("%s: %lu", who[i], injected(who[i]));
		EXPECT_LT(0UL, injected(who[i]));
		ASSERT_TRUE(tw_inject_percent(who[i], "0"));
	}

	/* The test injects no more faults, and all remaining tokens come. */
	for (int i = 0; i < THREADS; i++)
		run_reopen(&self->worker[i]);
	ASSERT_EQ(0, tw_advance(w->fd, FAR));
	for (int i = 0; i < 100000; i++) {
		while (run_read(w) > 0)
			;
		run_reopen(w);
		ASSERT_EQ(0, tw_info(w->fd, &info));
		if (!info.pending && !info.held)
			break;
		ASSERT_EQ(0, tw_advance(w->fd, FAR + i * 40));
	}
	audit(_metadata, &info);
	EXPECT_EQ(0, all.faults);
	for (int i = 0; i < all.faults && i < (int)ARRAY_SIZE(all.said); i++)
		TH_LOG("%s", all.said[i]);
}

TEST_HARNESS_MAIN
