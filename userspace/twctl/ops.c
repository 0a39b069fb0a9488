// SPDX-License-Identifier: GPL-2.0-only
/*
 * add, touch, move and cancel: operations on tokens, and how each one went.
 */
#include "twctl.h"

enum {
	ID, HANDLE, RESULT, WAS_DUE, DEADLINE, DUE, LEFT,
};

const struct column op_columns[] = {
	[ID] = { "ID", COL_NUMBER, "its id, if that is how it was named" },
	[HANDLE] = { "HANDLE", COL_NUMBER,
		"its handle, if it was registered or named so" },
	[RESULT] = { "RESULT", 0, "registered, touched, moved or cancelled" },
	[WAS_DUE] = { "WAS-DUE", COL_BOOL,
		"it was past its deadline, but not taken by a reader" },
	[DEADLINE] = { "DEADLINE", COL_NUMBER | COL_HIDDEN,
		"its deadline in ns of the wheel's clock; cancelled: what it was" },
	[DUE] = { "DUE", 0, "that in local time" },
	[LEFT] = { "LEFT", COL_NUMBER | COL_HIDDEN, "time until then" },
	{ }
};

/* All of them are looked at before the first is used. */
void check_keys(char **keys, int count)
{
	int i;

	for (i = 0; i < count; i++)
		number_of("KEY", keys[i], 0, UINT64_MAX);
}

void need_ids(const struct wheel *wheel, bool handle)
{
	if (!handle && wheel->info.setup_flags & TIMEWHEEL_NO_IDS)
		die(STATUS_USAGE, "KEY: wheel '%s' has no ids: name tokens by --handle",
		    wheel->name);
}

static uint64_t cookie_of(const struct args *args, const struct wheel *wheel)
{
	uint64_t cookie = option_number(args, OPT_COOKIE, 0, UINT64_MAX, 0);

	if (cookie && wheel->info.setup_flags & TIMEWHEEL_NO_COOKIES)
		die(STATUS_USAGE, "--cookie '%s': wheel '%s' has no cookies",
		    args->option[OPT_COOKIE], wheel->name);
	return cookie;
}

static const char *result_text(const struct timewheel_op *op)
{
	switch (op->code) {
	case TIMEWHEEL_TOUCH_TOKEN:
		return "touched";
	case TIMEWHEEL_TOUCH_OR_REGISTER:
		return op->result & TIMEWHEEL_REGISTERED ? "registered" : "touched";
	case TIMEWHEEL_MOVE:
		return "moved";
	case TIMEWHEEL_CANCEL:
		return "cancelled";
	default:
		return "registered";
	}
}

static void put_op(struct out *out, const struct wheel *wheel,
		   const struct timewheel_op *op, bool has_id)
{
	out_row(out);
	if (has_id)
		out_number(out, ID, op->id);
	if (op->handle)
		out_number(out, HANDLE, op->handle);
	out_text(out, RESULT, "%s", result_text(op));
	out_bool(out, WAS_DUE, op->result & TIMEWHEEL_WAS_DUE);
	out_number(out, DEADLINE, op->deadline);
	out_due(out, DUE, wheel, op->deadline);
	out_span(out, LEFT, op->deadline - wheel->info.now);
}

/* One operation on the token of @key, with all else in @op set. */
static enum status run(struct out *out, const struct wheel *wheel,
		       struct timewheel_op *op, const char *key)
{
	bool handle = op->flags & TIMEWHEEL_BY_HANDLE, has_id = strcmp(key, "-");
	uint64_t number = has_id ? number_of("KEY", key, 0, UINT64_MAX) : 0;

	op->size = sizeof(*op);
	*(handle ? &op->handle : &op->id) = number;
	if (tw_wheel_op(wheel->wheel, op) < 0)
		return key_trouble(wheel->name, key, handle);
	put_op(out, wheel, op, has_id && !handle);
	return STATUS_OK;
}

static enum status run_each(const struct args *args, struct out *out,
			    const struct wheel *wheel,
			    const struct timewheel_op *model)
{
	enum status status = STATUS_OK, each;
	int i;

	for (i = 1; i < args->count; i++) {
		struct timewheel_op op = *model;

		each = run(out, wheel, &op, args->arg[i]);
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
		op->flags |= TIMEWHEEL_ABSOLUTE;
}

enum status verb_add(const struct args *args)
{
	struct when when = words_when("TIME", args->arg + 2, args->count - 2);
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_REGISTER };
	const char *id = args->arg[1];
	bool has_id = strcmp(id, "-");
	enum status status;
	struct wheel wheel;

	if (has_id)
		number_of("ID", id, 0, UINT64_MAX);
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	if (has_id == !!(wheel.info.setup_flags & TIMEWHEEL_NO_IDS))
		die(STATUS_USAGE, "ID '%s': not %s, as wheel '%s' has %sids", id,
		    has_id ? "-" : "a number", wheel.name, has_id ? "no " : "");
	set_time(&op, &wheel, &when);
	op.cookie = cookie_of(args, &wheel);
	status = run(out, &wheel, &op, id);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_touch(const struct args *args)
{
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_TOUCH_TOKEN };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, args->count - 1);
	op.time = option_span(args, OPT_REGISTER, 0);
	if (args->option[OPT_REGISTER] && handle)
		die(STATUS_USAGE, "--register: not with --handle, but with ids");
	if (args->option[OPT_COOKIE] && !args->option[OPT_REGISTER])
		die(STATUS_USAGE, "--cookie: only with --register");
	if (args->option[OPT_REGISTER])
		op.code = TIMEWHEEL_TOUCH_OR_REGISTER;
	if (handle)
		op.flags = TIMEWHEEL_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	op.cookie = cookie_of(args, &wheel);
	status = run_each(args, out, &wheel, &op);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_move(const struct args *args)
{
	struct when when = words_when("TIME", args->arg + 2, args->count - 2);
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_MOVE };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, 1);
	if (handle)
		op.flags = TIMEWHEEL_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	set_time(&op, &wheel, &when);
	status = run(out, &wheel, &op, args->arg[1]);
	wheel_close(&wheel);
	out_end(out);
	return status;
}

enum status verb_cancel(const struct args *args)
{
	bool handle = args->option[OPT_HANDLE];
	struct out *out = out_begin(args, op_columns, "tokens");
	struct timewheel_op op = { .code = TIMEWHEEL_CANCEL };
	enum status status;
	struct wheel wheel;

	check_keys(args->arg + 1, args->count - 1);
	if (handle)
		op.flags = TIMEWHEEL_BY_HANDLE;
	wheel_open(&wheel, args->arg[0], O_WRONLY);
	need_ids(&wheel, handle);
	status = run_each(args, out, &wheel, &op);
	wheel_close(&wheel);
	out_end(out);
	return status;
}
