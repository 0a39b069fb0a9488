// SPDX-License-Identifier: GPL-2.0-only
/*
 * The demonstration: a timing wheel does its two jobs on real input, and each of its
 * claims is checked. The exit status is 0 if every claim held.
 *
 * TW_DEMO_TTY=1 draws for a terminal, 0 line by line, whatever stdout is.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "demo.h"

#define MAX_LINES	32

struct lines {
	unsigned int count;
	char *text[MAX_LINES];
	bool ok[MAX_LINES];
};

static struct lines claims, figures;

static void append(struct lines *lines, bool ok, char *text)
{
	if (lines->count == MAX_LINES)
		errx(1, "too many lines for the summary");
	lines->ok[lines->count] = ok;
	lines->text[lines->count++] = text;
}

static char *format_text(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		err(1, "formatting");
	return text;
}

void claim(bool ok, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	append(&claims, ok, format_text(format, args));
	va_end(args);
}

void figure(const char *name, const char *format, ...)
{
	va_list args;
	char *value, *line;

	va_start(args, format);
	value = format_text(format, args);
	va_end(args);
	if (asprintf(&line, "%-38s %s", name, value) < 0)
		err(1, "formatting");
	free(value);
	append(&figures, true, line);
}

void list_uid(unsigned int nth, __u64 uid)
{
	printf("%s%llu", nth % 10 ? " " : nth ? "\n    " : "    ", uid);
}

static bool summary(void)
{
	bool all = true;
	unsigned int i;

	puts("\nFigures\n");
	for (i = 0; i < figures.count; i++)
		printf("  %s\n", figures.text[i]);
	puts("\nClaims\n");
	printf("1..%u\n", claims.count);
	for (i = 0; i < claims.count; i++) {
		printf("%s %u - %s\n", claims.ok[i] ? "ok" : "not ok", i + 1,
		       claims.text[i]);
		all &= claims.ok[i];
	}
	printf("# %s\n", all ? "every claim held" : "a claim did not hold");
	return all;
}

/* Either side holds a file per user. */
static void allow_files(rlim_t files)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= files)
		return;
	limit.rlim_cur = files;
	if (limit.rlim_max < files)
		limit.rlim_max = files;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		err(1, "%d users need %lu open files (ulimit -n)", USERS,
		    (unsigned long)files);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	allow_files(USERS + 64);

	puts("A timing wheel at its two jobs. This takes about 45 seconds.\n");
	puts("1. Users who fall silent\n");
	idle_users();
	puts("\n2. Orders: two days later, \"rate it five stars\"\n");
	delayed_orders();
	puts("\n3. Text messages at a time of the wall clock\n");
	text_messages();
	return summary() ? EXIT_SUCCESS : EXIT_FAILURE;
}
