// SPDX-License-Identifier: GPL-2.0-only
/*
 * The work: threads do one random action after the other to wheels, until they are
 * killed. Each action knows the possible answers. Any other answer is a fault.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "torture.h"

#define MOST_OPS	16	/* most operations in one batch */

/* The sockets pass files from any process to any other. */
int sockets[2];

/* Returns a wheel that the thread has open, or NULL. */
static struct wheel *any_wheel(struct worker *w)
{
	struct wheel *wheel = &w->wheel[below(w, KINDS)];

	return wheel->fd < 0 ? NULL : wheel;
}

static bool has(const struct wheel *wheel, __u32 flag)
{
	return wheel->kind->setup.flags & flag;
}

/* The following functions carry out operations. */

static bool registers(__u32 code)
{
	return code == TIMEWHEEL_OP_REGISTER ||
	       code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

static bool ends(const struct timewheel_op *op)
{
	return op->code == TIMEWHEEL_OP_CANCEL ||
	       op->code == TIMEWHEEL_OP_ACK ||
	       op->code == TIMEWHEEL_OP_DELETE;
}

static bool goes_with(const struct wheel *wheel, __u32 code)
{
	if (code >= TIMEWHEEL_OP_ACK)
		return wheel->kind->setup.lease;
	return code != TIMEWHEEL_OP_TOUCH_OR_REGISTER ||
	       !has(wheel, TIMEWHEEL_SETUP_NO_IDS);
}

static bool about_absent(int error)
{
	return error == ENOENT || error == ESTALE;
}

/*
 * Returns whether an operation may fail with this error. On MORTAL, which may be
 * destroyed, each operation may fail.
 */
static bool may_fail(const struct wheel *wheel, const struct timewheel_op *op)
{
	int error = -op->result;

	if (error == ENODEV)
		return wheel->kind == &kinds[MORTAL];
	if (error == ERANGE)
		return wheel->kind == &kinds[LATE];
	switch (op->code) {
	case TIMEWHEEL_OP_REGISTER:
		return error == EEXIST || error == ENOSPC || error == ENOMEM ||
		       error == ESHUTDOWN;
	case TIMEWHEEL_OP_TOUCH_OR_REGISTER:
		/* The token of the id may be held, or may have no timeout. */
		return error == EEXIST || error == ENOSPC || error == ENOMEM ||
		       error == ESHUTDOWN || error == EINVAL;
	case TIMEWHEEL_OP_TOUCH:
		return about_absent(error) || error == EINVAL;
	case TIMEWHEEL_OP_MOVE:
		/* The id may belong to another worker's token, which is periodic. */
		return about_absent(error) ||
		       (error == EINVAL && op->timeout &&
			has(wheel, TIMEWHEEL_SETUP_PERIODS));
	default:
		return about_absent(error);
	}
}

/* Returns a delay. Most are short, and some outlast the round. */
static __u64 delay(struct worker *w, const struct wheel *wheel)
{
	if (once(w, 64))
		return 3600 * TW_SEC;
	return below(w, 80) * wheel->kind->setup.tick;
}

static void plan_registration(struct worker *w, const struct wheel *wheel,
			      struct timewheel_op *op, __u32 entry)
{
	const struct timewheel_setup *setup = &wheel->kind->setup;

	op->id = shared->entry[entry].id;
	op->cookie = entry;
	op->time = delay(w, wheel);
	if (op->code != TIMEWHEEL_OP_REGISTER)
		return;
	if (shared->entry[entry].periodic)
		op->period = (20 + below(w, 2000)) * setup->tick;
	else if (once(w, 4))
		op->timeout = delay(w, wheel);
	if (once(w, 8) && setup->clock == TIMEWHEEL_CLOCK_MONOTONIC) {
		op->flags = TIMEWHEEL_OPF_ABSOLUTE;
		op->time += tw_now(CLOCK_MONOTONIC);
	}
}

/* Returns whether a registration shall be of a periodic token. */
static bool repeats(struct worker *w, const struct wheel *wheel, __u32 code)
{
	return code == TIMEWHEEL_OP_REGISTER &&
	       has(wheel, TIMEWHEEL_SETUP_PERIODS) && once(w, 5);
}

/*
 * Plans the answer to a delivery that this thread has got, or sometimes to another
 * number.
 */
static __u32 plan_answer(struct worker *w, const struct wheel *wheel,
			 struct timewheel_op *op)
{
	const struct delivery *delivery = &w->delivery[below(w, DELIVERIES)];

	if (delivery->wheel != wheel->number)
		return NONE;
	op->delivery = delivery->number;
	if (once(w, 16))
		op->delivery += once(w, 2) ? 1 : -1;
	return delivery->entry;
}

/*
 * Names a token by handle or id. An id that many tokens had does not tell which of
 * them an operation has ended.
 */
static void plan_key(struct worker *w, const struct wheel *wheel,
		     struct timewheel_op *op, __u32 number)
{
	const struct entry *entry = &shared->entry[number];
	bool by_id = !has(wheel, TIMEWHEEL_SETUP_NO_IDS) &&
		     (entry->id >= OWN_ID || !ends(op));

	op->id = entry->id;
	op->handle = entry->handle;
	if (!by_id || once(w, 2))
		op->flags |= TIMEWHEEL_OPF_BY_HANDLE;
}

/* Plans an operation. Returns its registration, or NONE if there is nothing to do. */
static __u32 plan(struct worker *w, const struct wheel *wheel,
		  struct timewheel_op *op)
{
	static const __u32 codes[] = {
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_REGISTER,
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_REGISTER,
		TIMEWHEEL_OP_REGISTER, TIMEWHEEL_OP_TOUCH_OR_REGISTER,
		TIMEWHEEL_OP_TOUCH_OR_REGISTER, TIMEWHEEL_OP_TOUCH,
		TIMEWHEEL_OP_TOUCH, TIMEWHEEL_OP_MOVE, TIMEWHEEL_OP_CANCEL,
		TIMEWHEEL_OP_CANCEL, TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_ACK,
		TIMEWHEEL_OP_ACK, TIMEWHEEL_OP_NACK, TIMEWHEEL_OP_EXTEND,
		TIMEWHEEL_OP_DELETE,
	};
	__u32 entry;

	memset(op, 0, sizeof(*op));
	op->size = sizeof(*op);
	do {
		op->code = codes[below(w, ARRAY_SIZE(codes))];
	} while (!goes_with(wheel, op->code));
	if (registers(op->code)) {
		entry = book_try(wheel, below(w, 2 * SHARED_IDS),
				 repeats(w, wheel, op->code));
		if (entry != NONE)
			plan_registration(w, wheel, op, entry);
		return entry;
	}
	if (op->code >= TIMEWHEEL_OP_ACK && op->code <= TIMEWHEEL_OP_EXTEND)
		entry = plan_answer(w, wheel, op);
	else
		entry = pick(w, wheel);
	/*
	 * A move of a periodic token would change the deadlines by which its events
	 * differ.
	 */
	if (entry == NONE || (op->code == TIMEWHEEL_OP_MOVE &&
			      shared->entry[entry].periodic))
		return NONE;
	op->time = delay(w, wheel);
	if (op->code == TIMEWHEEL_OP_MOVE && once(w, 4))
		op->timeout = delay(w, wheel);
	plan_key(w, wheel, op, entry);
	if (ends(op))
		book_ending(entry);
	return entry;
}

static void book(const struct wheel *wheel, const struct timewheel_op *op,
		 __u32 number)
{
	bool good = op->result >= 0;

	if (registers(op->code))
		book_tried(number, op, good &&
			   (op->code != TIMEWHEEL_OP_TOUCH_OR_REGISTER ||
			    op->result & TIMEWHEEL_RES_REGISTERED));
	else if (ends(op))
		book_ended(number, op);
	if (good)
		shared->done[op->code]++;
	else
		shared->refused[op->code]++;
	shared->periodic += good && op->period;
	/* -EINTR stands for an operation of a batch that was not carried out. */
	if (!good && op->result != -EINTR && !may_fail(wheel, op))
		fail("operation %u, flags %u, on %s: %d", op->code, op->flags,
		     wheel->kind->name, op->result);
}

static void operate(struct worker *w, struct wheel *wheel)
{
	struct timewheel_op op;
	__u32 entry = plan(w, wheel, &op);

	if (entry == NONE)
		return;
	if (ioctl(wheel->fd, TIMEWHEEL_IOC_OP, &op) < 0)
		op.result = -errno;
	book(wheel, &op, entry);
}

static void act_operate(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);

	if (wheel)
		operate(w, wheel);
}

