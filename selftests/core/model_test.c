// SPDX-License-Identifier: GPL-2.0-only
/*
 * The test runs random operations on rings, each checked against a simple model,
 * which is an array of tokens with their due ticks, searched from end to end. Some
 * rings have leases or periods, and deliveries that are out. This test checks these
 * promises: P1 no token is early. P2 and P8 a token comes on its very tick, and a
 * lease ends on its very tick, however long the delay is and however long a stall
 * was; missed periods are counted, whatever the clock does. P3 each registration has
 * exactly one end. P4 a touch wins until the token is taken. P5 only a registration
 * allocates memory, and nothing is lost by an answer, a lapse, a return or a fault. P7
 * no look is in vain. P9 errors are precise and change nothing, and at most max_held
 * deliveries are out.
 *
 *	model_test [--seed=N] [--steps=N] [--only=TEST]
 *
 * A failure prints the seed, the test and the step. The same arguments lead to it
 * again.
 */
#include <string.h>

#include "dice.h"
#include "ids.h"
#include "main.h"
#include "look.h"
#include "tap.h"
#include "walk.h"

#define BATCH	200
#define BATCHES	4
#define HOLDERS	4
#define DEAD	64
#define NO_ID	0	/* key of an id that is never registered */

enum state { NONE, LIVE, TAKEN, HELD };

/*
 * The expected state of a token. @key stands for its id. @list is the list in which
 * it was filed last. Of that moment, @backs is the number of steps back of the clock,
 * and @lates the number of tokens that had been filed after their deadlines.
 * @touched tells whether its due tick was raised since then. @due is the due tick in
 * the ring, or the tick on which its lease is over if it is HELD. A look at the touch
 * word raises @due at least to @word_due and at most to @word_most. If the stamp may
 * be @ahead, further looks may raise @due again as time passes. A word that was
 * cleared raises nothing. @word_backs is the number of steps back of the clock when
 * the word was stored. The word was @stored after the token was taken. @holder is the
 * open file that holds the token. @period, @base and @missed: see struct tw_repeat.
 */
struct life {
	u64		handle;
	u64		due;
	u64		word_due;
	u64		word_most;
	u64		timeout;
	u64		cookie;
	u32		key;
	u32		list;
	u32		at;
	u32		moves;
	u32		backs;
	u32		word_backs;
	u64		lates;
	enum state	state;
	bool		named;
	bool		touched;
	bool		ahead;
	bool		stored;
	struct tw_holder *holder;
	u32		delivery;
	u32		attempts;
	u64		missed;
	u64		period;
	u64		base;
};

/* A batch of taken tokens. @who: number of the holder for which they were taken. */
struct batch {
	struct tw_taken	taken[BATCH];
	unsigned int	n;
	u32		who;
};

/* The first deadline of a token and the length of its period, in ns. */
struct period {
	u64	first, length;
};

/* A token that was found and is touched some steps later. */
struct stash {
	struct tw_found	found;
	struct tw_now	now;
	struct life	life;
	u32		index;
	bool		filled;
};

/*
 * @back: the clock may be stepped back. @backs: number of steps back. @bits:
 * deadlines and time are below 2^bits. @last: the last tick that the clock has
 * reached. @live, @due: indices and due ticks of the LIVE
 * tokens, in no order. @by_key: the token that has the id of a key. @out: number of
 * TAKEN and HELD tokens. @delivery, @attempts: number of the delivery and of attempts
 * before a token's first. @leaving: number of the holder that is being returned,
 * HOLDERS for none. @ended: tokens that a read or an ACK has ended.
 */
static struct model {
	struct tw_ring	ring;
	struct tw_ring_setup setup;
	bool		back;
	u32		backs;
	unsigned int	bits;
	struct tw_now	now;
	u64		last;
	struct life	*life;
	u32		*live;
	u64		*due;
	u32		nr_live;
	u32		out;
	u32		*by_key;
	u32		nr_keys;
	struct batch	batch[BATCHES];
	struct stash	stash;
	struct tw_holder *holder[HOLDERS];
	u32		leaving;
	u32		delivery;
	u32		attempts;
	bool		draining;
	u64		dead[DEAD];
	u64		nr_dead;
	u64		registered;
	u64		ended;
	u64		cancelled;
	u64		moved;
	u64		delivered;
	u64		put_back;
	u64		lates;
	struct tw_deliveries count;
	bool		expiring;
} m;

/* The sums over all rings of a test. */
static struct {
	u64	registered;
	u64	delivered;
	u64	refiled;
	u64	pending;
	u64	answered;
	u64	lapsed;
	u64	returned;
	u64	missed;
	u64	full;
} total;

void print_state(void)
{
	printf("slots %u tick %llu max %u ids %d cookies %d words %d back %d bits %u ",
	       m.ring.slots, m.ring.tick, m.setup.max_tokens, m.setup.ids,
	       m.setup.cookies, m.setup.words, m.back, m.bits);
	printf("periods %d lease %llu held %u ", m.setup.periods,
	       m.setup.lease, m.setup.max_held);
	printf("now %llu ns %llu next %llu pending %u out %u\n", m.now.tick,
	       m.now.ns, m.life ? tw_ring_next(&m.ring) : TW_NEVER, m.nr_live,
	       m.out);
}

/* Returns whether tokens have deliveries, which may be out or may come again. */
static bool has_deliveries(void)
{
	return m.setup.lease || m.setup.periods;
}

/* Returns whether max_held deliveries are out. */
static bool is_full(void)
{
	return m.setup.lease && m.out >= m.setup.max_held;
}

/* The following functions are about time. */

static u64 capped(__uint128_t ns)
{
	return ns > S64_MAX ? S64_MAX : (u64)ns;
}

static u64 now_ns(u64 tick, u64 into)
{
	return capped((__uint128_t)tick * m.ring.tick + into);
}

static void set_now(u64 ns)
{
	m.now.ns = ns;
	m.now.tick = ns / m.ring.tick;
	m.last = max(m.last, m.now.tick);
}

/* Returns an old reading of the clock. */
static struct tw_now lagging(void)
{
	struct tw_now now = m.now;

	now.ns -= min(now.ns, below(3 * m.ring.tick));
	now.tick = now.ns / m.ring.tick;

	return now;
}

/*
 * Returns a reading for an operation that changes the ring. Unless the clock may be
 * stepped back, it is the newest reading.
 */
static struct tw_now changing_now(void)
{
	if (!m.back || !once(4))
		return m.now;
	m.backs++;

	return lagging();
}

/*
 * Returns the ticks to a deadline, most often near a slot or a level where an error
 * is likely.
 */
static u64 pick_ticks(void)
{
	const struct tw_level *level =
		&m.ring.levels.level[below(m.ring.levels.nr)];
	u64 ticks;

	if (has_deliveries() && once(2))
		return below(20);

	switch (below(8)) {
	case 0:
		return below(4);
	case 1:
		return m.ring.slots - 1 + below(4);
	case 2:
		ticks = m.ring.slots * (1 + below(5));
		return ticks + below(3) - 1;
	case 3:
		if (level->width >> m.bits)
			return below(m.ring.slots);
		ticks = level->width * (1 + below(65));
		return ticks + below(3) - 1;
	default:
		return spread(m.bits);
	}
}

/* Returns the ns to a deadline, which is sometimes too far. */
static u64 pick_delay(void)
{
	u64 ticks;

	if (once(500))
		return S64_MAX - below(2);
	ticks = pick_ticks();

	return now_ns(ticks, below(m.ring.tick));
}

/* Returns a timeout. With touch words timeouts have an upper limit. */
static u64 pick_timeout(void)
{
	u64 timeout = pick_delay();

	return m.setup.words && timeout / m.ring.tick >= TW_MAX_STAMPED - 1 ?
		0 : timeout;
}

static u64 expected_due(const struct tw_now *now, u64 deadline)
{
	if (deadline <= now->ns)
		return now->tick;

	return ((__uint128_t)deadline + m.ring.tick - 1) / m.ring.tick;
}

/*
 * With touch words the deadline of a token with a timeout has an upper limit. A
 * touch's stamp would otherwise be so old at the deadline that it seems to lie in the
 * future.
 */
static bool too_far(const struct tw_now *now, u64 due, u64 timeout)
{
	return m.setup.words && timeout && due - now->tick >= TW_MAX_STAMPED;
}

/* Asks for the tick of a deadline, and returns whether there is one. */
static bool due_on(const struct tw_now *now, u64 deadline, u64 *due)
{
	u64 expected = expected_due(now, deadline);
	int err = tw_ring_due(&m.ring, now, deadline, due);

	CHECK_EQ(err, expected > m.ring.max_due ? -ERANGE : 0);
	if (!err)
		CHECK_EQ(*due, expected);

	return !err;
}

/* Returns the tick on which a time is reached, which is at most the last tick. */
static u64 tick_of(const struct tw_now *now, u64 time)
{
	return min(expected_due(now, time), m.ring.max_due);
}

