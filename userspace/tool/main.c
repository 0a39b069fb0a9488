// SPDX-License-Identifier: GPL-2.0-only
/*
 * The beginning and the end of a tool.
 */
#include <locale.h>

#include "tool.h"

/* Checks that all output was written: a full disk is a failure, too. */
static enum status finish(enum status status)
{
	if (fflush(stdout) || ferror(stdout)) {
		complain("cannot write what it prints: %s", strerror(errno));
		return status ? status : STATUS_FAILED;
	}
	return status;
}

int main(int argc, char **argv)
{
	const struct verb *verb = verbs;
	struct args args;

	setlocale(LC_CTYPE, "");
	if (argc > 1 && *argv[1] != '-') {
		verb = verb_named(argv[1]);
		argc--;
		argv++;
		program_verb = verb->name;
	}
	args_parse(&args, verb, argc, argv);
	if (args.option[OPT_VERSION]) {
		printf("%s %s\n", tool.name, VERSION);
		return finish(STATUS_OK);
	}
	if (args.option[OPT_HELP]) {
		char *name = (char *)verb->name;

		args.arg = &name;
		args.count = program_verb ? 1 : 0;
		return finish(verb_help(&args));
	}
	if (tool.begin)
		tool.begin(verb);
	return finish(verb->run(&args));
}
