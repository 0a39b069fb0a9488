// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ops: the operations on tokens, as callers ask for them: checked, timed,
 * carried out in order, answered.
 */
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/nospec.h>
#include <linux/percpu.h>

#include "clock.h"
#include "ids.h"
#include "ops.h"
#include "trace.h"

/* Most places that one step of a listing looks at, under the lock. */
#define TW_LIST_STEP	256

static_assert(TW_MAX_OPS <= TW_IDS_AHEAD && TW_MAX_KEYS <= TW_IDS_AHEAD);

/* Which flags go with which operation. */
static const u32 tw_op_flags[] = {
	[TIMEWHEEL_OP_REGISTER]		= TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_TOUCH]		= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_TOUCH_OR_REGISTER]	= 0,
	[TIMEWHEEL_OP_MOVE]		= TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_CANCEL]		= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_GET]			= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_ACK]			= TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ANY_FILE |
					  TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_NACK]		= TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ANY_FILE |
					  TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_EXTEND]		= TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ANY_FILE,
	[TIMEWHEEL_OP_BURY]		= TIMEWHEEL_OPF_BY_HANDLE | TIMEWHEEL_OPF_ANY_FILE,
	[TIMEWHEEL_OP_KICK]		= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_DELETE]		= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_REGISTER_PERIODIC]	= TIMEWHEEL_OPF_ABSOLUTE,
};

