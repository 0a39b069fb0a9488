// SPDX-License-Identifier: GPL-2.0-only
/*
 * add, touch, move, cancel and delete: operations on tokens. Also tells how an operation went,
 * for answers to deliveries as well.
 */
#include "twctl.h"

enum {
	ID, HANDLE, RESULT, WAS_DUE, DEADLINE, DUE, LEFT,
};

const struct column op_columns[] = {
	[ID] = { "ID", COL_NUMBER, "its id, if the caller named it by id" },
	[HANDLE] = { "HANDLE", COL_NUMBER,
		"its handle, if it was registered or named so" },
	[RESULT] = { "RESULT", 0,
		"registered, touched, moved, cancelled, acked, nacked, extended or deleted" },
	[WAS_DUE] = { "WAS-DUE", COL_BOOL,
		"it was past its deadline, but not taken by a reader, and the operation won" },
	[DEADLINE] = { "DEADLINE", COL_NUMBER | COL_HIDDEN,
		"its deadline, or the end of its lease, in ns of the wheel's clock" },
	[DUE] = { "DUE", 0, "that in local time" },
	[LEFT] = { "LEFT", COL_NUMBER | COL_HIDDEN, "time until then" },
	{ }
};

/* Checks all keys before the first operation. */
void check_keys(char **keys, int count)
{
	int i;

	for (i = 0; i < count; i++)
		number_of("KEY", keys[i], 0, UINT64_MAX);
}

void need_ids(const struct wheel *wheel, bool handle)
{
	if (!handle && wheel->info.setup_flags & TIMEWHEEL_SETUP_NO_IDS)
		die(STATUS_USAGE, "KEY: wheel '%s' has no ids: name tokens by --handle",
		    wheel->name);
}

static uint64_t cookie_of(const struct args *args, const struct wheel *wheel)
{
	uint64_t cookie = option_number(args, OPT_COOKIE, 0, UINT64_MAX, 0);

	if (cookie && wheel->info.setup_flags & TIMEWHEEL_SETUP_NO_COOKIES)
		die(STATUS_USAGE, "--cookie '%s': wheel '%s' has no cookies",
		    args->option[OPT_COOKIE], wheel->name);
	return cookie;
}

const char *op_result(const struct timewheel_op *op)
{
	switch (op->code) {
	case TIMEWHEEL_OP_TOUCH:
		return "touched";
	case TIMEWHEEL_OP_TOUCH_OR_REGISTER:
		return op->result & TIMEWHEEL_RES_REGISTERED ? "registered" : "touched";
	case TIMEWHEEL_OP_MOVE:
		return "moved";
	case TIMEWHEEL_OP_CANCEL:
		return "cancelled";
	case TIMEWHEEL_OP_ACK:
		return "acked";
	case TIMEWHEEL_OP_NACK:
		return "nacked";
	case TIMEWHEEL_OP_EXTEND:
		return "extended";
	case TIMEWHEEL_OP_DELETE:
		return "deleted";
	default:
		return "registered";
	}
}

void op_put(struct out *out, const struct wheel *wheel,
	    const struct timewheel_op *op, bool has_id)
{
	out_row(out);
	if (has_id)
		out_number(out, ID, op->id);
	if (op->handle)
		out_number(out, HANDLE, op->handle);
	out_text(out, RESULT, "%s", op_result(op));
	out_bool(out, WAS_DUE, op->result & TIMEWHEEL_RES_WAS_DUE);
	if (op->deadline == TIMEWHEEL_NEVER)
		return;
	out_number(out, DEADLINE, op->deadline);
	out_local(out, DUE, wheel, op->deadline);
	out_span(out, LEFT, op->deadline - wheel->info.now);
}

/* Carries out one operation on the token of @key. All other fields of @op are set. */
enum status op_run(struct out *out, const struct wheel *wheel,
		   struct timewheel_op *op, const char *key)
{
	bool handle = op->flags & TIMEWHEEL_OPF_BY_HANDLE, has_id = strcmp(key, "-");
	uint64_t number = has_id ? number_of("KEY", key, 0, UINT64_MAX) : 0;

	op->size = sizeof(*op);
	*(handle ? &op->handle : &op->id) = number;
	/* The field keeps this value if the token has no deadline after the operation. */
	op->deadline = TIMEWHEEL_NEVER;
	if (tw_wheel_run(wheel->wheel, op) < 0)
		return op->code >= TIMEWHEEL_OP_ACK && op->code <= TIMEWHEEL_OP_DELETE ?
		       delivery_trouble(wheel->name, key, op) :
		       key_trouble(wheel->name, key, handle);
	op_put(out, wheel, op, has_id && !handle);
	return STATUS_OK;
}

