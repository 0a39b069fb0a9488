// SPDX-License-Identifier: GPL-2.0-only
/*
 * The services that have wheels open, and the units that would start these services
 * again, or that systemd stops with them. Units that are not active are left alone.
 */
#include "upgrade.h"

/* @status: not 0 if a process was found that belongs to no service. */
struct finding {
	struct units	*units;
	enum status	status;
};

/* systemd holds files for services. These services are found by their own files. */
#define SYSTEMD_PID	"1"

static void add(struct units *units, const char *name)
{
	size_t i;

	for (i = 0; i < units->count; i++) {
		if (!strcmp(units->name[i], name))
			return;
	}
	units->name = reallocarray(units->name, units->count + 1, sizeof(*units->name));
	if (!units->name)
		die(STATUS_FAILED, "no memory for names");
	units->name[units->count++] = strdup(name);
}

/*
 * Finds the system's service that a line of /proc/PID/cgroup names, in memory of its own; NULL
 * if there is none. A service of a user's session is no service of the system.
 */
static char *service_of(const char *cgroup)
{
	static const char end[] = ".service";
	const char *part = strchr(cgroup, '/');
	size_t length;

	if (!part || !strncmp(part, "/user.slice/", strlen("/user.slice/")))
		return NULL;
	for (; part; part = strchr(part, '/')) {
		length = strcspn(++part, "/");
		if (length > strlen(end) &&
		    !strncmp(part + length - strlen(end), end, strlen(end)))
			return strndup(part, length);
	}
	return NULL;
}

static void tell_holder(const struct holder *holder, const char *service)
{
	printf("%s%s%s is open in '%s', process %s%s%s\n",
	       *holder->wheel ? "wheel '" : "a private wheel", holder->wheel,
	       *holder->wheel ? "'" : "", holder->command, holder->pid,
	       service ? ", of " : "", service ? service : "");
}

static void found(const struct holder *holder, void *data)
{
	struct finding *finding = data;
	char *service = service_of(holder->cgroup);

	if (!strcmp(holder->pid, SYSTEMD_PID))
		return;
	tell_holder(holder, service);
	if (service)
		add(finding->units, service);
	else
		finding->status = trouble(STATUS_NOT_NOW,
					  "process %s, '%s', is no service: end it, and try again; nothing has been changed",
					  holder->pid, holder->command);
	free(service);
}

static bool is_active(const char *unit)
{
	return !command_run((char *[]) { "systemctl", "is-active", "--quiet",
					 (char *)unit, NULL });
}

/* Adds the active units that @text names, of the kinds that can be stopped and started. */
static void add_active(struct units *units, char *text)
{
	static const char * const kinds[] = { ".service", ".socket", ".timer", ".path" };
	char *name;
	size_t i;

	for (name = strtok(text, "\n "); name; name = strtok(NULL, "\n ")) {
		const char *kind = strrchr(name, '.');

		for (i = 0; kind && i < ARRAY_SIZE(kinds); i++) {
			if (!strcmp(kind, kinds[i]) && is_active(name))
				add(units, name);
		}
	}
}

static char *properties(const char *unit, const char *names)
{
	return command_output((char *[]) { "systemctl", "show", "--value", "-p",
					   (char *)names, (char *)unit, NULL });
}

/* Adds the units that start one of the units, or are stopped with it. */
static void add_related(struct units *units)
{
	char *text;
	size_t i;

	for (i = 0; i < units->count; i++) {
		text = properties(units->name[i],
				  "TriggeredBy,RequiredBy,BoundBy,ConsistsOf");
		if (text)
			add_active(units, text);
		free(text);
	}
}

/* Adds timers whose service runs twctl or twjob: they save wheels, or write figures. */
static void add_timers(struct units *units)
{
	char *list = command_output((char *[]) { "systemctl", "list-units", "--type=timer",
						 "--state=active", "--plain",
						 "--no-legend", NULL });
	char *line, *next = list;

	while ((line = strsep(&next, "\n"))) {
		char *timer = strtok(line, " "), *unit, *start = NULL;

		if (!timer)
			continue;
		unit = properties(timer, "Unit");
		if (unit) {
			unit[strcspn(unit, "\n")] = '\0';
			start = properties(unit, "ExecStart");
		}
		if (start && (strstr(start, "/twctl ") || strstr(start, "/twjob ")))
			add(units, timer);
		free(start);
		free(unit);
	}
	free(list);
}

/* Tells which process has which wheel open. Fails if a process is of no service. */
enum status units_find(struct units *units)
{
	struct finding finding = { .units = units };

	if (holders_each(found, &finding))
		return trouble(STATUS_NOT_ALLOWED,
			       "some processes are not seen: sudo twctl upgrade; nothing has been changed");
	if (finding.status || access("/run/systemd/system", F_OK) < 0)
		return finding.status;
	add_timers(units);
	add_related(units);
	return STATUS_OK;
}

/* Makes the command systemctl WHAT UNIT...; the caller frees it. */
static char **command_for(const char *what, const struct units *units)
{
	char **command = calloc(units->count + 3, sizeof(*command));

	if (!command)
		die(STATUS_FAILED, "no memory for names");
	command[0] = "systemctl";
	command[1] = (char *)what;
	memcpy(command + 2, units->name, units->count * sizeof(*command));
	return command;
}

static bool run(const char *what, const struct units *units)
{
	char **command;
	bool done;
	size_t i;

	if (!units->count)
		return true;
	for (i = 0; i < units->count; i++)
		printf("%s %s\n", what, units->name[i]);
	command = command_for(what, units);
	done = !command_run(command);
	free(command);
	return done;
}

/* systemd would otherwise not start a unit for a while that has failed again and again. */
static void forget_failures(const struct units *units)
{
	char **command;

	if (!units->count)
		return;
	command = command_for("reset-failed", units);
	free(command_output(command));
	free(command);
}

/* The time that files of a stopped service may take to be closed. */
#define CLOSING_TIME	(10 * NSEC_PER_SEC)

static void count(const struct holder *holder, void *data)
{
	*(size_t *)data += !!holder;
}

static void tell_left(const struct holder *holder, void *data __attribute__((unused)))
{
	complain("%s is still open in '%s', process %s",
		 *holder->wheel ? holder->wheel : "a private wheel", holder->command,
		 holder->pid);
}

/* Stops the units, and waits until nobody has a wheel open. */
bool units_stop(const struct units *units)
{
	uint64_t end = end_after(CLOSING_TIME);
	size_t left;

	if (!run("stop", units))
		return false;
	do {
		left = 0;
		holders_each(count, &left);
	} while (left && end_after(0) < end && !usleep(100000));
	if (left)
		holders_each(tell_left, NULL);
	return !left;
}

bool units_start(const struct units *units)
{
	forget_failures(units);
	return run("start", units);
}
