// SPDX-License-Identifier: GPL-2.0-only
/* Writes numbers and texts as JSON has them. */
#include "tool.h"

/* Many parsers make a double of a number, and a double holds all whole numbers up to this one. */
#define MOST_EXACT	(1ULL << 53)

/* Puts the digits of @number in front of @end. Returns where the digits begin. */
static char *put_digits(char *end, uint64_t number)
{
	do {
		end--;
		*end = '0' + number % 10;
		number /= 10;
	} while (number);
	return end;
}

/*
 * A number as text; @quoted: if many parsers of JSON would round it, as a text of JSON with
 * its digits. A wheel may have millions of tokens, and this function does without the slow
 * printf().
 */
const char *number_text(char text[NUMBER_TEXT], uint64_t number, bool less, bool quoted)
{
	bool quote = quoted && number > MOST_EXACT;
	char *at = text + NUMBER_TEXT - 1;

	*at = '\0';
	if (quote)
		*--at = '"';
	at = put_digits(at, number);
	if (less)
		*--at = '-';
	if (quote)
		*--at = '"';
	return at;
}

const char *json_number(char text[NUMBER_TEXT], uint64_t number, bool less)
{
	return number_text(text, number, less, true);
}

void json_text(FILE *file, const char *text)
{
	putc_unlocked('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(file, "\\%c", *text);
		else if ((unsigned char)*text < ' ')
			fprintf(file, "\\u%04x", *text);
		else
			putc_unlocked(*text, file);
	}
	putc_unlocked('"', file);
}
