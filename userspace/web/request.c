// SPDX-License-Identifier: GPL-2.0-only
/* Paths, questions and forms: errors are refused, and nothing is guessed. */
#include <ctype.h>

#include "web.h"

static int digit(char letter)
{
	if (isdigit((unsigned char)letter))
		return letter - '0';
	return isxdigit((unsigned char)letter) ? tolower((unsigned char)letter) - 'a' + 10 : -1;
}

/* Decodes @text in its place. @plus: + stands for a blank, as in forms. */
static bool decode(char *from, bool plus, struct part *part)
{
	char *to = from;

	part->text = from;
	for (; *from; from++, to++) {
		*to = plus && *from == '+' ? ' ' : *from;
		if (*from != '%')
			continue;
		if (digit(from[1]) < 0 || digit(from[2]) < 0)
			return false;
		*to = digit(from[1]) << 4 | digit(from[2]);
		from += 2;
	}
	*to = '\0';
	part->length = to - part->text;
	return true;
}

/* Reads "NAME=VALUE&NAME=VALUE". More fields than any form has are refused. */
bool fields_parse(struct exchange *exchange, char *text)
{
	char *one, *equals;

	while ((one = strsep(&text, "&"))) {
		struct field *field = &exchange->fields[exchange->nr_fields];

		if (!*one)
			continue;
		if (exchange->nr_fields == MOST_FIELDS)
			return false;
		equals = strchr(one, '=');
		if (equals)
			*equals = '\0';
		if (!decode(one, true, &field->name) ||
		    !decode(equals ? equals + 1 : strchr(one, '\0'), true, &field->value))
			return false;
		exchange->nr_fields++;
	}
	return true;
}

/* Reads the path and the question behind it. */
bool path_parse(struct exchange *exchange)
{
	char *path = exchange->uri, *question = strchr(path, '?'), *one;

	if (question)
		*question++ = '\0';
	if (*path++ != '/')
		return false;
	while ((one = strsep(&path, "/"))) {
		if (exchange->nr_path == MOST_PARTS)
			return false;
		if (!decode(one, false, &exchange->path[exchange->nr_path++]))
			return false;
	}
	return !question || fields_parse(exchange, question);
}

/* Returns the first field of this name that is not empty, NULL if there is none. */
const struct part *field_of(const struct exchange *exchange, const char *name)
{
	int i;

	for (i = 0; i < exchange->nr_fields; i++) {
		if (!strcmp(exchange->fields[i].name.text, name) &&
		    exchange->fields[i].value.length)
			return &exchange->fields[i].value;
	}
	return NULL;
}
