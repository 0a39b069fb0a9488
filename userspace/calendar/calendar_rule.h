/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A rule that has been read: calendar_rule.c reads it, calendar_days.c finds its days, and
 * calendar.c its occurrences. No other code knows it.
 */
#ifndef TW_CALENDAR_RULE_H
#define TW_CALENDAR_RULE_H

#include <libical/ical.h>
#include <time.h>

#include "calendar.h"

#define DAY		86400
/* No occurrence is later than this, in the year 2255. */
#define LAST		9000000000LL

/*
 * The days that a rule means, by @parts.freq and @parts.interval. The lists of @parts have so
 * many numbers. @week: the first day of some week before all others.
 */
struct days {
	struct icalrecurrencetype parts;
	int nr_months, nr_month_days, nr_year_days, nr_weekdays, nr_positions;
	int64_t week;
};

/*
 * A recurrence rule. @day is the last day that has been found, -1 for none. A time of such a
 * day has a bit in each of the sets. For a rule that repeats within the day, the time's
 * distance from the beginning is also a multiple of @interval times @unit seconds; else @unit
 * is 0.
 */
struct recurrence {
	struct days days;
	int64_t day;
	uint64_t hours, minutes, seconds;
	int64_t unit, interval;
};

/* @start and @until: local times; @until_utc: @until is a time of UTC. @first: @start as UTC. */
struct calendar {
	struct recurrence rules[CRON_RULES];
	int nr_rules;
	char zone[CALENDAR_ZONE];
	int64_t start, first, until;
	uint64_t count;		/* 0: without limit */
	bool until_utc, within_day;
};

struct tm calendar_split(int64_t local);
int64_t calendar_seconds(struct icaltimetype time);

/*
 * calendar_days.c: returns the first day from @day on, -1 if there is none. @start: the rule's
 * first day.
 */
int64_t calendar_day(const struct days *days, int64_t start, int64_t day);

/* Returns false, and puts a reason into @why. */
__attribute__((__format__(printf, 2, 3)))
bool calendar_refuse(char why[CALENDAR_WHY], const char *format, ...);
/* Reads a rule into a calendar that has its zone and its beginning. */
bool calendar_read(struct calendar *calendar, const char *text, bool zone_given,
		   char why[CALENDAR_WHY]);

#endif /* TW_CALENDAR_RULE_H */
