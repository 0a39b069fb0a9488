// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages on standard error, one line each: see log.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static void vsay(int err, const char *format, va_list args)
{
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	if (err)
		fprintf(stderr, ": %s", strerror(err));
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(0, format, args);
	va_end(args);
}

void die(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(err, format, args);
	va_end(args);
	exit(FAILED);
}

void must(int result)
{
	if (result < 0)
		die(-result, "sd-event");
}
