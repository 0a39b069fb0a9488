// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Ops: the operations on tokens, as callers ask for them: checked, timed,
 * carried out in order, answered.
 */
#include <linux/bits.h>
#include <linux/limits.h>
#include <linux/nospec.h>

#include "ops.h"
#include "touch.h"
#include "trace.h"

static_assert(TW_MAX_OPS <= TW_IDS_AHEAD);
static_assert(TW_MAX_ENTRIES <= TW_IDS_AHEAD);
static_assert(TW_MAX_CANCELS <= TW_IDS_AHEAD);

/* These flags go with each operation. */
static const u32 tw_op_flags[] = {
	[TIMEWHEEL_OP_REGISTER]	= TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_TOUCH]	= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_TOUCH_OR_REGISTER] = 0,
	[TIMEWHEEL_OP_MOVE]	= TIMEWHEEL_OPF_BY_HANDLE |
				  TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_CANCEL]	= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_ACK]	= TIMEWHEEL_OPF_BY_HANDLE,
	[TIMEWHEEL_OP_NACK]	= TIMEWHEEL_OPF_BY_HANDLE |
				  TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_EXTEND]	= TIMEWHEEL_OPF_BY_HANDLE |
				  TIMEWHEEL_OPF_ABSOLUTE,
	[TIMEWHEEL_OP_DELETE]	= TIMEWHEEL_OPF_BY_HANDLE,
};

/* Whether an operation names a delivery. */
static bool tw_op_answers(const struct timewheel_op *op)
{
	return op->code >= TIMEWHEEL_OP_ACK && op->code <= TIMEWHEEL_OP_EXTEND;
}

