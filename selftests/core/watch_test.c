// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random operations on rings whose tokens watch something, with a false thing to ask,
 * against a simple model. Held here of the promises: P1 no token is taken before what
 * it heard says, P2 it comes on its very tick when nothing more is heard, P3 each ends
 * once: by an event, by cancel, or with what it watched, P4 a touch holds beside what
 * is heard, P7 nothing is asked before its token is due, unless somebody wants to know.
 *
 *	watch_test [--seed=N] [--steps=N] [--only=TEST]
 */
#include <string.h>

#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/timewheel.h>

#include "dice.h"
#include "generations.h"
#include "look.h"
#include "main.h"
#include "shim.h"
#include "tap.h"
#include "walk.h"

#define THINGS	40
#define MOST	300
#define BATCH	50
#define NO_THING U64_MAX

/* What is watched: to which tick it raises without a timeout, and whether it is over. */
struct thing {
	u64	used;
	u8	error;
};

enum state { NONE, LIVE, TAKEN };

/*
 * What should be true of a token. @heard: the error of its last answer; @asked: in which
 * call that was.
 */
struct life {
	enum state	state;
	u64		handle;
	u64		id;
	u64		due;
	u64		timeout;
	u64		thing;
	u64		asked;
	u8		heard;
};

/*
 * @call: number of the call that is under way. @looking: it looks at what is due, and at
 * nothing else. @wanted: the token of which a call wants to know, or TW_NIL.
 */
static struct model {
	struct tw_ring	ring;
	struct life	life[MOST];
	struct thing	thing[THINGS];
	struct tw_now	now;
	u32		max;
	bool		tell_ended;
	u64		call;
	bool		looking;
	u32		wanted;
	u32		live;
	u32		taken;
	u64		asked;
	u64		registered;
	u64		cancelled;
	u64		ended;
	u64		delivered;
} m;

static struct {
	u64 delivered, ended, asked;
} total;

void print_state(void)
{
	printf("slots %u tick %llu max %u now %llu next %llu pending %u\n",
	       m.ring.slots, m.ring.tick, m.max, m.now.tick,
	       tw_ring_next(&m.ring), m.live);
}

static u64 ticks_of(u64 ns)
{
	return (ns + m.ring.tick - 1) / m.ring.tick;
}

static void life_stops(struct life *life, enum state state)
{
	CHECK_EQ(life->state, LIVE);
	life->state = state;
	m.live--;
}

/* A look finds the token's thing over. */
static void life_ends(struct life *life)
{
	life_stops(life, NONE);
	m.ended++;
}

/* The false thing: what it says is what the model goes by from then on. */
static struct tw_asked ask(const void *watch, u64 timeout, u64 now, u64 tick)
{
	const u64 *which = watch;
	struct tw_token *token = (void *)watch - m.ring.watch.at;
	u32 index = tw_ring_index(&m.ring, token);
	struct life *life = &m.life[index];
	const struct thing *thing = &m.thing[*which];
	struct tw_asked asked = { .error = thing->error };

	CHECK_EQ(*which, life->thing);
	CHECK_EQ(life->state, LIVE);
	CHECK_EQ(timeout, life->timeout);
	CHECK_EQ(now, m.now.tick);
	CHECK_EQ(tick, m.ring.tick);
	CHECK(m.looking ? life->due <= now : index == m.wanted,
	      "token %u, due on %llu, is asked in vain", index, life->due);
	if (!thing->error && thing->used)
		asked.due = thing->used + ticks_of(timeout);
	m.asked++;
	life->asked = m.call;
	life->heard = thing->error;
	if (asked.due > life->due)
		life->due = min(asked.due, m.ring.max_due);
	else if (m.looking && thing->error == ENOTCONN && !m.tell_ended)
		life_ends(life);

	return asked;
}

static void begin_call(bool looking, u32 wanted)
{
	m.call++;
	m.looking = looking;
	m.wanted = wanted;
	spin_lock(&m.ring.lock);
}

static void end_call(void)
{
	spin_unlock(&m.ring.lock);
	m.looking = false;
	m.wanted = TW_NIL;
}