/* P1: returns the tick after a period's deadline, and at least the tick of @now. */
static u64 period_tick_of(const struct tw_now *now, u64 base)
{
	u64 tick = ((__uint128_t)base + m.ring.tick - 1) / m.ring.tick;

	return min(max(tick, now->tick), m.ring.max_due);
}

static void step_time(void)
{
	u64 next = tw_ring_next(&m.ring);
	u64 tick = m.now.tick;

	switch (below(m.back ? 12 : 10)) {
	case 0:
	case 1:
		tick++;
		break;
	case 2:
		tick += below(m.ring.slots);
		break;
	case 3:
		set_now(min(m.now.ns + below(m.ring.tick), (u64)S64_MAX));
		return;
	case 4:
	case 5:
	case 6:
		if (next != TW_NEVER)
			tick = max(tick, next);
		break;
	case 7:
		if (next != TW_NEVER && next)
			tick = max(tick, next - 1);
		break;
	case 8:
		tick += below(4);
		break;
	case 9:
		if (once(4))
			tick += spread(m.bits);
		break;
	case 10:
		tick -= min(tick, below(4 * m.ring.slots));
		break;
	case 11:
		if (once(4))
			tick -= min(tick, spread(m.bits));
		break;
	}
	m.backs += tick < m.now.tick;
	if (tick != m.now.tick)
		set_now(now_ns(tick, below(m.ring.tick)));
}

/* The following functions keep the model and compare it with the ring. */

/* Returns an id. The ids of a pair of keys differ in one bit. */
static u64 id_of(u32 key)
{
	u64 state = key / 2;

	if (key == 1)
		return 0;
	if (key == 2)
		return U64_MAX;

	return random_next(&state) ^ (u64)(key & 1) << 40;
}

static struct tw_token *token_at(u32 index)
{
	return tw_arena_at(&m.ring.tokens, index);
}

static void set_due(u32 index, u64 due)
{
	m.life[index].due = due;
	m.due[m.life[index].at] = due;
}

static u64 *word_of(u32 index)
{
	return tw_words_at(&m.ring.words, index);
}

/*
 * Returns whether a stamp is of a later tick. Before that tick it counts as a touch
 * of now.
 */
static bool stamp_is_ahead(u64 word)
{
	return (u32)word && (s32)((u32)word - (u32)m.now.tick) > 0;
}

/* Returns how many ticks a stamp that makes sense is ahead at most: those of a second. */
static u32 max_ahead(void)
{
	return max(1000000000 / m.ring.tick, 1ULL);
}

/*
 * The word has no effect any more. If its stamp was ahead, it may have raised the
 * token twice.
 */
static void life_word_reset(struct life *life)
{
	life->touched |= life->ahead;
	life->word_due = 0;
	life->word_most = 0;
	life->ahead = false;
}

/*
 * Returns the tick to which the word raises its token at least. If the clock was
 * stepped back since the store, the stamp may lie in the future, and counts as a
 * touch at the time of a look.
 */
static u64 word_due_at_least(const struct life *life)
{
	return life->word_backs == m.backs ? life->word_due : 0;
}

/* P4: a stamp is cleared only after it has had its whole effect. */
static void learn_word(u32 index)
{
	struct life *life = &m.life[index];

	if (*word_of(index) != tw_stamp_none(life->handle >> 32))
		return;
	CHECK(life->due >= word_due_at_least(life),
	      "token %u due on %llu, its word said %llu and was cleared", index,
	      life->due, life->word_due);
	life_word_reset(life);
}

/*
 * Returns the tick to which the word raises its token at most. A word that makes no
 * sense counts as a touch at the time of a look.
 */
static u64 word_due_at_most(const struct life *life)
{
	u64 timeout = (life->timeout + m.ring.tick - 1) / m.ring.tick;

	return min(life->word_most, m.last + 2 + timeout);
}

/*
 * P1, P4: the ring may have raised due ticks by touch words since the last check, at
 * least to the known tick and at most to a tick that was stored.
 */
static void learn_due(u32 index)
{
	struct life *life = &m.life[index];
	u64 due = tw_token_due(token_at(index));

	if (due != life->due) {
		CHECK(m.setup.words && due > life->due &&
		      due <= word_due_at_most(life),
		      "token %u due on %llu, not %llu to %llu", index, due,
		      life->due, word_due_at_most(life));
		CHECK(life->ahead || due == word_due_at_least(life) ||
		      life->word_backs != m.backs,
		      "token %u due on %llu, its word said %llu", index, due,
		      life->word_due);
		set_due(index, due);
	}
	if (m.setup.words)
		learn_word(index);
}

static void learn_all(void)
{
	u32 i;

	for (i = 0; m.setup.words && i < m.nr_live; i++)
		learn_due(m.live[i]);
}

static void life_lives(u32 index, bool may_have_id)
{
	struct life *life = &m.life[index];

	m.out -= life->state != NONE;
	life->state = LIVE;
	life->stored = false;
	life->holder = NULL;
	life->touched = false;
	life->at = m.nr_live++;
	m.live[life->at] = index;
	m.due[life->at] = life->due;

	if (!may_have_id || m.by_key[life->key] != TW_NIL)
		return;
	life->named = true;
	m.by_key[life->key] = index;
}

static void life_unnamed(struct life *life)
{
	if (life->named)
		m.by_key[life->key] = TW_NIL;
	life->named = false;
}

/* A pending token is pending no more. */
static void life_stops(u32 index, enum state state)
{
	struct life *life = &m.life[index];
	u32 last = m.live[--m.nr_live];

	m.live[life->at] = last;
	m.due[life->at] = m.due[m.nr_live];
	m.life[last].at = life->at;
	life->state = state;
	m.out += state != NONE;
	if (!has_deliveries())
		life_unnamed(life);
}

static void life_over(u32 index)
{
	struct life *life = &m.life[index];

	if (life->state == LIVE)
		life_stops(index, NONE);
	m.out -= life->state != NONE;
	life->state = NONE;
	life->holder = NULL;
	/* The core clears the word only where it looks at each token that ends. */
	life->stored &= !has_deliveries();
	life_unnamed(life);
	m.dead[m.nr_dead++ % DEAD] = life->handle;
}

static void life_begins(u64 handle, u32 key, u64 cookie,
			const struct tw_deadline *deadline,
			const struct period *period)
{
	u32 index = (u32)handle;

	m.life[index] = (struct life) {
		.handle = handle, .due = deadline->due, .key = key,
		.timeout = deadline->timeout, .cookie = cookie,
		.list = m.life[index].list, .backs = m.backs,
		.lates = m.life[index].lates,
		.base = period ? period->first : 0,
		.period = period ? period->length : 0,
	};
	life_lives(index, m.setup.ids);
	m.registered++;
}

/* The token is pending once more. */
static void life_again(u32 index, u64 due)
{
	life_word_reset(&m.life[index]);
	m.life[index].due = due;
	life_lives(index, false);
}

/* A periodic token that is moved begins new periods there. */
static void life_moved(struct life *life, const struct tw_now *now,
		       const struct tw_deadline *deadline)
{
	if (!life->period)
		return;
	life->base = max(deadline->time, now->tick * m.ring.tick);
	life->attempts = 0;
	life->missed = 0;
}

/*
 * The event of a token is dealt with: its life is over, or its next period begins.
 */
