// SPDX-License-Identifier: GPL-2.0-only
/*
 * completion: makes scripts for bash and zsh from the table of verbs and options.
 */
#include <ctype.h>

#include "twctl.h"

static bool takes(const struct verb *verb, int option)
{
	return verb->options & 1ULL << option;
}

/* Column names in small letters, which twctl takes as well. */
static void print_names(const struct column *column)
{
	const char *letter;

	for (; column->name; column++) {
		for (letter = column->name; *letter; letter++)
			putchar(tolower((unsigned char)*letter));
		putchar(' ');
	}
}

/* The columns that -o of a verb takes, also those of the verb's second table. */
static void print_columns(const struct verb *verb)
{
	print_names(verb->columns);
	if (takes(verb, OPT_HISTOGRAM))
		print_names(bucket_columns);
}

/* The words that an option takes; NULL if it takes any. */
static const char *words_of(const char *arg)
{
	if (!strcmp(arg, "CLOCK"))
		return "monotonic boottime realtime manual";
	if (!strcmp(arg, "STATE"))
		return "pending due taken held lapsed buried";
	return NULL;
}

static void print_verbs(void)
{
	const struct verb *verb;

	for (verb = verbs; verb->name; verb++)
		printf("%s ", verb->name);
}

/* bash: one case for the values of options, one for the options of a verb. */

static void bash_value(const struct verb *verb, const struct option_text *text)
{
	printf("\t%s:--%s", verb->name, text->name);
	if (text->letter)
		printf(" | %s:-%c", verb->name, text->letter);
	printf(") ");
	if (!strcmp(text->arg, "COLUMNS")) {
		printf("_twctl_list '");
		print_columns(verb);
		printf("'");
	} else if (words_of(text->arg)) {
		printf("_twctl_words '%s'", words_of(text->arg));
	} else if (!strcmp(text->arg, "FILE")) {
		printf("_twctl_files -f");
	} else if (!strcmp(text->arg, "DIR")) {
		printf("_twctl_files -d");
	} else {
		printf(":");
	}
	puts(" ;;");
}

static void bash_verb(const struct verb *verb)
{
	int i;

	printf("\t%s)\n\t\toptions='", verb->name);
	for (i = 0; i < NR_OPTIONS; i++) {
		if (takes(verb, i))
			printf("--%s ", option_texts[i].name);
	}
	printf("'\n\t\t");
	if (!strcmp(verb->args, "WHEEL...") || !strcmp(verb->args, "[WHEEL...]"))
		printf("words=$(_twctl_wheels)");
	else if (!strncmp(verb->args, "WHEEL", 5) && strcmp(verb->name, "create"))
		printf("[ $argument = 1 ] && words=$(_twctl_wheels)");
	else if (!strcmp(verb->args, "[VERB]"))
		printf("[ $argument = 1 ] && words=$verbs");
	else if (!strcmp(verb->args, "SHELL"))
		printf("[ $argument = 1 ] && words='bash zsh'");
	else
		printf(":");
	puts("\n\t\t;;");
}

static void print_bash(void)
{
	const struct verb *verb;
	int i;

	puts("# bash completion for twctl, made by 'twctl completion bash'\n"
	     "\n"
	     "_twctl_wheels()\n"
	     "{\n"
	     "\tls /dev/timewheels 2>/dev/null\n"
	     "}\n"
	     "\n"
	     "_twctl_words()\n"
	     "{\n"
	     "\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	     "}\n"
	     "\n"
	     "_twctl_files()\n"
	     "{\n"
	     "\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
	     "}\n"
	     "\n"
	     "# names separated by commas: the last is completed\n"
	     "_twctl_list()\n"
	     "{\n"
	     "\tlocal before=${cur%\"${cur##*[,+]}\"}\n"
	     "\n"
	     "\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$1\" -- \"${cur##*[,+]}\")\n"
	     "}\n"
	     "\n"
	     "_twctl()\n"
	     "{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	     "\tlocal verb='' argument=0 i options='' words=''");
	printf("\tlocal verbs='");
	print_verbs();
	puts("'\n"
	     "\n"
	     "\tCOMPREPLY=()\n"
	     "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	     "\t\tcase ${COMP_WORDS[i]} in\n"
	     "\t\t--) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"); return ;;\n"
	     "\t\t-*) ;;\n"
	     "\t\t*) [ \"$verb\" ] || verb=${COMP_WORDS[i]} ;;\n"
	     "\t\tesac\n"
	     "\tdone\n"
	     "\t_twctl_argument\n"
	     "\tcase ${verb:-wheels}:$prev in");
	for (verb = verbs; verb->name; verb++) {
		for (i = 0; i < NR_OPTIONS; i++) {
			if (takes(verb, i) && option_texts[i].arg)
				bash_value(verb, &option_texts[i]);
		}
	}
	puts("\t*) _twctl_verb ;;\n"
	     "\tesac\n"
	     "}\n"
	     "\n"
	     "# which argument of the verb this is, its options not counted\n"
	     "_twctl_argument()\n"
	     "{\n"
	     "\tlocal word before='' seen=''\n"
	     "\n"
	     "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\" \"\"; do\n"
	     "\t\tif [[ $word = -* ]]; then\n"
	     "\t\t\tbefore=$verb:$word\n"
	     "\t\t\tcontinue\n"
	     "\t\tfi\n"
	     "\t\tcase $before in");
	printf("\t\t");
	for (verb = verbs; verb->name; verb++) {
		for (i = 0; i < NR_OPTIONS; i++) {
			const struct option_text *text = &option_texts[i];

			if (!takes(verb, i) || !text->arg)
				continue;
			printf("%s:--%s | ", verb->name, text->name);
			if (text->letter)
				printf("%s:-%c | ", verb->name, text->letter);
		}
	}
	puts("none) ;;\n"
	     "\t\t*)\n"
	     "\t\t\t[ -z \"$seen\" ] || argument=$((argument + 1))\n"
	     "\t\t\tseen=yes\n"
	     "\t\t\t;;\n"
	     "\t\tesac\n"
	     "\t\tbefore=\n"
	     "\tdone\n"
	     "}\n"
	     "\n"
	     "_twctl_verb()\n"
	     "{\n"
	     "\tcase ${verb:-wheels} in");
	for (verb = verbs; verb->name; verb++)
		bash_verb(verb);
	puts("\tesac\n"
	     "\t[ \"$verb\" ] || words=$verbs\n"
	     "\t[[ $cur != -* ]] || words=$options\n"
	     "\t_twctl_words \"$words\"\n"
	     "}\n"
	     "\n"
	     "complete -F _twctl twctl");
}

