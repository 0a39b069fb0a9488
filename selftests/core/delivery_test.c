// SPDX-License-Identifier: GPL-2.0-only
/*
 * The test runs random operations on rings with leases and periods, each checked
 * against a simple model, which is an array of tokens, searched from end to end.
 * Plain rings are tested by model_test. This test checks these promises: P1 no token
 * is early. P2 a token comes on its very tick, and a lease ends on its very tick. P3
 * each registration has exactly one end. P5 nothing is lost by an answer, a lapse, a
 * return or a fault. P8 missed periods are counted, whatever the clock does. P9 at
 * most max_held deliveries are out.
 *
 *	delivery_test [--seed=N] [--steps=N] [--only=TEST]
 *
 * A failure prints the seed, the test and the step. The same arguments lead to it
 * again.
 */
#include <string.h>

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>

#include "dice.h"
#include "generations.h"
#include "ids.h"
#include "main.h"
#include "look.h"
#include "shim.h"
#include "tap.h"
#include "walk.h"

#define BATCH	40
#define BATCHES	3
#define HOLDERS	4
#define KEYS	300

enum state { NONE, PENDING, TAKEN, HELD };

/*
 * The expected state of a token. @due: when it is due, or when its lease is over if
 * it is HELD. @word_due: when its touch word makes it due, while no call has looked
 * at the word. @stored: the word was written since the token was taken. @holder: the
 * open file, if it is HELD. @base: see struct tw_repeat.
 */
struct life {
	enum state	state;
	u64		handle;
	u32		key;
	u64		cookie;
	u64		due;
	u64		timeout;
	u64		word_due;
	struct tw_holder *holder;
	u32		delivery;
	u32		attempts;
	u64		missed;
	u64		period;
	u64		base;
	bool		stored;
};

/* A batch of taken tokens. @who: number of the holder for which they were taken. */
struct batch {
	u32		index[BATCH];
	unsigned int	n;
	u32		who;
};

/*
 * @backs: the clock may be stepped back. @bits: deadlines and time are below 2^bits.
 * @delivery: number of the delivery before a token's first. @attempts: number of
 * attempts before a token's first. @leaving: number of the holder that is being
 * returned, HOLDERS for none. @ended: tokens that a read or an ACK has ended.
 */
static struct model {
	struct tw_ring		ring;
	struct tw_ring_setup	setup;
	bool			backs;
	unsigned int		bits;
	u32			delivery;
	u32			attempts;
	struct tw_now		now;
	struct life		*life;
	struct batch		batch[BATCHES];
	struct tw_holder	*holder[HOLDERS];
	u32			leaving;
	u64			registered;
	u64			ended;
	u64			cancelled;
	u64			moved;
	u64			delivered;
	u64			put_back;
	struct tw_deliveries	count;
} m;

/* The sums over all rings of a test. */
static struct {
	u64	delivered;
	u64	answered;
	u64	lapsed;
	u64	returned;
	u64	missed;
	u64	full;
} total;

void print_state(void)
{
	printf("slots %u tick %llu max %u ids %d words %d back %d bits %u ",
	       m.ring.slots, m.ring.tick, m.setup.max_tokens, m.setup.ids,
	       m.setup.words, m.backs, m.bits);
	printf("periods %d lease %llu held %u ", m.setup.periods,
	       m.setup.lease, m.setup.max_held);
	printf("now %llu ns %llu next %llu\n", m.now.tick, m.now.ns,
	       m.life ? tw_ring_next(&m.ring) : TW_NEVER);
}

static void lock(void)
{
	spin_lock(&m.ring.lock);
}

static void unlock(void)
{
	spin_unlock(&m.ring.lock);
}

/* The following functions are about time. */

static u64 capped(__uint128_t ns)
{
	return ns > S64_MAX ? S64_MAX : (u64)ns;
}

static void set_now(u64 tick, u64 into)
{
	m.now.ns = capped((__uint128_t)tick * m.ring.tick + into);
	m.now.tick = m.now.ns / m.ring.tick;
}

/*
 * Returns a reading of the clock. If the clock may step back, the reading may be an
 * old one.
 */
static struct tw_now some_now(void)
{
	struct tw_now now = m.now;

	if (m.backs && once(4)) {
		now.ns -= min(now.ns, below(3 * m.ring.tick));
		now.tick = now.ns / m.ring.tick;
	}

	return now;
}

static u64 pick_ticks(void)
{
	switch (below(6)) {
	case 0:
		return below(4);
	case 1:
		return m.ring.slots - 1 + below(4);
	case 2:
		return below(3 * m.ring.slots);
	case 3:
		return once(4) ? spread(m.bits) : below(100);
	default:
		return below(20);
	}
}

static u64 pick_ns(void)
{
	__uint128_t ns;

	if (!m.setup.words && once(300))
		return S64_MAX - below(2);
	ns = (__uint128_t)pick_ticks() * m.ring.tick;

	return capped(ns + below(m.ring.tick));
}

/* Returns the tick on which a time is reached, which is at most the last tick. */
static u64 tick_of(const struct tw_now *now, u64 time)
{
	u64 tick = now->tick;

	if (time > now->ns)
		tick = ((__uint128_t)time + m.ring.tick - 1) /
		       m.ring.tick;

	return min(tick, m.ring.max_due);
}

/* P1: returns the tick after a period's deadline, and at least the tick of @now. */
static u64 period_tick_of(const struct tw_now *now, u64 base)
{
	u64 tick = ((__uint128_t)base + m.ring.tick - 1) / m.ring.tick;

	return min(max(tick, now->tick), m.ring.max_due);
}

/* Asks for the tick of a deadline, and returns whether there is one. */
static bool due_on(const struct tw_now *now, u64 time, u64 *due)
{
	int err = tw_ring_due(&m.ring, now, time, due);

	CHECK(!err || err == -ERANGE, "error %d", err);
	if (!err)
		CHECK_EQ(*due, tick_of(now, time));

	return !err;
}

