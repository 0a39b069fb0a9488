// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times: spans in the grammar of systemd.time(7), and how times are printed. Points
 * of time are read in points.c.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "scan.h"
#include "times.h"

#define MINUTE	60
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

/* A month is a twelfth of 365.25 days, as in systemd.time(7). */
static const struct unit {
	const char	*name;
	uint64_t	ns;
} units[] = {
	{ "ns", 1 }, { "nsec", 1 },
	{ "us", 1000 }, { "usec", 1000 }, { "µs", 1000 }, { "μs", 1000 },
	{ "ms", 1000000 }, { "msec", 1000000 },
	{ "", NSEC_PER_SEC }, { "s", NSEC_PER_SEC }, { "sec", NSEC_PER_SEC },
	{ "second", NSEC_PER_SEC }, { "seconds", NSEC_PER_SEC },
	{ "m", MINUTE * NSEC_PER_SEC }, { "min", MINUTE * NSEC_PER_SEC },
	{ "minute", MINUTE * NSEC_PER_SEC },
	{ "minutes", MINUTE * NSEC_PER_SEC },
	{ "h", HOUR * NSEC_PER_SEC }, { "hr", HOUR * NSEC_PER_SEC },
	{ "hour", HOUR * NSEC_PER_SEC }, { "hours", HOUR * NSEC_PER_SEC },
	{ "d", DAY * NSEC_PER_SEC }, { "day", DAY * NSEC_PER_SEC },
	{ "days", DAY * NSEC_PER_SEC },
	{ "w", 7 * DAY * NSEC_PER_SEC }, { "week", 7 * DAY * NSEC_PER_SEC },
	{ "weeks", 7 * DAY * NSEC_PER_SEC },
	{ "M", 2629800 * NSEC_PER_SEC }, { "month", 2629800 * NSEC_PER_SEC },
	{ "months", 2629800 * NSEC_PER_SEC },
	{ "y", 31557600 * NSEC_PER_SEC }, { "year", 31557600 * NSEC_PER_SEC },
	{ "years", 31557600 * NSEC_PER_SEC },
};

static const struct unit *take_unit(const char **text)
{
	size_t i, length = 0;

	/* Whether the byte is a letter of ASCII, or a byte of µ. */
	while (isalpha((unsigned char)(*text)[length]) || (*text)[length] & 0x80)
		length++;
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == length &&
		    !strncmp(units[i].name, *text, length)) {
			*text += length;
			return &units[i];
		}
	}
	return NULL;
}

/*
 * Reads one part like "1.5 h", and the white space around it. *@bare: the part has no unit.
 * Returns false if the text is no such part.
 */
static bool take_part(const char **text, __int128 *ns, bool *bare)
{
	uint64_t whole, billionths = 0;
	const struct unit *unit;

	*text = skip_space(*text);
	if (!take_number(text, 18, &whole) ||
	    (**text == '.' && (++*text, !take_fraction(text, &billionths))))
		return refuse("%s", "");
	*text = skip_space(*text);
	unit = take_unit(text);
	if (!unit)
		return refuse("'%s' is no unit of time: take ns, us, ms, s, min, h, d, w, M or y",
			      *text);
	*bare = !*unit->name;
	*text = skip_space(*text);
	*ns = (__int128)whole * unit->ns +
	      (__int128)billionths * unit->ns / NSEC_PER_SEC;
	return true;
}

/* Parts without a unit are seconds, but the user who writes 1h30 may mean minutes. */
static bool refuse_bare(uint64_t ns)
{
	char understood[TIME_TEXT];

	span_text(understood, sizeof(understood), ns);
	return refuse("a number without a unit is understood as %s: write its unit, too",
		      understood);
}

bool span_parse(const char *text, uint64_t *ns)
{
	const char *at = skip_space(text);
	__int128 sum = 0, part = 0;
	bool is_bare = false;
	uint64_t bare = 0;
	int parts = 0, bares = 0;

	if (*at == '-' && isdigit((unsigned char)at[1]))
		return refuse("understood as %s before now: a span is not less than 0",
			      at + 1);
	do {
		if (!take_part(&at, &part, &is_bare))
			return false;
		parts++;
		if (is_bare && !bares++)
			bare = part;
		sum += part;
		if (sum > TIME_MAX_NS)
			return refuse("longer than 292 years");
	} while (*at);
	*ns = sum;
	return !bares || parts == 1 || refuse_bare(bare);
}

/* Whether the text is like 8.30, which is 8.3 seconds, and may be meant as a time of day. */
static bool is_dotted_time(const char *text)
{
	const char *at = skip_space(text);
	uint64_t hour, minute;

	return take_number(&at, 2, &hour) && hour < 24 && *at == '.' &&
	       strspn(++at, "0123456789") == 2 && take_number(&at, 2, &minute) &&
	       minute < 60 && !*skip_space(at);
}

