// SPDX-License-Identifier: GPL-2.0-only
/*
 * completion: makes scripts for bash and zsh from the table of verbs and options.
 */
#include <ctype.h>

#include "tool.h"

/* Returns the plural of the tool's thing in small letters, such as wheels. */
static const char *things(void)
{
	static char text[32];
	size_t i;

	for (i = 0; tool.thing[i] && i < sizeof(text) - 2; i++)
		text[i] = tolower((unsigned char)tool.thing[i]);
	strcpy(text + i, "s");
	return text;
}

/*
 * A part of a script: the words TOOL, THINGS and LIST in it stand for the tool's name, for
 * what most of its verbs are about, and for the command that lists these things.
 */
static void put(const char *text)
{
	const struct {
		const char *word, *text;
	} words[] = {
		{ "TOOL", tool.name },
		{ "THINGS", things() },
		{ "LIST", tool.list },
	};
	size_t i;

	while (*text) {
		for (i = 0; i < ARRAY_SIZE(words); i++) {
			if (!strncmp(text, words[i].word, strlen(words[i].word)))
				break;
		}
		if (i < ARRAY_SIZE(words)) {
			fputs(words[i].text, stdout);
			text += strlen(words[i].word);
		} else {
			putchar(*text++);
		}
	}
}

enum about {
	ABOUT_OTHER,
	ABOUT_ONE,	/* its first argument is a thing that exists */
	ABOUT_SEVERAL,	/* all its arguments are such things */
};

static enum about about(const struct verb *verb)
{
	const char *args = verb->args + (*verb->args == '[');
	size_t length = strlen(tool.thing);

	if (strncmp(args, tool.thing, length) || !strcmp(verb->name, "create"))
		return ABOUT_OTHER;
	return strncmp(args + length, "...", 3) ? ABOUT_ONE : ABOUT_SEVERAL;
}

/* Column names are printed in small letters, which are accepted as well. */
static void print_names(const struct column *column)
{
	const char *letter;

	for (; column->name; column++) {
		for (letter = column->name; *letter; letter++)
			putchar(tolower((unsigned char)*letter));
		putchar(' ');
	}
}

/* Prints the columns that -o of a verb takes, also the ones of the verb's second table. */
static void print_columns(const struct verb *verb)
{
	print_names(verb->columns);
	if (takes(verb, OPT_HISTOGRAM))
		print_names(tool.histogram);
}

static void print_verbs(void)
{
	const struct verb *verb;

	for (verb = verbs; verb->name; verb++)
		printf("%s ", verb->name);
}

/* Makes the script for bash: one case for the values of options, one for the options of a verb. */

static void bash_value(const struct verb *verb, const struct option_text *text)
{
	printf("\t%s:--%s", verb->name, text->name);
	if (text->letter)
		printf(" | %s:-%c", verb->name, text->letter);
	printf(") ");
	if (!strcmp(text->arg, "COLUMNS")) {
		put("_TOOL_list '");
		print_columns(verb);
		printf("'");
	} else if (tool.words_of(text->arg)) {
		put("_TOOL_words");
		printf(" '%s'", tool.words_of(text->arg));
	} else if (!strcmp(text->arg, "FILE")) {
		put("_TOOL_files -f");
	} else if (!strcmp(text->arg, "DIR")) {
		put("_TOOL_files -d");
	} else {
		printf(":");
	}
	puts(" ;;");
}

/* Returns which argument is the first file, 0 for none. */
static int file_argument(const struct verb *verb)
{
	const char *file = strstr(verb->args, "FILE"), *text;
	int place = 1;

	for (text = verb->args; file && text < file; text++)
		place += *text == ' ';
	return file ? place : 0;
}

