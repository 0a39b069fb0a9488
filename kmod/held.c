// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Held: the deliveries that are out, in the order in which their leases end.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "arena.h"
#include "held.h"

/*
 * Makes room for @max deliveries, at least 1. May sleep. Returns 0, or -ENOMEM with nothing
 * left behind.
 */
int tw_held_init(struct tw_held *held, u32 max)
{
	u32 i;

	*held = (struct tw_held) {
		.place	= kvcalloc(max, sizeof(*held->place), TW_GFP),
		.order	= kvcalloc(max, sizeof(*held->order), TW_GFP),
		.max	= max,
	};
	if (!held->place || !held->order) {
		tw_held_destroy(held);
		return -ENOMEM;
	}
	for (i = 0; i < max; i++) {
		held->order[i] = i;
		held->place[i].at = i;
		cond_resched();
	}

	return 0;
}

/* Frees the places, which nobody uses any more. May sleep. */
void tw_held_destroy(struct tw_held *held)
{
	kvfree(held->place);
	kvfree(held->order);
	*held = (struct tw_held) { };
}

size_t tw_held_bytes(const struct tw_held *held)
{
	return held->max * (sizeof(*held->place) + sizeof(*held->order));
}

static void tw_held_set(struct tw_held *held, u32 at, u32 nr)
{
	held->order[at] = nr;
	held->place[nr].at = at;
}

static void tw_held_swap(struct tw_held *held, u32 a, u32 b)
{
	u32 nr = held->order[a];

	tw_held_set(held, a, held->order[b]);
	tw_held_set(held, b, nr);
}

static u64 tw_held_end_at(const struct tw_held *held, u32 at)
{
	return held->place[held->order[at]].end;
}

/* Moves a place up, past every place whose lease ends later. */
static void tw_held_up(struct tw_held *held, u32 at)
{
	while (at) {
		u32 above = (at - 1) / 2;

		if (tw_held_end_at(held, above) <= tw_held_end_at(held, at))
			return;
		tw_held_swap(held, above, at);
		at = above;
	}
}

/* Moves a place down, past every place whose lease ends earlier. */
static void tw_held_down(struct tw_held *held, u32 at)
{
	/* There are at most 2^28 places, and this does not overflow. */
	for (;;) {
		u32 below = 2 * at + 1;

		if (below >= held->count)
			return;
		if (below + 1 < held->count &&
		    tw_held_end_at(held, below + 1) < tw_held_end_at(held, below))
			below++;
		if (tw_held_end_at(held, at) <= tw_held_end_at(held, below))
			return;
		tw_held_swap(held, at, below);
		at = below;
	}
}

/* Begins a delivery of a token. The caller knows that there is room for it. Returns its place. */
u32 tw_held_begin(struct tw_held *held, u32 token)
{
	u32 nr = held->order[held->used++];

	held->place[nr].token = token;

	return nr;
}

/* Ends a delivery that was being copied and has failed. */
void tw_held_undo(struct tw_held *held, u32 nr)
{
	tw_held_swap(held, held->place[nr].at, --held->used);
}

/*
 * Makes a delivery that has been copied a held one, until tick @end. All that @holder holds is
 * linked, and the release of its file finds all of it.
 */
void tw_held_hold(struct tw_held *held, u32 nr, struct tw_holder *holder, u64 end)
{
	struct tw_place *place = &held->place[nr];

	place->holder = holder;
	place->end = end;
	place->prev = TW_NIL;
	place->next = holder->count ? holder->first : TW_NIL;
	if (place->next != TW_NIL)
		held->place[place->next].prev = nr;
	holder->first = nr;
	holder->count++;

	tw_held_swap(held, place->at, held->count++);
	tw_held_up(held, place->at);
}

/* Moves the number at a place of the heap to where it belongs. */
static void tw_held_move(struct tw_held *held, u32 at)
{
	tw_held_up(held, at);
	tw_held_down(held, at);
}

/* Lets the lease of a delivery that is held end on another tick. */
void tw_held_set_end(struct tw_held *held, u32 nr, u64 end)
{
	held->place[nr].end = end;
	tw_held_move(held, held->place[nr].at);
}

/* Ends a delivery that is held. */
void tw_held_end(struct tw_held *held, u32 nr)
{
	struct tw_place *place = &held->place[nr];
	u32 at = place->at;

	if (place->prev != TW_NIL)
		held->place[place->prev].next = place->next;
	else
		place->holder->first = place->next;
	if (place->next != TW_NIL)
		held->place[place->next].prev = place->prev;
	place->holder->count--;

	tw_held_swap(held, at, --held->count);
	if (at < held->count)
		tw_held_move(held, at);
	tw_held_swap(held, held->count, --held->used);
}
