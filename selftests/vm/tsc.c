// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints how many thousand ticks a second this machine's TSC has. The guests that
 * this machine emulates have the same TSC. A busy machine can measure it well here,
 * but not in a guest. Prints nothing where there is no TSC.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>

struct moment {
	uint64_t ticks, ns;
};

/* Reads both clocks at nearly the same time: the closest of many pairs of readings. */
static struct moment look(void)
{
	uint64_t least = UINT64_MAX;
	struct moment moment = { 0 };

	for (int i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), took;
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		took = __rdtsc() - before;
		if (took >= least)
			continue;
		least = took;
		moment.ticks = before + took / 2;
		moment.ns = now.tv_sec * 1000000000ULL + now.tv_nsec;
	}
	return moment;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	struct moment from = look(), to;

	nanosleep(&pause, NULL);
	to = look();
	printf("%.0f\n", (to.ticks - from.ticks) * 1e6 / (to.ns - from.ns));
	return 0;
}
#else
int main(void)
{
	return 0;
}
#endif
