/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Ring: a wheel's tokens, and how one is registered, touched, moved and cancelled.
 *
 * A ring is told the time. It knows no clock, no timer, no file, no user pointer and
 * no wait queue, and also builds in user space. LOCKING explains its lock.
 *
 * The core's files, of which each knows only the files before it:
 *
 *	blocks, arena, list	memory by index, and lists of indices
 *	levels			where a token is filed, which list comes first
 *	words, ids		touch words; the map from id to token
 *	held			deliveries that are out, by the end of their lease
 *	ring			a token's life up to its end by its user
 *	delivery		its life after a read: leases and periods
 *	look			finding and taking what has expired
 *
 * Words that have one meaning here:
 *
 *	tick	a step of the wheel's clock; deadlines are whole ticks
 *	slot	a list of a level; block: the ticks that a slot stands for
 *	file	to put a token on the list of its due tick
 *	origin	the tick from which the level of a deadline is counted
 *	look	to go through what is due, in the order of ticks
 *	stamp	what a touch word says of touches: it raises the token that is looked at
 *	take	to make an expired token the reader's alone, to be copied
 *	holder	an open file that reads, and can hold deliveries
 *	base	the exact deadline, in ns, that a token's periods are counted by
 */
#ifndef TW_RING_H
#define TW_RING_H

#include <linux/lockdep.h>
#include <linux/minmax.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "held.h"
#include "ids.h"
#include "levels.h"
#include "token.h"
#include "words.h"

/* The first delivery's number. Tests begin near the end, to see it wrap. */
#ifndef TW_FIRST_DELIVERY
#define TW_FIRST_DELIVERY	1U
#endif

struct timewheel_info;

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
 * struct tw_deliveries - what a ring knows of deliveries
 * @at: offset of a token's struct tw_delivery, 0 on a ring with neither leases nor
 *	periods; constant
 * @repeat_at: offset of a token's struct tw_repeat, 0 on a ring without periods;
 *	constant
 * @lease: ns, 0 for none; constant
 * @held: on a ring with leases: the deliveries that are out; ring's lock
 * @acked: count; ring's lock
 * @nacked: count; ring's lock
 * @lapsed: count; ring's lock
 * @returned: count; ring's lock
 * @deleted: count; ring's lock
 * @missed: count; ring's lock
 */
struct tw_deliveries {
	u32		at;
	u32		repeat_at;
	u64		lease;
	struct tw_held	held;
	u64		acked;
	u64		nacked;
	u64		lapsed;
	u64		returned;
	u64		deleted;
	u64		missed;
};

/**
 * struct tw_ring - tokens and where they are
 *
 * A touch takes no lock and reads what is constant: that has cache lines of its own,
 * apart from the lock and from what changes under it, which another CPU that registers
 * and cancels writes all the time.
 *
 * @lock: the wheel's: see LOCKING
 * @tick: ns per tick; constant
 * @max_due: last tick that a deadline may have; constant
 * @max_ahead: how many ticks a stamp may be ahead of the hand; constant
 * @slots: slots of the user's ring; constant
 * @max_tokens: most tokens in use at once; constant
 * @first_generation: generation of each token's first life; constant
 * @cookie_at: offset of a token's cookie, 0 without cookies; constant
 * @has_ids: tokens have ids; constant
 * @has_extras: tokens have touch words or deliveries to look after; constant
 * @words: touch words, if the ring has them: then all but the words changes
 *	under @lock, touches too
 * @tokens: the tokens; @lock, look-ups without it
 * @levels: where tokens are filed; @lock
 * @delivery: what is known of deliveries; each field says
 * @ids: id to token; changed under @lock, look-ups without it
 * @room: how many may be in use for another to be registered: @max_tokens, or
 *	0 while the ring is draining; @lock
 * @ready: how many may be in use for another to be registered at once; @lock
 * @pending: ARMED tokens; @lock
 * @registered: count; @lock
 * @cancelled: count; @lock
 * @moved: count; @lock
 * @delivered: count; @lock
 * @put_back: count; @lock
 * @refiled: count; @lock
 */
