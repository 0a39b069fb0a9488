// SPDX-License-Identifier: GPL-2.0-only
/*
 * loads SERVER put|work SECONDS	prints how many jobs are put, or taken and acked, in a
 *				second
 * loads SERVER idle SECONDS		workers wait: they ask each second if the server is
 *				one that has to be asked
 *
 * SERVER is twjobd or PostgreSQL, which is running: see "databases". There are 64
 * connections.
 */
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

#define CONNECTIONS	64

static const struct kind *find(const char *name)
{
	for (unsigned int i = 0; i < nr_kinds; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static void wait_idle(struct crew *crew, int seconds)
{
	static const char take[] =
		"*4\r\n$7\r\nTW.TAKE\r\n$1\r\nq\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n";

	for (int i = 0; i < crew->count && !crew->kind->polled; i++)
		NEED(send(crew->conns[i].fd, take, sizeof(take) - 1, 0) > 0);
	for (int i = 0; i < seconds; i++) {
		sleep_for(1);
		if (crew->kind->polled)
			crew_load(crew, true, 0);
	}
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 4 ? find(argv[1]) : NULL;
	struct result result;
	struct crew crew;

	if (!kind) {
		fprintf(stderr, "usage: loads SERVER put|work|idle SECONDS\n");
		return 2;
	}
	crew = crew_connect(kind, CONNECTIONS);
	if (!strcmp(argv[2], "idle")) {
		wait_idle(&crew, atoi(argv[3]));
		return 0;
	}
	result = crew_load(&crew, !strcmp(argv[2], "work"), atof(argv[3]));
	printf("%.0f\n", result.done / result.seconds);
	crew_close(&crew);
	return 0;
}
