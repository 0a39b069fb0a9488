// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Levels: where a token is filed by the tick on which it is due, and which list
 * is the next to be looked at.
 *
 * Level 0 is the user's ring of N slots of one tick, and the slot that the hand
 * is on, so that a whole lap ahead is still on it: a timeout as long as the ring
 * needs no filing again. Each level k >= 1 has 64 slots, a slot being a block of
 * G(k) ticks:
 *
 *	G(1) = max(1, N / 2), G(k + 1) = 32 G(k)
 *
 *	level	for N = 3600, tick 1 s		reaches
 *	0	1 s				1 h
 *	1	30 min				31 h
 *	2	16 h				42 d
 *	3	21 d 8 h			3.7 years
 *	...	and so on up to 2^46 ticks
 *
 * A token is filed at the lowest level that reaches its due tick from the origin,
 * which is now, or the earliest tick that still waits to be looked at if that is
 * before now. Block b of a level is opened when block b - 1 begins: its tokens
 * are then filed again from there, further in. Each token is filed at most once per
 * level, and the thread that files it has a whole block of time.
 *
 * Ticks are looked at in their order, whatever now is by then: each look takes
 * the level whose next block comes first, and that tick is the origin. A stall shifts
 * nothing. The one rule that all rests on:
 *
 *	A token's list is looked at no later than its due tick.
 *
 * A level's blocks are known by its earliest one, from which its slots are
 * counted. A clock that is stepped back brings an earlier one: lists beyond its lap
 * are then looked at a lap or more too soon, and filed further out, each time. That
 * costs time, never exactness.
 *
 * A token that is put back may be due laps before the others, which would then be
 * looked at too soon as well. Tokens that are put back have more levels to themselves,
 * of 64 slots of 1, 32, 1024 and so on ticks: few tokens are put back at a time, as many
 * as readers had taken. A token that is looked at there and has become due later than
 * now, because it was touched, is then filed among the others.
 *
 * There is no hand to keep: it is the time that the caller says it is.
 */
#include <linux/bitmap.h>
#include <linux/bug.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "levels.h"

#define TW_OUTER_SLOTS	64	/* of each level but the user's: one word of bits */
#define TW_OUTER_SHIFT	5	/* log2 of the ratio of two levels' widths */

/* Returns the tick on which a level is next to be looked at. */
static u64 tw_level_tick(const struct tw_levels *levels, u32 nr)
{
	const struct tw_level *level = &levels->level[nr];

	if (level->next == TW_NEVER)
		return TW_NEVER;

	return (level->next - level->early) * level->width;
}

/*
 * Finds the lowest level that reaches a tick from the origin, and the block there. @nr: the
 * finest level.
 */
static inline u32 tw_levels_reach(const struct tw_levels *levels,
				  u32 nr, u64 due, u64 origin,
				  u64 *block)
{
	*block = due;
	if (due - origin < levels->level[nr].slots)
		return nr;

	nr++;
	due /= levels->level[nr].width;
	origin /= levels->level[nr].width;
	while (due - origin >= TW_OUTER_SLOTS) {
		due >>= TW_OUTER_SHIFT;
		origin >>= TW_OUTER_SHIFT;
		nr++;
	}
	*block = due;

	return nr;
}

static u32 tw_level_of_list(const struct tw_levels *levels, u32 list)
{
	if (list < levels->level[0].slots)
		return 0;

	return 1 + (list - levels->level[0].slots) / TW_OUTER_SLOTS;
}

/* Moves on from the block whose slot has just become empty. */
static void tw_level_advance(struct tw_level *level)
{
	u32 from = level->at;

	if (!level->count) {
		level->next = TW_NEVER;
		return;
	}
	level->at = find_next_bit(level->occupied, level->slots, from);
	if (level->at < level->slots) {
		level->next += level->at - from;
	} else {
		level->at = find_first_bit(level->occupied, from);
		level->next += level->slots + level->at - from;
	}
}

static void tw_levels_find_next(struct tw_levels *levels)
{
	u32 nr;

	levels->next = TW_NEVER;
	for (nr = 0; nr < levels->nr; nr++) {
		u64 tick = tw_level_tick(levels, nr);

		if (tick < levels->next) {
			levels->next = tick;
			levels->next_level = nr;
		}
	}
}

/* Puts a token on the list of a block. */
static void tw_level_file(struct tw_levels *levels, u32 nr, u64 block,
			  u32 index, struct tw_token *token)
{
	struct tw_level *level = &levels->level[nr];
	u32 slot = block % level->slots;

	if (tw_lists_add(&levels->lists, level->first + slot, index, token)) {
		__set_bit(slot, level->occupied);
		level->count++;
	}
	if (block < level->next) {
		u64 tick;

		level->next = block;
		level->at = slot;
		tick = tw_level_tick(levels, nr);
		if (tick < levels->next) {
			levels->next = tick;
			levels->next_level = nr;
		}
	}
}