static void check_all(void)
{
	struct timewheel_info info = { };
	u32 i;

	walk(&m.ring);
	for (i = 0; i < m.max; i++) {
		const struct life *life = &m.life[i];
		const struct tw_token *token;

		if (life->state != LIVE)
			continue;
		token = tw_arena_at(&m.ring.tokens, i);
		CHECK_EQ(tw_ring_due_tick(&m.ring, i), life->due);
		CHECK_EQ(!!tw_watch_of(&m.ring, token),
			 life->thing != NO_THING);
	}
	spin_lock(&m.ring.lock);
	tw_watch_info(&m.ring, &info);
	spin_unlock(&m.ring.lock);
	CHECK_EQ(info.asked, m.asked);
	CHECK_EQ(info.ended, m.ended);
	CHECK_EQ(m.ring.pending, m.live);
	CHECK_EQ(m.ring.registered, m.registered);
	CHECK_EQ(m.ring.delivered, m.delivered);
	CHECK_EQ(m.ring.ended, m.cancelled + m.ended);
	CHECK_EQ(m.registered, m.live + m.taken + m.cancelled + m.ended +
		 m.delivered);
}

/* Any token that is LIVE; TW_NIL if none is. */
static u32 pick(void)
{
	u32 first = below(m.max), i;

	for (i = 0; i < m.max; i++)
		if (m.life[(first + i) % m.max].state == LIVE)
			return (first + i) % m.max;

	return TW_NIL;
}

static u32 by_id(u64 id)
{
	u32 i;

	for (i = 0; i < m.max; i++)
		if (m.life[i].state == LIVE && m.life[i].id == id)
			return i;

	return TW_NIL;
}

static u64 earliest(void)
{
	u64 first = TW_NEVER;
	u32 i;

	for (i = 0; i < m.max; i++)
		if (m.life[i].state == LIVE)
			first = min(first, m.life[i].due);

	return first;
}

/* As the wheel does it: the lock is left to grow. */
static int register_growing(u64 id, const struct tw_deadline *deadline,
			    u64 *handle)
{
	int err;

	for (;;) {
		begin_call(false, TW_NIL);
		err = tw_ring_register(&m.ring, &m.now, id, ~id, deadline, handle);
		if (err != -EAGAIN)
			return err;
		end_call();
		CHECK_EQ(tw_ring_grow(&m.ring), 0);
	}
}

/* A token that watches a thing, or none; one whose thing is over is replaced. */
static void op_watch(void)
{
	struct tw_deadline deadline = { .timeout = 1 + below(200 * m.ring.tick) };
	u64 thing = once(4) ? NO_THING : below(THINGS), id = below(2 * m.max);
	u64 handle;
	u32 there;
	int err;

	deadline.due = m.now.tick + ticks_of(deadline.timeout);
	err = register_growing(id, &deadline, &handle);
	there = by_id(id);
	if (m.live + m.taken < m.max || there != TW_NIL)
		CHECK_EQ(err, there == TW_NIL ? 0 : -EEXIST);
	else
		CHECK_EQ(err, -ENOSPC);
	if (err == -EEXIST && thing != NO_THING) {
		bool over = m.life[there].thing != NO_THING &&
			    m.thing[m.life[there].thing].error == ENOTCONN;

		m.wanted = there;
		CHECK_EQ(tw_watch_end(&m.ring, id, m.now.tick), over);
		m.wanted = TW_NIL;
		if (over) {
			life_ends(&m.life[there]);
			err = tw_ring_register(&m.ring, &m.now, id, ~id,
					       &deadline, &handle);
			CHECK_EQ(err, 0);
		}
	}
	if (!err && thing != NO_THING)
		tw_watch_begin(&m.ring, (u32)handle, &thing);
	end_call();
	if (err)
		return;
	CHECK_EQ(m.life[(u32)handle].state, NONE);
	m.life[(u32)handle] = (struct life) {
		.state = LIVE, .handle = handle, .id = id, .due = deadline.due,
		.timeout = deadline.timeout, .thing = thing,
	};
	m.live++;
	m.registered++;
}

