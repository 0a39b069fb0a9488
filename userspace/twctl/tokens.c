// SPDX-License-Identifier: GPL-2.0-only
/*
 * list and get: both print one table about tokens.
 */
#include "twctl.h"

enum {
	ID, HANDLE, COOKIE, DEADLINE, LEASE_END, WHEN, LEFT, TIMEOUT, PERIOD,
	 BASE, SLOT, CYCLE, STATE, DELIVERY, ATTEMPTS,
};

const struct column token_columns[] = {
	[ID] = { "ID", COL_NUMBER, "its id; nothing on a wheel without ids" },
	[HANDLE] = { "HANDLE", COL_NUMBER | COL_HIDDEN, "its handle" },
	[COOKIE] = { "COOKIE", COL_NUMBER, "its cookie; nothing on a wheel without cookies" },
	[DEADLINE] = { "DEADLINE", COL_NUMBER | COL_HIDDEN,
		"its deadline in ns of the wheel's clock; nothing if it is held" },
	[LEASE_END] = { "LEASE-END", COL_NUMBER | COL_HIDDEN,
		"when its lease ends, in ns of the wheel's clock, if it is held" },
	[WHEN] = { "WHEN", 0, "that one of these two, in local time; nothing on a manual wheel" },
	[LEFT] = { "LEFT", COL_NUMBER, "time until then, less than 0 when that has passed" },
	[TIMEOUT] = { "TIMEOUT", COL_NUMBER,
		"from a touch to its deadline; nothing if it cannot be touched" },
	[PERIOD] = { "PERIOD", COL_NUMBER,
		"from one deadline to the next; nothing if it is not periodic" },
	[BASE] = { "BASE", COL_NUMBER | COL_HIDDEN,
		"if it is periodic: the deadline of its next event's period, in ns of the clock" },
	[SLOT] = { "SLOT", COL_NUMBER, "its slot of the ring" },
	[CYCLE] = { "CYCLE", COL_NUMBER,
		"Cycle-Num: whole laps of the hand before the lap in which it is due" },
	[STATE] = { "STATE", 0, "pending, due, taken, held or lapsed" },
	[DELIVERY] = { "DELIVERY", COL_NUMBER | COL_HIDDEN,
		"number of its last delivery, 0 if there was none; nothing without leases" },
	[ATTEMPTS] = { "ATTEMPTS", COL_NUMBER | COL_HIDDEN,
		"deliveries since it was registered or its period began; nothing without leases" },
	{ }
};

/* A token whose lease is over is delivered again, and has a state of its own. */
static const char *state_of(const struct wheel *wheel,
			    const struct timewheel_token *token)
{
	bool passed = token_time(token) <= wheel->info.now;

	switch (token->state) {
	case TIMEWHEEL_STATE_TAKEN:
		return "taken";
	case TIMEWHEEL_STATE_HELD:
		return passed ? "lapsed" : "held";
	default:
		return passed ? "due" : "pending";
	}
}

static void put_token(struct out *out, const struct wheel *wheel,
		      const struct timewheel_token *token)
{
	const struct timewheel_info *info = &wheel->info;

	out_row(out);
	if (!(info->setup_flags & TIMEWHEEL_SETUP_NO_IDS))
		out_number(out, ID, token->id);
	out_number(out, HANDLE, token->handle);
	if (!(info->setup_flags & TIMEWHEEL_SETUP_NO_COOKIES))
		out_number(out, COOKIE, token->cookie);
	out_number(out, token->state == TIMEWHEEL_STATE_HELD ? LEASE_END : DEADLINE,
		   token_time(token));
	out_local(out, WHEN, wheel, token_time(token));
	out_span(out, LEFT, token_time(token) - info->now);
	if (token->timeout)
		out_span(out, TIMEOUT, token->timeout);
	if (token->period) {
		out_span(out, PERIOD, token->period);
		out_number(out, BASE, token->base);
	}
	out_number(out, SLOT, token->slot);
	out_number(out, CYCLE, token->cycle);
	out_text(out, STATE, "%s", state_of(wheel, token));
	if (info->lease) {
		out_number(out, DELIVERY, token->delivery);
		out_number(out, ATTEMPTS, token->attempts);
	}
}

