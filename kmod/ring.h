/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ring: the timing wheel itself. Tokens on lists by the tick on which they are
 * due, the map from id to token, and how they are registered, touched, moved,
 * cancelled, taken and put back.
 *
 * It is told the time and tells when it next wants to be looked at. It knows no
 * clock, no timer, no file, no user pointer and no wait queue, and also builds
 * in user space. The locking is explained at the head of wheel.c.
 */
#ifndef TW_RING_H
#define TW_RING_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "delivery.h"
#include "list.h"
#include "token.h"
#include "words.h"

#define TW_MAX_TICK	((1ULL << 46) - 1)	/* what a word has bits for */
#define TW_NEVER	U64_MAX
#define TW_LEVELS	11	/* enough to reach TW_MAX_TICK from any ring */

/**
 * struct tw_now - one reading of the wheel's clock
 * @ns: the time
 * @tick: the tick that the hand is on: @ns / tick
 */
struct tw_now {
	u64	ns;
	u64	tick;
};

/**
 * struct tw_level - one ring of slots; level 0 is the user's own
 * @next: earliest block that may have tokens, TW_NEVER when none has; a token
 *	in slot s is due no earlier than the first block >= @next that falls on
 *	s; ring's lock
 * @width: ticks per block; constant
 * @slots: how many slots; constant
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
	u32		at;
	u32		first;
	u32		count;
	unsigned long	*occupied;
};

/**
 * struct tw_ring - tokens and where they are
 * @lock: see wheel.c
 * @tick: ns per tick; constant
 * @max_due: last tick that a deadline may have; constant
 * @slots: slots of the user's ring; constant
 * @max_tokens: most tokens in use at once; constant
 * @room: how many may be in use for another to be registered: @max_tokens, or
 *	0 while the ring is draining; @lock
 * @cookie_at: offset of a token's cookie, 0 without cookies; constant
 * @has_ids: tokens have ids; constant
 * @rich: tokens have touch words or deliveries to look after; constant
 * @nr_levels: levels in use; constant
 * @level: level 0 with a slot per tick, as many and one, each further one
 *	coarser
 * @next: the earliest tick on which a level is to be looked at; @lock
 * @next_level: which level that is; valid unless @next is TW_NEVER; @lock
 * @front: list of tokens that were put back, looked at first; constant
 * @tokens: the tokens; @lock, look-ups without it
 * @words: touch words, if the ring has them: then all but the words changes
 *	under @lock, touches too
 * @delivery: what becomes of tokens that have been read
 * @lists: lists of tokens; @lock
 * @ids: id to token; changed under @lock, look-ups without it
 * @occupied: bits of all levels; @lock
 * @pending: ARMED tokens; @lock
 * @registered: count; @lock
 * @cancelled: count; @lock
 * @moved: count; @lock
 * @delivered: count; @lock
 * @put_back: count; @lock
 * @refiled: count; @lock
 */
struct tw_ring {
	spinlock_t		lock;	/* the wheel's: see wheel.c */
	u64			tick;
	u64			max_due;
	u32			slots;
	u32			max_tokens;
	u32			room;
	u32			cookie_at;
	bool			has_ids;
	bool			rich;
	u32			nr_levels;
	struct tw_level		level[TW_LEVELS];
	u64			next;
	u32			next_level;
	u32			front;
	struct tw_arena		tokens;
	struct tw_blocks	words;
	struct tw_deliveries	delivery;
	struct tw_lists		lists;
	struct rhashtable	ids;
	unsigned long		*occupied;
	u32			pending;
	u64			registered;
	u64			cancelled;
	u64			moved;
	u64			delivered;
	u64			put_back;
	u64			refiled;
};

/**
 * struct tw_ring_setup - how a ring is to be
 * @tick: ns per tick, 1 and more
 * @slots: 1..65536
 * @max_tokens: 1..2^28
 * @ids: tokens have ids
 * @cookies: tokens have cookies
 * @words: tokens have touch words
 * @periods: tokens may be periodic
 * @max_attempts: after how many deliveries a token is buried, 0 for never
 * @lease: ns for which a delivery is held, a tick and more, 0 for not at all
 */