struct tw_ring {
	spinlock_t		lock;	/* the wheel's: see LOCKING */
	u64			tick ____cacheline_aligned_in_smp;
	u64			max_due;
	u32			max_ahead;
	u32			slots;
	u32			max_tokens;
	u32			first_generation;
	u32			cookie_at;
	bool			has_ids;
	bool			has_extras;
	struct tw_blocks	words;
	struct tw_arena		tokens;
	struct tw_levels	levels ____cacheline_aligned_in_smp;
	struct tw_deliveries	delivery;
	struct rhashtable	ids;
	u32			room;
	u32			ready;
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
 * @max_held: with a lease: how many deliveries can be out, 1..@max_tokens; else 0
 * @lease: ns for which a delivery is held, a tick and more, 0 for not at all
 * @first_generation: generation of each token's first life
 */
struct tw_ring_setup {
	u64	tick;
	u32	slots;
	u32	max_tokens;
	bool	ids;
	bool	cookies;
	bool	words;
	bool	periods;
	u32	max_held;
	u64	lease;
	u32	first_generation;
};

/**
 * struct tw_deadline - when a token is to be due
 * @time: in ns, which the periods of a token that is moved are counted from
 * @due: on which tick
 * @timeout: ns that a touch then adds to now, 0 for none
 */
struct tw_deadline {
	u64	time;
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

/**
 * struct tw_taken - a token that its reader alone has
 * @token: the token
 * @index: its index
 */
struct tw_taken {
	struct tw_token	*token;
	u32		index;
};

int tw_ring_init(struct tw_ring *ring, const struct tw_ring_setup *setup);
void tw_ring_destroy(struct tw_ring *ring);
int tw_ring_grow(struct tw_ring *ring);
size_t tw_ring_bytes(struct tw_ring *ring);
void tw_ring_info(const struct tw_ring *ring, struct timewheel_info *info);
int tw_ring_by_id(struct tw_ring *ring, u64 id, struct tw_found *found);

int tw_ring_register(struct tw_ring *ring, const struct tw_now *now, u64 id,
		     u64 cookie, const struct tw_deadline *deadline,
		     u64 *handle);
void tw_ring_move(struct tw_ring *ring, struct tw_found *found,
		  const struct tw_now *now, const struct tw_deadline *deadline);

void tw_ring_fetch(const struct tw_ring *ring, const struct tw_list *list);
u32 tw_ring_scan(const struct tw_ring *ring, u32 *next, unsigned int *work,
		 u64 *word);

/* These are for the files above and the functions below: parts of a token's life. */
int tw_ring_make_ready(struct tw_ring *ring, u64 id);
void tw_ring_begin_extras(struct tw_ring *ring, struct tw_token *token,
			  u32 index, u32 generation);
int tw_ring_begin_name(struct tw_ring *ring, struct tw_token *token);
void tw_ring_end_name(struct tw_ring *ring, struct tw_token *token);
void tw_ring_free(struct tw_ring *ring, struct tw_token *token, u32 index);
unsigned int tw_ring_free_due(struct tw_ring *ring, const struct tw_taken *batch,
			      unsigned int n, u64 due);

/* Enters the id, if the ring has ids. Return: 0; -EEXIST; -ENOMEM. */
static inline int tw_ring_name(struct tw_ring *ring, struct tw_token *token)
{
	return ring->has_ids ? tw_ring_begin_name(ring, token) : 0;
}

/* Ends the id, if there is one: the token is no longer ARMED, nor HELD. */
static inline void tw_ring_unname(struct tw_ring *ring, struct tw_token *token)
{
	if (token->named)
		tw_ring_end_name(ring, token);
}

/* Returns a token by an index that the ring gave. */
static inline struct tw_token *tw_ring_token(const struct tw_ring *ring,
					     u32 index)
{
	return tw_arena_at(&ring->tokens, index);
}

/* Lets tokens be registered, or not. The caller holds the lock. */
static inline void tw_ring_drain(struct tw_ring *ring, bool drain)
{
	ring->room = drain ? 0 : ring->max_tokens;
	ring->ready = 0;
}

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

/* Returns how many pages the touch words have once all tokens have been used. */
static inline u32 tw_ring_word_pages(const struct tw_ring *ring)
{
	return ring->words.nr;
}

/* Returns a page of touch words, NULL where there has been no token yet. */
static inline void *tw_ring_word_page(const struct tw_ring *ring, u32 nr)
{
	void *page;

	return tw_blocks_find(&ring->words, nr, &page) ? page : NULL;
}

/* Returns the time that a moved token's periods count from: no earlier period is missed. */
static inline u64 tw_ring_base(const struct tw_ring *ring,
			       const struct tw_now *now,
			       const struct tw_deadline *deadline)
{
	return max(deadline->time, now->tick * ring->tick);
}

static inline bool tw_ring_has_deliveries(const struct tw_ring *ring)
{
	return ring->delivery.at;
}

/* Returns what a token, on a ring with leases or periods, knows of its deliveries. */
static inline struct tw_delivery *tw_delivery_of(const struct tw_ring *ring,
						 const struct tw_token *token)
{
	return (void *)token + ring->delivery.at;
}

/* Returns what may make a token, on a ring with periods, periodic. */
static inline struct tw_repeat *tw_repeat_at(const struct tw_ring *ring,
					     const struct tw_token *token)
{
	return (void *)token + ring->delivery.repeat_at;
}

/* Returns what makes a token periodic, NULL when it is not. */
static inline struct tw_repeat *tw_repeat_of(const struct tw_ring *ring,
					     const struct tw_token *token)
{
	return ring->delivery.repeat_at && tw_repeat_at(ring, token)->period ?
	       tw_repeat_at(ring, token) : NULL;
}

/*
 * Returns the tick on which the ring is next to be looked at, or TW_NEVER. With as many
 * deliveries out as there may be, the ring need not be looked at until a lease ends.
 */
static inline u64 tw_ring_next(const struct tw_ring *ring)
{
	const struct tw_held *held = &ring->delivery.held;
	u64 next = ring->levels.next;

	if (!held->used)
		return next;
	if (!tw_held_room(held))
		next = TW_NEVER;

	return held->count ? min(next, tw_held_first(held)->end) : next;
}

/*
 * Returns the last token of a list, which is the next to be taken off it. The caller holds the
 * lock.
 */
static inline u32 tw_ring_last(const struct tw_ring *ring,
			       const struct tw_list *list)
{
	if (tw_list_is_to_fetch(list))
		tw_ring_fetch(ring, list);

	return tw_list_last(list);
}

/* Returns the index of a token that is filed. The caller holds the lock. */
static inline u32 tw_ring_index(const struct tw_ring *ring,
				const struct tw_token *token)
{
	return tw_lists_at(&ring->levels.lists, token->place);
}

/* Returns a token's touch word, NULL if it has none or cannot be touched. */
static inline u64 *tw_ring_touch_word(const struct tw_ring *ring,
				      const struct tw_token *token, u32 index)
{
	return tw_ring_has_words(ring) && token->timeout &&
	       tw_word_state(READ_ONCE(token->word)) == TW_ARMED ?
		tw_words_at(&ring->words, index) : NULL;
}

/*
 * Sets the word of a token that was found ARMED under the lock: since then it can only have
 * been touched, and the new word replaces the touch.
 */
static inline void tw_found_set(struct tw_found *found, u64 due,
				enum tw_state state)
{
	found->word = xchg(&found->token->word,
			   tw_word(due, state, found->word));
}

/* Sets a token's touch word, if the ring has touch words: a plain touch may be lost. */
static inline void tw_stamp_set(struct tw_ring *ring, u32 index, u64 word)
{
	if (tw_ring_has_words(ring))
		WRITE_ONCE(*tw_words_at(&ring->words, index), word);
}

/* Returns the due tick of a token that is filed, or that the caller has taken. */
static inline u64 tw_token_due(const struct tw_token *token)
{
	return tw_word_due(READ_ONCE(token->word));
}

/* Returns the handle of a token that has this word and is not FREE. */
static inline u64 tw_handle(const struct tw_token *token, u64 word, u32 index)
{
	return (u64)tw_generation(token, word) << 32 | index;
}

/* Returns the handle of a token that is not FREE. The caller holds the lock, or is its reader. */
static inline u64 tw_token_handle(const struct tw_token *token, u32 index)
{
	return tw_handle(token, READ_ONCE(token->word), index);
}

static inline u64 tw_token_cookie(const struct tw_ring *ring,
				  const struct tw_token *token)
{
	return ring->cookie_at ?
		*(const u64 *)((const void *)token + ring->cookie_at) : 0;
}

/*
 * The parts of a touch are inlined by force: a wheel does nothing more often. Left to the
 * compiler, a touch by ioctl takes 802 instead of 738 instructions (selftests/counts.c, gcc
 * 12).
 */

/* Finds the tick on which a deadline, in ns, is due. Returns 0, or -ERANGE beyond the last tick. */
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

/* Reads the token's word, before anything else is read of the token. */
static inline bool tw_found_armed(struct tw_token *token,
				  struct tw_found *found)
{
	found->token = token;
	/* Pairs with the releases of all that make a token ARMED. */
	found->word = smp_load_acquire(&token->word);

