// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the arguments of verbs mean: numbers, times, keys. This file knows neither queues nor
 * jobs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "verbs.h"

#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
			"abcdefghijklmnopqrstuvwxyz0123456789-_"
/* A number or a time has at most this many bytes. */
#define MAX_TEXT	40

bool arg_is(struct bytes arg, const char *word)
{
	return arg.length == strlen(word) &&
	       !strncasecmp(arg.data, word, arg.length);
}

bool arg_is_name(struct bytes arg)
{
	for (size_t i = 0; i < arg.length; i++)
		if (!memchr(NAME_BYTES, arg.data[i], sizeof(NAME_BYTES) - 1))
			return false;
	return arg.length && arg.length < NAME_SIZE;
}

/*
 * Reads digits. Returns the text behind them, or NULL if there are no digits or the number
 * exceeds @most.
 */
static const char *digits(const char *text, uint64_t most, uint64_t *number)
{
	const char *at = text;

	for (*number = 0; *at >= '0' && *at <= '9'; at++) {
		*number = *number * 10 + (*at - '0');
		if (*number > most)
			return NULL;
	}
	return at == text ? NULL : at;
}

bool arg_text(struct bytes arg, char *text, size_t size)
{
	if (arg.length >= size || memchr(arg.data, '\0', arg.length))
		return false;
	memcpy(text, arg.data, arg.length);
	text[arg.length] = '\0';
	return true;
}

bool arg_number(struct request *request, struct bytes arg, uint64_t least,
		uint64_t most, uint64_t *number)
{
	char text[MAX_TEXT];
	const char *end;

	if (arg_text(arg, text, sizeof(text))) {
		end = digits(text, most, number);
		if (end && !*end && *number >= least)
			return true;
	}
	reply_error(request->reply, "ERR not a number from %llu to %llu",
		    (unsigned long long)least, (unsigned long long)most);
	return false;
}

/* Reads "", or "." and digits, as ms. A part of a ms counts as a whole ms. */
static const char *fraction(const char *text, uint64_t *ms)
{
	uint64_t unit = 100;
	bool more = false;

	*ms = 0;
	if (*text != '.')
		return text;
	for (text++; *text >= '0' && *text <= '9'; text++) {
		*ms += (*text - '0') * unit;
		more |= !unit && *text != '0';
		unit /= 10;
	}
	*ms += more;
	return text;
}

bool arg_seconds(struct request *request, struct bytes arg, uint64_t *ms)
{
	char text[MAX_TEXT];
	const char *end = NULL;
	uint64_t seconds, rest;

	if (arg_text(arg, text, sizeof(text)))
		end = digits(text, MAX_DUE / MSEC_PER_SEC - 1, &seconds);
	if (end)
		end = fraction(end, &rest);
	if (!end || *end) {
		reply_error(request->reply,
			    "ERR not a number of seconds, such as 30 or 0.5");
		return false;
	}
	*ms = seconds * MSEC_PER_SEC + rest;
	return true;
}

/* Reads "Z", "+HH:MM" or "-HH:MM", as seconds east of Greenwich. */
static bool parse_zone(const char *text, int64_t *east)
{
	struct tm zone = { };
	const char *end;

	*east = 0;
	if ((*text == 'Z' || *text == 'z') && !text[1])
		return true;
	if (*text != '+' && *text != '-')
		return false;
	end = strptime(text + 1, "%H:%M", &zone);
	if (!end || *end)
		return false;
	*east = zone.tm_hour * 3600 + zone.tm_min * 60;
	if (*text == '-')
		*east = -*east;
	return true;
}

/* Tells whether the day exists: timegm() turns 31 February into another day. */
static bool is_day(struct tm date)
{
	int day = date.tm_mday;

	timegm(&date);
	return date.tm_mday == day;
}

/* Reads a time of RFC 3339, as in 2026-12-24T15:22:35.5+01:00. */
static bool parse_date(const char *text, uint64_t *due)
{
	struct tm date = { };
	const char *end = strptime(text, "%Y-%m-%d", &date);
	int64_t east, seconds;
	uint64_t ms;

	if (!end || !strchr("Tt ", *end) || !*end || !is_day(date))
		return false;
	end = strptime(end + 1, "%H:%M:%S", &date);
	if (!end)
		return false;
	end = fraction(end, &ms);
	if (!parse_zone(end, &east))
		return false;
	seconds = timegm(&date) - east;
	if (seconds < 0)
		return false;
	*due = seconds * MSEC_PER_SEC + ms;
	return true;
}

