/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RESP, the framing of the Redis protocol, versions 2 and 3. This part knows no socket and no
 * verb.
 */
#ifndef TWJOBD_RESP_H
#define TWJOBD_RESP_H

#include "twjobd.h"

#define MAX_ARGS	1024
/* A longer argument is an error of the protocol. */
#define MAX_BULK	(512 << 20)

/* A buffer has bytes, and grows at its end. */
struct buffer {
	char *data;
	size_t length, room;
};

void buffer_add(struct buffer *buffer, const void *data, size_t length);
/* Makes room for @length more bytes, and returns where this room begins. */
char *buffer_reserve(struct buffer *buffer, size_t length);
/* Removes bytes from the beginning. */
void buffer_cut(struct buffer *buffer, size_t length);
void buffer_free(struct buffer *buffer);

struct command {
	int argc;
	struct bytes argv[MAX_ARGS];
};

/*
 * A parse finds a whole command, the beginning of a command, an argument that is longer than
 * allowed, or none of these.
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
	/*
	 * Only with RESP_BIG these fields tell where the header of the long argument is, and how
	 * long the header and the argument are.
	 */
	size_t header, header_length, length;
};

/*
 * Parses the first command in @in. The command's arguments point into @in. An empty line has no
 * arguments. AUTH may also be a line of text.
 */
struct resp_parsed resp_parse(struct bytes in, size_t max,
			      struct command *command);

/* An answer is written to @out in a version of RESP. */
struct reply {
	struct buffer *out;
	int version;		/* 2 or 3 */
};

void reply_ok(struct reply *reply);
/* The text must have no line ends. An error begins with its code in capitals. */
void reply_simple(struct reply *reply, const char *text);
__printf(2, 3)
void reply_error(struct reply *reply, const char *format, ...);
void reply_integer(struct reply *reply, int64_t value);
void reply_bytes(struct reply *reply, struct bytes bytes);
void reply_text(struct reply *reply, const char *text);
void reply_null(struct reply *reply);
/* This answer means that there is no array. RESP2 has another answer for no text: reply_null(). */
void reply_null_array(struct reply *reply);
void reply_array(struct reply *reply, size_t count);
void reply_map(struct reply *reply, size_t pairs);

#endif /* TWJOBD_RESP_H */