static void step_time(void)
{
	u64 next = tw_ring_next(&m.ring), tick = m.now.tick;

	switch (below(m.backs ? 10 : 8)) {
	case 0:
		return set_now(tick, m.now.ns % m.ring.tick +
			       below(m.ring.tick));
	case 1:
		tick += below(m.ring.slots);
		break;
	case 2:
		tick += pick_ticks();
		break;
	case 3:
	case 4:
		if (next != TW_NEVER)
			tick = max(tick, next);
		break;
	case 5:
		if (next != TW_NEVER && next)
			tick = max(tick, next - 1);
		break;
	case 8:
		tick -= min(tick, below(40));
		break;
	case 9:
		if (once(4))
			tick -= min(tick, spread(m.bits));
		break;
	default:
		tick++;
		break;
	}
	if (tick != m.now.tick)
		set_now(tick, below(m.ring.tick));
}

/* The following functions keep the model and compare it with the ring. */

/* Returns an id. The ids of a pair of keys differ in one bit. */
static u64 id_of(u32 key)
{
	u64 state = key / 2;

	return random_next(&state) ^ (u64)(key & 1) << 40;
}

static struct tw_token *token_at(u32 index)
{
	return tw_arena_at(&m.ring.tokens, index);
}

/* Returns the token that has an id, or TW_NIL. */
static u32 by_key(u32 key)
{
	u32 i;

	for (i = 0; i < m.setup.max_tokens; i++)
		if (m.life[i].state != NONE && m.life[i].key == key)
			return i;

	return TW_NIL;
}

static u32 count_of(enum state state)
{
	u32 i, n = 0;

	for (i = 0; i < m.setup.max_tokens; i++)
		n += m.life[i].state == state;

	return n;
}

/* Returns whether max_held deliveries are out. */
static bool is_full(void)
{
	return m.setup.lease &&
	       count_of(HELD) + count_of(TAKEN) >= m.setup.max_held;
}

/*
 * Returns the first tick with work. If max_held deliveries are out, only the end of a
 * lease is work.
 */
static u64 earliest(void)
{
	bool full = is_full();
	u64 first = TW_NEVER;
	u32 i;

	for (i = 0; i < m.setup.max_tokens; i++)
		if (m.life[i].state == HELD ||
		    (m.life[i].state == PENDING && !full))
			first = min(first, m.life[i].due);

	return first;
}

static void life_ends(struct life *life)
{
	life->state = NONE;
	life->holder = NULL;
}

static void life_armed(struct life *life, u64 due)
{
	life->state = PENDING;
	life->due = due;
	life->word_due = 0;
	life->stored = false;
	life->holder = NULL;
}

/* The token is now due at another time. A periodic token begins new periods there. */
static void life_moved(struct life *life, const struct tw_now *now,
		       const struct tw_deadline *deadline)
{
	life_armed(life, deadline->due);
	if (!life->period)
		return;
	life->base = max(deadline->time, now->tick * m.ring.tick);
	life->attempts = 0;
	life->missed = 0;
}

/* The event of a periodic token is dealt with, and its next period begins. */
static void life_goes_on(struct life *life, const struct tw_now *now)
{
	life->base = capped((__uint128_t)life->base + life->period);
	life->attempts = 0;
	life->missed = 0;
	life_armed(life, period_tick_of(now, life->base));
}

/* A token is taken. All periods that have passed but the last one count as missed. */
static void life_misses(struct life *life, u64 now)
{
	u64 ns = now * m.ring.tick, periods;

	if (!life->period || life->attempts || ns < life->base)
		return;
	periods = (ns - life->base) / life->period;
	life->base += periods * life->period;
	life->missed = min(life->missed + periods, (u64)U32_MAX);
	m.count.missed += periods;
}

/* A call has looked at the touch word. */
static void life_stamp_applied(struct life *life)
{
	life->due = max(life->due, life->word_due);
	life->word_due = 0;
}

/* The lease of a token is over. */
static void life_lapses(struct life *life)
{
	life_armed(life, life->due);
	m.count.lapsed++;
}

static enum state state_of(u32 index)
{
	const struct tw_token *token = token_at(index);

	switch (tw_word_state(token->word)) {
	case TW_ARMED:
		return PENDING;
	case TW_TAKEN:
		return TAKEN;
	case TW_HELD:
		return HELD;
	default:
		return NONE;
	}
}

static struct tw_place *place_of(u32 index)
{
	return &m.ring.delivery.held.place[token_at(index)->place];
}

/* Returns the tick on which a token is due, or on which its lease ends. */
static u64 due_of(u32 index)
{
	return state_of(index) == HELD ? place_of(index)->end :
	       tw_ring_due_tick(&m.ring, index);
}

static bool is_held_by(u32 index, const struct tw_holder *holder)
{
	return state_of(index) == HELD && place_of(index)->holder == holder;
}

static void check_life(u32 index)
{
	const struct life *life = &m.life[index];
	struct tw_token *token = token_at(index);
	const struct tw_repeat *repeat = tw_repeat_of(&m.ring, token);

	CHECK_EQ(state_of(index), life->state);
	CHECK_EQ(due_of(index), life->due);
	CHECK_EQ(tw_token_handle(token, index), life->handle);
	CHECK_EQ(token->timeout, life->timeout);
	CHECK_EQ(tw_token_id(&m.ring, token),
		 m.setup.ids ? id_of(life->key) : 0);
	CHECK_EQ(token->named, m.setup.ids);
	CHECK_EQ(tw_token_cookie(&m.ring, token),
		 m.setup.cookies ? life->cookie : 0);
	CHECK_EQ(tw_delivery_of(&m.ring, token)->number, life->delivery);
	CHECK_EQ(tw_delivery_of(&m.ring, token)->attempts, life->attempts);
	CHECK_EQ(repeat ? repeat->period : 0, life->period);
	CHECK_EQ(repeat ? repeat->missed : 0, life->missed);
	if (repeat)
		CHECK_EQ(repeat->base, life->base);
	if (life->state == HELD)
		CHECK(is_held_by(index, life->holder),
		      "token %u is held by another", index);
	if (m.setup.words && life->state != PENDING && !life->stored)
		CHECK_EQ(*tw_words_at(&m.ring.words, index), 0);
}

