// SPDX-License-Identifier: GPL-2.0-only
/*
 * web: runs the program that shows queues and jobs to a browser. That is a package of its
 * own, as it needs a library that nothing else here does.
 */
#include "twjob.h"

#define PROGRAM	"twjob-web"

enum status verb_web(const struct args *args)
{
	char *words[2 * MOST_OPTIONS + 2] = { PROGRAM };
	int i, count = 1;

	for (i = 0; i < MOST_OPTIONS; i++) {
		if (!args->option[i])
			continue;
		if (asprintf(&words[count++], "--%s", option_texts[i].name) < 0)
			die(STATUS_FAILED, "no memory for the options");
		if (option_texts[i].arg)
			words[count++] = (char *)args->option[i];
	}
	execvp(PROGRAM, words);
	if (errno == ENOENT)
		die(STATUS_FAILED, "there is no %s: on Debian 'apt install timewheel-web' gets it",
		    PROGRAM);
	die(STATUS_FAILED, "%s: %s", PROGRAM, strerror(errno));
}
