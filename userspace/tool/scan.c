// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers and words of times. See scan.h.
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "scan.h"
#include "times.h"

static char wrong[256];

const char *times_wrong(void)
{
	return wrong;
}

bool refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(wrong, sizeof(wrong), format, args);
	va_end(args);
	return false;
}

/* Reads a number of at most @most digits at *@text. */
bool take_number(const char **text, int most, uint64_t *number)
{
	const char *at = *text;

	for (*number = 0; isdigit((unsigned char)*at); at++) {
		if (at - *text == most)
			return false;
		*number = *number * 10 + (*at - '0');
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

/* Digits after a point, as parts of 10^9; the tenth and later digits are ignored. */
bool take_fraction(const char **text, uint64_t *billionths)
{
	const char *at = *text;
	uint64_t scale = NSEC_PER_SEC / 10;

	for (*billionths = 0; isdigit((unsigned char)*at); at++) {
		*billionths += scale * (*at - '0');
		scale /= 10;
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

const char *skip_space(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return text;
}

/* Reads the given word in any case, and the white space behind it. */
bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncasecmp(*text, word, length) ||
	    ((*text)[length] && !isspace((unsigned char)(*text)[length])))
		return false;
	*text = skip_space(*text + length);
	return true;
}
