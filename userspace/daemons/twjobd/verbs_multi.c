// SPDX-License-Identifier: GPL-2.0-only
/*
 * Transactions: MULTI gathers commands, and EXEC carries out all or none of them by one commit. A
 * take and an extension of a lease cannot be in a transaction, because they change the kernel's
 * wheel at once. Commands that make wheels cannot be in it either.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

#define MOST_COMMANDS	1000
#define MOST_BYTES	(16ULL << 20)

/*
 * @commands has for each command the number of its arguments, and for each argument its length
 * and its bytes.
 */
struct multi {
	struct buffer commands;
	unsigned int count;
	bool failed;		/* a command has been refused: EXEC refuses all commands */
};

size_t multi_bytes(const struct client *client)
{
	return client->multi ? client->multi->commands.room : 0;
}

void multi_fail(struct client *client)
{
	if (client->multi)
		client->multi->failed = true;
}

void multi_forget(struct client *client)
{
	if (client->multi)
		buffer_free(&client->multi->commands);
	free(client->multi);
	client->multi = NULL;
}

static void add_number(struct buffer *buffer, size_t number)
{
	buffer_add(buffer, &number, sizeof(number));
}

static size_t read_number(const char **at)
{
	size_t number;

	memcpy(&number, *at, sizeof(number));
	*at += sizeof(number);
	return number;
}

void multi_gather(struct request *request)
{
	struct multi *multi = request->client->multi;
	uint64_t most = config.max_body > MOST_BYTES ? config.max_body : MOST_BYTES;
	uint64_t bytes = multi->commands.length;

	for (int i = 0; i < request->argc; i++)
		bytes += request->argv[i].length;
	if (multi->count == MOST_COMMANDS || bytes > most) {
		multi_fail(request->client);
		reply_error(request->reply,
			    "TOOBIG a transaction has at most %d commands and %llu bytes",
			    MOST_COMMANDS, (unsigned long long)most);
		return;
	}
	add_number(&multi->commands, request->argc);
	for (int i = 0; i < request->argc; i++) {
		add_number(&multi->commands, request->argv[i].length);
		buffer_add(&multi->commands, request->argv[i].data, request->argv[i].length);
	}
	multi->count++;
	reply_simple(request->reply, "QUEUED");
}

/* Reads the command at @at. Returns what is behind the command. */
static const char *read_command(const char *at, struct command *command)
{
	command->argc = read_number(&at);
	for (int i = 0; i < command->argc; i++) {
		command->argv[i].length = read_number(&at);
		command->argv[i].data = at;
		at += command->argv[i].length;
	}
	return at;
}

/* MULTI */
void verb_multi(struct request *request)
{
	struct multi *multi;

	if (request->client->multi) {
		reply_error(request->reply, "ERR MULTI calls can not be nested");
		return;
	}
	multi = calloc(1, sizeof(*multi));
	if (!multi)
		die(ENOMEM, "a transaction");
	request->client->multi = multi;
	reply_ok(request->reply);
}

/* DISCARD */
void verb_discard(struct request *request)
{
	if (!request->client->multi) {
		reply_error(request->reply, "ERR DISCARD without MULTI");
		return;
	}
	multi_forget(request->client);
	reply_ok(request->reply);
}

void verb_watch(struct request *request)
{
	reply_error(request->reply, "ERR there is nothing to watch: see KEY and REPLACE");
}

void verb_unwatch(struct request *request)
{
	reply_ok(request->reply);
}

/* Carries out all commands. Returns the number of the command that failed, from 1, or 0. */
static unsigned int run_all(struct request *request, const struct multi *multi,
			    struct buffer *answers)
{
	struct client *client = request->client;
	static struct command command;
	struct buffer *out = client->reply.out;
	const char *at = multi->commands.data;
	unsigned int i, failed = 0;

	client->reply.out = answers;
	for (i = 1; i <= multi->count && !failed; i++) {
		size_t begin = answers->length;

		at = read_command(at, &command);
		request->carry_out(client, &command);
		if (turn_has_collided() || answers->data[begin] == '-') {
			buffer_cut(answers, begin);
			failed = i;
		}
	}
	client->reply.out = out;
	return failed;
}

/* A shared store has to be asked for unknown queues before the turn has its mark. */
static void look_for_queues(const struct multi *multi)
{
	static struct command command;
	const char *at = multi->commands.data;

	for (unsigned int i = 0; store->shared && i < multi->count; i++) {
		at = read_command(at, &command);
		if (command.argc > 1)
			request_queue(command.argv[1]);
	}
}

/* Answers with the error of the command that failed, which is at the end of @answers. */
static void refuse_all(struct request *request, const struct buffer *answers,
		       unsigned int failed)
{
	int length = answers->length > 3 ? answers->length - 3 : 0;

	if (turn_has_collided())
		reply_error(request->reply,
			    "EXECABORT %u: ERR the transaction has changed this job", failed);
	else
		reply_error(request->reply, "EXECABORT %u: %.*s", failed, length,
			    answers->data + 1);
}

static void execute(struct request *request, const struct multi *multi)
{
	struct buffer answers = { };
	unsigned int failed;

	turn_mark();
	failed = run_all(request, multi, &answers);
	/* Another client has changed one of the jobs in this turn. */
	if (turn_has_collided() && turn_is_shared()) {
		turn_back();
		turn_end();
		buffer_free(&answers);
		turn_mark();
		failed = run_all(request, multi, &answers);
	}
	if (failed) {
		refuse_all(request, &answers, failed);
		turn_back();
	} else {
		turn_keep();
		reply_array(request->reply, multi->count);
		buffer_add(request->reply->out, answers.data, answers.length);
	}
	buffer_free(&answers);
}

/* EXEC */
void verb_exec(struct request *request)
{
	struct multi *multi = request->client->multi;

	if (!multi) {
		reply_error(request->reply, "ERR EXEC without MULTI");
		return;
	}
	/* The commands of the transaction must not be gathered again. */
	request->client->multi = NULL;
	if (multi->failed) {
		reply_error(request->reply,
			    "EXECABORT Transaction discarded because of previous errors.");
	} else {
		look_for_queues(multi);
		execute(request, multi);
	}
	request->client->multi = multi;
	multi_forget(request->client);
}
