// SPDX-License-Identifier: GPL-2.0-only
/*
 * Touches without a lock race with all operations that have the lock. The test runs
 * with the thread sanitizer, and has a ledger of every life of every token. It checks
 * these promises: P3 each life has exactly one end. P4 a touch that returned success
 * kept its token for its whole timeout. There are also runs with touch words: a
 * checked touch keeps its token, also if it comes just while the word is cleared, and
 * nonsense in words makes no token early (P1). In runs with leases each delivery goes
 * to one reader, and a touch by handle fails only if the token was away.
 *
 *	race_test [--seed=N] [--steps=N]
 */
#include <getopt.h>
#include <sched.h>
#include <string.h>

#include "look.h"
#include "tap.h"
#include "walk.h"

#define TOKENS		64
#define LIVES		4096
#define IDS		96
#define TOUCHERS	2
#define CHANGERS	2
#define BATCH		16
#define ROUND		50000	/* steps of each changer, approximately */
#define OPS		2	/* steps for each time with the lock, approximately */

/*
 * One life of a token, found by its handle. @due: its deadline at registration.
 * @end_due: its deadline at its end. @touched: the latest time at which a successful
 * touch was called, plus 1. @touched_id: the id that the touch named. @refused: a
 * touch by its handle failed. @away: it was not pending for a while.
 */
struct life {
	u64	id;
	u64	timeout;
	u64	due;
	u64	end_due;
	u64	touched;
	u64	touched_id;
	u32	began;
	u32	ended;
	u32	deliveries;
	bool	moved;
	bool	refused;
	bool	away;
};

static struct tw_ring ring;
static struct life lives[TOKENS][LIVES];
static u64 handles[TOKENS];
static u64 now, touches;
static enum { BY_CALL, CHECKED, NONSENSE, LEASES } how;
static bool stop;
static u64 seed = 1, steps = 10000000, test;

void print_context(void)
{
	printf("not ok %llu\n# seed %llu, %u slots, now %llu\n", test, seed,
	       ring.slots, READ_ONCE(now));
}

static struct tw_now clock_now(void)
{
	u64 tick = READ_ONCE(now);

	return (struct tw_now){ .ns = tick * ring.tick, .tick = tick };
}

static struct life *life_of(u64 handle)
{
	CHECK((u32)handle < TOKENS && handle >> 32 < LIVES, "handle %llx",
	      handle);

	return &lives[(u32)handle][handle >> 32];
}

/* Finds a token that is pending or held. The caller has the lock. */
static int find_delivery(u64 handle, struct tw_found *found)
{
	const struct tw_key key = { .by_handle = true, .value = handle };

	return tw_delivery_find(&ring, key, found);
}

static void raise(u64 *to, u64 value)
{
	u64 old = READ_ONCE(*to);

	while (old < value && !try_cmpxchg64(to, &old, value))
		;
}

/* Gives up the CPU at some calls, so that other threads run at critical points. */
void shim_race(void)
{
	static __thread unsigned int calls;

	if (!(calls++ & 31))
		sched_yield();
}

/* The following functions are run by the threads that touch. */

/* Returns the handle of a token that was found without the lock, from its address. */
static u64 found_handle(const struct tw_found *found)
{
	const struct tw_arena *tokens = &ring.tokens;
	size_t at = 0;
	void *block;
	u32 nr;

	for (nr = 0; tw_blocks_find(&tokens->blocks, nr, &block); nr++) {
		at = (char *)found->token - (char *)block;
		if (at < tokens->blocks.bytes)
			break;
	}

	return (u64)tw_generation(found->token, found->word) << 32 |
	       (nr << tokens->shift | at / tokens->size);
}

/* Returns the word of a handle's token, or NULL if its place had no token yet. */
static u64 *word_of(u64 handle)
{
	const u32 in_page = PAGE_SIZE / sizeof(u64);
	void *page;

	return tw_blocks_find(&ring.words, (u32)handle / in_page, &page) ?
		(u64 *)page + (u32)handle % in_page : NULL;
}

/* The function is the same as in <linux/timewheel.h>. */
static bool touch_word(u64 *word, u64 handle, u64 tick)
{
	u64 seen = READ_ONCE(*word), own = tw_stamp(handle >> 32, tick);

	while (seen >> 32 == handle >> 32) {
		if ((u32)seen && (s32)((u32)seen - (u32)own) >= 0)
			return true;
		shim_race();
		if (try_cmpxchg64(word, &seen, own))
			return true;
	}

	return false;
}

