// SPDX-License-Identifier: GPL-2.0-only
/*
 * wheels: lists the wheels, by their nodes in /dev/timewheels.
 */
#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include "twctl.h"

#define NODES	"/dev/timewheels"

enum {
	NAME, OWNER, GROUP, MODE, NUMBER, CLOCK, TICK, SLOTS, IDS, COOKIES,
	PENDING, MAX, NEXT, STATE, HELD, BYTES, TOUCH_WORDS, LEASE, MAX_HELD,
	PERIODS, SLACK,
};

const struct column wheel_columns[] = {
	[NAME] = { "NAME", 0, "the wheel's name" },
	[OWNER] = { "OWNER", 0, "user who owns its node" },
	[GROUP] = { "GROUP", COL_HIDDEN, "group of its node" },
	[MODE] = { "MODE", 0, "who may open its node" },
	[NUMBER] = { "NUMBER", COL_NUMBER | COL_HIDDEN,
		"its number in traces and debugfs" },
	[CLOCK] = { "CLOCK", 0, "what turns it" },
	[TICK] = { "TICK", COL_NUMBER, "a step of the hand" },
	[SLOTS] = { "SLOTS", COL_NUMBER, "slots of the ring" },
	[IDS] = { "IDS", COL_BOOL | COL_HIDDEN, "tokens have ids" },
	[COOKIES] = { "COOKIES", COL_BOOL | COL_HIDDEN, "tokens carry cookies" },
	[PENDING] = { "PENDING", COL_NUMBER, "tokens that are pending" },
	[MAX] = { "MAX", COL_NUMBER, "tokens it may hold" },
	[NEXT] = { "NEXT", COL_NUMBER,
		"time until it next looks for expired tokens" },
	[STATE] = { "STATE", 0, "running, paused, draining, or both of these" },
	[HELD] = { "HELD", COL_NUMBER | COL_HIDDEN,
		"tokens that readers hold by a lease" },
	[BYTES] = { "BYTES", COL_NUMBER | COL_HIDDEN, "memory it holds" },
	[TOUCH_WORDS] = { "TOUCH-WORDS", COL_BOOL | COL_HIDDEN,
		"tokens may be touched in mapped memory" },
	[LEASE] = { "LEASE", COL_NUMBER | COL_HIDDEN,
		"how long a reader holds a token, if it has leases" },
	[MAX_HELD] = { "MAX-HELD", COL_NUMBER | COL_HIDDEN,
		"tokens that readers may hold at once, if it has leases" },
	[PERIODS] = { "PERIODS", COL_BOOL | COL_HIDDEN, "tokens may be periodic" },
	[SLACK] = { "SLACK", COL_NUMBER | COL_HIDDEN,
		"how late its timer may be" },
	{ }
};

static void put_owner(struct out *out, const struct stat *stat)
{
	const struct passwd *user = getpwuid(stat->st_uid);
	const struct group *group = getgrgid(stat->st_gid);
	char mode[] = "rwxrwxrwx";
	int i;

	for (i = 0; i < 9; i++) {
		if (!(stat->st_mode & 0400 >> i))
			mode[i] = '-';
	}
	if (user)
		out_text(out, OWNER, "%s", user->pw_name);
	else
		out_text(out, OWNER, "%u", stat->st_uid);
	if (group)
		out_text(out, GROUP, "%s", group->gr_name);
	else
		out_text(out, GROUP, "%u", stat->st_gid);
	out_text(out, MODE, "%s", mode);
}

static void put_settings(struct out *out, const struct timewheel_info *info)
{
	uint32_t flags = info->setup_flags;

	out_bool(out, IDS, !(flags & TIMEWHEEL_SETUP_NO_IDS));
	out_bool(out, COOKIES, !(flags & TIMEWHEEL_SETUP_NO_COOKIES));
	out_bool(out, TOUCH_WORDS, flags & TIMEWHEEL_SETUP_TOUCH_WORDS);
	if (info->lease) {
		out_span(out, LEASE, info->lease);
		out_number(out, MAX_HELD, info->max_held);
	}
	out_bool(out, PERIODS, flags & TIMEWHEEL_SETUP_PERIODS);
	out_span(out, SLACK, info->slack);
}

static void put_info(struct out *out, const struct timewheel_info *info)
{
	out_number(out, NUMBER, info->number);
	out_text(out, CLOCK, "%s", clock_name(info->clock));
	out_span(out, TICK, info->tick);
	out_number(out, SLOTS, info->slots);
	out_number(out, PENDING, info->pending);
	out_number(out, MAX, info->max_tokens);
	if (info->next != TIMEWHEEL_NEVER)
		out_span(out, NEXT, info->next - info->now);
	out_text(out, STATE, "%s", state_name(info->state));
	out_number(out, HELD, info->held);
	out_size(out, BYTES, info->bytes);
	put_settings(out, info);
}

/*
 * If the user may not open a wheel, only its node is known. A wheel that is
 * destroyed in the meantime is left out.
 */
static void put_wheel(struct out *out, const char *name)
{
	struct timewheel_info info = { .size = sizeof(info) };
	char path[sizeof(NODES) + 1 + NAME_MAX];
	struct tw_wheel *wheel;
	struct stat stat_of;
	bool known;

	snprintf(path, sizeof(path), NODES "/%s", name);
	wheel = tw_wheel_open_named(name, O_RDONLY);
	if (!wheel && (errno == ENODEV || errno == ENXIO))
		return;
	known = wheel && !tw_wheel_info(wheel, &info);
	tw_wheel_close(wheel);
	if (stat(path, &stat_of) < 0 || (wheel && !known))
		return;
	out_row(out);
	out_text(out, NAME, "%s", name);
	put_owner(out, &stat_of);
	if (known)
		put_info(out, &info);
}

static int not_hidden(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

/* Lists all wheels. Their folder exists from the first wheel on, the device before. */
char **all_names(void)
{
	struct dirent **entries;
	char **names;
	int i, count;

	count = scandir(NODES, &entries, not_hidden, alphasort);
	if (count < 0 && errno != ENOENT)
		die(STATUS_NOT_ALLOWED, NODES ": %s", strerror(errno));
	if (count < 0 && access("/dev/timewheel", F_OK) < 0)
		exit(device_trouble());
	if (count < 0)
		count = 0;
	names = calloc(count + 1, sizeof(*names));
	if (!names)
		die(STATUS_FAILED, "no memory for names");
	for (i = 0; i < count; i++) {
		names[i] = strdup(entries[i]->d_name);
		free(entries[i]);
	}
	if (count)
		free(entries);
	return names;
}

/* The wheels that the command line names, or all. Ends with NULL. */
char **wheel_names(const struct args *args)
{
	return args->count ? args->arg : all_names();
}

/* Frees a list of all wheels. */
void wheel_names_free(char **names)
{
	char **name;

	for (name = names; *name; name++)
		free(*name);
	free(names);
}

enum status verb_wheels(const struct args *args)
{
	struct out *out = out_begin(args, wheel_columns, "wheels");
	char **names = all_names(), **name;

	for (name = names; *name; name++)
		put_wheel(out, *name);
	wheel_names_free(names);
	out_end(out);
	return STATUS_OK;
}