static void bash_verb(const struct verb *verb)
{
	int i, file = file_argument(verb);

	printf("\t%s)\n\t\toptions='", verb->name);
	for (i = 0; i < MOST_OPTIONS; i++) {
		if (takes(verb, i))
			printf("--%s ", option_texts[i].name);
	}
	printf("'\n\t\t");
	if (about(verb) == ABOUT_SEVERAL)
		put("words=$(_TOOL_THINGS)");
	else if (about(verb) == ABOUT_ONE)
		put("[ $argument = 1 ] && words=$(_TOOL_THINGS)");
	else if (!strcmp(verb->args, "[VERB]"))
		printf("[ $argument = 1 ] && words=$verbs");
	else if (!strcmp(verb->args, "SHELL"))
		printf("[ $argument = 1 ] && words='bash zsh'");
	else
		printf(":");
	if (file)
		printf("\n\t\t[ $argument %s %d ] && words=$(compgen -f -- \"$cur\")",
		       strstr(verb->args, "FILE...") ? "-ge" : "=", file);
	puts("\n\t\t;;");
}

static void print_bash(void)
{
	const struct verb *verb;
	int i;

	put("# bash completion for TOOL, made by 'TOOL completion bash'\n"
	    "\n"
	    "_TOOL_THINGS()\n"
	    "{\n"
	    "\tLIST\n"
	    "}\n"
	    "\n"
	    "_TOOL_words()\n"
	    "{\n"
	    "\tmapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$cur\")\n"
	    "}\n"
	    "\n"
	    "_TOOL_files()\n"
	    "{\n"
	    "\tmapfile -t COMPREPLY < <(compgen \"$1\" -- \"$cur\")\n"
	    "}\n"
	    "\n"
	    "# names separated by commas: the last is completed\n"
	    "_TOOL_list()\n"
	    "{\n"
	    "\tlocal before=${cur%\"${cur##*[,+]}\"}\n"
	    "\n"
	    "\tmapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$1\" -- \"${cur##*[,+]}\")\n"
	    "}\n"
	    "\n"
	    "_TOOL()\n"
	    "{\n"
	    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
	    "\tlocal verb='' argument=0 i options='' words=''\n");
	printf("\tlocal verbs='");
	print_verbs();
	put("'\n"
	    "\n"
	    "\tCOMPREPLY=()\n"
	    "\tfor ((i = 1; i < COMP_CWORD; i++)); do\n"
	    "\t\tcase ${COMP_WORDS[i]} in\n"
	    "\t\t--) mapfile -t COMPREPLY < <(compgen -c -- \"$cur\"); return ;;\n"
	    "\t\t-*) ;;\n"
	    "\t\t*) [ \"$verb\" ] || verb=${COMP_WORDS[i]} ;;\n"
	    "\t\tesac\n"
	    "\tdone\n"
	    "\t_TOOL_argument\n"
	    "\tcase ${verb:-THINGS}:$prev in\n");
	for (verb = verbs; verb->name; verb++) {
		for (i = 0; i < MOST_OPTIONS; i++) {
			if (takes(verb, i) && option_texts[i].arg)
				bash_value(verb, &option_texts[i]);
		}
	}
	put("\t*) _TOOL_verb ;;\n"
	    "\tesac\n"
	    "}\n"
	    "\n"
	    "# which argument of the verb this is, its options not counted\n"
	    "_TOOL_argument()\n"
	    "{\n"
	    "\tlocal word before='' seen=''\n"
	    "\n"
	    "\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD - 1}\" \"\"; do\n"
	    "\t\tif [[ $word = -* ]]; then\n"
	    "\t\t\tbefore=$verb:$word\n"
	    "\t\t\tcontinue\n"
	    "\t\tfi\n"
	    "\t\tcase $before in\n");
	printf("\t\t");
	for (verb = verbs; verb->name; verb++) {
		for (i = 0; i < MOST_OPTIONS; i++) {
			const struct option_text *text = &option_texts[i];

			if (!takes(verb, i) || !text->arg)
				continue;
			printf("%s:--%s | ", verb->name, text->name);
			if (text->letter)
				printf("%s:-%c | ", verb->name, text->letter);
		}
	}
	put("none) ;;\n"
	    "\t\t*)\n"
	    "\t\t\t[ -z \"$seen\" ] || argument=$((argument + 1))\n"
	    "\t\t\tseen=yes\n"
	    "\t\t\t;;\n"
	    "\t\tesac\n"
	    "\t\tbefore=\n"
	    "\tdone\n"
	    "}\n"
	    "\n"
	    "_TOOL_verb()\n"
	    "{\n"
	    "\tcase ${verb:-THINGS} in\n");
	for (verb = verbs; verb->name; verb++)
		bash_verb(verb);
	put("\tesac\n"
	    "\t[ \"$verb\" ] || words=$verbs\n"
	    "\t[[ $cur != -* ]] || words=$options\n"
	    "\t_TOOL_words \"$words\"\n"
	    "}\n"
	    "\n"
	    "complete -F _TOOL TOOL\n");
}

