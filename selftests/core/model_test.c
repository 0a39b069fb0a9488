// SPDX-License-Identifier: GPL-2.0-only
/*
 * The test runs random operations on rings, each checked against a simple model,
 * which is an array of tokens with their due ticks, searched from end to end. This
 * test checks these promises: P1 no token is early. P2 and P8 a token comes on its
 * very tick, however long its delay is and however long a stall was. P3 each
 * registration has exactly one end. P4 a touch wins until the token is taken. P5 only
 * a registration allocates memory. P7 no look is in vain. P9 errors are precise and
 * change nothing.
 *
 *	model_test [--seed=N] [--steps=N] [--only=TEST]
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

#define BATCH	200
#define HELD	4
#define DEAD	64
#define NO_ID	0	/* key of an id that is never registered */

enum state { NONE, LIVE, TAKEN };

/*
 * The expected state of a token. @key stands for its id. @list is the list in which
 * it was filed last. Of that moment, @backs is the number of steps back of the clock,
 * and @put_backs the number of tokens that had been put back. @touched tells whether
 * its due tick was raised since then. @due is the due tick in the ring. A look at the
 * touch word raises it at least to @word_due and at most to @word_most. If the stamp
 * may be @ahead, further looks may raise it again as time passes. A word that was
 * cleared raises nothing. @word_backs is the number of steps back of the clock when
 * the word was stored.
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
	u64		put_backs;
	enum state	state;
	bool		named;
	bool		touched;
	bool		ahead;
};

struct batch {
	u32		index[BATCH];
	unsigned int	n;
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
 * deadlines and time are below 2^bits. @live, @due: indices and due ticks of the LIVE
 * tokens, in no order. @by_key: the token that has the id of a key.
 */
static struct model {
	struct tw_ring	ring;
	u32		max;
	bool		ids;
	bool		cookies;
	bool		words;
	bool		back;
	u32		backs;
	unsigned int	bits;
	struct tw_now	now;
	struct life	*life;
	u32		*live;
	u64		*due;
	u32		nr_live;
	u32		nr_taken;
	u32		*by_key;
	u32		nr_keys;
	struct batch	held[HELD];
	struct stash	stash;
	u64		dead[DEAD];
	u64		nr_dead;
	u64		registered;
	u64		cancelled;
	u64		moved;
	u64		delivered;
	u64		put_back;
	bool		expiring;
} m;

/* The sums over all rings of a test. */
static struct {
	u64	registered;
	u64	delivered;
	u64	refiled;
	u64	pending;
} total;

void print_state(void)
{
	printf("slots %u tick %llu max %u ids %d cookies %d words %d back %d bits %u ",
	       m.ring.slots, m.ring.tick, m.max, m.ids, m.cookies, m.words,
	       m.back, m.bits);
	printf("now %llu next %llu pending %u taken %u\n", m.now.tick,
	       tw_ring_next(&m.ring), m.nr_live, m.nr_taken);
}

/* The following functions are about time. */

static u64 now_ns(u64 tick, u64 into)
{
	unsigned __int128 ns = (unsigned __int128)tick * m.ring.tick + into;

	return min(ns, (unsigned __int128)S64_MAX);
}

static void set_now(u64 ns)
{
	m.now.ns = ns;
	m.now.tick = ns / m.ring.tick;
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

	return m.words && timeout / m.ring.tick >= TW_MAX_STAMPED - 1 ?
		0 : timeout;
}

static u64 expected_due(const struct tw_now *now, u64 deadline)
{
	if (deadline <= now->ns)
		return now->tick;

	return ((unsigned __int128)deadline + m.ring.tick - 1) / m.ring.tick;
}

/*
 * With touch words the deadline of a token with a timeout has an upper limit. A
 * touch's stamp would otherwise be so old at the deadline that it seems to lie in the
 * future.
 */