static bool parse_at(struct request *request, struct bytes arg, uint64_t *due)
{
	char text[MAX_TEXT];
	const char *end;

	if (arg_text(arg, text, sizeof(text))) {
		end = digits(text, MAX_DUE, due);
		if (end && !*end)
			return true;
		if (parse_date(text, due) && *due <= MAX_DUE)
			return true;
	}
	reply_error(request->reply,
		    "ERR not a time: ms since 1970, or as in 2026-12-24T15:22:35+01:00");
	return false;
}

bool arg_due(struct request *request, int i, uint64_t *due)
{
	uint64_t ms;

	if (i + 1 >= request->argc) {
		reply_error(request->reply, "ERR a time is missing");
		return false;
	}
	if (arg_is(request->argv[i], "AT"))
		return parse_at(request, request->argv[i + 1], due);
	if (!arg_is(request->argv[i], "IN")) {
		reply_error(request->reply, "ERR expected IN or AT");
		return false;
	}
	if (!arg_seconds(request, request->argv[i + 1], &ms))
		return false;
	/* The present ms has already begun. One ms is added, so that no job is early. */
	*due = now_ms() + ms + (ms != 0);
	if (*due > MAX_DUE)
		*due = MAX_DUE;
	return true;
}

bool arg_key(struct request *request, struct bytes arg, struct bytes *key)
{
	if (!arg.length || arg.length > MAX_KEY) {
		reply_error(request->reply, "ERR a key has 1 to %d bytes",
			    MAX_KEY);
		return false;
	}
	*key = arg;
	return true;
}

bool arg_span(struct request *request, struct bytes arg, const char *what, uint64_t *ms)
{
	if (!arg_seconds(request, arg, ms))
		return false;
	if (*ms && *ms <= MAX_SPAN)
		return true;
	reply_error(request->reply, "ERR %s is 0.001 to %llu seconds", what,
		    MAX_SPAN / MSEC_PER_SEC);
	return false;
}

bool arg_backoff(struct request *request, int i, uint64_t *backoff, uint64_t *most)
{
	static const char what[] = "a back-off";

	if (!arg_span(request, request->argv[i + 1], what, backoff) ||
	    !arg_span(request, request->argv[i + 2], what, most))
		return false;
	if (*backoff <= *most)
		return true;
	reply_error(request->reply, "ERR the first value of BACKOFF is more than the last one");
	return false;
}

void answer_no_limit(struct reply *reply)
{
	reply_error(reply, "ERR a limit needs a store on one machine");
}

static bool arg_group(struct request *request, struct bytes arg, struct options *options)
{
	if (store->shared) {
		answer_no_limit(request->reply);
		return false;
	}
	if (!arg.length || arg.length > sizeof(options->group)) {
		reply_error(request->reply, "ERR a group has 1 to %zu bytes",
			    sizeof(options->group));
		return false;
	}
	memset(options->group, 0, sizeof(options->group));
	options->group_length = arg.length;
	memcpy(options->group, arg.data, arg.length);
	return true;
}

int arg_option(struct request *request, int i, int end, struct options *options)
{
	struct bytes option = request->argv[i];
	uint64_t tries;
	bool right;

	if (arg_is(option, "BACKOFF")) {
		if (i + 2 < end)
			return arg_backoff(request, i, &options->backoff,
					   &options->backoff_most) ? 3 : -1;
		reply_error(request->reply, "ERR BACKOFF has two values, in seconds");
		return -1;
	}
	if (i + 1 >= end)
		return 0;
	if (arg_is(option, "LEASE")) {
		right = arg_span(request, request->argv[i + 1], "a lease", &options->lease);
	} else if (arg_is(option, "TRIES")) {
		right = arg_number(request, request->argv[i + 1], 0, MAX_TRIES, &tries);
		options->tries = tries;
	} else if (arg_is(option, "GROUP")) {
		right = arg_group(request, request->argv[i + 1], options);
	} else {
		return 0;
	}
	return right ? 2 : -1;
}
