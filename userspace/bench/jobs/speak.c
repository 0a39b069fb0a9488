// SPDX-License-Identifier: GPL-2.0-only
/*
 * The requests to each server. A job is due at once, and has a body of BODY bytes that begins
 * with its number.
 *
 * Redis has no jobs. Programs use a list, from which a worker moves the oldest entry to a list
 * of entries that are worked on; or a sorted set by due time, from which a script moves the
 * first entry to another set. An ack removes the entry there.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define PATIENCE	120	/* s for a server to start */
#define NOBODY		65534

static char script[64];		/* the number by which Redis knows it */

unsigned int new_number(void)
{
	static unsigned int number;

	return number++;
}

void make_body(char body[BODY + 1], unsigned int number)
{
	snprintf(body, BODY + 1, "%010u%0*d", number, BODY - 10, 0);
}

static void socket_connect(struct conn *conn)
{
	struct sockaddr_un address = { AF_UNIX, SOCKET };
	double until = now() + PATIENCE;

	conn->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (connect(conn->fd, (struct sockaddr *)&address, sizeof(address))) {
		NEED(now() < until);
		sleep_for(0.01);
	}
}

static void send_text(struct conn *conn, const char *text, int length)
{
	NEED(send(conn->fd, text, length, MSG_NOSIGNAL) == length);
}

static void socket_send(const struct kind *kind, struct conn *conn,
			enum command command)
{
	char text[512];

	send_text(conn, text, kind->format(text, sizeof(text), conn, command));
}

static void hear(struct conn *conn)
{
	ssize_t bytes = recv(conn->fd, conn->in + conn->length,
			     sizeof(conn->in) - 1 - conn->length, 0);

	NEED(bytes > 0);
	conn->length += bytes;
	conn->in[conn->length] = '\0';
}

static bool socket_receive(const struct kind *kind, struct conn *conn)
{
	size_t length;

	hear(conn);
	length = kind->parse(conn);
	/* Only one answer comes at a time. */
	NEED(!length || length == conn->length);
	if (length)
		conn->length = 0;
	return length;
}

static void socket_close(struct conn *conn)
{
	close(conn->fd);
}

const struct speaker socket_speaker = {
	socket_connect, socket_send, socket_receive, socket_close,
};

/* Returns the end of the line at @at, behind its newline; NULL if it has not come. */
static const char *line_end(const char *at)
{
	const char *end = strstr(at, "\r\n");

	return end ? end + 2 : NULL;
}

/* Returns what comes behind the answer of RESP at @at; NULL if it is not complete. */
static const char *skip(const struct conn *conn, const char *at)
{
	const char *next = line_end(at);
	long n;

	if (!next)
		return NULL;
	n = atol(at + 1);
	if (*at == '$' && n >= 0) {
		next += n + 2;
		return next <= conn->in + conn->length ? next : NULL;
	}
	for (; *at == '*' && n > 0 && next; n--)
		next = skip(conn, next);
	return next;
}

/* Keeps a text of RESP as the words that end the job. */
static void keep_text(struct conn *conn, const char *at)
{
	int length = atoi(at + 1);

	NEED(*at == '$' && length < (int)sizeof(conn->job));
	snprintf(conn->job, sizeof(conn->job), "%.*s", length, line_end(at));
	conn->got = true;
}

static size_t resp_length(const struct conn *conn)
{
	const char *end = skip(conn, conn->in);

	if (end && *conn->in == '-') {
		errno = EPROTO;
		fail(__FILE__, __LINE__, conn->in);
	}
	return end ? end - conn->in : 0;
}

static size_t twjobd_parse(struct conn *conn)
{
	size_t length = resp_length(conn);
	const char *at = conn->in;

	if (!length || conn->command != TAKE || conn->in[1] != '1')
		return length;
	/* The answer has one job: its queue, number and receipt. */
	at = line_end(line_end(at));
	keep_text(conn, skip(conn, skip(conn, at)));
	return length;
}