bool when_parse(const char *text, uint64_t real_now, struct when *when)
{
	text = skip_space(text);
	if (take_word(&text, "clock")) {
		when->kind = WHEN_CLOCK;
		if (!take_number(&text, 19, &when->ns) || *skip_space(text) ||
		    when->ns > TIME_MAX_NS)
			return refuse("the clock's ns go from 0 to %llu",
				      (unsigned long long)TIME_MAX_NS);
		return true;
	}
	if (*text == '+') {
		text++;
	} else if (take_word(&text, "at") ||
		   (!take_word(&text, "in") && point_begins(text))) {
		when->kind = WHEN_REAL;
		return point_parse(text, real_now, &when->ns);
	}
	when->kind = WHEN_SPAN;
	if (is_dotted_time(text)) {
		text = skip_space(text);
		return refuse("understood as %s seconds: write %ss, or %.*s:%.2s for a time of day",
			      text, text, (int)strcspn(text, "."), text,
			      strchr(text, '.') + 1);
	}
	return span_parse(text, &when->ns);
}

/* Adds a random part of @span, from 0 to all of it. Returns false and sets errno if it fails. */
bool when_spread(struct when *when, uint64_t span)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) < 0)
		return false;
	when->ns += (__int128)random * (span + 1) >> 64;
	return true;
}

/* Prints three digits, like 1.25, 12.5 and 125, without trailing zeros. */
static void decimal_text(char *text, size_t size, const char *sign, double value,
			 const char *unit)
{
	int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	char number[32], *end;

	snprintf(number, sizeof(number), "%.*f", digits, value);
	if (strchr(number, '.')) {
		for (end = number + strlen(number); end[-1] == '0'; end--)
			;
		*(end[-1] == '.' ? end - 1 : end) = '\0';
	}
	snprintf(text, size, "%s%s%s", sign, number, unit);
}

/* Prints two units of a long span, or three digits of a short one. */
void span_text(char *text, size_t size, int64_t ns)
{
	const char *sign = ns < 0 ? "-" : "";
	uint64_t span = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	uint64_t s = (span + NSEC_PER_SEC / 2) / NSEC_PER_SEC;
	unsigned long long high, low;
	const char *high_unit = "m", *low_unit = "s";

	if (span < 1000) {
		snprintf(text, size, "%s%lluns", sign, (unsigned long long)span);
		return;
	}
	if (span < 999500) {
		decimal_text(text, size, sign, span / 1e3, "us");
		return;
	}
	if (span < 999500000) {
		decimal_text(text, size, sign, span / 1e6, "ms");
		return;
	}
	if (span < 59950000000ULL) {
		decimal_text(text, size, sign, span / 1e9, "s");
		return;
	}
	if (s < HOUR) {
		high = s / MINUTE;
		low = s % MINUTE;
	} else if (s < 2 * DAY) {
		high = s / HOUR;
		low = s % HOUR / MINUTE;
		high_unit = "h";
		low_unit = "m";
	} else {
		high = s / DAY;
		low = s % DAY / HOUR;
		high_unit = "d";
		low_unit = "h";
	}
	if (low)
		snprintf(text, size, "%s%llu%s%llu%s", sign, high, high_unit, low,
			 low_unit);
	else
		snprintf(text, size, "%s%llu%s", sign, high, high_unit);
}

/* Prints a span in the unit that @like ends with, if the span is a whole number of it. */
void span_text_like(char *text, size_t size, uint64_t ns, const char *like)
{
	const char *at = like + strcspn(like, "0123456789");
	const struct unit *unit;

	at += strspn(at, "0123456789. ");
	unit = take_unit(&at);
	if (unit && *unit->name && !*at && !(ns % unit->ns))
		snprintf(text, size, "%llu%s", (unsigned long long)(ns / unit->ns),
			 unit->name);
	else
		span_text(text, size, ns);
}

/* Prints local time; with @iso in the form of RFC 3339 and with the offset. */
void real_text(char *text, size_t size, uint64_t ns, bool iso)
{
	time_t s = ns / NSEC_PER_SEC;
	struct tm tm;
	long offset;
	int length;

	localtime_r(&s, &tm);
	length = snprintf(text, size, "%d-%02d-%02d%c%02d:%02d:%02d", tm.tm_year + 1900,
			  tm.tm_mon + 1, tm.tm_mday, iso ? 'T' : ' ', tm.tm_hour,
			  tm.tm_min, tm.tm_sec);
	if (!iso)
		return;
	offset = labs(tm.tm_gmtoff) / MINUTE;
	snprintf(text + length, size - length, ".%06llu%c%02ld:%02ld",
		 (unsigned long long)(ns % NSEC_PER_SEC / 1000),
		 tm.tm_gmtoff < 0 ? '-' : '+', offset / 60, offset % 60);
}
