// SPDX-License-Identifier: GPL-2.0-only
/*
 * The program makes each call with each of its allocations and copies failing in
 * turn, and each two copies in a row: the call tells which part of its work was done,
 * nothing else has changed, and a second call does the rest. Each token ends once.
 * The module is loaded and unloaded with faults as well. The test needs root, and a
 * kernel that injects faults.
 */
#define _FILE_OFFSET_BITS 64
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tw_commands.h"
#include "tw_delivery.h"
#include "tw_inject.h"
#include "tw_named.h"
#include "tw_test.h"

#define LONG		1200	/* seconds; guests may be emulated */
#define NAME		"sweep"
#define NODE		"/dev/timewheels/" NAME
#define NEW		5000	/* an id that no token has */
#define MOST_UNITS	700
#define FAR		100000	/* a tick on which all tokens are due */

/* The wheel or file on which a call is made. */
enum scene {
	WHEEL,		/* a private wheel */
	NAMED,		/* a named wheel with two open files */
	FRESH,		/* a file without a wheel */
};

struct wheel;

/**
 * struct sweep - a call whose allocations and copies are to fail
 * @name: name of the call
 * @scene: enum scene
 * @setup: set-up of the wheel, or the set-up that the call uses
 * @tokens: number of tokens, with ids from 1 on, due on ticks from 1 on
 * @hand: tick of the hand
 * @held: token 1 is held, on a wheel with leases
 * @call: makes the call for units @from to @to, stores the number of units that were done
 *	in wheel->done, and returns the result of the system call, or -errno
 * @units: number of things that the call does, one after the other; 0 stands for 1
 * @op: operation, if the call has one
 * @arg: a size, a tick, a number or flags
 * @path: path of a file that the call reads
 * @nomem: ENOMEM is one of the call's errors
 * @unsure: a call that fails may have done its work
 * @immune: nothing in the call can fail
 * @still: the call changes nothing that can be seen
 */
struct sweep {
	const char		*name;
	enum scene		scene;
	struct timewheel_setup	setup;
	__u64			tokens;
	__u64			hand;
	bool			held;
	int			(*call)(struct wheel *w, __u32 from, __u32 to);
	__u32			units;
	struct timewheel_op	op;
	__u64			arg;
	const char		*path;
	bool			nomem;
	bool			unsure;
	bool			immune;
	bool			still;
};

/**
 * struct wheel - the wheel or file on which a call is made
 * @sweep: the call
 * @device: a file of the device
 * @fd: the file that the call uses
 * @view: a file through which the test sees the outcome
 * @other: the file that the call has opened
 * @map: the mapping
 * @map_size: size of the mapping
 * @generation: generation of the tokens' first lives, 0 before the test has seen a handle
 * @done: units that were done
 * @skip: units in the middle that were not done
 * @out: results of the call, which are compared if it was successful
 */
struct wheel {
	const struct sweep	*sweep;
	int			device;
	int			fd;
	int			view;
	int			other;
	void			*map;
	size_t			map_size;
	__u32			generation;
	__u32			done;
	bool			skip[MOST_UNITS];
	union {
		struct timewheel_op	ops[MOST_UNITS];
		struct timewheel_event	events[MOST_UNITS];
		struct timewheel_token	tokens[MOST_UNITS];
		__u64			keys[MOST_UNITS];
		__u64			buckets[TIMEWHEEL_BUCKETS];
		struct timewheel_info	info;
		struct timewheel_caps	caps;
	} out;
};

static __u32 units(const struct sweep *s)
{
	return s->units ?: 1;
}

/* The following functions make the calls. They carry out units @from to @to. */

static int finish(struct wheel *w, long ret)
{
	ret = tw_ret(ret);
	w->done = ret >= 0;
	return ret;
}

static int call_op(struct wheel *w, __u32 from, __u32 to)
{
	w->out.ops[0] = w->sweep->op;
	return finish(w, tw_op(w->fd, &w->out.ops[0]));
}

/*
 * Makes a batch of the operation and registrations behind it, without the units to be
 * skipped.
 */
static int call_batch(struct wheel *w, __u32 from, __u32 to)
{
	bool ids = !(w->sweep->setup.flags & TIMEWHEEL_SETUP_NO_IDS);
	struct timewheel_op *ops = w->out.ops;
	__u32 n = 0, done = 0;
	int ret;

	for (__u32 i = from; i < to; i++) {
		if (w->skip[i])
			continue;
		ops[n] = w->sweep->op;
		if (i)
			ops[n] = (struct timewheel_op) {
				.code = TIMEWHEEL_OP_REGISTER,
				.id = ids ? NEW + i : 0, .time = i * TW_SEC,
			};
		ops[n++].size = sizeof(*ops);
	}
	ret = tw_ret(tw_batch(w->fd, ops, n, &done));
	w->done = from + done;
	return ret;
}

static int call_read(struct wheel *w, __u32 from, __u32 to)
{
	int ret = tw_ret(tw_read(w->fd, w->out.events, to - from));

	w->done = ret < 0 ? from : from + ret;
	return ret;
}

/*
 * The short form of TOUCH has no copy that can be made to fail. A larger structure
 * has one.
 */
static int call_touch(struct wheel *w, __u32 from, __u32 to)
{
	struct {
		struct timewheel_touch touch;
		__u64 more;
	} longer = {
		.touch = { .size = w->sweep->arg, .key = w->sweep->op.id },
	};

	return finish(w, ioctl(w->fd, TIMEWHEEL_IOC_TOUCH, &longer));
}

static int call_touch_many(struct wheel *w, __u32 from, __u32 to)
{
	__u32 done = 0;
	int ret;

	for (__u32 i = from; i < to; i++)
		w->out.keys[i] = 1 + i;
	ret = tw_ret(tw_touch_keys(w->fd, 0, w->out.keys + from, to - from,
				   &done));
	w->done = from + done;
	return ret;
}

/* Makes any call, which is named by its index in the table of all commands. */
static int call_command(struct wheel *w, __u32 from, __u32 to)
{
	const struct tw_command *c = &tw_commands[w->sweep->arg];
	char arg[512] = {};

	c->fill(arg);
	return finish(w, ioctl(w->fd, c->number, arg));
}