static bool too_far(const struct tw_now *now, u64 due, u64 timeout)
{
	return m.words && timeout && due - now->tick >= TW_MAX_STAMPED;
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
 * P1, P4: the ring may have raised due ticks by touch words since the last check, at
 * least to the known tick and at most to a tick that was stored.
 */
static void learn_due(u32 index)
{
	struct life *life = &m.life[index];
	u64 due = tw_ring_due_tick(&m.ring, index);

	if (due != life->due) {
		CHECK(m.words && due > life->due && due <= life->word_most,
		      "token %u due on %llu, not %llu to %llu", index, due,
		      life->due, life->word_most);
		set_due(index, due);
	}
	if (m.words)
		learn_word(index);
}

static void learn_all(void)
{
	u32 i;

	for (i = 0; m.words && i < m.nr_live; i++)
		learn_due(m.live[i]);
}

static void life_lives(u32 index, bool may_have_id)
{
	struct life *life = &m.life[index];

	life->state = LIVE;
	life->touched = false;
	life->at = m.nr_live++;
	m.live[life->at] = index;
	m.due[life->at] = life->due;

	life->named = may_have_id && m.by_key[life->key] == TW_NIL;
	if (life->named)
		m.by_key[life->key] = index;
}

static void life_stops(u32 index, enum state state)
{
	struct life *life = &m.life[index];
	u32 last = m.live[--m.nr_live];

	m.live[life->at] = last;
	m.due[life->at] = m.due[m.nr_live];
	m.life[last].at = life->at;
	life->state = state;
	if (life->named)
		m.by_key[life->key] = TW_NIL;
	life->named = false;
}

static void life_over(u32 index)
{
	m.life[index].state = NONE;
	m.dead[m.nr_dead++ % DEAD] = m.life[index].handle;
}

static u64 earliest(void)
{
	u64 first = TW_NEVER;
	u32 i;

	for (i = 0; i < m.nr_live; i++)
		first = min(first, m.due[i]);

	return first;
}

static void check_token(u32 index)
{
	const struct life *life = &m.life[index];
	const struct tw_token *token = token_at(index);

	CHECK_EQ(tw_word_due(token->word), life->due);
	CHECK_EQ(tw_token_handle(token_at(index), index), life->handle);
	CHECK_EQ(token->timeout, life->timeout);
	CHECK_EQ(tw_token_id(&m.ring, token), m.ids ? id_of(life->key) : 0);
	CHECK_EQ(tw_token_cookie(&m.ring, token),
		 m.cookies ? life->cookie : 0);
}

/* All memory that is allocated belongs to the ring. */
static void check_all(void)
{
	u32 i;

	learn_all();
	walk(&m.ring);
	for (i = 0; i < m.nr_live; i++) {
		const struct life *life = &m.life[m.live[i]];

		check_token(m.live[i]);
		CHECK_EQ(token_at(m.live[i])->named, life->named);
	}
	CHECK_EQ(m.ring.pending, m.nr_live);
	CHECK_EQ(m.ring.tokens.used, m.nr_live + m.nr_taken);
	CHECK(tw_ring_next(&m.ring) <= earliest(), "due on %llu", earliest());
	CHECK_EQ(m.ring.registered, m.registered);
	CHECK_EQ(m.ring.cancelled, m.cancelled);
	CHECK_EQ(m.ring.moved, m.moved);
	CHECK_EQ(m.ring.delivered, m.delivered);
	CHECK_EQ(m.ring.put_back, m.put_back);
	CHECK_EQ(tw_ring_bytes(&m.ring), shim_bytes() + sizeof(m.ring));
}

/*
 * The core calls this function to file a token in a list. P7: a look files a token on
 * a finer level than before, unless the token was touched or the clock stepped back
 * since the token was filed. A token is therefore filed once for each level, timeout
 * and step back, and a token that was put back also once for each put-back.
 */
bool lists_add(struct tw_lists *lists, u32 list, u32 index,
	       struct tw_token *token)
{
	struct life *life = &m.life[index];

	/*
	 * After a step back a stamp may be ahead, and the token may be filed more
	 * than once.
	 */
	if (m.expiring && !life->touched && !life->ahead &&
	    life->backs == m.backs && !(m.words && m.backs) &&
	    (life->put_backs == m.put_back ||
	     list_level(&m.ring, life->list) < m.ring.levels.back))
		CHECK(list_level(&m.ring, list) <
		      list_level(&m.ring, life->list),
		      "token %u due on %llu filed again: list %u to %u", index,
		      life->due, life->list, list);
	if (m.expiring)
		life->touched = false;
	life->list = list;
	life->backs = m.backs;
	life->put_backs = m.put_back;

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
			    const struct tw_deadline *deadline, u64 *handle)
{
	bool may_fail = step && once(4);
	int err, rounds = 0;

	for (;;) {
		lock();
		err = tw_ring_register(&m.ring, now, id_of(key), cookie,
				       deadline, handle);
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

static bool register_error_is_right(int err, u32 key, int inserting)
{
	bool known = m.ids && m.by_key[key] != TW_NIL;

	if (m.nr_live + m.nr_taken == m.max)
		return err == (known ? -EEXIST : -ENOSPC);
	if (err == -ENOMEM && m.ring.tokens.used == m.nr_live + m.nr_taken &&
	    inserting != -ENOMEM)
		return true;
	if (inserting)
		return err == inserting;

	return err == (known ? -EEXIST : 0);
}

static void register_one(const struct tw_now *now, u32 key,
			 const struct tw_deadline *deadline)
{
	u64 handle, cookie = spread(64);
	int inserting = 0, err;
	u32 index;

	if (m.ids && m.nr_live + m.nr_taken < m.max && once(50))
		inserting = once(2) ? -ENOMEM : -EBUSY;

	shim_fail_insert = inserting;
	err = register_growing(now, key, cookie, deadline, &handle);
	shim_fail_insert = 0;
	CHECK(register_error_is_right(err, key, inserting), "error %d", err);
	if (err)
		return;

	index = (u32)handle;
	CHECK(index < m.max && m.life[index].state == NONE,
	      "token %u is given twice", index);
	CHECK_EQ(handle >> 32, next_generation(&m.ring, m.life[index].handle));
	m.life[index] = (struct life) {
		.handle = handle, .due = deadline->due, .key = key,
		.timeout = deadline->timeout, .cookie = cookie,
		.list = m.life[index].list, .backs = m.backs,
	};
	life_lives(index, m.ids);
	m.registered++;
	CHECK(tw_ring_next(&m.ring) <= deadline->due, "due on %llu",
	      deadline->due);
}

/* Registers one token, or many equal tokens at once. */
static void op_register(void)
{
	struct tw_now now = changing_now();
	struct tw_deadline deadline = {
		.timeout = once(4) ? 0 : pick_timeout(),
	};
	u64 at = !m.words && once(16) ? spread(63) : now.ns + pick_delay();
	u32 key = below(m.nr_keys), n = once(100) ? below(100) : 1;

	if (!due_on(&now, at, &deadline.due) ||
	    too_far(&now, deadline.due, deadline.timeout))
		return;
	for (; n; n--, key++)
		register_one(&now, 1 + key % (m.nr_keys - 1), &deadline);
}

/* Finds a LIVE token, by id or by handle. */
static bool find(struct tw_found *found, u32 *index)
{
	const struct life *life;

	if (!m.nr_live)
		return false;

	*index = m.live[below(m.nr_live)];
	life = &m.life[*index];
	if (life->named && once(2))
		CHECK_EQ(tw_ring_by_id(&m.ring, id_of(life->key), found), 0);
	else
		CHECK_EQ(tw_ring_by_handle(&m.ring, life->handle, found), 0);
	CHECK(found->token == token_at(*index), "token %u not found", *index);
	learn_due(*index);
	CHECK_EQ(tw_word_due(found->word), life->due);

	return true;
}

static void op_touch(void)
{
	struct tw_now now = !m.words && once(4) ? lagging() : m.now;
	struct tw_found found;
	struct life *life;
	u64 due, raised;
	u32 index;
	int err;

	if (!find(&found, &index))
		return;
	if (m.words) {
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
	if (m.words || !find(&m.stash.found, &m.stash.index))
		return;
	m.stash.filled = true;
	m.stash.life = m.life[m.stash.index];
	m.stash.now = m.now;
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
	s32 max_ahead = max(1000000000 / m.ring.tick, 1ULL);

	life_word_reset(life);
	if (!life->timeout || (sane && !(u32)word))
		return;
	life->word_backs = m.backs;
	life->ahead = !sane || ahead > 0 || ahead <= -(1 << 30);
	if (!life->ahead) {
		life->word_due = max(now_due, (u64)-ahead) - -ahead;
		life->word_most = life->word_due;
	} else if (sane && ahead > 0 && ahead <= max_ahead) {
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
 * sometimes nonsense.
 */
static void op_store(void)
{
	u32 index;
	u64 word;

	if (!m.nr_live)
		return;
	index = m.live[below(m.nr_live)];
	learn_due(index);
	if (once(8))
		word = once(2) ? 0 : rnd();
	else
		word = tw_stamp(m.life[index].handle >> 32,
				m.now.tick + (once(4) ? 8 - below(100) : 0));
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

	if (!m.words)
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
		.timeout = once(2) ? 0 : pick_timeout(),
	};
	struct tw_found found;
	struct life *life;
	u32 index;

	lock();
	if (find(&found, &index) &&
	    due_on(&now, now.ns + pick_delay(), &deadline.due) &&
	    !too_far(&now, deadline.due,
		     deadline.timeout ?: m.life[index].timeout)) {
		life = &m.life[index];
		tw_ring_move(&m.ring, &found, &now, &deadline);
		CHECK_EQ(tw_word_due(found.word), life->due);
		life->timeout = deadline.timeout ?: life->timeout;
		life_word_reset(life);
		life->touched = false;
		life->moves++;
		set_due(index, deadline.due);
		m.moved++;
		CHECK(tw_ring_next(&m.ring) <= life->due, "due on %llu",
		      life->due);
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
		if (m.words)
			CHECK_EQ(*word_of(index), 0);
		CHECK_EQ(tw_word_due(found.word), m.life[index].due);
		life_stops(index, NONE);
		life_over(index);
		m.cancelled++;
	}
	unlock();
}

/* A prefetch of tokens that may not exist has no effect. */
static void fetch_ahead(u64 handle)
{
	u64 ids[TW_IDS_AHEAD];
	u32 i;

	for (i = 0; i < TW_IDS_AHEAD; i++)
		ids[i] = id_of(below(m.nr_keys));
	if (m.ids)
		tw_ids_prefetch(&m.ring.ids, ids, 1 + below(TW_IDS_AHEAD));
	tw_ring_prefetch_handle(&m.ring, handle);
	tw_ring_prefetch_place(&m.ring, handle);
}

/*
 * P9: a token that does not exist is not found, and each way to look it up has its
 * own error.
 */
static void op_find_nothing(void)
{
	u32 index = below(m.max), key = below(m.nr_keys);
	u64 handle = m.dead[below(DEAD)];
	struct tw_found found;

	if (m.life[index].state != LIVE)
		CHECK_EQ(tw_ring_by_handle(&m.ring, m.life[index].handle,
					   &found), -ESTALE);
	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), -ESTALE);

	handle = once(2) ? U32_MAX - below(3) : below(m.max);
	handle |= rnd() << 32;
	index = min((u32)handle, m.max - 1);
	if (m.life[index].handle != handle)
		CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), -ESTALE);
	/* These handles have a token's generation and a place that is too large. */
	fetch_ahead(handle);
	handle = m.life[below(m.max)].handle;
	handle |= 1U << (14 + below(18));
	fetch_ahead(handle);
	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), -ESTALE);

	if (!m.ids)
		CHECK_EQ(tw_ring_by_id(&m.ring, id_of(key), &found), -EINVAL);
	else if (key == NO_ID || m.by_key[key] == TW_NIL)
		CHECK_EQ(tw_ring_by_id(&m.ring, id_of(key), &found), -ENOENT);
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
	u64 refiled = m.ring.refiled;
	u32 index;

	lock();
	m.expiring = true;
	index = tw_look_find_due(&m.ring, now.tick, &work);
	m.expiring = false;
	unlock();

	CHECK_EQ(before - work, m.ring.refiled - refiled);
	learn_all();
	if (index != TW_NIL) {
		CHECK_EQ(m.life[index].state, LIVE);
		CHECK_EQ(tw_ring_due_tick(&m.ring, index), m.life[index].due);
		CHECK(m.life[index].due <= now.tick, "early: due on %llu",
		      m.life[index].due);
		CHECK_EQ(m.life[index].due, earliest());
	} else if (work) {
		CHECK(earliest() > now.tick, "one is due on %llu", earliest());
		CHECK(tw_ring_next(&m.ring) > now.tick, "nothing was due");
	}
}

