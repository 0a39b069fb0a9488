// SPDX-License-Identifier: GPL-2.0-only
/*
 * These verbs are about the connection itself. Clients of Redis send them by themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allow.h"
#include "verbs.h"

/* CLIENT LIST shows this word, which has no blanks and no bytes that could disturb a terminal. */
static bool set_word(struct request *request, struct bytes arg, char word[CLIENT_WORD])
{
	bool right = arg.length < CLIENT_WORD;

	for (size_t i = 0; right && i < arg.length; i++)
		right = arg.data[i] > ' ' && arg.data[i] <= '~';
	if (right) {
		memcpy(word, arg.data, arg.length);
		word[arg.length] = '\0';
	} else {
		reply_error(request->reply,
			    "ERR a name has at most %d letters, digits and signs, and no blanks",
			    CLIENT_WORD - 1);
	}
	return right;
}

static bool log_in(struct request *request, struct bytes password)
{
	if (allow_enter(request->client, password))
		return true;
	reply_error(request->reply, "WRONGPASS invalid password");
	request->client->late = true;
	return false;
}

/* AUTH [user] password */
void verb_auth(struct request *request)
{
	if (log_in(request, request->argv[request->argc - 1]))
		reply_ok(request->reply);
}

static void answer_hello(struct request *request)
{
	struct reply *reply = request->reply;

	reply_map(reply, 6);
	reply_text(reply, "server");
	reply_text(reply, "twjobd");
	reply_text(reply, "version");
	reply_text(reply, "1.0.0");
	reply_text(reply, "proto");
	reply_integer(reply, reply->version);
	reply_text(reply, "id");
	reply_integer(reply, request->client->number);
	reply_text(reply, "mode");
	reply_text(reply, "standalone");
	reply_text(reply, "role");
	reply_text(reply, "master");
}

/* HELLO [2|3 [AUTH user password] [SETNAME name]] */
void verb_hello(struct request *request)
{
	uint64_t version = request->reply->version;
	int i;

	if (request->argc > 1 &&
	    (request->argv[1].length != 1 || request->argv[1].data[0] < '2' ||
	     request->argv[1].data[0] > '3')) {
		reply_error(request->reply, "NOPROTO unsupported protocol version");
		return;
	}
	if (request->argc > 1)
		version = request->argv[1].data[0] - '0';
	for (i = 2; i < request->argc; i += 2) {
		if (arg_is(request->argv[i], "AUTH") && i + 2 < request->argc) {
			if (!log_in(request, request->argv[i + 2]))
				return;
			i++;
		} else if (arg_is(request->argv[i], "SETNAME") && i + 1 < request->argc) {
			if (!set_word(request, request->argv[i + 1],
				      request->client->name))
				return;
		} else {
			reply_error(request->reply, "ERR syntax error in HELLO");
			return;
		}
	}
	if (!request->client->known) {
		reply_error(request->reply, "NOAUTH HELLO needs AUTH user password");
		return;
	}
	request->reply->version = version;
	answer_hello(request);
}

void verb_ping(struct request *request)
{
	if (request->argc > 1)
		reply_bytes(request->reply, request->argv[1]);
	else
		reply_simple(request->reply, "PONG");
}

/*
 * INFO tells what clients look for before they send anything else. "loading" is left out, because
 * clients would take it to mean that twjobd does nothing yet.
 */
void verb_info(struct request *request)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "# Server\r\n"
		 "server:twjobd\r\n"
		 "redis_mode:standalone\r\n"
		 "wheels:%s\r\n"
		 "# Replication\r\n"
		 "role:master\r\n", wheels_in_process() ? "process" : "kernel");
	reply_text(request->reply, text);
}

static void add_client(FILE *file, const struct client *client)
{
	uint64_t now = now_ms();

	fprintf(file,
		"id=%llu addr=%s name=%s lib-name=%s lib-ver=%s age=%llu idle=%llu cmd=%s held=%zu\n",
		(unsigned long long)client->number, client->address, client->name,
		client->library, client->version, (now - client->since) / MSEC_PER_SEC,
		(now - client->last) / MSEC_PER_SEC, client->verb ?: "",
		client->nr_deliveries);
}

/* These bytes mean all queues: no name has the byte "*", so only the beginning "" fits. */
static const struct bytes all_queues = { "*", 1 };

static bool may_see(const struct client *client, const struct client *other)
{
	return allow_alike(client, other) ||
	       allow_classes(client, &all_queues) & MAY_ADMIN;
}

/* Tells of the request's client, or of @all clients that the client may see. */
static void reply_clients(struct request *request, bool all)
{
	const struct client *client;
	struct bytes text;
	FILE *file = open_memstream((char **)&text.data, &text.length);

	if (!file)
		die(ENOMEM, "a list");
	LIST_FOREACH(client, &clients_all, all)
		if (client == request->client || (all && may_see(request->client, client)))
			add_client(file, client);
	if (fclose(file))
		die(ENOMEM, "a list");
	reply_bytes(request->reply, text);
	free((char *)text.data);
}

