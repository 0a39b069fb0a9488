// SPDX-License-Identifier: GPL-2.0-only
/*
 * This file has a table of all verbs by name.
 */
#include <errno.h>

#include "allow.h"
#include "keep.h"
#include "verbs.h"

#define QUEUE	1U	/* argument 1 is a queue that exists */
#define ANYBODY	2U	/* a client may send it before AUTH */
#define FRESH	4U	/* the queues are read from a shared store first */
#define KEY	8U	/* the job is named by its key */
#define GATHER	16U	/* it may be in a transaction */
#define CONTROL	32U	/* it is carried out at once, also after MULTI */

static const struct verb {
	const char *name;
	int least, most;	/* the number of arguments, with the verb itself */
	unsigned int classes;	/* the classes of allow.h that it needs */
	unsigned int flags;
	void (*run)(struct request *request);
} verbs[] = {
	{ "TW.PUT", 3, MAX_ARGS, MAY_PUT, QUEUE | GATHER, verb_put },
	{ "TW.TAKE", 2, MAX_ARGS, MAY_TAKE, 0, verb_take },
	{ "TW.ACK", 3, MAX_ARGS, MAY_ANSWER, QUEUE | GATHER, verb_ack },
	{ "TW.NACK", 3, 8, MAY_ANSWER, QUEUE | GATHER, verb_nack },
	{ "TW.EXTEND", 3, MAX_ARGS, MAY_ANSWER, QUEUE, verb_extend },
	{ "TW.BURY", 3, 5, MAY_ANSWER, QUEUE | GATHER, verb_bury },
	{ "TW.EVERY", 5, MAX_ARGS, MAY_PUT | MAY_CANCEL, QUEUE | GATHER, verb_every },
	{ "TW.CANCEL", 3, 3, MAY_CANCEL, QUEUE | GATHER, verb_cancel },
	{ "TW.CANCELKEY", 3, 3, MAY_CANCEL, QUEUE | KEY | GATHER, verb_cancel },
	{ "TW.MOVE", 5, 5, MAY_CANCEL, QUEUE | GATHER, verb_move },
	{ "TW.MOVEKEY", 5, 5, MAY_CANCEL, QUEUE | KEY | GATHER, verb_move },
	{ "TW.KICK", 3, 3, MAY_CANCEL, QUEUE | GATHER, verb_kick },
	{ "TW.KICK", 4, 4, MAY_CANCEL, QUEUE, verb_kick },
	{ "TW.DELETE", 3, 3, MAY_CANCEL, QUEUE | GATHER, verb_delete },
	{ "TW.GET", 3, 3, MAY_LOOK, QUEUE | GATHER, verb_get },
	{ "TW.GETKEY", 3, 3, MAY_LOOK, QUEUE | GATHER | KEY, verb_get },
	{ "TW.LIST", 2, 10, MAY_LOOK, QUEUE, verb_list },
	{ "TW.DONE", 2, 6, MAY_LOOK, QUEUE, verb_done },
	{ "TW.RULES", 2, 6, MAY_LOOK, QUEUE, verb_rules },
	{ "TW.STATS", 2, 2, MAY_LOOK, QUEUE, verb_stats },
	{ "TW.STATS", 1, 1, MAY_LOOK, 0, verb_stats },
	{ "TW.METRICS", 1, 1, MAY_LOOK, 0, verb_metrics },
	{ "TW.QUEUES", 1, 1, MAY_LOOK, 0, verb_queues },
	{ "TW.CREATE", 2, MAX_ARGS, MAY_ADMIN, FRESH, verb_create },
	{ "TW.DROP", 2, 2, MAY_ADMIN, QUEUE | FRESH, verb_drop },
	{ "TW.PAUSE", 2, 2, MAY_ADMIN, QUEUE | FRESH, verb_pause },
	{ "TW.RESUME", 2, 2, MAY_ADMIN, QUEUE | FRESH, verb_resume },
	{ "TW.DRAIN", 2, 2, MAY_ADMIN, QUEUE | FRESH, verb_drain },
	{ "HELLO", 1, 8, 0, ANYBODY, verb_hello },
	{ "AUTH", 2, 3, 0, ANYBODY, verb_auth },
	{ "PING", 1, 2, 0, GATHER, verb_ping },
	{ "ECHO", 2, 2, 0, GATHER, verb_echo },
	{ "MULTI", 1, 1, 0, CONTROL, verb_multi },
	{ "EXEC", 1, 1, 0, CONTROL, verb_exec },
	{ "DISCARD", 1, 1, 0, CONTROL, verb_discard },
	{ "WATCH", 2, MAX_ARGS, 0, CONTROL, verb_watch },
	{ "UNWATCH", 1, 1, 0, CONTROL, verb_unwatch },
	{ "SELECT", 2, 2, 0, 0, verb_select },
	{ "INFO", 1, MAX_ARGS, 0, 0, verb_info },
	{ "TIME", 1, 1, 0, 0, verb_time },
	{ "CONFIG", 2, MAX_ARGS, 0, 0, verb_config },
	{ "CLIENT", 2, MAX_ARGS, 0, 0, verb_client },
	{ "CLUSTER", 1, MAX_ARGS, 0, 0, verb_cluster },
	{ "COMMAND", 1, MAX_ARGS, 0, 0, verb_command },
	{ "RESET", 1, 1, 0, ANYBODY | CONTROL, verb_reset },
	{ "QUIT", 1, 1, 0, ANYBODY | CONTROL, verb_quit },
};

