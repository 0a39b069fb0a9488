// SPDX-License-Identifier: GPL-2.0-only
/*
 * Points of time, in local time, UTC or a named zone. Local times that a change of
 * offset skips or repeats are read as RFC 5545 says: a skipped time with the offset
 * before the change, a time that comes twice as the first of the two.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "scan.h"
#include "times.h"

#define MINUTE	60
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

/* The text names no day. */
#define ANY_DAY	INT_MAX

static const char * const weekdays[] = {
	"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"
};

/*
 * A point of time as it is written. @days: from today, or ANY_DAY. @weekday: 0 is Sunday, -1
 * if none is named; @next: the weekday does not mean today. @offset: seconds east of UTC.
 */
struct written {
	bool		has_date;
	bool		has_time;
	bool		has_offset;
	bool		next;
	int		days;
	int		weekday;
	long		offset;
	char		zone[64];
	struct tm	tm;
	uint64_t	fraction;
};

/*
 * This part reads pieces of a point of time. Each function returns whether @text begins with a
 * right piece, and moves @text behind it.
 */

/* Returns the length of the word at @text. */
static int word_length(const char *text)
{
	return strcspn(text, " \t\n");
}

static int days_of_month(int year, int month)
{
	static const int days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* Reads YYYY-MM-DD. */
static bool take_date(const char **text, struct written *written)
{
	const char *date = *text;
	int length = word_length(date);
	uint64_t year, month, day;

	if (!take_number(text, 4, &year) || *(*text)++ != '-' ||
	    !take_number(text, 2, &month) || *(*text)++ != '-' ||
	    !take_number(text, 2, &day))
		return refuse("'%.*s' is no date such as 2026-12-01", length, date);
	if (year < 1970)
		return refuse("the year %d is before 1970", (int)year);
	if (month < 1 || month > 12)
		return refuse("there is no month %d", (int)month);
	if (day < 1 || day > (uint64_t)days_of_month(year, month))
		return refuse("%d-%02d has %d days", (int)year, (int)month,
			      days_of_month(year, month));
	written->tm.tm_year = year - 1900;
	written->tm.tm_mon = month - 1;
	written->tm.tm_mday = day;
	written->has_date = true;
	return true;
}

/* Reads "am" or "pm" behind an hour from 1 to 12. */
static bool take_half(const char **text, uint64_t *hour)
{
	const char *at = skip_space(*text);
	bool pm = tolower((unsigned char)*at) == 'p';

	if ((!pm && tolower((unsigned char)*at) != 'a') ||
	    tolower((unsigned char)at[1]) != 'm' || isalpha((unsigned char)at[2]))
		return true;
	if (*hour < 1 || *hour > 12)
		return refuse("hours before am and pm go from 1 to 12");
	*hour = *hour % 12 + 12 * pm;
	*text = at + 2;
	return true;
}

static bool take_seconds(const char **text, struct written *written,
			 uint64_t *second)
{
	++*text;
	if (!take_number(text, 2, second))
		return false;
	if (**text != '.')
		return true;
	++*text;
	return take_fraction(text, &written->fraction);
}

/* Reads HH:MM, HH:MM:SS, HH:MM:SS.FRACTION, or H, with "am" or "pm" behind them. */
static bool take_time(const char **text, struct written *written)
{
	uint64_t hour, minute = 0, second = 0;
	const char *time = *text;

	if (!take_number(text, 2, &hour) ||
	    (**text == ':' && (++*text, !take_number(text, 2, &minute))) ||
	    (**text == ':' && !take_seconds(text, written, &second)))
		return refuse("'%.*s' is no time of day such as 08:00",
			      word_length(time), time);
	if (!take_half(text, &hour))
		return false;
	if (hour > 23)
		return refuse("hours go from 0 to 23");
	if (minute > 59 || second > 59)
		return refuse("minutes and seconds go from 0 to 59");
	written->tm.tm_hour = hour;
	written->tm.tm_min = minute;
	written->tm.tm_sec = second;
	written->has_time = true;
	return true;
}

/* Reads +02:00, +0200 or +02. */
static bool take_offset(const char **text, struct written *written)
{
	const char *offset = *text, *start = offset + 1;
	int sign = *(*text)++ == '-' ? -1 : 1;
	uint64_t hours, minutes = 0;
	bool right;

	right = take_number(text, 4, &hours);
	if (right && *text - start == 4) {
		minutes = hours % 100;
		hours /= 100;
	} else if (right && *text - start == 2 && **text == ':') {
		start = ++*text;
		right = take_number(text, 2, &minutes) && *text - start == 2;
	} else {
		right &= *text - start == 2;
	}
	if (!right || hours > 14 || minutes > 59)
		return refuse("'%.*s' is no offset from UTC such as +02:00",
			      word_length(offset), offset);
	written->offset = sign * (long)(hours * HOUR + minutes * MINUTE);
	written->has_offset = true;
	return true;
}

/* Whether the zone exists. The C library would take an unknown zone for UTC. */
static bool zone_exists(const char *name)
{
	const char *dir = getenv("TZDIR");
	char path[PATH_MAX], magic[4];
	bool yes;
	int fd;

	if (!isalpha((unsigned char)*name) || strstr(name, ".."))
		return false;
	snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/usr/share/zoneinfo",
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	yes = read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	      !memcmp(magic, "TZif", sizeof(magic));
	close(fd);
	return yes;
}

static bool take_zone(const char **text, struct written *written)
{
	const char *zone = *text;
	int length = word_length(zone);

	if (*zone == '+' || *zone == '-')
		return take_offset(text, written);
	snprintf(written->zone, sizeof(written->zone), "%.*s", length, zone);
	*text += length;
	if (!strcmp(written->zone, "Z") || !strcmp(written->zone, "UTC"))
		written->has_offset = true;
	else if (!zone_exists(written->zone))
		return refuse("'%.*s' is no day, no time of day and no time zone",
			      length, zone);
	return true;
}

/* Reads a day such as Monday, mon or next monday. */
static bool take_weekday(const char **text, struct written *written)
{
	const char *at = *text;
	size_t length;
	bool next;
	int i;

	next = take_word(&at, "next");
	length = word_length(at);
	for (i = 0; i < 7; i++) {
		if ((length == 3 || length == strlen(weekdays[i])) &&
		    !strncasecmp(at, weekdays[i], length)) {
			written->weekday = i;
			written->next = next;
			*text = at + length;
			return true;
		}
	}
	return false;
}

/* Reads today, tomorrow or yesterday. */
static bool take_day(const char **text, int *days)
{
	if (take_word(text, "today"))
		*days = 0;
	else if (take_word(text, "tomorrow"))
		*days = 1;
	else if (take_word(text, "yesterday"))
		*days = -1;
	else
		return false;
	return true;
}

static bool take_name_of_time(const char **text, struct written *written)
{
	if (take_word(text, "noon"))
		written->tm.tm_hour = 12;
	else if (!take_word(text, "midnight"))
		return false;
	written->has_time = true;
	return true;
}

/* This part makes a moment of what is written. */

static bool same_time(const struct tm *a, const struct tm *b)
{
	return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon &&
	       a->tm_mday == b->tm_mday && a->tm_hour == b->tm_hour &&
	       a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

static long offset_at(time_t when)
{
	struct tm tm;

	return localtime_r(&when, &tm) ? tm.tm_gmtoff : 0;
}

/*
 * The moment when clocks of the zone in TZ show @tm. Offsets change by less than a day. Only
 * two offsets can apply: the ones a day before and a day after @tm, as if @tm were of UTC.
 */
static time_t moment_of(const struct tm *tm)
{
	struct tm copy = *tm, shown;
	time_t as_utc = timegm(&copy);
	time_t before = as_utc - offset_at(as_utc - DAY);
	time_t after = as_utc - offset_at(as_utc + DAY);
	bool is_before, is_after;

	is_before = localtime_r(&before, &shown) && same_time(tm, &shown);
	is_after = localtime_r(&after, &shown) && same_time(tm, &shown);
	if (is_after && (!is_before || after < before))
		return after;
	return before;
}

static void add_days(struct tm *tm, int days)
{
	struct tm noon = {
		.tm_year = tm->tm_year,
		.tm_mon = tm->tm_mon,
		.tm_mday = tm->tm_mday + days,
		.tm_hour = 12,
	};

	timegm(&noon);
	tm->tm_year = noon.tm_year;
	tm->tm_mon = noon.tm_mon;
	tm->tm_mday = noon.tm_mday;
	tm->tm_wday = noon.tm_wday;
}

static bool moment(const struct written *written, uint64_t *ns)
{
	struct tm tm = written->tm;
	time_t when;

	if (written->has_offset)
		when = timegm(&tm) - written->offset;
	else
		when = moment_of(&tm);
	if (when < 0)
		return refuse("that is before 1970");
	if ((uint64_t)when >= TIME_MAX_NS / NSEC_PER_SEC)
		return refuse("that is later than a wheel's clock goes: the year 2262");
	*ns = when * NSEC_PER_SEC + written->fraction;
	return true;
}

/* Sets the date to today, as it is in the zone that is meant. */
static void set_today(struct written *written, uint64_t real_now)
{
	time_t now = real_now / NSEC_PER_SEC + written->offset;
	struct tm today;

	if (written->has_offset)
		gmtime_r(&now, &today);
	else
		localtime_r(&now, &today);
	written->tm.tm_year = today.tm_year;
	written->tm.tm_mon = today.tm_mon;
	written->tm.tm_mday = today.tm_mday;
}

/* A time without a date means the next such time, on the weekday if one is named. */
static bool resolve_next(struct written *written, uint64_t real_now, uint64_t *ns)
{
	int days = written->next;

	add_days(&written->tm, written->next);
	for (; days <= 8; days++, add_days(&written->tm, 1)) {
		if (written->weekday >= 0 && written->tm.tm_wday != written->weekday)
			continue;
		if (!moment(written, ns))
			return false;
		if (*ns > real_now)
			return true;
	}
	return refuse("no such day is near");
}

/* Finds the moment in the zone of TZ. A missing date means today, a missing time midnight. */
static bool resolve(struct written *written, uint64_t real_now, uint64_t *ns)
{
	if (!written->has_date)
		set_today(written, real_now);
	if (!written->has_date && written->days == ANY_DAY)
		return resolve_next(written, real_now, ns);
	add_days(&written->tm, written->has_date ? 0 : written->days);
	if (written->weekday >= 0 && written->tm.tm_wday != written->weekday)
		return refuse("%d-%02d-%02d is a %s", written->tm.tm_year + 1900,
			      written->tm.tm_mon + 1, written->tm.tm_mday,
			      weekdays[written->tm.tm_wday]);
	return moment(written, ns);
}

/* Calls resolve() in the zone that the text names. */
static bool resolve_in_zone(struct written *written, uint64_t real_now,
			    uint64_t *ns)
{
	char *old = getenv("TZ");
	bool done;

	if (!*written->zone || written->has_offset)
		return resolve(written, real_now, ns);
	old = old ? strdup(old) : NULL;
	setenv("TZ", written->zone, 1);
	tzset();
	done = resolve(written, real_now, ns);
	if (old)
		setenv("TZ", old, 1);
	else
		unsetenv("TZ");
	tzset();
	free(old);
	return done;
}

/* This part reads the whole text. */

/* Reads @1764576000 or @1764576000.5: seconds since 1970. */
static bool parse_epoch(const char *text, uint64_t *ns)
{
	const char *at = text + 1;
	uint64_t seconds, fraction = 0;

	if (!take_number(&at, 10, &seconds) ||
	    (*at == '.' && (at++, !take_fraction(&at, &fraction))) ||
	    *skip_space(at) || seconds >= TIME_MAX_NS / NSEC_PER_SEC)
		return refuse("'%s' is no number of seconds since 1970", text);
	*ns = seconds * NSEC_PER_SEC + fraction;
	return true;
}

static bool has_date_next(const char *text)
{
	return text[strspn(text, "0123456789")] == '-';
}

static bool has_time_next(const char *text)
{
	const char *end = text + strspn(text, "0123456789");
	const char *half = skip_space(end);

	return end > text && (*end == ':' ||
	       ((tolower((unsigned char)*half) == 'a' ||
		 tolower((unsigned char)*half) == 'p') &&
		tolower((unsigned char)half[1]) == 'm'));
}

/* A span begins with a number, but not with a date or a time of day. */
bool point_begins(const char *text)
{
	return !isdigit((unsigned char)*text) || has_date_next(text) ||
	       has_time_next(text);
}

/* A date is followed by a space or T, a time by a space, Z or an offset. */
static bool take_end(const char **text, bool of_date)
{
	bool well = !**text || isspace((unsigned char)**text);

	if (of_date && **text == 'T' && has_time_next(*text + 1)) {
		++*text;
		return true;
	}
	if (!of_date)
		well |= **text == 'Z' || **text == '+' || **text == '-';
	if (!well)
		return refuse("'%.*s' follows without a space", word_length(*text),
			      *text);
	*text = skip_space(*text);
	return true;
}

/* Reads days and times of day, in any order. */
static bool take_pieces(const char **text, struct written *written)
{
	while (**text) {
		bool more = !written->has_date && written->days == ANY_DAY;

		if (written->weekday < 0 && take_weekday(text, written)) {
			*text = skip_space(*text);
		} else if (more && take_day(text, &written->days)) {
			continue;
		} else if (more && isdigit((unsigned char)**text) &&
			   has_date_next(*text)) {
			if (!take_date(text, written) || !take_end(text, true))
				return false;
		} else if (!written->has_time && has_time_next(*text)) {
			if (!take_time(text, written) || !take_end(text, false))
				return false;
		} else if (written->has_time || !take_name_of_time(text, written)) {
			return true;
		}
	}
	return true;
}

/* Reads [DAY] [TIME-OF-DAY] [ZONE], or now. */
bool point_parse(const char *text, uint64_t real_now, uint64_t *ns)
{
	struct written written = { .weekday = -1, .days = ANY_DAY };
	const char *word = text;

	if (take_word(&word, "now") && !*word) {
		*ns = real_now;
		return true;
	}
	if (*text == '@')
		return parse_epoch(text, ns);
	if (!take_pieces(&text, &written) || (*text && !take_zone(&text, &written)))
		return false;
	text = skip_space(text);
	if (*text)
		return refuse("'%s' is too much", text);
	if (!written.has_date && !written.has_time && written.weekday < 0 &&
	    written.days == ANY_DAY)
		return refuse("a day or a time of day is missing");
	return resolve_in_zone(&written, real_now, ns);
}