/* Reads the time in an option as a time of the wheel's clock. */
static uint64_t bound(const struct wheel *wheel, const struct when *when,
		      bool given, uint64_t otherwise)
{
	return given ? wheel_deadline_of(wheel, when) : otherwise;
}

static struct when option_when(const char *name, const char *text)
{
	char *word = (char *)text;

	return text ? words_when(name, &word, 1) : (struct when) { };
}

static int earlier(const void *a, const void *b)
{
	const struct timewheel_token *first = a, *second = b;

	return (token_time(first) > token_time(second)) -
	       (token_time(first) < token_time(second));
}

struct tokens {
	struct timewheel_token	*token;
	size_t			count;
	size_t			room;
};

static void keep(struct tokens *tokens, const struct timewheel_token *token)
{
	if (tokens->count == tokens->room) {
		tokens->room = tokens->room ? 2 * tokens->room : 1024;
		tokens->token = reallocarray(tokens->token, tokens->room,
					     sizeof(*tokens->token));
		if (!tokens->token)
			die(STATUS_FAILED, "no memory for so many tokens");
	}
	tokens->token[tokens->count++] = *token;
}

static void check_state(const struct args *args)
{
	static const char * const states[] = {
		"pending", "due", "taken", "held", "lapsed"
	};
	const char *text = args->option[OPT_STATE];
	size_t i;

	if (!text)
		return;
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		if (!strcmp(text, states[i]))
			return;
	}
	die_usage("--state", text, "pending, due, taken, held or lapsed");
}

static bool listed(const struct args *args, const struct wheel *wheel,
		   const struct timewheel_token *token)
{
	const char *state = args->option[OPT_STATE];

	return !state || !strcmp(state, state_of(wheel, token));
}

enum status verb_list(const struct args *args)
{
	const char *from = args->option[OPT_FROM], *to = args->option[OPT_TO];
	struct when from_when = option_when("--from", from);
	struct when to_when = option_when("--to", to);
	struct out *out = out_begin(args, token_columns, "tokens");
	const struct timewheel_token *token;
	struct tokens tokens = { };
	struct tw_cursor *cursor;
	struct wheel wheel;
	int more;
	size_t i;

	check_state(args);
	wheel_open(&wheel, args->arg[0], O_RDONLY);
	cursor = tw_cursor_open(wheel.wheel, bound(&wheel, &from_when, from, 0),
				bound(&wheel, &to_when, to, TIMEWHEEL_NEVER));
	if (!cursor)
		return wheel_trouble(wheel.name);
	while ((more = tw_cursor_next(cursor, &token)) > 0) {
		if (listed(args, &wheel, token))
			keep(&tokens, token);
	}
	if (more < 0)
		return wheel_trouble(wheel.name);
	tw_cursor_close(cursor);
	wheel_close(&wheel);
	if (tokens.count)
		qsort(tokens.token, tokens.count, sizeof(*tokens.token), earlier);
	for (i = 0; i < tokens.count; i++)
		put_token(out, &wheel, &tokens.token[i]);
	free(tokens.token);
	out_end(out);
	return STATUS_OK;
}

static enum status get(struct out *out, const struct wheel *wheel,
		       const char *key, bool handle)
{
	struct timewheel_token token;

	if (tw_wheel_get(wheel->wheel, number_of("KEY", key, 0, UINT64_MAX),
			 handle ? TIMEWHEEL_OPF_BY_HANDLE : 0, &token) < 0)
		return key_trouble(wheel->name, key, handle);
	put_token(out, wheel, &token);
	return STATUS_OK;
}

enum status verb_get(const struct args *args)
{
	struct out *out = out_begin(args, token_columns, "tokens");
	bool handle = args->option[OPT_HANDLE];
	enum status status = STATUS_OK, each;
	struct wheel wheel;
	int i;

	check_keys(args->arg + 1, args->count - 1);
	wheel_open(&wheel, args->arg[0], O_RDONLY);
	need_ids(&wheel, handle);
	for (i = 1; i < args->count; i++) {
		each = get(out, &wheel, args->arg[i], handle);
		if (!status)
			status = each;
	}
	wheel_close(&wheel);
	out_end(out);
	return status;
}
