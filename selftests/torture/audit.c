// SPDX-License-Identifier: GPL-2.0-only
/*
 * The audit, when all workers have ended: each registration that succeeded has
 * exactly one end, or its token is still there, or has gone with its wheel. No event
 * came twice, and none after the end. Then each token that is left comes once.
 *
 * If a worker was killed during an operation, the wheel's state decides whether the
 * operation was carried out. The wheel's own counters have to agree with
 * registrations that may or may not have been carried out and ended.
 */
#define _GNU_SOURCE
#include <sys/uio.h>

#include "torture.h"

#define MOST_EVENTS	(SLOTS * EVENTS)

static const struct timewheel_event *all[MOST_EVENTS];
static __u32 nr_events;			/* events in all */
static __u64 registered, perhaps;	/* registrations, and how many more there may be */
static __u32 events[ENTRIES];		/* number of events of each registration */
static __u8 listed[ENTRIES];
static struct wheel wheels[KINDS];

/* The counts of the ledger for one wheel, or for the wheels that are gone. */
struct account {
	__u64 registered;	/* certainly registered */
	__u64 maybe;		/* perhaps registered, and then ended or gone */
	__u64 read;		/* ended by an event */
	__u64 ended;		/* ended by a worker that noted the end */
	__u64 killed;		/* ended by a worker that was killed before it noted the end */
	__u64 listed;		/* still there */
	__u64 gone;		/* gone with their wheel */
	__u64 events;
};

static void add_event(const struct timewheel_event *event)
{
	if (!check_event(event))
		return;
	all[nr_events++] = event;
	events[event->cookie]++;
}

static int in_order(const void *x, const void *y)
{
	const struct timewheel_event *a = *(const void **)x;
	const struct timewheel_event *b = *(const void **)y;

	if (a->cookie != b->cookie)
		return a->cookie < b->cookie ? -1 : 1;
	if (a->delivery != b->delivery)
		return a->delivery < b->delivery ? -1 : 1;
	return (a->deadline > b->deadline) - (a->deadline < b->deadline);
}

/*
 * Returns whether two events are the same. Deliveries differ by their number, and
 * periods by their deadline.
 */
static bool is_same(const struct timewheel_event *a,
		    const struct timewheel_event *b)
{
	return a->cookie == b->cookie && a->delivery == b->delivery &&
	       (a->delivery || !shared->entry[a->cookie].periodic ||
		a->deadline == b->deadline);
}

/* Collects all events, and checks that each came once. */
bool audit_events(void)
{
	__u32 faults = shared->faults;

	nr_events = 0;
	memset(events, 0, sizeof(events));
	memset(listed, 0, sizeof(listed));
	for (int i = 0; i < KINDS; i++)
		open_wheel(&wheels[i], &kinds[i],
			   is_named(&kinds[i]) ? -1 : dup(private));
	for (int i = 0; i < SLOTS; i++) {
		__u32 n = slot_count(&shared->slot[i]);

		for (__u32 k = 0; k < n; k++)
			add_event(&shared->slot[i].events[k]);
	}

	qsort(all, nr_events, sizeof(*all), in_order);
	for (__u32 i = 1; i < nr_events; i++) {
		const struct timewheel_event *event = all[i];

		if (is_same(all[i - 1], event))
			fail("registration %llu: two events, delivery %u",
			     event->cookie, event->delivery);
	}
	for (__u32 i = 0; i < nr_events; i++) {
		const struct entry *entry = &shared->entry[all[i]->cookie];

		if (entry->acked &&
		    (__s32)(all[i]->delivery - entry->acked) > 0)
			fail("registration %llu: an event after its ACK",
			     all[i]->cookie);
	}
	return shared->faults == faults;
}