static void life_goes_on(u32 index, const struct tw_now *now)
{
	struct life *life = &m.life[index];

	if (!life->period) {
		m.ended++;
		return life_over(index);
	}
	life->base = capped((__uint128_t)life->base + life->period);
	life->attempts = 0;
	life->missed = 0;
	life_again(index, period_tick_of(now, life->base));
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

/* The lease of a token is over. */
static void life_lapses(u32 index)
{
	life_again(index, m.life[index].due);
	m.count.lapsed++;
}

/*
 * Returns the first tick with work. If the ring is @full, only the end of a lease is
 * work.
 */
static u64 earliest(bool full)
{
	u64 first = TW_NEVER;
	u32 i;

	for (i = 0; !full && i < m.nr_live; i++)
		first = min(first, m.due[i]);
	for (i = 0; m.setup.lease && i < m.setup.max_tokens; i++)
		if (m.life[i].state == HELD)
			first = min(first, m.life[i].due);

	return first;
}

static enum state state_of(u32 index)
{
	const struct tw_token *token = token_at(index);

	switch (tw_word_state(token->word)) {
	case TW_ARMED:
		return LIVE;
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
	       tw_token_due(token_at(index));
}

static bool is_held_by(u32 index, const struct tw_holder *holder)
{
	return state_of(index) == HELD && place_of(index)->holder == holder;
}

static void check_delivery(u32 index)
{
	const struct life *life = &m.life[index];
	struct tw_token *token = token_at(index);
	const struct tw_repeat *repeat = tw_repeat_of(&m.ring, token);

	CHECK_EQ(tw_delivery_of(&m.ring, token)->number, life->delivery);
	CHECK_EQ(tw_delivery_of(&m.ring, token)->attempts, life->attempts);
	CHECK_EQ(repeat ? repeat->period : 0, life->period);
	CHECK_EQ(repeat ? repeat->missed : 0, life->missed);
	if (repeat)
		CHECK_EQ(repeat->base, life->base);
	if (life->state == HELD)
		CHECK(is_held_by(index, life->holder),
		      "token %u is held by another", index);
}

static void check_token(u32 index)
{
	const struct life *life = &m.life[index];
	const struct tw_token *token = token_at(index);

	CHECK_EQ(state_of(index), life->state);
	CHECK_EQ(due_of(index), life->due);
	CHECK_EQ(tw_token_handle(token, index), life->handle);
	CHECK_EQ(token->timeout, life->timeout);
	CHECK_EQ(tw_token_id(&m.ring, token),
		 m.setup.ids ? id_of(life->key) : 0);
	CHECK_EQ(token->named, life->named);
	CHECK_EQ(tw_token_cookie(&m.ring, token),
		 m.setup.cookies ? life->cookie : 0);
	if (m.setup.words && life->state != LIVE && !life->stored)
		CHECK_EQ(*word_of(index), 0);
	if (has_deliveries())
		check_delivery(index);
}

/*
 * Learns which leases have lapsed in a look on tick @now: the first to end, as many as
 * there are. Nothing else may have changed.
 */
static void learn_leases(u64 now)
{
	u64 lapsed = 0, left = TW_NEVER;
	u32 i;

	for (i = 0; i < m.setup.max_tokens; i++) {
		struct life *life = &m.life[i];

		if (life->state == HELD && life->due <= now &&
		    state_of(i) == LIVE) {
			lapsed = max(lapsed, life->due);
			life_lapses(i);
		} else if (life->state == HELD) {
			left = min(left, life->due);
		}
		if (life->state == LIVE || life->state == HELD)
			check_token(i);
	}
	CHECK(lapsed <= left, "the lease to %llu is over, that to %llu is not",
	      lapsed, left);
}

/*
 * Learns what a look on tick @now has changed. If the look was @whole, no work is
 * left.
 */
static void learn(u64 now, bool whole)
{
	learn_all();
	if (has_deliveries())
		learn_leases(now);
	if (!whole)
		return;
	CHECK(earliest(is_full()) > now, "one is due on %llu",
	      earliest(is_full()));
	CHECK(tw_ring_next(&m.ring) > now, "nothing was due");
}

/*
 * P9: at most max_held deliveries are out. P5: a wheel is looked at before its first
 * work, and exactly on that tick if max_held deliveries are out.
 */
static void check_room(void)
{
	u64 next = tw_ring_next(&m.ring), first = earliest(is_full());

	CHECK(!m.setup.lease || m.out <= m.setup.max_held,
	      "%u are out of %u", m.out, m.setup.max_held);
	CHECK_EQ(m.ring.delivery.held.used, m.setup.lease ? m.out : 0);
	CHECK(is_full() ? next == first : next <= first,
	      "looked at on %llu, but due on %llu", next, first);
	total.full += is_full();
}

static void check_counts(void)
{
	const struct tw_deliveries *have = &m.ring.delivery;

	CHECK_EQ(m.ring.pending, m.nr_live);
	CHECK_EQ(m.ring.tokens.used, m.nr_live + m.out);
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

static void check_holders(void)
{
	u32 i, held = 0, out[HOLDERS] = { 0 }, who;

	for (i = 0; i < m.setup.max_tokens; i++) {
		held += m.life[i].state == HELD;
		for (who = 0; who < HOLDERS; who++)
			out[who] += m.life[i].holder == m.holder[who];
	}
	CHECK_EQ(m.ring.delivery.held.count, held);
	for (who = 0; who < HOLDERS; who++) {
		CHECK_EQ(m.holder[who]->count, out[who]);
		check_holder(m.holder[who]);
	}
}

/* All memory that is allocated belongs to the ring. */
static void check_all(void)
{
	u32 i;

	learn_all();
	walk(&m.ring);
	for (i = 0; i < m.setup.max_tokens; i++) {
		const struct life *life = &m.life[i];

		if (life->state == LIVE || life->state == HELD)
			check_token(i);
		/* The touch word of a free place has to be 0. */
		if (m.setup.words && life->state == NONE && life->handle &&
		    !life->stored)
			CHECK_EQ(*word_of(i), 0);
	}
	if (m.setup.lease)
		check_holders();
	check_counts();
	check_room();
	CHECK_EQ(tw_ring_bytes(&m.ring), shim_bytes() + sizeof(m.ring));
}

/*
 * The core calls this function to file a token in a list. P7: a look files a token on
 * a finer level than before, unless the token was touched or the clock stepped back
 * since the token was filed. A token is therefore filed once for each level, timeout
 * and step back, and a token that is late also once for each token that was filed late.
 */
bool lists_add(struct tw_lists *lists, u32 list, u32 index,
	       struct tw_token *token)
{
	struct life *life = &m.life[index];
	bool lapses = m.expiring && life->state == HELD;

	m.lates += lapses;
	/*
	 * After a step back a stamp may be ahead, and the token may be filed more
	 * than once.
	 */
	if (m.expiring && !lapses && !life->touched && !life->ahead &&
	    life->backs == m.backs && !(m.setup.words && m.backs) &&
	    (life->lates == m.lates ||
	     list_level(&m.ring, life->list) < m.ring.levels.back))
		CHECK(list_level(&m.ring, list) <
		      list_level(&m.ring, life->list),
		      "token %u due on %llu filed again: list %u to %u", index,
		      life->due, life->list, list);
	if (m.expiring)
		life->touched = false;
	life->list = list;
	life->backs = m.backs;
	life->lates = m.lates;

	return (tw_lists_add)(lists, list, index, token);
}

/* The following functions are the operations. */

static void lock(void)
{
	spin_lock(&m.ring.lock);
}

static void unlock(void)
{
	spin_unlock(&m.ring.lock);
}

/* P5, P9: if a registration cannot let the ring grow, it changes nothing. */
static int register_growing(const struct tw_now *now, u32 key, u64 cookie,
			    const struct tw_deadline *deadline, u64 *handle,
			    const struct period *period)
{
	bool may_fail = step && once(4);
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
		CHECK(rounds++ < 2, "growing is no help");
		if (may_fail)
			shim_fail_alloc = 1 + below(3);
		err = tw_ring_grow(&m.ring);
		CHECK(!err || (err == -ENOMEM && may_fail), "grow: %d", err);
		shim_fail_alloc = 0;
		if (err)
			return err;
	}
}

/* The first deadline may have passed. A period is at least one tick. */
static struct period pick_period(const struct tw_now *now)
{
	__uint128_t length = (__uint128_t)m.ring.tick * (1 + below(12));
	struct period period = {
		.first = once(8) ? now->ns - min(now->ns, pick_delay()) :
			 capped((__uint128_t)now->ns + pick_delay()),
		.length = once(8) ? S64_MAX - below(9) :
			  capped(length + below(m.ring.tick)),
	};

	return period;
}

/* P9: an id that exists, in whatever state, is reported before a lack of room. */
static bool register_error_is_right(int err, u32 key, int inserting)
{
	bool known = m.setup.ids && m.by_key[key] != TW_NIL;
	u32 used = m.nr_live + m.out;

	if (m.draining || used == m.setup.max_tokens)
		return err == (known ? -EEXIST :
			       m.draining ? -ESHUTDOWN : -ENOSPC);
	if (err == -ENOMEM && m.ring.tokens.used == used &&
	    inserting != -ENOMEM)
		return true;
	if (inserting)
		return err == inserting;

	return err == (known ? -EEXIST : 0);
}

/* The deliveries of a token are numbered from a number near the last one. */
static void number_deliveries(u32 index)
{
	struct tw_delivery *delivery = tw_delivery_of(&m.ring, token_at(index));

	delivery->number = m.delivery;
	delivery->attempts = m.attempts;
	m.life[index].delivery = m.delivery;
	m.life[index].attempts = m.attempts;
}

/*
 * P3: each life has the next generation, and none has generation 0. @handle: the handle of the
 * life before, or 0 if there was none.
 */
static u32 next_generation(u64 handle)
{
	u32 next = handle ? (handle >> 32) + 1 : m.ring.first_generation;

	return next ?: 1;
}

static void register_one(const struct tw_now *now, u32 key,
			 const struct tw_deadline *deadline,
			 const struct period *period)
{
	u64 handle, cookie = spread(64);
	int inserting = 0, err;
	u32 index;

	if (m.setup.ids && !m.draining &&
	    m.nr_live + m.out < m.setup.max_tokens && once(50))
		inserting = once(2) ? -ENOMEM : -EBUSY;

	shim_fail_insert = inserting;
	err = register_growing(now, key, cookie, deadline, &handle, period);
	shim_fail_insert = 0;
	CHECK(register_error_is_right(err, key, inserting), "error %d", err);
	if (err)
		return;

	index = (u32)handle;
	CHECK(index < m.setup.max_tokens && m.life[index].state == NONE,
	      "token %u is given twice", index);
	CHECK_EQ(handle >> 32, next_generation(m.life[index].handle));
	life_begins(handle, key, cookie, deadline, period);
	if (m.setup.lease)
		number_deliveries(index);
	CHECK(tw_ring_next(&m.ring) <= deadline->due || is_full(),
	      "due on %llu", deadline->due);
}

/* Registers one token, or many equal tokens at once. */
static void op_register(void)
{
	struct tw_now now = changing_now();
	bool periodic = m.setup.periods && once(2);
	struct period period = pick_period(&now);
	struct tw_deadline deadline = {
		.timeout = periodic || once(4) ? 0 : pick_timeout(),
	};
	u64 at = !m.setup.words && once(16) ? spread(63) : now.ns + pick_delay();
	u32 key = below(m.nr_keys), n = once(100) ? below(100) : 1;

	if (!due_on(&now, periodic ? period.first : at, &deadline.due) ||
	    too_far(&now, deadline.due, deadline.timeout))
		return;
	for (; n; n--, key++)
		register_one(&now, 1 + key % (m.nr_keys - 1), &deadline,
			     periodic ? &period : NULL);
}

/*
 * Returns a token in state @liked, or another token if there is none in this state,
 * or TW_NIL. With NONE each token will do.
 */
static u32 any_token(enum state liked)
{
	u32 i, at = below(m.setup.max_tokens), any = TW_NIL;

	if (liked == LIVE && m.nr_live)
		return m.live[below(m.nr_live)];
	if (!m.nr_live && !m.out)
		return TW_NIL;
	for (i = 0; i < m.setup.max_tokens; i++, at++) {
		u32 index = at % m.setup.max_tokens;

		if (m.life[index].state == NONE)
			continue;
		if (m.life[index].state == liked)
			return index;
		if (any == TW_NIL)
			any = index;
		if (liked == NONE)
			break;
	}

	return any;
}

/* Looks up a token by id or handle. Only a pending token may be found. */
static bool find(struct tw_found *found, u32 *index)
{
	const struct life *life;
	bool live;

	*index = any_token(once(8) ? NONE : LIVE);
	if (*index == TW_NIL)
		return false;
	life = &m.life[*index];
	live = life->state == LIVE;
	if (life->named && once(2))
		CHECK_EQ(tw_ring_by_id(&m.ring, id_of(life->key), found),
			 live ? 0 : -ENOENT);
	else
		CHECK_EQ(tw_ring_by_handle(&m.ring, life->handle, NULL, found),
			 live ? 0 : -ESTALE);
	if (!live)
		return false;
	CHECK(found->token == token_at(*index), "token %u not found", *index);
	learn_due(*index);
	CHECK_EQ(tw_word_due(found->word), life->due);

	return true;
}

static void op_touch(void)
{
	struct tw_now now = !m.setup.words && once(4) ? lagging() : m.now;
	struct tw_found found;
	struct life *life;
	u64 due, raised;
	u32 index;
	int err;

	if (!find(&found, &index))
		return;
	if (m.setup.words) {
		lock();
		tw_look_apply_stamp(&m.ring, &found, now.tick);
		unlock();
		learn_due(index);
	}

	life = &m.life[index];
	raised = expected_due(&now, now.ns + life->timeout);
	err = tw_ring_touch(&m.ring, &found, &now, &due);
	if (!life->timeout || raised > m.ring.max_due) {
		CHECK_EQ(err, life->timeout ? -ERANGE : -EINVAL);
		return;
	}
	CHECK_EQ(err, 0);
	CHECK_EQ(due, max(life->due, raised));
	CHECK_EQ(tw_word_due(found.word), life->due);
	life->touched |= due > life->due;
	set_due(index, due);
}

/* Finds a token, to touch it some steps later. */
static void op_stash(void)
{
	struct tw_found found;
	u32 index;

	if (m.setup.words || !find(&found, &index))
		return;
	m.stash = (struct stash) {
		.found = found, .now = m.now, .life = m.life[index],
		.index = index, .filled = true,
	};
}

/*
 * P4: a touch that returns success keeps its token for its whole timeout. The token
 * may end, and another may begin in its place, between the look-up and the touch.
 */
static void op_touch_stashed(void)
{
	struct life *life = &m.life[m.stash.index];
	const struct life *before = &m.stash.life;
	u64 due, raised;
	int err;

	if (!m.stash.filled || !before->timeout ||
	    (life->handle == before->handle && life->moves != before->moves))
		return;

	m.stash.filled = false;
	raised = expected_due(&m.stash.now, m.stash.now.ns + before->timeout);
	err = tw_ring_touch(&m.ring, &m.stash.found, &m.stash.now, &due);
	if (life->handle != before->handle || life->state != LIVE) {
		CHECK_EQ(err, -ESTALE);
		return;
	}
	CHECK_EQ(err, raised > m.ring.max_due ? -ERANGE : 0);
	if (err)
		return;
	CHECK_EQ(due, max(life->due, raised));
	life->touched |= due > life->due;
	set_due(m.stash.index, due);
}

/*
 * Notes the effect of a word that is stored now. A stamp of the present tick or
 * before, or of at most a second ahead, counts as it is. Any other word counts as a
 * touch at the time of a look, and so may a very old stamp. On a tick that has no
 * stamp, the stamp is of the next tick.
 */
static void life_stored(struct life *life, u64 word)
{
	u64 timeout = (life->timeout + m.ring.tick - 1) / m.ring.tick;
	u64 now_due = m.now.tick + 1 + timeout;
	s32 ahead = (u32)word - (u32)m.now.tick;
	bool sane = word >> 32 == life->handle >> 32;

	life->stored = life->state != LIVE;
	if (life->stored)
		return;
	life_word_reset(life);
	if (!life->timeout || (sane && !(u32)word))
		return;
	life->word_backs = m.backs;
	life->ahead = !sane || ahead > 0 || ahead <= -(1 << 30);
	if (!life->ahead) {
		life->word_due = max(now_due, (u64)-ahead) - -ahead;
		life->word_most = life->word_due;
	} else if (sane && ahead > 0 && (u32)ahead <= max_ahead()) {
		life->word_due = now_due + ahead;
		life->word_most = now_due + ahead;
	} else {
		life->word_due = sane && ahead < 0 ? 0 : now_due;
		life->word_most = U64_MAX;
	}
	life->word_due = min(life->word_due, m.ring.max_due);
	life->touched = true;
}

/*
 * Stores to a touch word, as any user may do. The word is most often a stamp, and
 * sometimes nonsense. If the token is not pending, the store has no effect.
 */
static void op_store(void)
{
	u32 index = any_token(once(8) ? NONE : LIVE);
	u64 word;

	if (!m.setup.words)
		return op_touch();
	if (index == TW_NIL)
		return;
	if (m.life[index].state == LIVE)
		learn_due(index);
	switch (below(16)) {
	case 0:
		word = 0;
		break;
	case 1:
		word = rnd();
		break;
	case 2:
		word = tw_stamp(m.life[index].handle >> 32, rnd());
		break;
	case 3:
		word = tw_stamp((m.life[index].handle >> 32) - 1, m.now.tick);
		break;
	default:
		word = tw_stamp(m.life[index].handle >> 32,
				m.now.tick + (once(4) ? 8 - below(100) : 0));
		break;
	}
	WRITE_ONCE(*word_of(index), word);
	life_stored(&m.life[index], word);
}

/*
 * GET and LIST look at touch words and carry out their touches. A stamp that does not
 * change the deadline is cleared, unless it is ahead and may still change the
 * deadline later.
 */
static void op_apply_stamp(void)
{
	struct tw_found found;
	struct life *life;
	u64 before, word;
	u32 index;

	if (!m.setup.words)
		return;
	lock();
	if (find(&found, &index)) {
		life = &m.life[index];
		before = life->due;
		tw_look_apply_stamp(&m.ring, &found, m.now.tick);
		learn_due(index);
		word = *word_of(index);
		CHECK_EQ(tw_word_due(found.word), life->due);
		CHECK(life->due >= word_due_at_least(life) || stamp_is_ahead(word),
		      "token %u due on %llu, its word said %llu", index,
		      life->due, life->word_due);
		CHECK(!life->timeout || !stamp_is_ahead(word) ||
		      (u32)word - (u32)m.now.tick <= max_ahead(),
		      "token %u: stamp %x is too far ahead, but stays", index,
		      (u32)word);
		if (life->timeout && life->due == before)
			CHECK(!(u32)word || stamp_is_ahead(word),
			      "token %u: stamp %x adds nothing, but stays",
			      index, (u32)word);
	}
	unlock();
}

static void op_move(void)
{
	struct tw_now now = changing_now();
	struct tw_deadline deadline = {
		.time = now.ns + pick_delay(),
		.timeout = once(2) ? 0 : pick_timeout(),
	};
	struct tw_found found;
	struct life *life;
	u32 index;

	lock();
	if (find(&found, &index) &&
	    due_on(&now, deadline.time, &deadline.due) &&
	    !too_far(&now, deadline.due,
		     deadline.timeout ?: m.life[index].timeout)) {
		life = &m.life[index];
		if (life->period)
			deadline.timeout = 0;
		tw_ring_move(&m.ring, &found, &now, &deadline);
		CHECK_EQ(tw_word_due(found.word), life->due);
		life->timeout = deadline.timeout ?: life->timeout;
		life_word_reset(life);
		life_moved(life, &now, &deadline);
		life->touched = false;
		life->moves++;
		set_due(index, deadline.due);
		m.moved++;
		check_token(index);
		CHECK(tw_ring_next(&m.ring) <= life->due || is_full(),
		      "due on %llu", life->due);
	}
	unlock();
}

static void op_cancel(void)
{
	struct tw_found found;
	u32 index;

	lock();
	if (find(&found, &index)) {
		tw_ring_cancel(&m.ring, &found);
		if (m.setup.words)
			CHECK_EQ(*word_of(index), 0);
		CHECK_EQ(tw_word_due(found.word), m.life[index].due);
		life_over(index);
		m.cancelled++;
	}
	unlock();
}

static void op_drain(void)
{
	m.draining = once(12);
	lock();
	tw_ring_drain(&m.ring, m.draining);
	unlock();
}

/* A prefetch of tokens that may not exist has no effect. */
static void fetch_ahead(u64 handle)
{
	u64 ids[TW_IDS_AHEAD];
	u32 i;

	for (i = 0; i < TW_IDS_AHEAD; i++)
		ids[i] = id_of(below(m.nr_keys));
	if (m.setup.ids)
		tw_ids_prefetch(&m.ring.ids, ids, 1 + below(TW_IDS_AHEAD));
	tw_ring_prefetch_place(&m.ring, tw_ring_prefetch_handle(&m.ring, handle));
}

static int find_out(bool by_handle, u64 value, struct tw_found *found)
{
	const struct tw_key key = { .by_handle = by_handle, .value = value };

	return tw_delivery_find(&m.ring, key, found);
}

/* Neither way to look up a token by its handle finds one. */
static void no_handle(u64 handle)
{
	struct tw_found found;

	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, NULL, &found), -ESTALE);
	lock();
	CHECK_EQ(find_out(true, handle, &found), -ESTALE);
	unlock();
}

