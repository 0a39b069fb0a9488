// SPDX-License-Identifier: GPL-2.0-only
/* Pages about queues as a whole, and about connected clients. */
#include <math.h>

#include "web.h"

/* The first page shows these figures of a queue, if twjobd tells them. */
static const char * const figures[] = {
	"pending", "due", "oldest_ms", "held", "waiting", "buried", "done",
};

void put_queue_link(struct exchange *exchange, const char *name, size_t length)
{
	html(exchange, "<a href=\"%s/queue/", web.prefix);
	url(exchange, name, length);
	html(exchange, "\">");
	text(exchange, name, length);
	html(exchange, "</a>");
}

void form_begin(struct exchange *exchange, const struct part *queue, long long id,
		const char *action)
{
	html(exchange, "<form method=\"post\" action=\"%s/queue/", web.prefix);
	url(exchange, queue->text, queue->length);
	if (id)
		html(exchange, "/job/%lld", id);
	html(exchange, "/%s\">", action);
}

void form_end(struct exchange *exchange, const char *action)
{
	html(exchange, "<button>%s</button></form>\n", action);
}

static void put_action(struct exchange *exchange, const struct part *queue, const char *action)
{
	form_begin(exchange, queue, 0, action);
	form_end(exchange, action);
}

/* Puts the actions that the queue's state allows. */
void put_actions(struct exchange *exchange, const struct part *queue, const redisReply *stats)
{
	bool paused = number_field(stats, "paused"), draining = number_field(stats, "draining");

	if (web.read_only)
		return;
	if (!paused)
		put_action(exchange, queue, "pause");
	if (!draining)
		put_action(exchange, queue, "drain");
	if (paused || draining)
		put_action(exchange, queue, "resume");
}

/* Puts the heads of the figures that are in @stats, or their values. */
static void put_figures(struct exchange *exchange, const redisReply *stats, bool heads)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(figures); i++) {
		const redisReply *value = field(stats, figures[i]);

		if (!value)
			continue;
		html(exchange, heads ? "<th class=\"number\">" : "<td class=\"number\">");
		if (heads)
			put_label(exchange, figures[i]);
		else
			put_value(exchange, figures[i], value);
		html(exchange, heads ? "</th>" : "</td>");
	}
}

static void put_late(struct exchange *exchange, double seconds)
{
	char span[TIME_TEXT];

	span_text(span, sizeof(span), llround(seconds * NSEC_PER_SEC));
	html(exchange, "<td class=\"number\">%s</td>", seconds < 0 ? "&ndash;" : span);
}

static void put_row(struct exchange *exchange, const struct overview_queue *queue)
{
	const struct part name = { queue->name, strlen(queue->name) };

	html(exchange, "<tr><th scope=\"row\">");
	put_queue_link(exchange, name.text, name.length);
	html(exchange, "</th>");
	put_figures(exchange, queue->stats, false);
	if (queue->rate < 0)
		html(exchange, "<td class=\"number\">&ndash;</td>");
	else
		html(exchange, "<td class=\"number\">%.1f/s</td>", queue->rate);
	put_late(exchange, queue->half);
	put_late(exchange, queue->most);
	html(exchange, "<td>%s</td><td class=\"actions\">", queue_state(queue->stats));
	put_actions(exchange, &name, queue->stats);
	html(exchange, "</td></tr>\n");
}

static void put_queues(struct exchange *exchange, const struct overview *overview)
{
	static const char * const others[] = { "rate", "P50 late", "P99 late" };
	size_t i;

	if (!overview->count) {
		html(exchange, "<p>There is no queue: <code>twjob create</code> makes one.</p>\n");
		return;
	}
	html(exchange, "<table>\n<tr><th>queue</th>");
	put_figures(exchange, overview->queues[0].stats, true);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		html(exchange, "<th class=\"number\">%s</th>", others[i]);
	html(exchange, "<th>state</th><th></th></tr>\n");
	for (i = 0; i < overview->count; i++)
		put_row(exchange, &overview->queues[i]);
	html(exchange, "</table>\n");
}

void page_queues(struct exchange *exchange)
{
	struct overview overview;
	redisReply *wrong;
	bool lost;

	wrong = overview_get(&overview, web_ask, &lost);
	if (lost) {
		page_lost(exchange);
	} else if (wrong) {
		page_refused(exchange, wrong);
		freeReplyObject(wrong);
	} else {
		page_begin(exchange, MHD_HTTP_OK, "Queues");
		put_queues(exchange, &overview);
		html(exchange, "<h2>twjobd</h2>\n");
		put_map(exchange, overview.daemon);
		page_end(exchange);
	}
	overview_free(&overview);
}

/* Puts the connections: lines of NAME=VALUE, with blanks between. */

static void put_client(struct exchange *exchange, char *line, bool heads)
{
	char *word, *equals;

	html(exchange, "<tr>");
	while ((word = strsep(&line, " "))) {
		equals = strchr(word, '=');
		if (!equals)
			continue;
		*equals = '\0';
		html(exchange, heads ? "<th>" : "<td>");
		text_of(exchange, heads ? word : equals + 1);
		html(exchange, heads ? "</th>" : "</td>");
	}
	html(exchange, "</tr>\n");
}

static void put_clients(struct exchange *exchange, char *list)
{
	char *line, *first;
	bool heads = true;

	html(exchange, "<table>\n");
	while ((line = strsep(&list, "\n"))) {
		if (!*line)
			continue;
		first = heads ? strdup(line) : NULL;
		if (first)
			put_client(exchange, first, true);
		free(first);
		heads = false;
		put_client(exchange, line, false);
	}
	html(exchange, "</table>\n");
}

void page_connections(struct exchange *exchange)
{
	struct request request;
	redisReply *reply;

	request_begin(&request, "CLIENT", "LIST");
	reply = web_answer(exchange, &request);
	if (!reply)
		return;
	page_begin(exchange, MHD_HTTP_OK, "Connections");
	if (reply->str)
		put_clients(exchange, reply->str);
	page_end(exchange);
	freeReplyObject(reply);
}

static const char style[] =
#include "style.inc"
;

void page_style(struct exchange *exchange)
{
	exchange->status = MHD_HTTP_OK;
	exchange->type = "text/css; charset=utf-8";
	html(exchange, "%s", style);
}
