// SPDX-License-Identifier: GPL-2.0-only
/*
 * web, and work with --url: runs a program of another package with the verb and its options and
 * arguments. The package is separate, as it needs a library that nothing else here needs.
 */
#include "twjob.h"

__noreturn void program_run(const char *program, const char *package,
			    const struct args *args)
{
	char **words = calloc(2 * MOST_OPTIONS + args->count + 3, sizeof(*words));
	int i, count = 0;

	if (!words)
		die(STATUS_FAILED, "no memory for the options");
	words[count++] = (char *)program;
	words[count++] = (char *)args->verb->name;
	for (i = 0; i < MOST_OPTIONS; i++) {
		if (!args->option[i])
			continue;
		if (asprintf(&words[count++], "--%s", option_texts[i].name) < 0)
			die(STATUS_FAILED, "no memory for the options");
		if (option_texts[i].arg)
			words[count++] = (char *)args->option[i];
	}
	for (i = 0; i < args->count; i++)
		words[count++] = args->arg[i];
	execvp(program, words);
	if (errno == ENOENT)
		die(STATUS_FAILED, "there is no %s: on Debian 'apt install %s' gets it", program,
		    package);
	die(STATUS_FAILED, "%s: %s", program, strerror(errno));
}

enum status verb_web(const struct args *args)
{
	program_run("twjob-web", "timewheel-web", args);
}
