// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules and their occurrences: changes of the clock,
 * cron's oddities, what is refused, and that no rule takes long.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"

#include "../calendar.h"

#define MOST	8

/* Returns a time such as "2026-10-25T00:30:00" as seconds. */
static int64_t seconds(const char *text)
{
	struct tm tm = { };

	if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
		abort();
	return timegm(&tm);
}

/* The occurrences after a point of time are as listed, each as "local utc". */
#define COMES(rule, zone, from, ...) do {				\
	static const char * const comes_[] = { __VA_ARGS__ };		\
	comes(_metadata, rule, zone, from, comes_,			\
	      sizeof(comes_) / sizeof(*comes_));			\
} while (0)

static void comes(struct __test_metadata *_metadata, const char *rule,
		  const char *zone, const char *from, const char * const *times,
		  int count)
{
	char why[CALENDAR_WHY], name[CALENDAR_NAME], text[64], utc[32];
	struct calendar *calendar = calendar_open(rule, zone, seconds(from), why);
	struct occurrence occurrence, again;
	bool found;

	ASSERT_NE(NULL, calendar) {
		TH_LOG("%s: %s", rule, why);
	}
	found = calendar_first(calendar, seconds(from), &occurrence);
	for (int i = 0; i < count; i++) {
		ASSERT_TRUE(found);
		calendar_name(&occurrence, name);
		strftime(utc, sizeof(utc), "%H:%M:%S", gmtime(&(time_t){ occurrence.utc }));
		snprintf(text, sizeof(text), "%s %s", name, utc);
		EXPECT_STREQ(times[i], text) {
			TH_LOG("%s in %s", rule, zone);
		}
		/* The moment of an occurrence can be told by its name alone. */
		again = occurrence;
		again.utc = 0;
		calendar_update(calendar_zone(calendar), &again);
		EXPECT_EQ(occurrence.utc, again.utc);
		found = calendar_next(calendar, &occurrence);
	}
	calendar_close(calendar);
}

TEST(berlin)
{
	/* Times of the day mean the first of two times, and the end of a gap. */
	COMES("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00",
	      "2026-10-25T02:30:00 00:30:00", "2026-10-26T02:30:00 01:30:00");
	COMES("30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00",
	      "2026-10-26T02:30:00 01:30:00");
	COMES("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00",
	      "2027-03-28T02:30:00 01:00:00", "2027-03-29T02:30:00 00:30:00");
	COMES("FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30", "Europe/Berlin",
	      "2027-03-27T12:00:00", "2027-03-28T02:00:00 01:00:00",
	      "2027-03-28T02:30:00 01:00:00", "2027-03-29T02:00:00 00:00:00");
	/* Times within the day follow the clock on the wall. */
	COMES("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00",
	      "2026-10-25T02:00:00 00:00:00", "2026-10-25T02:30:00 00:30:00",
	      "2026-10-25T02:00:00#2 01:00:00", "2026-10-25T02:30:00#2 01:30:00",
	      "2026-10-25T03:00:00 02:00:00");
	COMES("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:15:00",
	      "2026-10-25T02:30:00#2 01:30:00", "2026-10-25T03:00:00 02:00:00");
	COMES("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00",
	      "2026-10-25T02:00:00 00:00:00", "2026-10-25T02:30:00 00:30:00",
	      "2026-10-25T02:00:00#2 01:00:00", "2026-10-25T02:30:00#2 01:30:00",
	      "2026-10-26T02:00:00 01:00:00");
	COMES("FREQ=HOURLY;BYMINUTE=30", "Europe/Berlin", "2027-03-28T00:15:00",
	      "2027-03-28T01:30:00 00:30:00", "2027-03-28T03:30:00 01:30:00");
}

TEST(new_york)
{
	COMES("30 1 * * *", "America/New_York", "2026-10-31T12:00:00",
	      "2026-11-01T01:30:00 05:30:00", "2026-11-02T01:30:00 06:30:00");
	COMES("30 2 * * *", "America/New_York", "2027-03-13T12:00:00",
	      "2027-03-14T02:30:00 07:00:00", "2027-03-15T02:30:00 06:30:00");
	COMES("@hourly", "America/New_York", "2026-11-01T04:30:00",
	      "2026-11-01T01:00:00 05:00:00", "2026-11-01T01:00:00#2 06:00:00",
	      "2026-11-01T02:00:00 07:00:00");
	COMES("@hourly", "America/New_York", "2027-03-14T06:30:00",
	      "2027-03-14T03:00:00 07:00:00");
}

