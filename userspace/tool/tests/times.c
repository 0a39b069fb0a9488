// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times as people write them: each line of the tables is one promise. Needs
 * zoneinfo for the named zones, but no device. Prints TAP.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "times.h"

#define WRONG	UINT64_MAX
#define S(seconds)	((seconds) * NSEC_PER_SEC)

static unsigned int number;
static int status;

static void result(int well, const char *what, const char *of)
{
	printf("%sok %u %s: %s\n", well ? "" : "not ", ++number, what, of);
	if (!well)
		status = 1;
}

static const struct {
	const char	*text;
	uint64_t	ns;
} spans[] = {
	{ "30s", S(30) },
	{ "30", S(30) },
	{ "0", 0 },
	{ "0.5", S(1) / 2 },
	{ "48h", S(172800) },
	{ "1h30m", S(5400) },
	{ "1h 30m", S(5400) },
	{ " 1 h  30 min ", S(5400) },
	{ "1.5h", S(5400) },
	{ "500ms", S(1) / 2 },
	{ "250us", 250000 },
	{ "250µs", 250000 },
	{ "250μs", 250000 },
	{ "17ns", 17 },
	{ "17nsec", 17 },
	{ "1.000000001s", S(1) + 1 },
	{ "0.0000000019s", 1 },
	{ "2 seconds", S(2) },
	{ "1 second", S(1) },
	{ "5minutes", S(300) },
	{ "2hr", S(7200) },
	{ "3 hours", S(10800) },
	{ "1d", S(86400) },
	{ "2 days", S(172800) },
	{ "1w", S(604800) },
	{ "2weeks", S(1209600) },
	{ "1M", S(2629800) },
	{ "1 month", S(2629800) },
	{ "12months", S(31557600) },
	{ "1y", S(31557600) },
	{ "1y 12months", S(63115200) },
	{ "55s500ms", S(55) + S(1) / 2 },
	{ "300ms20s 5day", S(432020) + 300000000 },
	{ "9223372036854775807ns", WRONG },		/* too many digits */
	{ "292y", S(292 * 31557600ULL) },
	{ "293y", WRONG },
	{ "292y 1y", WRONG },
	{ "100000000000000000ns", 100000000000000000 },	/* 18 digits */
	{ "999999999999999999y", WRONG },
	{ "", WRONG },
	{ " ", WRONG },
	{ "s", WRONG },
	{ "-5s", WRONG },
	{ "5 parsecs", WRONG },
	{ "5S", WRONG },
	{ "5.s", WRONG },
	{ ".5s", WRONG },
	{ "1,5s", WRONG },
	{ "5s,", WRONG },
	/* The number may mean minutes or seconds. */
	{ "1h30", WRONG },
	{ "1h 30", WRONG },
	{ "30 1h", WRONG },
	{ "1 30", WRONG },
	{ "0.25", S(1) / 4 },
	{ "8.30s", S(8) + 300000000 },
	{ "0x10", WRONG },
	{ "infinity", WRONG },
	{ "1e3", WRONG },
};

static void test_spans(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(spans); i++) {
		uint64_t ns = WRONG;
		int well = span_parse(spans[i].text, &ns);

		result(well ? ns == spans[i].ns : spans[i].ns == WRONG, "span",
		       spans[i].text);
	}
}

/*
 * 1796040000 is 2026-11-30 12:00:00 UTC, a Monday. Zones: in Berlin clocks went
 * from 02:00 to 03:00 on 2026-03-29 and back from 03:00 to 02:00 on 2026-10-25;
 * in New York on 2026-03-08 and 2026-11-01; on Lord Howe by half an hour, on
 * 2026-04-05 and 2026-10-04; in Apia all of 2011-12-30 was left out.
 */
#define NOW	1796040000ULL
#define BERLIN	"Europe/Berlin"
#define POSIX	"CET-1CEST,M3.5.0,M10.5.0/3"