static void act_batch(struct worker *w)
{
	struct timewheel_op ops[MOST_OPS];
	__u32 entries[MOST_OPS], n = 0, done = 0;
	struct wheel *wheel = any_wheel(w);
	int error = 0;

	if (!wheel)
		return;
	for (int i = 0; i < MOST_OPS; i++) {
		entries[n] = plan(w, wheel, &ops[n]);
		n += entries[n] != NONE;
	}
	if (tw_batch(wheel->fd, ops, n, &done) < 0)
		error = errno;
	for (__u32 i = 0; i < n; i++) {
		if (i >= done)
			ops[i].result = error ? -error : -EINTR;
		book(wheel, &ops[i], entries[i]);
	}
}

/* The following functions touch tokens. */

static void check_touch(const struct wheel *wheel, long ret)
{
	struct timewheel_op op = {
		.code = TIMEWHEEL_OP_TOUCH, .result = tw_ret(ret),
	};

	if (op.result < 0 && !may_fail(wheel, &op))
		fail("a touch on %s: %d", wheel->kind->name, op.result);
}

static void act_touch(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	__u32 entry = wheel ? pick(w, wheel) : NONE;

	if (entry == NONE)
		return;
	if (once(w, 2) || has(wheel, TIMEWHEEL_SETUP_NO_IDS))
		check_touch(wheel, tw_touch(wheel->fd, TIMEWHEEL_OPF_BY_HANDLE,
					    shared->entry[entry].handle));
	else
		check_touch(wheel, tw_touch(wheel->fd, 0,
					    shared->entry[entry].id));
}