/* Enters a registration into the account of its wheel, which is @living or gone. */
static void enter(struct account *a, __u32 number, bool living)
{
	const struct entry *entry = &shared->entry[number];
	bool read = events[number] && !entry->leased && !entry->periodic;
	unsigned int end = entry->ends + read;
	bool known = entry->phase == REGISTERED || events[number] || end ||
		     listed[number];

	a->events += events[number];
	if (end > 1 || listed[number] > 1 || (end && listed[number]))
		fail("registration %u: %u events, ended %u times, listed %u times",
		     number, events[number], entry->ends, listed[number]);
	if (entry->phase == REFUSED && known)
		fail("registration %u was refused, and is there", number);
	if (!known) {
		a->maybe += entry->phase == TRIED && (entry->ending || !living);
		return;
	}
	a->registered++;
	a->read += read;
	a->ended += entry->ends;
	a->listed += listed[number];
	if (end || listed[number])
		return;
	if (entry->ending)
		a->killed++;
	else if (!living)
		a->gone++;
	else
		fail("registration %u, id %llx, handle %llx, is lost", number,
		     entry->id, entry->handle);
}

static void list_wheel(const struct wheel *wheel, struct timewheel_token *tokens,
		       int *n)
{
	*n = tw_list(wheel->fd, tokens);
	if (*n < 0)
		fail("list of %s: %d", wheel->kind->name, errno);
	for (int i = 0; i < *n; i++) {
		const struct entry *entry = &shared->entry[tokens[i].cookie];

		if (tokens[i].cookie >= shared->next ||
		    entry->wheel != wheel->number ||
		    (entry->handle && entry->handle != tokens[i].handle))
			fail("%s lists cookie %llu", wheel->kind->name,
			     tokens[i].cookie);
		else
			listed[tokens[i].cookie]++;
	}
}

static void tell_difference(const struct wheel *wheel,
			    const struct timewheel_info *info,
			    const struct account *a)
{
	fail("%s says: registered %llu, delivered %llu, cancelled %llu",
	     wheel->kind->name, info->registered, info->delivered,
	     info->cancelled);
	fail("deleted %llu, acked %llu, pending %llu, taken %llu, held %llu",
	     info->deleted, info->acked, info->pending, info->taken, info->held);
	fail("the ledger: registered %llu (%llu), events %llu, listed %llu",
	     a->registered, a->maybe, a->events, a->listed);
	fail("read %llu, ended %llu (%llu)", a->read, a->ended, a->killed);
}

/* Compares the wheel's own figures with the ledger. */
static void compare(const struct wheel *wheel, const struct account *a)
{
	struct timewheel_info info;
	__u64 ended, maybe;

	if (tw_info(wheel->fd, &info) < 0) {
		fail("info of %s: %d", wheel->kind->name, errno);
		return;
	}
	ended = info.cancelled + info.deleted + (info.lease ? info.acked : 0);
	maybe = info.registered - a->registered;
	if (maybe > a->maybe || info.taken || info.held ||
	    info.pending != a->listed || info.registered - info.pending !=
				      a->read + a->ended + a->killed + maybe ||
	    info.delivered != a->events ||
	    (!(info.lease && info.setup_flags & TIMEWHEEL_SETUP_PERIODS) &&
	     ended != a->ended + a->killed + maybe))
		tell_difference(wheel, &info, a);
}

static struct timewheel_token left[KINDS][TW_LISTED];
static int nr_left[KINDS];

