// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads rules: see calendar_rule.h. A rule that cannot be carried out as RFC 5545 says is
 * refused, with the reason.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "calendar_rule.h"

#define ENDS		ICAL_RECURRENCE_ARRAY_MAX
#define MAX_INTERVAL	32767
#define MAX_COUNT	10000

bool calendar_refuse(char why[CALENDAR_WHY], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, CALENDAR_WHY, format, args);
	va_end(args);
	return false;
}

int64_t calendar_seconds(struct icaltimetype time)
{
	struct tm tm = {
		.tm_year = time.year - 1900, .tm_mon = time.month - 1,
		.tm_mday = time.day, .tm_hour = time.hour,
		.tm_min = time.minute, .tm_sec = time.second,
	};

	return timegm(&tm);
}

struct tm calendar_split(int64_t local)
{
	time_t seconds = local;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return tm;
}

/*
 * Returns the count of a list of so many bytes. libical puts an end into a list that is not
 * full.
 */
static int count_of(const short *numbers, size_t bytes)
{
	int count = 0;

	while (count < (int)(bytes / sizeof(*numbers)) && numbers[count] != ENDS)
		count++;
	return count;
}

/* Returns the numbers of a list as bits, or @otherwise if there are none. */
static uint64_t bits_of(const short *numbers, size_t bytes, uint64_t otherwise)
{
	int count = count_of(numbers, bytes);
	uint64_t bits = 0;

	for (int i = 0; i < count; i++)
		if (numbers[i] >= 0 && numbers[i] < 60)
			bits |= 1ULL << numbers[i];
	return count ? bits : otherwise;
}

#define ALL(n)	((1ULL << (n)) - 1)

/*
 * Sets the times of a day. Without a DTSTART, units that are smaller than the ones the rule
 * names are 0.
 */
static void set_times(struct recurrence *rule, const struct icalrecurrencetype *r,
		      int64_t start, bool has_start)
{
	bool hour = r->by_hour[0] != ENDS, minute = r->by_minute[0] != ENDS;
	bool second = r->by_second[0] != ENDS;
	uint64_t hours = 1ULL << start / 3600 % 24;
	uint64_t minutes = 1ULL << start / 60 % 60, seconds = 1ULL << start % 60;

	if (!has_start && hour)
		minutes = 1;
	if (!has_start && (hour || minute))
		seconds = 1;
	if (!has_start && !hour && (minute || second) && !rule->unit)
		hours = 1;
	if (!has_start && !hour && !minute && second && !rule->unit)
		minutes = 1;
	rule->hours = bits_of(r->by_hour, sizeof(r->by_hour),
			      rule->unit ? ALL(24) : hours);
	rule->minutes = bits_of(r->by_minute, sizeof(r->by_minute),
				rule->unit && rule->unit <= 60 ? ALL(60) : minutes);
	rule->seconds = bits_of(r->by_second, sizeof(r->by_second),
				rule->unit == 1 ? ALL(60) : seconds);
}

static bool has_positions(const struct days *days)
{
	for (int i = 0; i < days->nr_weekdays; i++)
		if (icalrecurrencetype_day_position(days->parts.by_day[i]))
			return true;
	return false;
}