/* Neither way to look up a token by its id finds one. */
static void no_id(u32 key)
{
	int err = m.setup.ids ? -ENOENT : -EINVAL;
	struct tw_found found;

	if (m.setup.ids && key != NO_ID && m.by_key[key] != TW_NIL)
		return;
	CHECK_EQ(tw_ring_by_id(&m.ring, id_of(key), &found), err);
	lock();
	CHECK_EQ(find_out(false, id_of(key), &found), err);
	unlock();
}

/*
 * P9: a token that does not exist is not found, and each way to look it up has its
 * own error.
 */
static void op_find_nothing(void)
{
	u32 index = below(m.setup.max_tokens);
	u64 handle;

	if (m.life[index].state == NONE)
		no_handle(m.life[index].handle);
	no_handle(m.dead[below(DEAD)]);
	if (m.life[index].handle)
		no_handle(m.life[index].handle + (1ULL << 32));

	handle = once(2) ? U32_MAX - below(3) : below(m.setup.max_tokens);
	handle |= rnd() << 32;
	index = min((u32)handle, m.setup.max_tokens - 1);
	if (m.life[index].handle != handle)
		no_handle(handle);
	/* These handles have a token's generation and a place that is too large. */
	fetch_ahead(handle);
	handle = m.life[below(m.setup.max_tokens)].handle;
	handle |= 1U << (14 + below(18));
	fetch_ahead(handle);
	no_handle(handle);
	no_id(below(m.nr_keys));
}