static void act_touch_many(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	__u64 keys[MOST_OPS];
	__u32 n = 0, done;

	for (int i = 0; wheel && i < MOST_OPS; i++) {
		__u32 entry = pick(w, wheel);

		if (entry != NONE)
			keys[n++] = shared->entry[entry].handle;
	}
	if (n)
		check_touch(wheel, tw_touch_keys(wheel->fd, TIMEWHEEL_OPF_BY_HANDLE,
						 keys, n, &done));
}

/* Touches a token by a plain store or by a checked touch, which may come too late. */
static void act_touch_mapped(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	__u32 entry = wheel && wheel->words ? pick(w, wheel) : NONE;
	struct timewheel_info info;
	__u64 handle, old, new;

	if (entry == NONE || tw_info(wheel->fd, &info) < 0)
		return;
	handle = shared->entry[entry].handle;
	old = __atomic_load_n(&wheel->words[(__u32)handle], __ATOMIC_RELAXED);
	new = handle >> 32 << 32 | ((__u32)info.hand ?: 1);
	if (once(w, 2))
		__atomic_store_n(&wheel->words[(__u32)handle], new,
				 __ATOMIC_RELAXED);
	else if (old >> 32 == handle >> 32)
		__atomic_compare_exchange_n(&wheel->words[(__u32)handle], &old,
					    new, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED);
}

/* The following functions read. */

static void note_delivery(struct worker *w, const struct wheel *wheel,
			  const struct timewheel_event *event)
{
	if (!check_event(event) || !event->delivery)
		return;
	w->delivery[w->delivered++ % DELIVERIES] = (struct delivery) {
		.wheel = wheel->number, .entry = event->cookie,
		.number = event->delivery,
	};
}

static void check_read(const struct wheel *wheel, int error, bool bad)
{
	switch (error) {
	case EAGAIN:
	case EINTR:
		return;
	case EFAULT:
		if (bad)
			return;
		break;
	case ENODEV:
		if (wheel->kind == &kinds[MORTAL])
			return;
		break;
	}
	fail("read from %s: %d", wheel->kind->name, error);
}

/* Reads into the ledger, sometimes with a second buffer that is no memory. */
static void read_wheel(struct worker *w, struct wheel *wheel)
{
	struct slot *slot = &shared->slot[w->slot];
	__u32 used = slot->used, most = 1 + below(w, 96);
	bool bad = once(w, 4);
	struct iovec to[] = {
		{ &slot->events[used], most * EVENT_SIZE },
		{ (void *)64, 32 * EVENT_SIZE },
	};
	ssize_t n;

	if (used + most > EVENTS)
		return;
	n = preadv2(wheel->fd, to, 1 + bad, -1, once(w, 16) ? 0 : RWF_NOWAIT);
	if (n < 0) {
		check_read(wheel, errno, bad);
		return;
	}
	if (!n || n % EVENT_SIZE)
		fail("read from %s: %zd bytes", wheel->kind->name, n);
	n /= EVENT_SIZE;
	for (__u32 i = used; i < used + n; i++)
		note_delivery(w, wheel, &slot->events[i]);
	slot->used = used + n;
	shared->read += n;
}