/*
 * Learns what a look on tick @now has changed. Leases that are over may have lapsed,
 * in the order of their ends, and touch words may have been seen. Nothing else may
 * have changed. If the look was @whole, no work is left.
 */
static void learn(u64 now, bool whole)
{
	u64 lapsed = 0, left = TW_NEVER;
	u32 i;

	for (i = 0; i < m.setup.max_tokens; i++) {
		struct life *life = &m.life[i];

		if (life->state == HELD && life->due <= now &&
		    state_of(i) == PENDING) {
			lapsed = max(lapsed, life->due);
			life_lapses(life);
		} else if (life->state == HELD) {
			left = min(left, life->due);
		} else if (life->state != PENDING) {
			continue;
		} else if (due_of(i) == max(life->due, life->word_due)) {
			life_stamp_applied(life);
		}
		check_life(i);
	}
	CHECK(lapsed <= left, "the lease to %llu is over, that to %llu is not",
	      lapsed, left);
	if (whole) {
		CHECK(earliest() > now, "one is due on %llu", earliest());
		CHECK(tw_ring_next(&m.ring) > now, "nothing was due");
	}
}

/*
 * P9: at most max_held deliveries are out. P5: a wheel is looked at before its first
 * work, and exactly on that tick if max_held deliveries are out.
 */
static void check_room(void)
{
	u32 out = m.setup.lease ? count_of(HELD) + count_of(TAKEN) : 0;
	u64 next = tw_ring_next(&m.ring), first = earliest();

	CHECK(out <= m.setup.max_held, "%u are out of %u", out,
	      m.setup.max_held);
	CHECK_EQ(m.ring.delivery.held.used, out);
	CHECK(is_full() ? next == first : next <= first,
	      "looked at on %llu, but due on %llu", next, first);
	total.full += is_full();
}

static void check_counts(void)
{
	const struct tw_deliveries *have = &m.ring.delivery;

	CHECK_EQ(m.ring.pending, count_of(PENDING));
	CHECK_EQ(have->held.count, count_of(HELD));
	CHECK_EQ(m.ring.tokens.used, m.setup.max_tokens - count_of(NONE));
	CHECK_EQ(m.ring.registered, m.registered);
	CHECK_EQ(m.ring.cancelled, m.cancelled);
	CHECK_EQ(m.ring.moved, m.moved);
	CHECK_EQ(m.ring.delivered, m.delivered);
	CHECK_EQ(m.ring.put_back, m.put_back);
	CHECK_EQ(have->acked, m.count.acked);
	CHECK_EQ(have->nacked, m.count.nacked);
	CHECK_EQ(have->lapsed, m.count.lapsed);
	CHECK_EQ(have->returned, m.count.returned);
	CHECK_EQ(have->deleted, m.count.deleted);
	CHECK_EQ(have->missed, m.count.missed);
	/* The ledger of INFO has to be balanced. */
	CHECK_EQ(m.registered, m.ended + m.cancelled + m.count.deleted +
		 m.ring.tokens.used);
}

/* The touch word of a free place has to be 0. */
static void check_word_of_none(u32 index)
{
	if (m.setup.words && m.life[index].handle)
		CHECK_EQ(*tw_words_at(&m.ring.words, index), 0);
}

/* A holder's list contains all tokens that it holds, and no others. */
static void check_holder(const struct tw_holder *holder)
{
	const struct tw_place *place = m.ring.delivery.held.place;
	u32 nr = holder->first, before = TW_NIL, n;

	for (n = 0; n < holder->count; n++) {
		CHECK(place[nr].holder == holder, "token %u is another's",
		      place[nr].token);
		CHECK_EQ(place[nr].prev, before);
		before = nr;
		nr = place[nr].next;
	}
	CHECK(!n || nr == TW_NIL, "token %u is held as well", place[nr].token);
}

static void check_all(void)
{
	u32 i, out[HOLDERS] = { 0 }, who;

	walk(&m.ring);
	for (i = 0; i < m.setup.max_tokens; i++) {
		if (m.life[i].state == NONE) {
			check_word_of_none(i);
			continue;
		}
		if (m.life[i].state != TAKEN)
			check_life(i);
		for (who = 0; who < HOLDERS; who++)
			out[who] += m.life[i].holder == m.holder[who];
	}
	for (who = 0; who < HOLDERS; who++) {
		CHECK_EQ(m.holder[who]->count, out[who]);
		check_holder(m.holder[who]);
	}
	check_counts();
	check_room();
	CHECK_EQ(tw_ring_bytes(&m.ring), shim_bytes() + sizeof(m.ring));
}

/* The following functions are the operations. */

/* The first deadline of a token and the length of its period, in ns. */
struct period {
	u64 first, length;
};

static int register_growing(const struct tw_now *now, u32 key, u64 cookie,
			    const struct tw_deadline *deadline, u64 *handle,
			    const struct period *period)
{
	int err, rounds = 0;

	for (;;) {
		lock();
		err = tw_ring_register(&m.ring, now, id_of(key), cookie,
				       deadline, handle);
		if (!err && period)
			tw_delivery_repeat(&m.ring, (u32)*handle, period->first,
					   period->length);
		unlock();
		if (err != -EAGAIN)
			return err;
		CHECK(rounds++ < 64, "growing is no help");
		CHECK_EQ(tw_ring_grow(&m.ring), 0);
	}
}

