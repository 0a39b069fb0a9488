// SPDX-License-Identifier: GPL-2.0-only
/* Functions that all measurements use: see bench.h. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

void fail(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s: %s\n", file, line, what, strerror(errno));
	fflush(stdout);
	_exit(1);
}

void *grab(size_t size)
{
	void *memory = malloc(size);

	NEED(memory);
	/* The pages of the memory must exist when the counting begins. */
	memset(memory, 1, size);
	return memset(memory, 0, size);
}

void sleep_until(u64 at)
{
	struct timespec ts = to_timespec(at);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

/* Raises the limits that the peers need, as far as root may. */
void raise_limits(void)
{
	const struct rlimit files = { 1048576, 1048576 };
	const struct rlimit signals = { 2000000, 2000000 };
	FILE *watches = fopen("/proc/sys/fs/epoll/max_user_watches", "w");

	NEED(!setrlimit(RLIMIT_NOFILE, &files));
	NEED(!setrlimit(RLIMIT_SIGPENDING, &signals));
	/* Without this, 4 % of memory would limit how many fds may be watched. */
	NEED(watches && fprintf(watches, "2000000") > 0 && !fclose(watches));
}

u32 *shuffled(unsigned int n)
{
	u32 *order = grab(n * sizeof(*order));
	u64 state = 88172645463325252ULL;

	for (unsigned int i = 0; i < n; i++) {
		unsigned int j;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		j = state % (i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

void arm_all(const struct kind *kind, unsigned int n, u64 time, bool absolute)
{
	for (unsigned int i = 0; i < n; i++) {
		kind->arm(i, time, absolute);
		if (kind->flush && (i % BATCH == BATCH - 1 || i == n - 1))
			kind->flush();
	}
}

void put(const char *name, const char *kind, unsigned int n, double value)
{
	printf("= %s\t%s\t%u\t%.3f\n", name, kind, n, value);
	fflush(stdout);
}