static int call_control(struct wheel *w, __u32 from, __u32 to)
{
	return finish(w, tw_control(w->fd, w->sweep->arg, w->sweep->arg));
}

static int call_list(struct wheel *w, __u32 from, __u32 to)
{
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER,
		.tokens = (uintptr_t)w->out.tokens, .count = MOST_UNITS,
		.token_size = sizeof(w->out.tokens[0]),
	};

	return finish(w, ioctl(w->fd, TIMEWHEEL_IOC_LIST, &list));
}

static int call_get(struct wheel *w, __u32 from, __u32 to)
{
	__u64 keys[MOST_UNITS];

	for (__u64 i = 0; i < w->sweep->arg; i++)
		keys[i] = 1 + i;
	return finish(w, tw_get_keys(w->fd, 0, keys, w->sweep->arg,
				     w->out.tokens, NULL));
}

static int call_stats(struct wheel *w, __u32 from, __u32 to)
{
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)w->out.buckets,
	};

	return finish(w, ioctl(w->fd, TIMEWHEEL_IOC_STATS, &stats));
}

static int call_info(struct wheel *w, __u32 from, __u32 to)
{
	int ret = finish(w, tw_info(w->fd, &w->out.info));

	w->out.info.number = 0;
	w->out.info.bytes = 0;
	return ret;
}

static int call_caps(struct wheel *w, __u32 from, __u32 to)
{
	w->out.caps.size = sizeof(w->out.caps);
	return finish(w, ioctl(w->fd, TIMEWHEEL_IOC_CAPS, &w->out.caps));
}

static int call_setup(struct wheel *w, __u32 from, __u32 to)
{
	struct timewheel_setup setup = tw_hold_all(w->sweep->setup);

	return finish(w, ioctl(w->fd, TIMEWHEEL_IOC_SETUP, &setup));
}

static int call_create(struct wheel *w, __u32 from, __u32 to)
{
	struct timewheel_setup setup = tw_hold_all(w->sweep->setup);
	struct timewheel_create create = {
		.size = sizeof(create), .flags = w->sweep->arg,
		.setup = (uintptr_t)&setup, .name = NAME,
	};

	return finish(w, ioctl(w->device, TIMEWHEEL_IOC_CREATE, &create));
}

static int call_destroy(struct wheel *w, __u32 from, __u32 to)
{
	return finish(w, tw_destroy_named(w->device, NAME));
}

static int call_open(struct wheel *w, __u32 from, __u32 to)
{
	return finish(w, w->other = open(w->sweep->path, O_RDWR | O_CLOEXEC));
}

static int call_close(struct wheel *w, __u32 from, __u32 to)
{
	int fd = w->fd;

	w->fd = -1;
	if (w->view == fd)
		w->view = -1;
	return finish(w, close(fd));
}

/* Reads a file that shows wheels. A path of fdinfo gets the number of w->fd. */
static int call_file(struct wheel *w, __u32 from, __u32 to)
{
	char path[64], text[4096];
	int fd, n;

	snprintf(path, sizeof(path), w->sweep->path, w->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return finish(w, fd);
	n = tw_ret(read(fd, text, sizeof(text)));
	close(fd);
	w->done = n > 0;
	return n ?: -ENODATA;
}

static int call_poll(struct wheel *w, __u32 from, __u32 to)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	return finish(w, poll(&p, 1, 0));
}

/* The epoll is open before the call, which only adds the wheel to it. */
static int call_epoll(struct wheel *w, __u32 from, __u32 to)
{
	struct epoll_event event = { .events = EPOLLIN };

	return finish(w, epoll_ctl(w->other, EPOLL_CTL_ADD, w->fd, &event));
}

/* Returns an address without a page table, which a mapping and its first use then need. */
static void *nowhere(void)
{
	const size_t span = 4 << 20;
	char *at = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	munmap(at, span);
	return (void *)(((uintptr_t)at + span / 2 - 1) & -(span / 2));
}

static int map(struct wheel *w)
{
	void *at;

	w->map_size = w->sweep->setup.max_tokens * sizeof(__u64);
	at = mmap(w->map, w->map_size, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED_NOREPLACE, w->fd, TIMEWHEEL_MAP_WORDS);
	if (at == MAP_FAILED)
		w->map_size = 0;
	return at == MAP_FAILED ? -1 : 0;
}

static int call_mmap(struct wheel *w, __u32 from, __u32 to)
{
	return finish(w, map(w));
}

/* Uses a page of touch words for the first time, by a touch of token 4. */
static int call_use(struct wheel *w, __u32 from, __u32 to)
{
	__u64 *word = w->map;

	__atomic_store_n(&word[3], (__u64)w->generation << 32 |
			 (w->sweep->hand + 1), __ATOMIC_RELAXED);
	return finish(w, 0);
}

/* The following functions look at the outcome of a call. */

/* The visible state of the wheel and the module. No part of it changes by itself. */
struct state {
	bool			node;
	long			references;
	char			users[256];
	struct timewheel_info	info;	/* the size in it is 0 if there is no wheel */
	long			n;
	long			found;	/* number of tokens that GET finds by id */
	struct timewheel_token	tokens[TW_LISTED];
};

static void see_wheel(struct __test_metadata *_metadata, const struct wheel *w,
		      int fd, struct state *st)
{
	struct timewheel_info *info = &st->info;
	struct timewheel_token token;

	if (tw_info(fd, info) < 0) {
		memset(info, 0, sizeof(*info));
		return;
	}
	info->number = 0;
	info->bytes = 0;
	info->next = 0;
	info->put_back = 0;
	info->refiled = 0;
	st->n = tw_list(fd, st->tokens);
	ASSERT_LE(0, st->n);
	for (int i = 0; i < st->n; i++)
		st->found += !tw_get(fd, 0, st->tokens[i].id, &token) &&
			     token.handle == st->tokens[i].handle;
	/* Only a read that failed may count as a delivery. */
	for (int i = 0; i < st->n && w->sweep->call == call_read; i++)
		st->tokens[i].delivery = 0;
}

