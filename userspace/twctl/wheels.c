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

const struct column wheel_columns[] = {
	[WHEEL_NAME] = { "NAME", 0, "the wheel's name" },
	[WHEEL_OWNER] = { "OWNER", 0, "the user who owns its node" },
	[WHEEL_GROUP] = { "GROUP", COL_HIDDEN, "the group of its node" },
	[WHEEL_MODE] = { "MODE", 0, "the mode of its node, as ls(1) has it" },
	[WHEEL_NUMBER] = { "NUMBER", COL_NUMBER | COL_HIDDEN,
		"its number in traces and debugfs" },
	[WHEEL_CLOCK] = { "CLOCK", 0, "monotonic, boottime, realtime or manual" },
	[WHEEL_TICK] = { "TICK", COL_NUMBER, "a step of the hand" },
	[WHEEL_SLOTS] = { "SLOTS", COL_NUMBER, "slots of the ring" },
	[WHEEL_IDS] = { "IDS", COL_BOOL | COL_HIDDEN, "tokens have ids" },
	[WHEEL_COOKIES] = { "COOKIES", COL_BOOL | COL_HIDDEN, "tokens carry cookies" },
	[WHEEL_PENDING] = { "PENDING", COL_NUMBER, "tokens that are pending" },
	[WHEEL_MAX] = { "MAX", COL_NUMBER, "tokens it may hold" },
	[WHEEL_NEXT] = { "NEXT", COL_NUMBER,
		"time until it next looks for expired tokens" },
	[WHEEL_STATE] = { "STATE", 0, "running, paused, draining or paused+draining" },
	[WHEEL_HELD] = { "HELD", COL_NUMBER | COL_HIDDEN,
		"tokens that readers hold by a lease" },
	[WHEEL_BYTES] = { "BYTES", COL_NUMBER | COL_HIDDEN, "memory it holds" },
	[WHEEL_TOUCH_WORDS] = { "TOUCH-WORDS", COL_BOOL | COL_HIDDEN,
		"tokens may be touched in mapped memory" },
	[WHEEL_LEASE] = { "LEASE", COL_NUMBER | COL_HIDDEN,
		"how long a reader holds a token; nothing without leases" },
	[WHEEL_MAX_HELD] = { "MAX-HELD", COL_NUMBER | COL_HIDDEN,
		"tokens that readers may hold at once; nothing without leases" },
	[WHEEL_PERIODS] = { "PERIODS", COL_BOOL | COL_HIDDEN, "tokens may be periodic" },
	[WHEEL_SLACK] = { "SLACK", COL_NUMBER | COL_HIDDEN,
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
		out_text(out, WHEEL_OWNER, "%s", user->pw_name);
	else
		out_text(out, WHEEL_OWNER, "%u", stat->st_uid);
	if (group)
		out_text(out, WHEEL_GROUP, "%s", group->gr_name);
	else
		out_text(out, WHEEL_GROUP, "%u", stat->st_gid);
	out_text(out, WHEEL_MODE, "%s", mode);
}

static void put_settings(struct out *out, const struct timewheel_info *info)
{
	size_t i;

	for (i = 0; i < settings_count; i++) {
		const struct setting *setting = &settings[i];
		uint64_t value = setting_of_info(setting, info);

		if (setting->shown == SHOWN_IF_SET && !value)
			continue;
		if (setting->kind == SETTING_CLOCK)
			out_text(out, setting->column, "%s", clock_name(value));
		else if (setting->kind == SETTING_FLAG)
			out_bool(out, setting->column,
				 value != (setting->shown == SHOWN_INVERSE));
		else if (setting->kind == SETTING_NUMBER)
			out_number(out, setting->column, value);
		else
			out_span(out, setting->column, value);
	}
}

static void put_info(struct out *out, const struct timewheel_info *info)
{
	out_number(out, WHEEL_NUMBER, info->number);
	out_number(out, WHEEL_PENDING, info->pending);
	if (info->next != TIMEWHEEL_NEVER)
		out_span(out, WHEEL_NEXT, info->next - info->now);
	out_text(out, WHEEL_STATE, "%s", state_name(info->state));
	out_number(out, WHEEL_HELD, info->held);
	out_size(out, WHEEL_BYTES, info->bytes);
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
	out_text(out, WHEEL_NAME, "%s", name);
	put_owner(out, &stat_of);
	if (known)
		put_info(out, &info);
}

static int not_hidden(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

/* Lists all wheels. Their folder exists from the first wheel on, and the device exists before. */
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

/* Returns the wheels that the command line names, or all wheels. The list ends with NULL. */
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
