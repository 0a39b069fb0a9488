/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules by which something comes again, time zones, and points of time. This code knows
 * neither jobs nor wheels.
 *
 * A rule is a recurrence rule of RFC 5545, perhaps after a DTSTART, or a line of cron with
 * five fields. libical reads it and finds its days. The times of a day are found by this code,
 * which bounds the work for a rule that never comes.
 *
 * A local time is told in seconds, as if it were UTC. Rules are about local times.
 * When a change of the clock skips local times, or repeats them:
 *
 * - A rule with times of the day means each of them once: a time that is skipped is
 *   at the first moment after the gap, and of a time that comes twice the first is
 *   meant. cron(8) of Debian does so. RFC 5545 section 3.3.5 says the same of times
 *   that come twice; by section 3.3.10 the skipped ones would be left out, and a
 *   daily job with them.
 * - A rule that repeats within the day (SECONDLY, MINUTELY, HOURLY; in cron "*" as
 *   the beginning of the minute or the hour) means what a clock on the wall shows: a
 *   time that is skipped is left out, and one that comes twice is there twice.
 */
#ifndef TW_CALENDAR_H
#define TW_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CALENDAR_ZONE	64	/* bytes of a zone's name, with the zero */
#define CALENDAR_TEXT	2048	/* of a rule */
#define CALENDAR_WHY	160	/* of a reason */
#define CALENDAR_NAME	24	/* of an occurrence's name */

/*
 * An occurrence. @local and @again, true for the second of two times that are the same, name
 * it for ever; @utc is their moment by the zone's present file. @number counts from 1, for
 * rules with COUNT only.
 */
struct occurrence {
	int64_t local, utc;
	uint64_t number;
	bool again;
};

struct calendar;

/*
 * Reads a rule. The rule begins at @start, seconds since 1970, unless it has a DTSTART.
 * Returns NULL, and a reason in @why, if it cannot be carried out.
 */
struct calendar *calendar_open(const char *text, const char *zone, int64_t start,
			       char why[CALENDAR_WHY]);
void calendar_close(struct calendar *calendar);
/* Returns its zone: @zone, or the zone of the DTSTART, or UTC. */
const char *calendar_zone(const struct calendar *calendar);

/* Finds the first occurrence after @utc. Returns false if there is none. */
bool calendar_first(struct calendar *calendar, int64_t utc,
		    struct occurrence *occurrence);
/* Goes to the occurrence after @occurrence. Returns false if there is none. */
bool calendar_next(struct calendar *calendar, struct occurrence *occurrence);
/* Goes from @occurrence to the last occurrence that is not after @utc. */
void calendar_last(struct calendar *calendar, int64_t utc,
		   struct occurrence *occurrence);
/* Sets @utc of an occurrence again, by the present file of its rule's zone. */
void calendar_update(const char *zone, struct occurrence *occurrence);
/* Returns what a clock in the zone shows at @utc, which is not @local if @local is skipped. */
int64_t calendar_local(struct calendar *calendar, const struct occurrence *occurrence);
/* Writes a name such as "2026-10-25T02:30:00", with "#2" if it is the second such time. */
void calendar_name(const struct occurrence *occurrence, char name[CALENDAR_NAME]);

/* calendar_zone.c: between zone_enter() and zone_leave() the C library uses the zone. */
bool zone_exists(const char *name);
void zone_enter(const char *name);
void zone_leave(void);
/* Returns the local time at @utc. */
int64_t zone_local(int64_t utc);

/*
 * The kind of a local time. ZONE_SKIPPED: @first is the first moment after the gap, and the
 * gap ends with the local time @end. ZONE_TWICE: the time is at @first and at @second, as are
 * all local times from @begin until before @end.
 */
struct zone_time {
	enum { ZONE_ONCE, ZONE_SKIPPED, ZONE_TWICE } kind;
	int64_t first, second, begin, end;
};

struct zone_time zone_time(int64_t local);

/*
 * calendar_cron.c: makes recurrence rules of five fields, or of "@daily" and the like. With
 * two rules, an occurrence of either counts. @within_day: see above. Returns their number; 0,
 * and a reason in @why, if there is none.
 */
#define CRON_RULES	2
int cron_to_rules(const char *text, char rules[CRON_RULES][CALENDAR_TEXT],
		  bool *within_day, char why[CALENDAR_WHY]);

#endif /* TW_CALENDAR_H */