static void see(struct __test_metadata *_metadata, const struct wheel *w,
		struct state *st)
{
	int fd = open("/sys/kernel/debug/timewheel/users", O_RDONLY | O_CLOEXEC);
	int view = w->view;

	memset(st, 0, offsetof(struct state, tokens));
	ASSERT_LT(0, read(fd, st->users, sizeof(st->users) - 1));
	close(fd);
	st->references = tw_refcnt();
	st->node = !access(NODE, F_OK);
	if (view < 0 && st->node)
		view = tw_open_named(NAME, O_RDWR);
	see_wheel(_metadata, w, view, st);
	if (view != w->view)
		close(view);
}

/*
 * The first generation of a wheel is random. This function changes a handle to the
 * handle that it would be if the first generation was 0, so that two wheels can be
 * compared. If the wheel was empty, the first handle that is seen tells its first
 * generation.
 */
static void make_plain(struct wheel *w, __u64 *handle)
{
	if (!*handle)
		return;
	if (!w->generation)
		w->generation = *handle >> 32;
	*handle -= (__u64)w->generation << 32;
}

static void see_plain(struct __test_metadata *_metadata, struct wheel *w,
		      struct state *st)
{
	see(_metadata, w, st);
	for (int i = 0; i < st->n; i++)
		make_plain(w, &st->tokens[i].handle);
}

/* Changes the handles in the results of a call in this way. */
static void make_out_plain(struct wheel *w)
{
	int (*call)(struct wheel *w, __u32 from, __u32 to) = w->sweep->call;

	for (int i = 0; i < MOST_UNITS; i++) {
		if (call == call_op || call == call_batch)
			make_plain(w, &w->out.ops[i].handle);
		else if (call == call_read)
			make_plain(w, &w->out.events[i].handle);
		else if (call == call_list || call == call_get)
			make_plain(w, &w->out.tokens[i].handle);
	}
}

static bool same(const struct state *a, const struct state *b)
{
	return !memcmp(a, b, offsetof(struct state, tokens)) &&
	       !memcmp(a->tokens, b->tokens, a->n * sizeof(a->tokens[0]));
}

static void print_state(struct __test_metadata *_metadata, const char *what,
			const struct state *st)
{
	TH_LOG("%s: node %d, references %ld, %ld listed, %ld found", what,
	       st->node, st->references, st->n, st->found);
#define PRINT(name)	{ TH_LOG("%s: %llu", #name, st->info.name); }
	TW_FIGURES(PRINT)
#undef PRINT
}

/* The following functions make and end the wheel of a call. */

/* Registers the wheel's tokens, moves the hand, and takes the token that is to be held. */
static void fill(struct __test_metadata *_metadata, struct wheel *w)
{
	const struct sweep *s = w->sweep;
	bool ids = !(s->setup.flags & TIMEWHEEL_SETUP_NO_IDS);
	bool cookies = !(s->setup.flags & TIMEWHEEL_SETUP_NO_COOKIES);
	__u32 done;

	for (__u64 i = 1; i <= s->tokens; i++)
		w->out.ops[i - 1] = (struct timewheel_op) {
			.size = sizeof(struct timewheel_op), .time = i * TW_SEC,
			.id = ids ? i : 0, .cookie = cookies ? ~i : 0,
		};
	ASSERT_EQ(0, tw_batch(w->fd, w->out.ops, s->tokens, &done));
	for (__u64 i = 0; i < s->tokens; i++)
		ASSERT_EQ(0, w->out.ops[i].result);
	w->generation = w->out.ops[0].handle >> 32;
	memset(&w->out, 0, sizeof(w->out));
	if (s->hand)
		ASSERT_EQ(0, tw_advance(w->fd, s->hand));
	if (!s->held)
		return;
	ASSERT_EQ(1, tw_read(w->fd, &(struct timewheel_event) {}, 1));
}

static void make(struct __test_metadata *_metadata, struct wheel *w,
		 const struct sweep *s)
{
	struct timewheel_setup setup = tw_hold_all(s->setup);
	const int flags = O_RDWR | O_NONBLOCK;

	memset(w, 0, sizeof(*w));
	w->sweep = s;
	w->other = -1;
	w->view = -1;
	w->device = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, w->device);
	if (s->scene == NAMED) {
		ASSERT_EQ(0, tw_create_named(w->device, NAME, setup));
		w->fd = tw_open_named(NAME, flags);
		w->view = tw_open_named(NAME, flags);
		ASSERT_LE(0, w->fd);
		ASSERT_LE(0, w->view);
	} else {
		w->fd = open(TW_DEVICE, flags | O_CLOEXEC);
		ASSERT_LE(0, w->fd);
	}
	if (s->scene == WHEEL)
		ASSERT_EQ(0, ioctl(w->fd, TIMEWHEEL_IOC_SETUP, &setup));
	if (s->scene == WHEEL || s->call == call_setup)
		w->view = w->fd;
	if (s->scene != FRESH)
		fill(_metadata, w);
	if (s->call == call_epoll)
		w->other = epoll_create1(EPOLL_CLOEXEC);
	w->map = nowhere();
	if (s->call == call_use)
		ASSERT_EQ(0, map(w));
}

static void unmake(struct __test_metadata *_metadata, struct wheel *w)
{
	if (w->map_size)
		ASSERT_EQ(0, munmap(w->map, w->map_size));
	if (w->other >= 0)
		close(w->other);
	if (w->view >= 0 && w->view != w->fd)
		close(w->view);
	if (w->fd >= 0)
		close(w->fd);
	if (tw_destroy_named(w->device, NAME) < 0)
		ASSERT_EQ(ENOENT, errno);
	close(w->device);
	ASSERT_EQ(0, tw_refcnt());
}

/*
 * Shows the state after a call without faults for units up to @done, without the
 * skipped ones.
 */
static void see_after(struct __test_metadata *_metadata, const struct sweep *s,
		      __u32 done, const bool *skip, struct wheel *w,
		      struct state *st)
{
	make(_metadata, w, s);
	if (skip)
		memcpy(w->skip, skip, sizeof(w->skip));
	if (done)
		ASSERT_LE(0, s->call(w, 0, done));
	see_plain(_metadata, w, st);
	make_out_plain(w);
	unmake(_metadata, w);
}

