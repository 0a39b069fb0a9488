// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection to twjobd. It is made when it is needed, and again when it has ended. No
 * request is sent twice.
 */
#include "web.h"

/* The seconds that an answer may take, while the browser waits. */
#define PATIENCE	10

static redisContext *server;
static char why[256];

static void disconnect(const char *reason)
{
	snprintf(why, sizeof(why), "%s", reason);
	if (server)
		redisFree(server);
	server = NULL;
}

/*
 * Whether the connection has ended. Between an answer and the next question nothing else can
 * be read.
 */
static bool has_ended(void)
{
	struct pollfd fd = { .fd = server->fd, .events = POLLIN };

	return poll(&fd, 1, 0) != 0;
}

static bool connected(void)
{
	redisReply *refusal;

	if (server && has_ended())
		disconnect("");
	if (server)
		return true;
	server = server_try(PATIENCE, &refusal);
	if (server)
		return true;
	disconnect(refusal ? refusal->str : strerror(errno));
	if (refusal)
		freeReplyObject(refusal);
	return false;
}

static void forget(struct request *request)
{
	while (request->count)
		free(request->word[--request->count]);
}

redisReply *web_ask(struct request *request)
{
	redisReply *reply;

	if (!connected()) {
		forget(request);
		return NULL;
	}
	if (server_append(server, request) &&
	    redisGetReply(server, (void **)&reply) == REDIS_OK)
		return reply;
	disconnect(server->errstr);
	return NULL;
}

void page_lost(struct exchange *exchange)
{
	page_wrong(exchange, MHD_HTTP_BAD_GATEWAY,
		   "twjobd gives no answer (%s). %s", why, exchange->route->change ?
		   "The change may have been made or not." : "Try it again later.");
}

/* The statuses of HTTP for errors of twjobd; see ERRORS in twjob-protocol(7). */
static const struct {
	const char	*word;
	unsigned int	status;
} refusals[] = {
	{ "NOQUEUE", MHD_HTTP_NOT_FOUND },
	{ "NOPERM", MHD_HTTP_FORBIDDEN },
	{ "HELD", MHD_HTTP_CONFLICT },
	{ "BURIED", MHD_HTTP_CONFLICT },
	{ "BUSY", MHD_HTTP_CONFLICT },
	{ "DRAINING", MHD_HTTP_CONFLICT },
	{ "LOADING", MHD_HTTP_SERVICE_UNAVAILABLE },
	{ "UNAVAILABLE", MHD_HTTP_SERVICE_UNAVAILABLE },
	{ "FULL", MHD_HTTP_INSUFFICIENT_STORAGE },
	{ "ERR", MHD_HTTP_BAD_REQUEST },
};

void page_refused(struct exchange *exchange, const redisReply *reply)
{
	size_t length = strcspn(reply->str, " "), i;
	unsigned int status = MHD_HTTP_BAD_GATEWAY;

	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (strlen(refusals[i].word) == length &&
		    !memcmp(refusals[i].word, reply->str, length))
			status = refusals[i].status;
	}
	page_wrong(exchange, status, "twjobd says: %s", reply->str);
}

/* Returns an answer that is no error. NULL: there is none, and the page says why. */
redisReply *web_answer(struct exchange *exchange, struct request *request)
{
	redisReply *reply = web_ask(request);

	if (!reply) {
		page_lost(exchange);
	} else if (reply->type == REDIS_REPLY_ERROR) {
		page_refused(exchange, reply);
		freeReplyObject(reply);
		reply = NULL;
	}
	return reply;
}
