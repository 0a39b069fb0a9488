// SPDX-License-Identifier: GPL-2.0-only
/*
 * The occurrences of rules: see calendar.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calendar_rule.h"

/* A search ends after it has looked at so many times. */
#define MAX_STEPS	1000000

/* Returns the first time from @local on that has its bits in the rule, on whatever day. */
static int64_t fit_time(const struct calendar *calendar,
			const struct recurrence *rule, int64_t local, int *steps)
{
	int64_t rest = 0;

	for (; (*steps)++ < MAX_STEPS; ) {
		if (rule->unit)
			rest = (local / rule->unit - calendar->start / rule->unit) %
			       rule->interval;
		if (rest < 0)
			rest += rule->interval;
		if (rest)
			local = (local / rule->unit + rule->interval - rest) *
				rule->unit;
		else if (!(rule->hours >> local / 3600 % 24 & 1))
			local = (local / 3600 + 1) * 3600;
		else if (!(rule->minutes >> local / 60 % 60 & 1))
			local = (local / 60 + 1) * 60;
		else if (!(rule->seconds >> local % 60 & 1))
			local++;
		else
			return local;
	}
	return LAST + 1;
}

/* Returns the first time of the rule from @local on, -1 if there is none. */
static int64_t time_from(const struct calendar *calendar, struct recurrence *rule,
			 int64_t local)
{
	int steps = 0;
	int64_t day;

	for (;;) {
		local = fit_time(calendar, rule, local, &steps);
		if (local > LAST)
			return -1;
		day = local / DAY == rule->day ? rule->day :
		      calendar_day(&rule->days, calendar->start / DAY, local / DAY);
		rule->day = day;
		if (day < 0 || day == local / DAY)
			return day < 0 ? -1 : local;
		local = day * DAY;
	}
}

/* Returns the first time of any rule from @local on, also before the beginning. */
static int64_t any_from(struct calendar *calendar, int64_t local)
{
	int64_t first = -1, found;

	for (int i = 0; i < calendar->nr_rules; i++) {
		found = time_from(calendar, &calendar->rules[i], local);
		if (found >= 0 && (first < 0 || found < first))
			first = found;
	}
	return first;
}

static int64_t local_from(struct calendar *calendar, int64_t local)
{
	return any_from(calendar, local < calendar->start ? calendar->start : local);
}

static void set_utc(struct occurrence *occurrence)
{
	struct zone_time time = zone_time(occurrence->local);

	occurrence->utc = occurrence->again && time.kind == ZONE_TWICE ?
			  time.second : time.first;
}

/* Goes to the next occurrence of a rule that repeats within the day. */
static bool step_within_day(struct calendar *calendar,
			    struct occurrence *occurrence)
{
	struct zone_time from = zone_time(occurrence->local), time;
	bool twice = from.kind == ZONE_TWICE;
	int64_t local;

	/*
	 * A local time that comes twice may be before the beginning at first, and after it the
	 * second time.
	 */
	if (twice && occurrence->again && calendar->start < from.end)
		local = any_from(calendar, occurrence->local + 1);
	else
		local = local_from(calendar, occurrence->local + 1);
	if (twice && !occurrence->again && (local < 0 || local >= from.end)) {
		local = any_from(calendar, from.begin);
		occurrence->again = true;
	} else if (!twice || local >= from.end) {
		occurrence->again = false;
	}
	while (local >= 0) {
		time = zone_time(local);
		if (time.kind != ZONE_SKIPPED)
			break;
		local = local_from(calendar, time.end);
	}
	occurrence->local = local;
	return local >= 0;
}

static bool step(struct calendar *calendar, struct occurrence *occurrence)
{
	do {
		if (calendar->within_day) {
			if (!step_within_day(calendar, occurrence))
				return false;
		} else {
			occurrence->again = false;
			occurrence->local = local_from(calendar, occurrence->local + 1);
			if (occurrence->local < 0)
				return false;
		}
		set_utc(occurrence);
	} while (occurrence->utc < calendar->first);
	occurrence->number++;
	if (calendar->count && occurrence->number > calendar->count)
		return false;
	return (calendar->until_utc ? occurrence->utc : occurrence->local) <=
	       calendar->until && occurrence->utc <= LAST;
}

/* Goes from @occurrence to the first occurrence that is after @utc. */
static bool step_beyond(struct calendar *calendar, int64_t utc,
			struct occurrence *occurrence)
{
	while (occurrence->utc <= utc)
		if (!step(calendar, occurrence))
			return false;
	return true;
}

