// SPDX-License-Identifier: GPL-2.0-only
/*
 * loads SERVER put|work SECONDS	prints how many jobs are put, or taken and acked, in a
 *				second, and in how many ms half of the answers come, and 99 of 100
 * loads SERVER single SECONDS	the same for puts by one connection
 * loads SERVER multi SECONDS	prints how many jobs one connection puts in a second by
 *				transactions of 100
 * loads SERVER idle SECONDS		workers wait: they ask each second if the server is
 *				one that has to be asked
 *
 * SERVER is a server that is running. Only twjobd has transactions: see "databases" and
 * "durable". There are 64 connections.
 */
#include <string.h>
#include <sys/socket.h>

#include "bench.h"

#define CONNECTIONS	64
#define BATCH		100

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

/* MULTI, puts, and EXEC, in one piece. Returns how many lines the answers have. */
static int write_transaction(char *text, size_t size)
{
	size_t at = snprintf(text, size, "*1\r\n$5\r\nMULTI\r\n");
	char body[BODY + 1];

	for (int i = 0; i < BATCH; i++) {
		make_body(body, new_number());
		at += snprintf(text + at, size - at,
			       "*3\r\n$6\r\nTW.PUT\r\n$1\r\nq\r\n$%d\r\n%s\r\n", BODY,
			       body);
	}
	snprintf(text + at, size - at, "*1\r\n$4\r\nEXEC\r\n");
	return 2 + 2 * BATCH;
}

static double put_by_transactions(const struct kind *kind, double seconds)
{
	struct crew crew = crew_connect(kind, 1);
	static char text[BATCH * (BODY + 64)], in[65536];
	double begin = now();
	long done = 0;

	for (; now() < begin + seconds; done += BATCH) {
		int lines = write_transaction(text, sizeof(text));
		ssize_t length = strlen(text);

		NEED(send(crew.conns[0].fd, text, length, 0) == length);
		while (lines > 0) {
			ssize_t n = recv(crew.conns[0].fd, in, sizeof(in), 0);

			NEED(n > 0 && !memchr(in, '-', n));
			for (ssize_t i = 0; i < n; i++)
				lines -= in[i] == '\n';
		}
	}
	seconds = now() - begin;
	crew_close(&crew);
	return done / seconds;
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 4 ? find(argv[1]) : NULL;
	struct result result;
	struct crew crew;

	if (!kind) {
		fprintf(stderr, "usage: loads SERVER put|work|single|multi|idle SECONDS\n");
		return 2;
	}
	if (!strcmp(argv[2], "multi")) {
		printf("%.0f\n", put_by_transactions(kind, atof(argv[3])));
		return 0;
	}
	crew = crew_connect(kind, strcmp(argv[2], "single") ? CONNECTIONS : 1);
	if (!strcmp(argv[2], "idle")) {
		wait_idle(&crew, atoi(argv[3]));
		return 0;
	}
	result = crew_load(&crew, !strcmp(argv[2], "work"), atof(argv[3]));
	printf("%.0f\t%.2f\t%.2f\n", result.done / result.seconds, result.median, result.p99);
	crew_close(&crew);
	return 0;
}
