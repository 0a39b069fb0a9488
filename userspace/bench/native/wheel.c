// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wheel: with handles only, with ids and cookies, and with touch words.
 */
#include <stdlib.h>
#include <string.h>

#include <linux/timewheel.h>

#include "ids.h"
#include "wheel.h"

struct tw_ring ring;
u64 *handles;
u64 *words;

static struct tw_now now;
static u64 *keys;		/* handles or ids in the order of their use */

/* This part has the operations, each as the module carries it out. */

static void register_one(struct tw_ring *wheel, u32 i, u64 *to,
			 const struct tw_now *at)
{
	const u64 id = wheel->has_ids ? bench_id(i) : 0;
	struct tw_deadline deadline = { .timeout = TIMEOUT * TICK_NS };
	int err;

	MUST(!tw_ring_due(wheel, at, (BASE + bench_after(i)) * TICK_NS,
			  &deadline.due));
	while ((err = tw_ring_register(wheel, at, id, i, &deadline, to))) {
		MUST(err == -EAGAIN);
		spin_unlock(&wheel->lock);
		MUST(!tw_ring_grow(wheel));
		spin_lock(&wheel->lock);
	}
}

static void prefetch_ids(struct tw_ring *wheel, const u32 *which, u32 n)
{
	u64 ids[HOLD];
	u32 i;

	for (i = 0; i < n; i++)
		ids[i] = bench_id(which[i]);
	tw_ids_prefetch(&wheel->ids, ids, n);
}

void wheel_register(struct tw_ring *wheel, const u32 *which, u64 *to, u32 n,
		    const struct tw_now *at)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (i % HOLD == 0) {
			if (wheel->has_ids)
				prefetch_ids(wheel, which + i,
					     min(n - i, (u32)HOLD));
			spin_lock(&wheel->lock);
		}
		register_one(wheel, which[i], to + i, at);
		if (i % HOLD == HOLD - 1 || i == n - 1)
			spin_unlock(&wheel->lock);
	}
}

static inline int find(struct tw_ring *wheel, u64 value, struct tw_token *token,
		       struct tw_found *found)
{
	const struct tw_key key = { !wheel->has_ids, value, token };

	return tw_ring_find(wheel, key, found);
}

void wheel_cancel(struct tw_ring *wheel, const u64 *which, u32 n)
{
	struct tw_token *tokens[HOLD];
	struct tw_found found;
	u32 i, j;

	for (i = 0; i < n; i++) {
		u32 some = min(n - i, (u32)HOLD);

		if (i % HOLD == 0) {
			tw_ring_prefetch_keys(wheel, !wheel->has_ids, which + i, some,
					      tokens);
			spin_lock(&wheel->lock);
			for (j = 0; j < some; j++)
				tw_ring_prefetch_place(wheel, tokens[j]);
		}
		MUST(!find(wheel, which[i], tokens[i % HOLD], &found));
		tw_ring_cancel(wheel, &found);
		if (i % HOLD == HOLD - 1 || i == n - 1)
			spin_unlock(&wheel->lock);
	}
}

void wheel_touch(const u64 *which, u32 n, const struct tw_now *at)
{
	struct tw_token *tokens[KEYS];
	struct tw_found found;
	u64 due;
	u32 i;

	for (i = 0; i < n; i++) {
		if (i % KEYS == 0)
			tw_ring_prefetch_keys(&ring, !ring.has_ids, which + i,
					      min(n - i, (u32)KEYS), tokens);
		MUST(!find(&ring, which[i], tokens[i % KEYS], &found));
		MUST(!tw_ring_touch(&ring, &found, at, &due));
	}
}

/* Does the work of a program that has mapped the touch words. */
void wheel_stamp(const u64 *which, u32 n, u32 tick)
{
	u64 *const mapped = words;
	u32 i;

	for (i = 0; i < n; i++)
		WRITE_ONCE(mapped[(u32)which[i]],
			   (which[i] & ~(u64)U32_MAX) | tick);
}

/* This part has the contender. */

static void fill(struct tw_ring *wheel, u32 n)
{
	u32 *order = bench_permutation(n, 17);

	wheel_register(wheel, order, keys, n, &now);
	memcpy(handles, keys, n * sizeof(*keys));
	if (wheel->has_ids) {
		u32 i;

		for (i = 0; i < n; i++)
			keys[i] = bench_id(order[i]);
	}
	free(order);
}

