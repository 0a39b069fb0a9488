/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watch: tokens that watch something which the wheel can ask, such as a TCP
 * connection, when it was last used. Then nobody has to touch the token: a look
 * that comes to it asks, and what it hears is a stamp like that of a touch word.
 *
 * Part of the core: it knows that there is something to ask, and not what. All of
 * it is under the ring's lock.
 */
#ifndef TW_WATCH_H
#define TW_WATCH_H

#include <linux/types.h>

struct tw_found;
struct tw_ring;
struct tw_token;
struct timewheel_info;

/* struct tw_token's @watched: what is neither of these is an errno. */
#define TW_WATCHES_NOTHING	0
#define TW_WATCHES		1

/**
 * struct tw_asked - what a token hears from what it watches
 * @due: the tick to which this raises the token; 0 if it does not
 * @error: 0; or why nothing will be heard of it any more: ENOTCONN it has ended,
 *	or another positive errno
 */
struct tw_asked {
	u64	due;
	u8	error;
};

/**
 * typedef tw_ask_t - asks what a token watches when it was last used
 * @watch: how to find it
 * @timeout: ns after which the token is due
 * @now: the tick that the hand is on
 * @tick: ns per tick
 *
 * Called with the ring's lock held: it does not sleep, and takes no time that
 * depends on others.
 *
 * Return: what it has heard.
 */
typedef struct tw_asked tw_ask_t(const void *watch, u64 timeout, u64 now,
				 u64 tick);

/**
 * struct tw_watches - what a ring knows of what its tokens watch
 * @ask: how to ask; NULL if tokens watch nothing; constant
 * @at: where a token has what is handed to @ask, a u64 at least; constant
 * @size: of this, in bytes; constant
 * @tell_ended: a token has an event also if what it watches has ended; constant
 * @asked: count; ring's lock
 * @ended: count of tokens that ended with what they watched, which the ring's
 *	@ended counts, too; ring's lock
 */
struct tw_watches {
	tw_ask_t	*ask;
	u32		at;
	u32		size;
	bool		tell_ended;
	u64		asked;
	u64		ended;
};

void tw_watch_begin(struct tw_ring *ring, u32 index, const void *watch);
void tw_watch_apply(struct tw_ring *ring, struct tw_found *found, u64 now);
bool tw_watch_before_take(struct tw_ring *ring, struct tw_token *token,
			  u64 now);
bool tw_watch_end(struct tw_ring *ring, u64 id, u64 now);
const void *tw_watch_of(const struct tw_ring *ring,
			const struct tw_token *token);
void tw_watch_info(const struct tw_ring *ring, struct timewheel_info *info);

#endif /* TW_WATCH_H */