/* The first deadline may have passed. A period is at least one tick. */
static struct period pick_period(const struct tw_now *now)
{
	__uint128_t length = (__uint128_t)m.ring.tick * (1 + below(12));
	struct period period = {
		.first = once(8) ? now->ns - min(now->ns, pick_ns()) :
			 capped((__uint128_t)now->ns + pick_ns()),
		.length = once(8) ? S64_MAX - below(9) :
			  capped(length + below(m.ring.tick)),
	};

	return period;
}

/* P9: an id that exists, in whatever state, is reported before a lack of room. */
static int register_error(u32 key)
{
	if (m.setup.ids && by_key(key) != TW_NIL)
		return -EEXIST;
	if (!m.ring.room)
		return -ESHUTDOWN;

	return count_of(NONE) ? 0 : -ENOSPC;
}

static void register_one(const struct tw_now *now, u32 key,
			 const struct tw_deadline *deadline,
			 const struct period *period)
{
	u64 handle, cookie = spread(64);
	struct tw_delivery *delivery;
	struct life *life;
	int err;

	err = register_growing(now, key, cookie, deadline, &handle, period);
	CHECK_EQ(err, register_error(key));
	if (err)
		return;
	life = &m.life[(u32)handle];
	CHECK((u32)handle < m.setup.max_tokens && life->state == NONE,
	      "token %u is given twice", (u32)handle);
	CHECK_EQ(handle >> 32, next_generation(&m.ring, life->handle));
	delivery = tw_delivery_of(&m.ring, token_at((u32)handle));
	delivery->number = m.delivery;
	delivery->attempts = m.attempts;
	*life = (struct life) {
		.handle = handle, .key = key, .cookie = cookie,
		.timeout = deadline->timeout, .delivery = m.delivery,
		.attempts = m.attempts,
	};
	if (period) {
		life->base = period->first;
		life->period = period->length;
	}
	life_armed(life, deadline->due);
	m.registered++;
}

/* Registers one token, or many equal tokens at once. */
static void op_register(void)
{
	struct tw_now now = some_now();
	bool periodic = m.setup.periods && once(2);
	struct period period = pick_period(&now);
	struct tw_deadline deadline = {
		.timeout = periodic || once(4) ? 0 : pick_ns(),
	};
	u64 time = periodic ? period.first : now.ns + pick_ns();
	u32 key = below(once(4) ? 6 : KEYS), n = once(100) ? below(100) : 1;

	if (!due_on(&now, time, &deadline.due))
		return;
	for (; n; n--, key++)
		register_one(&now, 1 + key % KEYS, &deadline,
			     periodic ? &period : NULL);
}

/*
 * Returns a token in state @liked, or another token if there is none in this state,
 * or TW_NIL. With NONE each token will do.
 */
static u32 any_token(enum state liked)
{
	u32 i, at = below(m.setup.max_tokens), any = TW_NIL;

	for (i = 0; i < m.setup.max_tokens; i++, at++) {
		u32 index = at % m.setup.max_tokens;

		if (m.life[index].state == NONE)
			continue;
		if (m.life[index].state == liked)
			return index;
		if (any == TW_NIL)
			any = index;
	}

	return any;
}

/* Looks up a token by id or handle. Only a pending token may be found. */
static bool find_pending(struct tw_found *found, u32 *index)
{
	const struct life *life;
	bool pending;

	*index = any_token(once(4) ? NONE : PENDING);
	if (*index == TW_NIL)
		return false;
	life = &m.life[*index];
	pending = life->state == PENDING;
	if (m.setup.ids && once(2))
		CHECK_EQ(tw_ring_by_id(&m.ring, id_of(life->key), found),
			 pending ? 0 : -ENOENT);
	else
		CHECK_EQ(tw_ring_by_handle(&m.ring, life->handle, found),
			 pending ? 0 : -ESTALE);
	if (pending)
		CHECK(found->token == token_at(*index), "another token");

	return pending;
}

/* With touch words the caller of an operation looks at the word first. */
static void apply_stamp(struct tw_found *found, u32 index, u64 now)
{
	if (!m.setup.words)
		return;
	tw_look_apply_stamp(&m.ring, found, now);
	life_stamp_applied(&m.life[index]);
	check_life(index);
}

static void op_touch(void)
{
	struct tw_now now = some_now();
	struct tw_found found;
	struct life *life;
	u64 due, raised;
	u32 index;
	int err;

	lock();
	if (find_pending(&found, &index)) {
		life = &m.life[index];
		apply_stamp(&found, index, now.tick);
		err = tw_ring_touch(&m.ring, &found, &now, &due);
		if (!life->timeout) {
			CHECK_EQ(err, -EINVAL);
		} else if (!due_on(&now, now.ns + life->timeout, &raised)) {
			CHECK_EQ(err, -ERANGE);
		} else {
			CHECK_EQ(err, 0);
			life->due = max(life->due, raised);
			CHECK_EQ(due, life->due);
		}
		check_life(index);
	}
	unlock();
}

/* Stores to a token's touch word. If the token is not pending, the store has no effect. */
static void op_store(void)
{
	u32 index = any_token(once(2) ? NONE : PENDING);
	struct life *life;
	u64 timeout;

	if (!m.setup.words || index == TW_NIL || !(u32)m.now.tick)
		return;
	life = &m.life[index];
	WRITE_ONCE(*tw_words_at(&m.ring.words, index),
		   tw_stamp(life->handle >> 32, m.now.tick));
	life->stored = life->state != PENDING;
	if (life->state != PENDING || !life->timeout)
		return;
	timeout = (life->timeout + m.ring.tick - 1) / m.ring.tick;
	life->word_due = min(m.now.tick + 1 + timeout, m.ring.max_due);
}