TEST(lord_howe)
{
	/* The clock changes by 30 minutes: 02:00 becomes 01:30, and 02:00 becomes 02:30. */
	COMES("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T12:00:00",
	      "2027-04-04T01:45:00 14:45:00", "2027-04-05T01:45:00 15:15:00");
	COMES("*/15 * * * *", "Australia/Lord_Howe", "2027-04-03T14:20:00",
	      "2027-04-04T01:30:00 14:30:00", "2027-04-04T01:45:00 14:45:00",
	      "2027-04-04T01:30:00#2 15:00:00", "2027-04-04T01:45:00#2 15:15:00",
	      "2027-04-04T02:00:00 15:30:00");
	COMES("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00",
	      "2026-10-04T02:15:00 15:30:00", "2026-10-05T02:15:00 15:15:00");
	COMES("*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:10:00",
	      "2026-10-04T01:45:00 15:15:00", "2026-10-04T02:30:00 15:30:00");
}

/*
 * A search must not stop at the change from PDT to PST; an implementation of cron stopped for
 * an hour.
 */
TEST(goes_on_at_the_change)
{
	static const char * const changes[] = {
		"2026-11-01T06:00:00", "2027-03-14T06:00:00", "2060-11-07T06:00:00",
	};
	char why[CALENDAR_WHY];

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		int64_t utc = seconds(changes[i]);
		struct calendar *calendar = calendar_open("* * * * *",
			"America/Los_Angeles", utc, why);
		struct occurrence occurrence;

		ASSERT_NE(NULL, calendar);
		ASSERT_TRUE(calendar_first(calendar, utc, &occurrence));
		for (int minute = 1; minute < 12 * 60; minute++) {
			ASSERT_EQ(utc + minute * 60, occurrence.utc);
			ASSERT_TRUE(calendar_next(calendar, &occurrence));
		}
		calendar_close(calendar);
	}
}

TEST(far_years)
{
	COMES("0 12 1 7 *", "Europe/Berlin", "2100-01-01T00:00:00",
	      "2100-07-01T12:00:00 10:00:00");
	COMES("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=1", "UTC",
	      "2097-01-01T00:00:00", "2104-02-29T01:00:00 01:00:00");
}

TEST(cron)
{
	/* The rule means the day of the month or the day of the week, if both are restricted. */
	COMES("0 0 13 * fri", "UTC", "2026-11-01T00:00:00",
	      "2026-11-06T00:00:00 00:00:00", "2026-11-13T00:00:00 00:00:00",
	      "2026-11-20T00:00:00 00:00:00", "2026-11-27T00:00:00 00:00:00",
	      "2026-12-04T00:00:00 00:00:00", "2026-12-11T00:00:00 00:00:00",
	      "2026-12-13T00:00:00 00:00:00");
	/* The rule means both days, if one of the fields begins with "*". */
	COMES("0 0 */2 * 1", "UTC", "2026-11-01T00:00:00",
	      "2026-11-09T00:00:00 00:00:00", "2026-11-23T00:00:00 00:00:00");
	/* 0 and 7 are Sunday. */
	COMES("5 4 * * 7", "UTC", "2026-11-23T00:00:00",
	      "2026-11-29T04:05:00 04:05:00");
	COMES("5 4 * JAN-MAR/2 0", "UTC", "2026-11-23T00:00:00",
	      "2027-01-03T04:05:00 04:05:00");
	COMES("0 22-23,1-3/2 * * *", "UTC", "2026-11-23T00:00:00",
	      "2026-11-23T01:00:00 01:00:00", "2026-11-23T03:00:00 03:00:00",
	      "2026-11-23T22:00:00 22:00:00", "2026-11-23T23:00:00 23:00:00");
	COMES("@weekly", "UTC", "2026-11-23T00:00:00",
	      "2026-11-29T00:00:00 00:00:00");
	COMES("@yearly", "UTC", "2026-11-23T00:00:00",
	      "2027-01-01T00:00:00 00:00:00");
	COMES("0 0 29 2 *", "UTC", "2026-11-23T00:00:00",
	      "2028-02-29T00:00:00 00:00:00");
}

