// SPDX-License-Identifier: GPL-2.0-only
/*
 * RESP: this part takes commands apart, and puts answers together. See resp.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp.h"

/* A header "*N" or "$N" has at most this many bytes with its end. */
#define MAX_HEADER	32
/* A password on a line has this before it, and at most this many bytes with it. */
#define LINE_BEGIN	"AUTH \""
#define MAX_LINE	1024

char *buffer_reserve(struct buffer *buffer, size_t length)
{
	size_t room = buffer->room ?: 256;

	while (room - buffer->length < length)
		room *= 2;
	if (room != buffer->room) {
		buffer->data = realloc(buffer->data, room);
		if (!buffer->data)
			die(ENOMEM, "a buffer");
		buffer->room = room;
	}
	return buffer->data + buffer->length;
}

void buffer_add(struct buffer *buffer, const void *data, size_t length)
{
	if (!length)
		return;
	memcpy(buffer_reserve(buffer, length), data, length);
	buffer->length += length;
}

void buffer_cut(struct buffer *buffer, size_t length)
{
	buffer->length -= length;
	if (buffer->length)
		memmove(buffer->data, buffer->data + length, buffer->length);
	else
		buffer_free(buffer);
}

void buffer_free(struct buffer *buffer)
{
	free(buffer->data);
	*buffer = (struct buffer) { };
}

/*
 * Reads the header at @at: @kind, and a number up to @most. Returns the header's length, 0 if the
 * header is not complete yet, or -1 if it is wrong.
 */
static int parse_header(struct bytes in, size_t at, char kind,
			uint64_t most, uint64_t *number)
{
	const char *text = in.data + at;
	size_t i, left = in.length - at;

	if (left && text[0] != kind)
		return -1;
	*number = 0;
	for (i = 1; i < left && i < MAX_HEADER; i++) {
		if (text[i] == '\r' && i > 1) {
			if (i + 1 == left)
				return 0;
			return text[i + 1] == '\n' ? (int)i + 2 : -1;
		}
		if (text[i] < '0' || text[i] > '9')
			return -1;
		*number = *number * 10 + (text[i] - '0');
		if (*number > most)
			return -1;
	}
	return i == MAX_HEADER ? -1 : 0;
}

/* Reads the argument at @parsed->used, and moves @parsed->used behind the argument. */
static enum resp_found parse_argument(struct bytes in, size_t max,
				      struct resp_parsed *parsed,
				      struct bytes *argument)
{
	const char *end;
	uint64_t length;
	int header = parse_header(in, parsed->used, '$', MAX_BULK, &length);

	if (header <= 0)
		return header ? RESP_WRONG : RESP_PARTIAL;
	if (length > max) {
		parsed->header = parsed->used;
		parsed->header_length = header;
		parsed->length = length;
		return RESP_BIG;
	}
	parsed->used += header;
	if (in.length - parsed->used < length + 2)
		return RESP_PARTIAL;
	argument->data = in.data + parsed->used;
	argument->length = length;
	end = argument->data + length;
	parsed->used += length + 2;
	return end[0] == '\r' && end[1] == '\n' ? RESP_COMMAND : RESP_WRONG;
}

/* eredis sends its password on a line, and all else as an array: AUTH "password". */
static enum resp_found parse_line(struct bytes in, struct resp_parsed *parsed,
				  struct command *command)
{
	size_t begin = strlen(LINE_BEGIN);
	const char *end;

	if (memcmp(in.data, LINE_BEGIN, in.length < begin ? in.length : begin))
		return RESP_WRONG;
	end = in.length > begin ? memmem(in.data + begin, in.length - begin, "\"\r\n", 3) : NULL;
	if (!end)
		return in.length < MAX_LINE ? RESP_PARTIAL : RESP_WRONG;
	command->argc = 2;
	command->argv[0] = (struct bytes) { in.data, strlen("AUTH") };
	command->argv[1] = (struct bytes) { in.data + begin, end - in.data - begin };
	parsed->used = end + 3 - in.data;
	return RESP_COMMAND;
}

struct resp_parsed resp_parse(struct bytes in, size_t max,
			      struct command *command)
{
	struct resp_parsed parsed = { .found = RESP_COMMAND };
	uint64_t count;
	int header;

	/* redis-cli --pipe sends an empty line. */
	if (in.length && in.data[0] == '\r') {
		parsed.found = in.length < 2 ? RESP_PARTIAL :
			       in.data[1] == '\n' ? RESP_COMMAND : RESP_WRONG;
		parsed.used = 2;
		command->argc = 0;
		return parsed;
	}
	if (in.length && in.data[0] == LINE_BEGIN[0]) {
		parsed.found = parse_line(in, &parsed, command);
		return parsed;
	}
	header = parse_header(in, 0, '*', MAX_ARGS, &count);
	if (header <= 0) {
		parsed.found = header ? RESP_WRONG : RESP_PARTIAL;
		return parsed;
	}
	parsed.used = header;
	command->argc = count;
	for (uint64_t i = 0; i < count && parsed.found == RESP_COMMAND; i++)
		parsed.found = parse_argument(in, max, &parsed,
					      &command->argv[i]);
	return parsed;
}

__printf(2, 3)
static void add_text(struct buffer *out, const char *format, ...)
{
	char text[512];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	buffer_add(out, text, length);
}

/* Writes @kind, a number and the end of a line. This is for what answers have most of. */
static void add_number(struct buffer *out, char kind, int64_t number)
{
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char line[MAX_HEADER], *at = line + sizeof(line);

	*--at = '\n';
	*--at = '\r';
	do {
		*--at = '0' + rest % 10;
		rest /= 10;
	} while (rest);
	if (number < 0)
		*--at = '-';
	*--at = kind;
	buffer_add(out, at, line + sizeof(line) - at);
}

void reply_ok(struct reply *reply)
{
	reply_simple(reply, "OK");
}

void reply_simple(struct reply *reply, const char *text)
{
	add_text(reply->out, "+%s\r\n", text);
}

void reply_error(struct reply *reply, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The text may repeat bytes that a client has sent. */
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	add_text(reply->out, "-%s\r\n", text);
}

void reply_integer(struct reply *reply, int64_t value)
{
	add_number(reply->out, ':', value);
}

void reply_bytes(struct reply *reply, struct bytes bytes)
{
	add_number(reply->out, '$', bytes.length);
	buffer_add(reply->out, bytes.data, bytes.length);
	buffer_add(reply->out, "\r\n", 2);
}

void reply_text(struct reply *reply, const char *text)
{
	reply_bytes(reply, (struct bytes) { text, strlen(text) });
}

void reply_null(struct reply *reply)
{
	add_text(reply->out, reply->version == 3 ? "_\r\n" : "$-1\r\n");
}

void reply_null_array(struct reply *reply)
{
	add_text(reply->out, reply->version == 3 ? "_\r\n" : "*-1\r\n");
}

void reply_array(struct reply *reply, size_t count)
{
	add_number(reply->out, '*', count);
}

void reply_map(struct reply *reply, size_t pairs)
{
	if (reply->version == 3)
		add_number(reply->out, '%', pairs);
	else
		reply_array(reply, 2 * pairs);
}
