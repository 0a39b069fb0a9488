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

/* Which flags go with which operation. */
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

/* Whether it names a delivery. */
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

/* Whether it has a flag that does not go with it. */
static bool tw_op_bad_flags(const struct timewheel_op *op)
{
	return op->flags & ~tw_op_flags[array_index_nospec(op->code,
						ARRAY_SIZE(tw_op_flags))];
}

/* What is wrong with one that only wheels with leases know. */
static noinline int tw_op_check_delivery(const struct tw_wheel *wheel,
					 const struct timewheel_op *op)
{
	if (op->code >= ARRAY_SIZE(tw_op_flags) || tw_op_bad_flags(op) ||
	    op->reserved || (op->delivery && !tw_op_answers(op)))
		return -EINVAL;

	return tw_ring_lease(&wheel->ring) ? 0 : -EINVAL;
}

/*
 * What is wrong with an operation. An error found earlier is its result.
 *
 * What is here and below is inlined by force, as what a touch is made of in ring.h is:
 * left to the compiler, in a batch a touch takes 231 instead of 191 instructions, and a
 * registration 639 instead of 613 (selftests/counts.c, gcc 12).
 */
static __always_inline int tw_op_check(const struct tw_wheel *wheel,
				       const struct timewheel_op *op)
{
	bool ids = !(wheel->flags & TIMEWHEEL_SETUP_NO_IDS);
	bool cookies = !(wheel->flags & TIMEWHEEL_SETUP_NO_COOKIES);

	if (op->result)
		return op->result;
	if (op->code > TIMEWHEEL_OP_CANCEL)
		return tw_op_check_delivery(wheel, op);
	if (op->delivery | op->reserved || tw_op_bad_flags(op))
		return -EINVAL;
	if (tw_op_registers(op) &&
	    ((op->id && !ids) || (op->cookie && !cookies)))
		return -EINVAL;

	return 0;
}

/* By what the caller named the token. */
static __always_inline struct tw_key tw_op_key(const struct timewheel_op *op)
{
	bool by_handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE;

	return (struct tw_key) { by_handle, by_handle ? op->handle : op->id };
}

/* Finds a token that is pending. Called with the lock. */
static int tw_find(struct tw_wheel *wheel, struct tw_key key,
		   const struct tw_now *now, struct tw_found *found)
{
	int err = tw_ring_find(&wheel->ring, key, found);

	if (!err && tw_ring_has_words(&wheel->ring))
		tw_look_apply_stamp(&wheel->ring, found, now->tick);

	return err;
}

/* The point of host time that a caller means. */
static __always_inline int tw_time_meant(const struct tw_caller *caller,
					 u32 flags, u64 given,
					 const struct tw_now *now, u64 *time)
{
	if (flags & TIMEWHEEL_OPF_ABSOLUTE)
		*time = tw_clock_from_user(given, caller->offset);
	else if (given <= S64_MAX)
		*time = now->ns + given;
	else
		return -ERANGE;

	return 0;
}

/* What a touch is to add to now: what the caller says, else the delay. */
static inline u64 tw_timeout_meant(u32 flags, u64 timeout, u64 time)
{
	return timeout || flags & TIMEWHEEL_OPF_ABSOLUTE ? timeout : time;
}

/**
 * tw_deadline() - when a token is to be due
 * @wheel: the wheel
 * @now: the time
 * @time: the deadline, in host time
 * @timeout: what a touch is to add to now, 0 for as before
 * @before: what a touch added before
 * @deadline: the answer
 *
 * On a wheel with touch words a token that can be touched is looked at before
 * its stamp is so old that it looks like one of the future: see words.h.
 *
 * Return: 0 or -ERANGE.
 */
static __always_inline int
tw_deadline(const struct tw_wheel *wheel, const struct tw_now *now, u64 time,
	    u64 timeout, u64 before, struct tw_deadline *deadline)
{
	int err = tw_ring_due(&wheel->ring, now, time, &deadline->due);

	deadline->time = time;
	if (err)
		return err;
	deadline->timeout = timeout;
	if (timeout > wheel->max_timeout ||
	    (tw_ring_has_words(&wheel->ring) && (timeout || before) &&
	     deadline->due - now->tick >= TW_MAX_STAMPED))
		return -ERANGE;

	return 0;
}