static const struct {
	const char	*zone;
	uint64_t	now;
	const char	*text;
	uint64_t	ns;
} points[] = {
	{ "UTC", NOW, "at now", S(NOW) },
	{ "UTC", NOW, "at 2026-12-01 08:00", S(1796112000) },
	{ "UTC", NOW, "at 2026-12-01", S(1796083200) },
	{ "UTC", NOW, "at 2026-12-01T08:00:00Z", S(1796112000) },
	{ "UTC", NOW, "at 2026-12-01 08:00:00.25", S(1796112000) + S(1) / 4 },
	{ "UTC", NOW, "at 2026-12-1 8:00", S(1796112000) },
	{ "UTC", NOW, "  at   2026-12-01   08:00  ", S(1796112000) },
	{ "UTC", NOW, "at Tue 2026-12-01 08:00", S(1796112000) },
	{ "UTC", NOW, "at tuesday 2026-12-01 08:00", S(1796112000) },
	{ "UTC", NOW, "at Wed 2026-12-01 08:00", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 UTC", S(1796112000) },
	{ "UTC", NOW, "at 2026-12-01 08:00 Europe/Berlin", S(1796108400) },
	{ "UTC", NOW, "at 2026-12-01 08:00+01:00", S(1796108400) },
	{ "UTC", NOW, "at 2026-12-01 08:00 +0100", S(1796108400) },
	{ "UTC", NOW, "at 2026-12-01T08:00:00+01", S(1796108400) },
	{ "UTC", NOW, "at 2026-12-01 08:00 -03:30", S(1796124600) },
	{ "UTC", NOW, "at @1796112000", S(1796112000) },
	{ "UTC", NOW, "at @1796112000.5", S(1796112000) + S(1) / 2 },
	{ "UTC", NOW, "at @0", 0 },
	/* A time alone means the next such time. */
	{ "UTC", NOW, "at 15:22:35", S(NOW + 3 * 3600 + 22 * 60 + 35) },
	{ "UTC", NOW, "at 12:00:01", S(NOW + 1) },
	{ "UTC", NOW, "at 12:00", S(NOW + 86400) },
	{ "UTC", NOW, "at 11:59", S(NOW + 86400 - 60) },
	{ "UTC", NOW, "at 0:00", S(NOW + 43200) },
	{ "UTC", NOW, "at 15:00 +02:00", S(NOW + 3600) },
	{ "UTC", NOW, "at 13:00 +02:00", S(NOW + 86400 - 3600) },
	{ "UTC", NOW, "at 15:00 Asia/Tokyo", S(NOW + 18 * 3600) },
	/* These are words of at(1). */
	{ "UTC", NOW, "at 8am", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at 8 AM", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at 3:22:35pm", S(NOW + 3 * 3600 + 22 * 60 + 35) },
	{ "UTC", NOW, "at 12am", S(NOW + 12 * 3600) },
	{ "UTC", NOW, "at 12:30 pm", S(NOW + 1800) },
	{ "UTC", NOW, "at noon", S(NOW + 86400) },
	{ "UTC", NOW, "at midnight", S(NOW + 43200) },
	{ "UTC", NOW, "at noon tomorrow", S(NOW + 86400) },
	{ "UTC", NOW, "at tomorrow 8am", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at 8am tomorrow", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at 8am 2026-12-01 Europe/Berlin", S(1796108400) },
	{ "UTC", NOW, "at monday", S(NOW + 7 * 86400 - 43200) },
	{ "UTC", NOW, "at Mon 13:00", S(NOW + 3600) },
	{ "UTC", NOW, "at mon 11:00", S(NOW + 7 * 86400 - 3600) },
	{ "UTC", NOW, "at next monday 13:00", S(NOW + 7 * 86400 + 3600) },
	{ "UTC", NOW, "at next monday", S(NOW + 7 * 86400 - 43200) },
	{ "UTC", NOW, "at Tue", S(NOW + 43200) },
	{ "UTC", NOW, "at next tue 8am", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at 8am sunday", S(NOW + 6 * 86400 - 4 * 3600) },
	{ "UTC", NOW, "at tuesday tomorrow", S(NOW + 43200) },
	/* A named day is that day, past or not. */
	{ "UTC", NOW, "at today 11:00", S(NOW - 3600) },
	{ "UTC", NOW, "at today", S(NOW - 43200) },
	{ "UTC", NOW, "at tomorrow", S(NOW + 43200) },
	{ "UTC", NOW, "at tomorrow 08:00", S(NOW + 20 * 3600) },
	{ "UTC", NOW, "at yesterday 12:00", S(NOW - 86400) },
	{ "UTC", NOW, "at tomorrow 08:00 Europe/Berlin", S(NOW + 19 * 3600) },
	{ "UTC", NOW, "at 2020-02-29", S(1582934400) },
	{ BERLIN, NOW, "at 2026-12-01 08:00", S(1796108400) },
	{ BERLIN, NOW, "at 2026-07-01 08:00", S(1782885600) },
	{ BERLIN, NOW, "at 2026-07-01 08:00 UTC", S(1782892800) },
	/* The time is skipped, and read as if the clock had not been changed yet. */
	{ BERLIN, NOW, "at 2026-03-29 01:59:59", S(1774745999) },
	{ BERLIN, NOW, "at 2026-03-29 02:00", S(1774746000) },
	{ BERLIN, NOW, "at 2026-03-29 02:30", S(1774747800) },
	{ BERLIN, NOW, "at 2026-03-29 03:00", S(1774746000) },
	{ BERLIN, NOW, "at 2026-03-29 03:30", S(1774747800) },
	/* The time comes twice: it means the first of the two, and the second with its offset. */
	{ BERLIN, NOW, "at 2026-10-25 01:59:59", S(1792886399) },
	{ BERLIN, NOW, "at 2026-10-25 02:00", S(1792886400) },
	{ BERLIN, NOW, "at 2026-10-25 02:30", S(1792888200) },
	{ BERLIN, NOW, "at 2026-10-25 02:30 +02:00", S(1792888200) },
	{ BERLIN, NOW, "at 2026-10-25 02:30 +01:00", S(1792891800) },
	{ BERLIN, NOW, "at 2026-10-25 03:00", S(1792893600) },
	{ POSIX, NOW, "at 2026-03-29 02:30", S(1774747800) },
	{ POSIX, NOW, "at 2026-10-25 02:30", S(1792888200) },
	{ "UTC", NOW, "at 2026-10-25 02:30 Europe/Berlin", S(1792888200) },
	{ "America/New_York", NOW, "at 2026-03-08 02:30", S(1772955000) },
	{ "America/New_York", NOW, "at 2026-11-01 01:30", S(1793511000) },
	{ "Australia/Lord_Howe", NOW, "at 2026-10-04 02:15", S(1791042300) },
	{ "Australia/Lord_Howe", NOW, "at 2026-04-05 01:45", S(1775313900) },
	{ "Pacific/Apia", NOW, "at 2011-12-29 12:00", S(1325196000) },
	{ "Pacific/Apia", NOW, "at 2011-12-30 12:00", S(1325282400) },
	{ "Pacific/Apia", NOW, "at 2011-12-31 12:00", S(1325282400) },
	/* The next 02:30, seen from just before and on the days of the changes. */
	{ BERLIN, 1774738800, "at 02:30", S(1774747800) },
	{ BERLIN, 1774747800, "at 02:30", S(1774747800 + 82800) },
	{ BERLIN, 1792888199, "at 02:30", S(1792888200) },
	{ BERLIN, 1792888200, "at 02:30", S(1792888200 + 90000) },
	/* Tomorrow is the next day of the calendar, not 24 hours on. */
	{ BERLIN, 1774692000, "at tomorrow 12:00", S(1774778400) },
	{ "UTC", NOW, "at", WRONG },
	{ "UTC", NOW, "at ", WRONG },
	{ "UTC", NOW, "at 30s", WRONG },
	{ "UTC", NOW, "at 24:00", WRONG },
	{ "UTC", NOW, "at 12:60", WRONG },
	{ "UTC", NOW, "at 12:00:60", WRONG },
	{ "UTC", NOW, "at 12", WRONG },
	{ "UTC", NOW, "at 12:0x", WRONG },
	{ "UTC", NOW, "at 12:00:00.", WRONG },
	{ "UTC", NOW, "at 2026-02-29", WRONG },
	{ "UTC", NOW, "at 2026-13-01", WRONG },
	{ "UTC", NOW, "at 2026-00-01", WRONG },
	{ "UTC", NOW, "at 2026-04-31", WRONG },
	{ "UTC", NOW, "at 2100-02-29", WRONG },
	{ "UTC", NOW, "at 1969-12-31", WRONG },
	{ "UTC", NOW, "at 2300-01-01", WRONG },
	{ "UTC", NOW, "at 01.12.2026", WRONG },
	{ "UTC", NOW, "at 2026-12-01x08:00", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 Europe/Nowhere", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 ../etc/passwd", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 Europe/../Europe/Berlin", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 /etc/localtime", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 XYZ", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 +25:00", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 +01:60", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 +01:59", S(1796112000) - S(3600 + 59 * 60) },
	{ "UTC", NOW, "at 2026-12-01 08:00 +1:00", WRONG },
	{ "UTC", NOW, "at 2026-12-01 08:00 UTC UTC", WRONG },
	{ "UTC", NOW, "at tuesday today", WRONG },
	{ "UTC", NOW, "at next", WRONG },
	{ "UTC", NOW, "at next week", WRONG },
	{ "UTC", NOW, "at 13am", WRONG },
	{ "UTC", NOW, "at 0pm", WRONG },
	{ "UTC", NOW, "at 8am 9am", WRONG },
	{ "UTC", NOW, "at noon 8am", WRONG },
	{ "UTC", NOW, "at 8amish", WRONG },
	{ "UTC", NOW, "at today tomorrow", WRONG },
	{ "UTC", NOW, "at today 2026-12-01", WRONG },
	{ "UTC", NOW, "at UTC", WRONG },
	{ "UTC", NOW, "at @", WRONG },
	{ "UTC", NOW, "at @x", WRONG },
	{ "UTC", NOW, "at now now", WRONG },
	{ "UTC", NOW, "at 12:00Europe/Berlin", WRONG },
};

static void test_points(void)
{
	char what[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(points); i++) {
		struct when when = { };
		const char *zone = points[i].zone;
		int well;

		setenv("TZ", zone, 1);
		tzset();
		well = when_parse(points[i].text, S(points[i].now), &when);
		snprintf(what, sizeof(what), "in %s", zone);
		result((well ? when.kind == WHEN_REAL && when.ns == points[i].ns :
			       points[i].ns == WRONG) &&
		       !strcmp(getenv("TZ"), zone), what, points[i].text);
		if (well && when.ns != points[i].ns)
			printf("# is %" PRIu64 "\n", when.ns);
	}
}

static const struct {
	const char	*text;
	enum when_kind	kind;
	uint64_t	ns;
} kinds[] = {
	{ "30s", WHEN_SPAN, S(30) },
	{ "in 1h30m", WHEN_SPAN, S(5400) },
	{ "in  30", WHEN_SPAN, S(30) },
	{ "clock 5", WHEN_CLOCK, 5 },
	{ "clock 9223372036854775807", WHEN_CLOCK, INT64_MAX },
	{ "clock 9223372036854775808", WHEN_CLOCK, WRONG },
	{ "clock", WHEN_CLOCK, WRONG },
	{ "clock 5s", WHEN_CLOCK, WRONG },
	{ "clock -5", WHEN_CLOCK, WRONG },
	{ "in", WHEN_SPAN, WRONG },
	{ "in in 5s", WHEN_SPAN, WRONG },
	/* The text may mean a time of day or seconds. */
	{ "8.30", WHEN_SPAN, WRONG },
	{ "in 8.30", WHEN_SPAN, WRONG },
	{ "+8.30", WHEN_SPAN, WRONG },
	{ "8.3", WHEN_SPAN, S(8) + 300000000 },
	{ "8.300", WHEN_SPAN, S(8) + 300000000 },
	{ "24.30", WHEN_SPAN, S(24) + 300000000 },
	{ "8.60", WHEN_SPAN, S(8) + 600000000 },
	{ "8.30 s", WHEN_SPAN, S(8) + 300000000 },
	{ "8:30", WHEN_REAL, S(NOW + 20 * 3600 + 1800) },
	{ "in -5s", WHEN_SPAN, WRONG },
	{ "+5min", WHEN_SPAN, S(300) },
	{ "+ 1h30m", WHEN_SPAN, S(5400) },
	{ "12 M", WHEN_SPAN, S(31557600) },
	{ "15:22", WHEN_REAL, S(NOW + 3 * 3600 + 22 * 60) },
	{ "1:30", WHEN_REAL, S(NOW + 13 * 3600 + 1800) },
	{ "8am", WHEN_REAL, S(NOW + 20 * 3600) },
	{ "8 pm", WHEN_REAL, S(NOW + 8 * 3600) },
	{ "tomorrow 8am", WHEN_REAL, S(NOW + 20 * 3600) },
	{ "noon", WHEN_REAL, S(NOW + 86400) },
	{ "next monday", WHEN_REAL, S(NOW + 7 * 86400 - 43200) },
	{ "2026-12-01 08:00", WHEN_REAL, S(1796112000) },
	{ "@1796112000", WHEN_REAL, S(1796112000) },
	{ "in 15:22", WHEN_SPAN, WRONG },
	{ "++5s", WHEN_SPAN, WRONG },
	{ "+", WHEN_SPAN, WRONG },
	{ "-5s", WHEN_SPAN, WRONG },
	{ "inside", WHEN_SPAN, WRONG },
	{ "", WHEN_SPAN, WRONG },
};

static void test_kinds(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct when when = { };
		int well = when_parse(kinds[i].text, S(NOW), &when);

		bool right = when.kind == kinds[i].kind && when.ns == kinds[i].ns;

		result(well ? right : kinds[i].ns == WRONG, "time",
		       kinds[i].text);
	}
}

/* The message tells what is wrong with each text. */
static const struct {
	const char	*text, *wrong;
} reasons[] = {
	{ "5 parsecs", "'parsecs' is no unit of time: take ns, us, ms, s, min, h, d, w, M or y" },
	{ "293y", "longer than 292 years" },
	{ "", "a day or a time of day is missing" },
	{ "in", "" },
	{ "1h30", "a number without a unit is understood as 30s: write its unit, too" },
	{ "8.30", "understood as 8.30 seconds: write 8.30s, or 8:30 for a time of day" },
	{ "in -5s", "understood as 5s before now: a span is not less than 0" },
	{ "clock 5s", "the clock's ns go from 0 to 9223372036854775807" },
	{ "at 2026-02-29", "2026-02 has 28 days" },
	{ "at 2026-13-01", "there is no month 13" },
	{ "at 1969-12-31", "the year 1969 is before 1970" },
	{ "at 2300-01-01", "that is later than a wheel's clock goes: the year 2262" },
	{ "at 2026-12-01x", "'x' follows without a space" },
	{ "at 24:00", "hours go from 0 to 23" },
	{ "at 13am", "hours before am and pm go from 1 to 12" },
	{ "at 12:60", "minutes and seconds go from 0 to 59" },
	{ "at 12:0x", "'x' follows without a space" },
	{ "at 12:", "'12:' is no time of day such as 08:00" },
	{ "at 8am Europe/Nowhere", "'Europe/Nowhere' is no day, no time of day and no time zone" },
	{ "at 8am +25:00", "'+25:00' is no offset from UTC such as +02:00" },
	{ "at Wed 2026-12-01", "2026-12-01 is a Tuesday" },
	{ "at @x", "'@x' is no number of seconds since 1970" },
	{ "at 8am UTC UTC", "'UTC' is too much" },
	{ "at UTC", "a day or a time of day is missing" },
};

static void test_reasons(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		bool said, well;
		struct when when;

		setenv("TZ", "UTC", 1);
		tzset();
		well = when_parse(reasons[i].text, S(NOW), &when);
		said = !strcmp(times_wrong(), reasons[i].wrong);
		result(!well && said, "what is wrong with", reasons[i].text);
		if (!said)
			printf("# says: %s\n", times_wrong());
	}
}

