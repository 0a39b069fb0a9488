/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Touch words: a u64 for each token, which its users may map and write. They lie
 * in blocks of one page each, by the token's index.
 *
 *	 63           32 31            0
 *	+---------------+---------------+
 *	|  generation   |     stamp     |
 *	+---------------+---------------+
 *
 * Stamp s says "touched on tick s", in its low 32 bits; 0 says "not touched", so
 * a tick whose low bits are 0 is stamped as the one after. A stamp that is up to a
 * second ahead of now may be true, as the clock was read before the word: it counts
 * as now, and again when its tick comes. A stamp that is further ahead was written
 * before the clock was set back, or is nonsense. A word that is not of the token's
 * generation was written by a program with an older handle, or is nonsense. Either
 * becomes a touch of now, once, which makes a token late, never early. A stamp that
 * adds nothing is cleared when it is seen, and a token that can be touched is seen
 * within TW_MAX_STAMPED ticks: so no stamp grows so old that it looks like one of
 * the future. The word of what is no token is 0.
 *
 * Nothing that is read here is trusted, and each word is read once. It knows
 * neither tokens nor the programs that map the pages.
 */
#ifndef TW_WORDS_H
#define TW_WORDS_H

#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/types.h>

#include "blocks.h"

/*
 * A token that can be touched has its deadline and its timeout less than this many ticks
 * ahead. A reader may then be as many ticks late before an old stamp looks like one of the
 * future.
 */
#define TW_MAX_STAMPED	BIT_ULL(30)

/* The ns that a stamp may be ahead of a clock that was read before the word. */
#define TW_MAX_AHEAD_NS	1000000000ULL

#define TW_WORDS_PER_PAGE	((u32)(PAGE_SIZE / sizeof(u64)))

/* Makes a directory of pages for so many tokens. Return: 0 or -ENOMEM. */
static inline int tw_words_init(struct tw_blocks *words, u32 max)
{
	return tw_blocks_init(words, (max - 1) / TW_WORDS_PER_PAGE + 1,
			      PAGE_SIZE);
}

/* Returns how many tokens there are words for. The caller holds the owner's lock. */
static inline u32 tw_words_capacity(const struct tw_blocks *words)
{
	return words->allocated * TW_WORDS_PER_PAGE;
}

/* Returns the word of a token. */
static inline u64 *tw_words_at(const struct tw_blocks *words, u32 index)
{
	u64 *page = words->block[index / TW_WORDS_PER_PAGE];

	return page + index % TW_WORDS_PER_PAGE;
}

/* Returns the longest timeout in ns that a stamp can tell, with ticks of so many ns. */
static inline u64 tw_words_max_timeout(u64 tick)
{
	return S64_MAX / tick < TW_MAX_STAMPED ?
	       S64_MAX : (TW_MAX_STAMPED - 1) * tick - 1;
}

/* Returns how many ticks of so many ns a stamp may be ahead: at least the next one. */
static inline u32 tw_words_max_ahead(u64 tick)
{
	return max(TW_MAX_AHEAD_NS / tick, 1ULL);
}

/* Returns the word of a token that has not been touched. */
static inline u64 tw_stamp_none(u32 generation)
{
	return (u64)generation << 32;
}

/* Returns the word that says that a token was touched on this tick. */
static inline u64 tw_stamp(u32 generation, u64 tick)
{
	return tw_stamp_none(generation) | ((u32)tick ?: 1);
}

/* Whether a stamp that makes sense is ahead of now. */
static inline bool tw_stamp_is_ahead(u64 word, u64 now)
{
	return (u32)now - (u32)word > S32_MAX;
}

/*
 * Whether a word makes sense for a token of this generation: its stamp is not
 * older than 2^31 ticks, nor more than @max_ahead of them ahead.
 */
static inline bool tw_stamp_sane(u64 word, u32 generation, u64 now,
				 u32 max_ahead)
{
	u32 age = (u32)now - (u32)word;

	return word >> 32 == generation &&
	       (!(u32)word || age < BIT(31) || -age <= max_ahead);
}

/* Returns the tick to which a word that makes sense raises a token, 0 if it was not touched. */
static inline u64 tw_stamp_due(u64 word, u64 now, u64 timeout)
{
	u32 age = (u32)now - (u32)word;

	if (!(u32)word)
		return 0;
	if (age > S32_MAX)
		age = 0;

	return now + 1 + timeout > age ? now + 1 + timeout - age : 0;
}

#endif /* TW_WORDS_H */