/* Makes the script for zsh: a call of _arguments for each verb. */

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
	} else if (tool.words_of(arg)) {
		printf("(%s)", tool.words_of(arg));
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
	int i, file = file_argument(verb);

	printf("\t%s)\n\t\t_arguments -s -S", verb->name);
	for (i = 0; i < MOST_OPTIONS; i++) {
		if (takes(verb, i))
			zsh_option(verb, &option_texts[i]);
	}
	if (about(verb) == ABOUT_SEVERAL)
		put(" \\\n\t\t'*:");
	else if (about(verb) == ABOUT_ONE)
		put(" \\\n\t\t'1:");
	if (about(verb) != ABOUT_OTHER) {
		printf("%s:", tool.thing);
		put("_TOOL_THINGS'");
	}
	if (!strcmp(verb->args, "[VERB]"))
		put(" \\\n\t\t'1:VERB:_TOOL_verbs'");
	else if (!strcmp(verb->args, "SHELL"))
		printf(" \\\n\t\t'1:SHELL:(bash zsh)'");
	if (strstr(verb->args, "FILE..."))
		printf(" \\\n\t\t'*:FILE:_files'");
	else if (file)
		printf(" \\\n\t\t'%d:FILE:_files'", file);
	if (strstr(verb->args, "CMD"))
		printf(" \\\n\t\t'*:::CMD:_normal'");
	puts("\n\t\t;;");
}

static void print_zsh(void)
{
	const struct verb *verb;

	put("#compdef TOOL\n"
	    "# zsh completion for TOOL, made by 'TOOL completion zsh'\n"
	    "\n"
	    "_TOOL_THINGS()\n"
	    "{\n"
	    "\tcompadd -- ${(f)\"$(LIST)\"}\n"
	    "}\n"
	    "\n"
	    "_TOOL_verbs()\n"
	    "{\n"
	    "\tlocal -a verbs\n"
	    "\n"
	    "\tverbs=(\n");
	for (verb = verbs; verb->name; verb++) {
		printf("\t\t'%s:", verb->name);
		zsh_text(verb->help);
		puts("'");
	}
	put("\t)\n"
	    "\t_describe verb verbs\n"
	    "}\n"
	    "\n"
	    "_TOOL()\n"
	    "{\n"
	    "\tif ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
	    "\t\t_TOOL_verbs\n"
	    "\t\treturn\n"
	    "\tfi\n"
	    "\tlocal verb=THINGS\n"
	    "\n"
	    "\tif [[ $words[2] != -* ]]; then\n"
	    "\t\tverb=$words[2]\n"
	    "\t\tshift words\n"
	    "\t\t((CURRENT--))\n"
	    "\tfi\n"
	    "\tcase $verb in\n");
	for (verb = verbs; verb->name; verb++)
		zsh_verb(verb);
	put("\tesac\n"
	    "}\n"
	    "\n"
	    "_TOOL \"$@\"\n");
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
