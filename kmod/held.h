/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Held: the deliveries that are out, in the order in which their leases end.
 *
 * Their memory is taken when the ring is set up, so that a delivery needs none, and
 * is as much as the ring may have out at once. A delivery that is being copied to its
 * reader has a place here, but no lease yet.
 *
 * One array has the numbers of all places: first a binary heap by the end of the
 * lease, then places of deliveries that are being copied, then free places.
 * Part of the core: it knows tokens by their index only. All of it is under the ring's
 * lock.
 */
#ifndef TW_HELD_H
#define TW_HELD_H

#include <linux/types.h>

/**
 * struct tw_holder - an open file that reads, as far as the core knows it
 * @count: deliveries that it holds; ring's lock
 * @first: the newest of them, the number of a place, if there is one; ring's lock
 */
struct tw_holder {
	u32	count;
	u32	first;
};

/**
 * struct tw_place - of one delivery
 * @holder: the open file that holds it; not while it is being copied
 * @end: the tick on which its lease ends; not while it is being copied
 * @token: the token's index
 * @at: the index of this place in the order
 * @next: number of the next place of @holder, or TW_NIL
 * @prev: number of the one before, or TW_NIL
 */
struct tw_place {
	struct tw_holder	*holder;
	u64			end;
	u32			token;
	u32			at;
	u32			next;
	u32			prev;
};

/**
 * struct tw_held - all deliveries of a ring
 * @place: places by number; NULL on a ring without leases
 * @order: their numbers, in order; each @at says where
 * @max: how many places there are; constant
 * @count: how many are held
 * @used: how many are held or being copied
 */
struct tw_held {
	struct tw_place	*place;
	u32		*order;
	u32		max;
	u32		count;
	u32		used;
};

int tw_held_init(struct tw_held *held, u32 max);
void tw_held_destroy(struct tw_held *held);
size_t tw_held_bytes(const struct tw_held *held);
u32 tw_held_begin(struct tw_held *held, u32 token);
void tw_held_undo(struct tw_held *held, u32 nr);
void tw_held_hold(struct tw_held *held, u32 nr, struct tw_holder *holder, u64 end);
void tw_held_set_end(struct tw_held *held, u32 nr, u64 end);
void tw_held_end(struct tw_held *held, u32 nr);

/* Returns how many more deliveries there is room for. */
static inline u32 tw_held_room(const struct tw_held *held)
{
	return held->max - held->used;
}

/* Returns the place of the delivery whose lease ends first. At least one is held. */
static inline const struct tw_place *tw_held_first(const struct tw_held *held)
{
	return &held->place[held->order[0]];
}

#endif /* TW_HELD_H */