/* The following functions are about tokens whose deliveries may be out. */

/* Finds a token that is pending or held. The caller has the lock. */
static bool find_any(struct tw_found *found, u32 *index, enum state liked)
{
	bool by_handle;
	const struct life *life;
	int err;

	*index = any_token(once(4) ? NONE : liked);
	if (*index == TW_NIL)
		return false;
	life = &m.life[*index];
	by_handle = !life->named || once(2);
	err = find_out(by_handle, by_handle ? life->handle : id_of(life->key),
		       found);
	CHECK_EQ(err, life->state == TAKEN ? -ESTALE : 0);
	if (err)
		return false;
	CHECK(found->token == token_at(*index), "another token");
	CHECK_EQ(tw_delivery_index(&m.ring, found), *index);
	if (life->state == LIVE)
		learn_due(*index);
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

static void answer_ack(struct tw_found *found, u32 index,
		       const struct tw_now *now)
{
	tw_delivery_ack(&m.ring, found, now);
	m.count.acked++;
	life_goes_on(index, now);
}

static void answer_nack(struct tw_found *found, u32 index,
			const struct tw_now *now)
{
	u64 due;

	if (!due_on(now, now->ns + (once(3) ? 0 : pick_delay()), &due) ||
	    too_far(now, due, m.life[index].timeout))
		return;
	tw_delivery_nack(&m.ring, found, now, due);
	m.count.nacked++;
	life_again(index, due);
}

/* An extended lease ends later or earlier than before. */
static void answer_extend(struct tw_found *found, u32 index,
			  const struct tw_now *now)
{
	u64 time = once(3) ? m.setup.lease : pick_delay(), end;

	if (!due_on(now, now->ns + time, &end))
		return;
	m.life[index].due = end;
	tw_delivery_extend(&m.ring, found, end);
	CHECK_EQ(tw_delivery_due(&m.ring, found), end);
}

static void op_answer(void)
{
	static void (*const answers[])(struct tw_found *found, u32 index,
				       const struct tw_now *now) = {
		answer_nack, answer_extend, answer_ack, answer_ack,
	};
	struct tw_now now = changing_now();
	struct tw_found found;
	u32 index;

	lock();
	if (find_any(&found, &index, HELD) &&
	    may_answer(&found, &m.life[index])) {
		answers[below(4)](&found, index, &now);
		if (m.life[index].state != NONE)
			check_token(index);
	}
	unlock();
}

static void delete(struct tw_found *found, u32 index)
{
	CHECK_EQ(tw_delivery_delete(&m.ring, found), m.life[index].due);
	life_over(index);
	m.count.deleted++;
}

/* Deletes a token, whether its delivery is out or not. */
static void op_delete(void)
{
	struct tw_found found;
	u32 index;

	lock();
	if (find_any(&found, &index, once(2) ? HELD : LIVE))
		delete(&found, index);
	unlock();
}

/* The following functions take expired tokens. */

static unsigned int pick_work(void)
{
	switch (below(4)) {
	case 0:
		return 1 + below(3);
	case 1:
		return 1 + below(100);
	default:
		return 1U << 30;
	}
}

static void op_find_due(void)
{
	struct tw_now now = changing_now();
	unsigned int work = pick_work(), before = work;
	u64 looked = m.ring.refiled + m.ring.delivery.lapsed;
	u32 index;

	lock();
	m.expiring = true;
	index = tw_look_find_due(&m.ring, now.tick, &work);
	m.expiring = false;
	unlock();

	CHECK_EQ(before - work,
		 m.ring.refiled + m.ring.delivery.lapsed - looked);
	learn(now.tick, index == TW_NIL && work);
	if (index == TW_NIL)
		return;
	CHECK(!is_full(), "token %u cannot be taken", index);
	CHECK_EQ(m.life[index].state, LIVE);
	CHECK(m.life[index].due <= now.tick, "early: due on %llu",
	      m.life[index].due);
	CHECK_EQ(m.life[index].due, earliest(false));
}

/*
 * P1: no token is early. P3: each token is taken once, and has one more delivery.
 * Deliveries are numbered from 1, and after the last number follows 1, because 0 means
 * none. The number of attempts stops at its maximum, and does not begin again at 1.
 */
static void check_taken(u32 index, u64 now)
{
	struct life *life = &m.life[index];

	CHECK(index < m.setup.max_tokens, "took token %u", index);
	if (life->state == HELD && life->due <= now)
		life_lapses(index);
	CHECK(life->state == LIVE, "took token %u, which is not pending", index);
	learn_due(index);
	life_misses(life, now);
	life_stops(index, TAKEN);
	if (m.setup.lease) {
		life->attempts = min(life->attempts, U32_MAX - 1) + 1;
		life->delivery = life->delivery + 1 ?: 1;
	}
	check_token(index);
	CHECK(life->due <= now, "early: due on %llu", life->due);
	CHECK(life->due >= word_due_at_least(life),
	      "early: due on %llu, its word said %llu", life->due,
	      life->word_due);
}

/*
 * The tokens come in the order of their due ticks, and no token that is left is due
 * earlier, also after a put-back.
 */
static void check_order(const struct batch *batch)
{
	u64 last = 0;
	unsigned int i;

	for (i = 0; i < batch->n; i++) {
		u64 due = m.life[batch->taken[i].index].due;

		CHECK(due >= last, "due on %llu after %llu", due, last);
		last = due;
	}
	CHECK(earliest(false) >= last, "due on %llu, taken after %llu",
	      earliest(false), last);
}

static void take(struct batch *batch, u64 now, unsigned int work,
		 unsigned int max)
{
	unsigned int before = work, i;
	u64 looked = m.ring.refiled + m.ring.delivery.lapsed;
	bool must = tw_ring_next(&m.ring) <= now;

	lock();
	m.expiring = true;
	batch->n = tw_look_take(&m.ring, now, &work, batch->taken, max);
	m.expiring = false;
	unlock();

	CHECK(batch->n <= max, "took %u of %u", batch->n, max);
	CHECK_EQ(before - work, m.ring.refiled + m.ring.delivery.lapsed -
		 looked + batch->n);
	CHECK((before != work) == must, "a look in vain, or none");
	for (i = 0; i < batch->n; i++)
		check_taken(batch->taken[i].index, now);
	learn(now, batch->n < max && work);
	check_order(batch);
}

static void life_delivered(u32 index, const struct tw_now *now,
			   struct tw_holder *holder)
{
	struct life *life = &m.life[index];

	m.delivered++;
	if (!m.setup.lease)
		return life_goes_on(index, now);
	life->state = HELD;
	life->holder = holder;
	life->due = tick_of(now, now->ns + m.setup.lease);
}

static void deliver(const struct batch *batch, unsigned int n,
		    const struct tw_now *now)
{
	struct tw_holder *holder = m.holder[batch->who];
	unsigned int i;

	for (i = 0; i < n; i++)
		check_token(batch->taken[i].index);
	lock();
	for (i = 0; i < n;) {
		u64 due;
		unsigned int some = tw_look_delivered(&m.ring, batch->taken + i, n - i,
						      &due, now, holder);

		CHECK(some, "nothing is delivered");
		for (; some; some--, i++)
			CHECK_EQ(due, m.life[batch->taken[i].index].due);
	}
	unlock();
	for (i = 0; i < n; i++) {
		life_delivered(batch->taken[i].index, now, holder);
		if (m.life[batch->taken[i].index].state != NONE)
			check_token(batch->taken[i].index);
	}
}

/*
 * P5: a token that could not be copied is pending again, and comes first. It was not
 * delivered, and the number of its delivery is used again. If the id table has no
 * memory, the first of these tokens stays without its id.
 */
static void put_back(struct batch *batch, unsigned int from)
{
	unsigned int n = batch->n - from, i;
	bool may_fail = m.setup.ids && !has_deliveries();
	bool no_memory = may_fail && n && once(8);

	m.put_back += n;
	m.lates += n;
	shim_fail_insert = no_memory ? -ENOMEM : 0;
	lock();
	tw_look_put_back(&m.ring, batch->taken + from, n);
	unlock();
	for (i = from; i < batch->n; i++) {
		struct life *life = &m.life[batch->taken[i].index];

		if (m.setup.lease) {
			life->attempts--;
			life->delivery--;
		}
		life_word_reset(life);
		life_lives(batch->taken[i].index,
			   m.setup.ids && !(no_memory && i == from));
		/*
		 * After a step back the token may not be due any more, and may be
		 * filed as if it was touched.
		 */
		life->touched = life->due > m.now.tick;
		check_token(batch->taken[i].index);
	}
	if (!n)
		return;
	CHECK(tw_ring_next(&m.ring) <= m.life[batch->taken[from].index].due,
	      "what was put back waits");
}

static void finish(struct batch *batch)
{
	struct tw_now now = changing_now();
	unsigned int n = once(2) ? batch->n : below(batch->n + 1);

	deliver(batch, n, &now);
	put_back(batch, n);
	if (n < batch->n && !m.back && once(2)) {
		n = batch->n - n;
		take(batch, m.now.tick, n, n);
		deliver(batch, batch->n, &m.now);
	}
	batch->n = 0;
}

/*
 * Takes tokens, or finishes an earlier take, as slow readers do. A holder that is
 * leaving takes no more.
 */
static void op_take(void)
{
	static const unsigned int most[] = { 1, 3, 64, BATCH };
	struct batch *batch = &m.batch[below(BATCHES)];
	struct tw_now now = changing_now();
	unsigned int work = pick_work();

	if (batch->n)
		return finish(batch);
	batch->who = below(HOLDERS);
	if (batch->who != m.leaving)
		take(batch, now.tick, work, most[below(4)]);
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
		life_again(i, min(now->tick, m.ring.max_due));
		m.count.returned++;
		check_token(i);
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
	struct tw_now now = changing_now();
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

/* With touch words the ticks of an episode are at most so far from each other. */
#define WORDS_REACH	(1ULL << 28)

/*
 * Returns the tick on which time begins. Any tick is possible, but ticks before a
 * wrap are frequent.
 */
static u64 pick_start(void)
{
	u64 stamps = below(4) << 31;

	if (m.setup.words)
		return stamps ? stamps - 100 + below(200) : below(200);
	if (once(16))
		return m.ring.max_due - below(100);

	return once(4) ? below(3) : spread(ilog2(m.ring.max_due));
}

static void begin(const struct tw_ring_setup *setup)
{
	u32 i;

	memset(&m, 0, sizeof(m));
	m.setup = *setup;
	m.leaving = HOLDERS;
	m.bits = 10;
	m.life = calloc(setup->max_tokens, sizeof(*m.life));
	m.live = calloc(setup->max_tokens, sizeof(*m.live));
	m.due = calloc(setup->max_tokens, sizeof(*m.due));
	m.nr_keys = once(4) ? 4 : 2 * setup->max_tokens + 4;
	m.by_key = calloc(m.nr_keys, sizeof(*m.by_key));
	for (i = 0; i < m.nr_keys; i++)
		m.by_key[i] = TW_NIL;
	for (i = 0; i < HOLDERS; i++)
		m.holder[i] = calloc(1, sizeof(*m.holder[i]));
	CHECK_EQ(tw_ring_init(&m.ring, setup), 0);
	check_all();
}

static void end(void)
{
	u32 i;

	check_all();
	total.registered += m.registered;
	total.delivered += m.delivered;
	total.refiled += m.ring.refiled;
	total.answered += m.count.acked + m.count.nacked;
	total.lapsed += m.count.lapsed;
	total.returned += m.count.returned;
	total.missed += m.count.missed;
	tw_ring_destroy(&m.ring);
	CHECK_EQ(shim_bytes(), 0);
	for (i = 0; i < HOLDERS; i++)
		free(m.holder[i]);
	free(m.life);
	free(m.live);
	free(m.due);
	free(m.by_key);
	m.life = NULL;
}

/* Takes and delivers all tokens that are due now. */
static void take_all(void)
{
	struct batch batch = { .who = 0 };

	do {
		take(&batch, m.now.tick, 1U << 30, BATCH);
		deliver(&batch, batch.n, &m.now);
	} while (batch.n == BATCH);
}

/* Looks at all touch words for the last time. */
static void apply_stamps(void)
{
	struct tw_found found;
	u32 i;

	lock();
	for (i = 0; m.setup.words && i < m.nr_live; i++) {
		struct life *life = &m.life[m.live[i]];

		CHECK_EQ(tw_ring_by_handle(&m.ring, life->handle, NULL, &found), 0);
		tw_look_apply_stamp(&m.ring, &found, m.now.tick);
		learn_due(m.live[i]);
		WRITE_ONCE(*word_of(m.live[i]),
			   tw_stamp_none(life->handle >> 32));
		life_word_reset(life);
	}
	unlock();
}

/* Looks at the ring only when it asks for it, until no token is left. */
static void look_until_empty(void)
{
	apply_stamps();
	take_all();
	while (m.nr_live) {
		u64 delivered = m.delivered, first = earliest(false);

		set_now(now_ns(tw_ring_next(&m.ring), 0));
		take_all();
		CHECK((m.delivered != delivered) == (m.now.tick == first),
		      "due on %llu, looked at on %llu", first, m.now.tick);
	}
}

/*
 * Looks at a ring, whose tokens may come again for ever, only when it asks for a look.
 * Each look finds all due tokens. At the end all tokens are deleted.
 */
static void look_and_delete(void)
{
	struct batch batch = { .who = 0 };
	struct tw_found found;
	unsigned int i;
	u32 index;

	for (i = 0; i < 100 && tw_ring_next(&m.ring) <= m.ring.max_due; i++) {
		set_now(now_ns(max(m.now.tick, tw_ring_next(&m.ring)), 0));
		take(&batch, m.now.tick, 1U << 30, BATCH);
		deliver(&batch, batch.n, &m.now);
	}
	lock();
	while ((index = any_token(NONE)) != TW_NIL) {
		CHECK_EQ(find_out(true, m.life[index].handle, &found), 0);
		delete(&found, index);
	}
	unlock();
}

/*
 * P2, P7: if the caller looks only when the ring asks for it, every token comes on
 * its very tick.
 */
static void run_dry(void)
{
	unsigned int i;

	for (i = 0; i < BATCHES; i++) {
		deliver(&m.batch[i], m.batch[i].n, &m.now);
		m.batch[i].n = 0;
	}
	if (has_deliveries())
		look_and_delete();
	else
		look_until_empty();
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
		op_cancel, op_cancel, op_move, op_move, op_move, op_stash,
		op_touch_stashed, op_find_nothing, op_find_due, op_apply_stamp,
		op_store, op_store, op_store, op_touch, op_touch, op_touch,
		op_drain,
	};
	u64 choice = below(100);

	if (choice < registering)
		return op_register();
	if (choice >= 100 - passing)
		return once(has_deliveries() ? 3 : 2) ? step_time() : op_take();
	if (m.setup.lease && once(2))
		return with_lease[below(5)]();
	others[below(17)]();
}

static bool time_is_over(u64 start, u64 end)
{
	u64 tick = m.now.tick;

	return tick > end ||
	       (m.setup.words && max(tick, start) - min(tick, start) > WORDS_REACH);
}

static void run_steps(u64 last)
{
	u64 start = m.now.tick, check_at = step, end = m.ring.max_due / 8 * 7;
	bool busy = has_deliveries();
	unsigned int registering = busy ? 15 : 30, passing = busy ? 45 : 20;

	if (start > end || busy || once(16))
		end = TW_NEVER;
	for (; step < last && dice_left() && !time_is_over(start, end); step++) {
		if (once(500)) {
			registering = below(busy ? 30 : 60);
			passing = busy ? 10 + below(60) :
				  1 + below(1 + below(40));
		}
		one_step(registering, passing);
		total.pending += m.nr_live;
		if (m.setup.lease)
			check_room();
		if (step < check_at)
			continue;
		check_all();
		check_at = step + 100 + m.ring.levels.lists.nr / 16 + m.nr_live / 4;
	}
}

/* Returns a ring's first generation, which is 0 or shortly before a new bit or a wrap. */
static u32 pick_generation(void)
{
	if (once(2))
		return 0;

	return (once(2) ? U32_MAX : U16_MAX) - below(4);
}

static struct tw_ring_setup pick_setup(u32 slots, u64 nr)
{
	static const u64 ticks[] = { 1, 7, 1000, 100000, 1000000000 };
	static const u32 most[] = { 1, 2, 31, 100, 10, 600, 2000, 5000 };
	bool deliveries = nr % 3;
	struct tw_ring_setup setup = {
		.tick = ticks[below(5)], .slots = slots,
		.max_tokens = most[below(deliveries ? 5 : 8)],
		.ids = nr & 1, .cookies = nr >> 1 & 1, .words = once(3),
		.periods = deliveries && once(2),
		.first_generation = pick_generation(),
	};

	if (deliveries && (!setup.periods || !once(3))) {
		setup.lease = setup.tick * (1 + below(once(2) ? 4 : 50));
		setup.lease += below(setup.tick);
		setup.max_held = 1 + below(once(2) ? min(setup.max_tokens, 4U) :
						     setup.max_tokens);
	}

	return setup;
}

static void run_episode(u32 slots, bool back, u64 nr)
{
	static const u64 lengths[] = { 500, 5000, 20000 };
	struct tw_ring_setup setup = pick_setup(slots, nr);
	u64 start;

	begin(&setup);
	m.back = back;
	m.delivery = setup.lease && once(2) ? U32_MAX - below(4) : 0;
	m.attempts = once(2) ? m.delivery : 0;
	m.bits = 3 + below(setup.words ? 20 : ilog2(m.ring.max_due) - 3);
	start = pick_start();
	set_now(now_ns(start, below(m.ring.tick)));
	run_steps(step + lengths[below(3)] / (has_deliveries() ? 2 : 1));
	if (m.now.tick <= m.ring.max_due && m.nr_live < 700 &&
	    (once(2) || once(3)))
		run_dry();
	end();
}

static void run_random(u32 slots, bool back, u64 nr_steps)
{
	u64 episode;

	for (episode = 0; step < nr_steps; episode++)
		run_episode(slots, back, episode);
	printf("ok %llu - %u slots%s: %llu random steps\n", test, slots,
	       back ? ", clock stepped back" : "", step);
	printf("# registered %llu, delivered %llu, filed again %llu, pending %llu on average\n",
	       total.registered, total.delivered, total.refiled,
	       total.pending / step);
	printf("# answered %llu, lapsed %llu, returned %llu, missed %llu, full after %llu steps\n",
	       total.answered, total.lapsed, total.returned, total.missed,
	       total.full);
	CHECK(nr_steps < 500000 ||
	      (total.answered && total.lapsed && total.returned &&
	       total.missed && total.full),
	      "something never happened");
}

/* The following tests each test one case. */

static u64 register_as(u64 due, u64 timeout, const struct period *period)
{
	struct tw_deadline deadline = { .due = due, .timeout = timeout };
	u64 handle;
	u32 key;

	for (key = 1; m.setup.ids && m.by_key[key] != TW_NIL; )
		key++;
	CHECK_EQ(register_growing(&m.now, key, 0, &deadline, &handle, period), 0);
	life_begins(handle, key, 0, &deadline, period);

	return handle;
}

static u64 register_at(u64 due, u64 timeout)
{
	return register_as(due, timeout, NULL);
}

static u64 register_periodic(u64 first, u64 length)
{
	struct period period = { .first = first, .length = length };
	u64 due;

	CHECK(due_on(&m.now, first, &due), "first %llu", first);

	return register_as(due, 0, &period);
}

/*
 * Returns the level on which a token starts. A token a whole lap ahead starts on the
 * first.
 */
static u32 level_of(u32 slots, u64 now, u64 due)
{
	u64 width = max(slots / 2, 1U);
	u32 nr = 1;

	if (due - now <= slots)
		return 0;
	while (due / width - now / width >= 64) {
		width *= 32;
		nr++;
	}

	return nr;
}

/*
 * P2, P7: a far token takes at most one look for each level on its way, and comes on
 * its very tick.
 */
static void lone_token(u32 slots, u64 now, u64 delay)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = slots, .max_tokens = 1,
	};
	u32 level, looks = 0;

	begin(&setup);
	set_now(now);
	register_at(now + delay, 0);
	level = level_of(slots, now, now + delay);
	CHECK_EQ(list_level(&m.ring, m.life[0].list), level);
	while (m.nr_live) {
		CHECK(looks++ <= level, "look %u from level %u", looks, level);
		set_now(tw_ring_next(&m.ring));
		take_all();
	}
	CHECK_EQ(m.now.tick, now + delay);
	end();
}