struct tw_ring_setup {
	u64	tick;
	u32	slots;
	u32	max_tokens;
	bool	ids;
	bool	cookies;
	bool	words;
	bool	periods;
	u32	max_attempts;
	u64	lease;
};

/**
 * struct tw_deadline - when a token is to be due
 * @due: on which tick
 * @timeout: ns that a touch then adds to now, 0 for none
 */
struct tw_deadline {
	u64	due;
	u64	timeout;
};

/**
 * struct tw_found - a token and the word that it had when it was found
 * @token: the token
 * @word: its word, ARMED
 */
struct tw_found {
	struct tw_token	*token;
	u64		word;
};

int tw_ring_init(struct tw_ring *ring, const struct tw_ring_setup *setup);
void tw_ring_destroy(struct tw_ring *ring);
int tw_ring_grow(struct tw_ring *ring);
size_t tw_ring_bytes(struct tw_ring *ring);
u64 tw_ring_next(const struct tw_ring *ring);
int tw_ring_by_id(struct tw_ring *ring, u64 id, struct tw_found *found);

int tw_ring_register(struct tw_ring *ring, const struct tw_now *now, u64 id,
		     u64 cookie, const struct tw_deadline *deadline,
		     u64 *handle);
void tw_ring_move(struct tw_ring *ring, struct tw_found *found,
		  const struct tw_now *now, const struct tw_deadline *deadline);
void tw_ring_cancel(struct tw_ring *ring, struct tw_found *found);

void tw_ring_judge(struct tw_ring *ring, struct tw_found *found, u64 now);
u32 tw_ring_find_due(struct tw_ring *ring, u64 now, unsigned int *work);
unsigned int tw_ring_take(struct tw_ring *ring, u64 now, unsigned int *work,
			  u32 *batch, unsigned int max);
void tw_ring_put_back(struct tw_ring *ring, const u32 *batch, unsigned int n);
unsigned int tw_ring_delivered(struct tw_ring *ring, const u32 *batch,
			       unsigned int n, u64 *due);
unsigned int tw_ring_delivered_to(struct tw_ring *ring, const u32 *batch,
				  unsigned int n, u64 *due,
				  const struct tw_now *now,
				  struct tw_taker *taker);

u32 tw_ring_scan(const struct tw_ring *ring, u32 *next, unsigned int *work,
		 u64 *word);
u32 tw_ring_index(const struct tw_ring *ring, const struct tw_token *token);

/* What delivery.c, which is part of the ring, is made of. */
void tw_file(struct tw_ring *ring, u32 index, u64 due, u64 frame);
void tw_unfile(struct tw_ring *ring, u32 index);
void tw_unname(struct tw_ring *ring, struct tw_token *token);
void tw_free(struct tw_ring *ring, struct tw_token *token, u32 index);

static inline u64 tw_token_id(const struct tw_ring *ring,
			      const struct tw_token *token)
{
	return ring->has_ids ?
		READ_ONCE(((const struct tw_id_token *)token)->id) : 0;
}

static inline bool tw_ring_has_words(const struct tw_ring *ring)
{
	return ring->words.block;
}

static inline bool tw_ring_has_deliveries(const struct tw_ring *ring)
{
	return ring->delivery.at;
}

/* From where deadlines are filed: nothing before it waits to be looked at. */
static inline u64 tw_frame(const struct tw_ring *ring, u64 now)
{
	return min(now, ring->next);
}

/*
 * Sets the word of a token that was found ARMED under the lock: since then it can
 * only have been touched, which this outdoes.
 */
static inline void tw_found_set(struct tw_found *found, u64 due,
				enum tw_state state)
{
	found->word = xchg(&found->token->word,
			   tw_word(due, state, found->word));
}

/* Sets a token's touch word, if there are such: a plain touch may be lost. */
static inline void tw_stamp_set(struct tw_ring *ring, u32 index, u64 word)
{
	if (tw_ring_has_words(ring))
		WRITE_ONCE(*tw_words_at(&ring->words, index), word);
}

/* The due tick of a token that is filed, or that the caller has taken. */
static inline u64 tw_ring_due_tick(const struct tw_ring *ring, u32 index)
{
	const struct tw_token *token = tw_arena_at(&ring->tokens, index);

	return tw_word_due(READ_ONCE(token->word));
}