static void touch_by_word(u64 *random)
{
	u64 choice = random_next(random);
	u64 handle = READ_ONCE(handles[(choice >> 8) % TOKENS]);
	struct tw_now at = clock_now();
	u64 *word = word_of(handle);

	if (!handle || !word)
		return;
	/*
	 * Half of the lives are touched once, and no later touch can hide that the
	 * touch is lost.
	 */
	if (how == CHECKED && handle >> 32 & 1 &&
	    READ_ONCE(life_of(handle)->touched))
		return;
	if (how == NONSENSE) {
		WRITE_ONCE(*word, choice & 1 ? random_next(random) :
			   tw_stamp(handle >> 32, at.tick - (choice >> 4 & 15)));
		__atomic_fetch_add(&touches, 1, __ATOMIC_RELAXED);
	} else if (touch_word(word, handle, at.tick)) {
		/* The token is due a whole timeout after the end of the tick. */
		raise(&life_of(handle)->touched, at.tick + 2);
		__atomic_fetch_add(&touches, 1, __ATOMIC_RELAXED);
	}
}

static void touch(u64 *random)
{
	u64 choice = random_next(random), id = 0, handle, due;
	struct tw_now at = clock_now();
	struct tw_found found;
	int err;

	if (choice & 1) {
		id = 1 + (choice >> 8) % IDS;
		err = tw_ring_by_id(&ring, id, &found);
		if (!err)
			handle = found_handle(&found);
	} else {
		handle = READ_ONCE(handles[(choice >> 8) % TOKENS]);
		err = tw_ring_by_handle(&ring, handle, NULL, &found);
	}
	if (!err) {
		shim_race();
		err = tw_ring_touch(&ring, &found, &at, &due);
	}
	if (err == -ESTALE && !id && handle)
		WRITE_ONCE(life_of(handle)->refused, true);
	if (err)
		return;

	CHECK(due >= at.tick, "touched on %llu, due on %llu", at.tick, due);
	raise(&life_of(handle)->touched, at.tick + 1);
	if (id)
		WRITE_ONCE(life_of(handle)->touched_id, id);
	__atomic_fetch_add(&touches, 1, __ATOMIC_RELAXED);
}

static void *toucher(void *state)
{
	while (!READ_ONCE(stop))
		tw_ring_has_words(&ring) ? touch_by_word(state) :
					   touch(state);

	return NULL;
}

/* The following functions are run by the threads that change tokens. */

/*
 * @at: the reading of the clock for all operations while the thread has the lock. The
 * clock runs on meanwhile, and touches go on.
 */
struct changer {
	u64		random;
	struct tw_now	at;
	struct tw_holder holder;
	struct tw_taken	batch[BATCH];
	unsigned int	n;
};

static u64 below(struct changer *me, u64 n)
{
	return random_next(&me->random) % n;
}

static void end_life(u64 handle, u64 word)
{
	struct life *life = life_of(handle);

	CHECK(life->began == 1, "life %llx began %u times", handle,
	      life->began);
	CHECK(!life->ended++, "life %llx ended twice", handle);
	life->away = true;
	life->end_due = tw_word_due(word);
}

static void change_register(struct changer *me)
{
	struct tw_deadline deadline = {
		.due = me->at.tick + below(me, 60), .timeout = 1 + below(me, 40),
	};
	u64 id = 1 + below(me, IDS), handle;
	struct life *life;
	int err;

	err = tw_ring_register(&ring, &me->at, id, ~id, &deadline, &handle);
	if (err == -EAGAIN) {
		spin_unlock(&ring.lock);
		CHECK_EQ(tw_ring_grow(&ring), 0);
		spin_lock(&ring.lock);
		me->at = clock_now();
		return;
	}
	CHECK(!err || err == -EEXIST || err == -ENOSPC, "error %d", err);
	if (err)
		return;

	life = life_of(handle);
	CHECK(!life->began++, "life %llx began twice", handle);
	life->id = id;
	life->timeout = deadline.timeout;
	life->due = deadline.due;
	WRITE_ONCE(handles[(u32)handle], handle);
}