/* Returns NULL and answers with an error if there is no such verb. */
static const struct verb *find_verb(struct request *request)
{
	bool known = false;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!arg_is(request->argv[0], verbs[i].name))
			continue;
		known = true;
		if (request->argc >= verbs[i].least &&
		    request->argc <= verbs[i].most)
			return &verbs[i];
	}
	if (known)
		reply_error(request->reply, "ERR wrong number of arguments for '%.*s'",
			    (int)request->argv[0].length, request->argv[0].data);
	else
		reply_error(request->reply, "ERR unknown command '%.*s'",
			    (int)(request->argv[0].length < 100 ?
				  request->argv[0].length : 100),
			    request->argv[0].data);
	return NULL;
}

static bool is_allowed(struct request *request, const struct verb *verb)
{
	return !verb->classes || request_may(request, verb->classes,
					   request->argc > 1 ? &request->argv[1] : NULL);
}

static void run_verb(struct request *request, const struct verb *verb)
{
	if (!is_allowed(request, verb))
		return;
	if (verb->flags & FRESH && store->shared)
		store->refresh();
	if (verb->flags & QUEUE) {
		request->queue = request_queue(request->argv[1]);
		if (!request->queue) {
			answer_no_queue(request->reply);
			return;
		}
	}
	request->by_key = verb->flags & KEY;
	verb->run(request);
}

static void carry_out(struct client *client, struct command *command);

static struct request request_of(struct client *client, struct command *command)
{
	return (struct request) {
		.client = client,
		.reply = &client->reply,
		.argc = command->argc,
		.argv = command->argv,
		.carry_out = carry_out,
	};
}

static void carry_out(struct client *client, struct command *command)
{
	struct request request = request_of(client, command);

	run_verb(&request, find_verb(&request));
}

void verbs_run(struct client *client, struct command *command)
{
	struct request request = request_of(client, command);
	const struct verb *verb = find_verb(&request);

	if (!verb) {
		multi_fail(client);
		return;
	}
	if (!client->known && !(verb->flags & ANYBODY)) {
		reply_error(request.reply, "NOAUTH Authentication required.");
		return;
	}
	client->verb = verb->name;
	client->last = now_ms();
	if (!client->multi || verb->flags & CONTROL) {
		run_verb(&request, verb);
	} else if (verb->flags & GATHER) {
		multi_gather(&request);
	} else {
		multi_fail(client);
		reply_error(request.reply, "ERR %s%s cannot be in a transaction",
			    verb->name, verb->run == verb_kick ? " ALL" : "");
	}
}