static void act_read(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);

	if (wheel)
		read_wheel(w, wheel);
}

static void act_poll(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	struct pollfd p = { .events = POLLIN };

	if (!wheel)
		return;
	p.fd = wheel->fd;
	if (poll(&p, 1, below(w, 4)) == 1 &&
	    p.revents & (POLLHUP | POLLERR | POLLNVAL) &&
	    wheel->kind != &kinds[MORTAL])
		fail("poll of %s says %x", wheel->kind->name, p.revents);
}

/* The following functions look at wheels. */

static void check_token(const struct wheel *wheel,
			const struct timewheel_token *token)
{
	const struct entry *entry = &shared->entry[token->cookie];

	if (token->cookie >= shared->next || token->id != entry->id ||
	    token->state < TIMEWHEEL_STATE_PENDING ||
	    token->state > TIMEWHEEL_STATE_HELD ||
	    entry->wheel != wheel->number ||
	    (entry->handle && token->handle != entry->handle))
		fail("%s tells of id %llx, handle %llx, cookie %llu, state %u",
		     wheel->kind->name, token->id, token->handle,
		     token->cookie, token->state);
}

static void act_list(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	struct timewheel_token tokens[32];
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER,
		.tokens = (uintptr_t)tokens, .count = ARRAY_SIZE(tokens),
		.token_size = sizeof(*tokens),
	};

	while (wheel && list.cursor != TIMEWHEEL_NEVER &&
	       !ioctl(wheel->fd, TIMEWHEEL_IOC_LIST, &list))
		for (__u32 i = 0; i < list.listed; i++)
			check_token(wheel, &tokens[i]);
}

/* GET of a key has to return its token, or that there is none. */
static void check_got(const struct wheel *wheel, bool by_handle, __u64 key,
		      const struct timewheel_token *token)
{
	static const struct timewheel_token none;

	if (token->state == TIMEWHEEL_STATE_NONE) {
		if (memcmp(token, &none, sizeof(none)))
			fail("GET of %llx on %s: none, but not all zeros", key,
			     wheel->kind->name);
		return;
	}
	if ((by_handle ? token->handle : token->id) != key ||
	    token->state == TIMEWHEEL_STATE_TAKEN)
		fail("GET of %llx on %s: id %llx, handle %llx, state %u", key,
		     wheel->kind->name, token->id, token->handle, token->state);
	check_token(wheel, token);
}

static void act_get(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	struct timewheel_token tokens[MOST_OPS];
	__u64 keys[MOST_OPS];
	bool by_handle;
	__u32 n = 0, done;

	if (!wheel)
		return;
	by_handle = has(wheel, TIMEWHEEL_SETUP_NO_IDS) || once(w, 2);
	for (int i = 0; i < MOST_OPS; i++) {
		__u32 entry = pick(w, wheel);

		if (entry != NONE)
			keys[n++] = by_handle ? shared->entry[entry].handle :
						shared->entry[entry].id;
	}
	if (tw_get_keys(wheel->fd, by_handle ? TIMEWHEEL_OPF_BY_HANDLE : 0, keys,
			n, tokens, &done) < 0) {
		if (errno != ENODEV || wheel->kind != &kinds[MORTAL])
			fail("GET on %s: %d", wheel->kind->name, errno);
		return;
	}
	for (__u32 i = 0; i < done; i++)
		check_got(wheel, by_handle, keys[i], &tokens[i]);
}

/* The figures have to add up at any time. */
static void act_info(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	struct timewheel_info info;
	__u64 ended;

	if (!wheel || tw_info(wheel->fd, &info) < 0 ||
	    info.setup_flags & TIMEWHEEL_SETUP_PERIODS)
		return;
	ended = info.cancelled + info.deleted;
	ended += info.lease ? info.acked : info.delivered;
	if (info.registered != ended + info.pending + info.taken + info.held ||
	    info.held > info.max_held)
		fail("%s: %llu is not %llu ended + %llu pending + %llu taken + %llu of %u held",
		     wheel->kind->name, info.registered, ended, info.pending,
		     info.taken, info.held, info.max_held);
}