static size_t redis_parse(struct conn *conn)
{
	size_t length = resp_length(conn);

	/* An ack removes the entry, and tells that it was there. */
	NEED(!length || conn->command != ACK || !strcmp(conn->in, ":1\r\n"));
	if (length && conn->command == TAKE && conn->in[1] != '-')
		keep_text(conn, conn->in);
	return length;
}

static size_t beanstalkd_parse(struct conn *conn)
{
	const char *end = line_end(conn->in);
	unsigned long id, bytes;

	if (!end)
		return 0;
	if (sscanf(conn->in, "RESERVED %lu %lu", &id, &bytes) == 2) {
		end += bytes + 2;
		if (end > conn->in + conn->length)
			return 0;
		snprintf(conn->job, sizeof(conn->job), "%lu", id);
		conn->got = true;
	} else if (strncmp(conn->in, "INSERTED", 8) &&
		   strncmp(conn->in, "DELETED", 7) &&
		   strncmp(conn->in, "TIMED_OUT", 9)) {
		errno = EPROTO;
		fail(__FILE__, __LINE__, conn->in);
	}
	return end - conn->in;
}

/* Makes a command of RESP from the words that follow, up to NULL. */
static int vwords(char *out, size_t size, va_list args)
{
	int count = 0, length;
	const char *word;
	va_list again;

	va_copy(again, args);
	while (va_arg(again, const char *))
		count++;
	va_end(again);
	length = snprintf(out, size, "*%d\r\n", count);
	while ((word = va_arg(args, const char *)))
		length += snprintf(out + length, size - length, "$%zu\r\n%s\r\n",
				   strlen(word), word);
	NEED((size_t)length < size);
	return length;
}

static int words(char *out, size_t size, ...)
{
	va_list args;
	int length;

	va_start(args, size);
	length = vwords(out, size, args);
	va_end(args);
	return length;
}

void ask(struct conn *conn, ...)
{
	char text[1024];
	va_list args;
	int length;

	va_start(args, conn);
	length = vwords(text, sizeof(text), args);
	va_end(args);
	conn->length = 0;
	send_text(conn, text, length);
	do {
		hear(conn);
	} while (!resp_length(conn));
	conn->length = 0;
}

long long figure(struct conn *conn, const char *name)
{
	char field[64];
	const char *at;

	ask(conn, "TW.STATS", NULL);
	snprintf(field, sizeof(field), "\r\n%s\r\n", name);
	at = strstr(conn->in, field);
	NEED(at);
	return atoll(at + strlen(field) + 1);
}

static int twjobd_format(char *out, size_t size, const struct conn *conn,
			 enum command command)
{
	char body[BODY + 1];

	switch (command) {
	case TAKE:
		return words(out, size, "TW.TAKE", "q", NULL);
	case ACK:
		return words(out, size, "TW.ACK", "q", conn->job, NULL);
	default:
		make_body(body, new_number());
		return words(out, size, "TW.PUT", "q", body, NULL);
	}
}

static int keyed_format(char *out, size_t size, const struct conn *conn,
			enum command command)
{
	char body[BODY + 1], key[32];
	unsigned int number = new_number();

	if (command != PUT)
		return twjobd_format(out, size, conn, command);
	make_body(body, number);
	snprintf(key, sizeof(key), "new-%08u", number);
	return words(out, size, "TW.PUT", "q", body, "IN", "86400", "KEY", key, NULL);
}

static int list_format(char *out, size_t size, const struct conn *conn,
		       enum command command)
{
	char body[BODY + 1];

	switch (command) {
	case TAKE:
		return words(out, size, "LMOVE", "jobs", "held", "RIGHT", "LEFT", NULL);
	case ACK:
		return words(out, size, "LREM", "held", "1", conn->job, NULL);
	default:
		make_body(body, new_number());
		return words(out, size, "LPUSH", "jobs", body, NULL);
	}
}

static int set_format(char *out, size_t size, const struct conn *conn,
		      enum command command)
{
	char body[BODY + 1], second[32];