static void test_lone_tokens(void)
{
	static const u32 slots[] = { 1, 2, 3, 31, 60, 64, 3600, 65536 };
	static const struct { u32 slots; u64 now, delay; } examples[] = {
		{ 3600, 1, 3610 }, { 3600, 1, 7219 }, { 60, 2, 147 },
		{ 3600, 0, 48 * 3600 }, { 31, 12345, 30 },
		{ 3600, 0, TW_MAX_TICK }, { 1, 0, TW_MAX_TICK },
	};
	unsigned int i;

	for (i = 0; i < 7; i++)
		lone_token(examples[i].slots, examples[i].now,
			   examples[i].delay);
	for (i = 0; i < 4000; i++)
		lone_token(slots[i % 8], spread(45), spread(45));
	printf("ok %llu - P2 P7 a far token: one look per level\n", test);
}

/*
 * P3: no handle names two tokens, also after 16 and 32 bits of the generation have
 * wrapped.
 */
static void test_generations(void)
{
	struct tw_ring_setup setup = { .tick = 1, .slots = 3, .max_tokens = 1 };
	struct tw_found found;
	u64 last = 0;
	u32 i;

	begin(&setup);
	for (i = 0; i < 140000; i++) {
		u64 handle = register_at(5, 1);

		if (i == 70000) {
			/* The token gets a generation shortly before the wrap. */
			lock();
			token_at(0)->generation_hi = U16_MAX;
			unlock();
			handle = tw_token_handle(token_at(0), 0);
			m.life[0].handle = handle;
		}
		CHECK(handle >> 32, "a handle without generation");
		if (i != 70000 && last >> 32 != U32_MAX)
			CHECK_EQ(handle, last + (1ULL << 32));
		CHECK_EQ(tw_ring_by_handle(&m.ring, last, NULL, &found), -ESTALE);
		last = handle;
		op_cancel();
		CHECK_EQ(tw_ring_by_handle(&m.ring, last, NULL, &found), -ESTALE);
	}
	end();
	printf("ok %llu - P3 handles of 140000 lives\n", test);
}

