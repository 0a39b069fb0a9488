// SPDX-License-Identifier: GPL-2.0-only
/* The connection to twjobd, the requests on it, and what refusals mean. */
#include <stdarg.h>
#include <strings.h>

#include "twjob.h"

#define SOCKET		"/run/twjobd/socket"
#define PATIENCE	60	/* seconds for an answer, as a disk may be slow */

/*
 * @port: 0 if @host is the path of a socket in the file system. @why: what was wrong with the
 * last connection.
 */
static struct {
	char		*host;
	int		port;
	char		*password;
	char		why[128];
} settings;

/* The connection of all verbs that ask for one thing at a time. */
static redisContext *server;

static void add_word(struct request *request, char *word, size_t length)
{
	if (!word || request->count == MOST_WORDS)
		die(STATUS_FAILED, "no memory for a command");
	request->word[request->count] = word;
	request->length[request->count++] = length;
}

void request_add_bytes(struct request *request, const char *bytes, size_t length)
{
	char *word = malloc(length + 1);

	if (word)
		memcpy(word, bytes, length);
	add_word(request, word, length);
}

void request_add(struct request *request, const char *format, ...)
{
	va_list args;
	char *word;
	int length;

	va_start(args, format);
	length = vasprintf(&word, format, args);
	va_end(args);
	add_word(request, length < 0 ? NULL : word, length);
}

/* @queue: NULL for a verb that is about no queue. */
void request_begin(struct request *request, const char *verb, const char *queue)
{
	request->count = 0;
	request_add(request, "%s", verb);
	if (queue)
		request_add(request, "%s", queue);
}

/* Adds a span, in seconds. */
void request_add_span(struct request *request, uint64_t ns)
{
	request_add(request, "%llu.%09llu", (unsigned long long)(ns / NSEC_PER_SEC),
		    (unsigned long long)(ns % NSEC_PER_SEC));
}

