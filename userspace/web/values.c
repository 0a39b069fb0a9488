// SPDX-License-Identifier: GPL-2.0-only
/*
 * Values of twjobd's answers, by their names: a page shows all that an answer has, also values
 * that this program does not know.
 */
#include <ctype.h>

#include "web.h"

/* The most bytes that are shown: of a value in a table, of a body, of a body in hexadecimal. */
#define MOST_VALUE	1024
#define MOST_BODY	65536
#define MOST_HEX	4096
#define HEX_LINE	16
/* JSON that is nested deeper is shown as text. */
#define MOST_DEPTH	32
/* Smaller numbers are no times after 1973: a queue's "due", for one, is a number of jobs. */
#define LEAST_TIME	100000000000
/* Longer times are shown as plain numbers. */
#define MOST_MS		((long long)(TIME_MAX_NS / NSEC_PER_MSEC))

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), of_end = strlen(end);

	return length > of_end && !strcmp(name + length - of_end, end);
}

/* Puts a name as words: "lease_left_ms" becomes "lease left". */
void put_label(struct exchange *exchange, const char *name)
{
	size_t length = strlen(name) - (ends_in(name, "_ms") ? 3 : 0), i;

	for (i = 0; i < length; i++)
		text(exchange, name[i] == '_' ? " " : &name[i], 1);
}

/* Puts a time, given in milliseconds since 1970. */
static void put_time(struct exchange *exchange, long long ms)
{
	int64_t from_now = ms * (int64_t)NSEC_PER_MSEC - (int64_t)real_now();
	char when[TIME_TEXT], span[TIME_TEXT];

	real_text(when, sizeof(when), ms * NSEC_PER_MSEC, false);
	span_text(span, sizeof(span), llabs(from_now));
	html(exchange, "<time>%s</time> <small>%s%s%s</small>", when,
	     from_now > 0 ? "in " : "", span, from_now > 0 ? "" : " ago");
}

static void put_number(struct exchange *exchange, const char *name, long long number)
{
	static const char * const times[] = { "due", "failed", "ended" };
	char span[TIME_TEXT];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		if (!strcmp(name, times[i]) && number > LEAST_TIME && number < MOST_MS) {
			put_time(exchange, number);
			return;
		}
	}
	if (ends_in(name, "_ms") && number && number > -MOST_MS && number < MOST_MS) {
		span_text(span, sizeof(span), number * (int64_t)NSEC_PER_MSEC);
		text_of(exchange, span);
	} else {
		html(exchange, "%lld", number);
	}
}

void put_value(struct exchange *exchange, const char *name, const redisReply *value)
{
	if (value && value->type == REDIS_REPLY_INTEGER) {
		put_number(exchange, name, value->integer);
	} else if (value && value->str) {
		text(exchange, value->str, value->len < MOST_VALUE ? value->len : MOST_VALUE);
		if (value->len > MOST_VALUE)
			html(exchange, "&hellip;");
	} else {
		html(exchange, "&ndash;");
	}
}

/* Puts all names and values, except a body, which is shown by itself. */
void put_map(struct exchange *exchange, const redisReply *map)
{
	size_t i;

	html(exchange, "<table class=\"map\">\n");
	for (i = 0; i + 1 < map->elements; i += 2) {
		const char *name = map->element[i]->str;

		if (!name || !strcmp(name, "body"))
			continue;
		html(exchange, "<tr><th scope=\"row\">");
		put_label(exchange, name);
		html(exchange, "</th><td>");
		put_value(exchange, name, map->element[i + 1]);
		html(exchange, "</td></tr>\n");
	}
	html(exchange, "</table>\n");
}

/* This part shows bodies. */