/* The following functions check that each token ends once. */

/*
 * Notes the event of a listed token, and ends the token by an ACK or a cancel if
 * necessary.
 */
static void end_token(struct __test_metadata *_metadata, const struct wheel *w,
		      const struct state *st, unsigned char *ends,
		      const struct timewheel_event *event)
{
	const struct sweep *s = w->sweep;
	long i = 0;

	while (i < st->n && st->tokens[i].handle != event->handle)
		i++;
	ASSERT_LT(i, st->n);
	ASSERT_EQ(st->tokens[i].id, event->id);
	ends[i]++;
	if (s->setup.lease)
		ASSERT_EQ(0, tw_ack(w->view, event));
	if (s->op.period && event->id == NEW)
		ASSERT_LE(0, tw_cancel(w->view, TIMEWHEEL_OPF_BY_HANDLE,
				       event->handle));
}

/* Expects one event of each token that the wheel has, and then an empty wheel. */
static void drain(struct __test_metadata *_metadata, const struct wheel *w)
{
	static struct timewheel_event events[64];
	static struct state st;
	unsigned char ends[TW_LISTED] = {};
	struct timewheel_info info;
	int n;

	if (w->view < 0 || tw_info(w->view, &info) < 0)
		return;
	ASSERT_EQ(0, tw_control(w->view, 0, TIMEWHEEL_CONTROL_PAUSED |
				TIMEWHEEL_CONTROL_DRAINING));
	see(_metadata, w, &st);
	ASSERT_EQ(0, tw_advance(w->view, FAR));
	while ((n = tw_read(w->view, events, 64)) > 0)
		for (int i = 0; i < n; i++)
			end_token(_metadata, w, &st, ends, &events[i]);
	EXPECT_EQ(EAGAIN, errno);
	for (int i = 0; i < st.n; i++) {
		EXPECT_EQ(1, ends[i]) {
			TH_LOG("%s: token %llu", w->sweep->name,
			       st.tokens[i].id);
		}
	}
	ASSERT_EQ(0, tw_info(w->view, &info));
	EXPECT_EQ(0ULL, info.pending + info.taken + info.held);
	if (w->sweep->setup.lease)
		tw_expect_balance(w->view);
	else if (!(w->sweep->setup.flags & TIMEWHEEL_SETUP_PERIODS))
		EXPECT_EQ(info.registered, info.cancelled + info.delivered);
}

/* The following functions inject faults and judge the outcome. */

enum fault {
	NTH,	/* the n-th allocation or copy */
	PAIR,	/* the n-th copy and the one after it */
	FAULTS,
};

FIXTURE(sweep) {
	int nth, make;
};

FIXTURE_SETUP(sweep)
{
	if (!tw_inject_init())
		SKIP(return, "no injection of faults here, or not for this user");
	close(TW_OPEN(O_RDWR));
	self->nth = tw_inject_open("fail-nth");
	self->make = tw_inject_open("make-it-fail");
	ASSERT_LE(0, self->nth);
	ASSERT_LE(0, self->make);
}

FIXTURE_TEARDOWN(sweep)
{
	tw_inject_init();
}

static void inject(const FIXTURE_DATA(sweep) *self, enum fault fault,
		   unsigned int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", n);
	if (fault == NTH) {
		tw_inject_switch(self->nth, text);
		return;
	}
	tw_inject_set("fail_usercopy", "times", "2");
	tw_inject_set("fail_usercopy", "space", text);
	tw_inject_set("fail_usercopy", "probability", "100");
	tw_inject_switch(self->make, "1");
}

/*
 * Returns how many faults were injected. The calls of this function are counted, too,
 * and may fail.
 */
static int injected(const FIXTURE_DATA(sweep) *self, enum fault fault)
{
	char left = 0;
	int failed, fd;

	if (fault == NTH) {
		failed = pread(self->nth, &left, 1, 0) == 1 && left == '0';
		tw_inject_switch(self->nth, "0");
		return failed;
	}
	failed = 2 - tw_inject_switch(self->make, "0");
	fd = open("/sys/kernel/debug/fail_usercopy/times", O_RDONLY | O_CLOEXEC);
	if (read(fd, &left, 1) == 1)
		failed -= left - '0';
	close(fd);
	tw_inject_set("fail_usercopy", "probability", "0");
	return failed;
}

/* The states before and after a call without faults, with which the outcome is compared. */
static struct {
	struct wheel wheel;
	struct state before, after;
} should;

/* Notes the operations of a batch that could not be carried out, by their results. */
static void see_results(struct __test_metadata *_metadata, struct wheel *w)
{
	for (__u32 i = 0; w->sweep->call == call_batch && i < w->done; i++) {
		if (w->out.ops[i].result >= 0)
			continue;
		EXPECT_EQ(-ENOMEM, w->out.ops[i].result);
		w->skip[i] = true;
	}
}

static bool skips(const struct wheel *w)
{
	return memchr(w->skip, true, sizeof(w->skip));
}

/*
 * A call has to return an error that it may give, or the results of a call without
 * faults.
 */
static void judge_return(struct __test_metadata *_metadata, struct wheel *w,
			 int ret)
{
	const struct sweep *s = w->sweep;

	if (ret < 0) {
		EXPECT_TRUE(ret == -EFAULT || (s->nomem && ret == -ENOMEM)) {
			TH_LOG("%s: %s", s->name, strerror(-ret));
		}
	} else if (w->done == units(s) && !skips(w)) {
		make_out_plain(w);
		EXPECT_EQ(0, memcmp(&w->out, &should.wheel.out,
				    sizeof(w->out))) {
			TH_LOG("%s tells something else", s->name);
		}
	}
}

/* Calls again for the units that were not done, and expects the state after all units. */
static void mend(struct __test_metadata *_metadata, struct wheel *w)
{
	const struct sweep *s = w->sweep;
	static struct state st;
	bool skipped[MOST_UNITS], any = skips(w);
	__u32 done = w->done;

	memcpy(skipped, w->skip, sizeof(skipped));
	memset(w->skip, 0, sizeof(w->skip));
	for (__u32 i = 0; i < done; i++)
		if (skipped[i])
			EXPECT_LE(0, s->call(w, i, i + 1));
	if (done < units(s))
		EXPECT_LE(0, s->call(w, done, units(s)));
	see_plain(_metadata, w, &st);
	EXPECT_EQ(0, memcmp(&st, &should.after, offsetof(struct state, tokens)));
	/* A token that was registered by the second call has another handle. */
	if (!any)
		EXPECT_TRUE(same(&st, &should.after));
}