/*
 * P1: no token is early. The tokens come in the order of their due ticks, and no
 * token that is left is due earlier, also after a put-back. P3: each token is taken
 * once.
 */
static void check_taken(const struct batch *batch, u64 now)
{
	u64 last = 0;
	unsigned int i;

	learn_all();
	for (i = 0; i < batch->n; i++) {
		u32 index = batch->index[i];
		const struct life *life = &m.life[index];

		CHECK(index < m.max && life->state == LIVE,
		      "took token %u, which is not pending", index);
		check_token(index);
		CHECK_EQ(tw_word_state(token_at(index)->word), TW_TAKEN);
		CHECK(life->due <= now, "early: due on %llu", life->due);
		CHECK(life->due >= word_due_at_least(life),
		      "early: due on %llu, its word said %llu", life->due,
		      life->word_due);
		if (m.words)
			CHECK_EQ(*word_of(index), 0);
		CHECK(life->due >= last, "due on %llu after %llu", life->due,
		      last);
		last = life->due;
		life_stops(index, TAKEN);
		m.nr_taken++;
	}
	CHECK(earliest() >= last, "due on %llu, taken after %llu", earliest(),
	      last);
}

static void take(struct batch *batch, u64 now, unsigned int work,
		 unsigned int max)
{
	unsigned int before = work;
	u64 refiled = m.ring.refiled;
	bool must = tw_ring_next(&m.ring) <= now;

	lock();
	m.expiring = true;
	batch->n = tw_look_take(&m.ring, now, &work, batch->index, max);
	m.expiring = false;
	unlock();

	CHECK(batch->n <= max, "took %u of %u", batch->n, max);
	CHECK_EQ(before - work, m.ring.refiled - refiled + batch->n);
	CHECK((before != work) == must, "a look in vain, or none");
	check_taken(batch, now);
	if (batch->n < max && work) {
		CHECK(earliest() > now, "one is due on %llu", earliest());
		CHECK(tw_ring_next(&m.ring) > now, "nothing was due");
	}
}