static void op_move(void)
{
	struct tw_now now = some_now();
	u64 timeout = once(2) ? 0 : pick_ns();
	struct tw_deadline deadline = { .time = now.ns + pick_ns() };
	struct tw_found found;
	struct life *life;
	u32 index;

	lock();
	if (find_pending(&found, &index) &&
	    due_on(&now, deadline.time, &deadline.due)) {
		life = &m.life[index];
		CHECK_EQ(!!tw_repeat_of(&m.ring, found.token),
			 !!life->period);
		deadline.timeout = life->period ? 0 : timeout;
		tw_ring_move(&m.ring, &found, &now, &deadline);
		life_moved(life, &now, &deadline);
		life->timeout = deadline.timeout ?: life->timeout;
		m.moved++;
		check_life(index);
	}
	unlock();
}

static void op_cancel(void)
{
	struct tw_found found;
	u32 index;

	lock();
	if (find_pending(&found, &index)) {
		tw_ring_cancel(&m.ring, &found);
		life_ends(&m.life[index]);
		m.cancelled++;
	}
	unlock();
}

static void op_drain(void)
{
	lock();
	tw_ring_drain(&m.ring, once(12));
	unlock();
}

/* The following functions are about tokens whose deliveries may be out. */

static int find(bool by_handle, u64 value, struct tw_found *found)
{
	const struct tw_key key = { by_handle, value };

	return tw_delivery_find(&m.ring, key, found);
}

/*
 * P9: a token that does not exist is not found, and each way to look it up has its
 * own error.
 */
static void op_find_nothing(void)
{
	u32 index = below(m.setup.max_tokens), key = 1 + below(KEYS);
	struct tw_found found;

	lock();
	if (m.life[index].state == NONE)
		CHECK_EQ(find(true, m.life[index].handle, &found), -ESTALE);
	if (m.life[index].handle)
		CHECK_EQ(find(true, m.life[index].handle + (1ULL << 32),
			      &found), -ESTALE);
	CHECK_EQ(find(true, m.life[index].handle | 1U << 30, &found), -ESTALE);
	if (!m.setup.ids)
		CHECK_EQ(find(false, id_of(key), &found), -EINVAL);
	else if (by_key(key) == TW_NIL)
		CHECK_EQ(find(false, id_of(key), &found), -ENOENT);
	unlock();
}

/* Finds a token that is pending or held. The caller has the lock. */
static bool find_any(struct tw_found *found, u32 *index, enum state liked)
{
	bool by_handle = !m.setup.ids || once(2);
	const struct life *life;
	int err;

	*index = any_token(once(4) ? NONE : liked);
	if (*index == TW_NIL)
		return false;
	life = &m.life[*index];
	err = find(by_handle, by_handle ? life->handle : id_of(life->key),
		   found);
	CHECK_EQ(err, life->state == TAKEN ? -ESTALE : 0);
	if (err)
		return false;
	CHECK(found->token == token_at(*index), "another token");
	CHECK_EQ(tw_delivery_index(&m.ring, found), *index);
	CHECK_EQ(tw_delivery_due(&m.ring, found), life->due);

	return true;
}

/* P3: an answer is only accepted for the last delivery, while it is out. */
static bool may_answer(const struct tw_found *found, const struct life *life)
{
	u32 number = once(6) ? life->delivery - 1 + 2 * below(2) :
		     life->delivery;
	int err = tw_delivery_check(&m.ring, found, number);

	CHECK_EQ(err, life->state == HELD && number == life->delivery ?
		 0 : -ESTALE);

	return !err;
}

static void answer_ack(struct tw_found *found, struct life *life,
		       const struct tw_now *now)
{
	tw_delivery_ack(&m.ring, found, now);
	m.count.acked++;
	if (life->period) {
		life_goes_on(life, now);
	} else {
		life_ends(life);
		m.ended++;
	}
}

static void answer_nack(struct tw_found *found, struct life *life,
			const struct tw_now *now)
{
	u64 due;

	if (!due_on(now, now->ns + (once(3) ? 0 : pick_ns()), &due))
		return;
	tw_delivery_nack(&m.ring, found, now, due);
	m.count.nacked++;
	life_armed(life, due);
}

/* An extended lease ends later or earlier than before. */
static void answer_extend(struct tw_found *found, struct life *life,
			  const struct tw_now *now)
{
	u64 time = once(3) ? m.setup.lease : pick_ns(), end;

	if (!due_on(now, now->ns + time, &end))
		return;
	life->due = end;
	tw_delivery_extend(&m.ring, found, end);
	CHECK_EQ(tw_delivery_due(&m.ring, found), end);
}

static void op_answer(void)
{
	struct tw_now now = some_now();
	struct tw_found found;
	struct life *life;
	u32 index;

	lock();
	if (find_any(&found, &index, HELD) &&
	    may_answer(&found, &m.life[index])) {
		life = &m.life[index];
		switch (below(4)) {
		case 0:
			answer_nack(&found, life, &now);
			break;
		case 1:
			answer_extend(&found, life, &now);
			break;
		default:
			answer_ack(&found, life, &now);
			break;
		}
		if (life->state != NONE)
			check_life(index);
	}
	unlock();
}

static void delete(struct tw_found *found, u32 index)
{
	CHECK_EQ(tw_delivery_delete(&m.ring, found), m.life[index].due);
	life_ends(&m.life[index]);
	m.count.deleted++;
}

/* Deletes a token, whether its delivery is out or not. */
static void op_delete(void)
{
	struct tw_found found;
	u32 index;

	lock();
	if (find_any(&found, &index, once(2) ? HELD : PENDING))
		delete(&found, index);
	unlock();
}

/* The following functions read. */

static unsigned int pick_work(void)
{
	return once(3) ? 1 + below(once(2) ? 3 : 40) : 1U << 30;
}

static void op_find_due(void)
{
	struct tw_now now = some_now();
	unsigned int work = pick_work();
	u32 index;

	lock();
	index = tw_look_find_due(&m.ring, now.tick, &work);
	unlock();
	learn(now.tick, index == TW_NIL && work);
	if (index == TW_NIL)
		return;
	CHECK(!is_full(), "token %u cannot be taken", index);
	CHECK_EQ(m.life[index].state, PENDING);
	CHECK(m.life[index].due <= now.tick, "early: due on %llu",
	      m.life[index].due);
}