static void put_hex(struct exchange *exchange, const char *bytes, size_t length)
{
	size_t at, i;

	for (at = 0; at < length; at += HEX_LINE) {
		html(exchange, "%06zx ", at);
		for (i = at; i < at + HEX_LINE; i++) {
			if (i < length)
				html(exchange, " %02x", (unsigned char)bytes[i]);
			else
				html(exchange, "   ");
		}
		html(exchange, "  ");
		for (i = at; i < length && i < at + HEX_LINE; i++)
			text(exchange, isprint((unsigned char)bytes[i]) ? &bytes[i] : ".", 1);
		html(exchange, "\n");
	}
}

/* Returns the length of a string in quotes, 0 if it does not end. */
static size_t string_length(const char *at, size_t left)
{
	size_t i;

	for (i = 1; i < left; i++) {
		if (at[i] == '"')
			return i + 1;
		i += at[i] == '\\';
	}
	return 0;
}

/* Whether a body looks like JSON: brackets and quotes end in the right order. */
static bool is_json(const char *at, size_t length)
{
	char open[MOST_DEPTH];
	size_t depth = 0, one;

	if (!length || (*at != '{' && *at != '['))
		return false;
	for (; length; at += one, length -= one) {
		one = *at == '"' ? string_length(at, length) : 1;
		if (!one || (*at == '{' || *at == '[' ? depth == MOST_DEPTH : false))
			return false;
		if (*at == '{' || *at == '[')
			open[depth++] = *at;
		else if ((*at == '}' || *at == ']') &&
			 (!depth || open[--depth] != (*at == '}' ? '{' : '[')))
			return false;
	}
	return !depth;
}

static void put_indent(struct exchange *exchange, int depth)
{
	html(exchange, "\n%*s", 2 * depth, "");
}

/* Puts a line for each member. Only blanks between members are changed. */
static void put_json(struct exchange *exchange, const char *at, size_t length)
{
	size_t one;
	int depth = 0;

	for (; length; at += one, length -= one) {
		one = *at == '"' ? string_length(at, length) : 1;
		if (isspace((unsigned char)*at))
			continue;
		if (*at == '}' || *at == ']')
			put_indent(exchange, --depth);
		text(exchange, at, one);
		if (*at == '{' || *at == '[')
			put_indent(exchange, ++depth);
		else if (*at == ',')
			put_indent(exchange, depth);
		else if (*at == ':')
			html(exchange, " ");
	}
}

static void put_choices(struct exchange *exchange, const char *chosen)
{
	static const char * const choices[] = { "text", "json", "hex" };
	size_t i;

	html(exchange, "<p>as");
	for (i = 0; i < ARRAY_SIZE(choices); i++) {
		if (strcmp(choices[i], chosen))
			html(exchange, " <a href=\"?as=%s\">%s</a>", choices[i], choices[i]);
		else
			html(exchange, " <b>%s</b>", choices[i]);
	}
	html(exchange, "</p>\n");
}

/* Shows a body as the question says, else by the body's looks. */
static const char *kind_of(const struct exchange *exchange, const redisReply *body)
{
	const struct part *as = field_of(exchange, "as");

	if (as && !strcmp(as->text, "hex"))
		return "hex";
	if (!as && !utf8_all(body->str, body->len))
		return "hex";
	if (as && !strcmp(as->text, "text"))
		return "text";
	return body->len <= MOST_BODY && is_json(body->str, body->len) ? "json" : "text";
}

void put_body(struct exchange *exchange, const redisReply *body)
{
	const char *kind = kind_of(exchange, body);
	size_t most = strcmp(kind, "hex") ? MOST_BODY : MOST_HEX;
	size_t shown = body->len < most ? body->len : most;

	html(exchange, "<h2>Body</h2>\n");
	put_choices(exchange, kind);
	html(exchange, "<pre>");
	if (!strcmp(kind, "hex"))
		put_hex(exchange, body->str, shown);
	else if (!strcmp(kind, "json"))
		put_json(exchange, body->str, shown);
	else
		text(exchange, body->str, shown);
	html(exchange, "</pre>\n");
	if (shown < body->len)
		html(exchange, "<p>These are the first %zu of %zu bytes.</p>\n", shown,
		     (size_t)body->len);
}