TEST(rules)
{
	/* Rules count from a DTSTART, or from now. */
	COMES("DTSTART:20261101T090000 RRULE:FREQ=DAILY;INTERVAL=10", "",
	      "2026-11-23T12:00:00", "2026-12-01T09:00:00 09:00:00");
	COMES("DTSTART;TZID=Europe/Berlin:20261101T090000\r\nFREQ=MONTHLY", "",
	      "2026-11-23T12:00:00", "2026-12-01T09:00:00 08:00:00");
	COMES("FREQ=HOURLY;INTERVAL=5", "", "2026-11-23T12:34:56",
	      "2026-11-23T17:34:56 17:34:56");
	COMES("FREQ=DAILY;BYHOUR=9", "", "2026-11-23T12:34:56",
	      "2026-11-24T09:00:00 09:00:00");
	COMES("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=18", "",
	      "2026-11-23T12:00:00", "2026-11-30T18:00:00 18:00:00",
	      "2026-12-31T18:00:00 18:00:00");
	COMES("FREQ=SECONDLY;INTERVAL=30000", "", "2026-11-23T12:00:00",
	      "2026-11-23T20:20:00 20:20:00", "2026-11-24T04:40:00 04:40:00");
	/* Without a DTSTART, units that are smaller than a unit of the rule are 0. */
	COMES("FREQ=DAILY;BYMINUTE=5", "", "2026-11-23T12:34:56",
	      "2026-11-24T00:05:00 00:05:00", "2026-11-25T00:05:00 00:05:00");
	COMES("FREQ=DAILY;BYSECOND=5", "", "2026-11-23T12:34:56",
	      "2026-11-24T00:00:05 00:00:05", "2026-11-25T00:00:05 00:00:05");
}

TEST(days)
{
	/* A rule without a day means days like that of its beginning. */
	COMES("FREQ=WEEKLY", "", "2026-11-25T12:00:00", "2026-12-02T12:00:00 12:00:00");
	COMES("FREQ=YEARLY", "", "2026-11-25T12:00:00", "2027-11-25T12:00:00 12:00:00");
	/* The weeks of an interval begin with WKST. */
	COMES("DTSTART:19970805T090000 FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=MO", "",
	      "1997-08-05T12:00:00", "1997-08-10T09:00:00 09:00:00",
	      "1997-08-19T09:00:00 09:00:00", "1997-08-24T09:00:00 09:00:00");
	COMES("DTSTART:19970805T090000 FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", "",
	      "1997-08-05T12:00:00", "1997-08-17T09:00:00 09:00:00",
	      "1997-08-19T09:00:00 09:00:00", "1997-08-31T09:00:00 09:00:00");
	/* Places may count from the end. */
	COMES("FREQ=MONTHLY;BYDAY=-1TU;BYHOUR=9", "", "2026-11-23T12:00:00",
	      "2026-11-24T09:00:00 09:00:00", "2026-12-29T09:00:00 09:00:00");
	COMES("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9", "", "2026-11-23T12:00:00",
	      "2026-11-30T09:00:00 09:00:00", "2026-12-31T09:00:00 09:00:00");
	COMES("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,-1;BYHOUR=18", "",
	      "2026-11-23T12:00:00", "2026-11-30T18:00:00 18:00:00",
	      "2026-12-01T18:00:00 18:00:00", "2026-12-31T18:00:00 18:00:00");
	/* 2000 is a leap year, and 2100 is none. */
	COMES("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;BYHOUR=9", "", "1999-06-01T00:00:00",
	      "2000-02-29T09:00:00 09:00:00", "2001-02-28T09:00:00 09:00:00");
	COMES("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=-1;BYHOUR=9", "", "2099-06-01T00:00:00",
	      "2100-02-28T09:00:00 09:00:00", "2101-02-28T09:00:00 09:00:00");
}

static int count(const char *rule, const char *from)
{
	char why[CALENDAR_WHY];
	struct calendar *calendar = calendar_open(rule, "", seconds(from), why);
	struct occurrence occurrence;
	int count = 0;

	if (!calendar)
		return -1;
	if (calendar_first(calendar, seconds(from), &occurrence))
		for (count = 1; count < 100 && calendar_next(calendar, &occurrence); )
			count++;
	calendar_close(calendar);
	return count;
}