/*
 * A token that was taken was due by @now, and has one more delivery. Deliveries are
 * numbered from 1, and after the last number follows 1, because 0 means none. The
 * number of attempts stops at its maximum, and does not begin again at 1.
 */
static void check_taken(u32 index, u64 now, u64 *last)
{
	struct life *life = &m.life[index];

	if (life->state == HELD && life->due <= now)
		life_lapses(life);
	CHECK_EQ(life->state, PENDING);
	life_stamp_applied(life);
	CHECK(life->due <= now, "early: due on %llu", life->due);
	life_misses(life, now);
	life->state = TAKEN;
	if (m.setup.lease) {
		life->attempts = min(life->attempts, U32_MAX - 1) + 1;
		life->delivery = life->delivery + 1 ?: 1;
	}
	check_life(index);
	CHECK(life->due >= *last, "due on %llu after %llu", life->due, *last);
	*last = life->due;
}

/* Takes tokens. They come in the order of their due ticks, also after a put-back. */
static void take(struct batch *batch, u64 now, unsigned int work,
		 unsigned int most)
{
	u64 last = 0, done = m.count.lapsed + work;
	u32 i;

	lock();
	batch->n = tw_look_take(&m.ring, now, &work, batch->index, most);
	unlock();
	CHECK(batch->n <= most, "took %u of %u", batch->n, most);
	for (i = 0; i < batch->n; i++)
		check_taken(batch->index[i], now, &last);
	learn(now, batch->n < most && work);
	CHECK(m.count.lapsed + batch->n + work <= done, "more than it may");
	for (i = 0; i < m.setup.max_tokens; i++)
		if (m.life[i].state == PENDING || m.life[i].state == HELD)
			CHECK(m.life[i].due >= last,
			      "due on %llu, taken after %llu", m.life[i].due,
			      last);
}

static void life_delivered(struct life *life, const struct tw_now *now,
			   struct tw_holder *holder)
{
	m.delivered++;
	if (m.setup.lease) {
		life->state = HELD;
		life->holder = holder;
		life->due = tick_of(now, now->ns + m.setup.lease);
	} else if (life->period) {
		life_goes_on(life, now);
	} else {
		life_ends(life);
		m.ended++;
	}
}

static void deliver(const struct batch *batch, unsigned int n,
		    const struct tw_now *now)
{
	struct tw_holder *holder = m.holder[batch->who];
	unsigned int i;

	for (i = 0; i < n; i++)
		check_life(batch->index[i]);
	lock();
	for (i = 0; i < n;) {
		u64 due, first = m.life[batch->index[i]].due;

		i += tw_look_delivered(&m.ring, batch->index + i, n - i,
					  &due, now, holder);
		CHECK_EQ(due, first);
	}
	unlock();
	for (i = 0; i < n; i++) {
		struct life *life = &m.life[batch->index[i]];

		life_delivered(life, now, holder);
		if (life->state != NONE)
			check_life(batch->index[i]);
	}
}

/* P5: an event that could not be copied was not delivered, and its number is used again. */
static void put_back(const struct batch *batch, unsigned int from)
{
	unsigned int n = batch->n - from, i;

	lock();
	tw_look_put_back(&m.ring, batch->index + from, n);
	unlock();
	for (i = from; i < batch->n; i++) {
		struct life *life = &m.life[batch->index[i]];

		if (m.setup.lease) {
			life->attempts--;
			life->delivery--;
		}
		life_armed(life, life->due);
		check_life(batch->index[i]);
	}
	m.put_back += n;
}

static void finish(struct batch *batch)
{
	struct tw_now now = some_now();
	unsigned int n = once(2) ? batch->n : below(batch->n + 1);

	deliver(batch, n, &now);
	put_back(batch, n);
	batch->n = 0;
}

/* Takes tokens or finishes an earlier take. A holder that is leaving takes no more. */
static void op_take(void)
{
	static const unsigned int most[] = { 1, 3, BATCH };
	struct batch *batch = &m.batch[below(BATCHES)];
	struct tw_now now = some_now();
	unsigned int work = pick_work();

	if (batch->n)
		return finish(batch);
	batch->who = below(HOLDERS);
	if (batch->who != m.leaving)
		take(batch, now.tick, work, most[below(3)]);
}

static bool is_reading(u32 who)
{
	unsigned int i;

	for (i = 0; i < BATCHES; i++)
		if (m.batch[i].n && m.batch[i].who == who)
			return true;

	return false;
}

/* Learns which tokens a holder has returned. Returns their number. */
static u32 learn_returned(const struct tw_holder *holder,
			  const struct tw_now *now)
{
	u32 i, n = 0;

	for (i = 0; i < m.setup.max_tokens; i++) {
		if (m.life[i].holder != holder || is_held_by(i, holder))
			continue;
		life_armed(&m.life[i], min(now->tick, m.ring.max_due));
		m.count.returned++;
		check_life(i);
		n++;
	}

	return n;
}

/*
 * P5: a file is released step by step, while others use the ring. Each step takes
 * back up to @work tokens, however many the ring has. After the last step nothing may
 * look at the holder, whose memory is freed.
 */
static void op_return(void)
{
	unsigned int work = 1 + below(once(2) ? 4 : 300);
	struct tw_now now = some_now();
	u32 who, out;
	bool more;

	if (m.leaving == HOLDERS) {
		who = below(HOLDERS);
		if (is_reading(who))
			return;
		m.leaving = who;
	}
	who = m.leaving;
	out = m.holder[who]->count;
	lock();
	more = tw_delivery_return(&m.ring, m.holder[who], work, &now);
	unlock();
	CHECK_EQ(learn_returned(m.holder[who], &now), min(work, out));
	CHECK_EQ(more, out > work);
	if (more)
		return;
	CHECK_EQ(m.holder[who]->count, 0);
	free(m.holder[who]);
	m.holder[who] = calloc(1, sizeof(*m.holder[who]));
	m.leaving = HOLDERS;
}

