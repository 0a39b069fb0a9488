/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Levels: where a token is filed by the tick on which it is due, and which list
 * is the next to be looked at.
 *
 * Levels know lists of indices and ticks. They know neither what a token is, nor
 * when it is really due, nor what time it is. All of it is under the ring's lock.
 */
#ifndef TW_LEVELS_H
#define TW_LEVELS_H

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
 * @lists: the lists of their slots, and one aside; ring's lock
 * @level: level 0 with a slot per tick, as many as the user asked for and one,
 *	each further one coarser, and from @back on those for tokens put back
 * @nr: levels in use; constant
 * @back: the finest level for tokens put back; constant
 * @next_level: which level is to be looked at on @next; valid unless that is
 *	TW_NEVER; ring's lock
 * @next: the earliest tick on which a level is to be looked at; ring's lock
 * @aside: a list that no level has: of tokens that wait for no tick; constant
 * @occupied: bits of all levels; ring's lock
 */
struct tw_levels {
	struct tw_lists	lists;
	struct tw_level	level[TW_LEVELS];
	u32		nr;
	u32		back;
	u32		next_level;
	u64		next;
	u32		aside;
	unsigned long	*occupied;
};

/**
 * struct tw_earliest - the list that is to be looked at first
 * @list: the list
 * @back: its tokens were put back
 * @origin: from where its tokens are filed again
 * @limit: due tick of those of its tokens that are due, the others are due later
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
bool tw_levels_have_room(const struct tw_levels *levels, u32 tokens);
size_t tw_levels_bytes(const struct tw_levels *levels);
void tw_levels_file(struct tw_levels *levels, u32 index, u64 due, u64 origin);
void tw_levels_file_back(struct tw_levels *levels, u32 index, u64 due,
			 u64 origin);
void tw_levels_unfile(struct tw_levels *levels, u32 index);
void tw_levels_emptied(struct tw_levels *levels, u32 list);
bool tw_levels_earliest(const struct tw_levels *levels, u64 now,
			struct tw_earliest *earliest);

/*
 * From where deadlines are filed: now, or the earliest tick that still waits to
 * be looked at if that is before now.
 */
static inline u64 tw_levels_origin(const struct tw_levels *levels, u64 now)
{
	return min(now, levels->next);
}

/* Takes the last entry off a list. */
static inline void tw_levels_pop(struct tw_levels *levels, u32 list)
{
	if (tw_lists_pop(&levels->lists, list))
		tw_levels_emptied(levels, list);
}

#endif /* TW_LEVELS_H */