/* The handle of a token that is not FREE. Under the lock, or by its taker. */
static inline u64 tw_token_handle(const struct tw_token *token, u32 index)
{
	return (u64)tw_generation(token, READ_ONCE(token->word)) << 32 | index;
}

static inline u64 tw_token_cookie(const struct tw_ring *ring,
				  const struct tw_token *token)
{
	return ring->cookie_at ?
		*(const u64 *)((const void *)token + ring->cookie_at) : 0;
}

/*
 * What a touch is made of is inline: it is what a wheel does most.
 */

/**
 * tw_ring_due() - the tick on which a deadline is due
 * @ring: the ring
 * @now: the time
 * @deadline: in ns
 * @due: the tick
 *
 * Return: 0, or -ERANGE when it is beyond the last tick.
 */
static inline int tw_ring_due(const struct tw_ring *ring,
			      const struct tw_now *now, u64 deadline,
			      u64 *due)
{
	if (deadline <= now->ns)
		*due = now->tick;
	else
		*due = deadline / ring->tick + !!(deadline % ring->tick);

	return *due > ring->max_due ? -ERANGE : 0;
}

/* Reads the word before whatever else is then read of the token. */
static inline bool tw_found_armed(struct tw_token *token,
				  struct tw_found *found)
{
	found->token = token;
	/* Pairs with the releases in tw_ring_register() and _put_back(). */
	found->word = smp_load_acquire(&token->word);

	return tw_word_state(found->word) == TW_ARMED;
}

static __always_inline int tw_ring_by_handle(struct tw_ring *ring, u64 handle,
					     struct tw_found *found)
{
	struct tw_token *token = tw_arena_find(&ring->tokens, (u32)handle);

	if (!token || !tw_found_armed(token, found) ||
	    tw_generation(token, found->word) != handle >> 32)
		return -ESTALE;

	return 0;
}

/* Fetches the token of a handle, which is about to be looked up. */
static inline void tw_ring_prefetch_handle(const struct tw_ring *ring,
					   u64 handle)
{
	tw_arena_prefetch(&ring->tokens, (u32)handle);
}

/*
 * Fetches where a token is filed, of which the token itself has been fetched.
 * Under the lock. The place of one that is FREE is none, and may be anywhere.
 */
static inline void tw_ring_prefetch_place(const struct tw_ring *ring,
					  u64 handle)
{
	const struct tw_token *token =
		tw_arena_find(&ring->tokens, (u32)handle);

	if (token)
		tw_arena_prefetch(&ring->lists.chunks,
				  token->place >> TW_CHUNK_SHIFT);
}

/* The tick to which a touch raises a token with this timeout. */
static inline int tw_touch_due(const struct tw_ring *ring,
			       const struct tw_now *now, u64 timeout,
			       u64 *due)
{
	return timeout ? tw_ring_due(ring, now, now->ns + timeout, due) :
			 -EINVAL;
}

/**
 * tw_ring_touch() - due a whole timeout from now, if that is later
 * @ring: the ring, its lock not needed
 * @found: the token; on success with the word that it had before
 * @now: the time
 * @due: on which tick it is due then
 *
 * The token stays where it is filed: whoever looks there files it again.
 *
 * Return: 0; -ESTALE when it is no longer pending; -EINVAL when it has no
 * timeout; -ERANGE.
 */
static __always_inline int tw_ring_touch(struct tw_ring *ring,
					 struct tw_found *found,
					 const struct tw_now *now, u64 *due)
{
	struct tw_token *token = found->token;
	const u64 life = found->word & TW_LIFE_MASK;
	u64 word = found->word;

	while ((word & TW_LIFE_MASK) == life) {
		u64 timeout = READ_ONCE(token->timeout);
		int err = tw_touch_due(ring, now, timeout, due);

		found->word = word;
		if (!err && *due > tw_word_due(word)) {
			if (try_cmpxchg64(&token->word, &word,
					  tw_word_with_due(word, *due)))
				return 0;
			continue;
		}
		/* Nothing to swap: was it still this life's timeout? Pairs
		 * with the release in tw_ring_register().
		 */
		smp_rmb();
		word = READ_ONCE(token->word);
		if (word == found->word) {
			*due = tw_word_due(word);
			return err;
		}
	}

	return -ESTALE;
}

#endif /* TW_RING_H */
