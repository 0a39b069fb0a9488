// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages about the jobs of a queue.
 */
#include "web.h"

/* The jobs on a page, and how many answers without jobs are read to find some. */
#define ON_PAGE		50
#define MOST_ANSWERS	20
#define MOST_COLUMNS	24
#define MAX_ID		(INT64_MAX / 16)

/* The names of the values that the jobs of a table have. */
struct columns {
	const char	*name[MOST_COLUMNS];
	int		count;
};

static void add_column(struct columns *columns, const char *name)
{
	int i;

	for (i = 0; i < columns->count; i++) {
		if (!strcmp(columns->name[i], name))
			return;
	}
	if (i < MOST_COLUMNS)
		columns->name[columns->count++] = name;
}

static void add_columns(struct columns *columns, const redisReply *jobs)
{
	size_t job, i;

	for (job = 0; job < jobs->elements; job++) {
		const redisReply *map = jobs->element[job];

		for (i = 0; i + 1 < map->elements; i += 2) {
			if (map->element[i]->str)
				add_column(columns, map->element[i]->str);
		}
	}
}

/* Puts a value. The number of a job leads to the job, if it has not ended. */
static void put_cell(struct exchange *exchange, const char *name, const redisReply *value,
		     const struct part *linked)
{
	bool link = linked && !strcmp(name, "id") && value;

	html(exchange, value && value->type == REDIS_REPLY_INTEGER ? "<td class=\"number\">" :
	     "<td>");
	if (link) {
		html(exchange, "<a href=\"%s/queue/", web.prefix);
		url(exchange, linked->text, linked->length);
		html(exchange, "/job/%lld\">%lld</a>", value->integer, value->integer);
	} else if (value) {
		put_value(exchange, name, value);
	}
	html(exchange, "</td>");
}

/* Puts the head of a column at the side where its values are. */
static void put_head(struct exchange *exchange, const char *name, const redisReply *jobs)
{
	const redisReply *value = NULL;
	size_t i;

	for (i = 0; i < jobs->elements && !value; i++)
		value = field(jobs->element[i], name);
	html(exchange, value && value->type == REDIS_REPLY_INTEGER ?
	     "<th class=\"number\">" : "<th>");
	put_label(exchange, name);
	html(exchange, "</th>");
}

/* @queue: the queue of the jobs, whose numbers lead to the jobs, or NULL. */
static void put_jobs(struct exchange *exchange, const redisReply *jobs, const struct part *queue)
{
	struct columns columns = { };
	size_t job;
	int i;

	add_columns(&columns, jobs);
	html(exchange, "<table>\n<tr>");
	for (i = 0; i < columns.count; i++)
		put_head(exchange, columns.name[i], jobs);
	html(exchange, "</tr>\n");
	for (job = 0; job < jobs->elements; job++) {
		html(exchange, "<tr>");
		for (i = 0; i < columns.count; i++)
			put_cell(exchange, columns.name[i],
				 field(jobs->element[job], columns.name[i]), queue);
		html(exchange, "</tr>\n");
	}
	html(exchange, "</table>\n");
}

static bool is_list(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
	       reply->element[1]->type == REDIS_REPLY_ARRAY;
}

static redisReply *ask_for_list(struct exchange *exchange, const char *verb,
				const struct part *queue, long long cursor)
{
	const struct part *state = field_of(exchange, "state");
	struct request request;

	request_begin(&request, verb, NULL);
	request_add_bytes(&request, queue->text, queue->length);
	request_add(&request, "CURSOR");
	request_add(&request, "%lld", cursor);
	request_add(&request, "COUNT");
	request_add(&request, "%d", ON_PAGE);
	if (state && !strcmp(verb, "TW.LIST")) {
		request_add(&request, "STATE");
		request_add_bytes(&request, state->text, state->length);
	}
	return web_answer(exchange, &request);
}

/*
 * Returns the first answer that has jobs, or the last answer. NULL: the page says why there is
 * none.
 */
static redisReply *get_list(struct exchange *exchange, const char *verb, const struct part *queue)
{
	const struct part *given = field_of(exchange, "cursor");
	redisReply *reply = NULL;
	uint64_t cursor = 0;
	int i;

	if (given && !number_parse(given->text, 0, MAX_ID, &cursor)) {
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST, "This cursor is no number.");
		return NULL;
	}
	for (i = 0; i < MOST_ANSWERS; i++) {
		if (reply)
			freeReplyObject(reply);
		reply = ask_for_list(exchange, verb, queue, cursor);
		if (!reply)
			return NULL;
		if (!is_list(reply)) {
			freeReplyObject(reply);
			page_wrong(exchange, MHD_HTTP_BAD_GATEWAY, "twjobd's answer is no list.");
			return NULL;
		}
		cursor = reply->element[0]->integer;
		if (!cursor || reply->element[1]->elements)
			break;
	}
	return reply;
}

