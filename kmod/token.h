/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * A token: one pending timeout, and the one word that decides its life.
 *
 *	 63          18 17   16 15           0
 *	+--------------+-------+--------------+
 *	|  due tick    | state |  generation  |
 *	+--------------+-------+--------------+
 *
 * LOCKING lists the states, and the calls that lead from one to another.
 *
 * A caller that has a handle may raise the due tick of an ARMED token with a
 * compare-and-swap and no lock: that is a touch. Every other change of the word
 * happens under the ring's lock, and from ARMED in one go, because touches do
 * not wait for the lock: by compare-and-swap in a take, which fails if a touch came
 * first, by exchange in a move or cancel, which override it.
 *
 * Becoming FREE takes the next generation, so that a compare-and-swap which was
 * prepared for an earlier life of the token fails. The word holds the low 16
 * bits of the generation, the token the rest: both are compared before the swap,
 * and only 65536 lives between a read of the word and the swap could fool it.
 */
#ifndef TW_TOKEN_H
#define TW_TOKEN_H

#include <linux/rhashtable-types.h>
#include <linux/types.h>

#define TW_STATE_SHIFT	16
#define TW_DUE_SHIFT	18
#define TW_LIFE_MASK	((1ULL << TW_DUE_SHIFT) - 1)	/* state, generation */

enum tw_state {
	TW_FREE		= 0,
	TW_ARMED	= 1,
	TW_TAKEN	= 2,
	TW_HELD		= 3,
};

/**
 * struct tw_key - how a caller names a token
 * @by_handle: @value is its handle, else its id
 * @value: handle or id
 * @token: by handle: where the token is, if that has been found out, else NULL
 */
struct tw_key {
	bool		by_handle;
	u64		value;
	struct tw_token	*token;
};

/**
 * struct tw_token - what every token has
 * @word: due tick, state, generation; see above
 * @timeout: ns that a touch adds to now, 0 for none; written under the lock,
 *	read anywhere
 * @place: ARMED: where the lists have it; HELD, and TAKEN on a ring with leases: its
 *	place among the deliveries that are out; under the lock
 * @generation_hi: upper half of the generation; written under the lock while
 *	the token is not ARMED, read anywhere after the word
 * @named: its id is in the id table; under the lock
 *
 * On a ring with ids a token is a struct tw_id_token. Behind either follow, as far as the
 * ring has them: a u64 for the cookie, a struct tw_delivery for leases or periods, and a
 * struct tw_repeat for periods.
 */
struct tw_token {
	u64	word;
	u64	timeout;
	u32	place;
	u16	generation_hi;
	bool	named;
};

/**
 * struct tw_id_token - a token of a wheel with ids
 * @token: the token
 * @id: written under the lock before the token is ARMED, read anywhere after
 *	the word
 * @node: its node in the id table
 */
struct tw_id_token {
	struct tw_token		token;
	u64			id;
	struct rhash_head	node;
};

/**
 * struct tw_delivery - what a token knows of its deliveries
 * @number: the number of the last delivery, 0 for none and on a ring without leases
 * @attempts: deliveries since the token was registered, or since its period began
 *
 * Both are under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_delivery {
	u32	number;
	u32	attempts;
};

/**
 * struct tw_repeat - what makes a token periodic
 * @base: the deadline in ns that comes next, or that the delivery under way is of
 * @period: ns, 0 when the token is not periodic: then the rest means nothing
 * @missed: periods since the last event that had none
 *
 * All of it is under the ring's lock, or the token is TAKEN and its reader's.
 */
struct tw_repeat {
	u64	base;
	u64	period;
	u32	missed;
};

static inline u64 tw_word(u64 due, enum tw_state state, u16 generation)
{
	return due << TW_DUE_SHIFT | (u64)state << TW_STATE_SHIFT | generation;
}

static inline u64 tw_word_due(u64 word)
{
	return word >> TW_DUE_SHIFT;
}

static inline enum tw_state tw_word_state(u64 word)
{
	return (word >> TW_STATE_SHIFT) & 3;
}

/* Returns a word of the same life of the token, with another due tick. */
static inline u64 tw_word_with_due(u64 word, u64 due)
{
	return (word & TW_LIFE_MASK) | due << TW_DUE_SHIFT;
}

static inline u32 tw_generation(const struct tw_token *token, u64 word)
{
	return (u32)READ_ONCE(token->generation_hi) << 16 | (u16)word;
}

/* Starts a periodic token anew: @base is its first deadline, and no period has come yet. */
static inline void tw_repeat_start_over(struct tw_repeat *repeat, u64 base)
{
	repeat->base = base;
	repeat->missed = 0;
}

#endif /* TW_TOKEN_H */
