// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command that is run for each user who has fallen silent, up to MAX_COMMANDS at a time. No
 * shell is involved: the configuration has split the command into its words, and the user comes
 * in the environment.
 *
 * A command that runs for longer than exec-timeout gets SIGTERM, with its whole process
 * group, and a while later SIGKILL.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "twidled.h"

#define GRACE		5000000		/* us from SIGTERM to SIGKILL */
#define VARIABLE	(NAME_SIZE + 32)

/* @pid is 0 while no command uses this entry. @overdue means that the command has got SIGTERM. */
struct command {
	pid_t pid;
	bool overdue;
	char user[NAME_SIZE];
	sd_event_source *ended, *limit;
};

static struct {
	struct command running[MAX_COMMANDS];
	void (*room)(void);
	uint64_t failed;
	posix_spawnattr_t attributes;
	posix_spawn_file_actions_t files;
} commands;

static void complain(const struct command *command, const char *how, int status)
{
	static uint64_t said;

	commands.failed++;
	if (worth_saying(&said))
		say("the command for the user %s %s %d%s; %llu have failed",
		    command->user, how, status,
		    command->overdue ? " after exec-timeout" : "",
		    (unsigned long long)commands.failed);
}

static int on_ended(sd_event_source *source, const siginfo_t *info, void *data)
{
	struct command *command = data;

	/* The process is not waited for yet, so no other process group can have its number. */
	if (command->overdue)
		kill(-command->pid, SIGKILL);
	if (info->si_code != CLD_EXITED)
		complain(command, "was ended by signal", info->si_status);
	else if (info->si_status)
		complain(command, "has exit status", info->si_status);
	sd_event_source_disable_unref(command->limit);
	command->ended = sd_event_source_unref(command->ended);
	command->pid = 0;
	commands.room();
	return 0;
}

static int on_limit(sd_event_source *source, uint64_t time, void *data)
{
	struct command *command = data;

	kill(-command->pid, command->overdue ? SIGKILL : SIGTERM);
	command->overdue = true;
	must(sd_event_source_set_time_relative(source, GRACE));
	must(sd_event_source_set_enabled(source, SD_EVENT_ONESHOT));
	return 0;
}

/*
 * The environment of a command is the environment of this process, without TIMEWHEEL, which says
 * where this process has its wheels, and with the variables that tell about the user.
 */
static char **variables_of(const struct timewheel_event *news, const char *user)
{
	static char variables[3][VARIABLE];
	static char **all;
	char time[TIME_SIZE], deadline[DEADLINE_SIZE];
	size_t i, n = 0;

	news_time(news->cookie, time);
	news_deadline(news->deadline, deadline);
	snprintf(variables[0], VARIABLE, "TWIDLED_USER=%s", user);
	snprintf(variables[1], VARIABLE, "TWIDLED_DEADLINE=%s", deadline);
	snprintf(variables[2], VARIABLE, "TWIDLED_TIME=%s", time);
	if (all)
		return all;
	while (environ[n])
		n++;
	all = calloc(n + ARRAY_SIZE(variables) + 1, sizeof(*all));
	if (!all)
		die(ENOMEM, "an environment");
	for (i = 0; i < ARRAY_SIZE(variables); i++)
		all[i] = variables[i];
	for (n = 0; environ[n]; n++)
		if (strncmp(environ[n], "TIMEWHEEL=", strlen("TIMEWHEEL=")))
			all[i++] = environ[n];
	return all;
}

static int spawn(struct command *command, const struct timewheel_event *news)
{
	const struct command_words *exec = &service.config.exec;
	char *words[sizeof(exec->text) / 2 + 1];
	const char *word = exec->text;
	size_t n = 0;

	for (; *word; word += strlen(word) + 1)
		words[n++] = (char *)word;
	words[n] = NULL;
	return posix_spawn(&command->pid, words[0], &commands.files,
			   &commands.attributes, words,
			   variables_of(news, command->user));
}

bool command_start(const struct timewheel_event *news)
{
	struct command *command = commands.running;
	char number[NAME_SIZE];
	int err;

	if (!*service.config.exec.text || news->missed != NEWS_OFFLINE)
		return true;
	while (command < commands.running + MAX_COMMANDS && command->pid)
		command++;
	if (command == commands.running + MAX_COMMANDS)
		return false;
	strcpy(command->user, names_text(news->id, number));
	command->overdue = false;
	err = spawn(command, news);
	if (err) {
		command->pid = 0;
		complain(command, "cannot be started: error", err);
		return true;
	}
	must(sd_event_add_child(service.event, &command->ended, command->pid,
				WEXITED, on_ended, command));
	must(sd_event_add_time_relative(service.event, &command->limit,
					CLOCK_MONOTONIC,
					service.config.exec_timeout /
					NSEC_PER_USEC, 0, on_limit, command));
	return true;
}

/*
 * A command has no input. Its standard output goes where messages go, because this service's
 * standard output is for lines only.
 */
void command_open(void (*room)(void))
{
	sigset_t none, given;

	commands.room = room;
	sigemptyset(&none);
	sigemptyset(&given);
	sigaddset(&given, SIGCHLD);
	sigprocmask(SIG_BLOCK, &given, NULL);
	sigaddset(&given, SIGPIPE);
	sigaddset(&given, SIGXFSZ);
	if (posix_spawnattr_init(&commands.attributes) ||
	    posix_spawnattr_setsigmask(&commands.attributes, &none) ||
	    posix_spawnattr_setsigdefault(&commands.attributes, &given) ||
	    posix_spawnattr_setflags(&commands.attributes,
				     POSIX_SPAWN_SETPGROUP |
				     POSIX_SPAWN_SETSIGMASK |
				     POSIX_SPAWN_SETSIGDEF) ||
	    posix_spawn_file_actions_init(&commands.files) ||
	    posix_spawn_file_actions_addopen(&commands.files, STDIN_FILENO,
					     "/dev/null", O_RDONLY, 0) ||
	    posix_spawn_file_actions_adddup2(&commands.files, STDERR_FILENO,
					     STDOUT_FILENO))
		die(ENOMEM, "commands");
}