/* tw_deadline() of the time that an operation says. */
static __always_inline int
tw_op_deadline(const struct tw_wheel *wheel, const struct tw_caller *caller,
	       const struct timewheel_op *op, const struct tw_now *now,
	       u64 timeout, u64 before, struct tw_deadline *deadline)
{
	u64 time;
	int err = tw_time_meant(caller, op->flags, op->time, now, &time);

	return err ?: tw_deadline(wheel, now, time, timeout, before, deadline);
}

/*
 * The operations. Each returns its result and fills in what it tells. A touch
 * needs no lock, the others are called with it.
 */

/* @locked: with the lock; must be so on a wheel with touch words. */
static __always_inline int tw_op_touch(struct tw_wheel *wheel,
				       const struct tw_caller *caller,
				       struct timewheel_op *op,
				       const struct tw_now *now, bool locked)
{
	u64 due;
	int ret = tw_touch(wheel, tw_op_key(op), now, locked, &due);

	if (ret >= 0)
		op->deadline = tw_tick_shown(wheel, caller, due);

	return ret;
}

/* A token has been registered. */
static inline void tw_op_registered(const struct tw_wheel *wheel,
				    const struct tw_caller *caller,
				    struct timewheel_op *op, u64 due)
{
	op->deadline = tw_tick_shown(wheel, caller, due);
	trace_register(wheel->number, op->id, op->handle, due);
}

static noinline_for_stack int
tw_op_register_periodic(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now)
{
	struct tw_period period = { .length = op->period };
	struct tw_deadline deadline = { };
	int err;

	if (!(wheel->flags & TIMEWHEEL_SETUP_PERIODS) || op->timeout ||
	    op->period < tw_ring_tick(&wheel->ring))
		return -EINVAL;
	if (op->period > S64_MAX)
		return -ERANGE;
	err = tw_time_meant(caller, op->flags, op->time, now, &period.first);
	if (!err)
		err = tw_ring_due(&wheel->ring, now, period.first,
				  &deadline.due);
	if (!err)
		err = tw_ring_register(&wheel->ring, now, op->id, op->cookie,
				       &deadline, &op->handle);
	if (err)
		return err;
	tw_delivery_repeat(&wheel->ring, (u32)op->handle, &period);

	tw_op_registered(wheel, caller, op, deadline.due);

	return 0;
}

/* @timeout: what a touch is to add to now, 0 for none. */
static int tw_op_register_once(struct tw_wheel *wheel,
			       const struct tw_caller *caller,
			       struct timewheel_op *op,
			       const struct tw_now *now, u64 timeout)
{
	struct tw_deadline deadline;
	int err = tw_op_deadline(wheel, caller, op, now, timeout, 0, &deadline);

	if (!err)
		err = tw_ring_register(&wheel->ring, now, op->id, op->cookie,
				       &deadline, &op->handle);
	if (!err)
		tw_op_registered(wheel, caller, op, deadline.due);

	return err;
}

static int tw_op_register(struct tw_wheel *wheel,
			  const struct tw_caller *caller,
			  struct timewheel_op *op, const struct tw_now *now)
{
	if (op->period)
		return tw_op_register_periodic(wheel, caller, op, now);

	return tw_op_register_once(wheel, caller, op, now,
				   tw_timeout_meant(op->flags, op->timeout,
						    op->time));
}

static int tw_op_touch_or_register(struct tw_wheel *wheel,
				   const struct tw_caller *caller,
				   struct timewheel_op *op,
				   const struct tw_now *now)
{
	int ret = tw_op_touch(wheel, caller, op, now, true);

	if (ret != -ENOENT)
		return ret;
	ret = tw_op_register_once(wheel, caller, op, now, op->time);

	return ret ?: TIMEWHEEL_RES_REGISTERED;
}

static int tw_op_move(struct tw_wheel *wheel, const struct tw_caller *caller,
		      struct timewheel_op *op, const struct tw_now *now)
{
	const struct tw_key key = tw_op_key(op);
	u64 timeout = tw_timeout_meant(op->flags, op->timeout, op->time);
	struct tw_deadline deadline;
	struct tw_found found;
	int err = tw_find(wheel, key, now, &found);

