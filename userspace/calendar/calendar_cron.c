// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines of cron as recurrence rules: see calendar.h. The fields are those of
 * crontab(5) of Debian.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "calendar.h"

enum {
	MINUTE, HOUR, DAY, MONTH, WEEKDAY, FIELDS
};

static const char * const months[] = {
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct",
	"nov", "dec", NULL
};

static const char * const weekdays[] = {
	"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL
};

/* @part: its part of a recurrence rule. @names: the names of the numbers from @least on. */
static const struct kind {
	const char *name, *part;
	int least, most;
	const char * const *names;
} kinds[FIELDS] = {
	[MINUTE] = { "minute", "BYMINUTE", 0, 59, NULL },
	[HOUR] = { "hour", "BYHOUR", 0, 23, NULL },
	[DAY] = { "day of the month", "BYMONTHDAY", 1, 31, NULL },
	[MONTH] = { "month", "BYMONTH", 1, 12, months },
	[WEEKDAY] = { "day of the week", "BYDAY", 0, 7, weekdays },
};

/* @star: the text begins with "*". @set: a bit for each number. */
struct field {
	uint64_t set;
	bool star;
};

static const struct {
	const char *name, *line;
} names[] = {
	{ "@yearly", "0 0 1 1 *" },
	{ "@annually", "0 0 1 1 *" },
	{ "@monthly", "0 0 1 * *" },
	{ "@weekly", "0 0 * * 0" },
	{ "@daily", "0 0 * * *" },
	{ "@midnight", "0 0 * * *" },
	{ "@hourly", "0 * * * *" },
};

/* Reads a number, or a name, at @at. Returns what is behind it, NULL if there is none. */
static const char *read_number(const struct kind *kind, const char *at, int *number)
{
	char *end;

	for (int i = 0; kind->names && kind->names[i]; i++) {
		if (strncasecmp(at, kind->names[i], 3))
			continue;
		*number = kind->least + i;
		return at + 3;
	}
	if (*at < '0' || *at > '9')
		return NULL;
	*number = strtoul(at, &end, 10);
	if (end - at > 3 || *number < kind->least || *number > kind->most)
		return NULL;
	return end;
}

/* Reads "*", "7" or "1-5"; "/2" may follow the first and the last. */
static const char *read_range(const struct kind *kind, const char *at,
			      uint64_t *set)
{
	int first = kind->least, last = kind->most, step = 1;
	bool range = *at == '*';
	char *end;

	if (range)
		at++;
	else
		at = read_number(kind, at, &first);
	if (at && !range) {
		last = first;
		range = *at == '-';
		if (range)
			at = read_number(kind, at + 1, &last);
	}
	if (at && *at == '/' && range) {
		step = strtoul(at + 1, &end, 10);
		if (at[1] < '0' || at[1] > '9' || end - at > 4)
			return NULL;
		at = end;
	}
	if (!at || first > last || step < 1)
		return NULL;
	for (int i = first; i <= last; i += step)
		*set |= 1ULL << i;
	return at;
}

static bool read_field(const struct kind *kind, const char *text,
		       struct field *field, char why[CALENDAR_WHY])
{
	const char *at = text;

	*field = (struct field) { .star = *text == '*' };
	for (;;) {
		at = read_range(kind, at, &field->set);
		if (!at || *at != ',')
			break;
		at++;
	}
	if (!at || *at) {
		snprintf(why, CALENDAR_WHY,
			 "\"%.20s\" is no %s: it is made of *, %d-%d, lists as in 1,3, ranges as in 1-5, and steps as in */2",
			 text, kind->name, kind->least, kind->most);
		return false;
	}
	if (kind->most == 7) {
		field->set |= field->set >> 7;
		field->set &= 0x7f;
	}
	return true;
}

/* Whether the field has all its numbers, as all days of a month. */
static bool is_all(int which, const struct field *field)
{
	const struct kind *kind = &kinds[which];
	int most = which == WEEKDAY ? 6 : kind->most;

	for (int i = kind->least; i <= most; i++)
		if (!(field->set >> i & 1))
			return false;
	return true;
}

static void add_part(char *rule, int which, const struct field *field)
{
	static const char days[] = "SU\0MO\0TU\0WE\0TH\0FR\0SA";
	size_t length = strlen(rule);
	char sign = '=';

	length += sprintf(rule + length, ";%s", kinds[which].part);
	for (int i = 0; i < 60; i++) {
		if (!(field->set >> i & 1))
			continue;
		length += which == WEEKDAY ?
			  sprintf(rule + length, "%c%s", sign, days + 3 * i) :
			  sprintf(rule + length, "%c%d", sign, i);
		sign = ',';
	}
}

/* @days: DAY, WEEKDAY, or FIELDS for both. */
static void make_rule(char *rule, const struct field *fields, int days)
{
	strcpy(rule, "FREQ=DAILY;BYSECOND=0");
	add_part(rule, MINUTE, &fields[MINUTE]);
	add_part(rule, HOUR, &fields[HOUR]);
	if (!is_all(MONTH, &fields[MONTH]))
		add_part(rule, MONTH, &fields[MONTH]);
	if (days != WEEKDAY && !is_all(DAY, &fields[DAY]))
		add_part(rule, DAY, &fields[DAY]);
	if (days != DAY && !is_all(WEEKDAY, &fields[WEEKDAY]))
		add_part(rule, WEEKDAY, &fields[WEEKDAY]);
}

static const char *line_of(const char *name, char why[CALENDAR_WHY])
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcasecmp(name, names[i].name))
			return names[i].line;
	snprintf(why, CALENDAR_WHY,
		 "%.20s is no time: there are @hourly, @daily, @weekly, @monthly and @yearly",
		 name);
	return NULL;
}

int cron_to_rules(const char *text, char rules[CRON_RULES][CALENDAR_TEXT],
		  bool *within_day, char why[CALENDAR_WHY])
{
	char line[CALENDAR_TEXT], *words[FIELDS + 1], *rest;
	struct field fields[FIELDS];
	int count = 0;

	if (*text == '@')
		text = line_of(text, why);
	if (!text)
		return 0;
	snprintf(line, sizeof(line), "%s", text);
	for (char *word = strtok_r(line, " \t\r\n", &rest); word && count <= FIELDS;
	     word = strtok_r(NULL, " \t\r\n", &rest))
		words[count++] = word;
	if (count != FIELDS) {
		snprintf(why, CALENDAR_WHY,
			 "it is neither FREQ=... nor the five fields of cron: minute, hour, day of the month, month, day of the week");
		return 0;
	}
	for (int i = 0; i < FIELDS; i++)
		if (!read_field(&kinds[i], words[i], &fields[i], why))
			return 0;
	*within_day = fields[MINUTE].star || fields[HOUR].star;
	if (fields[DAY].star || fields[WEEKDAY].star) {
		make_rule(rules[0], fields, FIELDS);
		return 1;
	}
	make_rule(rules[0], fields, DAY);
	make_rule(rules[1], fields, WEEKDAY);
	return 2;
}
