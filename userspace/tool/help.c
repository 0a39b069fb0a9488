// SPDX-License-Identifier: GPL-2.0-only
/*
 * help: prints what the table of verbs and options says.
 */
#include "tool.h"

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

static void print_columns(const struct column *columns)
{
	int i;

	puts("\nColumns, and what they are in JSON; * those of the default table:");
	for (i = 0; columns[i].name; i++)
		printf("  %c %-13s %-8s %s\n",
		       columns[i].flags & COL_HIDDEN ? ' ' : '*',
		       columns[i].name, type_of(&columns[i]), columns[i].help);
}

static void print_verb(const struct verb *verb)
{
	int i;

	printf("%s %s [OPTION]... %s\n    %s\n\nOptions:\n", tool.name,
	       verb->name, verb->args, verb->help);
	for (i = 0; i < MOST_OPTIONS; i++) {
		if (takes(verb, i))
			print_option(&option_texts[i]);
	}
	if (verb->columns)
		print_columns(verb->columns);
	if (strstr(verb->args, "TIME"))
		printf("\nTIME: %s\n", tool.when_form);
}

static void print_all(void)
{
	const struct verb *verb;
	char text[64];

	printf("usage: %s [VERB] [OPTION]... [ARGUMENT]...\n\n", tool.name);
	for (verb = verbs; verb->name; verb++) {
		snprintf(text, sizeof(text), "%s %s", verb->name, verb->args);
		printf("  %-30s %s\n", text, verb->help);
	}
	printf("\n'%s help VERB' tells all about a verb, %s(1) what it is all for.\n",
	       tool.name, tool.name);
}

enum status verb_help(const struct args *args)
{
	if (!args->count) {
		print_all();
		return STATUS_OK;
	}
	print_verb(verb_named(args->arg[0]));
	return STATUS_OK;
}
