// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server's users: the load generator, a process of its own with one TCP
 * connection for each. A user logs in and then sends a packet every two seconds.
 * Some fall silent at a random moment but stay connected. That process does not
 * know the wheel: its ledger tells which users fell silent, and when.
 */
#include <err.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demo.h"

/* Extra time after the last timeout is over, for a slow machine. */
#define PATIENCE	(6 * SEC)

static char ledger[32] = "/tmp/timewheel-demo-XXXXXX";
static pid_t load;

/* The generator lies beside this program. */
static void beside(char *path, size_t size, const char *name)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);

	if (length < 0)
		err(1, "/proc/self/exe");
	path[length] = '\0';
	snprintf(strrchr(path, '/') + 1, NAME_MAX, "%s", name);
}

static void run(in_port_t port)
{
	char path[PATH_MAX + NAME_MAX], to[32], users[16], first[24], rate[16];
	char silent[16], until[24], seconds[24];

	beside(path, PATH_MAX, "load");
	snprintf(to, sizeof(to), "127.0.0.1:%u", ntohs(port));
	snprintf(users, sizeof(users), "%u", USERS);
	snprintf(first, sizeof(first), "%llu", FIRST_UID);
	snprintf(rate, sizeof(rate), "%u", USERS / 2);
	snprintf(silent, sizeof(silent), "%u", SILENT);
	snprintf(until, sizeof(until), "%llu", SILENT_WITHIN / SEC);
	snprintf(seconds, sizeof(seconds), "%llu",
		 (SILENT_WITHIN + TIMEOUT + PATIENCE) / SEC);
	execl(path, "load", "--to", to, "--users", users, "--first", first,
	      "--rate", rate, "--silent", silent, "--until", until,
	      "--time", seconds, "--seed", "2025", "--ledger", ledger, NULL);
	err(1, "%s", path);
}

/* Returns a pipe from which clients_farewell() reads. @port: network order. */
int clients_start(in_port_t port)
{
	int ends[2], fd = mkstemp(ledger);

	if (fd < 0 || pipe(ends) < 0)
		err(1, "%s", ledger);
	close(fd);
	fflush(stdout);
	load = fork();
	if (load < 0)
		err(1, "fork");
	if (!load) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		run(port);
	}
	close(ends[1]);
	return ends[0];
}

static void read_ledger(struct farewell *farewell)
{
	FILE *file = fopen(ledger, "r");
	double last, closed;
	__u64 uid;

	if (!file)
		err(1, "%s", ledger);
	/* Lines of users that fell silent come first; the others are long pauses. */
	while (fscanf(file, "silent %llu %lf %lf\n", &uid, &last, &closed) == 3) {
		if (farewell->silent < SILENT)
			farewell->user[farewell->silent] = (struct silent_user) {
				.uid = uid,
				.last = last * SEC,
				.closed = closed * SEC,
			};
		farewell->silent++;
	}
	fclose(file);
	unlink(ledger);
}

/* Reads the clients' messages. Returns true after the last one. */
bool clients_farewell(int pipe, struct farewell *farewell)
{
	static char text[4096];
	static size_t length;
	ssize_t bytes = read(pipe, text + length, sizeof(text) - 1 - length);
	const char *packets;
	int status;

	if (bytes > 0) {
		length += bytes;
		return false;
	}
	packets = strstr(text, "; packets ");
	if (bytes < 0 || waitpid(load, &status, 0) < 0 || status || !packets)
		errx(1, "the clients failed");
	farewell->packets = strtoull(packets + strlen("; packets "), NULL, 10);
	read_ledger(farewell);
	return true;
}