/* P9: a set-up leaves nothing behind, whichever of its allocations fails. */
static void test_no_memory(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 5000, .ids = true,
		.words = true, .lease = 1, .max_held = 5000,
	};
	unsigned int nth = 0;
	struct tw_ring ring;
	int err;

	do {
		CHECK_EQ(shim_bytes(), 0);
		memset(&ring, 0, sizeof(ring));
		shim_fail_alloc = ++nth;
		err = tw_ring_init(&ring, &setup);
		CHECK(!err || err == -ENOMEM, "error %d", err);
	} while (err);
	CHECK(nth > 5, "only %u allocations", nth);
	shim_fail_alloc = 0;
	tw_ring_destroy(&ring);
	CHECK_EQ(shim_bytes(), 0);
	printf("ok %llu - P9 no memory for a ring\n", test);
}

/* P5: tokens that were registered side by side may all move apart without more memory. */
static void test_spread(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 122 * 31,
	};
	struct tw_deadline deadline = { 0 };
	struct tw_found found;
	size_t bytes;
	u32 i;

	begin(&setup);
	for (i = 0; i < setup.max_tokens; i++)
		register_at(59, 0);
	bytes = shim_bytes();
	for (i = 0; i < setup.max_tokens; i++) {
		u32 to = i / 31;

		/* The deadlines are ticks of level 0, and then blocks 2 to 63 of level 1. */
		deadline.due = to < 60 ? to : 30 * (to - 60 + 2) + 1;
		CHECK_EQ(tw_ring_by_handle(&m.ring, m.life[i].handle, NULL, &found),
			 0);
		lock();
		tw_ring_move(&m.ring, &found, &m.now, &deadline);
		unlock();
		set_due(i, deadline.due);
		m.moved++;
	}
	check_all();
	CHECK_EQ(chunks_in_use(&m.ring.levels.lists), 2 * 122);
	CHECK_EQ(shim_bytes(), bytes);
	run_dry();
	end();
	printf("ok %llu - P5 tokens that lie close and move apart\n", test);
}