/* Checks that each registration has one end, or that its token is there. */
bool audit_wheels(void)
{
	__u32 faults = shared->faults;
	struct account sum = {}, of[KINDS + 1] = {};

	for (int i = 0; i < KINDS; i++)
		if (wheels[i].fd >= 0)
			list_wheel(&wheels[i], left[i], &nr_left[i]);
	for (__u32 number = 0; number < shared->next; number++) {
		int i = 0;

		while (i < KINDS && (wheels[i].fd < 0 ||
				     wheels[i].number != shared->entry[number].wheel))
			i++;
		enter(&of[i], number, i < KINDS);
	}
	for (int i = 0; i <= KINDS; i++) {
		if (i < KINDS && wheels[i].fd >= 0)
			compare(&wheels[i], &of[i]);
		sum.registered += of[i].registered;
		sum.maybe += of[i].maybe;
		sum.read += of[i].read;
		sum.ended += of[i].ended;
		sum.killed += of[i].killed;
		sum.listed += of[i].listed;
		sum.gone += of[i].gone;
		sum.events += of[i].events;
	}
	printf("# tried %u, registered %llu, perhaps %llu more: read %llu, ended %llu,\n",
	       shared->next, sum.registered, sum.maybe, sum.read, sum.ended);
	printf("# by who was killed %llu, there %llu, gone with their wheels %llu; events %llu\n",
	       sum.killed, sum.listed, sum.gone, sum.events);
	registered = sum.registered;
	perhaps = sum.maybe;
	if (sum.events != nr_events)
		fail("%llu events of %u", sum.events, nr_events);
	return shared->faults == faults;
}

/* Makes a token due now, or ends it. Returns whether its event has to come. */
static bool call_token(const struct wheel *wheel,
		       const struct timewheel_token *token)
{
	const struct entry *entry = &shared->entry[token->cookie];
	__u32 code = TIMEWHEEL_OP_MOVE;

	if (entry->periodic)
		code = entry->leased ? TIMEWHEEL_OP_DELETE : TIMEWHEEL_OP_CANCEL;
	if (tw_key_op(wheel->fd, code, TIMEWHEEL_OPF_BY_HANDLE, token->handle,
		      0) < 0)
		fail("operation %u on what is left of %s: %d", code,
		     wheel->kind->name, errno);
	return !entry->periodic;
}

/* Reads all due tokens. Returns their number. */
static __u32 read_left(const struct wheel *wheel)
{
	struct timewheel_event event;
	struct iovec to = { &event, sizeof(event) };
	__u32 n = 0;

	for (; preadv2(wheel->fd, &to, 1, -1, RWF_NOWAIT) > 0; n++) {
		if (check_event(&event) && listed[event.cookie]-- != 1)
			fail("registration %llu was not there, but comes",
			     event.cookie);
		if (event.delivery && tw_ack(wheel->fd, &event))
			fail("ACK of what was left: %d", errno);
	}
	if (errno != EAGAIN)
		fail("read of what is left of %s: %d", wheel->kind->name, errno);
	return n;
}

static void empty(const struct wheel *wheel, const struct timewheel_token *tokens,
		  int n)
{
	struct timewheel_info info;
	__u32 due = 0, came;

	tw_control(wheel->fd, 0, TIMEWHEEL_CONTROL_PAUSED | TIMEWHEEL_CONTROL_DRAINING);
	for (int i = 0; i < n; i++)
		due += call_token(wheel, &tokens[i]);
	came = read_left(wheel);
	nr_events += came;
	if (came != due || tw_info(wheel->fd, &info) < 0 || info.pending ||
	    info.taken || info.held)
		fail("%s: %u of %u came, pending %llu, taken %llu, held %llu",
		     wheel->kind->name, came, due, info.pending, info.taken,
		     info.held);
}

/*
 * Checks that each token that is left comes once, and that no old handle names a
 * token then.
 */
bool audit_left(void)
{
	__u32 faults = shared->faults;

	for (int i = 0; i < KINDS; i++)
		if (wheels[i].fd >= 0)
			empty(&wheels[i], left[i], nr_left[i]);
	for (__u32 number = 0; number < shared->next; number++) {
		const struct entry *entry = &shared->entry[number];
		struct timewheel_token token;

		for (int i = 0; i < KINDS && entry->handle; i++)
			if (wheels[i].fd >= 0 &&
			    wheels[i].number == entry->wheel &&
			    tw_ret(tw_get(wheels[i].fd, TIMEWHEEL_OPF_BY_HANDLE,
					  entry->handle, &token)) != -ESTALE)
				fail("handle %llx of %s is there after its end",
				     entry->handle, kinds[i].name);
	}
	for (int i = 0; i < KINDS; i++)
		close_wheel(&wheels[i]);
	return shared->faults == faults;
}

