// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ledger. A thread that writes to the ledger may be killed between any two lines.
 */
#include <stdarg.h>
#include <sys/mman.h>

#include "torture.h"

struct shared *shared;

/* Notes a fault. All faults are counted, and the first few are printed at the end. */
void fail(const char *format, ...)
{
	__u32 number = shared->faults++;
	va_list args;

	if (number >= MOST_FAULTS)
		return;
	va_start(args, format);
	vsnprintf(shared->fault[number], sizeof(shared->fault[number]), format,
		  args);
	va_end(args);
}

void tell_faults(void)
{
	__u32 n = shared->faults < MOST_FAULTS ? shared->faults : MOST_FAULTS;

	for (; shared->told < n; shared->told++)
		printf("# fault: %s\n", shared->fault[shared->told]);
}

/* Marks @n events as not read. */
void slot_clear(struct slot *slot, __u32 from, __u32 n)
{
	for (__u32 i = from; i < from + n; i++)
		slot->events[i].reserved = UNREAD;
}

/*
 * Counts the events that a slot's last owner has read. It may have been killed before
 * it counted some of them.
 */
__u32 slot_count(struct slot *slot)
{
	__u32 used = slot->used;

	while (used < EVENTS && slot->events[used].reserved != UNREAD)
		used++;
	slot->used = used;
	return used;
}

void ledger_open(void)
{
	shared = tw_shared_memory(sizeof(*shared));
	if (shared == MAP_FAILED)
		exit(1);
}

/*
 * Clears the ledger. All its pages then exist, and no process that is short of memory
 * is charged for them.
 */
void ledger_clear(void)
{
	memset(shared, 0, sizeof(*shared));
	for (int i = 0; i < SLOTS; i++)
		slot_clear(&shared->slot[i], 0, EVENTS);
}

/*
 * Notes a registration that is about to be tried. Returns its number, or NONE if the
 * ledger is full.
 */
__u32 book_try(const struct wheel *wheel, __u64 id, bool periodic)
{
	const struct timewheel_setup *setup = &wheel->kind->setup;
	struct entry *entry;
	__u32 number;

	if (shared->next >= ENTRIES - SLOTS)
		return NONE;
	number = shared->next++;
	entry = &shared->entry[number];
	if (setup->flags & TIMEWHEEL_SETUP_NO_IDS)
		entry->id = 0;
	else
		entry->id = id < SHARED_IDS ? id : OWN_ID + number;
	entry->wheel = wheel->number;
	entry->periodic = periodic;
	entry->leased = setup->lease != 0;
	entry->phase = TRIED;
	return number;
}

/* Notes the result of a registration. */
void book_tried(__u32 number, const struct timewheel_op *op, bool registered)
{
	struct entry *entry = &shared->entry[number];

	if (!registered) {
		entry->phase = REFUSED;
		return;
	}
	if (!op->handle)
		fail("a registration without a handle");
	entry->handle = op->handle;
	entry->phase = REGISTERED;
}

void book_ending(__u32 number)
{
	shared->entry[number].ending++;
}

/*
 * Notes the result of an operation that may end a token. An ACK does not end a
 * periodic token.
 */
void book_ended(__u32 number, const struct timewheel_op *op)
{
	struct entry *entry = &shared->entry[number];
	bool ack = op->code == TIMEWHEEL_OP_ACK;

	if (op->result >= 0 && !(ack && entry->periodic)) {
		if (ack)
			entry->acked = op->delivery;
		entry->ends++;
	}
	entry->ending--;
}

/* Returns one of the latest registrations on this wheel, which may have ended, or NONE. */
__u32 pick(struct worker *w, const struct wheel *wheel)
{
	__u32 next = shared->next, latest = next < 4096 ? next : 4096;

	for (int tries = 0; latest && tries < 64; tries++) {
		__u32 number = next - 1 - below(w, latest);
		const struct entry *entry = &shared->entry[number];

		if (entry->phase == REGISTERED && entry->wheel == wheel->number)
			return number;
	}
	return NONE;
}

/* Checks that an event matches its registration. */
bool check_event(const struct timewheel_event *event)
{
	const struct entry *entry;

	if (event->cookie >= shared->next) {
		fail("an event of cookie %llx", event->cookie);
		return false;
	}
	entry = &shared->entry[event->cookie];
	if (event->taken < event->deadline)
		fail("taken %llu before its deadline %llu", event->taken,
		     event->deadline);
	if (entry->phase == REFUSED || entry->phase == UNUSED ||
	    event->id != entry->id ||
	    (entry->handle && event->handle != entry->handle))
		fail("registration %llu, phase %u: %llx, %llx; its event: %llx, %llx",
		     event->cookie, entry->phase, entry->id, entry->handle,
		     event->id, event->handle);
	if (!event->delivery != !entry->leased ||
	    !event->attempts != !entry->leased || event->reserved)
		fail("registration %llu: delivery %u, attempt %u, reserved %u",
		     event->cookie, event->delivery, event->attempts,
		     event->reserved);
	return true;
}