/* Finds a token under the lock. The token is then really there. */
static bool find_any(struct changer *me, struct tw_found *found, u64 *handle)
{
	u64 id = 1 + below(me, IDS);

	if (below(me, 2)) {
		*handle = handles[below(me, TOKENS)];
		return !tw_ring_by_handle(&ring, *handle, NULL, found);
	}
	if (tw_ring_by_id(&ring, id, found))
		return false;
	*handle = tw_token_handle(found->token,
				  tw_ring_index(&ring, found->token));
	CHECK_EQ(life_of(*handle)->id, id);

	return true;
}

static bool find(struct changer *me, struct tw_found *found, u64 *handle)
{
	bool there = find_any(me, found, handle);

	if (there && tw_ring_has_words(&ring))
		tw_look_apply_stamp(&ring, found, me->at.tick);

	return there;
}

static void change_cancel(struct changer *me)
{
	struct tw_found found;
	u64 handle;

	if (!find(me, &found, &handle))
		return;
	tw_ring_cancel(&ring, &found);
	end_life(handle, found.word);
	/* A touch in between came before the cancel. */
	if (how == CHECKED)
		life_of(handle)->moved = true;
}

/* Looks at a word twice, as a GET does that names a token twice. */
static void change_look(struct changer *me)
{
	struct tw_found found;
	u64 handle;

	if (find(me, &found, &handle) && tw_ring_has_words(&ring))
		tw_look_apply_stamp(&ring, &found, me->at.tick);
}

/* Moves tokens, but not all: only touches decide on the deadlines of the others. */
static void change_move(struct changer *me)
{
	struct tw_deadline deadline = { .due = me->at.tick + below(me, 60) };
	struct tw_found found;
	u64 handle;

	if (!find(me, &found, &handle) || handle & 3)
		return;
	life_of(handle)->moved = true;
	tw_ring_move(&ring, &found, &me->at, &deadline);
}

static void change_take(struct changer *me)
{
	unsigned int work = 1 + below(me, 64), i;

	me->n = tw_look_take(&ring, me->at.tick, &work, me->batch,
			     1 + below(me, BATCH));
	for (i = 0; i < me->n; i++) {
		struct tw_token *token = me->batch[i].token;
		u64 word = READ_ONCE(token->word);

		CHECK_EQ(tw_word_state(word), TW_TAKEN);
		CHECK(tw_word_due(word) <= me->at.tick,
		      "due on %llu, taken on %llu", tw_word_due(word),
		      me->at.tick);
		life_of(tw_token_handle(token, me->batch[i].index))->away = true;
	}
}

/*
 * Delivers taken tokens with leases, or puts them back. Each delivery has the next
 * number, and a token that was put back leaves its number to the next delivery.
 */
static void hold(struct changer *me, unsigned int n)
{
	unsigned int i;
	u64 due;

	for (i = 0; i < me->n; i++) {
		struct tw_token *token = me->batch[i].token;
		struct life *life = life_of(tw_token_handle(token,
							    me->batch[i].index));

		CHECK_EQ(life->began - life->ended, 1);
		CHECK_EQ(tw_delivery_of(&ring, token)->number,
			 life->deliveries + 1);
		life->deliveries += i < n;
		/* The token became due again, and its touches do not decide any more. */
		life->moved |= life->deliveries > 1;
		life->end_due = tw_word_due(READ_ONCE(token->word));
	}
	for (i = 0; i < n; i += tw_look_delivered(&ring, me->batch + i,
						  n - i, &due, &me->at,
						  &me->holder))
		;
	tw_look_put_back(&ring, me->batch + n, me->n - n);
	me->n = 0;
}

/* Answers deliveries of any open file, and deletes tokens that are pending. */
static void change_held(struct changer *me)
{
	u64 handle = handles[below(me, TOKENS)], choice = below(me, 9);
	const struct tw_now *at = &me->at;
	struct tw_found found;
	struct life *life;
	bool out;

	if (!handle || find_delivery(handle, &found))
		return;
	life = life_of(handle);
	out = tw_word_state(found.word) == TW_HELD;
	CHECK_EQ(tw_delivery_check(&ring, &found, life->deliveries),
		 out ? 0 : -ESTALE);
	CHECK_EQ(tw_delivery_check(&ring, &found, life->deliveries + 1),
		 -ESTALE);
	if (!below(me, 20)) {
		tw_delivery_return(&ring, &me->holder, TOKENS, at);
		CHECK_EQ(me->holder.count, 0);
	} else if (choice < 2) {
		end_life(handle, tw_word(tw_delivery_delete(&ring, &found), 0,
					 0));
	} else if (out && choice < 4) {
		end_life(handle, tw_word(life->end_due, 0, 0));
		tw_delivery_ack(&ring, &found, at);
	} else if (out && choice < 6) {
		tw_delivery_extend(&ring, &found, at->tick + 10 * choice);
	} else if (out) {
		tw_delivery_nack(&ring, &found, at, at->tick + choice);
	}
}