/* Makes the call with fault @n. Returns how many faults were injected. */
static int turn(struct __test_metadata *_metadata,
		const FIXTURE_DATA(sweep) *self, const struct sweep *s,
		enum fault fault, unsigned int n)
{
	static struct state st, expected;
	static struct wheel w, other;
	const struct state *right;
	bool skip[MOST_UNITS];
	int ret, failed;
	__u32 done;

	make(_metadata, &w, s);
	inject(self, fault, n);
	ret = s->call(&w, 0, units(s));
	failed = injected(self, fault);
	see_plain(_metadata, &w, &st);
	see_results(_metadata, &w);
	judge_return(_metadata, &w, ret);
	if (ret < 0 && s->unsure && same(&st, &should.after))
		w.done = units(s);
	done = w.done;
	memcpy(skip, w.skip, sizeof(skip));
	mend(_metadata, &w);
	drain(_metadata, &w);
	unmake(_metadata, &w);

	right = done ? &should.after : &should.before;
	if ((done && done < units(s)) || memchr(skip, true, sizeof(skip))) {
		see_after(_metadata, s, done, skip, &other, &expected);
		right = &expected;
	}
	EXPECT_TRUE(same(right, &st)) {
		TH_LOG("%s: fault %u, %d: %u were done", s->name, n, ret, done);
		print_state(_metadata, "is", &st);
		print_state(_metadata, "should be", right);
	}
	return failed;
}

/* Whether long tests are to be short, see TW_SCALE. */
static bool is_short(void)
{
	return tw_scaled(10) < 10;
}

/* A short run has one of 15 faults of a call for which much has to be made. */
static void sweep(struct __test_metadata *_metadata,
		  const FIXTURE_DATA(sweep) *self, const struct sweep *s)
{
	const unsigned int stride = s->tokens > 100 && is_short() ? 15 : 1;
	unsigned int failed[FAULTS] = {};

	see_after(_metadata, s, 0, NULL, &should.wheel, &should.before);
	see_after(_metadata, s, units(s), NULL, &should.wheel, &should.after);
	if (s->still) {
		EXPECT_TRUE(same(&should.before, &should.after)) {
			TH_LOG("%s", s->name);
			print_state(_metadata, "is", &should.after);
			print_state(_metadata, "was", &should.before);
		}
	}
	for (int fault = 0; fault < FAULTS; fault++) {
		unsigned int n = 1;
		int some;

		do {
			some = turn(_metadata, self, s, fault, n);
			failed[fault] += some;
			n += stride;
		} while (some && _metadata->exit_code == KSFT_PASS);
	}
	if (!s->immune)
		EXPECT_LT(0U, failed[NTH]);
	TH_LOG("%s: %u faults one by one, %u copies in pairs", s->name,
	       failed[NTH], failed[PAIR]);
}

#define SWEEP(sweeps) do {						\
	for (size_t i_ = 0; i_ < ARRAY_SIZE(sweeps); i_++)		\
		sweep(_metadata, self, &(sweeps)[i_]);			\
} while (0)

/* The set-up of a wheel. */
#define SETUP(...)							\
	.setup = {							\
		.size = sizeof(struct timewheel_setup),			\
		.clock = TIMEWHEEL_CLOCK_MANUAL, .slots = 60,		\
		.tick = TW_SEC, .max_tokens = 4096, __VA_ARGS__		\
	}

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct sweep operations[] = {
	{
		"REGISTER", SETUP(), .nomem = true,
		.op = { .id = NEW, .time = 5 * TW_SEC, .cookie = 7 },
	}, {
		"REGISTER beside others", SETUP(), .tokens = 4, .nomem = true,
		.op = { .id = NEW, .time = 5 * TW_SEC, .cookie = 7 },
	}, {
		"REGISTER without id", .nomem = true,
		SETUP(.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES),
		.op = { .time = 5 * TW_SEC },
	}, {
		"REGISTER with touch words", .nomem = true,
		SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS),
		.op = { .id = NEW, .time = 5 * TW_SEC },
	}, {
		"REGISTER with leases", SETUP(.lease = 10 * TW_SEC),
		.op = { .id = NEW, .time = 5 * TW_SEC }, .nomem = true,
	}, {
		"REGISTER with a period", SETUP(.flags = TIMEWHEEL_SETUP_PERIODS),
		.op = { .id = NEW, .time = TW_SEC, .period = 5 * TW_SEC },
		.nomem = true,
	}, {
		"TOUCH_OR_REGISTER of none", SETUP(), .nomem = true,
		.op = {
			.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = NEW,
			.time = TW_SEC,
		},
	}, {
		"TOUCH_OR_REGISTER of one", SETUP(), .tokens = 4, .hand = 2,
		.op = {
			.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER, .id = 4,
			.time = TW_SEC,
		},
	}, {
		"TOUCH", SETUP(), .tokens = 4, .hand = 2,
		.op = { .code = TIMEWHEEL_OP_TOUCH, .id = 4 },
	}, {
		"MOVE", SETUP(), .tokens = 4,
		.op = {
			.code = TIMEWHEEL_OP_MOVE, .id = 4, .time = 99 * TW_SEC,
		},
	}, {
		"CANCEL", SETUP(), .tokens = 4,
		.op = { .code = TIMEWHEEL_OP_CANCEL, .id = 4 },
	}, {
		"ACK", SETUP(.lease = 10 * TW_SEC), .tokens = 4, .hand = 2,
		.held = true,
		.op = { .code = TIMEWHEEL_OP_ACK, .id = 1, .delivery = 1 },
	}, {
		"NACK", SETUP(.lease = 10 * TW_SEC), .tokens = 4, .hand = 2,
		.held = true,
		.op = {
			.code = TIMEWHEEL_OP_NACK, .id = 1, .delivery = 1,
			.time = 9 * TW_SEC,
		},
	}, {
		"EXTEND", SETUP(.lease = 10 * TW_SEC), .tokens = 4, .hand = 2,
		.held = true,
		.op = {
			.code = TIMEWHEEL_OP_EXTEND, .id = 1, .delivery = 1,
			.time = 99 * TW_SEC,
		},
	}, {
		"DELETE", SETUP(.lease = 10 * TW_SEC), .tokens = 4, .hand = 2,
		.held = true, .op = { .code = TIMEWHEEL_OP_DELETE, .id = 1 },
	},
};

