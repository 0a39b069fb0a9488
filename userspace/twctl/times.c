// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times: spans in the grammar of systemd.time(7), and points of time in local
 * time, UTC or a named zone. Local times that a change of offset skips or
 * repeats are read as RFC 5545 says: a skipped time with the offset before the
 * change, a time that comes twice as the first of the two.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "times.h"

#define MINUTE	60
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)

/* As in systemd.time(7): a month is a twelfth of 365.25 days. */
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

/* Reads a number of at most @most digits at *@text. */
static bool take_number(const char **text, int most, uint64_t *number)
{
	const char *at = *text;

	for (*number = 0; isdigit((unsigned char)*at); at++) {
		if (at - *text == most)
			return false;
		*number = *number * 10 + (*at - '0');
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

/* Digits after a point, as parts of 10^9; the tenth and later digits are ignored. */
static bool take_fraction(const char **text, uint64_t *billionths)
{
	const char *at = *text;
	uint64_t scale = NSEC_PER_SEC / 10;

	for (*billionths = 0; isdigit((unsigned char)*at); at++) {
		*billionths += scale * (*at - '0');
		scale /= 10;
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

static const char *skip_space(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

static const struct unit *take_unit(const char **text)
{
	size_t i, length = 0;

	/* Is it a letter of ASCII, or a byte of µ? */
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

/* Reads one part like "1.5 h", and the white space around it. -1: it is no such part. */
static __int128 take_part(const char **text)
{
	uint64_t whole, billionths = 0;
	const struct unit *unit;

	*text = skip_space(*text);
	if (!take_number(text, 18, &whole))
		return -1;
	if (**text == '.') {
		++*text;
		if (!take_fraction(text, &billionths))
			return -1;
	}
	*text = skip_space(*text);
	unit = take_unit(text);
	if (!unit)
		return -1;
	*text = skip_space(*text);
	return (__int128)whole * unit->ns +
	       (__int128)billionths * unit->ns / NSEC_PER_SEC;
}

bool span_parse(const char *text, uint64_t *ns)
{
	__int128 sum = 0, part;

	do {
		part = take_part(&text);
		if (part < 0)
			return false;
		sum += part;
		if (sum > TIME_MAX_NS)
			return false;
	} while (*text);
	*ns = sum;
	return true;
}

/* A point of time as it is written: a date, a time of day, and a zone if given. */
struct written {
	bool		has_date;
	bool		has_time;
	bool		has_offset;
	int		weekday;	/* -1: not given */
	long		offset;		/* seconds east of UTC */
	char		zone[64];
	struct tm	tm;
	uint64_t	fraction;
};

static int days_of_month(int year, int month)
{
	static const int days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
	};
	bool leap = (year % 4 == 0 && year % 100) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* YYYY-MM-DD */
static bool take_date(const char **text, struct written *written)
{
	uint64_t year, month, day;

	if (!take_number(text, 4, &year) || *(*text)++ != '-' ||
	    !take_number(text, 2, &month) || *(*text)++ != '-' ||
	    !take_number(text, 2, &day))
		return false;
	if (year < 1970 || month < 1 || month > 12 || day < 1 ||
	    day > (uint64_t)days_of_month(year, month))
		return false;
	written->tm.tm_year = year - 1900;
	written->tm.tm_mon = month - 1;
	written->tm.tm_mday = day;
	written->has_date = true;
	return true;
}

/* HH:MM, HH:MM:SS, HH:MM:SS.FRACTION */
static bool take_time(const char **text, struct written *written)
{
	uint64_t hour, minute, second = 0;

	if (!take_number(text, 2, &hour) || *(*text)++ != ':' ||
	    !take_number(text, 2, &minute))
		return false;
	if (**text == ':') {
		++*text;
		if (!take_number(text, 2, &second))
			return false;
		if (**text == '.') {
			++*text;
			if (!take_fraction(text, &written->fraction))
				return false;
		}
	}
	if (hour > 23 || minute > 59 || second > 59)
		return false;
	written->tm.tm_hour = hour;
	written->tm.tm_min = minute;
	written->tm.tm_sec = second;
	written->has_time = true;
	return true;
}

/* +02:00, +0200, +02 */
static bool take_offset(const char **text, struct written *written)
{
	int sign = *(*text)++ == '-' ? -1 : 1;
	uint64_t hours, minutes = 0;
	const char *start = *text;

	if (!take_number(text, 4, &hours))
		return false;
	if (*text - start == 4) {
		minutes = hours % 100;
		hours /= 100;
	} else if (*text - start != 2) {
		return false;
	} else if (**text == ':') {
		++*text;
		start = *text;
		if (!take_number(text, 2, &minutes) || *text - start != 2)
			return false;
	}
	if (hours > 14 || minutes > 59)
		return false;
	written->offset = sign * (long)(hours * HOUR + minutes * MINUTE);
	written->has_offset = true;
	return true;
}

/* Is there such a zone? The C library would take an unknown one for UTC. */
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
	size_t length = strcspn(*text, " \t\n");

	if (**text == '+' || **text == '-')
		return take_offset(text, written);
	if (!length || length >= sizeof(written->zone))
		return false;
	memcpy(written->zone, *text, length);
	*text += length;
	if (!strcmp(written->zone, "Z") || !strcmp(written->zone, "UTC")) {
		written->has_offset = true;
		return true;
	}
	return zone_exists(written->zone);
}

static bool take_weekday(const char **text, struct written *written)
{
	static const char * const names[] = {
		"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday",
		"Friday", "Saturday"
	};
	size_t length = strcspn(*text, " \t\n");
	int i;

	for (i = 0; i < 7; i++) {
		if ((length == 3 || length == strlen(names[i])) &&
		    !strncasecmp(*text, names[i], length)) {
			written->weekday = i;
			*text = skip_space(*text + length);
			return true;
		}
	}
	return false;
}

static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) ||
	    ((*text)[length] && !isspace((unsigned char)(*text)[length])))
		return false;
	*text = skip_space(*text + length);
	return true;
}

/* Reads today, tomorrow or yesterday as the number of @days from today. */
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
 * The moment when clocks of the zone in TZ show @tm. Offsets change by less
 * than a day. So the offsets a day before and a day after @tm, as if @tm were of
 * UTC, are the two that can apply.
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
}

static bool moment(const struct written *written, time_t *when)
{
	struct tm tm = written->tm;

	if (written->has_offset)
		*when = timegm(&tm) - written->offset;
	else
		*when = moment_of(&tm);
	return *when >= 0 && (uint64_t)*when < TIME_MAX_NS / NSEC_PER_SEC;
}

/* In the zone of TZ. A missing date means today, a missing time midnight. */
static bool resolve(struct written *written, int days, uint64_t real_now,
		    uint64_t *ns)
{
	time_t now = real_now / NSEC_PER_SEC, when;
	struct tm today, check;

	if (!written->has_date) {
		if (written->has_offset) {
			now += written->offset;
			gmtime_r(&now, &today);
			now -= written->offset;
		} else {
			localtime_r(&now, &today);
		}
		written->tm.tm_year = today.tm_year;
		written->tm.tm_mon = today.tm_mon;
		written->tm.tm_mday = today.tm_mday;
		add_days(&written->tm, days == INT_MAX ? 0 : days);
	}
	if (!moment(written, &when))
		return false;
	/* A time without a date is the next one that comes. */
	if (!written->has_date && days == INT_MAX &&
	    when * NSEC_PER_SEC + written->fraction <= real_now) {
		add_days(&written->tm, 1);
		if (!moment(written, &when))
			return false;
	}
	check = written->tm;
	timegm(&check);
	if (written->weekday >= 0 && check.tm_wday != written->weekday)
		return false;
	*ns = when * NSEC_PER_SEC + written->fraction;
	return true;
}

/* Calls resolve() in the zone that is given. */
static bool resolve_in_zone(struct written *written, int days,
			    uint64_t real_now, uint64_t *ns)
{
	char *old = getenv("TZ");
	bool done;

	if (!*written->zone || written->has_offset)
		return resolve(written, days, real_now, ns);
	old = old ? strdup(old) : NULL;
	setenv("TZ", written->zone, 1);
	tzset();
	done = resolve(written, days, real_now, ns);
	if (old)
		setenv("TZ", old, 1);
	else
		unsetenv("TZ");
	tzset();
	free(old);
	return done;
}

/* @1764576000 or @1764576000.5: seconds since 1970 */
static bool parse_epoch(const char *text, uint64_t *ns)
{
	uint64_t seconds, fraction = 0;

	if (!take_number(&text, 10, &seconds))
		return false;
	if (*text == '.') {
		text++;
		if (!take_fraction(&text, &fraction))
			return false;
	}
	*ns = seconds * NSEC_PER_SEC + fraction;
	return !*text && seconds < TIME_MAX_NS / NSEC_PER_SEC;
}

static bool has_time_next(const char *text)
{
	return isdigit((unsigned char)text[0]) &&
	       (text[1] == ':' ||
		(isdigit((unsigned char)text[1]) && text[2] == ':'));
}

/* [WEEKDAY] [DATE | today | tomorrow | yesterday] [TIME] [ZONE], or now */
static bool parse_point(const char *text, uint64_t real_now, uint64_t *ns)
{
	struct written written = { .weekday = -1 };
	int days = INT_MAX;
	const char *word = text;

	if (take_word(&word, "now")) {
		*ns = real_now;
		return !*word;
	}
	if (*text == '@')
		return parse_epoch(text + 1, ns);
	take_weekday(&text, &written);
	if (!take_day(&text, &days) && isdigit((unsigned char)*text) &&
	    !has_time_next(text)) {
		if (!take_date(&text, &written))
			return false;
		if (*text == 'T' && has_time_next(text + 1))
			text++;
		else if (*text && !isspace((unsigned char)*text))
			return false;
		text = skip_space(text);
	}
	if (has_time_next(text) && !take_time(&text, &written))
		return false;
	if (!written.has_date && !written.has_time && days == INT_MAX)
		return false;
	/* "08:00Z" and "08:00+02:00", but "08:00 Europe/Berlin" */
	if (*text && !isspace((unsigned char)*text) && written.has_time &&
	    *text != '+' && *text != '-' && *text != 'Z')
		return false;
	text = skip_space(text);
	if (*text && !take_zone(&text, &written))
		return false;
	return !*skip_space(text) &&
	       resolve_in_zone(&written, days, real_now, ns);
}

bool when_parse(const char *text, uint64_t real_now, struct when *when)
{
	text = skip_space(text);
	if (take_word(&text, "at")) {
		when->kind = WHEN_REAL;
		return parse_point(text, real_now, &when->ns);
	}
	if (take_word(&text, "clock")) {
		when->kind = WHEN_CLOCK;
		return take_number(&text, 19, &when->ns) && !*skip_space(text) &&
		       when->ns <= TIME_MAX_NS;
	}
	take_word(&text, "in");
	when->kind = WHEN_SPAN;
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

/* Prints local time; with @iso in the form of RFC 3339, with the offset. */
void real_text(char *text, size_t size, uint64_t ns, bool iso)
{
	time_t s = ns / NSEC_PER_SEC;
	char zone[16] = "";
	struct tm tm;
	size_t length;

	localtime_r(&s, &tm);
	length = strftime(text, size, iso ? "%FT%T" : "%F %T", &tm);
	if (!iso)
		return;
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(text + length, size - length, ".%06llu%.3s:%s",
		 (unsigned long long)(ns % NSEC_PER_SEC / 1000), zone, zone + 3);
}