/* Uses all tokens of a wheel once, and its free tokens are then in random order. */
static void churn(struct tw_ring *wheel, u32 n)
{
	u32 *order = bench_permutation(n, 18);
	u64 *mixed = bench_alloc(n, sizeof(*mixed));
	u32 i;

	fill(wheel, n);
	for (i = 0; i < n; i++)
		mixed[i] = keys[order[i]];
	wheel_cancel(wheel, mixed, n);
	MUST(!wheel->pending && wheel->cancelled == n);
	free(mixed);
	free(order);
}

/* The pages of words have to be in a row: see memory.c. */
static void map_words(struct tw_ring *wheel)
{
	u32 i;

	words = wheel->words.block[0];
	for (i = 0; i < wheel->words.allocated; i++)
		MUST(wheel->words.block[i] == words + i * 512);
}

void wheel_setup(struct tw_ring *wheel, u32 n, bool with_ids, bool with_words)
{
	const struct tw_ring_setup setup = {
		.tick = TICK_NS, .slots = TIMEOUT + 1, .max_tokens = n,
		.ids = with_ids, .cookies = with_ids, .words = with_words,
	};

	MUST(!tw_ring_init(wheel, &setup));
	now = wheel_at(BASE);
	handles = bench_alloc(n, sizeof(*handles));
	keys = bench_alloc(n, sizeof(*keys));
	churn(wheel, n);
	if (with_words)
		map_words(wheel);
}

static void setup_handle(u32 n)
{
	wheel_setup(&ring, n, false, false);
}

static void setup_ids(u32 n)
{
	wheel_setup(&ring, n, true, false);
}

static void setup_words(u32 n)
{
	wheel_setup(&ring, n, false, true);
}

static void prepare(const u32 *which, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		keys[i] = ring.has_ids ? bench_id(which[i]) :
					 handles[which[i]];
}

static void arm(const u32 *which, u32 n)
{
	wheel_register(&ring, which, keys, n, &now);
}

static void finish(const u32 *which, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		handles[which[i]] = keys[i];
}

/* Each call is one tick later, and each touch has something to raise. */
static void touch(const u32 *which, u32 n)
{
	(void)which;
	now = wheel_at(now.tick + 1);
	wheel_touch(keys, n, &now);
}

static void touch_mapped(const u32 *which, u32 n)
{
	(void)which;
	now = wheel_at(now.tick + 1);
	wheel_stamp(keys, n, now.tick);
}

static void cancel(const u32 *which, u32 n)
{
	(void)which;
	wheel_cancel(&ring, keys, n);
}

static void apply_stamp(struct tw_found *found)
{
	if (!tw_ring_has_words(&ring))
		return;
	spin_lock(&ring.lock);
	tw_look_apply_stamp(&ring, found, now.tick);
	spin_unlock(&ring.lock);
}

static int slot(u32 i)
{
	struct tw_found found;

	if (find(&ring, ring.has_ids ? bench_id(i) : handles[i], NULL, &found))
		return -1;
	/* The wheel would take any other value for a touch. */
	MUST(!words || words[(u32)handles[i]] >> 32 == handles[i] >> 32);
	apply_stamp(&found);

	return tw_word_due(found.word) - BASE;
}

/* Returns the random moment, before its list falls due, at which a token is touched. */
static u64 touched_at(u32 i)
{
	return BASE + 6 + bench_mix(i) % (bench_after(i) - 6);
}

static void touch_all_spread(u32 n)
{
	struct tw_found found;
	u64 due;
	u32 i;

	for (i = 0; i < n; i++) {
		struct tw_now at = wheel_at(touched_at(i));

		if (words) {
			words[(u32)handles[i]] =
				tw_stamp(handles[i] >> 32, at.tick);
			continue;
		}
		MUST(!find(&ring, ring.has_ids ? bench_id(i) : handles[i], NULL, &found));
		MUST(!tw_ring_touch(&ring, &found, &at, &due));
	}
}

/*
 * All tokens were touched since they were filed. Each list that falls due is filed
 * again, token by token, and no token expires.
 */