/*
 * An operation is carried out or not. The wheel's state tells which, if the answer is
 * lost.
 */
TEST_F_TIMEOUT(sweep, an_operation_is_done_or_not, LONG)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		struct sweep s = operations[i];

		s.call = call_op;
		s.unsure = true;
		sweep(_metadata, self, &s);
	}
}

/* A batch tells how many operations it has carried out, and which of them failed. */
TEST_F_TIMEOUT(sweep, a_batch_tells_what_was_done, LONG)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		struct sweep s = operations[i];

		s.call = call_batch;
		s.units = 40;
		s.nomem = false;
		sweep(_metadata, self, &s);
	}
}

/*
 * The arena, its lists and the table of ids grow during the batch. The table grows
 * within a registration, because the worker that usually lets it grow gets no CPU.
 * One fault does not keep an id out of the table. For further faults see
 * core/model_test.c.
 */
TEST_F_TIMEOUT(sweep, a_batch_grows_the_wheel, LONG)
{
	const struct sched_param param = { .sched_priority = 1 };
	const struct sweep sweeps[] = {
		{
			"BATCH of many", SETUP(), .tokens = 700, .units = 400,
			.call = call_batch, .op = { .id = NEW },
		}, {
			"BATCH of many, with touch words", .tokens = 700,
			SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS), .units = 400,
			.call = call_batch, .op = { .id = NEW },
		},
	};

	ASSERT_EQ(0, sched_setscheduler(0, SCHED_FIFO, &param));
	SWEEP(sweeps);
}

TEST_F_TIMEOUT(sweep, a_command_is_done_or_not, LONG)
{
	const struct sweep sweeps[] = {
		{
			"TOUCH", SETUP(), .tokens = 4, .hand = 2,
			.call = call_touch, .op = { .id = 4 },
			.arg = sizeof(struct timewheel_touch), .immune = true,
		}, {
			"TOUCH of a larger size", SETUP(), .tokens = 4,
			.hand = 2, .call = call_touch, .op = { .id = 4 },
			.arg = sizeof(struct timewheel_touch) + 8,
		}, {
			"TOUCH_MANY", SETUP(), .tokens = 200, .hand = 2,
			.call = call_touch_many, .units = 200,
		}, {
			"CONTROL, pause", SETUP(), .tokens = 4, .hand = 2,
			.call = call_control, .arg = TIMEWHEEL_CONTROL_PAUSED,
		}, {
			"GET", SETUP(), .tokens = 30, .hand = 2,
			.call = call_get, .arg = 40, .still = true,
		}, {
			"GET of a delivery", .tokens = 4,
			SETUP(.lease = 10 * TW_SEC), .hand = 2, .held = true,
			.call = call_get, .arg = 5, .still = true,
		}, {
			"LIST", SETUP(), .tokens = 30, .hand = 2,
			.call = call_list, .still = true,
		}, {
			"STATS", SETUP(), .tokens = 4, .hand = 2,
			.call = call_stats, .nomem = true, .still = true,
		}, {
			"INFO", SETUP(), .tokens = 4, .hand = 2,
			.call = call_info, .still = true,
		}, {
			"CAPS", .scene = FRESH, .call = call_caps, .still = true,
		},
	};

	SWEEP(sweeps);
}

/*
 * Each command is tested with the arguments of the table, which name the token of id
 * 1, also if it has no sweep of its own above. Only the short form of TOUCH cannot
 * fail.
 */
TEST_F_TIMEOUT(sweep, each_command_of_a_wheel_is_done_or_not, LONG)
{
	const struct tw_command *c;

	for_each_command(c) {
		const struct sweep s = {
			c->name, SETUP(), .tokens = 1, .nomem = true,
			.unsure = true, .call = call_command,
			.arg = c - tw_commands,
			.immune = c->number == TIMEWHEEL_IOC_TOUCH,
			.still = !(c->needs & TW_WRITE),
		};

		if (c->needs & TW_WHEEL)
			sweep(_metadata, self, &s);
	}
}

/* An event that was not copied comes again, also to a file that reads for the first time. */
TEST_F_TIMEOUT(sweep, a_read_loses_nothing, LONG)
{
	const struct sweep sweeps[] = {
		{
			"read of one", SETUP(), .tokens = 1, .hand = 9,
			.call = call_read,
		}, {
			"read of many", SETUP(), .tokens = 100, .hand = 200,
			.call = call_read, .units = 100,
		}, {
			"read without ids", .tokens = 20, .hand = 200,
			SETUP(.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES),
			.call = call_read, .units = 20,
		}, {
			"read with touch words", .tokens = 20, .hand = 200,
			SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS),
			.call = call_read, .units = 20,
		}, {
			"read with periods", .tokens = 20, .hand = 200,
			SETUP(.flags = TIMEWHEEL_SETUP_PERIODS),
			.call = call_read, .units = 20,
		}, {
			"first read with leases", .tokens = 100, .hand = 200,
			SETUP(.lease = 1000 * TW_SEC),
			.call = call_read, .units = 100,
		}, {
			"another read with leases", .tokens = 21, .hand = 200,
			SETUP(.lease = 1000 * TW_SEC), .held = true,
			.call = call_read, .units = 20,
		}, {
			"read of all that may be out", .tokens = 21, .hand = 200,
			SETUP(.lease = 1000 * TW_SEC, .max_held = 21),
			.held = true, .call = call_read, .units = 20,
		}, {
			"read of a named wheel", .tokens = 20, .hand = 200,
			SETUP(.lease = 1000 * TW_SEC), .scene = NAMED,
			.call = call_read, .units = 20,
		},
	};

	SWEEP(sweeps);
}