static void act_stats(struct worker *w)
{
	struct wheel *wheel = any_wheel(w);
	__u64 late[TIMEWHEEL_BUCKETS];
	struct timewheel_stats stats = {
		.size = sizeof(stats), .lateness = (uintptr_t)late,
	};

	if (wheel && ioctl(wheel->fd, TIMEWHEEL_IOC_STATS, &stats) < 0 &&
	    errno != ENOMEM && errno != ENODEV)
		fail("stats of %s: %d", wheel->kind->name, errno);
}

/* The following functions control, map, make and destroy wheels. */

static void act_control(struct worker *w)
{
	const __u32 all = TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING;
	struct wheel *wheel = any_wheel(w);

	if (!wheel)
		return;
	if (once(w, 2))
		tw_control(wheel->fd, once(w, 2) ? TIMEWHEEL_CONTROL_PAUSED :
						   TIMEWHEEL_CONTROL_DRAINING, all);
	/*
	 * If this thread is killed before the next call, another thread resumes the
	 * wheel.
	 */
	tw_control(wheel->fd, 0, all);
}

static void act_advance(struct worker *w)
{
	struct wheel *wheel = &w->wheel[once(w, 2) ? MANUAL : LATE];
	struct timewheel_info info;

	if (wheel->fd < 0 || tw_info(wheel->fd, &info) < 0)
		return;
	info.hand += below(w, 12);
	if (once(w, 8))
		info.hand -= 30;
	if (tw_advance(wheel->fd, info.hand) < 0 && errno != ERANGE)
		fail("advance: %d", errno);
}

static void act_reopen(struct worker *w)
{
	int i = below(w, KINDS);

	if (!is_named(&kinds[i]))
		return;
	close_wheel(&w->wheel[i]);
	open_wheel(&w->wheel[i], &kinds[i], -1);
	if (w->wheel[i].fd < 0 && i != MORTAL && errno != ENOMEM)
		fail("open of %s: %d", kinds[i].name, errno);
}

/* Maps the words once more, and tries an unmap of a part, which has to fail. */
static void act_map(struct worker *w)
{
	struct wheel again, *wheel = any_wheel(w);
	int fd;

	if (!wheel || !wheel->words)
		return;
	fd = dup(wheel->fd);
	if (fd < 0)
		return;
	open_wheel(&again, wheel->kind, fd);
	if (again.words && !munmap(again.words, 4096))
		fail("half of a mapping has gone");
	close_wheel(&again);
}

/* Only the first user may destroy MORTAL, and makes it again. */
static void act_destroy(struct worker *w)
{
	bool mine = w->slot < THREADS;
	bool gone = destroy_wheel(&kinds[MORTAL]);

	if (gone && !mine)
		fail("another user's wheel destroyed");
	if (!gone && errno != (mine ? ENOENT : EPERM) && errno != ENOENT)
		fail("destroy: %d", errno);
	if (mine)
		create_wheel(&kinds[MORTAL]);
}

/* Uses a private wheel for a moment. Its tokens go with it. */
static void act_private(struct worker *w)
{
	const struct kind *kind = &kinds[below(w, KINDS)];
	struct timewheel_setup setup = kind->setup;
	struct wheel wheel;
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	setup.size = sizeof(setup);
	setup.max_tokens = 1 + below(w, TOKENS);
	if (setup.max_held > setup.max_tokens)
		setup.max_held = setup.max_tokens;
	if (fd < 0 || ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup) < 0) {
		if (errno != ENOMEM)
			fail("private wheel: %d", errno);
		close(fd);
		return;
	}
	open_wheel(&wheel, kind, fd);
	for (int i = below(w, 40); wheel.fd >= 0 && i > 0; i--) {
		operate(w, &wheel);
		if (tw_readable(wheel.fd))
			read_wheel(w, &wheel);
	}
	close_wheel(&wheel);
}

/* The following functions hand wheels to other processes. */

