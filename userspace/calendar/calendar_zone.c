// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time zones, by the C library: see calendar.h. The C library reads the files of tzdata, also
 * files that have been replaced, and uses the rule at their end for later years. libical reads
 * each file once, and guesses the rule of later years.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calendar.h"

#define DAY	86400

static char *saved;

static bool is_name(const char *name)
{
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("/_+-", *at))
			return false;
	return *name && *name != '/' && strlen(name) < CALENDAR_ZONE;
}

bool zone_exists(const char *name)
{
	const char *folder = getenv("TZDIR") ?: "/usr/share/zoneinfo";
	char path[300], magic[4];
	FILE *file;
	bool good;

	if (!strcmp(name, "UTC"))
		return true;
	if (!is_name(name))
		return false;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	good = fread(magic, sizeof(magic), 1, file) && !memcmp(magic, "TZif", 4);
	fclose(file);
	return good;
}

void zone_enter(const char *name)
{
	const char *before = getenv("TZ");
	char zone[CALENDAR_ZONE + 1];

	saved = before ? strdup(before) : NULL;
	snprintf(zone, sizeof(zone), ":%s", name);
	setenv("TZ", strcmp(name, "UTC") ? zone : "UTC0", 1);
	tzset();
}

/* After this call the C library looks again whether the file has been replaced. */
void zone_leave(void)
{
	if (saved)
		setenv("TZ", saved, 1);
	else
		unsetenv("TZ");
	tzset();
	free(saved);
	saved = NULL;
}

/* Returns the seconds east of Greenwich. */
static int64_t offset_at(int64_t utc)
{
	time_t time = utc;
	struct tm tm;

	return localtime_r(&time, &tm) ? tm.tm_gmtoff : 0;
}

int64_t zone_local(int64_t utc)
{
	return utc + offset_at(utc);
}

/* Finds the first moment with another offset than at @before. At @after the offset has changed. */
static int64_t find_change(int64_t before, int64_t after)
{
	int64_t offset = offset_at(before);

	while (after - before > 1) {
		int64_t middle = before + (after - before) / 2;

		if (offset_at(middle) == offset)
			before = middle;
		else
			after = middle;
	}
	return after;
}

struct zone_time zone_time(int64_t local)
{
	/* No offset is as long as a day. */
	int64_t old = offset_at(local - DAY), new = offset_at(local + DAY), change;

	if (old == new)
		return (struct zone_time) { ZONE_ONCE, local - old, 0, 0, 0 };
	change = find_change(local - DAY, local + DAY);
	if (local >= change + old && local < change + new)
		return (struct zone_time) { ZONE_SKIPPED, change, 0,
					    change + old, change + new };
	if (local >= change + new && local < change + old)
		return (struct zone_time) { ZONE_TWICE, local - old, local - new,
					    change + new, change + old };
	return (struct zone_time) {
		ZONE_ONCE, local - (local < change + old ? old : new), 0, 0, 0
	};
}