#define IN_BERLIN	"DTSTART;TZID=Europe/Berlin:20261124T090000 FREQ=DAILY;UNTIL="

TEST(ends)
{
	EXPECT_EQ(3, count("DTSTART:20261124T090000 FREQ=DAILY;COUNT=3",
			   "2026-11-23T12:00:00"));
	/* Occurrences before now count, too. */
	EXPECT_EQ(2, count("DTSTART:20261122T130000 FREQ=DAILY;COUNT=3",
			   "2026-11-23T12:00:00"));
	EXPECT_EQ(0, count("DTSTART:20201122T130000 FREQ=DAILY;COUNT=3",
			   "2026-11-23T12:00:00"));
	EXPECT_EQ(7, count("FREQ=DAILY;BYHOUR=9;UNTIL=20261130",
			   "2026-11-23T12:00:00"));
	EXPECT_EQ(6, count("FREQ=DAILY;BYHOUR=9;UNTIL=20261130T085959Z",
			   "2026-11-23T12:00:00"));
	EXPECT_EQ(-1, count("FREQ=DAILY;UNTIL=20251130", "2026-11-23T12:00:00"));
	/* UNTIL is the last moment, of UTC with a "Z", else of the zone. */
	EXPECT_EQ(3, count(IN_BERLIN "20261126T080000Z", "2026-11-23T12:00:00"));
	EXPECT_EQ(3, count(IN_BERLIN "20261126T090000", "2026-11-23T12:00:00"));
	EXPECT_EQ(2, count(IN_BERLIN "20261126T080000", "2026-11-23T12:00:00"));
}

/* The newest of the occurrences that have come is found, however many there were. */
TEST(last)
{
	static const char * const rules[] = {
		"* * * * *", "FREQ=SECONDLY", "@yearly", "0 0 29 2 *", "30 2 * * *",
	};
	char why[CALENDAR_WHY];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		int64_t utc = seconds("2001-01-01T00:00:00");
		int64_t now = seconds("2026-11-23T12:00:30");
		struct calendar *calendar = calendar_open(rules[i], "Europe/Berlin",
							  utc, why);
		struct occurrence occurrence, next;

		ASSERT_NE(NULL, calendar);
		ASSERT_TRUE(calendar_first(calendar, utc, &occurrence));
		calendar_last(calendar, now, &occurrence);
		EXPECT_LE(occurrence.utc, now);
		next = occurrence;
		ASSERT_TRUE(calendar_next(calendar, &next));
		EXPECT_GT(next.utc, now);
		calendar_close(calendar);
	}
}