static void deliver(const struct batch *batch, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		check_token(batch->index[i]);
		life_over(batch->index[i]);
	}
	lock();
	for (i = 0; i < n;) {
		u64 due, first = m.life[batch->index[i]].due;

		i += tw_look_delivered(&m.ring, batch->index + i, n - i, &due,
				       NULL, NULL);
		CHECK_EQ(due, first);
	}
	unlock();
	m.nr_taken -= n;
	m.delivered += n;
}

/*
 * P5: a token that could not be copied is pending again, and comes first. If the id
 * table has no memory, the first of these tokens stays without its id.
 */
static void put_back(struct batch *batch, unsigned int from)
{
	unsigned int n = batch->n - from, i;
	bool no_memory = m.ids && n && once(8);

	m.put_back += n;
	shim_fail_insert = no_memory ? -ENOMEM : 0;
	lock();
	tw_look_put_back(&m.ring, batch->index + from, n);
	unlock();
	for (i = from; i < batch->n; i++) {
		struct life *life = &m.life[batch->index[i]];

		life_word_reset(life);
		life_lives(batch->index[i],
			   m.ids && !(no_memory && i == from));
		/*
		 * After a step back the token may not be due any more, and may be
		 * filed as if it was touched.
		 */
		life->touched = life->due > m.now.tick;
	}
	m.nr_taken -= n;
	if (!n)
		return;
	CHECK(tw_ring_next(&m.ring) <= m.life[batch->index[from]].due,
	      "what was put back waits");
}