static void measure_refile(u32 n)
{
	u64 before = ring.refiled;
	double start, ns;
	u32 work;

	touch_all_spread(n);
	now = wheel_at(BASE + TIMEOUT);
	start = bench_cpu_ns();
	do {
		work = STEP;
		spin_lock(&ring.lock);
		MUST(tw_look_find_due(&ring, now.tick, &work) == TW_NIL);
		spin_unlock(&ring.lock);
	} while (!work);
	ns = bench_cpu_ns() - start;
	MUST(ring.refiled - before == n);
	MUST(ring.pending == n);
	bench_report("refile", ns / n);
}

static void extra(u32 n)
{
	bench_report("bytes", (double)tw_ring_bytes(&ring) / n);
	measure_refile(n);
}

static void soon(const u32 *which, u32 n)
{
	const struct tw_deadline deadline = {
		.due = now.tick + 1, .timeout = TIMEOUT * TICK_NS,
	};
	struct tw_found found;
	u32 i;

	prepare(which, n);
	for (i = 0; i < n; i++) {
		spin_lock(&ring.lock);
		MUST(!find(&ring, keys[i], NULL, &found));
		tw_ring_move(&ring, &found, &now, &deadline);
		spin_unlock(&ring.lock);
	}
	now = wheel_at(now.tick + 1);
}

/* Makes events as read(2) gives them, and uses them as a program does. */
static void deliver(const struct tw_taken *batch, u32 n)
{
	static struct timewheel_event events[BATCH];
	u32 i;

	for (i = 0; i < n; i++) {
		const struct tw_token *token = batch[i].token;

		events[i].id = tw_token_id(&ring, token);
		events[i].handle = tw_token_handle(token, batch[i].index);
		events[i].cookie = tw_token_cookie(&ring, token);
		events[i].deadline = tw_word_due(token->word) * ring.tick;
		events[i].taken = now.ns;
		events[i].delivery = 0;
		events[i].attempts = 0;
		events[i].missed = 0;
		events[i].reserved = 0;
	}
	/* All n tokens are in use, and their indices are 0 to n - 1, too. */
	for (i = 0; i < n; i++)
		bench_fired(ring.has_ids ? events[i].cookie :
					   (u32)events[i].handle);
}

static void end(const struct tw_taken *batch, u32 n)
{
	while (n) {
		u64 due;
		u32 some = tw_look_delivered(&ring, batch, n, &due, NULL, NULL);

		batch += some;
		n -= some;
	}
}

static void run(void)
{
	u64 delivered = ring.delivered;
	u32 all = ring.pending, reads = 0;
	double *ns = bench_alloc(all / BATCH + all / STEP + 100, sizeof(*ns));
	bool more;

	do {
		double since = bench_wall_ns();
		struct tw_taken batch[BATCH];
		u32 work = STEP, n;

		spin_lock(&ring.lock);
		n = tw_look_take(&ring, now.tick, &work, batch, BATCH);
		more = tw_ring_next(&ring) <= now.tick;
		spin_unlock(&ring.lock);
		ns[reads] = bench_wall_ns() - since;
		deliver(batch, n);
		since = bench_wall_ns();
		spin_lock(&ring.lock);
		end(batch, n);
		spin_unlock(&ring.lock);
		ns[reads++] += bench_wall_ns() - since;
	} while (more);
	MUST(!ring.pending && ring.delivered - delivered == all);
	/* All reads except the last were full. */
	bench_report("take", bench_quantile(ns, reads, 0.5) / BATCH);
	free(ns);
}

#define WHEEL								\
	.ours = true, .prepare = prepare, .arm = arm, .finish = finish,	\
	.touch = touch, .cancel = cancel, .slot = slot, .soon = soon,	\
	.run = run, .extra = extra

const struct contender wheel_handle = {
	WHEEL, .name = "wheel", .what = "the wheel, by handle",
	.setup = setup_handle,
};

const struct contender wheel_ids = {
	WHEEL, .name = "wheel-id", .what = "the wheel, by random u64 id",
	.setup = setup_ids,
};

const struct contender wheel_words = {
	.ours = true, .name = "wheel-mapped",
	.what = "the wheel, touched by mapped touch words",
	.setup = setup_words, .prepare = prepare, .arm = arm, .finish = finish,
	.touch = touch_mapped, .cancel = cancel, .slot = slot, .soon = soon,
	.run = run, .extra = extra,
};