TEST_F_TIMEOUT(sweep, a_poll_loses_nothing, LONG)
{
	const struct sweep sweeps[] = {
		{
			"poll", SETUP(), .tokens = 20, .hand = 200,
			.call = call_poll, .still = true,
		}, {
			"epoll_ctl", SETUP(), .tokens = 20, .hand = 200,
			.call = call_epoll, .nomem = true, .unsure = true,
			.still = true,
		},
	};

	SWEEP(sweeps);
}

TEST_F_TIMEOUT(sweep, what_is_mapped_can_be_used, LONG)
{
	const struct sweep sweeps[] = {
		{
			"mmap of words", SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS),
			.tokens = 4, .hand = 2,
			.call = call_mmap, .nomem = true, .still = true,
		}, {
			"store to a word",
			SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS),
			.tokens = 4, .hand = 2, .call = call_use,
		},
	};

	SWEEP(sweeps);
}

TEST_F_TIMEOUT(sweep, what_tells_of_wheels_changes_nothing, LONG)
{
	const struct sweep sweeps[] = {
		{
			"fdinfo", SETUP(), .tokens = 4, .call = call_file,
			.path = "/proc/self/fdinfo/%d", .nomem = true,
			.still = true,
		}, {
			"wheels", SETUP(), .tokens = 4, .call = call_file,
			.path = "/sys/kernel/debug/timewheel/wheels",
			.nomem = true, .still = true,
		}, {
			"users", SETUP(), .tokens = 4, .call = call_file,
			.path = "/sys/kernel/debug/timewheel/users",
			.nomem = true, .still = true,
		}, {
			"stats", SETUP(), .tokens = 4, .call = call_file,
			.path = "/sys/kernel/debug/timewheel/stats",
			.nomem = true, .still = true,
		},
	};

	SWEEP(sweeps);
}

/* A set-up that failed leaves nothing behind, in the file or in its user's account. */
TEST_F_TIMEOUT(sweep, a_wheel_is_set_up_or_not, LONG)
{
	const struct sweep sweeps[] = {
		{ "SETUP", SETUP(), },
		{
			"SETUP of little",
			SETUP(.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_NO_COOKIES,
			      .max_tokens = 1, .slots = 1),
		}, {
			"SETUP with touch words",
			SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS),
		}, {
			"SETUP with leases",
			SETUP(.flags = TIMEWHEEL_SETUP_PERIODS, .lease = TW_SEC),
		}, {
			"SETUP of much",
			SETUP(.flags = TIMEWHEEL_SETUP_TOUCH_WORDS, .slots = 65536,
			      .max_tokens = 10000000),
		},
	};

	for (size_t i = 0; i < ARRAY_SIZE(sweeps); i++) {
		struct sweep s = sweeps[i];

		s.scene = FRESH;
		s.call = call_setup;
		s.nomem = true;
		sweep(_metadata, self, &s);
	}
}

TEST_F_TIMEOUT(sweep, a_named_wheel_is_there_or_not, LONG)
{
	const struct sweep sweeps[] = {
		{
			"CREATE", SETUP(), .scene = FRESH, .call = call_create,
			.nomem = true,
		}, {
			"CREATE, exclusive", SETUP(.lease = TW_SEC),
			.scene = FRESH, .call = call_create, .nomem = true,
			.arg = TIMEWHEEL_CREATE_EXCLUSIVE,
		}, {
			"CREATE of one that is there", SETUP(),
			.scene = NAMED, .call = call_create, .tokens = 4,
			.still = true,
		}, {
			"DESTROY", SETUP(), .scene = NAMED, .tokens = 4,
			.call = call_destroy,
		},
	};

	SWEEP(sweeps);
}

TEST_F_TIMEOUT(sweep, a_file_is_open_or_not, LONG)
{
	const struct sweep sweeps[] = {
		{
			"open", .scene = FRESH, .call = call_open,
			.path = TW_DEVICE, .nomem = true,
		}, {
			"open of a named wheel", SETUP(), .scene = NAMED,
			.tokens = 4, .call = call_open, .path = NODE,
			.nomem = true,
		}, {
			"close", SETUP(), .tokens = 4, .call = call_close,
			.immune = true,
		}, {
			"close with a delivery", SETUP(.lease = 10 * TW_SEC),
			.scene = NAMED, .tokens = 4, .hand = 2, .held = true,
			.call = call_close, .immune = true,
		},
	};

	SWEEP(sweeps);
}

/*
 * A read gives up after some tries if its memory can be fetched but each copy to it
 * fails.
 */