/* Things are used, now or a while ago, end, and are there again. */
static void op_use(void)
{
	struct thing *thing = &m.thing[below(THINGS)];

	if (once(8))
		thing->error = once(3) ? 0 : once(2) ? ENOTCONN : EBUSY;
	else
		thing->used = m.now.tick - min(m.now.tick, below(once(2) ? 3 : 100));
	if (once(100))
		thing->used = U64_MAX - m.ring.max_due / 4;
}

static bool find(struct tw_found *found, u32 *index)
{
	*index = pick();
	if (*index == TW_NIL)
		return false;
	CHECK_EQ(tw_ring_by_handle(&m.ring, m.life[*index].handle, found), 0);

	return true;
}

static void op_touch(void)
{
	struct tw_found found;
	u64 due, raised;
	u32 index;

	if (!find(&found, &index))
		return;
	raised = m.now.tick + ticks_of(m.life[index].timeout +
				       m.now.ns % m.ring.tick);
	CHECK_EQ(tw_ring_touch(&m.ring, &found, &m.now, &due), 0);
	m.life[index].due = max(m.life[index].due, raised);
	CHECK_EQ(due, m.life[index].due);
}

/* Somebody wants to know when a token is due. */
static void op_apply(void)
{
	struct tw_found found;
	u32 index;

	if (!find(&found, &index))
		return;
	begin_call(false, index);
	tw_ring_apply_stamp(&m.ring, &found, m.now.tick);
	end_call();
	CHECK_EQ(tw_word_due(found.word), m.life[index].due);
}

static void op_cancel(void)
{
	struct tw_found found;
	u32 index;

	if (!find(&found, &index))
		return;
	begin_call(false, TW_NIL);
	tw_ring_end(&m.ring, &found);
	end_call();
	life_stops(&m.life[index], NONE);
	m.cancelled++;
}

/* A poll: it says yes only if a token is due that has been asked just now. */
static void op_find_due(void)
{
	unsigned int work = once(2) ? 1 + below(20) : 1U << 30;
	u32 index;

	begin_call(true, TW_NIL);
	index = tw_ring_find_due(&m.ring, m.now.tick, &work);
	end_call();
	if (index == TW_NIL) {
		CHECK(!work || earliest() > m.now.tick, "due on %llu",
		      earliest());
		return;
	}
	CHECK_EQ(m.life[index].state, LIVE);
	CHECK(m.life[index].due <= m.now.tick, "early");
	CHECK_EQ(m.life[index].due, earliest());
	if (m.life[index].thing != NO_THING)
		CHECK_EQ(m.life[index].asked, m.call);
}

/* Each that is taken has been asked in this look, and what it heard does not raise it. */
static void check_taken(u32 index, u64 *last)
{
	struct life *life = &m.life[index];
	const struct tw_token *token = tw_arena_at(&m.ring.tokens, index);

	CHECK_EQ(life->state, LIVE);
	CHECK(life->due <= m.now.tick, "early: due on %llu", life->due);
	CHECK(life->due >= *last, "due on %llu after %llu", life->due, *last);
	*last = life->due;
	if (life->thing == NO_THING) {
		CHECK_EQ(token->watched, TW_WATCHES_NOTHING);
	} else {
		CHECK_EQ(life->asked, m.call);
		CHECK_EQ(token->watched, life->heard ?: TW_WATCHES);
		CHECK(life->heard != ENOTCONN || m.tell_ended,
		      "an event of what is over");
	}
	life_stops(life, TAKEN);
	m.taken++;
}

/* A reader takes some, and keeps or puts back the last of them. */
static void take(unsigned int max, unsigned int work, bool faults)
{
	u32 batch[BATCH];
	unsigned int n, good, i;
	u64 last = 0, due;

	begin_call(true, TW_NIL);
	n = tw_ring_take(&m.ring, m.now.tick, &work, batch, max);
	end_call();
	for (i = 0; i < n; i++)
		check_taken(batch[i], &last);
	CHECK(earliest() >= last, "left one that is due on %llu", earliest());
	if (n < max && work)
		CHECK(earliest() > m.now.tick, "one is due on %llu", earliest());
	good = faults ? below(n + 1) : n;
	begin_call(false, TW_NIL);
	for (i = 0; i < good;)
		i += tw_ring_delivered(&m.ring, batch + i, good - i, &due);
	tw_ring_put_back(&m.ring, batch + good, n - good);
	end_call();
	for (i = 0; i < n; i++) {
		m.life[batch[i]].state = i < good ? NONE : LIVE;
		m.live += i >= good;
	}
	m.taken -= n;
	m.delivered += good;
}

