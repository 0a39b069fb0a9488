// SPDX-License-Identifier: GPL-2.0-only
/*
 * The days that a rule means: see calendar_rule.h. A search goes from one period to the next,
 * up to the last year that is known here: a search for days that never come ends soon.
 */
#include "calendar_rule.h"

/* The days of the longest period. */
#define YEAR	366

static int64_t first_of_month(int64_t month)
{
	struct tm tm = { .tm_year = month / 12 - 1900, .tm_mon = month % 12, .tm_mday = 1 };

	return timegm(&tm) / DAY;
}

/* Years, months and weeks are numbered. Returns the number of the period of @day. */
static int64_t period_of(const struct days *days, int64_t day)
{
	struct tm tm = calendar_split(day * DAY);

	switch (days->parts.freq) {
	case ICAL_YEARLY_RECURRENCE:
		return tm.tm_year + 1900;
	case ICAL_MONTHLY_RECURRENCE:
		return (tm.tm_year + 1900) * 12 + tm.tm_mon;
	case ICAL_WEEKLY_RECURRENCE:
		return (day - days->week) / 7;
	default:
		return day;
	}
}

static int64_t first_of(const struct days *days, int64_t period)
{
	switch (days->parts.freq) {
	case ICAL_YEARLY_RECURRENCE:
		return first_of_month(period * 12);
	case ICAL_MONTHLY_RECURRENCE:
		return first_of_month(period);
	case ICAL_WEEKLY_RECURRENCE:
		return days->week + period * 7;
	default:
		return period;
	}
}

/*
 * Whether a list has a place: from 1 to @length, or from -1 on, counted from behind. An empty
 * list has all places.
 */
static bool has_place(const short *list, int count, int place, int length)
{
	for (int i = 0; i < count; i++)
		if (list[i] == place || list[i] == place - length - 1)
			return true;
	return !count;
}

/* @day: the day in a span of @length days, counted from 0. */
static bool has_weekday(const struct days *days, int weekday, int day, int length)
{
	for (int i = 0; i < days->nr_weekdays; i++) {
		short part = days->parts.by_day[i];
		int position = icalrecurrencetype_day_position(part);

		/* libical counts days of the week from 1 for Sunday. */
		if ((int)icalrecurrencetype_day_day_of_week(part) - 1 == weekday &&
		    (!position || position == day / 7 + 1 ||
		     position == -((length - 1 - day) / 7 + 1)))
			return true;
	}
	return !days->nr_weekdays;
}

/* Whether a day has all that the rule asks for, except its position. */
static bool fits(const struct days *days, int64_t day)
{
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	const struct icalrecurrencetype *parts = &days->parts;
	struct tm tm = calendar_split(day * DAY);
	int year = tm.tm_year + 1900;
	bool leap = year % 4 == 0 && (year % 100 || year % 400 == 0);
	int length = lengths[tm.tm_mon] + (tm.tm_mon == 1 && leap);
	bool by_year = parts->freq == ICAL_YEARLY_RECURRENCE && !days->nr_months;

	return has_place(parts->by_month, days->nr_months, tm.tm_mon + 1, 12) &&
	       has_place(parts->by_month_day, days->nr_month_days, tm.tm_mday, length) &&
	       has_place(parts->by_year_day, days->nr_year_days, tm.tm_yday + 1,
			 365 + leap) &&
	       has_weekday(days, tm.tm_wday, by_year ? tm.tm_yday : tm.tm_mday - 1,
			   by_year ? 365 + leap : length);
}

/* Returns the first day of a period from @day on, -1 if there is none. */
static int64_t find_in(const struct days *days, int64_t period, int64_t day)
{
	int64_t first = first_of(days, period), end = first_of(days, period + 1);
	int64_t found[YEAR];
	int count = 0;

	for (; first < end; first++) {
		if ((first < day && !days->nr_positions) || !fits(days, first))
			continue;
		if (!days->nr_positions)
			return first;
		found[count++] = first;
	}
	for (int i = 0; i < count; i++)
		if (found[i] >= day && has_place(days->parts.by_set_pos,
						 days->nr_positions, i + 1, count))
			return found[i];
	return -1;
}

int64_t calendar_day(const struct days *days, int64_t start, int64_t day)
{
	int64_t begin = period_of(days, start), period = period_of(days, day);
	int64_t interval = days->parts.interval, found = -1;

	for (;; period++) {
		period += (interval - (period - begin) % interval) % interval;
		if (first_of(days, period) > LAST / DAY)
			return -1;
		found = find_in(days, period, day);
		if (found >= 0)
			return found <= LAST / DAY ? found : -1;
	}
}
