// SPDX-License-Identifier: GPL-2.0-only
/*
 * completion: tells what may come next on a command line, and prints scripts for bash and zsh
 * that ask for it by "completion words WORD...". So both shells offer what the table of verbs
 * and options says.
 */
#include <ctype.h>

#include "tool.h"

/*
 * What a shell itself knows. The scripts understand these lines in the place of a word, and
 * all others are a word, a tab and what it means.
 */
#define THINGS		":things"
#define FILES		":files"
#define FOLDERS		":folders"
#define COMMANDS	":commands"

/* Offers @word behind the @kept first letters of @current, if it goes on as @current does. */
static void offer_behind(const char *current, size_t kept, const char *word, const char *help)
{
	if (!strncmp(word, current + kept, strlen(current + kept)))
		printf("%.*s%s\t%s\n", (int)kept, current, word, help);
}

static void offer(const char *current, const char *word, const char *help)
{
	offer_behind(current, 0, word, help);
}

static void offer_verbs(const char *current)
{
	const struct verb *verb;

	for (verb = verbs; verb->name; verb++)
		offer(current, verb->name, verb->help);
}

static void offer_options(const char *current, const struct verb *verb)
{
	char name[64];
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
		if (!takes(verb, i))
			continue;
		snprintf(name, sizeof(name), "--%s", option_texts[i].name);
		offer(current, name, option_texts[i].help);
	}
}

static void offer_words(const char *current, const char *words)
{
	char *copy = strdup(words), *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		offer(current, word, "");
	free(copy);
}

/* Offers names of columns in small letters, which are accepted as well, behind a comma or "+". */
static void offer_columns(const char *current, const struct column *column)
{
	const char *last = current + strlen(current);
	char name[64];
	size_t i;

	while (last > current && !strchr(",+", last[-1]))
		last--;
	for (; column->name; column++) {
		for (i = 0; column->name[i] && i < sizeof(name) - 1; i++)
			name[i] = tolower((unsigned char)column->name[i]);
		name[i] = '\0';
		offer_behind(current, last - current, name, column->help);
	}
}

static void offer_value(const char *current, const struct verb *verb, const char *arg)
{
	if (!strcmp(arg, "COLUMNS"))
		offer_columns(current, verb->columns);
	else if (tool.words_of(arg))
		offer_words(current, tool.words_of(arg));
	else if (!strcmp(arg, "FILE"))
		puts(FILES);
	else if (!strcmp(arg, "DIR"))
		puts(FOLDERS);
}

/* Offers what the argument at @place may be. A word of @verb->args with dots has all places. */
static void offer_argument(const char *current, const struct verb *verb, int place)
{
	char *copy = strdup(verb->args), *rest = copy, *next, *word = NULL;

	while (place-- && !(word && strstr(word, "...")) && (next = strsep(&rest, " ")))
		word = next;
	if (!word || (place >= 0 && !strstr(word, "...")))
		word = "";
	word += *word == '[';
	if (!strncmp(word, tool.thing, strlen(tool.thing)) && strcmp(verb->name, "create"))
		puts(THINGS);
	else if (!strncmp(word, "FILE", 4))
		puts(FILES);
	else if (!strncmp(word, "VERB", 4))
		offer_verbs(current);
	else if (!strcmp(word, "SHELL"))
		offer_words(current, "bash zsh");
	free(copy);
}

/* Returns the option of a verb that takes a value, and whose value comes in the next word. */
static const struct option_text *option_before(const struct verb *verb, const char *word)
{
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
		const struct option_text *text = &option_texts[i];

		if (!takes(verb, i) || !text->arg)
			continue;
		if (!strncmp(word, "--", 2) ? !strcmp(word + 2, text->name) :
		    text->letter && word[1] == text->letter && !word[2])
			return text;
	}
	return NULL;
}

/* @words: those behind the tool's name, of which the last one has just been begun. */
static void offer_next(char **words, int count)
{
	const char *current = words[count - 1];
	const struct option_text *before = NULL;
	const struct verb *verb = verbs;
	int i = 0, place = 1;

	if (count > 1 && words[0][0] != '-') {
		verb = verb_find(words[0]);
		i = 1;
	} else if (*current != '-') {
		offer_verbs(current);
	}
	for (; verb && i < count - 1; i++) {
		if (!strcmp(words[i], "--")) {
			puts(COMMANDS);
			return;
		}
		if (before)
			before = NULL;
		else if (words[i][0] == '-')
			before = option_before(verb, words[i]);
		else
			place++;
	}
	if (before)
		offer_value(current, verb, before->arg);
	else if (verb && *current == '-')
		offer_options(current, verb);
	else if (verb)
		offer_argument(current, verb, place);
}

/* The words TOOL and LIST stand for the tool's name, and for the command that lists its things. */
static const char bash[] =
	"# bash completion for TOOL, made by 'TOOL completion bash'\n"
	"\n"
	"_TOOL_things()\n"
	"{\n"
	"\tLIST\n"
	"}\n"
	"\n"
	"_TOOL()\n"
	"{\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} line\n"
	"\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS= read -r line; do\n"
	"\t\tcase $line in\n"
	"\t\t" THINGS ") mapfile -t COMPREPLY < <(compgen -W \"$(_TOOL_things)\" -- \"$cur\") ;;\n"
	"\t\t" FILES ") mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
	"\t\t" FOLDERS ") mapfile -t COMPREPLY < <(compgen -d -- \"$cur\") ;;\n"
	"\t\t" COMMANDS ") mapfile -t COMPREPLY < <(compgen -c -- \"$cur\") ;;\n"
	"\t\t*) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
	"\t\tesac\n"
	"\tdone < <(TOOL completion words -- \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
	"}\n"
	"\n"
	"complete -F _TOOL TOOL\n";

static const char zsh[] =
	"#compdef TOOL\n"
	"# zsh completion for TOOL, made by 'TOOL completion zsh'\n"
	"\n"
	"_TOOL_things()\n"
	"{\n"
	"\tLIST\n"
	"}\n"
	"\n"
	"_TOOL()\n"
	"{\n"
	"\tlocal line\n"
	"\tlocal -a offered\n"
	"\n"
	"\tfor line in ${(f)\"$(TOOL completion words -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)\"}; do\n"
	"\t\tcase $line in\n"
	"\t\t" THINGS ") compadd -- ${(f)\"$(_TOOL_things)\"} ;;\n"
	"\t\t" FILES ") _files ;;\n"
	"\t\t" FOLDERS ") _files -/ ;;\n"
	"\t\t" COMMANDS ") _command_names -e ;;\n"
	"\t\t*) offered+=(${${line//:/\\\\:}/$'\\t'/:}) ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t(($#offered)) && _describe word offered\n"
	"}\n"
	"\n"
	"_TOOL \"$@\"\n";

static void put_script(const char *text)
{
	while (*text) {
		if (!strncmp(text, "TOOL", 4) || !strncmp(text, "LIST", 4)) {
			fputs(*text == 'T' ? tool.name : tool.list, stdout);
			text += 4;
		} else {
			putchar(*text++);
		}
	}
}

enum status verb_completion(const struct args *args)
{
	const char *shell = args->arg[0];

	if (args->count > 1 && !strcmp(shell, "words"))
		offer_next(args->arg + 1, args->count - 1);
	else if (args->count > 1)
		die_usage("SHELL", args->arg[1], "needed");
	else if (!strcmp(shell, "bash"))
		put_script(bash);
	else if (!strcmp(shell, "zsh"))
		put_script(zsh);
	else
		die_usage("SHELL", shell, "bash or zsh");
	return STATUS_OK;
}
