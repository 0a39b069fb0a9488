// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time, and the end of a program that cannot go on.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

void fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s: %s\n", file, line, what, strerror(errno));
	fflush(stdout);
	if (system("sed 's/^/# /' /tmp/server.log 2>/dev/null | tail -n 20"))
		printf("# no log\n");
	_exit(1);
}

double now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

void sleep_for(double seconds)
{
	usleep(seconds * 1e6);
}