static void set_now(u64 tick, u64 into)
{
	m.now.tick = tick;
	m.now.ns = tick * m.ring.tick + into;
}

static void op_time(void)
{
	u64 next = tw_ring_next(&m.ring), tick = m.now.tick + below(4);

	if (once(2) && next != TW_NEVER)
		tick = max(m.now.tick, next - !!once(3) * !!next);
	else if (once(8))
		tick += below(300);
	/* Not as far as the few things that are used for ever. */
	if (tick < m.now.tick + 100000)
		set_now(tick, below(m.ring.tick));
}

static void one_step(void)
{
	switch (below(16)) {
	case 0 ... 3:
		return op_watch();
	case 4 ... 6:
		return op_use();
	case 7:
		return op_touch();
	case 8:
		return op_apply();
	case 9:
		return op_cancel();
	case 10:
		return op_find_due();
	case 11 ... 12:
		return take(1 + below(BATCH), once(2) ? 1 + below(20) : 1U << 30,
			    once(2));
	default:
		return op_time();
	}
}

/* P2: with nothing more to hear, each comes on its very tick, or ends by then. */
static void run_dry(void)
{
	u32 i;

	for (i = 0; i < THINGS; i++)
		if (m.thing[i].used > m.now.tick)
			m.thing[i].used = m.now.tick;
	for (i = 0; i < m.max; i++) {
		if (m.life[i].state == LIVE && m.life[i].due > m.now.tick + 1000) {
			struct tw_found found;

			CHECK_EQ(tw_ring_by_handle(&m.ring, m.life[i].handle,
						   &found), 0);
			begin_call(false, TW_NIL);
			tw_ring_end(&m.ring, &found);
			end_call();
			life_stops(&m.life[i], NONE);
			m.cancelled++;
		}
	}
	while (m.live) {
		u64 next = tw_ring_next(&m.ring), due = earliest();

		CHECK(next <= due, "next %llu, due on %llu", next, due);
		set_now(max(next, m.now.tick), 0);
		do
			take(BATCH, 1U << 30, false);
		while (earliest() <= m.now.tick);
	}
	CHECK_EQ(m.live, 0);
}

static void run_episode(u32 slots, u64 steps_left)
{
	static const u64 ticks[] = { 1, 7, 1000, 1000000 };
	const struct tw_ring_setup setup = {
		.tick = ticks[below(4)], .slots = slots,
		.max_tokens = 1 + below(MOST), .ids = true, .cookies = once(2),
		.ask = ask, .watch_size = sizeof(u64), .tell_ended = once(2),
		.first_generation = pick_generation(),
	};
	u64 last = step + min(steps_left, 1000 + below(4000));

	memset(&m, 0, sizeof(m));
	m.max = setup.max_tokens;
	m.tell_ended = setup.tell_ended;
	m.wanted = TW_NIL;
	CHECK_EQ(tw_ring_init(&m.ring, &setup), 0);
	set_now(1 + spread(30), 0);
	for (; step < last && dice_left(); step++) {
		one_step();
		if (once(64))
			check_all();
	}
	run_dry();
	check_all();
	total.delivered += m.delivered;
	total.ended += m.ended;
	total.asked += m.asked;
	tw_ring_destroy(&m.ring);
	CHECK_EQ(shim_bytes(), 0);
}

/* Chance, as a fuzzer has it. */
void run_input(void)
{
	run_episode(1 + below(100), 5000);
}

const unsigned int nr_tests = 5;

void run_test(void)
{
	static const u32 slots[] = { 1, 2, 31, 64, 3600 };
	const u64 nr_steps = steps / 20;

	memset(&total, 0, sizeof(total));
	while (step < nr_steps)
		run_episode(slots[test - 1], nr_steps - step);
	printf("ok %llu - %u slots: %llu random steps\n", test, slots[test - 1],
	       step);
	printf("# delivered %llu, ended %llu, asked %llu\n", total.delivered,
	       total.ended, total.asked);
}