/* The child has all files and mappings, too, and is killed when its parent exits. */
static void act_fork(struct worker *w)
{
	pid_t parent = getpid(), child = fork();

	if (child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	for (int i = 0; i < 16; i++) {
		act_operate(w);
		act_touch_mapped(w);
	}
	_exit(0);
}

/* A process that receives a wheel uses it, even if the sender has exited. */
static void act_pass(struct worker *w)
{
	struct wheel *wheel = any_wheel(w), other;
	struct timewheel_info info;
	int fd = tw_receive_fd(sockets[1], MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (wheel)
		tw_send_fd(sockets[0], wheel->fd,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
	if (fd < 0)
		return;
	for (int i = 0; !tw_info(fd, &info) && i < KINDS; i++) {
		if (w->wheel[i].number != info.number)
			continue;
		other = (struct wheel) {
			.kind = &kinds[i], .fd = fd, .number = info.number,
		};
		operate(w, &other);
		if (tw_readable(fd))
			read_wheel(w, &other);
		break;
	}
	close(fd);
}

/* The following functions are about the thread. */

static const struct {
	const char *name;
	unsigned int weight;
	void (*act)(struct worker *w);
} actions[] = {
	{ "operation", 300, act_operate },
	{ "batch", 60, act_batch },
	{ "touch", 60, act_touch },
	{ "touch_many", 20, act_touch_many },
	{ "mapped touch", 60, act_touch_mapped },
	{ "read", 200, act_read },
	{ "poll", 40, act_poll },
	{ "get", 20, act_get },
	{ "list", 4, act_list },
	{ "info", 20, act_info },
	{ "stats", 4, act_stats },
	{ "control", 4, act_control },
	{ "advance", 20, act_advance },
	{ "reopen", 8, act_reopen },
	{ "map", 4, act_map },
	{ "destroy", 2, act_destroy },
	{ "private wheel", 4, act_private },
	{ "fork", 1, act_fork },
	{ "pass", 16, act_pass },
};

_Static_assert(ARRAY_SIZE(actions) <= MOST_ACTIONS, "too many actions");

static void act(struct worker *w)
{
	unsigned int all = 0, i = 0, dice;

	for (unsigned int k = 0; k < ARRAY_SIZE(actions); k++)
		all += actions[k].weight;
	dice = below(w, all);
	for (; dice >= actions[i].weight; i++)
		dice -= actions[i].weight;
	actions[i].act(w);
	shared->acted[i]++;
}

static void wake_up(int signal)
{
	(void)signal;
}

/* Begins a thread's life, with the events that the killed owner of its slot has read. */
static void begin(struct worker *w, int slot, __u64 seed)
{
	struct sigaction action = { .sa_handler = wake_up };

	memset(w, 0, sizeof(*w));
	w->slot = slot;
	w->random = seed;
	slot_count(&shared->slot[slot]);
	sigaction(SIGUSR1, &action, NULL);
	/* From now on signals can interrupt the thread. */
	shared->slot[slot].tid = syscall(SYS_gettid);
	for (int i = 0; i < KINDS; i++)
		open_wheel(&w->wheel[i], &kinds[i],
			   is_named(&kinds[i]) ? -1 : dup(private));
}

/* Carries out @times actions, and keeps open what they opened. */
void work_briefly(struct worker *w, int slot, __u64 seed, int times)
{
	begin(w, slot, seed);
	while (times--)
		act(w);
}

struct start {
	int slot;
	__u64 seed;
};

static void *run(void *arg)
{
	const struct start *start = arg;
	struct worker *w = malloc(sizeof(*w));

	begin(w, start->slot, start->seed);
	for (;;)
		act(w);
	return NULL;
}

/* Runs a process, which has THREADS slots from @slot on. */
void work(int slot, __u64 seed)
{
	struct start start[THREADS];
	pthread_t thread;

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < THREADS; i++)
		start[i] = (struct start) { slot + i, seed + i };
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, &start[i]))
			_exit(1);
	run(&start[0]);
	_exit(1);
}

/*
 * Prints how often each action was done in this round. Returns whether each was done
 * by now.
 */
bool worked(void)
{
	static const char *const names[CODES] = {
		"register", "touch", "touch_or_register", "move", "cancel",
		"ack", "nack", "extend", "delete",
	};
	static bool done[CODES], periodic, acted[ARRAY_SIZE(actions)];
	bool all;

	periodic |= shared->periodic > 0;
	all = periodic;
	printf("# done (refused):");
	for (int i = 0; i < CODES; i++) {
		printf(" %s %u (%u)", names[i], shared->done[i],
		       shared->refused[i]);
		done[i] |= shared->done[i] > 0;
		all &= done[i];
	}
	printf(" with a period %u\n#", shared->periodic);
	for (unsigned int i = 0; i < ARRAY_SIZE(actions); i++) {
		printf(" %s %u,", actions[i].name, shared->acted[i]);
		acted[i] |= shared->acted[i] > 0;
		all &= acted[i];
	}
	printf(" %u events read\n", shared->read);
	return all;
}
