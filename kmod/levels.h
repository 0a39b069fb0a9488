/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Levels: where a token is filed by the tick on which it is due, and which list
 * is the next to be looked at.
 *
 * Levels know lists of indices and ticks. They know neither what a token is, nor
 * when it is really due, nor what time it is. All of it is under the ring's lock.
 */
#ifndef TW_LEVELS_H
#define TW_LEVELS_H

#include <linux/bitmap.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include "list.h"

#define TW_MAX_TICK	((1ULL << 46) - 1)	/* what a word has bits for */
#define TW_NEVER	U64_MAX
#define TW_LEVELS	(11 + 9)	/* enough to reach TW_MAX_TICK, twice */

/**
 * struct tw_level - one ring of slots
 * @next: earliest block that may have tokens, TW_NEVER when none has; a token
 *	in slot s is due no earlier than the first block >= @next that falls on
 *	s; ring's lock
 * @width: ticks per block; constant
 * @slots: how many slots; constant
 * @early: how many blocks before its own a block is opened, 0 or 1; constant
 * @at: slot of block @next; valid unless that is TW_NEVER; ring's lock
 * @first: list of slot 0; constant
 * @count: slots that have tokens; ring's lock
 * @occupied: a bit for each slot that has tokens; ring's lock
 *
 * A block is a tick number divided by @width; block b is in slot b % slots.
 */
struct tw_level {
	u64		next;
	u64		width;
	u32		slots;
	u32		early;
	u32		at;
	u32		first;
	u32		count;
	unsigned long	*occupied;
};

/**
 * struct tw_levels - all levels of a ring
 * @lists: the lists of their slots, and two that no level has; ring's lock
 * @level: level 0 with a slot per tick, as many as the user asked for and one,
 *	each further one coarser, and from @back on levels for tokens put back
 * @nr: levels in use; constant
 * @back: the finest level for tokens put back; constant
 * @next_level: which level is to be looked at on @next; valid unless that is
 *	TW_NEVER; ring's lock
 * @next: the earliest tick on which a level is to be looked at; ring's lock
 * @free: a list that no level has: of tokens that are FREE after a life; constant
 * @occupied: bits of all levels; ring's lock
 */
struct tw_levels {
	struct tw_lists	lists;
	struct tw_level	level[TW_LEVELS];
	u32		nr;
	u32		back;
	u32		next_level;
	u64		next;
	u32		free;
	unsigned long	*occupied;
};

/**
 * struct tw_earliest - the list that is to be looked at first
 * @list: the list
 * @back: its tokens were put back
 * @origin: the tick from which its tokens are filed again
 * @limit: tokens on the list that are due later than this tick are not due yet
 */
struct tw_earliest {
	u32	list;
	bool	back;
	u64	origin;
	u64	limit;
};

int tw_levels_init(struct tw_levels *levels, struct tw_arena *tokens, u32 slots,
		   u32 max_tokens);
void tw_levels_destroy(struct tw_levels *levels);
size_t tw_levels_bytes(const struct tw_levels *levels);
void tw_levels_file_far(struct tw_levels *levels, u32 index,
			struct tw_token *token, u64 due, u64 origin);
void tw_levels_file_back(struct tw_levels *levels, u32 index,
			 struct tw_token *token, u64 due, u64 origin);
void tw_levels_emptied(struct tw_levels *levels, u32 list);
bool tw_levels_earliest(const struct tw_levels *levels, u64 now,
			struct tw_earliest *earliest);

/*
 * Returns the tick from which deadlines are filed: now, or the earliest tick that still waits
 * to be looked at if it is before now.
 */
static inline u64 tw_levels_origin(const struct tw_levels *levels, u64 now)
{
	return min(now, levels->next);
}

/*
 * Puts a token, which is on no list, on the list of its due tick. @origin: the tick from which
 * it is filed, tw_levels_origin() or earlier; at most @due. On the user's ring, and no earlier
 * than what comes first there, the slot is found without a division.
 */
static inline void tw_levels_file(struct tw_levels *levels, u32 index,
				  struct tw_token *token, u64 due, u64 origin)
{
	struct tw_level *level = &levels->level[0];
	u64 ahead = due - level->next;
	u32 slot;

	if (due < level->next || ahead >= level->slots ||
	    due - origin >= level->slots) {
		tw_levels_file_far(levels, index, token, due, origin);
		return;
	}
	slot = level->at + (u32)ahead;
	if (slot >= level->slots)
		slot -= level->slots;
	if (unlikely(tw_lists_add(&levels->lists, slot, index, token))) {
		__set_bit(slot, level->occupied);
		level->count++;
	}
}

/* Takes a token off the list that it is on. Returns the token's index. */
static inline u32 tw_levels_unfile(struct tw_levels *levels,
				   const struct tw_token *token)
{
	bool empty;
	u32 index, list = tw_lists_remove(&levels->lists, token, &index, &empty);

	if (unlikely(empty))
		tw_levels_emptied(levels, list);

	return index;
}

/* Takes the last entry off a list. */
static inline void tw_levels_pop(struct tw_levels *levels, u32 list)
{
	if (tw_list_pop(&levels->lists, &levels->lists.list[list]))
		tw_levels_emptied(levels, list);
}

#endif /* TW_LEVELS_H */