/* Carries out the operation for each token that the command line names after the wheel. */
static enum status op_run_each(const struct args *args, struct out *out,
			       const struct wheel *wheel,
			       const struct timewheel_op *model)
{
	enum status status = STATUS_OK, each;
	int i;

	for (i = 1; i < args->count; i++) {
		struct timewheel_op op = *model;

		each = op_run(out, wheel, &op, args->arg[i]);
		if (!status)
			status = each;
	}
	return status;
}

static void set_time(struct timewheel_op *op, const struct wheel *wheel,
		     const struct when *when)
{
	struct wheel_time time = wheel_time_of(wheel, when);

	op->time = time.ns;
	if (time.absolute)
		op->flags |= TIMEWHEEL_OPF_ABSOLUTE;
}

static void check_period(const struct args *args, const struct wheel *wheel,
			 uint64_t period)
{
	char tick[TIME_TEXT];

	if (!(wheel->info.setup_flags & TIMEWHEEL_SETUP_PERIODS))
		die(STATUS_USAGE,
		    "--every '%s': wheel '%s' has no periodic tokens: make one with 'twctl create --periods'",
		    args->option[OPT_EVERY], wheel->name);
	if (period >= wheel->info.tick)
		return;
	span_text_like(tick, sizeof(tick), wheel->info.tick, args->option[OPT_EVERY]);
	die(STATUS_USAGE, "--every '%s': shorter than a tick of wheel '%s': take %s or more",
	    args->option[OPT_EVERY], wheel->name, tick);
}

/* Finds the first deadline: one period from now if the command line tells none. */
static struct when first_time(const struct args *args, struct timewheel_op *op)
{
	op->period = option_span(args, OPT_EVERY, 0);
	if (args->option[OPT_EVERY] && args->count == 2)
		return (struct when) { .kind = WHEN_SPAN, .ns = op->period };
	if (args->count == 2)
		die(STATUS_USAGE,
		    "usage: twctl add [OPTION]... %s, where only --every needs no TIME",
		    args->verb->args);
	return words_deadline(args, "TIME", args->arg + 2, args->count - 2);
}

enum status verb_add(const struct args *args)
{
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_OP_REGISTER };
	struct when when = first_time(args, &op);
	const char *id = args->arg[1];
	bool has_id = strcmp(id, "-");
	enum status status;
	struct wheel wheel;

	if (args->option[OPT_JITTER] &&
	    !when_spread(&when, option_span(args, OPT_JITTER, 0)))
		die(STATUS_FAILED, "no random number: %s", strerror(errno));
	if (args->option[OPT_TIMEOUT] && args->option[OPT_EVERY])
		die(STATUS_USAGE, "--timeout '%s': not with --every: a periodic token has none",
		    args->option[OPT_TIMEOUT]);
	if (has_id)
		number_of("ID", id, 0, UINT64_MAX);
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	if (has_id == !!(wheel.info.setup_flags & TIMEWHEEL_SETUP_NO_IDS))
		die(STATUS_USAGE, "ID '%s': not %s, as wheel '%s' has %sids", id,
		    has_id ? "-" : "a number", wheel.name, has_id ? "no " : "");
	set_time(&op, &wheel, &when);
	op.cookie = cookie_of(args, &wheel);
	op.timeout = option_span(args, OPT_TIMEOUT, 0);
	if (args->option[OPT_EVERY])
		check_period(args, &wheel, op.period);
	status = op_run(out, &wheel, &op, id);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_touch(const struct args *args)
{
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_OP_TOUCH };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, args->count - 1);
	op.time = option_span(args, OPT_REGISTER, 0);
	if (args->option[OPT_REGISTER] && handle)
		die(STATUS_USAGE, "--register: not with --handle: it needs ids");
	if (args->option[OPT_COOKIE] && !args->option[OPT_REGISTER])
		die(STATUS_USAGE, "--cookie: only with --register");
	if (args->option[OPT_REGISTER])
		op.code = TIMEWHEEL_OP_TOUCH_OR_REGISTER;
	if (handle)
		op.flags = TIMEWHEEL_OPF_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	op.cookie = cookie_of(args, &wheel);
	status = op_run_each(args, out, &wheel, &op);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_move(const struct args *args)
{
	struct when when = words_deadline(args, "TIME", args->arg + 2,
					  args->count - 2);
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_OP_MOVE };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, 1);
	if (handle)
		op.flags = TIMEWHEEL_OPF_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	set_time(&op, &wheel, &when);
	status = op_run(out, &wheel, &op, args->arg[1]);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

static enum status end_tokens(const struct args *args, uint32_t code)
{
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = code };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, args->count - 1);
	if (handle)
		op.flags = TIMEWHEEL_OPF_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	status = op_run_each(args, out, &wheel, &op);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_cancel(const struct args *args)
{
	return end_tokens(args, TIMEWHEEL_OP_CANCEL);
}

/* Deletes tokens, also the ones that are held. */
enum status verb_delete(const struct args *args)
{
	return end_tokens(args, TIMEWHEEL_OP_DELETE);
}