/*
 * P5, P8: tokens that are put back laps after their deadlines come first again, in
 * order. The many tokens that are due within the next lap are not filed again.
 */
static void test_put_back_late(void)
{
	enum { SLOTS = 3600, LATE = 100, MANY = 100000, NOW = 1000000 };
	struct tw_ring_setup setup = {
		.tick = 1, .slots = SLOTS, .max_tokens = LATE + MANY,
	};
	struct batch batch = { .who = 0 };
	u32 i, round;

	begin(&setup);
	for (i = 0; i < LATE; i++)
		register_at(1 + (i < LATE / 2 ? i : i * (u64)NOW / LATE), 0);
	set_now(NOW);
	take(&batch, NOW, 1U << 30, LATE);
	for (i = 0; i < MANY; i++)
		register_at(NOW + 1 + i % SLOTS, 0);
	for (round = 0; round < 3; round++) {
		u64 refiled = m.ring.refiled;

		put_back(&batch, 0);
		take(&batch, NOW, 1U << 30, LATE);
		CHECK_EQ(batch.n, LATE);
		CHECK(m.ring.refiled - refiled <= 3 * LATE,
		      "%llu tokens were filed again for %u",
		      m.ring.refiled - refiled, LATE);
	}
	deliver(&batch, batch.n, &m.now);
	end();
	printf("ok %llu - P5 P8 tokens put back late\n", test);
}

/* The following functions test the last ticks and touch words, and run all tests. */

/* A touch raises no token beyond the last tick. */
static void touch_at_the_end(u64 handle, int expected)
{
	struct tw_found found;
	u64 due;

	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, NULL, &found), 0);
	CHECK_EQ(tw_ring_touch(&m.ring, &found, &m.now, &due), expected);
	if (!expected)
		CHECK_EQ(due, m.ring.max_due);
}

/*
 * P2, P9: each token up to the last tick comes on its own tick, and no token can be
 * later.
 */
static void last_ticks(u32 slots, u64 before)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = slots, .max_tokens = 400,
	};
	u64 last, due;

	begin(&setup);
	last = m.ring.max_due;
	CHECK_EQ(last, (1ULL << 46) - 1);
	set_now(last - before);
	for (due = last; due + 200 > last && due >= m.now.tick; due--) {
		register_at(due, 1);
		register_at(due, before + 1);
	}
	CHECK(!due_on(&m.now, last + 1, &due), "beyond the last tick");
	touch_at_the_end(m.life[0].handle, 0);
	touch_at_the_end(m.life[1].handle, -ERANGE);
	run_dry();
	CHECK_EQ(m.now.tick, last);
	set_now(last + 1);
	CHECK(!due_on(&m.now, m.now.ns, &due), "now is beyond the last tick");
	end();
}

static void test_last_ticks(void)
{
	static const u32 slots[] = { 1, 2, 3, 31, 60, 64, 3600, 65536 };
	static const u64 before[] = { 1, 2, 31, 64, 100, 5000, 1ULL << 40 };
	unsigned int i;

	for (i = 0; i < 56; i++)
		last_ticks(slots[i % 8], before[i / 8]);
	printf("ok %llu - P2 P9 the last ticks of all\n", test);
}

/*
 * Stores a touch word on tick @now. Returns when a look on tick @look makes the token
 * due.
 */
static u64 stamped(u64 now, u64 look, u64 timeout)
{
	struct tw_found found;
	u64 handle, due;

	set_now(now);
	handle = register_at(now + 1, timeout);
	WRITE_ONCE(*word_of(0), tw_stamp(handle >> 32, now));
	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, NULL, &found), 0);
	lock();
	tw_look_apply_stamp(&m.ring, &found, look);
	due = tw_word_due(found.word);
	tw_ring_cancel(&m.ring, &found);
	unlock();
	life_over(0);
	m.cancelled++;

	return due;
}

/* A tick whose low bits are all 0 has the stamp of the next tick, which is ahead. */
static void stamps_of(u64 now, u64 timeout)
{
	static const u64 looks[] = { 0, 1, 2, 100, 1 << 30, BIT(31) - 1 };
	u64 due = now + 1 + timeout;
	unsigned int i;

	for (i = 0; i < 6; i++)
		CHECK_EQ(stamped(now, now + looks[i], timeout),
			 due + (!(u32)now && looks[i]));
	/* The stamp is so old that it counts as nonsense. */
	if ((u32)now)
		CHECK_EQ(stamped(now, now + BIT(31), timeout), due + BIT(31));
}

/* P1, P4: stamps are right on the ticks on which they get a new bit, or wrap. */
static void test_stamps(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 1, .words = true,
	};
	u64 nr, i;

	begin(&setup);
	for (nr = 1; nr < 5; nr++)
		for (i = 0; i < 8; i++) {
			stamps_of((nr << 31) - 4 + i, 1);
			stamps_of((nr << 31) - 4 + i, 60);
			stamps_of((nr << 31) - 4 + i, TW_MAX_STAMPED - 1);
		}
	end();
	printf("ok %llu - P1 P4 stamps when their bits are through\n", test);
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
	set_now(now_ns(9000000000, 0));
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
	set_now(TW_MAX_TICK - 1);
	register_periodic(TW_MAX_TICK, 2);
	set_now(TW_MAX_TICK);
	take(&batch, m.now.tick, 100, 1);
	CHECK_EQ(batch.n, 1);
	put_back(&batch, 0);
	set_now(TW_MAX_TICK + 6000001);
	take(&batch, m.now.tick, 100, 1);
	CHECK_EQ(batch.n, 1);
	CHECK_EQ(m.life[0].missed, 3000000);
	deliver(&batch, 1, &m.now);
	CHECK_EQ(m.life[0].due, m.ring.max_due);
	end();
	printf("ok %llu - P8 put back, and then beyond the last tick\n", test);
}

/* P3: after the last generation a new life has no property of the first life. */
static void test_generations_again(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 1, .periods = true,
	};
	u64 first;

	begin(&setup);
	first = register_periodic(1, 77);
	op_cancel();
	token_at(0)->generation_hi = U16_MAX;
	token_at(0)->word = tw_word(0, TW_FREE, U16_MAX);
	register_at(1, 0);
	op_cancel();
	CHECK_EQ(register_at(1, 0), first);
	CHECK(!tw_repeat_of(&m.ring, token_at(0)), "it is periodic");
	op_cancel();
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
	bool back = once(2);

	run_episode(slots, back, below(8));
}

const unsigned int nr_tests = 27;

void run_test(void)
{
	static void (*const tests[])(void) = {
		test_lone_tokens, test_generations, test_no_memory,
		test_spread, test_last_ticks, test_stamps, test_put_back_late, test_last_period,
		test_beyond_the_last_tick, test_generations_again, test_blocks,
	};
	static const u32 slots[] = { 1, 2, 3, 31, 60, 64, 3600, 65536 };

	memset(&total, 0, sizeof(total));
	if (test > 16)
		tests[test - 17]();
	else
		run_random(slots[(test - 1) / 2], !(test & 1), steps / 16);
}