	return tw_word_state(found->word) == TW_ARMED;
}

/* @token: where the handle's token is, if that has been found out, else NULL. */
static __always_inline int tw_ring_by_handle(struct tw_ring *ring, u64 handle,
					     struct tw_token *token, struct tw_found *found)
{
	token = token ?: tw_arena_find(&ring->tokens, (u32)handle);
	if (!token || !tw_found_armed(token, found) ||
	    tw_generation(token, found->word) != handle >> 32)
		return -ESTALE;

	return 0;
}

/* Finds an ARMED token. Return: 0; -ENOENT; -ESTALE; -EINVAL there are no ids. */
static __always_inline int tw_ring_find(struct tw_ring *ring, struct tw_key key,
					struct tw_found *found)
{
	return key.by_handle ?
	       tw_ring_by_handle(ring, key.value, key.token, found) :
	       tw_ring_by_id(ring, key.value, found);
}

/* Fetches the token of a handle, which is about to be looked up. Returns where it is, or NULL. */
static inline struct tw_token *tw_ring_prefetch_handle(const struct tw_ring *ring,
						       u64 handle)
{
	struct tw_token *token = tw_arena_find(&ring->tokens, (u32)handle);

	tw_arena_fetch(&ring->tokens, (unsigned long)token);
	return token;
}

/* Fetches the tokens of ids that are about to be looked up. */
static inline void tw_ring_prefetch_ids(struct tw_ring *ring, const u64 *ids, unsigned int n)
{
	if (ring->has_ids)
		tw_ids_prefetch(&ring->ids, ids, n);
}

/* Fetches the tokens of keys that are about to be looked up. @tokens: see struct tw_key. */
static inline void tw_ring_prefetch_keys(struct tw_ring *ring, bool by_handle,
					 const u64 *keys, unsigned int n,
					 struct tw_token **tokens)
{
	unsigned int i;