/* Puts a link to the next jobs of a list, with the same question. */
static void put_next(struct exchange *exchange, const redisReply *list)
{
	const struct part *state = field_of(exchange, "state");

	if (!list->element[0]->integer)
		return;
	html(exchange, "<p><a href=\"?cursor=%lld", list->element[0]->integer);
	if (state) {
		html(exchange, "&amp;state=");
		url(exchange, state->text, state->length);
	}
	html(exchange, "\">next</a></p>\n");
}

static void put_list(struct exchange *exchange, const redisReply *list, const struct part *queue)
{
	if (list->element[1]->elements)
		put_jobs(exchange, list->element[1], queue);
	else
		html(exchange, "<p>There are none here.</p>\n");
	put_next(exchange, list);
}

static void put_states(struct exchange *exchange)
{
	const struct part *chosen = field_of(exchange, "state");
	char words[] = JOB_STATES, *rest = words, *word;

	html(exchange, "<p class=\"states\"><a href=\"?\"%s>all</a>",
	     chosen ? "" : " aria-current=\"true\"");
	while ((word = strsep(&rest, " ")))
		html(exchange, " <a href=\"?state=%s\"%s>%s</a>", word,
		     chosen && !strcmp(chosen->text, word) ? " aria-current=\"true\"" : "", word);
	html(exchange, "</p>\n");
}

static void put_search(struct exchange *exchange, const struct part *queue)
{
	static const char * const by[][2] = { { "id", "number" }, { "key", "key" } };
	size_t i;

	html(exchange, "<div class=\"search\">");
	for (i = 0; i < ARRAY_SIZE(by); i++) {
		html(exchange, "<form action=\"%s/queue/", web.prefix);
		url(exchange, queue->text, queue->length);
		html(exchange, "/find\"><label>%s <input name=\"%s\" required></label> ",
		     by[i][1], by[i][0]);
		form_end(exchange, "find");
	}
	html(exchange, "</div>\n");
}

/* Begins the page of a queue, up to the figures of the queue. */
static bool begin_queue(struct exchange *exchange, const struct part *queue)
{
	struct request request;
	redisReply *stats;

	request_begin(&request, "TW.STATS", NULL);
	request_add_bytes(&request, queue->text, queue->length);
	stats = web_answer(exchange, &request);
	if (!stats)
		return false;
	page_begin(exchange, MHD_HTTP_OK, queue->text);
	html(exchange, "<div class=\"actions\">");
	put_actions(exchange, queue, stats);
	html(exchange, "</div>\n<details><summary>figures and settings: %s</summary>\n",
	     queue_state(stats));
	put_map(exchange, stats);
	html(exchange, "</details>\n");
	freeReplyObject(stats);
	return true;
}

void page_queue(struct exchange *exchange)
{
	const struct part *queue = &exchange->name[0];
	redisReply *list = get_list(exchange, "TW.LIST", queue);

	if (list && begin_queue(exchange, queue)) {
		html(exchange, "<h2>Jobs</h2>\n");
		put_search(exchange, queue);
		put_states(exchange);
		put_list(exchange, list, queue);
		html(exchange, "<p><a href=\"%s/queue/", web.prefix);
		url(exchange, queue->text, queue->length);
		html(exchange, "/done\">Those that are done</a>, if the queue keeps that</p>\n");
		page_end(exchange);
	}
	if (list)
		freeReplyObject(list);
}

void page_done(struct exchange *exchange)
{
	const struct part *queue = &exchange->name[0];
	redisReply *list = get_list(exchange, "TW.DONE", queue);

	if (!list)
		return;
	page_begin(exchange, MHD_HTTP_OK, "Jobs that are done");
	html(exchange, "<p>Queue ");
	put_queue_link(exchange, queue->text, queue->length);
	html(exchange, ", the newest first</p>\n");
	put_list(exchange, list, NULL);
	page_end(exchange);
	freeReplyObject(list);
}