/* Files a token as tw_levels_file() does, wherever it is due. */
void tw_levels_file_far(struct tw_levels *levels, u32 index,
			struct tw_token *token, u64 due, u64 origin)
{
	u64 block;
	u32 nr = tw_levels_reach(levels, 0, due, origin, &block);

	tw_level_file(levels, nr, block, index, token);
}

/*
 * Puts a token on the list of a tick that has passed, perhaps long ago, before all ticks that
 * tokens are filed for: see above. @origin: the tick from which it is filed, at most @due.
 */
void tw_levels_file_back(struct tw_levels *levels, u32 index,
			 struct tw_token *token, u64 due, u64 origin)
{
	u64 block;
	u32 nr = tw_levels_reach(levels, levels->back, due, origin, &block);

	tw_level_file(levels, nr, block, index, token);
}

/* Deals with a list that its last token has left. */
void tw_levels_emptied(struct tw_levels *levels, u32 list)
{
	struct tw_level *level;
	u32 slot, nr;

	if (list >= levels->free)
		return;

	nr = tw_level_of_list(levels, list);
	level = &levels->level[nr];
	slot = list - level->first;
	__clear_bit(slot, level->occupied);
	level->count--;
	if (slot != level->at)
		return;

	tw_level_advance(level);
	if (levels->next_level == nr)
		tw_levels_find_next(levels);
}

/*
 * Finds the list that is to be looked at first. A token on a list of a finest level is due if
 * its list's tick is its due tick; the list comes only when nothing earlier is left. No token
 * on a coarser level is due yet: all of them are filed again, further in. Returns whether
 * there is a list to look at by now.
 */
bool tw_levels_earliest(const struct tw_levels *levels, u64 now,
			struct tw_earliest *earliest)
{
	const struct tw_level *level = &levels->level[levels->next_level];

	if (levels->next > now)
		return false;
	earliest->list = level->first + level->at;
	earliest->back = levels->next_level >= levels->back;
	earliest->origin = levels->next;
	earliest->limit = level->early ? 0 : levels->next;

	return true;
}

/* Adds a level, whose slots' lists follow the lists of the level before. */
static void tw_levels_add(struct tw_levels *levels, u64 width, u32 slots,
			  u32 early)
{
	struct tw_level *level = &levels->level[levels->nr];

	*level = (struct tw_level) {
		.next = TW_NEVER, .width = width, .slots = slots,
		.early = early, .first = levels->free,
		.occupied = levels->nr ? level[-1].occupied +
					 BITS_TO_LONGS(level[-1].slots) :
					 levels->occupied,
	};
	levels->free += slots;
	levels->nr++;
}

/* Adds levels up to one that reaches every tick: the finest, and coarser ones. */
static void tw_levels_add_all(struct tw_levels *levels, u32 slots, u64 width)
{
	tw_levels_add(levels, 1, slots, 0);
	for (; ; width <<= TW_OUTER_SHIFT) {
		tw_levels_add(levels, width, TW_OUTER_SLOTS, 1);
		if (TW_MAX_TICK / width < TW_OUTER_SLOTS)
			break;
	}
}

static int tw_levels_init_slots(struct tw_levels *levels, u32 ring)
{
	levels->occupied = kvcalloc(BITS_TO_LONGS(ring + 1) + TW_LEVELS - 1,
				    sizeof(long), TW_GFP);
	if (!levels->occupied)
		return -ENOMEM;

	levels->next = TW_NEVER;
	tw_levels_add_all(levels, ring + 1, max(ring / 2, 1U));
	levels->back = levels->nr;
	tw_levels_add_all(levels, TW_OUTER_SLOTS, TW_OUTER_SLOTS / 2);

	return 0;
}

/*
 * Makes zeroed levels empty ones, for a user's ring of so many slots, and at most
 * @max_tokens. May sleep. Returns 0, or -ENOMEM with nothing left behind.
 */
int tw_levels_init(struct tw_levels *levels, struct tw_arena *tokens, u32 slots,
		   u32 max_tokens)
{
	int err;

	BUILD_BUG_ON(BITS_PER_LONG != TW_OUTER_SLOTS);
	err = tw_levels_init_slots(levels, slots);
	if (err)
		return err;
	err = tw_lists_init(&levels->lists, tokens, levels->free + 1,
			    max_tokens);
	if (err)
		kvfree(levels->occupied);

	return err;
}

void tw_levels_destroy(struct tw_levels *levels)
{
	kvfree(levels->occupied);
	tw_lists_destroy(&levels->lists);
}

size_t tw_levels_bytes(const struct tw_levels *levels)
{
	return (BITS_TO_LONGS(levels->level[0].slots) + TW_LEVELS - 1) *
	       sizeof(long) +
	       levels->lists.nr * sizeof(struct tw_list) +
	       tw_blocks_bytes(&levels->lists.chunks);
}
