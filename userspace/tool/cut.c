// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells how large the terminal is. Lines that are longer than its width are cut, because a
 * table whose lines wrap cannot be read.
 */
#include <sys/ioctl.h>
#include <wchar.h>

#include "tool.h"

#define TAB	8

/* The terminal's width in columns; 0 if output is no terminal, or nothing is known. */
int screen_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (columns && atoi(columns) > 0)
		return atoi(columns);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

/* The terminal's height in lines; 0 if output is no terminal, or nothing is known. */
int screen_height(void)
{
	const char *lines = getenv("LINES");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (lines && atoi(lines) > 0)
		return atoi(lines);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_row;
}

/* Returns the length of the sequence that sets a colour, "ESC [ ... m". */
static size_t escape_length(const char *text)
{
	size_t length = strcspn(text, "m");

	return length + (text[length] == 'm');
}

/* Returns the length of a character in bytes. @wide: its width in columns. */
static size_t character(const char *text, int column, int *wide)
{
	wchar_t letter;
	int length = mbtowc(&letter, text, MB_CUR_MAX);

	*wide = 1;
	if (*text == '\t')
		*wide = TAB - column % TAB;
	else if (length > 0 && wcwidth(letter) >= 0)
		*wide = wcwidth(letter);
	return length > 0 ? length : 1;
}

/* Cuts off what does not fit from each line. A colour that is set is also ended. */
void cut_lines(char *text, int width)
{
	char *to = text;
	int column = 0;

	while (*text) {
		int wide = 0;
		size_t length = 1;
		bool keep = true;

		if (*text == '\n') {
			column = 0;
		} else if (*text == '\033') {
			length = escape_length(text);
		} else {
			length = character(text, column, &wide);
			column += wide;
			keep = column <= width;
		}
		if (keep) {
			memmove(to, text, length);
			to += length;
		}
		text += length;
	}
	*to = '\0';
}
