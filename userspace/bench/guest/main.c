// SPDX-License-Identifier: GPL-2.0-only
/*
 * guest counts|crowd|memory|scale N...: one measurement, see bench.h.
 */
#include <string.h>
#include <sys/utsname.h>

#include "bench.h"

int main(int argc, char **argv)
{
	struct utsname kernel;

	if (argc < 3) {
		fprintf(stderr, "usage: guest counts|crowd|memory|scale N...\n");
		return 2;
	}
	if (!getenv("TW_ICOUNT")) {
		printf("# counts instructions: needs TW_ICOUNT=1\n");
		return 4;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	NEED(!uname(&kernel));
	printf("= kernel\t%s\n", kernel.release);
	raise_limits();
	for (int i = 2; i < argc; i++) {
		unsigned int n = strtoul(argv[i], NULL, 10);

		if (!strcmp(argv[1], "counts"))
			run_counts(n, i == 2);
		else if (!strcmp(argv[1], "crowd"))
			run_crowd(n);
		else if (!strcmp(argv[1], "memory"))
			run_memory(n);
		else if (!strcmp(argv[1], "scale"))
			run_scale(n);
		else
			return 2;
	}
	return 0;
}