	if (!err && tw_repeat_of(&wheel->ring, found.token)) {
		err = op->timeout ? -EINVAL : 0;
		timeout = 0;
	}
	if (!err)
		err = tw_op_deadline(wheel, caller, op, now, timeout,
				     found.token->timeout, &deadline);
	if (err)
		return err;
	tw_ring_move(&wheel->ring, &found, now, &deadline);
	op->deadline = tw_tick_shown(wheel, caller, deadline.due);
	trace_move(wheel->number, key.by_handle, key.value, deadline.due);

	return tw_was_due(&found, now);
}

/* @due: on which tick the token was due. */
static inline int tw_cancel(struct tw_wheel *wheel, struct tw_key key,
			    const struct tw_now *now, u64 *due)
{
	struct tw_found found;
	int err = tw_find(wheel, key, now, &found);

	if (err)
		return err;
	tw_ring_cancel(&wheel->ring, &found);
	*due = tw_word_due(found.word);
	trace_cancel(wheel->number, key.by_handle, key.value, *due);

	return tw_was_due(&found, now);
}

static int tw_op_cancel(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now)
{
	u64 due;
	int ret = tw_cancel(wheel, tw_op_key(op), now, &due);

	if (ret >= 0)
		op->deadline = tw_tick_shown(wheel, caller, due);

	return ret;
}

/*
 * The operations on wheels with leases. Each has its token, and of an answer the
 * delivery, found.
 */

static int tw_op_nack(struct tw_wheel *wheel, const struct tw_caller *caller,
		      struct timewheel_op *op, const struct tw_now *now,
		      struct tw_found *found)
{
	struct tw_deadline deadline;
	int err = tw_op_deadline(wheel, caller, op, now, 0,
				 found->token->timeout, &deadline);

	if (err)
		return err;
	tw_delivery_nack(&wheel->ring, found, now, deadline.due);
	op->deadline = tw_tick_shown(wheel, caller, deadline.due);

	return 0;
}

static int tw_op_extend(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now,
			struct tw_found *found)
{
	bool absolute = op->flags & TIMEWHEEL_OPF_ABSOLUTE;
	u64 lease = op->time || absolute ? op->time : tw_ring_lease(&wheel->ring);
	u64 time, end;
	int err = tw_time_meant(caller, op->flags, lease, now, &time);

	if (!err)
		err = tw_ring_due(&wheel->ring, now, time, &end);
	if (err)
		return err;
	if (!absolute)
		end = max(end, tw_delivery_due(&wheel->ring, found));
	tw_delivery_extend(&wheel->ring, found, end);
	op->deadline = tw_tick_shown(wheel, caller, end);

	return 0;
}

static int tw_op_delete(struct tw_wheel *wheel, const struct tw_caller *caller,
			struct timewheel_op *op, const struct tw_now *now,
			struct tw_found *found)
{
	bool armed = tw_word_state(found->word) == TW_ARMED;
	u64 due = tw_delivery_delete(&wheel->ring, found);

	op->deadline = tw_tick_shown(wheel, caller, due);

	return armed ? tw_was_due(found, now) : 0;
}