/*
 * Checks that each life on a wheel of one token has its own generation, which is the
 * generation before plus 1, but not 0. The module is loaded near the wrap of
 * generations.
 */
bool audit_generations(void)
{
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	__u64 handle = 0, before = 0;
	bool ok = !tw_setup_manual(fd, 1, 1, 0);

	for (int i = 0; ok && i < 100; i++) {
		ok = !tw_register(fd, 1, TW_SEC, 0, &handle) &&
		     tw_cancel(fd, TIMEWHEEL_OPF_BY_HANDLE, before) < 0 &&
		     errno == ESTALE &&
		     !tw_cancel(fd, TIMEWHEEL_OPF_BY_HANDLE, handle) &&
		     handle >> 32 &&
		     (!before || (__u32)((handle >> 32) - (before >> 32)) ==
				 1 + (before >> 32 == ~0U));
		if (!ok)
			fail("handle %llx after %llx", handle, before);
		before = handle;
		registered++;
	}
	close(fd);
	return ok;
}

/*
 * Checks that each delivery has its own number, which is the number before plus 1,
 * but not 0.
 */
bool audit_deliveries(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup), .clock = TIMEWHEEL_CLOCK_MANUAL,
		.slots = 1, .tick = TW_SEC, .lease = TW_SEC, .max_tokens = 1,
		.max_held = 1,
	};
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);
	bool ok = !ioctl(fd, TIMEWHEEL_IOC_SETUP, &setup) &&
		  !tw_register(fd, 1, 0, 0, NULL);
	struct timewheel_event event = {};
	__u32 before = 0;

	for (int i = 0; ok && i < 8; i++) {
		ok = tw_read(fd, &event, 1) == 1 && event.delivery &&
		     (!before || event.delivery == (before + 1 ?: 1)) &&
		     event.attempts == i + 1U &&
		     !tw_answer(fd, TIMEWHEEL_OP_NACK, 0, 1, event.delivery, 0);
		if (!ok)
			fail("delivery %u after %u: %d", event.delivery, before,
			     errno);
		before = event.delivery;
		nr_events++;
	}
	registered++;
	close(fd);
	return ok;
}

#define DEBUGFS	"/sys/kernel/debug/timewheel/"

static unsigned int lines(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned int n = 0;
	int c;

	while (file && (c = getc(file)) != EOF)
		n += c == '\n';
	if (file)
		fclose(file);
	return n;
}

/*
 * Checks that no user has a wheel, that no wheel is left, and that the sums match the
 * ledger.
 */
bool audit_limits(void)
{
	long long delivered;
	__u64 maybe;

	/* The kernel may take a moment to close the files of killed workers. */
	for (int tries = 0; tries < 1000; tries++) {
		if (lines(DEBUGFS "users") == 1 && lines(DEBUGFS "wheels") == 1)
			break;
		tw_sleep_ms(10);
	}
	delivered = value_of(DEBUGFS "stats", "delivered");
	maybe = value_of(DEBUGFS "stats", "registered") - registered;
	if (lines(DEBUGFS "users") == 1 && lines(DEBUGFS "wheels") == 1 &&
	    delivered == nr_events && maybe <= perhaps &&
	    !value_of(DEBUGFS "stats", "wheels") &&
	    !value_of(DEBUGFS "stats", "pending") &&
	    !value_of(DEBUGFS "stats", "bytes"))
		return true;
	fail("%u users, %u wheels, %lld delivered, not %u, %lld registered, not %llu",
	     lines(DEBUGFS "users") - 1, lines(DEBUGFS "wheels") - 1, delivered,
	     nr_events, value_of(DEBUGFS "stats", "registered"), registered);
	return false;
}
