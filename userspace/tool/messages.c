// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages, each in one line on standard error.
 */
#include <stdarg.h>

#include "tool.h"

/* The verb that runs, NULL when none was named. */
const char *program_verb;

static void say(const char *format, va_list args)
{
	char line[1024];

	/*
	 * The message is written by one write(2): commands and other processes may write there,
	 * too.
	 */
	vsnprintf(line, sizeof(line), format, args);
	fprintf(stderr, "%s: %s%s%s\n", tool.name,
		program_verb ? program_verb : "", program_verb ? ": " : "", line);
}

void complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

/* Prints the message, and returns the exit status for it. */
enum status trouble(enum status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return status;
}

/* Prints the message and ends the tool. Earlier output is kept, and comes before the message. */
__noreturn void die(enum status status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	say(format, args);
	va_end(args);
	exit(status);
}

__noreturn void die_usage(const char *name, const char *text,
			  const char *accepted)
{
	die(STATUS_USAGE, "%s '%s': not %s", name, text, accepted);
}