static noinline_for_stack int tw_op_delivery(struct tw_wheel *wheel,
					     const struct tw_caller *caller,
					     struct timewheel_op *op,
					     const struct tw_now *now)
{
	const struct tw_key key = tw_op_key(op);
	struct tw_found found;
	int err = tw_delivery_find(&wheel->ring, key, &found);

	if (!err && tw_ring_has_words(&wheel->ring))
		tw_look_apply_stamp(&wheel->ring, &found, now->tick);
	if (!err && tw_op_answers(op))
		err = tw_delivery_check(&wheel->ring, &found, op->delivery);
	if (err)
		return err;
	trace_answer(wheel->number, op->code, key.by_handle, key.value,
		     op->delivery);

	switch (op->code) {
	case TIMEWHEEL_OP_ACK:
		tw_delivery_ack(&wheel->ring, &found, now);
		return 0;
	case TIMEWHEEL_OP_NACK:
		return tw_op_nack(wheel, caller, op, now, &found);
	case TIMEWHEEL_OP_EXTEND:
		return tw_op_extend(wheel, caller, op, now, &found);
	default:
		return tw_op_delete(wheel, caller, op, now, &found);
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
		return tw_op_delivery(wheel, caller, op, now);
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
		else
			ids[nr++] = ops[i].id;
	if (nr)
		tw_ring_prefetch_ids(&wheel->ring, ids, nr);
}

/* Fetches the places where tokens of handles are filed. Called with the lock. */
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
		int ret = tw_op_check(wheel, op);

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
 * touch words does not allow. Returns how many there were. One that did not find
 * its token is left for the lock: see tw_touch().
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
		int ret = tw_op_check(wheel, op);

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
 * @caller: the process that asks
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

/*
 * Many of one kind.
 */

/* Registers one of many. Called with the lock. */
static int tw_entry_register(struct tw_wheel *wheel,
			     const struct tw_caller *caller,
			     const struct timewheel_register_many *many,
			     struct timewheel_entry *entry,
			     const struct tw_now *now)
{
	struct tw_deadline deadline;
	u64 time;
	int err;

	if (entry->reserved ||
	    (entry->id && wheel->flags & TIMEWHEEL_SETUP_NO_IDS) ||
	    (entry->cookie && wheel->flags & TIMEWHEEL_SETUP_NO_COOKIES))
		return -EINVAL;
	err = tw_time_meant(caller, many->flags, entry->time, now, &time);
	if (!err)
		err = tw_deadline(wheel, now, time,
				  tw_timeout_meant(many->flags, many->timeout,
						   entry->time), 0, &deadline);
	if (!err)
		err = tw_ring_register(&wheel->ring, now, entry->id,
				       entry->cookie, &deadline, &entry->handle);
	if (!err)
		trace_register(wheel->number, entry->id, entry->handle,
			       deadline.due);

	return err;
}

/**
 * tw_register_many() - register tokens, in order
 * @wheel: the wheel, set up
 * @caller: the process that asks
 * @many: what is common to all
 * @entries: each gets its result
 * @n: how many, at most TW_MAX_ENTRIES
 *
 * May sleep for memory.
 */
void tw_register_many(struct tw_wheel *wheel, const struct tw_caller *caller,
		      const struct timewheel_register_many *many,
		      struct timewheel_entry *entries, unsigned int n)
{
	u64 ids[TW_MAX_ENTRIES];
	struct tw_now now;
	unsigned int i;

	if (!(wheel->flags & TIMEWHEEL_SETUP_NO_IDS)) {
		for (i = 0; i < n; i++)
			ids[i] = entries[i].id;
		tw_ring_prefetch_ids(&wheel->ring, ids, n);
	}
	now = tw_wheel_lock(wheel);
	for (i = 0; i < n; i++) {
		int err = tw_entry_register(wheel, caller, many, &entries[i],
					    &now);

		while (err == -EAGAIN) {
			tw_wheel_unlock(wheel, &now);
			err = tw_ring_grow(&wheel->ring);
			now = tw_wheel_lock(wheel);
			if (!err)
				err = tw_entry_register(wheel, caller, many,
							&entries[i], &now);
		}
		entries[i].result = err;
	}
	tw_wheel_unlock(wheel, &now);
}

/**
 * tw_cancel_many() - cancel tokens, in order
 * @wheel: the wheel, set up
 * @by_handle: @keys are handles, else ids
 * @keys: which tokens
 * @results: what became of each
 * @n: how many, at most TW_MAX_CANCELS
 */
void tw_cancel_many(struct tw_wheel *wheel, bool by_handle, const u64 *keys,
		    s32 *results, unsigned int n)
{
	struct tw_now now;
	unsigned int i;
	u64 due;

	for (i = 0; by_handle && i < n; i++)
		tw_ring_prefetch_handle(&wheel->ring, keys[i]);
	if (!by_handle)
		tw_ring_prefetch_ids(&wheel->ring, keys, n);
	now = tw_wheel_lock(wheel);
	for (i = 0; by_handle && i < n; i++)
		tw_ring_prefetch_place(&wheel->ring, keys[i]);
	for (i = 0; i < n; i++) {
		const struct tw_key key = { by_handle, keys[i] };

		results[i] = tw_cancel(wheel, key, &now, &due);
	}
	tw_wheel_unlock(wheel, &now);
}