static bool tw_op_registers(const struct timewheel_op *op)
{
	return op->code == TIMEWHEEL_OP_REGISTER ||
	       op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

/* Whether it names a delivery. */
static bool tw_op_answers(const struct timewheel_op *op)
{
	return op->code >= TIMEWHEEL_OP_ACK && op->code <= TIMEWHEEL_OP_BURY;
}

static bool tw_op_touches(const struct timewheel_op *op)
{
	return op->code == TIMEWHEEL_OP_TOUCH ||
	       op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

/* Whether it has a flag that does not go with it. */
static bool tw_op_bad_flags(const struct timewheel_op *op)
{
	return op->flags & ~tw_op_flags[array_index_nospec(op->code,
						ARRAY_SIZE(tw_op_flags))];
}

/* The same for those that came with deliveries. */
static noinline int tw_op_check_more(const struct tw_wheel *wheel,
				     const struct tw_caller *caller,
				     const struct timewheel_op *op)
{
	if (op->code >= ARRAY_SIZE(tw_op_flags) || tw_op_bad_flags(op) ||
	    (op->lease && !tw_op_answers(op)))
		return -EINVAL;
	if (!caller->may_write)
		return -EBADF;
	if (op->code != TIMEWHEEL_OP_REGISTER_PERIODIC)
		return wheel->ring.delivery.lease ? 0 : -EINVAL;
	if (!(wheel->flags & TIMEWHEEL_SETUP_PERIODS) ||
	    (op->id && wheel->flags & TIMEWHEEL_SETUP_NO_IDS) ||
	    (op->cookie && wheel->flags & TIMEWHEEL_SETUP_NO_COOKIES))
		return -EINVAL;

	return 0;
}

/* What is wrong with an operation; it may have been found out before. */
static __always_inline int tw_op_check(const struct tw_wheel *wheel,
				       const struct tw_caller *caller,
				       const struct timewheel_op *op)
{
	bool ids = !(wheel->flags & TIMEWHEEL_SETUP_NO_IDS);
	bool cookies = !(wheel->flags & TIMEWHEEL_SETUP_NO_COOKIES);

	if (op->result)
		return op->result;
	if (op->code > TIMEWHEEL_OP_GET)
		return tw_op_check_more(wheel, caller, op);
	if (op->lease || tw_op_bad_flags(op))
		return -EINVAL;
	if (op->code != TIMEWHEEL_OP_GET && !caller->may_write)
		return -EBADF;
	if (tw_op_registers(op) &&
	    ((op->id && !ids) || (op->cookie && !cookies)))
		return -EINVAL;

	return 0;
}

static inline int tw_op_look_up(struct tw_wheel *wheel, u32 flags, u64 id,
				u64 handle, struct tw_found *found)
{
	if (flags & TIMEWHEEL_OPF_BY_HANDLE)
		return tw_ring_by_handle(&wheel->ring, handle, found);

	return tw_ring_by_id(&wheel->ring, id, found);
}

/* With the lock. */
static int tw_op_find(struct tw_wheel *wheel, const struct timewheel_op *op,
		      const struct tw_now *now, struct tw_found *found)
{
	int err = tw_op_look_up(wheel, op->flags, op->id, op->handle, found);

	if (!err && tw_ring_has_words(&wheel->ring))
		tw_ring_judge(&wheel->ring, found, now->tick);

	return err;
}

/* By what the caller named the token. */
static u64 tw_op_key(const struct timewheel_op *op)
{
	return op->flags & TIMEWHEEL_OPF_BY_HANDLE ? op->handle : op->id;
}

static int tw_was_due(const struct tw_found *found, const struct tw_now *now)
{
	return tw_word_due(found->word) <= now->tick ? TIMEWHEEL_RES_WAS_DUE : 0;
}

static u64 tw_deadline_shown(const struct tw_wheel *wheel,
			     const struct tw_caller *caller, u64 due)
{
	return tw_clock_to_user(due * wheel->ring.tick, caller->offset);
}

/* Which time an operation means, and which timeout comes of it. */
static __always_inline int tw_op_time(const struct tw_wheel *wheel,
				      const struct tw_caller *caller,
				      const struct timewheel_op *op,
				      const struct tw_now *now, u64 *time,
				      u64 *timeout)
{
	*timeout = 0;
	if (op->flags & TIMEWHEEL_OPF_ABSOLUTE) {
		*time = tw_clock_from_user(op->time, caller->offset);
	} else if (op->time <= wheel->max_delay) {
		*timeout = op->time;
		*time = now->ns + op->time;
	} else {
		return -ERANGE;
	}

	return 0;
}

/* When an operation wants its token to be due. */
static int tw_op_deadline(const struct tw_wheel *wheel,
			  const struct tw_caller *caller,
			  const struct timewheel_op *op,
			  const struct tw_now *now,
			  struct tw_deadline *deadline)
{
	u64 time;
	int err = tw_op_time(wheel, caller, op, now, &time, &deadline->timeout);

	return err ?: tw_ring_due(&wheel->ring, now, time, &deadline->due);
}

/*
 * The operations. Each returns its result and fills in what it tells. A touch
 * needs no lock, the others are called with it.
 */

/* @locked: with the lock; must be so on a wheel with touch words. */
static __always_inline int tw_touch(struct tw_wheel *wheel, u32 flags, u64 id,
				    u64 handle, const struct tw_now *now,
				    bool locked, u64 *due)
{
	struct tw_found found;
	int err = tw_op_look_up(wheel, flags, id, handle, &found);

	if (err)
		return err;
	if (locked && tw_ring_has_words(&wheel->ring))
		tw_ring_judge(&wheel->ring, &found, now->tick);
	err = tw_ring_touch(&wheel->ring, &found, now, due);
	if (err)
		/* It went meanwhile, and its id with it. */
		return err == -ESTALE && !(flags & TIMEWHEEL_OPF_BY_HANDLE) ?
			-ENOENT : err;
	err = tw_was_due(&found, now);
	this_cpu_inc(*wheel->touched);
	trace_touch(wheel->number, flags & TIMEWHEEL_OPF_BY_HANDLE,
		    flags & TIMEWHEEL_OPF_BY_HANDLE ? handle : id, *due);

	return err;
}

static __always_inline int tw_op_touch(struct tw_wheel *wheel,
				       const struct tw_caller *caller,
				       struct timewheel_op *op,
				       const struct tw_now *now, bool locked)
{
	u64 due;
	int ret = tw_touch(wheel, op->flags, op->id, op->handle, now, locked,
			   &due);

	if (ret >= 0)
		op->deadline = tw_deadline_shown(wheel, caller, due);

	return ret;
}

static int tw_op_register(struct tw_wheel *wheel,
			  const struct tw_caller *caller,
			  struct timewheel_op *op, const struct tw_now *now)
{
	struct tw_deadline deadline;
	int err = tw_op_deadline(wheel, caller, op, now, &deadline);

	if (!err)
		err = tw_ring_register(&wheel->ring, now, op->id, op->cookie,
				       &deadline, &op->handle);
	if (err)
		return err;
	op->deadline = tw_deadline_shown(wheel, caller, deadline.due);
	trace_register(wheel->number, op->id, op->handle, deadline.due);

	return 0;
}

static noinline_for_stack int
tw_op_register_periodic(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now)
{
	struct tw_period period = {
		.length		= op->period,
	};
	struct tw_deadline deadline;
	int err;

	if (op->period < wheel->ring.tick)
		return -EINVAL;
	if (op->period > S64_MAX)
		return -ERANGE;
	err = tw_op_time(wheel, caller, op, now, &period.first,
			 &deadline.timeout);
	if (!err)
		err = tw_ring_due(&wheel->ring, now, period.first,
				  &deadline.due);
	deadline.timeout = 0;
	if (!err)
		err = tw_ring_register(&wheel->ring, now, op->id, op->cookie,
				       &deadline, &op->handle);
	if (err)
		return err;
	tw_delivery_repeat(&wheel->ring, (u32)op->handle, &period);
	op->deadline = tw_deadline_shown(wheel, caller, deadline.due);
	trace_register(wheel->number, op->id, op->handle, deadline.due);

	return 0;
}

static int tw_op_touch_or_register(struct tw_wheel *wheel,
				   const struct tw_caller *caller,
				   struct timewheel_op *op,
				   const struct tw_now *now)
{
	int ret = tw_op_touch(wheel, caller, op, now, true);

	if (ret != -ENOENT)
		return ret;
	ret = tw_op_register(wheel, caller, op, now);

	return ret ?: TIMEWHEEL_RES_REGISTERED;
}

static int tw_op_move(struct tw_wheel *wheel, const struct tw_caller *caller,
		      struct timewheel_op *op, const struct tw_now *now)
{
	struct tw_deadline deadline;
	struct tw_found found;
	int err = tw_op_find(wheel, op, now, &found);

	if (!err)
		err = tw_op_deadline(wheel, caller, op, now, &deadline);
	if (err)
		return err;
	tw_ring_move(&wheel->ring, &found, now, &deadline);
	op->deadline = tw_deadline_shown(wheel, caller, deadline.due);
	trace_move(wheel->number, op->flags & TIMEWHEEL_OPF_BY_HANDLE,
		   tw_op_key(op), deadline.due);

	return tw_was_due(&found, now);
}

static int tw_op_cancel(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now)
{
	struct tw_found found;
	int err = tw_op_find(wheel, op, now, &found);

	if (err)
		return err;
	tw_ring_cancel(&wheel->ring, &found);
	op->deadline = tw_deadline_shown(wheel, caller,
					 tw_word_due(found.word));
	trace_cancel(wheel->number, op->flags & TIMEWHEEL_OPF_BY_HANDLE,
		     tw_op_key(op), tw_word_due(found.word));

	return tw_was_due(&found, now);
}

/* The same, of its deliveries. Not while a reader has it. */
static void tw_token_tell_delivery(const struct tw_ring *ring,
				   struct tw_token *token, u64 word,
				   struct timewheel_token *told)
{
	const struct tw_delivery *delivery = tw_delivery_of(ring, token);

	told->lease = delivery->lease;
	told->attempts = delivery->attempts;
	if (tw_word_state(word) == TW_HELD)
		told->state = delivery->taker ? TIMEWHEEL_STATE_HELD :
						TIMEWHEEL_STATE_BURIED;
}

/* What there is to tell of a token that is not FREE, by its word. */
static void tw_token_tell(const struct tw_wheel *wheel,
			  const struct tw_caller *caller, u32 index, u64 word,
			  const struct tw_now *now, struct timewheel_token *told)
{
	const struct tw_ring *ring = &wheel->ring;
	struct tw_token *token = tw_arena_at(&ring->tokens, index);
	u64 due = tw_word_due(word);

	told->id = tw_token_id(ring, token);
	told->handle = tw_token_handle(token, index);
	told->cookie = tw_token_cookie(ring, token);
	told->deadline = tw_deadline_shown(wheel, caller, due);
	told->cycle = due > now->tick ?
		(due - now->tick - 1) / ring->slots : 0;
	told->slot = due % ring->slots;
	told->state = tw_word_state(word) == TW_TAKEN ?
		TIMEWHEEL_STATE_TAKEN : TIMEWHEEL_STATE_PENDING;
	told->lease = 0;
	told->attempts = 0;
	if (tw_ring_has_deliveries(ring) && tw_word_state(word) != TW_TAKEN)
		tw_token_tell_delivery(ring, token, word, told);
}

static int tw_state_bits(u32 state)
{
	if (state == TIMEWHEEL_STATE_HELD)
		return TIMEWHEEL_RES_HELD;

	return state == TIMEWHEEL_STATE_BURIED ? TIMEWHEEL_RES_BURIED : 0;
}

/* Apart, so that the others need no room for what it tells. */
static noinline_for_stack int tw_op_get(struct tw_wheel *wheel,
					const struct tw_caller *caller,
					struct timewheel_op *op,
					const struct tw_now *now)
{
	u64 shown = tw_clock_to_user(now->ns, caller->offset);
	struct timewheel_token told;
	struct tw_found found;
	int err = tw_op_find(wheel, op, now, &found);

	if (err && wheel->ring.delivery.lease)
		err = tw_delivery_find(&wheel->ring,
				       op->flags & TIMEWHEEL_OPF_BY_HANDLE,
				       tw_op_key(op), &found);
	if (err)
		return err;
	tw_token_tell(wheel, caller, tw_ring_index(&wheel->ring, found.token),
		      found.word, now, &told);
	op->id = told.id;
	op->handle = told.handle;
	op->time = told.deadline > shown ? told.deadline - shown : 0;
	op->cookie = told.cookie;
	op->deadline = told.deadline;
	op->cycle = told.cycle;
	op->slot = told.slot;
	op->lease = told.lease;

	return tw_state_bits(told.state) ?: tw_was_due(&found, now);
}

/*
 * Those on wheels with leases.
 */

static int tw_op_ack(struct tw_wheel *wheel, const struct tw_caller *caller,
		     struct timewheel_op *op, const struct tw_now *now,
		     struct tw_found *found)
{
	struct tw_deadline deadline;
	int err;

	if (!op->time && !(op->flags & TIMEWHEEL_OPF_ABSOLUTE)) {
		tw_delivery_ack(&wheel->ring, found, now);
		return 0;
	}
	err = tw_op_deadline(wheel, caller, op, now, &deadline);
	if (err)
		return err;
	tw_delivery_rearm(&wheel->ring, found, now, deadline.due);
	op->deadline = tw_deadline_shown(wheel, caller, deadline.due);

	return 0;
}

static int tw_op_nack(struct tw_wheel *wheel, const struct tw_caller *caller,
		      struct timewheel_op *op, const struct tw_now *now,
		      struct tw_found *found)
{
	struct tw_deadline deadline;
	int err = tw_op_deadline(wheel, caller, op, now, &deadline);

	if (err)
		return err;
	if (tw_delivery_nack(&wheel->ring, found, now, deadline.due))
		return TIMEWHEEL_RES_BURIED;
	op->deadline = tw_deadline_shown(wheel, caller, deadline.due);

	return 0;
}

static int tw_op_extend(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now,
			struct tw_found *found)
{
	u64 time = op->time ?: wheel->ring.delivery.lease;
	u64 due;
	int err;

	if (time > S64_MAX)
		return -ERANGE;
	err = tw_ring_due(&wheel->ring, now, now->ns + time, &due);
	if (!err)
		err = tw_delivery_extend(&wheel->ring, found, now, due);
	if (err)
		return err;
	op->deadline = tw_deadline_shown(wheel, caller, due);

	return 0;
}

/* Whether a token that was found for these was pending, and past its deadline. */
static int tw_delivery_was_due(const struct tw_found *found,
			       const struct tw_now *now)
{
	return tw_word_state(found->word) == TW_ARMED ?
		tw_was_due(found, now) : 0;
}

static int tw_op_bury(struct tw_wheel *wheel, const struct tw_now *now,
		      struct tw_found *found)
{
	tw_delivery_bury(&wheel->ring, found, now);

	return tw_delivery_was_due(found, now);
}

static int tw_op_kick(struct tw_wheel *wheel, const struct tw_caller *caller,
		      struct timewheel_op *op, const struct tw_now *now,
		      struct tw_found *found)
{
	if (tw_delivery_is_out(&wheel->ring, found))
		return -EBUSY;
	tw_delivery_kick(&wheel->ring, found, now);
	op->deadline = tw_deadline_shown(wheel, caller, now->tick);

	return tw_delivery_was_due(found, now);
}

static int tw_op_delete(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now,
			struct tw_found *found)
{
	tw_delivery_delete(&wheel->ring, found);
	op->deadline = tw_deadline_shown(wheel, caller,
					 tw_word_due(found->word));

	return tw_delivery_was_due(found, now);
}

/* Whether the caller may answer to what it says it has. */
static int tw_op_may_answer(struct tw_wheel *wheel,
			    const struct tw_caller *caller,
			    const struct timewheel_op *op,
			    const struct tw_found *found)
{
	const struct tw_answer answer = {
		.lease	= op->lease,
		.taker	= tw_takers_find(&wheel->takers, caller->file),
		.any	= op->flags & TIMEWHEEL_OPF_ANY_FILE,
	};

	if (op->code == TIMEWHEEL_OP_BURY && !op->lease)
		return tw_word_state(found->word) == TW_ARMED ? 0 : -ESTALE;

	return tw_op_answers(op) ?
		tw_delivery_check(&wheel->ring, found, &answer) : 0;
}

static noinline_for_stack int tw_op_delivery(struct tw_wheel *wheel,
					     const struct tw_caller *caller,
					     struct timewheel_op *op,
					     const struct tw_now *now)
{
	bool by_handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE;
	struct tw_found found;
	int err = tw_delivery_find(&wheel->ring, by_handle, tw_op_key(op),
				   &found);

	if (!err && tw_ring_has_words(&wheel->ring))
		tw_ring_judge(&wheel->ring, &found, now->tick);
	if (!err)
		err = tw_op_may_answer(wheel, caller, op, &found);
	if (err)
		return err;
	trace_answer(wheel->number, op->code, by_handle, tw_op_key(op),
		     op->lease);

	switch (op->code) {
	case TIMEWHEEL_OP_ACK:
		return tw_op_ack(wheel, caller, op, now, &found);
	case TIMEWHEEL_OP_NACK:
		return tw_op_nack(wheel, caller, op, now, &found);
	case TIMEWHEEL_OP_EXTEND:
		return tw_op_extend(wheel, caller, op, now, &found);
	case TIMEWHEEL_OP_BURY:
		return tw_op_bury(wheel, now, &found);
	case TIMEWHEEL_OP_KICK:
		return tw_op_kick(wheel, caller, op, now, &found);
	default:
		return tw_op_delete(wheel, caller, op, now, &found);
	}
}

/* Those that are not as frequent. */
static noinline int tw_op_more(struct tw_wheel *wheel,
			       const struct tw_caller *caller,
			       struct timewheel_op *op,
			       const struct tw_now *now)
{
	switch (op->code) {
	case TIMEWHEEL_OP_GET:
		return tw_op_get(wheel, caller, op, now);
	case TIMEWHEEL_OP_REGISTER_PERIODIC:
		return tw_op_register_periodic(wheel, caller, op, now);
	default:
		return tw_op_delivery(wheel, caller, op, now);
	}
}

static int tw_op_locked(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now)
{
	switch (op->code) {
	case TIMEWHEEL_OP_REGISTER:
		return tw_op_register(wheel, caller, op, now);
	case TIMEWHEEL_OP_TOUCH:
		return tw_op_touch(wheel, caller, op, now, true);
	case TIMEWHEEL_OP_TOUCH_OR_REGISTER:
		return tw_op_touch_or_register(wheel, caller, op, now);
	case TIMEWHEEL_OP_MOVE:
		return tw_op_move(wheel, caller, op, now);
	case TIMEWHEEL_OP_CANCEL:
		return tw_op_cancel(wheel, caller, op, now);
	default:
		return tw_op_more(wheel, caller, op, now);
	}
}

/*
 * Fetches the tokens of operations that are carried out together, so that one
 * waits for memory while the others' comes in, too.
 */
static void tw_ops_prefetch(struct tw_wheel *wheel,
			    const struct timewheel_op *ops, unsigned int n)
{
	u64 ids[TW_MAX_OPS];
	unsigned int i, nr = 0;

	for (i = 0; i < n; i++)
		if (ops[i].flags & TIMEWHEEL_OPF_BY_HANDLE)
			tw_ring_prefetch_handle(&wheel->ring, ops[i].handle);
		else if (wheel->ring.has_ids)
			ids[nr++] = ops[i].id;
	if (nr)
		tw_ids_prefetch(&wheel->ring.ids, ids, nr);
}

/* The same for where the tokens of handles are filed. With the lock. */
static void tw_ops_prefetch_places(struct tw_wheel *wheel,
				   const struct timewheel_op *ops,
				   unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (ops[i].flags & TIMEWHEEL_OPF_BY_HANDLE)
			tw_ring_prefetch_place(&wheel->ring, ops[i].handle);
}

/* Operations from the first that cannot do without the lock. */
static void tw_ops_run_locked(struct tw_wheel *wheel,
			      const struct tw_caller *caller,
			      struct timewheel_op *ops, unsigned int n)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int i = 0;

	if (n > 1)
		tw_ops_prefetch_places(wheel, ops, n);
	while (i < n) {
		struct timewheel_op *op = &ops[i];
		int ret = tw_op_check(wheel, caller, op);

		if (!ret)
			ret = tw_op_locked(wheel, caller, op, &now);
		if (ret == -EAGAIN) {
			tw_wheel_unlock(wheel, &now);
			ret = tw_ring_grow(&wheel->ring);
			now = tw_wheel_lock(wheel);
			if (!ret)
				continue;
		}
		op->result = ret;
		i++;
	}
	tw_wheel_unlock(wheel, &now);
}

/*
 * Leading touches that find their token without the lock, which a wheel with
 * touch words does not allow. Returns how many there were. A look-up without the
 * lock may miss an id: a registration that is about to fail with EEXIST has put
 * the same id into a token that is not in the table, but where the look-up may
 * just pass. With the lock it is exact.
 */
static unsigned int tw_ops_run_unlocked(struct tw_wheel *wheel,
					const struct tw_caller *caller,
					struct timewheel_op *ops,
					unsigned int n)
{
	struct tw_now now;
	unsigned int i;

	if (tw_ring_has_words(&wheel->ring) || !tw_op_touches(&ops[0]))
		return 0;

	now = tw_wheel_now(wheel);
	for (i = 0; i < n && tw_op_touches(&ops[i]); i++) {
		struct timewheel_op *op = &ops[i];
		int ret = tw_op_check(wheel, caller, op);

		if (!ret)
			ret = tw_op_touch(wheel, caller, op, &now, false);
		if (ret == -ENOENT)
			break;
		op->result = ret;
	}

	return i;
}

/**
 * tw_ops_run() - carry operations out, in order
 * @wheel: the wheel, set up
 * @caller: who asks
 * @ops: the operations; one whose result is negative is passed over, the
 *	results of the others are 0 and will be set
 * @n: how many, at most TW_MAX_OPS
 *
 * May sleep for memory.
 */
void tw_ops_run(struct tw_wheel *wheel, const struct tw_caller *caller,
		struct timewheel_op *ops, unsigned int n)
{
	unsigned int i;

	if (n > 1)
		tw_ops_prefetch(wheel, ops, n);
	i = tw_ops_run_unlocked(wheel, caller, ops, n);
	if (i < n)
		tw_ops_run_locked(wheel, caller, ops + i, n - i);
}

/* The word of a token after its touch word, if it has one, has been judged. */
static u64 tw_ops_judged(struct tw_wheel *wheel, u32 index, u64 word,
			 const struct tw_now *now)
{
	struct tw_found found = {
		.token	= tw_arena_at(&wheel->ring.tokens, index),
		.word	= word,
	};

	if (tw_ring_has_words(&wheel->ring) && tw_word_state(word) == TW_ARMED)
		tw_ring_judge(&wheel->ring, &found, now->tick);

	return found.word;
}

/**
 * tw_ops_list() - one step of a listing
 * @wheel: the wheel, set up
 * @caller: who asks
 * @list: what is asked for; its cursor is moved on
 * @tokens: where the tokens go
 * @max: how many at most
 *
 * Return: how many, perhaps none although the cursor is not at the end.
 */
unsigned int tw_ops_list(struct tw_wheel *wheel, const struct tw_caller *caller,
			 struct timewheel_list *list,
			 struct timewheel_token *tokens, unsigned int max)
{
	struct tw_now now = tw_wheel_lock(wheel);
	unsigned int work = TW_LIST_STEP, n = 0;
	u32 next = list->cursor;

	while (n < max) {
		u64 word;
		u32 index = tw_ring_scan(&wheel->ring, &next, &work, &word);

		if (index == TW_NIL)
			break;
		word = tw_ops_judged(wheel, index, word, &now);
		tw_token_tell(wheel, caller, index, word, &now, &tokens[n]);
		if (tokens[n].deadline >= list->from &&
		    tokens[n].deadline <= list->to)
			n++;
	}
	list->cursor = n < max && work ? TIMEWHEEL_NEVER : next;
	tw_wheel_unlock(wheel, &now);

	return n;
}

/* A touch with the lock, which few need. */
static noinline long tw_touch_locked(struct tw_wheel *wheel, u32 flags, u64 key)
{
	struct tw_now now = tw_wheel_lock(wheel);
	u64 due;
	int ret = tw_touch(wheel, flags, key, key, &now, true, &due);

	tw_wheel_unlock(wheel, &now);

	return ret;
}

/* Two of what would be one with @flags: this one is all in registers. */
static __always_inline long tw_touch_by_handle(struct tw_wheel *wheel,
					       u64 handle)
{
	struct tw_now now = tw_wheel_now(wheel);
	u64 due;

	return tw_touch(wheel, TIMEWHEEL_OPF_BY_HANDLE, 0, handle, &now, false,
			&due);
}

static noinline long tw_touch_by_id(struct tw_wheel *wheel, u64 id)
{
	struct tw_now now = tw_wheel_now(wheel);
	u64 due;
	int ret = tw_touch(wheel, 0, id, 0, &now, false, &due);

	/* As in tw_ops_run_unlocked(): only the lock makes sure of that. */
	return ret == -ENOENT ? tw_touch_locked(wheel, 0, id) : ret;
}

/**
 * tw_ops_touch() - touch one token and tell no more than that it was done
 * @wheel: the wheel, set up
 * @flags: TIMEWHEEL_OPF_BY_HANDLE or 0
 * @key: handle or id
 *
 * Never sleeps.
 *
 * Return: 0 or TIMEWHEEL_RES_WAS_DUE; -EINVAL; -ENOENT; -ESTALE; -ERANGE. It is of
 * ioctl(2)'s type, so that the caller can leave the return to it.
 */
long tw_ops_touch(struct tw_wheel *wheel, u32 flags, u64 key)
{
	if (tw_ring_has_words(&wheel->ring))
		return tw_touch_locked(wheel, flags, key);

	return flags & TIMEWHEEL_OPF_BY_HANDLE ? tw_touch_by_handle(wheel, key) :
					     tw_touch_by_id(wheel, key);
}

static void tw_keys_prefetch(struct tw_wheel *wheel, u32 flags,
			     const u64 *keys, unsigned int n)
{
	unsigned int i;

	if (flags & TIMEWHEEL_OPF_BY_HANDLE)
		for (i = 0; i < n; i++)
			tw_ring_prefetch_handle(&wheel->ring, keys[i]);
	else if (wheel->ring.has_ids)
		tw_ids_prefetch(&wheel->ring.ids, keys, n);
}

/*
 * Touches tokens from key @done on, up to the first that cannot be, and says
 * why that is.
 */
static __always_inline int tw_touch_each(struct tw_wheel *wheel, u32 flags,
					 const u64 *keys, unsigned int n,
					 const struct tw_now *now, bool locked,
					 unsigned int *done)
{
	unsigned int i;
	int ret = 0;
	u64 due;

	for (i = *done; i < n; i++) {
		ret = tw_touch(wheel, flags, keys[i], keys[i], now, locked,
			       &due);
		if (ret < 0)
			break;
	}
	*done = i;

	return min(ret, 0);
}

/**
 * tw_ops_touch_many() - touch tokens in order, up to the first that cannot be
 * @wheel: the wheel, set up
 * @flags: TIMEWHEEL_OPF_BY_HANDLE or 0
 * @keys: handles or ids
 * @n: how many, at most TW_MAX_KEYS
 * @done: how many were touched
 *
 * Never sleeps.
 *
 * Return: 0, or why the token of key @done could not be: -EINVAL; -ENOENT;
 * -ESTALE; -ERANGE.
 */
int tw_ops_touch_many(struct tw_wheel *wheel, u32 flags, const u64 *keys,
		      unsigned int n, unsigned int *done)
{
	struct tw_now now = tw_wheel_now(wheel);
	int err = -ENOENT;

	*done = 0;
	tw_keys_prefetch(wheel, flags, keys, n);
	if (!tw_ring_has_words(&wheel->ring))
		/* Said so that by handle all is in registers here, too. */
		err = flags & TIMEWHEEL_OPF_BY_HANDLE ?
			tw_touch_each(wheel, TIMEWHEEL_OPF_BY_HANDLE, keys, n, &now,
				      false, done) :
			tw_touch_each(wheel, 0, keys, n, &now, false, done);
	/* As in tw_ops_run_unlocked(): only the lock makes sure of that. */
	if (err == -ENOENT) {
		now = tw_wheel_lock(wheel);
		err = tw_touch_each(wheel, flags, keys, n, &now, true, done);
		tw_wheel_unlock(wheel, &now);
	}

	return err;
}