/* Adds a span in milliseconds, rounded up: never early. */
void request_add_when(struct request *request, const struct when *when)
{
	unsigned long long ns = when->ns;

	if (when->kind == WHEN_REAL) {
		request_add(request, "AT");
		request_add(request, "%llu",
			    (ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
	} else {
		request_add(request, "IN");
		request_add_span(request, ns);
	}
}

/* Returns the text before the colon, which the caller frees. @second: the text behind, or NULL. */
static char *split(const char *text, char **second)
{
	char *first = strdup(text), *colon = first ? strchr(first, ':') : NULL;

	if (colon)
		*colon = '\0';
	*second = colon ? colon + 1 : NULL;
	return first;
}

/* Adds a number and a span. */
void request_add_rate(struct request *request, const struct args *args, int option)
{
	const char *text = args->option[option];
	char *span, *number = split(text, &span);
	uint64_t ns;

	if (!span || !number[0] || number[strspn(number, "0123456789")] ||
	    !span_parse(span, &ns))
		die_usage(option == OPT_RATE ? "--rate" : "--group-rate", text,
			  "a number of jobs and a span, such as 100:1m");
	request_add(request, "%s", number);
	request_add_span(request, ns);
	free(number);
}

/* Adds two spans. */
static void add_backoff(struct request *request, const char *text)
{
	char *most, *first = split(text, &most);
	uint64_t ns[2];

	if (!most || !span_parse(first, &ns[0]) || !span_parse(most, &ns[1]))
		die_usage("--backoff", text, "two spans, such as 1s:1h");
	request_add(request, "BACKOFF");
	request_add_span(request, ns[0]);
	request_add_span(request, ns[1]);
	free(first);
}

/* Adds the settings that a queue has, and that a job may have in place of the queue's. */
void request_add_settings(struct request *request, const struct args *args)
{
	if (args->option[OPT_LEASE]) {
		request_add(request, "LEASE");
		request_add_span(request, option_span(args, OPT_LEASE, 0));
	}
	if (args->option[OPT_TRIES]) {
		request_add(request, "TRIES");
		request_add(request, "%llu", (unsigned long long)
			    option_number(args, OPT_TRIES, 0, INT64_MAX, 0));
	}
	if (args->option[OPT_BACKOFF])
		add_backoff(request, args->option[OPT_BACKOFF]);
	if (args->option[OPT_GROUP]) {
		request_add(request, "GROUP");
		request_add(request, "%s", args->option[OPT_GROUP]);
	}
}

/* Reads HOST:PORT, with an IPv6 address in []. */
static bool parse_host(char *host, int *port)
{
	char *colon = strrchr(host, ':'), *end;
	long number;

	if (!colon || colon == host)
		return false;
	number = strtol(colon + 1, &end, 10);
	if (end == colon + 1 || *end || number < 1 || number > 65535)
		return false;
	*port = number;
	*colon = '\0';
	if (*host == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		memmove(host, host + 1, strlen(host));
	}
	return true;
}

static char *read_password(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size;

	if (!file || getline(&line, &size, file) < 0)
		die(STATUS_USAGE, "--password-file '%s': %s", path,
		    file ? "there is no line in it" : strerror(errno));
	fclose(file);
	line[strcspn(line, "\r\n")] = '\0';
	return line;
}

/* Reads the options. Removes the password from the environment of commands that are run. */
void server_settings(const struct args *args)
{
	const char *address = args->option[OPT_SERVER];
	const char *password = getenv("TWJOB_PASSWORD");

	settings.host = strdup(address ? address : SOCKET);
	if (!strchr(settings.host, '/') &&
	    !parse_host(settings.host, &settings.port))
		die_usage("--server", address, "a socket's path or HOST:PORT");
	if (args->option[OPT_PASSWORD_FILE])
		settings.password = read_password(args->option[OPT_PASSWORD_FILE]);
	else if (password)
		settings.password = strdup(password);
	unsetenv("TWJOB_PASSWORD");
}

/* Tells why there is no connection, by errno. */
enum status server_trouble(void)
{
	if (settings.port)
		return trouble(STATUS_FAILED,
			       "no connection to %s, port %d: %s; see 'listen' in /etc/twjobd.conf there",
			       settings.host, settings.port, settings.why);
	switch (errno) {
	case ENOENT:
	case ECONNREFUSED:
		return trouble(STATUS_FAILED,
			       "twjobd does not listen at %s: 'systemctl start twjobd' starts it",
			       settings.host);
	case EACCES:
	case EPERM:
		return trouble(STATUS_NOT_ALLOWED,
			       "no permission for %s: root and the socket's group may use it, see 'ls -l %s'",
			       settings.host, settings.host);
	default:
		return trouble(STATUS_FAILED, "%s: %s", settings.host,
			       settings.why);
	}
}

/* Tells what an error of twjobd means for a user. */
static const struct refusal {
	const char	*word;
	enum status	status;
	const char	*hint;
} refusals[] = {
	{ "NOQUEUE", STATUS_NOT_THERE,
	  "'twjob queues' lists those that are there, 'twjob create' makes one" },
	{ "HELD", STATUS_NOT_NOW,
	  "wait until its worker has answered, or 'twjob delete'" },
	{ "BURIED", STATUS_NOT_NOW, "'twjob kick' makes it due now" },
	{ "FULL", STATUS_FULL,
	  "'twjob stats' tells limits, 'twjob create' changes those of a queue" },
	{ "TOOBIG", STATUS_USAGE, "max-body in /etc/twjobd.conf is the limit" },
	{ "DRAINING", STATUS_NOT_NOW, "'twjob resume' ends that" },
	{ "LOADING", STATUS_NOT_NOW, "this takes seconds after a boot" },
	{ "UNAVAILABLE", STATUS_FAILED, "see 'journalctl -u twjobd'" },
	{ "NOAUTH", STATUS_NOT_ALLOWED,
	  "give it by --password-file or TWJOB_PASSWORD" },
	{ "WRONGPASS", STATUS_NOT_ALLOWED,
	  "it is 'password' in /etc/twjobd.conf" },
	{ "NOPERM", STATUS_NOT_ALLOWED, NULL },
	{ "ERR", STATUS_USAGE, NULL },
};

/* What mends it. A twjobd of this version knows all words that are sent to it. */
static const char *hint_for(const struct refusal *refusal, const char *text)
{
	if (!strncmp(text, "unknown command", 15) || !strncmp(text, "expected ", 9))
		return "this twjobd is too old: 'apt install timewheel-jobs' upgrades it";
	if (strstr(text, "too many connections"))
		return "max-connections in /etc/twjobd.conf is the limit";
	return refusal->hint;
}

/* Returns whether the answer is an error. If so, it is told, with what mends it. */
bool refused(const redisReply *reply, const char *queue, enum status *status)
{
	const struct refusal *refusal = refusals;
	const char *text = reply->str, *hint;
	size_t length;

	if (reply->type != REDIS_REPLY_ERROR)
		return false;
	length = strcspn(text, " ");
	while (refusal < refusals + ARRAY_SIZE(refusals) - 1 &&
	       (strlen(refusal->word) != length ||
		strncmp(refusal->word, text, length)))
		refusal++;
	if (text[length])
		text += length + 1;
	hint = hint_for(refusal, text);
	*status = trouble(refusal->status, "%s%s%s%s%s%s", queue ? "queue '" : "",
			  queue ? queue : "", queue ? "': " : "", text,
			  hint ? "; " : "", hint ? hint : "");
	return true;
}

/* Gives the password on connections by TCP. Returns NULL, or the error that came. */
static redisReply *log_in(redisContext *made)
{
	redisReply *reply = settings.port && settings.password ?
			    redisCommand(made, "AUTH %s", settings.password) : NULL;

	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return reply;
	freeReplyObject(reply);
	return NULL;
}

/*
 * @seconds: how long an answer may take. Returns NULL if there is no connection. @refusal then
 * is what the server says of the password, or NULL and errno tells.
 */
redisContext *server_try(unsigned int seconds, redisReply **refusal)
{
	const struct timeval patience = { .tv_sec = seconds };
	redisContext *made;
	int error;

	*refusal = NULL;
	made = settings.port ?
	       redisConnectWithTimeout(settings.host, settings.port, patience) :
	       redisConnectUnixWithTimeout(settings.host, patience);
	if (!made)
		die(STATUS_FAILED, "no memory for a connection");
	if (made->err) {
		error = made->err == REDIS_ERR_IO ? errno : EHOSTUNREACH;
		snprintf(settings.why, sizeof(settings.why), "%s", made->errstr);
		redisFree(made);
		errno = error;
		return NULL;
	}
	/* A command that is run must not keep the connection open after its end here. */
	fcntl(made->fd, F_SETFD, FD_CLOEXEC);
	redisSetTimeout(made, patience);
	if (settings.port)
		redisEnableKeepAlive(made);
	*refusal = log_in(made);
	if (!*refusal)
		return made;
	redisFree(made);
	return NULL;
}

/*
 * Connects. A wrong password ends the program. Returns NULL and sets errno if there is no
 * connection.
 */
redisContext *server_connect(unsigned int seconds)
{
	redisReply *refusal;
	redisContext *made = server_try(seconds, &refusal);
	enum status status;

	if (refusal && refused(refusal, NULL, &status))
		exit(status);
	return made;
}

/* A connection that breaks gives an error here, while a pipe that breaks still gives the signal. */
void server_open(const struct args *args)
{
	server_settings(args);
	signal(SIGPIPE, SIG_IGN);
	server = server_connect(PATIENCE);
	signal(SIGPIPE, SIG_DFL);
	if (!server)
		exit(server_trouble());
}

/* Formats a request into the output buffer. */
bool server_append(redisContext *to, struct request *request)
{
	int result = redisAppendCommandArgv(to, request->count,
					    (const char **)request->word,
					    request->length);

	while (request->count)
		free(request->word[--request->count]);
	return result == REDIS_OK;
}

/* Asks, and returns the answer. Ends the program if there is no answer. */
redisReply *ask(struct request *request)
{
	redisReply *reply;
	bool answered;

	signal(SIGPIPE, SIG_IGN);
	answered = server_append(server, request) &&
		   redisGetReply(server, (void **)&reply) == REDIS_OK;
	signal(SIGPIPE, SIG_DFL);
	if (answered)
		return reply;
	die(STATUS_FAILED,
	    "the connection ended before the answer (%s): it may have been done or not; see 'twjob list', or repeat a put with --key",
	    server->errstr);
}

/* Finds a value in an answer that has names and values; NULL if it is not there. */
const redisReply *field(const redisReply *map, const char *name)
{
	size_t i;

	for (i = 0; i + 1 < map->elements; i += 2) {
		if (map->element[i]->str && !strcmp(map->element[i]->str, name))
			return map->element[i + 1];
	}
	return NULL;
}

long long number_field(const redisReply *map, const char *name)
{
	const redisReply *value = field(map, name);

	return value ? value->integer : 0;
}