static void finish(struct batch *batch)
{
	unsigned int n = once(2) ? batch->n : below(batch->n + 1);

	deliver(batch, n);
	put_back(batch, n);
	if (n < batch->n && !m.back && once(2)) {
		n = batch->n - n;
		take(batch, m.now.tick, n, n);
		deliver(batch, batch->n);
	}
	batch->n = 0;
}

/* Takes tokens, or finishes an earlier take, as slow readers do. */
static void op_take(void)
{
	static const unsigned int most[] = { 1, 3, 64, BATCH };
	struct batch *batch = &m.held[below(HELD)];
	struct tw_now now = changing_now();
	unsigned int work = pick_work();

	if (batch->n)
		finish(batch);
	else
		take(batch, now.tick, work, most[below(4)]);
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

	if (m.words)
		return stamps ? stamps - 100 + below(200) : below(200);
	if (once(16))
		return m.ring.max_due - below(100);

	return once(4) ? below(3) : spread(ilog2(m.ring.max_due));
}

static void begin(const struct tw_ring_setup *setup)
{
	u32 i;

	memset(&m, 0, sizeof(m));
	m.max = setup->max_tokens;
	m.ids = setup->ids;
	m.cookies = setup->cookies;
	m.words = setup->words;
	m.life = calloc(m.max, sizeof(*m.life));
	m.live = calloc(m.max, sizeof(*m.live));
	m.due = calloc(m.max, sizeof(*m.due));
	m.nr_keys = once(4) ? 4 : 2 * m.max + 4;
	m.by_key = calloc(m.nr_keys, sizeof(*m.by_key));
	for (i = 0; i < m.nr_keys; i++)
		m.by_key[i] = TW_NIL;
	CHECK_EQ(tw_ring_init(&m.ring, setup), 0);
	check_all();
}

