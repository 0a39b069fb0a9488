// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses a command line by the table of options, and the arguments by what they
 * mean. A mistake is told in one line, and ends the program before it has done
 * anything.
 */
#include <getopt.h>

#include "twctl.h"

/* The value that getopt returns for an option: its index, beyond all letters. */
#define LONG_BASE	256

static bool takes(const struct verb *verb, int option)
{
	return verb->options & 1ULL << option;
}

static int option_of_letter(const struct verb *verb, int letter)
{
	int i;

	for (i = 0; i < NR_OPTIONS; i++) {
		if (takes(verb, i) && option_texts[i].letter == letter)
			return i;
	}
	return -1;
}

static void make_tables(const struct verb *verb, char *letters,
			struct option *longs)
{
	int i;

	*letters++ = ':';
	for (i = 0; i < NR_OPTIONS; i++) {
		const struct option_text *text = &option_texts[i];

		if (!takes(verb, i))
			continue;
		*longs++ = (struct option) {
			.name = text->name,
			.has_arg = text->arg ? required_argument : no_argument,
			.val = LONG_BASE + i,
		};
		if (text->letter) {
			*letters++ = text->letter;
			if (text->arg)
				*letters++ = ':';
		}
	}
}

static __noreturn void unknown_option(const struct verb *verb, char **argv)
{
	char letter[] = { '-', optopt, '\0' };
	const char *option = optopt && optopt < LONG_BASE ? letter :
							   argv[optind - 1];

	die(STATUS_USAGE, "unknown option %s: see 'twctl help %s'", option,
	    verb->name);
}

static __noreturn void no_argument_given(int option)
{
	if (option < LONG_BASE)
		die(STATUS_USAGE, "option -%c needs an argument", option);
	die(STATUS_USAGE, "option --%s needs an argument: %s",
	    option_texts[option - LONG_BASE].name,
	    option_texts[option - LONG_BASE].arg);
}

void args_parse(struct args *args, const struct verb *verb, int argc,
		char **argv)
{
	struct option longs[NR_OPTIONS + 1] = { };
	char letters[2 * NR_OPTIONS + 2] = "";
	int option;

	*args = (struct args) { .verb = verb };
	make_tables(verb, letters, longs);
	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (option == '?')
			unknown_option(verb, argv);
		if (option == ':')
			no_argument_given(optopt);
		option = option < LONG_BASE ? option_of_letter(verb, option) :
					      option - LONG_BASE;
		args->option[option] = optarg ? optarg : "";
	}
	args->arg = argv + optind;
	args->count = argc - optind;
	if (args->option[OPT_HELP])
		return;
	if (args->count < verb->least || args->count > verb->most)
		die(STATUS_USAGE, "usage: twctl %s [OPTION]... %s", verb->name,
		    verb->args);
}

uint64_t number_of(const char *name, const char *text, uint64_t least,
		   uint64_t most)
{
	char accepted[80], *end;
	unsigned long long number;

	errno = 0;
	/* Base 10, because base 0 takes 010 for 8. */
	number = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	if (*text >= '0' && *text <= '9' && !*end && !errno && number >= least &&
	    number <= most)
		return number;
	if (most == UINT64_MAX && !least)
		snprintf(accepted, sizeof(accepted), "a number, of 64 bits");
	else
		snprintf(accepted, sizeof(accepted), "a number from %llu to %llu",
			 (unsigned long long)least, (unsigned long long)most);
	die_usage(name, text, accepted);
}

static const char *long_name(enum opt option)
{
	static char name[32];

	snprintf(name, sizeof(name), "--%s", option_texts[option].name);
	return name;
}

uint64_t option_number(const struct args *args, enum opt option,
		       uint64_t least, uint64_t most, uint64_t otherwise)
{
	const char *text = args->option[option];

	if (!text)
		return otherwise;
	return number_of(long_name(option), text, least, most);
}

uint64_t option_span(const struct args *args, enum opt option,
		     uint64_t otherwise)
{
	const char *text = args->option[option];
	uint64_t ns;

	if (!text)
		return otherwise;
	if (!span_parse(text, &ns))
		die_usage(long_name(option), text, SPAN_FORM);
	return ns;
}

/* A time takes up the rest of a command line, so that it needs no quotes. */
struct when words_when(const char *name, char **words, int count)
{
	struct when when;
	char text[256] = "";
	size_t length = 0;
	int i;

	for (i = 0; i < count && length < sizeof(text); i++)
		length += snprintf(text + length, sizeof(text) - length, "%s%s",
				   i ? " " : "", words[i]);
	if (length >= sizeof(text) || !when_parse(text, real_now(), &when))
		die_usage(name, text, WHEN_FORM);
	return when;
}