TEST_F(sweep, a_read_whose_copies_all_fail)
{
	int fd = TW_OPEN(O_RDWR | O_NONBLOCK), ret;
	struct timewheel_event events[2] = {};
	struct timewheel_info info;

	ASSERT_EQ(0, tw_setup_manual(fd, 60, 2, 0));
	ASSERT_EQ(0, tw_register(fd, 1, TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_register(fd, 2, 2 * TW_SEC, 0, NULL));
	ASSERT_EQ(0, tw_advance(fd, 2));
	/* The copies fail more often than a reader tries, but the number has a limit. */
	ASSERT_TRUE(tw_inject_percent("fail_usercopy", "100"));
	ASSERT_TRUE(tw_inject_set("fail_usercopy", "times", "10000"));
	tw_inject_switch(self->make, "1");
	ret = tw_ret(tw_read(fd, events, 2));
	EXPECT_LT(0U, tw_inject_switch(self->make, "0"));
	ASSERT_TRUE(tw_inject_init());
	EXPECT_EQ(-EFAULT, ret);

	ASSERT_EQ(0, tw_info(fd, &info));
	EXPECT_EQ(2ULL, info.pending);
	EXPECT_EQ(0ULL, info.delivered);
	EXPECT_LT(0ULL, info.put_back);
	ASSERT_EQ(2, tw_read(fd, events, 2));
	EXPECT_EQ(1ULL, events[0].id);
	EXPECT_EQ(2ULL, events[1].id);
	close(fd);
}

/* The following tests load and unload the module. */

FIXTURE(module) {
	FIXTURE_DATA(sweep) inject;
	struct stat device;
	int file;
	size_t size;
	void *image;	/* the module without its trace events */
};

/*
 * The module is loaded without its trace events, because the kernel itself warns if
 * it has no memory for them.
 */
FIXTURE_SETUP(module)
{
	static const char events[] = "_ftrace_events";
	char *at;

	sweep_setup(_metadata, &self->inject, NULL);
	if (_metadata->exit_code)
		return;
	ASSERT_EQ(0, stat(TW_DEVICE, &self->device));
	self->file = open("/timewheel.ko", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->file);
	self->size = lseek(self->file, 0, SEEK_END);
	self->image = mmap(NULL, self->size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_POPULATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, self->image);
	at = memmem(self->image, self->size, events, sizeof(events));
	ASSERT_NE(NULL, at);
	*at = '-';
}

static int unload(void)
{
	return tw_ret(syscall(SYS_delete_module, "timewheel", O_NONBLOCK));
}

static int load(const FIXTURE_DATA(module) *self)
{
	return tw_ret(syscall(SYS_init_module, self->image, self->size, ""));
}

/* The original module is loaded again, with its trace events. */
FIXTURE_TEARDOWN(module)
{
	tw_inject_init();
	unload();
	EXPECT_EQ(0, syscall(SYS_finit_module, self->file, "", 0));
	EXPECT_EQ(0, chown(TW_DEVICE, self->device.st_uid, self->device.st_gid));
}

static void expect_there(struct __test_metadata *_metadata, bool there)
{
	EXPECT_EQ(there, !access(TW_DEVICE, F_OK));
	EXPECT_EQ(there, tw_file_mentions("/proc/devices", "timewheels"));
}

static bool module_works(void)
{
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	bool works = !tw_setup_manual(fd, 60, 100, 0) &&
		     !tw_register(fd, 1, TW_SEC, 0, NULL);

	close(fd);
	return works;
}

#define NEVER	1000000	/* more than the faults of a load */
#define OWN	200	/* upper limit of the module's own faults, which come last */

/* Returns the number of allocations and copies of a load that can fail. */
static unsigned int count_faults(const FIXTURE_DATA(module) *self)
{
	char left[16] = "";

	inject(&self->inject, NTH, NEVER);
	load(self);
	pread(self->inject.nth, left, sizeof(left) - 1, 0);
	tw_inject_switch(self->inject.nth, "0");
	return NEVER - atoi(left);
}

/*
 * A load with a fault ends with a module that works, or with none. A load takes long
 * in a kernel with debugging options. A short run therefore has only some of the
 * kernel's faults, and more of the module's own faults, which come last.
 */
TEST_F_TIMEOUT(module, is_loaded_or_not, LONG)
{
	unsigned int stride = is_short() ? 64 : 1, own_stride = is_short() ? 8 : 1;
	unsigned int n = 0, refused = 0, total;
	bool failed = true;

	ASSERT_EQ(0, unload());
	total = count_faults(self);
	ASSERT_LT(OWN, total);
	ASSERT_GT(NEVER, total);
	while (failed) {
		int ret;

		ASSERT_EQ(0, unload());
		do {
			n += n + stride + OWN < total ? stride : own_stride;
			inject(&self->inject, NTH, n);
			ret = load(self);
			failed = injected(&self->inject, NTH);
			refused += ret < 0;
			EXPECT_TRUE(!ret || ret == -ENOMEM || ret == -EFAULT) {
				TH_LOG("fault %u: %s", n, strerror(-ret));
			}
			expect_there(_metadata, !ret);
		} while (ret < 0);
		ASSERT_TRUE(module_works());
	}
	EXPECT_LT(0U, refused);
	TH_LOG("%u faults, %u times it was not loaded", n - 1, refused);
}

TEST_F_TIMEOUT(module, is_unloaded_or_not, LONG)
{
	unsigned int n = 0;
	bool failed;

	do {
		int ret;

		inject(&self->inject, NTH, ++n);
		ret = unload();
		failed = injected(&self->inject, NTH);
		EXPECT_TRUE(!ret || ret == -EFAULT) {
			TH_LOG("fault %u: %s", n, strerror(-ret));
		}
		expect_there(_metadata, ret < 0);
		if (!ret)
			ASSERT_EQ(0, load(self));
		ASSERT_TRUE(module_works());
	} while (failed);
	EXPECT_LT(1U, n);
	TH_LOG("%u faults", n - 1);
}

/* Sets a wheel up when only @bytes can be allocated for objects. Returns 0, or -errno. */
static int set_up_within(struct __test_metadata *_metadata, const FIXTURE_DATA(module) *self,
			 unsigned int bytes)
{
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC), ret;
	char text[16];

	snprintf(text, sizeof(text), "%u", bytes);
	EXPECT_TRUE(tw_inject_set("failslab", "times", "1000000") &&
		    tw_inject_set("failslab", "space", text) &&
		    tw_inject_set("failslab", "probability", "100"));
	tw_inject_switch(self->inject.make, "1");
	ret = tw_ret(tw_setup_manual(fd, 60, 100, 0));
	tw_inject_switch(self->inject.make, "0");
	EXPECT_TRUE(tw_inject_percent("failslab", "0"));
	close(fd);
	return ret;
}

/*
 * A wheel that gets no number for want of memory leaves nothing behind in the tree of
 * numbers, which outlives wheels. A kernel that looks for leaks reports one when the
 * module is unloaded.
 */
TEST_F_TIMEOUT(module, a_number_that_is_not_given_leaves_nothing, LONG)
{
	unsigned int bytes = 0;
	int ret;

	do {
		ASSERT_EQ(0, unload());
		ASSERT_EQ(0, load(self));
		/*
		 * After 63 wheels the tree needs two nodes for the next number, each
		 * of more than 512 bytes.
		 */
		for (int i = 1; i < 64; i++)
			ASSERT_TRUE(module_works());
		ret = set_up_within(_metadata, self, bytes);
		EXPECT_TRUE(!ret || ret == -ENOMEM) {
			TH_LOG("%u bytes: %s", bytes, strerror(-ret));
		}
		bytes += 512;
	} while (ret < 0);
	EXPECT_LT(1024U, bytes);
}

TEST_HARNESS_MAIN