TEST(refused)
{
	static const char * const rules[] = {
		"", " ", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
		"* * * * 8", "* * * *", "* * * * * *", "5-1 * * * *", "1/5 * * * *",
		"*/0 * * * *", "1,,2 * * * *", ", * * * *", "-1 * * * *", "* * L * *",
		"* * 15W * *", "* * * * 5#2", "* * ? * *", "H * * * *", "@reboot",
		"@never", "0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *",
		"99999999999999999999 * * * *", "*/99999999999999999999 * * * *",
		"4294967301 * * * *", "*/4294967301 * * * *",
		"FREQ=", "FREQ=NEVER", "FREQ=DAILY;FREQ=DAILY", "INTERVAL=2",
		"FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;INTERVAL=32768",
		"FREQ=DAILY;INTERVAL=-1", "FREQ=DAILY;COUNT=0", "FREQ=DAILY;COUNT=99999",
		"FREQ=DAILY;BYHOUR=24", "FREQ=DAILY;BYFOO=1", "FREQ=DAILY;RSCALE=HEBREW",
		"FREQ=DAILY;BYDAY=1MO", "FREQ=WEEKLY;BYMONTHDAY=1",
		"FREQ=YEARLY;BYWEEKNO=20", "FREQ=DAILY;COUNT=2;UNTIL=20300101",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
		"FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;BYSECOND=60",
		"DTSTART:20261123T000000 FREQ=SECONDLY;INTERVAL=60;BYSECOND=5",
		"DTSTART:20261123T000000 FREQ=SECONDLY;INTERVAL=2;BYSECOND=5",
		"DTSTART:20261123T000000 FREQ=HOURLY;INTERVAL=24;BYHOUR=5",
		"FREQ=MONTHLY;BYSETPOS=60;BYDAY=MO", "FREQ=MONTHLY;BYDAY=6MO",
		"FREQ=MONTHLY;BYHOUR=1,2;BYSETPOS=1", "DTSTART:20261123T000000",
		"DTSTART:soon FREQ=DAILY", "DTSTART:19690101T000000 FREQ=DAILY",
		"DTSTART;TZID=Nowhere:20261123T000000 FREQ=DAILY",
		"FREQ=DAILY RRULE:FREQ=DAILY", "FREQ=DAILY EXDATE:20261124T000000",
		"FREQ=MONTHLY;BYMONTH=2,4,6,9,11;BYMONTHDAY=31",
		"DTSTART:20260131T090000 FREQ=MONTHLY;BYMONTH=2,4,6,9,11",
		"DTSTART:20260131T090000 FREQ=MONTHLY;INTERVAL=12;BYMONTH=3",
		"DTSTART:20260101T090000 FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
		"FREQ=YEARLY;BYMONTH=1,2,3,4,5,6;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=190",
		"FREQ=MONTHLY;BYMONTHDAY=30,31;BYMONTH=2;BYSETPOS=1",
		"FREQ=DAILY;BYMONTH=-1", "FREQ=DAILY;BYHOUR=-1", "FREQ=DAILY;BYMONTHDAY=0",
		";FREQ=DAILY", "FREQ=DAILY;;COUNT=2", "=", "=;=", "FREQ",
	};
	static const char * const zones[] = {
		"Nowhere", "/etc/passwd", "../zoneinfo/UTC", "Europe", ":Europe/Berlin",
		"CET-1CEST",
	};
	struct timespec begin, end;
	struct calendar *calendar;
	char why[CALENDAR_WHY];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		why[0] = '\0';
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		calendar = calendar_open(rules[i], "", seconds("2026-11-23T12:00:00"),
					 why);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		EXPECT_EQ(NULL, calendar) {
			TH_LOG("%s", rules[i]);
		}
		EXPECT_NE('\0', why[0]);
		EXPECT_LT((end.tv_sec - begin.tv_sec) * 1000 +
			  (end.tv_nsec - begin.tv_nsec) / 1000000, 500) {
			TH_LOG("%s takes long", rules[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		calendar = calendar_open("@daily", zones[i], 0, why);
		EXPECT_EQ(NULL, calendar) {
			TH_LOG("%s", zones[i]);
		}
	}
	EXPECT_EQ(NULL, calendar_open("DTSTART;TZID=Europe/Berlin:20261124T090000 FREQ=DAILY",
				      "America/New_York", 0, why));
}

#define MINUTES		(366 * 1440)

/* The time that a clock of the zone shows in each minute of 2026. */
static int64_t shown[MINUTES], year;

static void show_year(const char *zone)
{
	year = seconds("2026-01-01T00:00:00");
	zone_enter(zone);
	for (int i = 0; i < MINUTES; i++)
		shown[i] = zone_local(year + i * 60);
	zone_leave();
}

/* Whether a rule comes at this minute: by the clock, or at 00:30, 01:30, 02:30, 23:30. */
static bool is_due(bool within_day, int minute)
{
	static const int times[] = { 30, 90, 150, 1410 };
	int64_t before = shown[minute - 1], now = shown[minute];

	if (within_day)
		return now / 60 % 20 == 0;
	/* Such a time was skipped, or is shown and not for the second time. */
	for (int64_t local = before + 60; local < now; local += 60)
		for (size_t i = 0; i < ARRAY_SIZE(times); i++)
			if (local / 60 % 1440 == times[i])
				return true;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (now / 60 % 1440 != times[i])
			continue;
		for (int at = minute - 1; at > minute - 180 && at >= 0; at--)
			if (shown[at] == now)
				return false;
		return true;
	}
	return false;
}

/* A rule comes at the minutes of the clock, wherever the search begins. */
static int follow(struct __test_metadata *_metadata, const char *zone, bool within_day, int from)
{
	const char *rule = within_day ? "*/20 * * * *" : "30 0,1,2,23 * * *";
	char why[CALENDAR_WHY];
	int64_t utc = year + from * 60;
	struct calendar *calendar = calendar_open(rule, zone, utc, why);
	struct occurrence occurrence;
	int wrong = 0, minute = from, compared = 0;
	bool found = calendar_first(calendar, utc, &occurrence);

	while (found && minute < MINUTES - 1 && compared < 12 && !wrong) {
		/* All times that the clock has skipped come at once. */
		if (occurrence.utc > year + minute * 60) {
			do
				minute++;
			while (minute < MINUTES - 1 && !is_due(within_day, minute));
			compared++;
		}
		wrong = occurrence.utc != year + minute * 60;
		found = calendar_next(calendar, &occurrence);
	}
	calendar_close(calendar);
	EXPECT_EQ(0, wrong) {
		TH_LOG("%s in %s from minute %d of the year", rule, zone, from);
	}
	return wrong;
}

TEST(folds_and_gaps_by_a_clock)
{
	static const char * const zones[] = {
		"Europe/Berlin", "America/New_York", "America/St_Johns", "America/Havana",
		"America/Nuuk", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe",
		"Pacific/Chatham", "Antarctica/Troll", "Asia/Kathmandu",
	};

	int changes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		int wrong = 0;

		show_year(zones[i]);
		for (int at = 1441; at < MINUTES - 4320 && wrong < 3; at++) {
			if (shown[at] == shown[at - 1] + 60)
				continue;
			changes++;
			for (int from = at - 190; from < at + 190 && wrong < 3; from += 5)
				wrong += follow(_metadata, zones[i], true, from) +
					 follow(_metadata, zones[i], false, from);
		}
	}
	/* The files of the zones tell which zones change their clocks. */
	EXPECT_LT(10, changes);
}

