// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs about jobs that no worker has.
 */
#include "twjob.h"

#define MAX_ID		(INT64_MAX / 16)
/* The number of jobs in one answer of TW.LIST, and of jobs kicked by one TW.KICK. */
#define SLICE		1000

enum {
	PUT_ID, PUT_RESULT,
};

const struct column put_columns[] = {
	[PUT_ID] = { "ID", COL_NUMBER, "the job's id" },
	[PUT_RESULT] = { "RESULT", 0,
		"new; of a job with a key also exists, buried, replaced or done" },
	{ }
};

enum {
	ID, STATE, DUE, LEFT, ATTEMPTS, KEY, FAILED, REASON, LEASE, TRIES, BACKOFF,
	BACKOFF_MOST, LEASE_LEFT, HOLDER, GROUP, SIZE, BODY, RULE, ZONE,
};

#define JOB_COLUMNS \
	[ID] = { "ID", COL_NUMBER, "its id" }, \
	[STATE] = { "STATE", 0, \
		"delayed, ready, held, waiting (for its group), buried or done" }, \
	[DUE] = { "DUE", 0, "when it is due, in local time" }, \
	[LEFT] = { "LEFT", COL_NUMBER, \
		"time until then, or less than 0; nothing if it is held, waiting or buried" }, \
	[ATTEMPTS] = { "ATTEMPTS", COL_NUMBER, \
		"tries so far; the first is counted when it has failed" }, \
	[KEY] = { "KEY", 0, "its key; nothing if it has none, or one that is not UTF-8" }, \
	[FAILED] = { "FAILED", COL_HIDDEN, "when it failed last, in local time" }, \
	[REASON] = { "REASON", COL_HIDDEN, \
		"why; nothing if its worker did not say, or not in UTF-8" }, \
	[LEASE] = { "LEASE", COL_NUMBER | COL_HIDDEN, \
		"its own, as those that follow; nothing if that is its queue's" }, \
	[TRIES] = { "TRIES", COL_NUMBER | COL_HIDDEN, \
		"tries after which it is buried, 0 for never" }, \
	[BACKOFF] = { "BACKOFF", COL_NUMBER | COL_HIDDEN, \
		"time after its first try that failed" }, \
	[BACKOFF_MOST] = { "BACKOFF-MOST", COL_NUMBER | COL_HIDDEN, \
		"the most it becomes, doubled with each try" }, \
	[LEASE_LEFT] = { "LEASE-LEFT", COL_NUMBER | COL_HIDDEN, \
		"how long its worker still has it; nothing if it is not held" }, \
	[HOLDER] = { "HOLDER", COL_HIDDEN, \
		"the worker's connection to twjobd, if it is held" }, \
	[GROUP] = { "GROUP", COL_HIDDEN, "its group; nothing if it has none" }

const struct column job_columns[] = { JOB_COLUMNS, { } };

const struct column body_columns[] = {
	JOB_COLUMNS,
	[SIZE] = { "SIZE", COL_NUMBER, "bytes of its body" },
	[BODY] = { "BODY", 0, "its body; nothing if that is not text in UTF-8, or empty" },
	[RULE] = { "RULE", COL_HIDDEN, "the rule by which it comes again" },
	[ZONE] = { "ZONE", COL_HIDDEN, "the rule's time zone" },
	{ }
};

enum {
	DONE_ID, DONE_KEY, DONE_DUE, DONE_ENDED, DONE_ATTEMPTS,
};

const struct column done_columns[] = {
	[DONE_ID] = { "ID", COL_NUMBER, "its id" },
	[DONE_KEY] = { "KEY", 0, "its key; nothing if it has none, or one that is not UTF-8" },
	[DONE_DUE] = { "DUE", 0, "when it was due, in local time" },
	[DONE_ENDED] = { "ENDED", 0, "when it was done, in local time" },
	[DONE_ATTEMPTS] = { "ATTEMPTS", COL_NUMBER, "tries it took" },
	{ }
};

static void refuse_clock(const char *name, const struct when *when)
{
	if (when->kind == WHEN_CLOCK)
		die(STATUS_USAGE, "%s 'clock': a wheel's, but a queue has none: take %s",
		    name, tool.when_form);
}

/* Reads the time from the words that are the rest of the line. */
static struct when time_of(const struct args *args, char **words, int count)
{
	struct when when = words_deadline(args, "TIME", words, count);

	refuse_clock("TIME", &when);
	return when;
}