/* The following functions run an episode, which is the life of one ring. */

static void begin(const struct tw_ring_setup *setup)
{
	u32 i;

	memset(&m, 0, sizeof(m));
	m.setup = *setup;
	m.leaving = HOLDERS;
	m.bits = 10;
	m.life = calloc(setup->max_tokens, sizeof(*m.life));
	for (i = 0; i < HOLDERS; i++)
		m.holder[i] = calloc(1, sizeof(*m.holder[i]));
	CHECK_EQ(tw_ring_init(&m.ring, setup), 0);
	check_all();
}

static void end(void)
{
	u32 i;

	check_all();
	total.delivered += m.delivered;
	total.answered += m.count.acked + m.count.nacked;
	total.lapsed += m.count.lapsed;
	total.returned += m.count.returned;
	total.missed += m.count.missed;
	tw_ring_destroy(&m.ring);
	CHECK_EQ(shim_bytes(), 0);
	for (i = 0; i < HOLDERS; i++)
		free(m.holder[i]);
	free(m.life);
	m.life = NULL;
}

/*
 * Looks at the ring only when it asks for a look. Each look finds all due tokens, and
 * the ring then asks for a later one. At the end all tokens are deleted.
 */
static void run_dry(void)
{
	struct tw_found found;
	unsigned int i;
	u32 index;

	for (i = 0; i < BATCHES; i++) {
		deliver(&m.batch[i], m.batch[i].n, &m.now);
		m.batch[i].n = 0;
	}
	for (i = 0; i < 100 && tw_ring_next(&m.ring) <= m.ring.max_due; i++) {
		set_now(max(m.now.tick, tw_ring_next(&m.ring)), 0);
		take(&m.batch[0], m.now.tick, 1U << 30, BATCH);
		deliver(&m.batch[0], m.batch[0].n, &m.now);
	}
	m.batch[0].n = 0;
	lock();
	while ((index = any_token(NONE)) != TW_NIL) {
		CHECK_EQ(find(true, m.life[index].handle, &found), 0);
		delete(&found, index);
	}
	unlock();
	CHECK(tw_ring_next(&m.ring) == TW_NEVER, "next %llu when empty",
	      tw_ring_next(&m.ring));
}

/* @registering of a hundred steps register, and @passing of them let time pass. */
static void one_step(unsigned int registering, unsigned int passing)
{
	static void (*const with_lease[])(void) = {
		op_answer, op_answer, op_answer, op_delete, op_return,
	};
	static void (*const others[])(void) = {
		op_touch, op_touch, op_store, op_move, op_cancel, op_drain,
		op_find_nothing, op_find_due,
	};
	u64 choice = below(100);

	if (choice < registering)
		return op_register();
	if (choice >= 100 - passing)
		return once(3) ? step_time() : op_take();
	if (m.setup.lease && once(2))
		return with_lease[below(5)]();
	others[below(8)]();
}

static struct tw_ring_setup pick_setup(u32 slots, u64 nr)
{
	static const u64 ticks[] = { 1, 7, 1000, 100000, 1000000000 };
	static const u32 most[] = { 1, 2, 10, 31, 100 };
	struct tw_ring_setup setup = {
		.tick = ticks[below(5)], .slots = slots,
		.max_tokens = most[below(5)], .ids = nr & 1,
		.cookies = nr >> 1 & 1, .words = once(4),
		.periods = once(2),
	};

	if (!setup.periods || !once(3)) {
		setup.lease = setup.tick * (1 + below(once(2) ? 4 : 50));
		setup.lease += below(setup.tick);
		setup.max_held = 1 + below(once(2) ? min(setup.max_tokens, 4U) :
						     setup.max_tokens);
	}

	return setup;
}

/*
 * Returns the tick on which time begins. Any tick is possible, but ticks before a
 * wrap are frequent. With touch words the start is near a wrap of the stamps.
 */
static u64 pick_start(void)
{
	u64 stamps = (1 + below(3)) << 31;

	if (m.setup.words)
		return stamps - 100 + below(200);
	if (once(16))
		return m.ring.max_due - below(100);

	return once(4) ? below(3) : spread(ilog2(m.ring.max_due));
}

static void run_steps(u64 last)
{
	unsigned int registering = 15, passing = 45;

	for (; step < last && dice_left(); step++) {
		if (once(300)) {
			registering = below(30);
			passing = 10 + below(60);
		}
		one_step(registering, passing);
		check_room();
		if (once(50 + m.setup.max_tokens))
			check_all();
	}
}

static void run_episode(u32 slots, bool backs, u64 nr)
{
	static const u64 lengths[] = { 200, 2000, 8000 };
	struct tw_ring_setup setup = pick_setup(slots, nr);
	u64 start;

	setup.first_generation = pick_generation();
	begin(&setup);
	m.backs = backs && !setup.words;
	m.delivery = setup.lease && once(2) ? U32_MAX - below(4) : 0;
	m.attempts = once(2) ? m.delivery : 0;
	m.bits = 3 + below(setup.words ? 12 : ilog2(m.ring.max_due) - 3);
	start = pick_start();
	set_now(start, below(m.ring.tick));
	run_steps(step + lengths[below(3)]);
	if (once(2))
		run_dry();
	end();
}

