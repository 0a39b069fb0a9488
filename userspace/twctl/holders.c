// SPDX-License-Identifier: GPL-2.0-only
/*
 * holders: tells which processes have wheels open. As long as a process has a wheel open, the
 * module cannot be removed.
 */
#include <ctype.h>
#include <dirent.h>
#include <pwd.h>

#include "twctl.h"

#define DEVICE		"/dev/timewheel"
#define NAMED		"/dev/timewheels/"
#define DESTROYED_END	" (deleted)"
#define PROC_PATH	64

enum {
	WHEEL, DESTROYED, PID, USER, COMMAND, UNIT,
};

const struct column holder_columns[] = {
	[WHEEL] = { "WHEEL", 0, "the wheel's name; nothing for a private wheel" },
	[DESTROYED] = { "DESTROYED", COL_BOOL | COL_HIDDEN,
		"the wheel has been destroyed meanwhile" },
	[PID] = { "PID", COL_NUMBER, "the process" },
	[USER] = { "USER", 0, "its user" },
	[COMMAND] = { "COMMAND", 0, "its command" },
	[UNIT] = { "UNIT", 0, "its service or scope of systemd; nothing if it has none" },
	{ }
};

/*
 * @tell: gets each wheel of each process. @found: paths of what the process holds, each path
 * once. @hidden: processes that could not be seen.
 */
struct search {
	holder_fn		tell;
	void			*data;
	const char		*pid;
	char			**found;
	size_t			count;
	unsigned int		hidden;
};

static void proc_path(char path[PROC_PATH], const char *pid, const char *name)
{
	snprintf(path, PROC_PATH, "/proc/%s/%s", pid, name);
}

static void add_found(struct search *search, const char *path)
{
	size_t i, length = strlen(DEVICE);

	if (strncmp(path, DEVICE, length) ||
	    (path[length] && strncmp(path, NAMED, strlen(NAMED))))
		return;
	for (i = 0; i < search->count; i++) {
		if (!strcmp(search->found[i], path))
			return;
	}
	search->found = reallocarray(search->found, search->count + 1,
				     sizeof(*search->found));
	if (!search->found)
		die(STATUS_FAILED, "no memory for names");
	search->found[search->count++] = strdup(path);
}

static void find_files(struct search *search)
{
	char name[PROC_PATH], path[PATH_MAX];
	struct dirent *entry;
	ssize_t length;
	DIR *dir;

	proc_path(name, search->pid, "fd");
	dir = opendir(name);
	if (!dir) {
		search->hidden += errno == EACCES || errno == EPERM;
		return;
	}
	while ((entry = readdir(dir))) {
		length = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
		if (length < 0)
			continue;
		path[length] = '\0';
		add_found(search, path);
	}
	closedir(dir);
}

/* Touch words are still mapped when the file has been closed. */
static void find_mappings(struct search *search)
{
	char name[PROC_PATH], *line = NULL, *path;
	size_t room = 0;
	FILE *file;

	proc_path(name, search->pid, "maps");
	file = fopen(name, "re");
	while (file && getline(&line, &room, file) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		path = strchr(line, '/');
		if (path)
			add_found(search, path);
	}
	free(line);
	if (file)
		fclose(file);
}

/* The first line of a file of the process, "" if it cannot be read. */
static void read_text(const struct search *search, const char *name, char *text, size_t size)
{
	char path[PROC_PATH];
	FILE *file;

	proc_path(path, search->pid, name);
	file = fopen(path, "re");
	if (!file || !fgets(text, size, file))
		*text = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* @path: the device's path for a private wheel, else the named wheel's. */
static void tell(const struct search *search, struct holder *holder, char *path)
{
	char *end = strstr(path, DESTROYED_END);

	if (end)
		*end = '\0';
	holder->wheel = strncmp(path, NAMED, strlen(NAMED)) ? "" : path + strlen(NAMED);
	holder->destroyed = end;
	search->tell(holder, search->data);
}

static void look_at(struct search *search)
{
	struct holder holder = { .pid = search->pid };
	size_t i;

	find_files(search);
	find_mappings(search);
	if (!search->count)
		return;
	read_text(search, "comm", holder.command, sizeof(holder.command));
	read_text(search, "cgroup", holder.cgroup, sizeof(holder.cgroup));
	for (i = 0; i < search->count; i++) {
		tell(search, &holder, search->found[i]);
		free(search->found[i]);
	}
	search->count = 0;
}

/*
 * Looks at all processes but this one. Returns how many it could not look at, because they
 * belong to other users.
 */
unsigned int holders_each(holder_fn tell, void *data)
{
	struct search search = { .tell = tell, .data = data };
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		die(STATUS_FAILED, "/proc: %s", strerror(errno));
	while ((entry = readdir(dir))) {
		search.pid = entry->d_name;
		if (isdigit((unsigned char)*entry->d_name) &&
		    atoi(entry->d_name) != getpid())
			look_at(&search);
	}
	closedir(dir);
	free(search.found);
	return search.hidden;
}

/* The verb holders prints this. */
struct listing {
	const struct args	*args;
	struct out		*out;
};

static void put_user(struct out *out, const char *pid)
{
	const struct passwd *user;
	char path[PROC_PATH];
	struct stat stat_of;

	proc_path(path, pid, "");
	if (stat(path, &stat_of))
		return;
	user = getpwuid(stat_of.st_uid);
	if (user)
		out_text(out, USER, "%s", user->pw_name);
	else
		out_text(out, USER, "%u", stat_of.st_uid);
}

static bool is_asked(const struct args *args, const char *name)
{
	int i;

	for (i = 0; i < args->count; i++) {
		if (!strcmp(args->arg[i], name))
			return true;
	}
	return !args->count;
}

static void put_holder(const struct holder *holder, void *data)
{
	struct listing *listing = data;
	struct out *out = listing->out;
	const char *unit = strrchr(holder->cgroup, '/');

	if (!is_asked(listing->args, holder->wheel))
		return;
	out_row(out);
	if (*holder->wheel)
		out_text(out, WHEEL, "%s", holder->wheel);
	out_bool(out, DESTROYED, holder->destroyed);
	out_text(out, PID, "%s", holder->pid);
	put_user(out, holder->pid);
	out_text(out, COMMAND, "%s", holder->command);
	if (unit && (strstr(unit, ".service") || strstr(unit, ".scope")))
		out_text(out, UNIT, "%s", unit + 1);
}

static void check_names(const struct args *args)
{
	int i;

	for (i = 0; i < args->count; i++) {
		if (!can_be_name(args->arg[i]))
			exit(wheel_trouble(args->arg[i]));
	}
}

enum status verb_holders(const struct args *args)
{
	struct listing listing = {
		.args = args,
		.out = out_begin(args, holder_columns, "holders"),
	};
	unsigned int hidden;

	check_names(args);
	hidden = holders_each(put_holder, &listing);
	out_end(listing.out);
	if (!hidden)
		return STATUS_OK;
	return trouble(STATUS_NOT_ALLOWED,
		       "%u processes of other users are not seen: sudo twctl holders",
		       hidden);
}