/* Adds all of standard input. */
static void add_input(struct request *request)
{
	char *body = NULL, part[65536];
	size_t size, length;
	FILE *all;

	if (isatty(STDIN_FILENO))
		complain("type the body, and ^D at its end");
	all = open_memstream(&body, &size);
	while (all && (length = fread(part, 1, sizeof(part), stdin)))
		fwrite(part, 1, length, all);
	if (ferror(stdin))
		die(STATUS_FAILED, "standard input: %s", strerror(errno));
	if (!all || fclose(all))
		die(STATUS_FAILED, "no memory for the body");
	request_add_bytes(request, body, size);
	free(body);
}

void put_add_body(struct request *request, const struct args *args)
{
	if (args->option[OPT_BODY])
		request_add(request, "%s", args->option[OPT_BODY]);
	else
		add_input(request);
}

enum status put_answer(struct out *out, const struct args *args,
		       const redisReply *reply)
{
	bool keyed = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
	const char *mark = keyed ? reply->element[1]->str : "NEW";
	long long id = keyed ? reply->element[0]->integer : reply->integer;
	char text[16];
	size_t i;

	for (i = 0; mark[i] && i < sizeof(text) - 1; i++)
		text[i] = mark[i] | 0x20;
	text[i] = '\0';
	out_row(out);
	out_number(out, PUT_ID, id);
	out_text(out, PUT_RESULT, "%s", text);
	out_end(out);
	if (strcmp(text, "buried"))
		return STATUS_OK;
	return trouble(STATUS_EXISTS,
		       "the job of key '%s' is buried and stays so: --replace, or 'twjob kick %s %lld'",
		       args->option[OPT_KEY], args->arg[0], id);
}

enum status verb_put(const struct args *args)
{
	struct out *out = out_begin(args, put_columns, "jobs");
	const char *key = args->option[OPT_KEY];
	struct when when = { .kind = WHEN_SPAN };
	enum status status = STATUS_OK;
	struct request request;
	redisReply *reply;

	if (args->count > 1)
		when = time_of(args, args->arg + 1, args->count - 1);
	if (args->option[OPT_REPLACE] && !key)
		die(STATUS_USAGE, "--replace needs --key, which tells what to replace");
	server_open(args);
	request_begin(&request, "TW.PUT", args->arg[0]);
	put_add_body(&request, args);
	if (args->count > 1)
		request_add_when(&request, &when);
	if (key) {
		request_add(&request, "KEY");
		request_add(&request, "%s", key);
	}
	if (args->option[OPT_REPLACE])
		request_add(&request, "REPLACE");
	request_add_settings(&request, args);
	reply = ask(&request);
	if (!refused(reply, args->arg[0], &status))
		status = put_answer(out, args, reply);
	freeReplyObject(reply);
	return status;
}

/* Checks all IDs before anything is done. */
static void check_ids(char **ids, int count)
{
	while (count--)
		number_of("ID", *ids++, 1, MAX_ID);
}

/* Returns the key, NULL if IDs are given. The user has to give either of them. */
static const char *key_or_ids(const struct args *args, int ids)
{
	const char *key = args->option[OPT_KEY];

	if (key && ids)
		die(STATUS_USAGE, "either an ID or --key, not both");
	if (!key && !ids)
		die(STATUS_USAGE, "an ID or --key has to tell which job; see 'twjob list %s'",
		    args->arg[0]);
	check_ids(args->arg + 1, ids);
	return key;
}

/* Asks for a change of one job. @of: the job's id or key. */
static enum status change(struct request *request, const char *queue,
			  const char *kind, const char *of)
{
	enum status status = STATUS_OK;
	redisReply *reply = ask(request);

	if (!refused(reply, queue, &status) && !reply->integer)
		status = trouble(STATUS_NOT_THERE,
				 "queue '%s': there is no job of %s '%s'; see 'twjob list %s'",
				 queue, kind, of, queue);
	freeReplyObject(reply);
	return status;
}

/* Changes each of the jobs. The status is the one of the first job that failed. */
static enum status change_each(const struct args *args, const char *verb)
{
	enum status status = STATUS_OK, one;
	struct request request;
	int i;

	for (i = 1; i < args->count; i++) {
		request_begin(&request, verb, args->arg[0]);
		request_add(&request, "%s", args->arg[i]);
		one = change(&request, args->arg[0], "id", args->arg[i]);
		status = status ? status : one;
	}
	return status;
}

enum status verb_cancel(const struct args *args)
{
	const char *key = key_or_ids(args, args->count - 1);
	struct request request;

