/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RESP, the framing of the Redis protocol, versions 2 and 3. This knows no socket
 * and no verb.
 */
#ifndef TWJOBD_RESP_H
#define TWJOBD_RESP_H

#include "twjobd.h"

#define MAX_ARGS	1024
/* A longer argument is an error of the protocol. */
#define MAX_BULK	(512 << 20)

/* Bytes that grow at their end. */
struct buffer {
	char *data;
	size_t length, room;
};

void buffer_add(struct buffer *buffer, const void *data, size_t length);
/* Makes room for @length bytes more, and returns where they begin. */
char *buffer_reserve(struct buffer *buffer, size_t length);
/* Removes bytes from the beginning. */
void buffer_cut(struct buffer *buffer, size_t length);
void buffer_free(struct buffer *buffer);

struct command {
	int argc;
	struct bytes argv[MAX_ARGS];
};

/*
 * What a parse finds: a whole command, the beginning of one, an argument that is longer
 * than allowed, or none of these.
 */
enum resp_found {
	RESP_COMMAND,
	RESP_PARTIAL,
	RESP_BIG,
	RESP_WRONG,
};

struct resp_parsed {
	enum resp_found found;
	size_t used;		/* bytes of a whole command */
	/* With RESP_BIG only: where that argument's header is, and how long both are. */
	size_t header, header_length, length;
};

/* The first command in @in. Its arguments point into @in. An empty line has none. */
struct resp_parsed resp_parse(struct bytes in, size_t max,
			      struct command *command);

/* Answers. */
struct reply {
	struct buffer *out;
	int version;		/* 2 or 3 */
};

void reply_ok(struct reply *reply);
/* Text without line ends. An error begins with its code, in capitals. */
void reply_simple(struct reply *reply, const char *text);
__printf(2, 3)
void reply_error(struct reply *reply, const char *format, ...);
void reply_integer(struct reply *reply, int64_t value);
void reply_bytes(struct reply *reply, struct bytes bytes);
void reply_text(struct reply *reply, const char *text);
void reply_null(struct reply *reply);
/* No array at all. RESP2 has another answer for no text at all: reply_null(). */
void reply_null_array(struct reply *reply);
void reply_array(struct reply *reply, size_t count);
void reply_map(struct reply *reply, size_t pairs);

#endif /* TWJOBD_RESP_H */
