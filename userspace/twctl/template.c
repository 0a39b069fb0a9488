// SPDX-License-Identifier: GPL-2.0-only
/*
 * Texts with {fields} of an event in them, for lines and for commands.
 */
#include <ctype.h>

#include "twctl.h"

const char * const event_fields[] = {
	"wheel", "id", "handle", "cookie", "deadline", "taken", "late",
	"delivery", "missed", NULL
};

static bool same(const char *name, const char *field, size_t length)
{
	return strlen(name) == length && !strncmp(name, field, length);
}

/* The number in a field; every field but "wheel" has one. */
static uint64_t number(const char *field, const struct timewheel_event *event)
{
	switch (*field) {
	case 'i':
		return event->id;
	case 'h':
		return event->handle;
	case 'c':
		return event->cookie;
	case 'd':
		return strcmp(field, "delivery") ? event->deadline :
						   event->delivery;
	case 't':
		return event->taken;
	case 'm':
		return event->missed;
	default:
		return event->taken - event->deadline;
	}
}

void event_field(char *text, size_t size, const char *field,
		 const struct wheel *wheel, const struct timewheel_event *event)
{
	if (*field == 'w')
		snprintf(text, size, "%s", wheel->name);
	else
		snprintf(text, size, "%llu",
			 (unsigned long long)number(field, event));
}

/*
 * The length of the field at @text, "{" and "}" included, or 0 if there is none.
 * Only a word in braces is a field: the braces of awk or JSON stay as they are.
 */
static size_t field_length(const char *text)
{
	size_t length = 1;

	if (*text != '{')
		return 0;
	while (islower((unsigned char)text[length]))
		length++;
	return length > 1 && text[length] == '}' ? length + 1 : 0;
}

static const char *field_of(const char *text, size_t length)
{
	int i;

	for (i = 0; event_fields[i]; i++) {
		if (same(event_fields[i], text + 1, length - 2))
			return event_fields[i];
	}
	return NULL;
}

/* Checks the fields of a text. The caller has not taken any token yet. */
void template_check(const char *name, const char *template)
{
	size_t length;

	for (; *template; template++) {
		length = field_length(template);
		if (length && !field_of(template, length))
			die(STATUS_USAGE,
			    "%s '%.*s': not one of {wheel} {id} {handle} {cookie} {deadline} {taken} {late} {delivery} {missed}",
			    name, (int)length, template);
	}
}

char *template_fill(const char *template, const struct wheel *wheel,
		    const struct timewheel_event *event)
{
	char *text = NULL, value[TIMEWHEEL_NAME_SIZE];
	FILE *out;
	size_t size;

	out = open_memstream(&text, &size);
	if (!out)
		die(STATUS_FAILED, "no memory for a line");
	while (*template) {
		size_t length = field_length(template);

		if (!length) {
			putc(*template++, out);
			continue;
		}
		event_field(value, sizeof(value), field_of(template, length),
			    wheel, event);
		fputs(value, out);
		template += length;
	}
	if (fclose(out))
		die(STATUS_FAILED, "no memory for a line");
	return text;
}

/* Writes all fields as members of a JSON object. */
char *event_json(const struct wheel *wheel, const struct timewheel_event *event)
{
	char *text = NULL, value[NUMBER_TEXT];
	FILE *out;
	size_t size;
	int i;

	out = open_memstream(&text, &size);
	if (!out)
		die(STATUS_FAILED, "no memory for a line");
	fprintf(out, "{\"wheel\":\"%s\"", wheel->name);
	for (i = 1; event_fields[i]; i++)
		fprintf(out, ",\"%s\":%s", event_fields[i],
			json_number(value, number(event_fields[i], event), false));
	putc('}', out);
	if (fclose(out))
		die(STATUS_FAILED, "no memory for a line");
	return text;
}
