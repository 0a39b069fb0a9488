// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses a command line by the table of options, and the arguments by what they
 * mean. A mistake is told in one line, and ends the program before it has done
 * anything. args_read() only keeps what is wrong, for lines that are not the program's own.
 */
#include <getopt.h>
#include <time.h>

#include "scan.h"
#include "tool.h"

/* getopt returns this number plus the option's index for a long option: no letter is as great. */
#define LONG_BASE	256

bool takes(const struct verb *verb, int option)
{
	return verb->options & 1ULL << option;
}

const struct verb *verb_find(const char *name)
{
	const struct verb *verb;

	for (verb = verbs; verb->name; verb++) {
		if (!strcmp(verb->name, name))
			return verb;
	}
	return NULL;
}

/* Finds a verb or ends the program. */
const struct verb *verb_named(const char *name)
{
	const struct verb *verb = verb_find(name);
	struct near near;

	if (verb)
		return verb;
	near_begin(&near, name);
	for (verb = verbs; verb->name; verb++)
		near_try(&near, verb->name);
	if (near.name)
		die(STATUS_USAGE, "VERB '%s': not one of '%s help': did you mean '%s'?",
		    name, tool.name, near.name);
	die(STATUS_USAGE, "VERB '%s': not one of '%s help'", name, tool.name);
}

static int option_of_letter(const struct verb *verb, int letter)
{
	int i;

	for (i = 0; i < MOST_OPTIONS; i++) {
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
	for (i = 0; i < MOST_OPTIONS; i++) {
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

/* The long option of the verb that is nearest to @given, "--NAME" or "--NAME=VALUE". */
static const char *near_option(const struct verb *verb, const char *given)
{
	char name[64];
	struct near near;
	int i;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(given + 2, "="), given + 2);
	near_begin(&near, name);
	for (i = 0; i < MOST_OPTIONS; i++) {
		if (takes(verb, i))
			near_try(&near, option_texts[i].name);
	}
	return near.name;
}

static bool unknown_option(const struct verb *verb, char **argv)
{
	char letter[] = { '-', optopt, '\0' };
	bool is_letter = optopt && optopt < LONG_BASE;
	const char *option = is_letter ? letter : argv[optind - 1];
	const char *near = is_letter ? NULL : near_option(verb, option);

	if (near)
		return refuse("unknown option %s: did you mean --%s? see '%s help %s'",
			      option, near, tool.name, verb->name);
	return refuse("unknown option %s: see '%s help %s'", option, tool.name, verb->name);
}

static bool no_argument_given(int option)
{
	if (option < LONG_BASE)
		return refuse("option -%c needs an argument", option);
	return refuse("option --%s needs an argument: %s",
		      option_texts[option - LONG_BASE].name,
		      option_texts[option - LONG_BASE].arg);
}

/* Counts the arguments behind "--". The caller counts before getopt sorts the arguments. */
static int count_behind(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			return argc - i - 1;
	}
	return 0;
}

bool args_read(struct args *args, const struct verb *verb, int argc, char **argv)
{
	struct option longs[MOST_OPTIONS + 1] = { };
	char letters[2 * MOST_OPTIONS + 2] = "";
	int option;

	*args = (struct args) {
		.verb = verb,
		.behind = count_behind(argc, argv),
	};
	make_tables(verb, letters, longs);
	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (option == '?')
			return unknown_option(verb, argv);
		if (option == ':')
			return no_argument_given(optopt);
		option = option < LONG_BASE ? option_of_letter(verb, option) :
					      option - LONG_BASE;
		args->option[option] = optarg ? optarg : "";
	}
	args->arg = argv + optind;
	args->count = argc - optind;
	if (!args->option[OPT_HELP] &&
	    (args->count < verb->least || args->count > verb->most))
		return refuse("usage: %s %s [OPTION]... %s", tool.name, verb->name, verb->args);
	return true;
}

void args_parse(struct args *args, const struct verb *verb, int argc, char **argv)
{
	if (!args_read(args, verb, argc, argv))
		die(STATUS_USAGE, "%s", times_wrong());
}

bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	/* The base is 10, because base 0 takes 010 for 8. */
	*number = strtoull(text, &end, strncmp(text, "0x", 2) ? 10 : 16);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number >= least &&
	       *number <= most;
}

uint64_t number_of(const char *name, const char *text, uint64_t least,
		   uint64_t most)
{
	char accepted[80];
	uint64_t number;

	if (number_parse(text, least, most, &number))
		return number;
	if (most == UINT64_MAX && !least)
		snprintf(accepted, sizeof(accepted), "a number, of 64 bits");
	else
		snprintf(accepted, sizeof(accepted), "a number from %llu to %llu",
			 (unsigned long long)least, (unsigned long long)most);
	die_usage(name, text, accepted);
}

/* Returns the name of an option for messages: as on a command line, or its place in a file. */
const char *option_label(const struct args *args, int option)
{
	static char label[32];

	if (args->place)
		return args->place[option];
	snprintf(label, sizeof(label), "--%s", option_texts[option].name);
	return label;
}

uint64_t option_number(const struct args *args, int option, uint64_t least,
		       uint64_t most, uint64_t otherwise)
{
	const char *text = args->option[option];

	if (!text)
		return otherwise;
	return number_of(option_label(args, option), text, least, most);
}

/* Refuses a wrong time, with the reason if the text had the form of a time. */
static __noreturn void die_time(const char *name, const char *text,
				const char *form)
{
	if (!*times_wrong())
		die_usage(name, text, form);
	die(STATUS_USAGE, "%s '%s': %s", name, text, times_wrong());
}

uint64_t option_span(const struct args *args, int option, uint64_t otherwise)
{
	const char *text = args->option[option];
	uint64_t ns;

	if (!text)
		return otherwise;
	if (!span_parse(text, &ns))
		die_time(option_label(args, option), text, SPAN_FORM);
	return ns;
}

uint64_t real_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

/*
 * Joins the words of a time. It takes up the rest of a command line, so that it needs no quotes.
 * Returns whether there was room.
 */
bool words_join(char **words, int count, char text[WHEN_TEXT])
{
	size_t length = 0;
	int i;

	*text = '\0';
	for (i = 0; i < count && length < WHEN_TEXT; i++)
		length += snprintf(text + length, WHEN_TEXT - length, "%s%s",
				   i ? " " : "", words[i]);
	return length < WHEN_TEXT;
}

static struct when read_when(const char *name, char **words, int count,
			     uint64_t now, char text[WHEN_TEXT])
{
	struct when when;

	if (!words_join(words, count, text))
		die_usage(name, text, tool.when_form);
	if (!when_parse(text, now, &when))
		die_time(name, text, tool.when_form);
	return when;
}

struct when words_when(const char *name, char **words, int count)
{
	char text[WHEN_TEXT];

	return read_when(name, words, count, real_now(), text);
}

/* Reads a deadline. A point of time that has passed needs --past. */
struct when words_deadline(const struct args *args, const char *name, char **words,
			   int count)
{
	char text[WHEN_TEXT], ago[TIME_TEXT];
	uint64_t now = real_now();
	struct when when = read_when(name, words, count, now, text);

	if (when.kind != WHEN_REAL || when.ns >= now || args->option[OPT_PAST])
		return when;
	span_text(ago, sizeof(ago), now - when.ns);
	die(STATUS_USAGE, "%s '%s': %s ago; with --past it is due at once", name,
	    text, ago);
}
