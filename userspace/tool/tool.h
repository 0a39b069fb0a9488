/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code that the command-line tools share. Each tool has a table of verbs and options (its
 * verbs.c), which parsing, help and completion use. This code knows neither wheels nor jobs.
 */
#ifndef TOOL_H
#define TOOL_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "times.h"

#define __noreturn		__attribute__((__noreturn__))
#define __printf(a, b)		__attribute__((__format__(printf, a, b)))

/* The exit statuses of a tool. The man pages tell them to users. */
enum status {
	STATUS_OK		= 0,
	STATUS_FAILED		= 1,
	STATUS_USAGE		= 2,
	STATUS_NOT_THERE	= 3,
	STATUS_NOT_ALLOWED	= 4,
	STATUS_EXISTS		= 5,
	STATUS_FULL		= 6,
	STATUS_NO_DEVICE	= 7,
	STATUS_DESTROYED	= 8,
	STATUS_IDLE		= 9,
	STATUS_TASK_FAILED	= 10,
	STATUS_NOT_NOW		= 11,
};

/* The table (verbs.c) */

/* Options that mean the same in all tools; a tool's own options begin at OPT_OWN. */
enum {
	OPT_HELP,
	OPT_VERSION,
	OPT_JSON,
	OPT_OUTPUT,
	OPT_NO_HEADINGS,
	OPT_BYTES,
	OPT_PAST,
	OPT_OWN,
	MOST_OPTIONS = 64,
};

/* @letter: 0 for none. @arg: the name of its argument, NULL for none. */
struct option_text {
	char		letter;
	const char	*name;
	const char	*arg;
	const char	*help;
};

enum column_flags {
	COL_NUMBER	= 1 << 0,
	COL_BOOL	= 1 << 1,
	COL_HIDDEN	= 1 << 2,	/* shown only when the user asks for it */
};

/* A column of a verb's table. An array ends with a column without a name. */
struct column {
	const char		*name;
	enum column_flags	flags;
	const char		*help;
};

struct args;
struct out;

/* @options: a bit for each option. @most: the most arguments it takes. */
struct verb {
	const char		*name;
	const char		*args;
	const char		*help;
	uint64_t		options;
	const struct column	*columns;
	int			least;
	int			most;
	enum status		(*run)(const struct args *args);
};

/*
 * @thing: name of the argument that most verbs begin with, in capitals. @list: the shell
 * command that lists these things. @when_form: what a TIME may be.
 * @words_of: the words that an argument of this name may be, NULL for any.
 */
struct tool {
	const char		*name;
	const char		*thing;
	const char		*list;
	const char		*when_form;
	const char		*(*words_of)(const char *arg);
	void			(*begin)(const struct verb *verb);
};

extern const struct tool tool;
extern const struct option_text option_texts[MOST_OPTIONS];

/* The texts of the options that mean the same in all tools. */
#define COMMON_OPTION_TEXTS						\
	[OPT_HELP] = { 'h', "help", NULL, "tell how to use it" },	\
	[OPT_VERSION] = { 'V', "version", NULL, "print the version, and end" },	\
	[OPT_JSON] = { 'J', "json", NULL, "print JSON" },		\
	[OPT_OUTPUT] = { 'o', "output", "COLUMNS",			\
		"print these columns, separated by commas; with + before: behind the default" }, \
	[OPT_NO_HEADINGS] = { 0, "no-headings", NULL, "print no line of headings" }, \
	[OPT_BYTES] = { 'b', "bytes", NULL,				\
		"sizes in bytes and times in nanoseconds, as plain numbers" },		\
	[OPT_PAST] = { 0, "past", NULL,					\
		"a point of time that has passed is due at once, not refused" }

/* The array ends with a verb without a name. A command line without a verb runs the first verb. */
extern const struct verb verbs[];

const struct verb *verb_find(const char *name);
const struct verb *verb_named(const char *name);

/* Verbs that all tools have */
enum status verb_help(const struct args *args);
enum status verb_completion(const struct args *args);