TEST(words_of_refusals)
{
	static const char * const rules[][2] = {
		{ "FREQ=DAILY;INTERVAL=2x", "INTERVAL=2x" },
		{ "FREQ=DAILY;INTERVAL=0", "INTERVAL=0" },
		{ "FREQ=DAILY;COUNT=3x", "COUNT=3x" },
		{ "0 0 30 2 *", "no month that it names has such a day" },
		{ "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31", "no month that it names has such a day" },
	};
	char why[CALENDAR_WHY];

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		EXPECT_EQ(NULL, calendar_open(rules[i][0], "", 0, why));
		EXPECT_NE(NULL, strstr(why, rules[i][1])) {
			TH_LOG("%s: %s", rules[i][0], why);
		}
	}
	/* The line means two days, and one of them never comes. */
	COMES("0 0 30 2 mon", "UTC", "2026-01-31T12:00:00",
	      "2026-02-02T00:00:00 00:00:00", "2026-02-09T00:00:00 00:00:00");
}

/* A zone's file is replaced, and the name of an occurrence stays. */
TEST(other_tzdata)
{
	char why[CALENDAR_WHY], folder[] = "/tmp/zones.XXXXXX", command[300];
	int64_t utc = seconds("2027-06-30T12:00:00");
	struct occurrence occurrence, next;
	struct calendar *calendar;

	ASSERT_NE(NULL, mkdtemp(folder));
	snprintf(command, sizeof(command),
		 "cp /usr/share/zoneinfo/Europe/Berlin %s/Town && echo Town >%s/Text",
		 folder, folder);
	ASSERT_EQ(0, system(command));
	setenv("TZDIR", folder, 1);
	EXPECT_EQ(NULL, calendar_open("0 9 * * *", "Text", utc, why));
	calendar = calendar_open("0 9 * * *", "Town", utc, why);
	ASSERT_NE(NULL, calendar);
	ASSERT_TRUE(calendar_first(calendar, utc, &occurrence));
	EXPECT_EQ(seconds("2027-07-01T07:00:00"), occurrence.utc);
	snprintf(command, sizeof(command),
		 "cp /usr/share/zoneinfo/Europe/London %s/new && mv %s/new %s/Town",
		 folder, folder, folder);
	ASSERT_EQ(0, system(command));
	next = occurrence;
	calendar_update("Town", &occurrence);
	EXPECT_EQ(seconds("2027-07-01T08:00:00"), occurrence.utc);
	ASSERT_TRUE(calendar_next(calendar, &next));
	EXPECT_EQ(seconds("2027-07-02T09:00:00"), next.local);
	EXPECT_EQ(seconds("2027-07-02T08:00:00"), next.utc);
	calendar_close(calendar);
	unsetenv("TZDIR");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	EXPECT_EQ(0, system(command));
}

TEST_HARNESS_MAIN
