// SPDX-License-Identifier: GPL-2.0-only
/*
 * help: prints what the table of verbs and options says.
 */
#include "twctl.h"

static void print_option(const struct option_text *text)
{
	char name[64];

	snprintf(name, sizeof(name), "--%s%s%s", text->name,
		 text->arg ? " " : "", text->arg ? text->arg : "");
	if (text->letter)
		printf("  -%c, %-23s %s\n", text->letter, name, text->help);
	else
		printf("      %-23s %s\n", name, text->help);
}

static const char *type_of(const struct column *column)
{
	if (column->flags & COL_NUMBER)
		return "number";
	return column->flags & COL_BOOL ? "boolean" : "string";
}

static void print_columns(const struct column *columns, const char *with)
{
	int i;

	printf("\nColumns%s, and what they are in JSON; * those of the default table:\n",
	       with);
	for (i = 0; columns[i].name; i++)
		printf("  %c %-13s %-8s %s\n",
		       columns[i].flags & COL_HIDDEN ? ' ' : '*',
		       columns[i].name, type_of(&columns[i]), columns[i].help);
}

static void print_verb(const struct verb *verb)
{
	int i;

	printf("twctl %s [OPTION]... %s\n    %s\n\nOptions:\n", verb->name,
	       verb->args, verb->help);
	for (i = 0; i < NR_OPTIONS; i++) {
		if (verb->options & 1ULL << i)
			print_option(&option_texts[i]);
	}
	if (verb->columns)
		print_columns(verb->columns, "");
	if (verb->options & 1ULL << OPT_HISTOGRAM)
		print_columns(bucket_columns, " with --histogram");
	if (strstr(verb->args, "TIME"))
		puts("\nTIME: " WHEN_FORM);
}

static void print_all(void)
{
	const struct verb *verb;
	char text[64];

	puts("usage: twctl [VERB] [OPTION]... [ARGUMENT]...\n");
	for (verb = verbs; verb->name; verb++) {
		snprintf(text, sizeof(text), "%s %s", verb->name, verb->args);
		printf("  %-30s %s\n", text, verb->help);
	}
	puts("\n'twctl help VERB' tells all about a verb, twctl(1) what it is all for.");
}

enum status verb_help(const struct args *args)
{
	const struct verb *verb;

	if (!args->count) {
		print_all();
		return STATUS_OK;
	}
	verb = verb_find(args->arg[0]);
	if (!verb)
		die_usage("VERB", args->arg[0], "one of 'twctl help'");
	print_verb(verb);
	return STATUS_OK;
}
