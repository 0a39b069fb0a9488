/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event ring: expired tokens as events in memory that their consumers map.
 *
 * The kernel's part, a page with its index and then the events, is mapped for
 * reading only; the consumers' page with theirs apart, for writing. That one is
 * never trusted: what it says decides only how many events are written next.
 * The ring is a bounded window on what is due: when it is full, tokens stay where
 * they are.
 *
 *	producer, under its lock		consumer
 *	  head = acquire(consumed)  ......  read events
 *	  write events		    .	 .  release(consumed) = head
 *	  release(produced) = tail  ......  tail = acquire(produced)
 *
 * The producer overwrites an event only after it has seen that it was consumed;
 * the consumer reads one only after it has seen that it was produced.
 */
#ifndef TW_EVENT_RING_H
#define TW_EVENT_RING_H

#include <linux/mutex.h>
#include <linux/timewheel.h>
#include <linux/types.h>

/**
 * struct tw_event_ring - the ring, if @size is not 0
 * @lock: one produces at a time; outside the wheel's lock
 * @size: events that it holds, a power of two; constant
 * @tail: events produced so far; @lock
 * @kernel: the kernel's part; its pages are mapped by consumers
 * @user: the consumers' page
 */
struct tw_event_ring {
	struct mutex			lock;	/* to produce */
	u32				size;
	u64				tail;
	struct timewheel_produced	*kernel;
	struct timewheel_consumed	*user;
};

int tw_event_ring_init(struct tw_event_ring *ring, u32 size);
void tw_event_ring_destroy(struct tw_event_ring *ring);
size_t tw_event_ring_bytes(const struct tw_event_ring *ring);
u64 tw_event_ring_room(const struct tw_event_ring *ring);
bool tw_event_ring_empty(const struct tw_event_ring *ring);
struct timewheel_event *tw_event_ring_next(struct tw_event_ring *ring);
void tw_event_ring_produce(struct tw_event_ring *ring, u32 n);

#endif /* TW_EVENT_RING_H */