static void run_random(u32 slots, bool backs, u64 nr_steps)
{
	u64 episode;

	for (episode = 0; step < nr_steps; episode++)
		run_episode(slots, backs, episode);
	printf("ok %llu - %u slots%s: %llu random steps\n", test, slots,
	       backs ? ", clock stepped back" : "", step);
	printf("# delivered %llu, answered %llu, lapsed %llu, returned %llu, ",
	       total.delivered, total.answered, total.lapsed, total.returned);
	printf("missed %llu, full after %llu steps\n", total.missed, total.full);
	CHECK(nr_steps < 100000 ||
	      (total.answered && total.lapsed && total.returned &&
	       total.missed && total.full),
	      "something never happened");
}

/* The following tests each test one case. */

static void register_periodic(u64 first, u64 length)
{
	struct period period = { .first = first, .length = length };
	struct tw_deadline deadline = { 0 };
	u64 handle;

	CHECK(due_on(&m.now, first, &deadline.due), "first %llu", first);
	CHECK_EQ(register_growing(&m.now, 1, 0, &deadline, &handle, &period),
		 0);
	m.life[(u32)handle] = (struct life) {
		.handle = handle, .key = 1, .base = first, .period = length,
	};
	life_armed(&m.life[(u32)handle], deadline.due);
	m.registered++;
}

/* P8: a period whose deadline is after the last tick is due on the last tick. */
static void test_last_period(void)
{
	struct tw_ring_setup setup = {
		.tick = 1000000000, .slots = 60, .max_tokens = 1,
		.periods = true,
	};
	struct batch batch = { .n = 0 };

	begin(&setup);
	register_periodic(setup.tick, 5000000000 * setup.tick);
	set_now(9000000000, 0);
	take(&batch, m.now.tick, 100, 1);
	CHECK_EQ(batch.n, 1);
	CHECK_EQ(m.life[0].missed, 1);
	deliver(&batch, 1, &m.now);
	CHECK_EQ(m.life[0].due, m.ring.max_due);
	take(&batch, m.ring.max_due - 1, 100, 1);
	CHECK_EQ(batch.n, 0);
	end();
	printf("ok %llu - P8 a period beyond the end of time is due on the last tick\n",
	       test);
}

/*
 * P8: a clock that has run beyond the last tick does no harm to a token that was put
 * back.
 */
static void test_beyond_the_last_tick(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 65536, .max_tokens = 1, .periods = true,
	};
	struct batch batch = { .n = 0 };

	begin(&setup);
	set_now(TW_MAX_TICK - 1, 0);
	register_periodic(TW_MAX_TICK, 2);
	set_now(TW_MAX_TICK, 0);
	take(&batch, m.now.tick, 100, 1);
	CHECK_EQ(batch.n, 1);
	put_back(&batch, 0);
	set_now(TW_MAX_TICK + 6000001, 0);
	take(&batch, m.now.tick, 100, 1);
	CHECK_EQ(batch.n, 1);
	CHECK_EQ(m.life[0].missed, 3000000);
	deliver(&batch, 1, &m.now);
	CHECK_EQ(m.life[0].due, m.ring.max_due);
	end();
	printf("ok %llu - P8 put back, and then beyond the last tick\n", test);
}

/* The following functions begin and end lives of tokens, and run all tests. */

/* Begins the life of a token at which no reader looks before its end. */
static u64 begin_life(bool periodic)
{
	const struct period period = { .length = 77 };
	const struct tw_deadline deadline = { .due = 1 };
	u64 handle;

	CHECK_EQ(register_growing(&m.now, 1, 0, &deadline, &handle,
				  periodic ? &period : NULL), 0);
	m.registered++;

	return handle;
}

static void end_life(u64 handle)
{
	struct tw_found found;

	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), 0);
	lock();
	tw_ring_cancel(&m.ring, &found);
	unlock();
	m.cancelled++;
}

/* P3: after the last generation a new life has no property of the first life. */
static void test_generations(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 1, .periods = true,
	};
	u64 first;

	begin(&setup);
	first = begin_life(true);
	end_life(first);
	token_at(0)->generation_hi = U16_MAX;
	token_at(0)->word = tw_word(0, TW_FREE, U16_MAX);
	end_life(begin_life(false));
	CHECK_EQ(begin_life(false), first);
	CHECK(!tw_repeat_of(&m.ring, token_at(0)), "it is periodic");
	end_life(first);
	end();
	printf("ok %llu - P3 a life has nothing of an earlier one\n", test);
}

/* P9: at most an eighth of a block of tokens is unused, however large pages are. */
static void test_blocks(void)
{
	unsigned int i;

	for (i = 0; i < 16; i++) {
		struct tw_ring_setup setup = {
			.tick = 1, .slots = 60, .max_tokens = 1 << 20,
			.ids = i & 1, .cookies = i >> 1 & 1,
			.periods = i >> 2 & 1, .lease = i >> 3 & 1,
			.max_held = i >> 3 & 1,
		};
		u64 used, bytes;

		CHECK_EQ(tw_ring_init(&m.ring, &setup), 0);
		used = (u64)m.ring.tokens.size << m.ring.tokens.shift;
		bytes = m.ring.tokens.blocks.bytes;
		tw_ring_destroy(&m.ring);
		CHECK(bytes - used <= bytes / 8,
		      "%llu bytes of tokens in a block of %llu", used, bytes);
		CHECK(bytes <= 32768, "a block of %llu bytes", bytes);
	}
	CHECK_EQ(shim_bytes(), 0);
	printf("ok %llu - P9 blocks are full of tokens\n", test);
}

void run_input(void)
{
	u32 slots = 1 + spread(once(8) ? 16 : 7);
	bool backs = once(2);

	run_episode(slots, backs, below(4));
}

const unsigned int nr_tests = 18;

void run_test(void)
{
	static void (*const tests[])(void) = {
		test_last_period, test_beyond_the_last_tick, test_generations,
		test_blocks,
	};
	static const u32 slots[] = { 1, 2, 31, 60, 64, 3600, 65536 };

	memset(&total, 0, sizeof(total));
	if (test > 14)
		tests[test - 15]();
	else
		run_random(slots[(test - 1) / 2], !(test & 1), steps / 80);
}
