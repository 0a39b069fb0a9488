// SPDX-License-Identifier: GPL-2.0-only
/* The changes that a browser may make. The door has already decided who may. */
#include <ctype.h>

#include "web.h"

/* The last word of the route is the word of the verb. */
static const char *action_of(const struct exchange *exchange)
{
	return strrchr(exchange->route->pattern, '/') + 1;
}

static void begin_change(struct exchange *exchange, struct request *request)
{
	char verb[16] = "TW.";
	const char *at = action_of(exchange);
	size_t length = strlen(verb);

	for (; *at; at++)
		verb[length++] = toupper((unsigned char)*at);
	verb[length] = '\0';
	request_begin(request, verb, NULL);
	request_add_bytes(request, exchange->name[0].text, exchange->name[0].length);
}

/* Makes a change of a queue, to which twjobd answers OK. */
void change_queue(struct exchange *exchange)
{
	struct request request;
	redisReply *reply;

	begin_change(exchange, &request);
	reply = web_answer(exchange, &request);
	if (!reply)
		return;
	freeReplyObject(reply);
	page_go(exchange, &exchange->name[0], 0);
}

/*
 * Makes a change of a job. twjobd answers 1, or 0 if there is no such job. @stays: the job is
 * there afterwards.
 */
static void change(struct exchange *exchange, struct request *request, uint64_t id, bool stays)
{
	redisReply *reply = web_answer(exchange, request);

	if (!reply)
		return;
	if (reply->integer)
		page_go(exchange, &exchange->name[0], stays ? id : 0);
	else
		page_wrong(exchange, MHD_HTTP_NOT_FOUND,
			   "The queue %s has no such job. It may have ended.",
			   exchange->name[0].text);
	freeReplyObject(reply);
}

static bool number_of_job(struct exchange *exchange, uint64_t *id)
{
	if (number_parse(exchange->name[1].text, 1, INT64_MAX / 16, id))
		return true;
	page_wrong(exchange, MHD_HTTP_NOT_FOUND, "A job has a number.");
	return false;
}

void change_job(struct exchange *exchange)
{
	bool stays = !strcmp(action_of(exchange), "kick");
	struct request request;
	uint64_t id;

	if (!number_of_job(exchange, &id))
		return;
	if (!stays && !field_of(exchange, "sure")) {
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST,
			   "Please tick that the job shall end for good.");
		return;
	}
	begin_change(exchange, &request);
	request_add(&request, "%llu", (unsigned long long)id);
	change(exchange, &request, id, stays);
}

void change_move(struct exchange *exchange)
{
	const struct part *time = field_of(exchange, "time");
	struct request request;
	struct when when;
	uint64_t id;

	if (!number_of_job(exchange, &id))
		return;
	if (!time || !when_parse(time->text, real_now(), &when) || when.kind == WHEN_CLOCK) {
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST,
			   "The time is one of: " POINT_FORM ".");
		return;
	}
	begin_change(exchange, &request);
	request_add(&request, "%llu", (unsigned long long)id);
	request_add_when(&request, &when);
	change(exchange, &request, id, true);
}