/* CLIENT UNBLOCK id: the answer is 1 if that client waited in TW.TAKE, whose answer is now null. */
static void unblock(struct request *request)
{
	struct client *client;
	uint64_t number;

	if (!arg_number(request, request->argv[2], 1, INT64_MAX, &number))
		return;
	LIST_FOREACH(client, &clients_all, all)
		if (client->number == number)
			break;
	if (client && !may_see(request->client, client))
		request_may(request, MAY_ADMIN, &all_queues);
	else
		reply_integer(request->reply, client && take_unblock(client));
}

/* CLIENT SETINFO LIB-NAME|LIB-VER text */
static void set_info(struct request *request)
{
	struct client *client = request->client;
	bool name = arg_is(request->argv[2], "LIB-NAME");

	if (!name && !arg_is(request->argv[2], "LIB-VER"))
		reply_error(request->reply, "ERR Unrecognized option '%.*s'",
			    (int)(request->argv[2].length < 100 ?
				  request->argv[2].length : 100), request->argv[2].data);
	else if (set_word(request, request->argv[3], name ? client->library :
							    client->version))
		reply_ok(request->reply);
}

static void set_name(struct request *request)
{
	if (set_word(request, request->argv[2], request->client->name))
		reply_ok(request->reply);
}

static void reply_name(struct request *request)
{
	if (request->client->name[0])
		reply_text(request->reply, request->client->name);
	else
		reply_null(request->reply);
}

static void reply_number(struct request *request)
{
	reply_integer(request->reply, request->client->number);
}

static void reply_self(struct request *request)
{
	reply_clients(request, false);
}

static void reply_all(struct request *request)
{
	reply_clients(request, true);
}

/* The command changes nothing: there is no eviction, and nobody counts which data was used last. */
static void ignore(struct request *request)
{
	reply_ok(request->reply);
}

/* CLIENT word ... */
void verb_client(struct request *request)
{
	static const struct {
		const char *name;
		int argc;
		void (*run)(struct request *request);
	} words[] = {
		{ "ID", 2, reply_number },
		{ "GETNAME", 2, reply_name },
		{ "SETNAME", 3, set_name },
		{ "SETINFO", 4, set_info },
		{ "INFO", 2, reply_self },
		{ "LIST", 2, reply_all },
		{ "UNBLOCK", 3, unblock },
		{ "NO-EVICT", 3, ignore },
		{ "NO-TOUCH", 3, ignore },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!arg_is(request->argv[1], words[i].name) ||
		    request->argc != words[i].argc)
			continue;
		words[i].run(request);
		return;
	}
	reply_error(request->reply,
		    "ERR CLIENT knows ID, GETNAME, SETNAME name, SETINFO what text, INFO, LIST, UNBLOCK id, NO-EVICT and NO-TOUCH only");
}

void verb_echo(struct request *request)
{
	reply_bytes(request->reply, request->argv[1]);
}

/* There is one database, 0. */
void verb_select(struct request *request)
{
	if (arg_is(request->argv[1], "0"))
		reply_ok(request->reply);
	else
		reply_error(request->reply, "ERR DB index is out of range");
}

/* The answer is the time of the clock that decides what is due. */
void verb_time(struct request *request)
{
	struct timespec now;
	char text[32];

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += store_ahead / (int64_t)MSEC_PER_SEC;
	now.tv_nsec += store_ahead % (int64_t)MSEC_PER_SEC * (int64_t)NSEC_PER_MSEC;
	now.tv_sec += now.tv_nsec / (int64_t)NSEC_PER_SEC - (now.tv_nsec < 0);
	now.tv_nsec = (now.tv_nsec + NSEC_PER_SEC) % NSEC_PER_SEC;
	reply_array(request->reply, 2);
	snprintf(text, sizeof(text), "%lld", (long long)now.tv_sec);
	reply_text(request->reply, text);
	snprintf(text, sizeof(text), "%ld", now.tv_nsec / 1000);
	reply_text(request->reply, text);
}

/* CONFIG GET pattern: there are no settings of Redis. */
void verb_config(struct request *request)
{
	if (arg_is(request->argv[1], "GET") && request->argc > 2)
		reply_map(request->reply, 0);
	else
		reply_error(request->reply,
			    "ERR CONFIG knows GET only: settings are in twjobd.conf(5)");
}

void verb_cluster(struct request *request)
{
	reply_error(request->reply, "ERR This instance has cluster support disabled");
}

void verb_command(struct request *request)
{
	reply_array(request->reply, 0);
}

void verb_quit(struct request *request)
{
	reply_ok(request->reply);
	request->client->quit = true;
}

/* Makes the client as if it had just connected, but it need not give its password again. */
void verb_reset(struct request *request)
{
	request->client->name[0] = '\0';
	request->reply->version = 2;
	multi_forget(request->client);
	reply_simple(request->reply, "RESET");
}
