// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event ring: expired tokens as events in memory that their consumers map.
 */
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "blocks.h"
#include "event_ring.h"

/* Number of the first event. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_EVENT
#define TW_FIRST_EVENT	0
#endif

static_assert(sizeof(struct timewheel_produced) <= TIMEWHEEL_EVENTS_AT);

/* As TW_GFP, with what vmalloc() takes: some warn of __GFP_RETRY_MAYFAIL. */
#define TW_GFP_VMALLOC	((TW_GFP & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY)

static size_t tw_event_ring_kernel_bytes(u32 size)
{
	return PAGE_ALIGN(TIMEWHEEL_EVENTS_AT +
			  size * sizeof(struct timewheel_event));
}

/**
 * tw_event_ring_init() - make an empty ring
 * @ring: to be set up, zeroed
 * @size: events that it holds, a power of two
 *
 * May sleep.
 *
 * Return: 0, or -ENOMEM with nothing left behind.
 */
int tw_event_ring_init(struct tw_event_ring *ring, u32 size)
{
	ring->kernel = __vmalloc(tw_event_ring_kernel_bytes(size),
				 TW_GFP_VMALLOC);
	ring->user = __vmalloc(PAGE_SIZE, TW_GFP_VMALLOC);
	if (!ring->kernel || !ring->user) {
		tw_event_ring_destroy(ring);
		return -ENOMEM;
	}
	mutex_init(&ring->lock);
	ring->kernel->size = size;
	ring->kernel->tail = TW_FIRST_EVENT;
	ring->user->head = TW_FIRST_EVENT;
	ring->tail = TW_FIRST_EVENT;
	ring->size = size;

	return 0;
}

/*
 * Frees all, also if there is none. Nobody has it mapped any more. Then there is
 * none: a wheel that could not be set up may be set up without.
 */
void tw_event_ring_destroy(struct tw_event_ring *ring)
{
	vfree(ring->kernel);
	vfree(ring->user);
	memset(ring, 0, sizeof(*ring));
}

size_t tw_event_ring_bytes(const struct tw_event_ring *ring)
{
	return ring->size ?
		tw_event_ring_kernel_bytes(ring->size) + PAGE_SIZE : 0;
}

/*
 * How many events it has room for in a row, before it starts over; none if the
 * consumers' index is nonsense.
 */
u64 tw_event_ring_room(const struct tw_event_ring *ring)
{
	/* Pairs with the consumers' release: they have read what was there. */
	u64 used = ring->tail - smp_load_acquire(&ring->user->head);
	u64 left = ring->size - (ring->tail & (ring->size - 1));

	return used < ring->size ? min(ring->size - used, left) : 0;
}

/* Whether there is nothing to consume, as far as the consumers say. */
bool tw_event_ring_empty(const struct tw_event_ring *ring)
{
	return READ_ONCE(ring->kernel->tail) == READ_ONCE(ring->user->head);
}

/* Where the next events are to be written, as many as there is room for. */
struct timewheel_event *tw_event_ring_next(struct tw_event_ring *ring)
{
	struct timewheel_event *events =
		(void *)ring->kernel + TIMEWHEEL_EVENTS_AT;

	return &events[ring->tail & (ring->size - 1)];
}

/* Lets consumers see events that have been written. */
void tw_event_ring_produce(struct tw_event_ring *ring, u32 n)
{
	ring->tail += n;
	/* Pairs with the consumers' acquire: they see the events whole. */
	smp_store_release(&ring->kernel->tail, ring->tail);
}
