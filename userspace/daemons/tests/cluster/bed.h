/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions by which tests let the script "bed" act on the machines: see that script.
 */
#ifndef BED_H
#define BED_H

#include "../jobs/jobs.h"

#define BED		"/tmp/timewheel-bed"
/* The connection goes to the server that is the primary. */
#define SERVERS		"host=10.77.0.1,10.77.0.2,10.77.0.3 dbname=postgres " \
			"user=postgres target_session_attrs=read-write connect_timeout=2 "

static inline long long mono(void)
{
	return now_ms(CLOCK_MONOTONIC);
}

/*
 * Returns a client's connection, which waits this many seconds for an answer, or NULL if it
 * cannot be made. A node listens on a unix socket, so links that are cut do not matter.
 */
static inline redisContext *connect_node(int node, int seconds)
{
	const struct timeval patience = { seconds, 0 };
	redisContext *client;
	char path[64];

	snprintf(path, sizeof(path), BED "/n%d/socket", node);
	client = redisConnectUnixWithTimeout(path, patience);
	if (client && !client->err && redisSetTimeout(client, patience) == REDIS_OK)
		return client;
	redisFree(client);
	return NULL;
}

/* Runs a command of the test bed. Returns its status. */
__attribute__((__format__(printf, 1, 2)))
static inline int operate(const char *format, ...)
{
	char line[256] = "bed ";
	va_list args;

	va_start(args, format);
	vsnprintf(line + 4, sizeof(line) - 4, format, args);
	va_end(args);
	return system(line);
}

/* Reads a line that the test bed prints, without its end. */
static inline void ask_bed(char *answer, int size, const char *what)
{
	char line[256];
	FILE *pipe;

	snprintf(line, sizeof(line), "bed %s", what);
	answer[0] = '\0';
	pipe = popen(line, "r");
	if (!pipe)
		return;
	if (fgets(answer, size, pipe))
		answer[strcspn(answer, "\n")] = '\0';
	pclose(pipe);
}

/* Returns the number of the server that is now the primary. */
static inline int primary(void)
{
	char name[16];

	ask_bed(name, sizeof(name), "primary");
	return atoi(name + 1);
}

/* Returns the number that the primary answers, or -1 if it does not answer. */
static inline long long ask_primary(const char *sql)
{
	char line[200], answer[32];

	snprintf(line, sizeof(line), "sql d%d \"%s\"", primary(), sql);
	ask_bed(answer, sizeof(answer), line);
	return answer[0] ? atoll(answer) : -1;
}

#endif /* BED_H */
