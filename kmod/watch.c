// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watch: tokens that watch something which the wheel can ask when it was last used.
 *
 * A ring for watching has no touch words and no deliveries. So touches raise a
 * token's word without the lock, and what is heard raises it in the same way.
 */
#include <linux/errno.h>
#include <linux/lockdep.h>
#include <linux/string.h>
#include <linux/timewheel.h>

#include "ring.h"

static void *tw_watch_at(const struct tw_ring *ring, struct tw_token *token)
{
	return (void *)token + ring->watch.at;
}

/**
 * tw_watch_begin() - a token that has been registered watches something
 * @ring: the ring, locked since the registration
 * @index: the token's index
 * @watch: how to find what it watches; the ring's @watch.size bytes
 */
void tw_watch_begin(struct tw_ring *ring, u32 index, const void *watch)
{
	struct tw_token *token = tw_ring_token(ring, index);

	lockdep_assert_held(&ring->lock);
	memcpy(tw_watch_at(ring, token), watch, ring->watch.size);
	token->watched = TW_WATCHES;
}

/* What a token watches; NULL if it watches nothing. By its taker, or locked. */
const void *tw_watch_of(const struct tw_ring *ring,
			const struct tw_token *token)
{
	return ring->watch.ask && token->watched != TW_WATCHES_NOTHING ?
		(const void *)token + ring->watch.at : NULL;
}

/* Raises the word of a token that is ARMED, as a touch does. */
static void tw_watch_raise(struct tw_token *token, u64 due)
{
	u64 word = READ_ONCE(token->word);

	while (due > tw_word_due(word))
		if (try_cmpxchg64(&token->word, &word,
				  tw_word_with_due(word, due)))
			break;
}

/* Asks, unless the token watches nothing, and raises it to what it hears. */
static void tw_watch_ask(struct tw_ring *ring, struct tw_token *token, u64 now)
{
	struct tw_asked asked;

	lockdep_assert_held(&ring->lock);
	if (token->watched == TW_WATCHES_NOTHING)
		return;
	asked = ring->watch.ask(tw_watch_at(ring, token), token->timeout, now,
				ring->tick);
	ring->watch.asked++;
	token->watched = asked.error ?: TW_WATCHES;

	tw_watch_raise(token, min(asked.due, ring->max_due));
}

/**
 * tw_watch_apply() - raise a token to where what it watches says
 * @ring: the ring for watching, locked
 * @found: the token, ARMED; its word is read again
 * @now: the tick that the hand is on
 */
void tw_watch_apply(struct tw_ring *ring, struct tw_found *found, u64 now)
{
	lockdep_assert_held(&ring->lock);
	tw_watch_ask(ring, found->token, now);
	found->word = READ_ONCE(found->token->word);
}

/* Ends a token without an event, as what it watches has ended. */
static void tw_watch_end_token(struct tw_ring *ring, struct tw_token *token)
{
	struct tw_found found = {
		.token	= token,
		.word	= READ_ONCE(token->word),
	};

	lockdep_assert_held(&ring->lock);
	tw_ring_end(ring, &found);
	ring->watch.ended++;
}

/**
 * tw_watch_before_take() - ask before a token is taken, which may raise it
 * @ring: the ring for watching, locked
 * @token: the token, ARMED and due by its word
 * @now: the tick that the hand is on
 *
 * Return: whether the token has ended.
 */
bool tw_watch_before_take(struct tw_ring *ring, struct tw_token *token, u64 now)
{
	lockdep_assert_held(&ring->lock);
	tw_watch_ask(ring, token, now);
	if (token->watched != ENOTCONN || ring->watch.tell_ended)
		return false;
	tw_watch_end_token(ring, token);

	return true;
}

/**
 * tw_watch_end() - end the token of an id if what it watches has ended
 * @ring: the ring for watching, locked
 * @id: the id
 * @now: the tick that the hand is on
 *
 * Return: whether it was ended.
 */
bool tw_watch_end(struct tw_ring *ring, u64 id, u64 now)
{
	struct tw_found found;

	lockdep_assert_held(&ring->lock);
	if (tw_ring_by_id(ring, id, &found))
		return false;
	tw_watch_ask(ring, found.token, now);
	if (found.token->watched != ENOTCONN)
		return false;
	tw_watch_end_token(ring, found.token);

	return true;
}

/* Fills in what there is to tell. Under the lock. */
void tw_watch_info(const struct tw_ring *ring, struct timewheel_info *info)
{
	lockdep_assert_held(&ring->lock);
	info->asked = ring->watch.asked;
	info->ended = ring->watch.ended;
}
