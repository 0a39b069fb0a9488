// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands that a tool runs, each for one piece of work.
 */
#include <sys/wait.h>

#include "tool.h"

/*
 * The delays of work whose command failed: the first one, then twice as long from attempt to
 * attempt, up to the greatest one. The man pages tell users.
 */
#define FIRST_BACK_OFF	NSEC_PER_SEC
#define MOST_BACK_OFF	(300 * NSEC_PER_SEC)

/* Checks that a command exists, before anything is taken for it. */
void command_check(const char *command)
{
	const char *path = getenv("PATH");
	char *dirs, *dir, *name;
	bool found = false;

	if (strchr(command, '/')) {
		if (access(command, X_OK) < 0)
			die(STATUS_USAGE, "CMD '%s': %s", command,
			    strerror(errno));
		return;
	}
	dirs = strdup(path ? path : "/bin:/usr/bin");
	for (dir = strtok(dirs, ":"); dir && !found; dir = strtok(NULL, ":")) {
		if (asprintf(&name, "%s/%s", dir, command) < 0)
			break;
		found = !access(name, X_OK);
		free(name);
	}
	free(dirs);
	if (!found)
		die(STATUS_USAGE, "CMD '%s': not a command", command);
}

/*
 * This runs in the child. The command has its own process group, so that a terminal's ^C ends
 * the tool and lets commands finish.
 */
__noreturn void command_exec(int input, char **command)
{
	sigset_t none;

	setpgid(0, 0);
	dup2(input, STDIN_FILENO);
	if (input > STDERR_FILENO)
		close(input);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(command[0], command);
	complain("%s: %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Starts a command without input. @output: where its output goes, but no messages. */
static pid_t start(char **command, int output)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (output != STDOUT_FILENO) {
		dup2(output, STDOUT_FILENO);
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
	}
	command_exec(open("/dev/null", O_RDONLY), command);
}

static int end_of(pid_t pid)
{
	int status;

	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return status;
}

/* Runs a command to its end. Returns what waitpid() says, or -1. */
int command_run(char **command)
{
	fflush(stdout);
	return end_of(start(command, STDOUT_FILENO));
}

/*
 * Returns what a command prints, in memory of its own and with a zero behind it; NULL if the
 * command fails. The caller tells what is wrong.
 */
char *command_read(char **command, size_t *length)
{
	int pipes[2], status;
	char *text = NULL, part[4096];
	ssize_t count;
	FILE *out = open_memstream(&text, length);
	pid_t pid;

	if (!out || pipe2(pipes, O_CLOEXEC) < 0)
		die(STATUS_FAILED, "no memory for what '%s' prints", command[0]);
	fflush(stdout);
	pid = start(command, pipes[1]);
	close(pipes[1]);
	while ((count = read(pipes[0], part, sizeof(part))) > 0)
		fwrite(part, 1, count, out);
	close(pipes[0]);
	status = end_of(pid);
	if (!fclose(out) && !status)
		return text;
	free(text);
	return NULL;
}

/* Does what command_read() does, for a command that prints text. */
char *command_output(char **command)
{
	size_t length;

	return command_read(command, &length);
}

/* Tells how a command has ended, from what waitpid() says. */
void command_end_text(char *text, size_t size, int status)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "killed by signal %d", WTERMSIG(status));
	else
		snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

/* Returns the delay after so many attempts, the last one included. */
uint64_t back_off(unsigned int attempts)
{
	uint64_t span = FIRST_BACK_OFF;

	while (--attempts && span < MOST_BACK_OFF)
		span *= 2;
	return span < MOST_BACK_OFF ? span : MOST_BACK_OFF;
}