	server_open(args);
	if (!key)
		return change_each(args, "TW.CANCEL");
	request_begin(&request, "TW.CANCELKEY", args->arg[0]);
	request_add(&request, "%s", key);
	return change(&request, args->arg[0], "key", key);
}

enum status verb_move(const struct args *args)
{
	const char *key = args->option[OPT_KEY];
	int ids = key ? 0 : 1;
	struct request request;
	struct when when;

	if (args->count < 2 + ids)
		die(STATUS_USAGE, "usage: twjob move QUEUE ID TIME..., or QUEUE --key KEY TIME...");
	check_ids(args->arg + 1, ids);
	when = time_of(args, args->arg + 1 + ids, args->count - 1 - ids);
	server_open(args);
	request_begin(&request, key ? "TW.MOVEKEY" : "TW.MOVE", args->arg[0]);
	request_add(&request, "%s", key ? key : args->arg[1]);
	request_add_when(&request, &when);
	return change(&request, args->arg[0], key ? "key" : "id",
		      key ? key : args->arg[1]);
}

enum status verb_delete(const struct args *args)
{
	check_ids(args->arg + 1, args->count - 1);
	server_open(args);
	return change_each(args, "TW.DELETE");
}

static enum status kick_buried(const char *queue)
{
	enum status status = STATUS_OK;
	struct request request;
	long long kicked;

	do {
		redisReply *reply;

		request_begin(&request, "TW.KICK", queue);
		request_add(&request, "ALL");
		request_add(&request, "%d", SLICE);
		reply = ask(&request);
		refused(reply, queue, &status);
		kicked = reply->integer;
		freeReplyObject(reply);
	} while (!status && kicked == SLICE);
	return status;
}

enum status verb_kick(const struct args *args)
{
	bool buried = args->option[OPT_BURIED];

	if (buried ? args->count > 1 : args->count == 1)
		die(STATUS_USAGE, "either IDs or --buried has to tell which jobs");
	check_ids(args->arg + 1, args->count - 1);
	server_open(args);
	if (buried)
		return kick_buried(args->arg[0]);
	return change_each(args, "TW.KICK");
}

/* Whether it is UTF-8 text without a zero. */
static bool is_text(const redisReply *value)
{
	return value && value->str && utf8_all(value->str, value->len);
}

static void put_text(struct out *out, int column, const redisReply *value)
{
	if (is_text(value))
		out_text(out, column, "%s", value->str);
}

static void put_ms(struct out *out, int column, const redisReply *ms)
{
	if (ms)
		out_span(out, column, ms->integer * NSEC_PER_MSEC);
}

/* Puts fields that most jobs do not have. */
static void put_more(struct out *out, const redisReply *job)
{
	if (field(job, "failed")) {
		out_real(out, FAILED, number_field(job, "failed") * NSEC_PER_MSEC);
		put_text(out, REASON, field(job, "reason"));
	}
	put_ms(out, LEASE, field(job, "lease_ms"));
	if (field(job, "tries"))
		out_number(out, TRIES, number_field(job, "tries"));
	put_ms(out, BACKOFF, field(job, "backoff_ms"));
	put_ms(out, BACKOFF_MOST, field(job, "backoff_most_ms"));
	put_ms(out, LEASE_LEFT, field(job, "lease_left_ms"));
	put_text(out, HOLDER, field(job, "holder"));
	put_text(out, GROUP, field(job, "group"));
}

/* @with_body: whether the answer has a body, as an answer of TW.GET. */
static void put_job(struct out *out, const redisReply *job, bool with_body)
{
	const redisReply *state = field(job, "state");
	uint64_t due = number_field(job, "due") * NSEC_PER_MSEC;

	out_row(out);
	out_number(out, ID, number_field(job, "id"));
	put_text(out, STATE, state);
	out_real(out, DUE, due);
	if (state && strcmp(state->str, "held") && strcmp(state->str, "waiting") &&
	    strcmp(state->str, "buried"))
		out_span(out, LEFT, due - real_now());
	out_number(out, ATTEMPTS, number_field(job, "attempts"));
	put_text(out, KEY, field(job, "key"));
	put_more(out, job);
	if (with_body) {
		const redisReply *body = field(job, "body");

		out_number(out, SIZE, body ? body->len : 0);
		put_text(out, BODY, body);
		if (field(job, "rule")) {
			put_text(out, RULE, field(job, "rule"));
			put_text(out, ZONE, field(job, "zone"));
		}
	}
}