	if (!by_handle)
		tw_ring_prefetch_ids(ring, keys, n);
	for (i = 0; i < n; i++)
		tokens[i] = by_handle ? tw_ring_prefetch_handle(ring, keys[i]) : NULL;
}

/*
 * Fetches the place where a token is filed. The token itself has been fetched. Called with the
 * lock. The place of a FREE token is none, and may be anywhere.
 */
static inline void tw_ring_prefetch_place(const struct tw_ring *ring,
					  const struct tw_token *token)
{
	const struct tw_lists *lists = &ring->levels.lists;

	if (token && token->place >> TW_CHUNK_SHIFT < lists->fresh)
		tw_chunk_fetch(tw_chunk(lists, token->place >> TW_CHUNK_SHIFT));
}

/* Returns the tick to which a touch raises a token with this timeout. */
static inline int tw_touch_due(const struct tw_ring *ring,
			       const struct tw_now *now, u64 timeout,
			       u64 *due)
{
	return timeout ? tw_ring_due(ring, now, now->ns + timeout, due) :
			 -EINVAL;
}

/*
 * Makes a token due a whole timeout from now, on tick *@due, if that is later. Needs no lock.
 * On success @found has the word from before. The token stays where it is filed: the thread
 * that looks there files it again.
 *
 * Returns 0; -ESTALE when the token is no longer pending; -EINVAL when it has no timeout;
 * -ERANGE.
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
		 * with the release in __tw_ring_register().
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

/*
 * The functions that register and cancel a token are inlined by force where tokens are many. Left
 * to the compiler, a call for many takes 298 instead of 263 instructions to register a token, and
 * 186 instead of 172 to cancel it (selftests/counts.c, gcc 12).
 */

/*
 * Takes a token that is FREE: there is one as long as fewer than ring->ready are in
 * use. A token that has never been used gets the generation of its first life.
 */
static inline struct tw_token *tw_ring_get(struct tw_ring *ring, u32 *index)
{
	struct tw_lists *lists = &ring->levels.lists;
	struct tw_list *free = &lists->list[ring->levels.free];
	struct tw_token *token;

	ring->tokens.used++;
	if (likely(free->fill)) {
		*index = tw_ring_last(ring, free);
		tw_list_pop(lists, free);
		return tw_ring_token(ring, *index);
	}
	*index = ring->tokens.fresh++;
	token = tw_ring_token(ring, *index);
	WRITE_ONCE(token->generation_hi, ring->first_generation >> 16);
	WRITE_ONCE(token->word, tw_word(0, TW_FREE, ring->first_generation));

	return token;
}

/*
 * Keeps a token that is FREE by its index. Finding it then needs no walk through free tokens,
 * which nobody has looked at for long.
 */
static inline void tw_ring_put(struct tw_ring *ring, u32 index)
{
	struct tw_lists *lists = &ring->levels.lists;

	tw_list_push(tw_lists_open(lists, ring->levels.free), index);
	ring->tokens.used--;
}

/* Returns a token's word for its next life, before this life begins. */
static inline u64 tw_ring_next_life(struct tw_token *token)
{
	u16 generation = READ_ONCE(token->word) + 1;

	if (unlikely(!generation))
		WRITE_ONCE(token->generation_hi, token->generation_hi + 1);

	return tw_word(0, TW_FREE, generation);
}

/*
 * Registers a new token, with @id and @cookie as far as the ring has them, and tells its
 * handle. @deadline: when it is due, no earlier than @now.
 *
 * Returns 0; -EAGAIN: let go of the lock, tw_ring_grow(), and again; -EEXIST; -ENOSPC;
 * -ENOMEM; -ESHUTDOWN the ring is draining.
 */
static __always_inline int
__tw_ring_register(struct tw_ring *ring, const struct tw_now *now, u64 id,
		   u64 cookie, const struct tw_deadline *deadline, u64 *handle)
{
	struct tw_token *token;
	u32 index, generation;
	int err = 0;

	lockdep_assert_held(&ring->lock);
	if (unlikely(ring->tokens.used >= ring->ready))
		err = tw_ring_make_ready(ring, id);
	if (err)
		return err;

	token = tw_ring_get(ring, &index);
	if (ring->has_ids)
		WRITE_ONCE(((struct tw_id_token *)token)->id, id);
	err = tw_ring_name(ring, token);
	if (err) {
		tw_ring_put(ring, index);
		return err;
	}
	if (ring->cookie_at)
		*(u64 *)((void *)token + ring->cookie_at) = cookie;
	WRITE_ONCE(token->timeout, deadline->timeout);

	/* No handle is 0: generation 0 is never used. */
	generation = tw_generation(token, READ_ONCE(token->word)) ?: 1;
	if (ring->has_extras)
		tw_ring_begin_extras(ring, token, index, generation);
	/* Pairs with the acquire in tw_found_armed(). */
	smp_store_release(&token->word,
			  tw_word(deadline->due, TW_ARMED, generation));
	tw_levels_file(&ring->levels, index, token, deadline->due,
		       tw_levels_origin(&ring->levels, now->tick));
	ring->pending++;
	ring->registered++;
	*handle = (u64)generation << 32 | index;

	return 0;
}

/* Ends a token without an event. Afterwards @found has the word from before. */
static __always_inline void tw_ring_cancel(struct tw_ring *ring, struct tw_found *found)
{
	struct tw_token *token = found->token;
	u32 index;

	lockdep_assert_held(&ring->lock);
	/* The word is exchanged in one go, because the token may be touched until then. */
	found->word = xchg(&token->word, tw_ring_next_life(token));
	index = tw_levels_unfile(&ring->levels, token);
	tw_stamp_set(ring, index, 0);
	tw_ring_unname(ring, token);
	tw_ring_put(ring, index);
	ring->pending--;
	ring->cancelled++;
}

#endif /* TW_RING_H */