/* zsh: a call of _arguments for each verb. */

/* Escapes a text for the quotes and brackets of zsh. */
static void zsh_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			printf("'\\''");
		else if (strchr("[]:", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_value(const struct verb *verb, const char *arg)
{
	printf(":%s:", arg);
	if (!strcmp(arg, "COLUMNS")) {
		printf("_values -s , column ");
		print_columns(verb);
	} else if (words_of(arg)) {
		printf("(%s)", words_of(arg));
	} else if (!strcmp(arg, "FILE")) {
		printf("_files");
	} else if (!strcmp(arg, "DIR")) {
		printf("_files -/");
	} else {
		putchar(' ');
	}
}

static void zsh_option(const struct verb *verb, const struct option_text *text)
{
	if (text->letter)
		printf(" \\\n\t\t'(-%c --%s)'{-%c,--%s}'[", text->letter, text->name,
		       text->letter, text->name);
	else
		printf(" \\\n\t\t'--%s[", text->name);
	zsh_text(text->help);
	putchar(']');
	if (text->arg)
		zsh_value(verb, text->arg);
	putchar('\'');
}

static void zsh_verb(const struct verb *verb)
{
	int i;

	printf("\t%s)\n\t\t_arguments -s -S", verb->name);
	for (i = 0; i < NR_OPTIONS; i++) {
		if (takes(verb, i))
			zsh_option(verb, &option_texts[i]);
	}
	if (!strcmp(verb->args, "WHEEL...") || !strcmp(verb->args, "[WHEEL...]"))
		printf(" \\\n\t\t'*:WHEEL:_twctl_wheels'");
	else if (!strncmp(verb->args, "WHEEL", 5) && strcmp(verb->name, "create"))
		printf(" \\\n\t\t'1:WHEEL:_twctl_wheels'");
	else if (!strcmp(verb->args, "[VERB]"))
		printf(" \\\n\t\t'1:VERB:_twctl_verbs'");
	else if (!strcmp(verb->args, "SHELL"))
		printf(" \\\n\t\t'1:SHELL:(bash zsh)'");
	if (strstr(verb->args, "CMD"))
		printf(" \\\n\t\t'*:::CMD:_normal'");
	puts("\n\t\t;;");
}

static void print_zsh(void)
{
	const struct verb *verb;

	puts("#compdef twctl\n"
	     "# zsh completion for twctl, made by 'twctl completion zsh'\n"
	     "\n"
	     "_twctl_wheels()\n"
	     "{\n"
	     "\tcompadd -- /dev/timewheels/*(N:t)\n"
	     "}\n"
	     "\n"
	     "_twctl_verbs()\n"
	     "{\n"
	     "\tlocal -a verbs\n"
	     "\n"
	     "\tverbs=(");
	for (verb = verbs; verb->name; verb++) {
		printf("\t\t'%s:", verb->name);
		zsh_text(verb->help);
		puts("'");
	}
	puts("\t)\n"
	     "\t_describe verb verbs\n"
	     "}\n"
	     "\n"
	     "_twctl()\n"
	     "{\n"
	     "\tif ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
	     "\t\t_twctl_verbs\n"
	     "\t\treturn\n"
	     "\tfi\n"
	     "\tlocal verb=wheels\n"
	     "\n"
	     "\tif [[ $words[2] != -* ]]; then\n"
	     "\t\tverb=$words[2]\n"
	     "\t\tshift words\n"
	     "\t\t((CURRENT--))\n"
	     "\tfi\n"
	     "\tcase $verb in");
	for (verb = verbs; verb->name; verb++)
		zsh_verb(verb);
	puts("\tesac\n"
	     "}\n"
	     "\n"
	     "_twctl \"$@\"");
}

enum status verb_completion(const struct args *args)
{
	if (!strcmp(args->arg[0], "bash"))
		print_bash();
	else if (!strcmp(args->arg[0], "zsh"))
		print_zsh();
	else
		die_usage("SHELL", args->arg[0], "bash or zsh");
	return STATUS_OK;
}