/* Whether the days never come, as the 30th of February. */
static bool never_comes(const struct days *days)
{
	static const int longest[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const struct icalrecurrencetype *parts = &days->parts;

	for (int i = 0; i < days->nr_months; i++)
		for (int j = 0; j < days->nr_month_days; j++)
			if (parts->by_month[i] < 1 || parts->by_month[i] > 12 ||
			    abs(parts->by_month_day[j]) <= longest[parts->by_month[i] - 1])
				return false;
	return days->nr_months && days->nr_month_days;
}

/* Refuses rules that libical reads, and that cannot be carried out here. */
static bool check(const struct recurrence *rule, char why[CALENDAR_WHY])
{
	const struct days *days = &rule->days;
	enum icalrecurrencetype_frequency freq = days->parts.freq;
	bool months = freq == ICAL_MONTHLY_RECURRENCE || freq == ICAL_YEARLY_RECURRENCE;
	int times = __builtin_popcountll(rule->hours) *
		    __builtin_popcountll(rule->minutes) *
		    __builtin_popcountll(rule->seconds);

	if (days->nr_positions && (times != 1 || !months))
		return calendar_refuse(why,
			"BYSETPOS works with FREQ=MONTHLY and YEARLY only, and with one time of the day");
	/* Programs disagree about the days of such rules. */
	if (days->parts.by_week_no[0] != ENDS)
		return calendar_refuse(why, "BYWEEKNO is not known here");
	if (days->nr_year_days && (days->nr_months || days->nr_month_days ||
				   (!rule->unit && freq != ICAL_YEARLY_RECURRENCE)))
		return calendar_refuse(why,
			"BYYEARDAY works neither with BYMONTH and BYMONTHDAY nor with FREQ=DAILY, WEEKLY and MONTHLY");
	if (days->nr_month_days && freq == ICAL_WEEKLY_RECURRENCE)
		return calendar_refuse(why, "BYMONTHDAY does not work with FREQ=WEEKLY");
	if (days->nr_month_days && has_positions(days))
		return calendar_refuse(why, "BYMONTHDAY does not work with a BYDAY as in 1MO");
	if (has_positions(days) && !months)
		return calendar_refuse(why,
			"a BYDAY as in 1MO works with FREQ=MONTHLY and YEARLY only");
	if (never_comes(days))
		return calendar_refuse(why,
			"no time would come by it: no month that it names has such a day");
	return true;
}

static struct days read_days(const struct icalrecurrencetype *r)
{
	return (struct days) {
		.parts = *r,
		.nr_months = count_of(r->by_month, sizeof(r->by_month)),
		.nr_month_days = count_of(r->by_month_day, sizeof(r->by_month_day)),
		.nr_year_days = count_of(r->by_year_day, sizeof(r->by_year_day)),
		.nr_weekdays = count_of(r->by_day, sizeof(r->by_day)),
		.nr_positions = count_of(r->by_set_pos, sizeof(r->by_set_pos)),
		/* The first of January 1970 was a Thursday. */
		.week = (int)(r->week_start + 2) % 7 - 7,
	};
}

/* A rule that names no days means days like the first one. */
static void set_days(struct recurrence *rule, int64_t start)
{
	struct days *days = &rule->days;
	struct icalrecurrencetype *parts = &days->parts;
	struct tm first = calendar_split(start);

	rule->day = -1;
	if (rule->unit) {
		parts->freq = ICAL_DAILY_RECURRENCE;
		parts->interval = 1;
	}
	if (parts->freq == ICAL_DAILY_RECURRENCE || days->nr_weekdays ||
	    days->nr_month_days || days->nr_year_days)
		return;
	if (parts->freq == ICAL_WEEKLY_RECURRENCE) {
		/* libical counts days of the week from 1 for Sunday. */
		parts->by_day[0] = first.tm_wday + 1;
		days->nr_weekdays = 1;
		return;
	}
	parts->by_month_day[0] = first.tm_mday;
	days->nr_month_days = 1;
	if (parts->freq == ICAL_YEARLY_RECURRENCE && !days->nr_months) {
		parts->by_month[0] = first.tm_mon + 1;
		days->nr_months = 1;
	}
}

/* Checks that a part is a number from 1 on, with nothing behind it. */
static bool check_number(const char *name, const char *text, unsigned long most,
			 char why[CALENDAR_WHY])
{
	size_t length = strcspn(text, ";"), digits = strspn(text, "0123456789");
	unsigned long number = strtoul(text, NULL, 10);

	if (digits == length && number && number <= most)
		return true;
	return calendar_refuse(why, "%s=%.*s: this is a number from 1 to %lu", name,
			       (int)(length < 20 ? length : 20), text, most);
}

/* Checks that each part is known, is there once, and is not longer than libical can hold. */
static bool check_parts(const char *text, char why[CALENDAR_WHY])
{
	static const char * const names[] = {
		"FREQ", "UNTIL", "COUNT", "INTERVAL", "BYSECOND", "BYMINUTE",
		"BYHOUR", "BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO",
		"BYMONTH", "BYSETPOS", "WKST",
	};
	size_t i, length, seen = 0;

	for (; *text; text += strcspn(text, ";") + 1) {
		length = strcspn(text, "=;");
		for (i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (length == strlen(names[i]) &&
			    !strncasecmp(text, names[i], length))
				break;
		if (i == sizeof(names) / sizeof(*names) || text[length] != '=')
			return calendar_refuse(why,
				"\"%.*s\" is no part of a rule that is known here",
				(int)(length < 20 ? length : 20), text);
		if (seen & 1 << i)
			return calendar_refuse(why, "%s is there twice", names[i]);
		seen |= 1 << i;
		if (!strcmp(names[i], "INTERVAL") &&
		    !check_number(names[i], text + length + 1, MAX_INTERVAL, why))
			return false;
		if (!strcmp(names[i], "COUNT") &&
		    !check_number(names[i], text + length + 1, MAX_COUNT, why))
			return false;
		if (!text[strcspn(text, ";")])
			break;
	}
	return true;
}

static void set_end(struct calendar *calendar, const struct icalrecurrencetype *r)
{
	calendar->count = r->count;
	if (icaltime_is_null_time(r->until))
		return;
	calendar->until = calendar_seconds(r->until);
	calendar->until_utc = icaltime_is_utc(r->until);
	/* A date means all of its day. */
	if (r->until.is_date)
		calendar->until += DAY - 1;
}

static bool add_rule(struct calendar *calendar, const char *text, bool has_start,
		     char why[CALENDAR_WHY])
{
	struct recurrence *rule = &calendar->rules[calendar->nr_rules];
	struct icalrecurrencetype r;

	if (!check_parts(text, why))
		return false;
	icalerror_set_errors_are_fatal(0);
	r = icalrecurrencetype_from_string(text);
	if (r.freq == ICAL_NO_RECURRENCE)
		return calendar_refuse(why, "it is no recurrence rule of RFC 5545");
	rule->unit = r.freq == ICAL_SECONDLY_RECURRENCE ? 1 :
		     r.freq == ICAL_MINUTELY_RECURRENCE ? 60 :
		     r.freq == ICAL_HOURLY_RECURRENCE ? 3600 : 0;
	rule->interval = r.interval;
	calendar->within_day |= !!rule->unit;
	set_times(rule, &r, calendar->start, has_start);
	set_end(calendar, &r);
	rule->days = read_days(&r);
	if (!check(rule, why))
		return false;
	set_days(rule, calendar->start);
	calendar->nr_rules++;
	return true;
}

/* Reads "DTSTART:20261124T090000", with ";TZID=zone", or "Z" at the end. */
static bool read_start(struct calendar *calendar, const char *text,
		       bool zone_given, char why[CALENDAR_WHY])
{
	const char *value = strrchr(text, ':');
	struct icaltimetype time = icaltime_null_time();
	char zone[CALENDAR_ZONE];

	if (value)
		time = icaltime_from_string(value + 1);
	if (icaltime_is_null_time(time) || time.year < 1970 || time.year > 2254)
		return calendar_refuse(why, "a DTSTART is as DTSTART:20261124T090000");
	snprintf(zone, sizeof(zone), "%s", icaltime_is_utc(time) ? "UTC" :
		 calendar->zone);
	if (text[7] == ';') {
		if (strncasecmp(text + 8, "TZID=", 5) || icaltime_is_utc(time))
			return calendar_refuse(why, "a DTSTART has a TZID or nothing else");
		snprintf(zone, sizeof(zone), "%.*s", (int)(value - text - 13),
			 text + 13);
		if (!zone_exists(zone))
			return calendar_refuse(why, "there is no zone %.40s", zone);
	}
	if (zone_given && strcmp(zone, calendar->zone))
		return calendar_refuse(why, "DTSTART is of another zone");
	strcpy(calendar->zone, zone);
	calendar->start = calendar_seconds(time);
	return true;
}

/* Reads "[DTSTART...] [RRULE:]FREQ=...". */
static bool read_rfc(struct calendar *calendar, char *text, bool zone_given,
		     char why[CALENDAR_WHY])
{
	bool has_start = false;
	char *word, *rest;

	for (word = strtok_r(text, " \t\r\n", &rest); word;
	     word = strtok_r(NULL, " \t\r\n", &rest)) {
		bool good;

		if (!strncasecmp(word, "DTSTART", 7) && strchr(":;", word[7])) {
			if (has_start || calendar->nr_rules)
				return calendar_refuse(why, "DTSTART comes first, and once");
			good = read_start(calendar, word, zone_given, why);
			has_start = true;
		} else {
			word += strncasecmp(word, "RRULE:", 6) ? 0 : 6;
			good = calendar->nr_rules ?
			       calendar_refuse(why, "there is more than one rule") :
			       add_rule(calendar, word, has_start, why);
		}
		if (!good)
			return false;
	}
	return calendar->nr_rules || calendar_refuse(why, "there is no RRULE");
}

static bool read_cron(struct calendar *calendar, const char *text,
		      char why[CALENDAR_WHY])
{
	static char rules[CRON_RULES][CALENDAR_TEXT];
	int count = cron_to_rules(text, rules, &calendar->within_day, why);

	/* Cron text may make two rules, and one of them may never come. */
	for (int i = 0; i < count; i++)
		add_rule(calendar, rules[i], false, why);
	return calendar->nr_rules;
}

bool calendar_read(struct calendar *calendar, const char *text, bool zone_given,
		   char why[CALENDAR_WHY])
{
	char copy[CALENDAR_TEXT];

	if (strlen(text) >= sizeof(copy))
		return calendar_refuse(why, "it has %d characters at most", CALENDAR_TEXT - 1);
	strcpy(copy, text);
	return strchr(text, '=') ? read_rfc(calendar, copy, zone_given, why) :
				   read_cron(calendar, text, why);
}