static void change_finish(struct changer *me)
{
	unsigned int n = below(me, 3) ? me->n : below(me, me->n + 1), i;
	u64 due;

	if (how == LEASES)
		return hold(me, n);
	for (i = 0; i < n; i++) {
		struct tw_token *token = me->batch[i].token;
		u64 handle = tw_token_handle(token, me->batch[i].index);
		struct life *life = life_of(handle);

		end_life(handle, READ_ONCE(token->word));
		CHECK_EQ(tw_token_id(&ring, token), life->id);
		CHECK_EQ(tw_token_cookie(&ring, token), ~life->id);
	}
	for (i = 0; i < n; i += tw_look_delivered(&ring, me->batch + i, n - i,
						  &due, NULL, NULL))
		;
	tw_look_put_back(&ring, me->batch + n, me->n - n);
	me->n = 0;
}

/* P4: an operation that takes a token away notes it before it releases the lock. */
static void check_refused(u64 handle)
{
	const struct life *life = life_of(handle);

	if (handle && READ_ONCE(life->refused))
		CHECK(life->away, "a touch of %llx failed, which was pending",
		      handle);
}

static void change_one(struct changer *me)
{
	u64 choice = below(me, 100);

	check_refused(handles[below(me, TOKENS)]);
	if (choice < 40)
		change_register(me);
	else if (choice < 50)
		change_cancel(me);
	else if (choice < 58)
		change_move(me);
	else if (how == LEASES && choice < 75)
		change_held(me);
	else if (choice < 90)
		me->n ? change_finish(me) : change_take(me);
	else
		change_look(me);
}

/* Lets time pass just after the clock has been read. */
static void begin_change(struct changer *me)
{
	spin_lock(&ring.lock);
	me->at = clock_now();
	if (below(me, 3))
		return;
	__atomic_fetch_add(&now, below(me, 12), __ATOMIC_RELAXED);
	sched_yield();
}

/* Runs some operations with the lock, by one reading of the clock. */
static void change(struct changer *me)
{
	unsigned int n = 1 + below(me, 2 * OPS - 1);

	begin_change(me);
	while (n--)
		change_one(me);
	spin_unlock(&ring.lock);
	if (!below(me, 8))
		sched_yield();
}

static void *changer(void *data)
{
	struct changer *me = data;
	unsigned int i;

	for (i = 0; i < ROUND / OPS; i++)
		change(me);
	begin_change(me);
	change_finish(me);
	spin_unlock(&ring.lock);

	return NULL;
}

/* The following functions check the ledger at the end. */

static void check_life(u64 handle, u64 *began, u64 *ended)
{
	const struct life *life = life_of(handle);
	struct tw_found found;
	bool there;

	spin_lock(&ring.lock);
	there = !find_delivery(handle, &found);
	spin_unlock(&ring.lock);
	CHECK(there == (life->began && !life->ended), "life %llx", handle);
	if (life->touched)
		CHECK(life->began, "a touch kept %llx, which never was",
		      handle);
	if (life->touched_id)
		CHECK_EQ(life->touched_id, life->id);
	if (life->ended && !life->moved)
		CHECK(life->end_due >= life->due, "%llx early", handle);
	if (life->touched && life->ended && !life->moved)
		CHECK(life->end_due >= life->touched - 1 + life->timeout,
		      "%llx touched on %llu for %llu, but due on %llu", handle,
		      life->touched - 1, life->timeout, life->end_due);
	*began += life->began;
	*ended += life->ended;
}

static void check_ledger(void)
{
	u64 began = 0, ended = 0, index, generation;

	walk(&ring);
	for (index = 0; index < TOKENS; index++)
		for (generation = 1; generation < LIVES; generation++)
			check_life(generation << 32 | index, &began, &ended);
	CHECK_EQ(began, ring.registered);
	CHECK_EQ(ended, ring.cancelled + ring.delivery.deleted +
		 (how == LEASES ? ring.delivery.acked : ring.delivered));
	CHECK_EQ(began - ended, ring.pending + ring.delivery.held.count);
	CHECK(ring.put_back && ring.moved && ring.cancelled && ring.delivered,
	      "something never happened");
}

