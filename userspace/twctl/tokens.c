// SPDX-License-Identifier: GPL-2.0-only
/*
 * list and get: what is said of tokens. One table for both.
 */
#include "twctl.h"

enum {
	ID, HANDLE, COOKIE, DEADLINE, DUE, LEFT, SLOT, CYCLE, STATE,
};

const struct column token_columns[] = {
	[ID] = { "ID", COL_NUMBER, "its id" },
	[HANDLE] = { "HANDLE", COL_NUMBER | COL_HIDDEN, "its handle" },
	[COOKIE] = { "COOKIE", COL_NUMBER, "its cookie" },
	[DEADLINE] = { "DEADLINE", COL_NUMBER | COL_HIDDEN,
		"its deadline in ns of the wheel's clock" },
	[DUE] = { "DUE", 0, "its deadline in local time" },
	[LEFT] = { "LEFT", COL_NUMBER, "time until its deadline" },
	[SLOT] = { "SLOT", COL_NUMBER, "its slot of the ring" },
	[CYCLE] = { "CYCLE", COL_NUMBER,
		"Cycle-Num: whole laps that the hand makes before" },
	[STATE] = { "STATE", 0, "pending, due, or taken by a reader" },
	{ }
};

static void put_token(struct out *out, const struct wheel *wheel,
		      const struct timewheel_token *token)
{
	const struct timewheel_info *info = &wheel->info;
	int64_t left = token->deadline - info->now;

	out_row(out);
	if (!(info->setup_flags & TIMEWHEEL_NO_IDS))
		out_number(out, ID, token->id);
	out_number(out, HANDLE, token->handle);
	if (!(info->setup_flags & TIMEWHEEL_NO_COOKIES))
		out_number(out, COOKIE, token->cookie);
	out_number(out, DEADLINE, token->deadline);
	out_due(out, DUE, wheel, token->deadline);
	out_span(out, LEFT, left);
	out_number(out, SLOT, token->slot);
	out_number(out, CYCLE, token->cycle);
	if (token->state == TIMEWHEEL_TAKEN)
		out_text(out, STATE, "taken");
	else
		out_text(out, STATE, left > 0 ? "pending" : "due");
}

/* An option's time, as one of the wheel's clock. */
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

	return (first->deadline > second->deadline) -
	       (first->deadline < second->deadline);
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

	wheel_open(&wheel, args->arg[0], O_RDONLY);
	cursor = tw_cursor_open(wheel.wheel, bound(&wheel, &from_when, from, 0),
				bound(&wheel, &to_when, to, TIMEWHEEL_NEVER));
	if (!cursor)
		return wheel_trouble(wheel.name);
	while ((more = tw_cursor_next(cursor, &token)) > 0)
		keep(&tokens, token);
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
	struct timewheel_op op = { .size = sizeof(op) };
	struct timewheel_token token;
	int got;

	got = tw_wheel_get(wheel->wheel, number_of("KEY", key, 0, UINT64_MAX),
			   handle ? TIMEWHEEL_BY_HANDLE : 0, &op);
	if (got < 0)
		return key_trouble(wheel->name, key, handle);
	token = (struct timewheel_token) {
		.id = op.id,
		.handle = op.handle,
		.cookie = op.cookie,
		.deadline = op.deadline,
		.cycle = op.cycle,
		.slot = op.slot,
	};
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