static bool tw_op_touches(const struct timewheel_op *op)
{
	return op->code == TIMEWHEEL_OP_TOUCH ||
	       op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

static bool tw_op_registers(const struct timewheel_op *op)
{
	return op->code == TIMEWHEEL_OP_REGISTER ||
	       op->code == TIMEWHEEL_OP_TOUCH_OR_REGISTER;
}

/* Whether an operation has a flag that does not go with it. */
static bool tw_op_bad_flags(const struct timewheel_op *op)
{
	u32 code = array_index_nospec(op->code, ARRAY_SIZE(tw_op_flags));

	return op->flags & ~tw_op_flags[code];
}

/* Whether a token to be registered has something that this wheel's tokens cannot have. */
static inline bool tw_bad_names(const struct tw_wheel *wheel, u64 id, u64 cookie)
{
	return (id && wheel->flags & TIMEWHEEL_SETUP_NO_IDS) ||
	       (cookie && wheel->flags & TIMEWHEEL_SETUP_NO_COOKIES);
}

/* Returns what is wrong with an operation that only wheels with leases know. */
static noinline int tw_op_check_delivery(const struct tw_wheel *wheel,
					 const struct timewheel_op *op)
{
	if (op->code >= ARRAY_SIZE(tw_op_flags) || tw_op_bad_flags(op) ||
	    op->reserved || (op->delivery && !tw_op_answers(op)))
		return -EINVAL;

	return wheel->ring.delivery.lease ? 0 : -EINVAL;
}

/*
 * Returns what is wrong with an operation. An error found earlier is in its result.
 *
 * These functions are inlined by force, as the parts of a touch in ring.h are: left to the
 * compiler, a touch in a batch takes 228 instead of 195 instructions; with tw_deadline() alone
 * left to it, a move takes 482 instead of 459, and with tw_op_register_once() alone a registration
 * takes 427 instead of 401 (selftests/counts.c, gcc 12).
 */
static __always_inline int tw_op_check(const struct tw_wheel *wheel,
				       const struct timewheel_op *op)
{
	if (op->result)
		return op->result;
	if (op->code > TIMEWHEEL_OP_CANCEL)
		return tw_op_check_delivery(wheel, op);
	if (op->delivery | op->reserved || tw_op_bad_flags(op))
		return -EINVAL;
	if (tw_op_registers(op) && tw_bad_names(wheel, op->id, op->cookie))
		return -EINVAL;

	return 0;
}

/* Returns the key by which the caller named the token. @token: see struct tw_key. */
static __always_inline struct tw_key tw_op_key(const struct timewheel_op *op,
					       struct tw_token *token)
{
	bool by_handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE;

	return (struct tw_key) { by_handle, by_handle ? op->handle : op->id, token };
}

/*
 * Finds a token that is pending. Called with the lock. Inlined, which saves 20 of 326 instructions
 * of a cancel in a batch.
 */
static inline int tw_find(const struct tw_call *call, const struct tw_key *key,
			  struct tw_found *found)
{
	struct tw_ring *ring = &call->wheel->ring;
	int err = tw_ring_find(ring, *key, found);

	if (!err && tw_ring_has_words(ring))
		tw_look_apply_stamp(ring, found, call->now.tick);

	return err;
}

/* Returns the point of host time that a caller means. */
static __always_inline int tw_time_meant(const struct tw_call *call, u32 flags,
					 u64 given, u64 *time)
{
	if (flags & TIMEWHEEL_OPF_ABSOLUTE)
		*time = tw_clock_from_user(given, call->offset);
	else if (given <= S64_MAX)
		*time = call->now.ns + given;
	else
		return -ERANGE;

	return 0;
}

/* Returns what a touch is to add to now: the caller's timeout, else the delay. */
static inline u64 tw_timeout_meant(u32 flags, u64 timeout, u64 time)
{
	return timeout || flags & TIMEWHEEL_OPF_ABSOLUTE ? timeout : time;
}

/*
 * Finds when a token is to be due, by the caller's @flags and @time. @timeout: what a touch is
 * to add to now, 0 for @before. Returns 0 or -ERANGE. On a wheel with touch words a token that
 * can be touched is looked at before its stamp is so old that it looks like one of the future:
 * see words.h.
 */
static __always_inline int
tw_deadline(const struct tw_call *call, u32 flags, u64 time, u64 timeout,
	    u64 before, struct tw_deadline *deadline)
{
	const struct tw_wheel *wheel = call->wheel;
	int err = tw_time_meant(call, flags, time, &deadline->time);

	if (!err)
		err = tw_ring_due(&wheel->ring, &call->now, deadline->time,
				  &deadline->due);
	if (err)
		return err;
	deadline->timeout = timeout;
	if (timeout > wheel->max_timeout ||
	    (tw_ring_has_words(&wheel->ring) && (timeout || before) &&
	     deadline->due - call->now.tick >= TW_MAX_STAMPED))
		return -ERANGE;

	return 0;
}

/*
 * These are the operations. Each returns its result and fills in what it tells. A touch needs
 * no lock, all others are called with it.
 */

/* @locked: the caller holds the lock, as it must on a wheel with touch words. */
static __always_inline int tw_op_touch(const struct tw_call *call, struct timewheel_op *op,
				       const struct tw_key *key, bool locked)
{
	u64 due;
	int ret = tw_touch(call->wheel, *key, &call->now, locked, &due);

	if (ret >= 0)
		op->deadline = tw_tick_shown(call, due);

	return ret;
}

/* Registers a token. Its operation has been checked. */
static inline int tw_op_enter(const struct tw_call *call, struct timewheel_op *op,
			      const struct tw_deadline *deadline)
{
	struct tw_wheel *wheel = call->wheel;
	int err = tw_ring_register(&wheel->ring, &call->now, op->id, op->cookie,
				   deadline, &op->handle);

	if (err)
		return err;
	op->deadline = tw_tick_shown(call, deadline->due);
	trace_register(wheel->number, op->id, op->handle, deadline->due);

	return 0;
}

static noinline_for_stack int tw_op_register_periodic(const struct tw_call *call,
						      struct timewheel_op *op)
{
	struct tw_wheel *wheel = call->wheel;
	struct tw_deadline deadline = { };
	int err;

	if (!(wheel->flags & TIMEWHEEL_SETUP_PERIODS) || op->timeout ||
	    op->period < wheel->ring.tick)
		return -EINVAL;
	if (op->period > S64_MAX)
		return -ERANGE;
	err = tw_time_meant(call, op->flags, op->time, &deadline.time);
	if (!err)
		err = tw_ring_due(&wheel->ring, &call->now, deadline.time,
				  &deadline.due);
	if (!err)
		err = tw_op_enter(call, op, &deadline);
	if (!err)
		tw_delivery_repeat(&wheel->ring, (u32)op->handle, deadline.time,
				   op->period);

	return err;
}

/* @timeout: what a touch is to add to now, 0 for none. */
static __always_inline int tw_op_register_once(const struct tw_call *call,
					       struct timewheel_op *op, u64 timeout)
{
	struct tw_deadline deadline;
	int err = tw_deadline(call, op->flags, op->time, timeout, 0, &deadline);

	return err ?: tw_op_enter(call, op, &deadline);
}

static int tw_op_register(const struct tw_call *call, struct timewheel_op *op)
{
	if (op->period)
		return tw_op_register_periodic(call, op);

	return tw_op_register_once(call, op,
				   tw_timeout_meant(op->flags, op->timeout,
						    op->time));
}

static int tw_op_touch_or_register(const struct tw_call *call, struct timewheel_op *op,
				   const struct tw_key *key)
{
	int ret = tw_op_touch(call, op, key, true);

	if (ret != -ENOENT)
		return ret;

	return tw_op_register_once(call, op, op->time) ?:
	       TIMEWHEEL_RES_REGISTERED;
}

static int tw_op_move(const struct tw_call *call, struct timewheel_op *op,
		      const struct tw_key *key)
{
	u64 timeout = tw_timeout_meant(op->flags, op->timeout, op->time);
	struct tw_wheel *wheel = call->wheel;
	struct tw_deadline deadline;
	struct tw_found found;
	int err = tw_find(call, key, &found);

	if (!err && tw_repeat_of(&wheel->ring, found.token)) {
		err = op->timeout ? -EINVAL : 0;
		timeout = 0;
	}
	if (!err)
		err = tw_deadline(call, op->flags, op->time, timeout,
				  found.token->timeout, &deadline);
	if (err)
		return err;
	tw_ring_move(&wheel->ring, &found, &call->now, &deadline);
	op->deadline = tw_tick_shown(call, deadline.due);
	trace_move(wheel->number, key->by_handle, key->value, deadline.due);

	return tw_was_due(&found, &call->now);
}

/* @due: the tick on which the token was due. */
static __always_inline int tw_cancel(const struct tw_call *call, const struct tw_key *key,
				     u64 *due)
{
	struct tw_found found;
	int err = tw_find(call, key, &found);

	if (err)
		return err;
	tw_ring_cancel(&call->wheel->ring, &found);
	*due = tw_word_due(found.word);
	trace_cancel(call->wheel->number, key->by_handle, key->value, *due);

	return tw_was_due(&found, &call->now);
}

static int tw_op_cancel(const struct tw_call *call, struct timewheel_op *op,
			const struct tw_key *key)
{
	u64 due;
	int ret = tw_cancel(call, key, &due);

	if (ret >= 0)
		op->deadline = tw_tick_shown(call, due);

	return ret;
}

/*
 * These are the operations on wheels with leases. The caller has found each one's token, and
 * an answer's delivery.
 */

static int tw_op_nack(const struct tw_call *call, struct timewheel_op *op,
		      struct tw_found *found)
{
	struct tw_deadline deadline;
	int err = tw_deadline(call, op->flags, op->time, 0,
			      found->token->timeout, &deadline);

	if (err)
		return err;
	tw_delivery_nack(&call->wheel->ring, found, &call->now, deadline.due);
	op->deadline = tw_tick_shown(call, deadline.due);

	return 0;
}

static int tw_op_extend(const struct tw_call *call, struct timewheel_op *op,
			struct tw_found *found)
{
	bool absolute = op->flags & TIMEWHEEL_OPF_ABSOLUTE;
	struct tw_ring *ring = &call->wheel->ring;
	u64 lease = op->time || absolute ? op->time : ring->delivery.lease;
	u64 time, end;
	int err = tw_time_meant(call, op->flags, lease, &time);

	if (!err)
		err = tw_ring_due(ring, &call->now, time, &end);
	if (err)
		return err;
	if (!absolute)
		end = max(end, tw_delivery_due(ring, found));
	tw_delivery_extend(ring, found, end);
	op->deadline = tw_tick_shown(call, end);

	return 0;
}

static int tw_op_delete(const struct tw_call *call, struct timewheel_op *op,
			struct tw_found *found)
{
	bool armed = tw_word_state(found->word) == TW_ARMED;
	u64 due = tw_delivery_delete(&call->wheel->ring, found);

	op->deadline = tw_tick_shown(call, due);

	return armed ? tw_was_due(found, &call->now) : 0;
}

static noinline_for_stack int tw_op_delivery(const struct tw_call *call,
					     struct timewheel_op *op, const struct tw_key *key)
{
	struct tw_ring *ring = &call->wheel->ring;
	struct tw_found found;
	int err = tw_delivery_find(ring, *key, &found);

	if (!err && tw_ring_has_words(ring))
		tw_look_apply_stamp(ring, &found, call->now.tick);
	if (!err && tw_op_answers(op))
		err = tw_delivery_check(ring, &found, op->delivery);
	if (err)
		return err;
	trace_answer(call->wheel->number, op->code, key->by_handle, key->value,
		     op->delivery);

	switch (op->code) {
	case TIMEWHEEL_OP_ACK:
		tw_delivery_ack(ring, &found, &call->now);
		return 0;
	case TIMEWHEEL_OP_NACK:
		return tw_op_nack(call, op, &found);
	case TIMEWHEEL_OP_EXTEND:
		return tw_op_extend(call, op, &found);
	default:
		return tw_op_delete(call, op, &found);
	}
}

static int tw_op_locked(const struct tw_call *call, struct timewheel_op *op,
			const struct tw_key *key)
{
	switch (op->code) {
	case TIMEWHEEL_OP_REGISTER:
		return tw_op_register(call, op);
	case TIMEWHEEL_OP_TOUCH:
		return tw_op_touch(call, op, key, true);
	case TIMEWHEEL_OP_TOUCH_OR_REGISTER:
		return tw_op_touch_or_register(call, op, key);
	case TIMEWHEEL_OP_MOVE:
		return tw_op_move(call, op, key);
	case TIMEWHEEL_OP_CANCEL:
		return tw_op_cancel(call, op, key);
	default:
		return tw_op_delivery(call, op, key);
	}
}

/*
 * Fetches the tokens of operations that are carried out together, so that the waits for memory
 * overlap. @tokens: of each operation, see struct tw_key.
 */
static void tw_ops_prefetch(struct tw_ring *ring, const struct timewheel_op *ops,
			    unsigned int n, struct tw_token **tokens)
{
	u64 ids[TW_MAX_OPS];
	unsigned int i, nr = 0;

	for (i = 0; i < n; i++) {
		tokens[i] = NULL;
		if (ops[i].flags & TIMEWHEEL_OPF_BY_HANDLE)
			tokens[i] = tw_ring_prefetch_handle(ring, ops[i].handle);
		else if (ring->has_ids)
			ids[nr++] = ops[i].id;
	}
	if (nr)
		tw_ring_prefetch_ids(ring, ids, nr);
}

/* Lets go of the lock to take memory for a registration that met -EAGAIN. */
static int tw_grow(struct tw_call *call)
{
	int err;

	tw_wheel_unlock(call->wheel, &call->now);
	err = tw_ring_grow(&call->wheel->ring);
	call->now = tw_wheel_lock(call->wheel);

	return err;
}

/* Carries out operations, from the first one that needs the lock. */
static void tw_ops_run_locked(struct tw_call *call, struct timewheel_op *ops,
			      unsigned int n, struct tw_token **tokens)
{
	struct tw_wheel *wheel = call->wheel;
	unsigned int i;

	call->now = tw_wheel_lock(wheel);
	for (i = 0; i < n; i++)
		tw_ring_prefetch_place(&wheel->ring, tokens[i]);
	for (i = 0; i < n; ) {
		const struct tw_key key = tw_op_key(&ops[i], tokens[i]);
		int ret = tw_op_check(wheel, &ops[i]);

		if (!ret)
			ret = tw_op_locked(call, &ops[i], &key);
		if (unlikely(ret == -EAGAIN)) {
			ret = tw_grow(call);
			if (!ret)
				continue;
		}
		ops[i++].result = ret;
	}
	tw_wheel_unlock(wheel, &call->now);
}

/*
 * Carries out leading touches that find their token without the lock, which a wheel with touch
 * words does not allow. Returns how many there were. A touch that did not find its token is
 * left for the lock: see tw_touch().
 */
static unsigned int tw_ops_run_unlocked(struct tw_call *call, struct timewheel_op *ops,
					unsigned int n, struct tw_token **tokens)
{
	unsigned int i;

	if (tw_ring_has_words(&call->wheel->ring) || !tw_op_touches(&ops[0]))
		return 0;

	call->now = tw_wheel_now(call->wheel);
	for (i = 0; i < n && tw_op_touches(&ops[i]); i++) {
		const struct tw_key key = tw_op_key(&ops[i], tokens[i]);
		int ret = tw_op_check(call->wheel, &ops[i]);

		if (!ret)
			ret = tw_op_touch(call, &ops[i], &key, false);
		if (ret == -ENOENT)
			break;
		ops[i].result = ret;
	}

	return i;
}

/*
 * Carries at most TW_MAX_OPS operations out, in order. An operation whose result is negative
 * is passed over; all other results are 0 and will be set. May sleep for memory.
 */
void tw_ops_run(struct tw_call *call, struct timewheel_op *ops, unsigned int n)
{
	struct tw_token *tokens[TW_MAX_OPS];
	unsigned int i;

	tokens[0] = NULL;
	if (n > 1)
		tw_ops_prefetch(&call->wheel->ring, ops, n, tokens);
	i = tw_ops_run_unlocked(call, ops, n, tokens);
	if (i < n)
		tw_ops_run_locked(call, ops + i, n - i, tokens + i);
}

/* These calls are about many tokens of one kind. */

/* Registers one of many tokens. Called with the lock. */
static __always_inline int
tw_entry_register(const struct tw_call *call, const struct timewheel_register_many *many,
		  struct timewheel_entry *entry)
{
	u64 timeout = tw_timeout_meant(many->flags, many->timeout, entry->time);
	struct tw_wheel *wheel = call->wheel;
	struct tw_deadline deadline;
	int err;

	if (entry->reserved || tw_bad_names(wheel, entry->id, entry->cookie))
		return -EINVAL;
	err = tw_deadline(call, many->flags, entry->time, timeout, 0, &deadline);
	if (!err)
		err = __tw_ring_register(&wheel->ring, &call->now, entry->id,
					 entry->cookie, &deadline, &entry->handle);
	if (!err && trace_register_enabled())
		trace_register(wheel->number, entry->id, entry->handle,
			       deadline.due);

	return err;
}

/*
 * Registers at most TW_MAX_ENTRIES tokens, in order: each gets its result. May sleep for
 * memory.
 */
void tw_register_many(struct tw_call *call, const struct timewheel_register_many *many,
		      struct timewheel_entry *entries, unsigned int n)
{
	struct tw_ring *ring = &call->wheel->ring;
	u64 ids[TW_MAX_ENTRIES];
	unsigned int i;

	for (i = 0; ring->has_ids && i < n; i++)
		ids[i] = entries[i].id;
	tw_ring_prefetch_ids(ring, ids, n);
	call->now = tw_wheel_lock(call->wheel);
	for (i = 0; i < n; ) {
		int err = tw_entry_register(call, many, &entries[i]);

		if (unlikely(err == -EAGAIN)) {
			err = tw_grow(call);
			if (!err)
				continue;
		}
		entries[i++].result = err;
	}
	tw_wheel_unlock(call->wheel, &call->now);
}

/* Cancels the tokens of at most TW_MAX_CANCELS keys, in order: each has a result. */
void tw_cancel_many(struct tw_call *call, bool by_handle, const u64 *keys,
		    s32 *results, unsigned int n)
{
	struct tw_ring *ring = &call->wheel->ring;
	struct tw_token *tokens[TW_MAX_CANCELS];
	unsigned int i;
	u64 due;

	tw_ring_prefetch_keys(ring, by_handle, keys, n, tokens);
	call->now = tw_wheel_lock(call->wheel);
	for (i = 0; i < n; i++)
		tw_ring_prefetch_place(ring, tokens[i]);
	for (i = 0; i < n; i++) {
		const struct tw_key key = { by_handle, keys[i], tokens[i] };

		results[i] = tw_cancel(call, &key, &due);
	}
	tw_wheel_unlock(call->wheel, &call->now);
}