/* A command line, parsed (args.c) */

/*
 * @option: the argument, "" if the option takes none, NULL if it is not given.
 * @place: where a file gives each option, NULL if they come from a command line.
 * @behind: how many of the @count arguments come behind "--".
 */
struct args {
	const struct verb	*verb;
	const char		*option[MOST_OPTIONS];
	char			**place;
	char			**arg;
	int			count;
	int			behind;
};

bool takes(const struct verb *verb, int option);
/* Returns whether all is right; times_wrong() tells what is wrong. */
bool args_read(struct args *args, const struct verb *verb, int argc, char **argv);
void args_parse(struct args *args, const struct verb *verb, int argc, char **argv);
const char *option_label(const struct args *args, int option);
bool number_parse(const char *text, uint64_t least, uint64_t most,
		  uint64_t *number);
uint64_t number_of(const char *name, const char *text, uint64_t least,
		   uint64_t most);
uint64_t option_number(const struct args *args, int option, uint64_t least,
		       uint64_t most, uint64_t otherwise);
uint64_t option_span(const struct args *args, int option, uint64_t otherwise);
uint64_t real_now(void);
#define WHEN_TEXT	256

bool words_join(char **words, int count, char text[WHEN_TEXT]);
struct when words_when(const char *name, char **words, int count);
struct when words_deadline(const struct args *args, const char *name, char **words,
			   int count);

/* Words that are nearly right (near.c) */

/* @name: the nearest name tried so far, NULL if none is near. */
struct near {
	const char	*word;
	const char	*name;
	int		distance;
};

void near_begin(struct near *near, const char *word);
void near_try(struct near *near, const char *name);

/* Messages (messages.c) */

extern const char *program_verb;

__printf(1, 2)
void complain(const char *format, ...);
__printf(2, 3)
enum status trouble(enum status status, const char *format, ...);
__noreturn __printf(2, 3)
void die(enum status status, const char *format, ...);
__noreturn void die_usage(const char *name, const char *text,
			  const char *accepted);

/* JSON (json.c) */

#define NUMBER_TEXT	24

const char *number_text(char text[NUMBER_TEXT], uint64_t number, bool less, bool quoted);
const char *json_number(char text[NUMBER_TEXT], uint64_t number, bool less);
void json_text(FILE *file, const char *text);

/* Tables (out.c) */

struct out *out_begin(const struct args *args, const struct column *columns,
		      const char *name);
void out_row(struct out *out);
__printf(3, 4)
void out_text(struct out *out, int column, const char *format, ...);
void out_number(struct out *out, int column, uint64_t number);
void out_bool(struct out *out, int column, bool yes);
void out_size(struct out *out, int column, uint64_t bytes);
void out_span(struct out *out, int column, int64_t ns);
void out_real(struct out *out, int column, uint64_t ns);
void out_end(struct out *out);
bool colors_wanted(void);

/* Lines that are too long for a terminal (cut.c) */

int screen_width(void);
int screen_height(void);
void cut_lines(char *text, int width);

/* Signals and waiting (wait.c) */

extern atomic_int stop_signal;

void signals_begin(void);
__noreturn void signal_end(void);
int wait_for(struct pollfd *fds, int count, uint64_t end);
uint64_t end_after(uint64_t span);

/* Files that are replaced at one moment (replace.c) */

/* @only_new: the path must not be there yet. */
struct replacement {
	const char	*path;
	char		*temporary;
	FILE		*file;
	bool		only_new;
};

bool replace_begin(struct replacement *new, const char *path);
bool replace_end(struct replacement *new, mode_t mode);
void replace_cancel(struct replacement *new);

/* Commands that a verb runs (command.c) */

void command_check(const char *command);
__noreturn void command_exec(int input, char **command);
int command_run(char **command);
char *command_read(char **command, size_t *length);
char *command_output(char **command);
void command_end_text(char *text, size_t size, int status);
uint64_t back_off(unsigned int attempts);

#endif /* TOOL_H */