static void test_spread(void)
{
	bool seen[11] = { }, within = true, all = true, done = true;
	struct when when;
	size_t i;

	for (i = 0; i < 1000; i++) {
		when = (struct when) { .kind = WHEN_REAL, .ns = S(NOW) };
		done &= when_spread(&when, ARRAY_SIZE(seen) - 1);
		within &= when.kind == WHEN_REAL && when.ns >= S(NOW) &&
			  when.ns - S(NOW) < ARRAY_SIZE(seen);
		if (within)
			seen[when.ns - S(NOW)] = true;
	}
	for (i = 0; i < ARRAY_SIZE(seen); i++)
		all &= seen[i];
	result(done && within, "spread", "by no more than the span");
	result(all, "spread", "by each part of the span");
	when = (struct when) { .ns = S(1) };
	result(when_spread(&when, 0) && when.ns == S(1), "spread", "by 0");
	when = (struct when) { .ns = TIME_MAX_NS };
	result(when_spread(&when, TIME_MAX_NS) && when.ns >= TIME_MAX_NS,
	       "spread", "by the longest span");
}

static const struct {
	int64_t		ns;
	const char	*text;
} shown[] = {
	{ 0, "0ns" },
	{ 999, "999ns" },
	{ 1000, "1us" },
	{ 1250, "1.25us" },
	{ 999499, "999us" },
	{ 999500, "1ms" },
	{ 12500000, "12.5ms" },
	{ 999999999, "1s" },
	{ 1000000000, "1s" },
	{ 1234567890, "1.23s" },
	{ 9994000000, "9.99s" },
	{ 9996000000, "10s" },
	{ 29960000000, "30s" },
	{ 59949999999, "59.9s" },
	{ 59950000000, "1m" },
	{ 90000000000, "1m30s" },
	{ 3599600000000, "1h" },
	{ 5400000000000, "1h30m" },
	{ 172799000000000, "47h59m" },
	{ 172800000000000, "2d" },
	{ 180000000000000, "2d2h" },
	{ -1500000000, "-1.5s" },
	{ -5400000000000, "-1h30m" },
	{ INT64_MAX, "106751d23h" },
};