static void end(void)
{
	check_all();
	total.registered += m.registered;
	total.delivered += m.delivered;
	total.refiled += m.ring.refiled;
	tw_ring_destroy(&m.ring);
	CHECK_EQ(shim_bytes(), 0);
	free(m.life);
	free(m.live);
	free(m.due);
	free(m.by_key);
}

/* Takes and delivers all tokens that are due now. */
static void take_all(void)
{
	struct batch batch;

	do {
		take(&batch, m.now.tick, 1U << 30, BATCH);
		deliver(&batch, batch.n);
	} while (batch.n == BATCH);
}

/* Looks at all touch words for the last time. */
static void apply_stamps(void)
{
	struct tw_found found;
	u32 i;

	lock();
	for (i = 0; m.words && i < m.nr_live; i++) {
		struct life *life = &m.life[m.live[i]];

		CHECK_EQ(tw_ring_by_handle(&m.ring, life->handle, &found), 0);
		tw_look_apply_stamp(&m.ring, &found, m.now.tick);
		learn_due(m.live[i]);
		WRITE_ONCE(*word_of(m.live[i]),
			   tw_stamp_none(life->handle >> 32));
		life_word_reset(life);
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

	for (i = 0; i < HELD; i++) {
		deliver(&m.held[i], m.held[i].n);
		m.held[i].n = 0;
	}
	apply_stamps();
	take_all();
	while (m.nr_live) {
		u64 delivered = m.delivered, first = earliest();

		set_now(now_ns(tw_ring_next(&m.ring), 0));
		take_all();
		CHECK((m.delivered != delivered) == (m.now.tick == first),
		      "due on %llu, looked at on %llu", first, m.now.tick);
	}
	CHECK(tw_ring_next(&m.ring) == TW_NEVER, "next %llu when empty",
	      tw_ring_next(&m.ring));
}

/* @registering of a hundred steps register, and @passing of them let time pass. */
static void one_step(unsigned int registering, unsigned int passing)
{
	u64 choice = below(100);

	if (choice < registering)
		return op_register();
	if (choice >= 100 - passing)
		return once(2) ? op_take() : step_time();

	switch (below(16)) {
	case 0:
	case 1:
		return op_cancel();
	case 2:
	case 3:
	case 4:
		return op_move();
	case 5:
		return op_stash();
	case 6:
		return op_touch_stashed();
	case 7:
		return op_find_nothing();
	case 8:
		return op_find_due();
	case 9:
		return op_apply_stamp();
	case 10:
	case 11:
	case 12:
		return m.words ? op_store() : op_touch();
	default:
		return op_touch();
	}
}

static bool time_is_over(u64 start, u64 end)
{
	u64 tick = m.now.tick;

	return tick > end ||
	       (m.words && max(tick, start) - min(tick, start) > WORDS_REACH);
}

static void run_steps(u64 last)
{
	u64 start = m.now.tick, check_at = step, end = m.ring.max_due / 8 * 7;
	unsigned int registering = 30, passing = 20;

	if (start > end || once(16))
		end = TW_NEVER;
	for (; step < last && dice_left() && !time_is_over(start, end); step++) {
		if (once(500)) {
			registering = below(60);
			passing = 1 + below(1 + below(40));
		}
		one_step(registering, passing);
		total.pending += m.nr_live;
		if (step < check_at)
			continue;
		check_all();
		check_at = step + 100 + m.ring.levels.lists.nr / 16 + m.nr_live / 4;
	}
}

static void run_episode(u32 slots, bool back, u64 nr)
{
	static const u64 ticks[] = { 1, 7, 1000, 100000, 1000000000 };
	static const u32 most[] = { 1, 2, 31, 100, 600, 2000, 5000 };
	static const u64 lengths[] = { 500, 5000, 20000 };
	struct tw_ring_setup setup = {
		.tick = ticks[below(5)], .slots = slots,
		.max_tokens = most[below(7)], .ids = nr & 1,
		.cookies = nr >> 1 & 1, .words = once(3),
		.first_generation = pick_generation(),
	};
	u64 start;

	begin(&setup);
	m.back = back;
	m.bits = 3 + below(m.words ? 20 : ilog2(m.ring.max_due) - 3);
	start = pick_start();
	set_now(now_ns(start, below(m.ring.tick)));
	run_steps(step + lengths[below(3)]);
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
}

/* The following tests each test one case. */

static u64 register_at(u64 due, u64 timeout)
{
	struct tw_deadline deadline = { .due = due, .timeout = timeout };
	u64 handle;
	u32 key;

	for (key = 1; m.ids && m.by_key[key] != TW_NIL; )
		key++;
	CHECK_EQ(register_growing(&m.now, key, 0, &deadline, &handle), 0);
	m.life[(u32)handle] = (struct life) {
		.handle = handle, .due = due, .key = key, .timeout = timeout,
		.list = m.life[(u32)handle].list, .backs = m.backs,
	};
	life_lives((u32)handle, m.ids);
	m.registered++;

	return handle;
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
		CHECK_EQ(tw_ring_by_handle(&m.ring, last, &found), -ESTALE);
		last = handle;
		op_cancel();
		CHECK_EQ(tw_ring_by_handle(&m.ring, last, &found), -ESTALE);
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
		CHECK_EQ(tw_ring_by_handle(&m.ring, m.life[i].handle, &found),
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
	struct batch batch;
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
	deliver(&batch, batch.n);
	end();
	printf("ok %llu - P5 P8 tokens put back late\n", test);
}

/*
 * P4: a token ends between its look-up and its touch, and another token begins in its
 * place. The touch fails.
 */
static void test_touch_after_end(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = 1,
	};
	static const u64 timeouts[] = { 60, 3, 0 };
	struct tw_now then = { .ns = 95, .tick = 95 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct tw_found found;
		u64 due, handle;

		begin(&setup);
		handle = register_at(100, 60);
		CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), 0);
		set_now(100);
		take_all();
		register_at(150, timeouts[i]);
		CHECK_EQ(tw_ring_touch(&m.ring, &found, &then, &due), -ESTALE);
		end();
	}
	printf("ok %llu - P4 touch of a token that has just ended\n", test);
}

/* The following functions test the last ticks and touch words, and run all tests. */

/* A touch raises no token beyond the last tick. */
static void touch_at_the_end(u64 handle, int expected)
{
	struct tw_found found;
	u64 due;

	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), 0);
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
	CHECK_EQ(tw_ring_by_handle(&m.ring, handle, &found), 0);
	lock();
	tw_look_apply_stamp(&m.ring, &found, look);
	due = tw_word_due(found.word);
	tw_ring_cancel(&m.ring, &found);
	unlock();
	life_stops(0, NONE);
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

void run_input(void)
{
	u32 slots = 1 + spread(once(8) ? 16 : 7);
	bool back = once(2);

	run_episode(slots, back, below(4));
}

const unsigned int nr_tests = 24;

void run_test(void)
{
	static void (*const tests[])(void) = {
		test_lone_tokens, test_generations, test_no_memory,
		test_spread, test_touch_after_end, test_last_ticks,
		test_stamps, test_put_back_late,
	};
	static const u32 slots[] = { 1, 2, 3, 31, 60, 64, 3600, 65536 };

	memset(&total, 0, sizeof(total));
	if (test > 16)
		tests[test - 17]();
	else
		run_random(slots[(test - 1) / 2], !(test & 1), steps / 16);
}