/* Puts the rules of a queue: the first ones, or the ones behind the cursor. */
static bool put_rules(struct exchange *exchange, const struct part *queue)
{
	redisReply *list = get_list(exchange, "TW.RULES", queue);

	if (!list)
		return false;
	if (list->element[1]->elements) {
		html(exchange, "<h2>");
		put_queue_link(exchange, queue->text, queue->length);
		html(exchange, "</h2>\n");
		put_jobs(exchange, list->element[1], queue);
	}
	if (list->element[0]->integer) {
		html(exchange, "<p><a href=\"?queue=");
		url(exchange, queue->text, queue->length);
		html(exchange, "&amp;cursor=%lld\">next</a></p>\n", list->element[0]->integer);
	}
	freeReplyObject(list);
	return true;
}

/* Puts the rules of all queues, or of the one queue that the question names. */
void page_rules(struct exchange *exchange)
{
	const struct part *only = field_of(exchange, "queue");
	struct request request;
	redisReply *names;
	bool right = true;
	size_t i;

	request_begin(&request, "TW.QUEUES", NULL);
	names = web_answer(exchange, &request);
	if (!names)
		return;
	page_begin(exchange, MHD_HTTP_OK, "Rules");
	html(exchange, "<p>Jobs that come again, each with its next time.</p>\n");
	if (only)
		right = put_rules(exchange, only);
	for (i = 0; !only && right && i < names->elements; i++) {
		const struct part queue = { names->element[i]->str, names->element[i]->len };

		right = !queue.text || put_rules(exchange, &queue);
	}
	if (right)
		page_end(exchange);
	freeReplyObject(names);
}

/* Asks for a job. NULL: there is no such job, and the page says so. */
static redisReply *get_job(struct exchange *exchange, const char *verb, const struct part *queue,
			   const struct part *which)
{
	struct request request;
	redisReply *job;

	request_begin(&request, verb, NULL);
	request_add_bytes(&request, queue->text, queue->length);
	request_add_bytes(&request, which->text, which->length);
	job = web_answer(exchange, &request);
	if (!job || job->type == REDIS_REPLY_ARRAY)
		return job;
	freeReplyObject(job);
	page_wrong(exchange, MHD_HTTP_NOT_FOUND,
		   "The queue %s has no such job. It may have ended.", queue->text);
	return NULL;
}

void page_find(struct exchange *exchange)
{
	const struct part *id = field_of(exchange, "id"), *key = field_of(exchange, "key");
	redisReply *job;

	if (!id == !key) {
		page_wrong(exchange, MHD_HTTP_BAD_REQUEST, "Either a number or a key is needed.");
		return;
	}
	job = get_job(exchange, id ? "TW.GET" : "TW.GETKEY", &exchange->name[0], id ? id : key);
	if (!job)
		return;
	page_go(exchange, &exchange->name[0], number_field(job, "id"));
	freeReplyObject(job);
}

static void put_sure(struct exchange *exchange)
{
	html(exchange, "<label><input type=\"checkbox\" name=\"sure\" required> for good</label> ");
}

static void put_changes(struct exchange *exchange, const struct part *queue, long long id)
{
	html(exchange, "<h2>Change</h2>\n<div class=\"actions\">");
	form_begin(exchange, queue, id, "kick");
	form_end(exchange, "kick");
	form_begin(exchange, queue, id, "move");
	html(exchange, "<label>to <input name=\"time\" placeholder=\"tomorrow 8am\" required>");
	html(exchange, "</label> ");
	form_end(exchange, "move");
	form_begin(exchange, queue, id, "cancel");
	put_sure(exchange);
	form_end(exchange, "cancel");
	form_begin(exchange, queue, id, "delete");
	put_sure(exchange);
	form_end(exchange, "delete");
	html(exchange, "</div>\n<p><small>Kick makes the job due now, also a buried one.\n");
	html(exchange, "Cancel ends one that no worker has, delete any.</small></p>\n");
}

void page_job(struct exchange *exchange)
{
	const struct part *queue = &exchange->name[0];
	redisReply *job = get_job(exchange, "TW.GET", queue, &exchange->name[1]);
	char title[64];

	if (!job)
		return;
	snprintf(title, sizeof(title), "Job %lld", number_field(job, "id"));
	page_begin(exchange, MHD_HTTP_OK, title);
	html(exchange, "<p>Queue ");
	put_queue_link(exchange, queue->text, queue->length);
	html(exchange, "</p>\n");
	put_map(exchange, job);
	if (field(job, "body") && field(job, "body")->str)
		put_body(exchange, field(job, "body"));
	if (!web.read_only)
		put_changes(exchange, queue, number_field(job, "id"));
	page_end(exchange);
	freeReplyObject(job);
}