	snprintf(second, sizeof(second), "%lld", (long long)time(NULL));
	switch (command) {
	case TAKE:
		return words(out, size, "EVALSHA", script, "2", "jobs", "held", second,
			     NULL);
	case ACK:
		return words(out, size, "ZREM", "held", conn->job, NULL);
	default:
		make_body(body, new_number());
		return words(out, size, "ZADD", "jobs", second, body, NULL);
	}
}

static int beanstalkd_format(char *out, size_t size, const struct conn *conn,
			     enum command command)
{
	char body[BODY + 1];

	switch (command) {
	case TAKE:
		return snprintf(out, size, "reserve-with-timeout 0\r\n");
	case ACK:
		return snprintf(out, size, "delete %s\r\n", conn->job);
	default:
		make_body(body, new_number());
		return snprintf(out, size, "put 0 0 60 %d\r\n%s\r\n", BODY, body);
	}
}

static void twjobd_prepare(void)
{
	FILE *file = fopen("/tmp/twjobd.conf", "w");

	NEED(file && fprintf(file, "listen = " SOCKET "\nstore = " STORE "/jobs\n"
			     "wheel-prefix = bench-\n") > 0 && !fclose(file));
}

static void twjobd_set_up(struct conn *conn)
{
	ask(conn, "TW.CREATE", "q", "MAXJOBS", "1000000", NULL);
}

static void set_set_up(struct conn *conn)
{
	static const char text[] =
		"local job = redis.call('zrangebyscore', KEYS[1], 0, ARGV[1],\n"
		"	'limit', 0, 1)[1]\n"
		"if not job then return false end\n"
		"redis.call('zrem', KEYS[1], job)\n"
		"redis.call('zadd', KEYS[2], ARGV[1] + 60, job)\n"
		"return job";

	ask(conn, "SCRIPT", "LOAD", text, NULL);
	NEED(sscanf(conn->in, "$40 %40s", script) == 1);
}

/* The cluster was made on the host. */
static void postgres_prepare(void)
{
	NEED(!system("rm -r " STORE " && cp -a /postgres " STORE
		     " && chown -R 65534:65534 " STORE " && chmod 700 " STORE));
}

#define TWJOBD	"./twjobd --config /tmp/twjobd.conf"
#define REDIS	"redis-server --port 0 --unixsocket " SOCKET " --dir " STORE	\
		" --save '' --appendonly yes --appendfsync always"		\
		" --ignore-warnings ARM64-COW-BUG"
#define POSTGRES "/usr/lib/postgresql/*/bin/postgres"

const struct kind kinds[] = {
	{
		.name = "twjobd",
		.version = "./twjobd --version",
		.command = TWJOBD,
		.speaker = &socket_speaker,
		.prepare = twjobd_prepare,
		.set_up = twjobd_set_up,
		.format = twjobd_format,
		.parse = twjobd_parse,
	}, {
		.name = "beanstalkd -f0",
		.version = "beanstalkd -v",
		.command = "beanstalkd -l unix:" SOCKET " -b " STORE " -f0",
		.speaker = &socket_speaker,
		.format = beanstalkd_format,
		.parse = beanstalkd_parse,
	}, {
		.name = "Redis LPUSH",
		.version = "redis-server --version",
		.command = REDIS,
		.speaker = &socket_speaker,
		.format = list_format,
		.parse = redis_parse,
	}, {
		.name = "Redis ZADD",
		.command = REDIS,
		.speaker = &socket_speaker,
		.set_up = set_set_up,
		.format = set_format,
		.parse = redis_parse,
	}, {
		.name = "PostgreSQL",
		.version = POSTGRES " --version",
		.command = POSTGRES " -D " STORE " -k /tmp -h ''",
		.user = NOBODY,
		.speaker = &postgres_speaker,
		.prepare = postgres_prepare,
		.set_up = postgres_set_up,
		.polled = true,
	},
};

const unsigned int nr_kinds = sizeof(kinds) / sizeof(*kinds);

const struct kind keyed = {
	.name = "twjobd",
	.command = TWJOBD,
	.speaker = &socket_speaker,
	.prepare = twjobd_prepare,
	.set_up = twjobd_set_up,
	.format = keyed_format,
	.parse = twjobd_parse,
};