/* A span is printed in the unit that was given. */
static const struct {
	uint64_t	ns;
	const char	*like, *text;
} alike[] = {
	{ 100000, "10us", "100us" },
	{ 100000, "5ns", "100000ns" },
	{ 100000, "1 usec", "100usec" },
	{ 100000, "1s", "100us" },
	{ S(86400), "48h", "24h" },
	{ S(86400), "1d 48h", "24h" },
	{ S(86400), "999999", "24h" },
};

static void test_shown(void)
{
	char text[TIME_TEXT];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shown); i++) {
		span_text(text, sizeof(text), shown[i].ns);
		result(!strcmp(text, shown[i].text), "shown as", shown[i].text);
		if (strcmp(text, shown[i].text))
			printf("# is %s\n", text);
	}
	for (i = 0; i < ARRAY_SIZE(alike); i++) {
		span_text_like(text, sizeof(text), alike[i].ns, alike[i].like);
		result(!strcmp(text, alike[i].text), "shown like", alike[i].like);
	}
	setenv("TZ", BERLIN, 1);
	tzset();
	real_text(text, sizeof(text), S(1796112000), false);
	result(!strcmp(text, "2026-12-01 09:00:00"), "shown as", text);
	real_text(text, sizeof(text), S(1782892800) + 1234567, true);
	result(!strcmp(text, "2026-07-01T10:00:00.001234+02:00"), "shown as",
	       text);
	setenv("TZ", "<-0330>3:30", 1);
	tzset();
	real_text(text, sizeof(text), S(1796112000), true);
	result(!strcmp(text, "2026-12-01T04:30:00.000000-03:30"), "shown as",
	       text);
}

int main(void)
{
	test_spans();
	test_points();
	test_kinds();
	test_reasons();
	test_spread();
	test_shown();
	printf("1..%u\n", number);
	return status;
}