static void check_state(const char *state)
{
	const char *words = tool.words_of("STATE"), *at;
	size_t length = strlen(state);

	at = strstr(words, state);
	if (length < 4 || !at || (at != words && at[-1] != ' ') ||
	    (at[length] && at[length] != ' '))
		die_usage("--state", state, "delayed, ready, held, waiting, buried or done");
}

/* Adds the limits of the list, from the options. */
static void add_limits(struct request *request, const struct args *args,
		       uint64_t before)
{
	if (args->option[OPT_STATE]) {
		request_add(request, "STATE");
		request_add(request, "%s", args->option[OPT_STATE]);
	}
	if (args->option[OPT_BEFORE]) {
		request_add(request, "BEFORE");
		request_add(request, "%llu",
			    (unsigned long long)(before / NSEC_PER_MSEC));
	}
}

static uint64_t before_of(const struct args *args)
{
	char *text = (char *)args->option[OPT_BEFORE];
	struct when when;

	if (!text)
		return 0;
	when = words_when("--before", &text, 1);
	refuse_clock("--before", &when);
	return when.ns + (when.kind == WHEN_SPAN ? real_now() : 0);
}

/* Puts all rows that a verb lists, which come by a cursor. */
static enum status list(const struct args *args, struct out *out, const char *verb,
			void (*put)(struct out *out, const redisReply *job))
{
	uint64_t before = before_of(args);
	enum status status = STATUS_OK;
	struct request request;
	long long cursor = 0;
	size_t i;

	server_open(args);
	do {
		redisReply *reply;

		request_begin(&request, verb, args->arg[0]);
		request_add(&request, "CURSOR");
		request_add(&request, "%lld", cursor);
		request_add(&request, "COUNT");
		request_add(&request, "%d", SLICE);
		add_limits(&request, args, before);
		reply = ask(&request);
		if (refused(reply, args->arg[0], &status))
			return status;
		cursor = reply->element[0]->integer;
		for (i = 0; i < reply->element[1]->elements; i++)
			put(out, reply->element[1]->element[i]);
		freeReplyObject(reply);
	} while (cursor);
	out_end(out);
	return STATUS_OK;
}

static void put_listed(struct out *out, const redisReply *job)
{
	put_job(out, job, false);
}

enum status verb_list(const struct args *args)
{
	struct out *out = out_begin(args, job_columns, "jobs");

	if (args->option[OPT_STATE])
		check_state(args->option[OPT_STATE]);
	return list(args, out, "TW.LIST", put_listed);
}

static void put_done(struct out *out, const redisReply *job)
{
	out_row(out);
	out_number(out, DONE_ID, number_field(job, "id"));
	put_text(out, DONE_KEY, field(job, "key"));
	out_real(out, DONE_DUE, number_field(job, "due") * NSEC_PER_MSEC);
	out_real(out, DONE_ENDED, number_field(job, "ended") * NSEC_PER_MSEC);
	out_number(out, DONE_ATTEMPTS, number_field(job, "attempts"));
}

enum status verb_done(const struct args *args)
{
	return list(args, out_begin(args, done_columns, "jobs"), "TW.DONE", put_done);
}

static enum status get(const struct args *args, struct out *out, const char *id)
{
	enum status status = STATUS_OK;
	struct request request;
	const redisReply *body;
	redisReply *reply;

	request_begin(&request, "TW.GET", args->arg[0]);
	request_add(&request, "%s", id);
	reply = ask(&request);
	body = field(reply, "body");
	if (refused(reply, args->arg[0], &status))
		;
	else if (reply->type == REDIS_REPLY_NIL)
		status = trouble(STATUS_NOT_THERE,
				 "queue '%s': there is no job of id '%s'; see 'twjob list %s'",
				 args->arg[0], id, args->arg[0]);
	else if (!args->option[OPT_RAW])
		put_job(out, reply, true);
	else if (body)
		fwrite(body->str, 1, body->len, stdout);
	freeReplyObject(reply);
	return status;
}

enum status verb_get(const struct args *args)
{
	struct out *out = out_begin(args, body_columns, "jobs");
	enum status status = STATUS_OK, one;
	int i;

	check_ids(args->arg + 1, args->count - 1);
	server_open(args);
	for (i = 1; i < args->count; i++) {
		one = get(args, out, args->arg[i]);
		status = status ? status : one;
	}
	if (!args->option[OPT_RAW])
		out_end(out);
	return status;
}