static void run_round(u32 slots, u64 round)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = slots, .max_tokens = TOKENS,
		.ids = true, .cookies = true,
		.words = how == CHECKED || how == NONSENSE,
		.lease = how == LEASES ? 30 : 0,
		.max_held = how == LEASES ? TOKENS / 3 : 0,
	};
	u64 random = seed << 32 ^ test << 24 ^ round;
	pthread_t threads[TOUCHERS + CHANGERS];
	struct changer changers[CHANGERS];
	u64 touchers[TOUCHERS];
	int i;

	memset(lives, 0, sizeof(lives));
	memset(handles, 0, sizeof(handles));
	memset(&ring, 0, sizeof(ring));
	now = 0;
	stop = false;
	CHECK_EQ(tw_ring_init(&ring, &setup), 0);

	for (i = 0; i < TOUCHERS; i++) {
		touchers[i] = random_next(&random);
		pthread_create(&threads[CHANGERS + i], NULL, toucher,
			       &touchers[i]);
	}
	for (i = 0; i < CHANGERS; i++) {
		changers[i] = (struct changer){
			.random = random_next(&random)
		};
		pthread_create(&threads[i], NULL, changer, &changers[i]);
	}
	for (i = 0; i < CHANGERS + TOUCHERS; i++) {
		if (i == CHANGERS)
			WRITE_ONCE(stop, true);
		pthread_join(threads[i], NULL);
	}

	check_ledger();
	tw_ring_destroy(&ring);
}

/* P5: all threads allocate memory at the same time. */

#define MANY	20000

static void *registrar(void *data)
{
	struct tw_deadline deadline = { .due = *(u64 *)data };
	struct tw_now at = { 0 };
	u64 handle;
	int err;

	do {
		spin_lock(&ring.lock);
		err = tw_ring_register(&ring, &at, 0, 0, &deadline, &handle);
		spin_unlock(&ring.lock);
		if (err == -EAGAIN)
			err = tw_ring_grow(&ring);
	} while (!err);
	CHECK_EQ(err, -ENOSPC);

	return NULL;
}

static void run_growing(void)
{
	struct tw_ring_setup setup = {
		.tick = 1, .slots = 60, .max_tokens = MANY,
	};
	u64 due[CHANGERS];
	pthread_t threads[CHANGERS];
	int i;

	memset(&ring, 0, sizeof(ring));
	CHECK_EQ(tw_ring_init(&ring, &setup), 0);
	for (i = 0; i < CHANGERS; i++) {
		due[i] = i;
		pthread_create(&threads[i], NULL, registrar, &due[i]);
	}
	for (i = 0; i < CHANGERS; i++)
		pthread_join(threads[i], NULL);

	CHECK_EQ(ring.pending, MANY);
	walk(&ring);
	CHECK_EQ(tw_ring_bytes(&ring), shim_bytes() + sizeof(ring));
	tw_ring_destroy(&ring);
	CHECK_EQ(shim_bytes(), 0);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ 0 }
	};
	static const u32 slots[] = { 3600, 2, 31 };
	static const char *const names[] = {
		"touches", "checked touches of words", "stores of nonsense",
		"touches against leases",
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (option == 'n')
			steps = strtoull(optarg, NULL, 0);
		else
			return 2;
	}

	printf("TAP version 13\n1..7\n");
	for (test = 1; test <= 6; test++) {
		u64 round, rounds = 1 + steps / 20 / (CHANGERS * ROUND);

		how = test <= 3 ? BY_CALL : CHECKED + test - 4;
		touches = 0;
		for (round = 0; round < rounds; round++)
			run_round(slots[test % 3], round);
		CHECK(touches, "no touch succeeded");
		printf("ok %llu - P3 P4 %u slots: %llu changes, %llu %s\n", test,
		       slots[test % 3], rounds * CHANGERS * ROUND, touches,
		       names[how]);
		fflush(stdout);
	}
	for (option = 0; option < 20; option++)
		run_growing();
	printf("ok %llu - P5 grown by %u at once\n", test, CHANGERS);

	return 0;
}