/* Returns what the clock on the wall shows at @utc. */
static struct occurrence moment(int64_t utc)
{
	struct occurrence moment = { .local = zone_local(utc), .utc = utc };
	struct zone_time time = zone_time(moment.local);

	moment.again = time.kind == ZONE_TWICE && utc >= time.second;
	return moment;
}

static bool first_after(struct calendar *calendar, int64_t utc,
			struct occurrence *occurrence)
{
	*occurrence = moment(utc);
	if (calendar->count) {
		/* Rules with COUNT count from the beginning. */
		*occurrence = (struct occurrence) { .local = calendar->start - 1,
						    .utc = INT64_MIN };
		return step(calendar, occurrence) &&
		       step_beyond(calendar, utc, occurrence);
	}
	return step(calendar, occurrence) && step_beyond(calendar, utc, occurrence);
}

bool calendar_first(struct calendar *calendar, int64_t utc,
		    struct occurrence *occurrence)
{
	bool found;

	zone_enter(calendar->zone);
	found = first_after(calendar, utc, occurrence);
	zone_leave();
	return found;
}

bool calendar_next(struct calendar *calendar, struct occurrence *occurrence)
{
	bool found;

	zone_enter(calendar->zone);
	found = step(calendar, occurrence);
	zone_leave();
	return found;
}

/*
 * Looks back from @utc by longer and longer spans. A span then has few occurrences, however
 * long ago @occurrence is.
 */
static void jump(struct calendar *calendar, int64_t utc,
		 struct occurrence *occurrence)
{
	struct occurrence found;

	for (int64_t span = 60; utc - span > occurrence->utc; span *= 8) {
		if (first_after(calendar, utc - span, &found) && found.utc <= utc) {
			*occurrence = found;
			return;
		}
	}
}

void calendar_last(struct calendar *calendar, int64_t utc,
		   struct occurrence *occurrence)
{
	struct occurrence next;

	zone_enter(calendar->zone);
	if (!calendar->count)
		jump(calendar, utc, occurrence);
	next = *occurrence;
	while (step(calendar, &next) && next.utc <= utc)
		*occurrence = next;
	zone_leave();
}

void calendar_update(const char *zone, struct occurrence *occurrence)
{
	zone_enter(zone);
	set_utc(occurrence);
	zone_leave();
}

int64_t calendar_local(struct calendar *calendar, const struct occurrence *occurrence)
{
	int64_t local;

	zone_enter(calendar->zone);
	local = zone_local(occurrence->utc);
	zone_leave();
	return local;
}

void calendar_name(const struct occurrence *occurrence, char name[CALENDAR_NAME])
{
	struct tm tm = calendar_split(occurrence->local);
	size_t length = strftime(name, CALENDAR_NAME, "%Y-%m-%dT%H:%M:%S", &tm);

	if (occurrence->again)
		strcpy(name + length, "#2");
}

/* Sets the beginning: the given moment, which may be the second of two, or a DTSTART. */
static void set_first(struct calendar *calendar, int64_t given)
{
	struct occurrence first = { .local = calendar->start };

	zone_enter(calendar->zone);
	set_utc(&first);
	calendar->first = zone_local(given) == calendar->start ? given : first.utc;
	zone_leave();
}

/* Whether there is any occurrence at all. */
static bool has_any(struct calendar *calendar)
{
	struct occurrence first = { .local = calendar->start - 1 };
	bool found;

	zone_enter(calendar->zone);
	found = step(calendar, &first);
	zone_leave();
	return found;
}

struct calendar *calendar_open(const char *text, const char *zone, int64_t start,
			       char why[CALENDAR_WHY])
{
	struct calendar *calendar = calloc(1, sizeof(*calendar));

	if (!calendar)
		abort();
	calendar->until = LAST;
	if (*zone && !zone_exists(zone)) {
		calendar_refuse(why, "there is no zone %.40s", zone);
	} else {
		strcpy(calendar->zone, *zone ? zone : "UTC");
		zone_enter(calendar->zone);
		calendar->start = zone_local(start);
		zone_leave();
		if (calendar_read(calendar, text, *zone, why)) {
			set_first(calendar, start);
			if (has_any(calendar))
				return calendar;
			calendar_refuse(why, "no time would come by it");
		}
	}
	calendar_close(calendar);
	return NULL;
}

const char *calendar_zone(const struct calendar *calendar)
{
	return calendar->zone;
}

void calendar_close(struct calendar *calendar)
{
	free(calendar);
}
