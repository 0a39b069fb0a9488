// SPDX-License-Identifier: GPL-2.0-only
/*
 * The configuration file has lines "key = value", blank lines, and comment lines
 * that begin with "#". Each key has a parser, which returns what is wrong with a
 * value, or NULL. The first error ends the reading, before anything has changed.
 */
#include <errno.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "twidled.h"

#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
			"abcdefghijklmnopqrstuvwxyz0123456789-_"
#define DIGITS		"0123456789"

/* The configuration that is being read. */
static struct config fresh;

/* A field of struct config. */
#define AT(field)	offsetof(struct config, field)
#define SIZE(field)	sizeof(fresh.field)

static const char *parse_wheel(void *field, const char *value)
{
	size_t length = strlen(value);

	if (length >= TIMEWHEEL_NAME_SIZE || strspn(value, NAME_BYTES) != length)
		return "is no name of 1 to 63 letters, digits, \"-\" and \"_\"";
	strcpy(field, value);
	return NULL;
}

static const char *parse_path(void *field, const char *value)
{
	struct address *address = field;
	size_t length = strlen(value);

	if (value[0] != '/')
		return "is no path that begins with \"/\"";
	if (length >= sizeof(address->un.sun_path))
		return "is too long for a socket";
	address->un.sun_family = AF_UNIX;
	strcpy(address->un.sun_path, value);
	address->length = sizeof(address->un);
	return NULL;
}

/* ADDRESS:PORT in numbers, an IPv6 address in []. */
static const char *parse_tcp(struct address *address, const char *value)
{
	static const char wrong[] =
		"is neither ADDRESS:PORT, in numbers, nor a path";
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char host[64], *port, *start = host, *end;
	struct addrinfo *found;

	if (strlen(value) >= sizeof(host))
		return wrong;
	strcpy(host, value);
	port = strrchr(host, ':');
	if (!port || port == host || !port[1] ||
	    strspn(port + 1, DIGITS) != strlen(port + 1) ||
	    strtoul(port + 1, NULL, 10) > UINT16_MAX)
		return wrong;
	*port++ = '\0';
	end = port - 2;
	if (*start == '[' && *end == ']') {
		start++;
		*end = '\0';
	} else if (strchr(host, ':')) {
		return "has an IPv6 address that is not in []";
	}
	if (getaddrinfo(start, port, &hints, &found))
		return wrong;
	memcpy(&address->any, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

/* May be given several times. */
static const char *parse_listen(void *field, const char *value)
{
	struct address *address = field;
	int i;

	for (i = 0; address[i].length; i++)
		if (i == MAX_LISTENERS - 1)
			return "is one address too many";
	if (value[0] == '/')
		return parse_path(&address[i], value);
	return parse_tcp(&address[i], value);
}

static const char *parse_state(void *field, const char *value)
{
	if (value[0] != '/')
		return "is no path that begins with \"/\"";
	if (strlen(value) >= SIZE(state))
		return "is too long";
	strcpy(field, value);
	return NULL;
}

/* Reads a number from 1 to @most. Returns the text after it, NULL if there is none. */
static const char *number(const char *value, uint64_t most, uint64_t *number)
{
	char *end;

	/* strtoull() takes signs and blanks too. */
	if (!strspn(value, DIGITS))
		return NULL;
	errno = 0;
	*number = strtoull(value, &end, 10);
	return errno || !*number || *number > most ? NULL : end;
}

static const char *parse_time(void *field, const char *value, uint64_t most)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ms", NSEC_PER_MSEC },
		{ "s", NSEC_PER_SEC },
		{ "min", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
	};
	uint64_t count;
	const char *unit = number(value, most / NSEC_PER_MSEC, &count);
	unsigned int i;

	for (i = 0; unit && i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit + strspn(unit, " "), units[i].name))
			continue;
		if (count > most / units[i].ns)
			break;
		*(uint64_t *)field = count * units[i].ns;
		return NULL;
	}
	return "is no time, such as 500ms, 30s, 10min or 48h, or too long a one";
}

static const char *parse_timeout(void *field, const char *value)
{
	return parse_time(field, value, 8760 * 3600 * NSEC_PER_SEC);
}

static const char *parse_tick(void *field, const char *value)
{
	return parse_time(field, value, 3600 * NSEC_PER_SEC);
}

static const char *parse_users(void *field, const char *value)
{
	const char *rest = number(value, 1 << 24, field);

	return rest && !*rest ? NULL : "is no number from 1 to 16777216";
}

static const char *parse_buffer(void *field, const char *value)
{
	const char *rest = number(value, 1 << 30, field);

	if (!rest || *rest || *(uint64_t *)field < 4096)
		return "is no number of bytes from 4096 to 1073741824";
	return NULL;
}

static const char *parse_bool(void *field, const char *value)
{
	*(bool *)field = !strcmp(value, "yes");
	return *(bool *)field || !strcmp(value, "no") ? NULL :
		"is neither yes nor no";
}

#define MANY	1U	/* may be given more than once */
#define LIVE	2U	/* may change while the service runs */

static const struct key {
	const char *name;
	unsigned int flags;
	const char *(*parse)(void *field, const char *value);
	size_t offset, size;
} keys[] = {
	{ "wheel", 0, parse_wheel, AT(wheel), SIZE(wheel) },
	{ "listen", MANY, parse_listen, AT(listen), SIZE(listen) },
	{ "events", 0, parse_path, AT(events), SIZE(events) },
	{ "state", 0, parse_state, AT(state), SIZE(state) },
	{ "timeout", LIVE, parse_timeout, AT(timeout), SIZE(timeout) },
	{ "tick", 0, parse_tick, AT(tick), SIZE(tick) },
	{ "max-users", 0, parse_users, AT(max_users), SIZE(max_users) },
	{ "buffer", LIVE, parse_buffer, AT(buffer), SIZE(buffer) },
	{ "close", LIVE, parse_bool, AT(close), SIZE(close) },
};

static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	return text;
}

struct place {
	const char *path;
	unsigned int line;
	unsigned int seen;	/* a bit for each key that the file has given */
};

__printf(2, 3)
static int wrong(const struct place *place, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%u: ", place->path, place->line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return -1;
}

static int parse_line(struct place *place, char *line, struct config *config)
{
	char *name = trim(line), *value = strchr(name, '=');
	const char *error;
	unsigned int i;

	if (!*name || *name == '#')
		return 0;
	if (!value)
		return wrong(place, "\"%s\" is not \"key = value\"", name);
	*value++ = '\0';
	name = trim(name);
	value = trim(value);
	for (i = 0; i < ARRAY_SIZE(keys) && strcmp(keys[i].name, name); i++)
		;
	if (i == ARRAY_SIZE(keys))
		return wrong(place, "unknown key \"%s\"", name);
	if ((place->seen & 1U << i) && !(keys[i].flags & MANY))
		return wrong(place, "%s is given twice", name);
	place->seen |= 1U << i;
	if (!*value)
		return wrong(place, "%s has no value", name);
	error = keys[i].parse((char *)config + keys[i].offset, value);
	return error ? wrong(place, "%s: \"%s\" %s", name, value, error) : 0;
}

static void set_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	parse_wheel(config->wheel, "twidled");
	parse_path(&config->events, "/run/twidled/events");
	parse_state(config->state, "/run/twidled/state");
	config->timeout = 30 * NSEC_PER_SEC;
	config->tick = NSEC_PER_SEC;
	config->max_users = 100000;
	config->buffer = 1 << 20;
	config->close = true;
}

int config_load(const char *path, struct config *config)
{
	struct place place = { .path = path };
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int result = 0;

	if (!file)
		return wrong(&place, "%s", strerror(errno));
	set_defaults(config);
	while (!result && (length = getline(&line, &room, file)) >= 0) {
		place.line++;
		if (strlen(line) != (size_t)length)
			result = wrong(&place, "has a zero byte");
		else
			result = parse_line(&place, line, config);
	}
	if (!result && !feof(file))
		result = wrong(&place, "%s", strerror(errno));
	free(line);
	fclose(file);
	if (!result && !config->listen[0].length)
		parse_listen(config->listen, "127.0.0.1:7075");
	return result;
}

void config_reload(const char *path, struct config *config)
{
	unsigned int i;

	if (config_load(path, &fresh) < 0) {
		say("%s has an error: nothing is changed", path);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		char *from = (char *)&fresh + keys[i].offset;
		char *to = (char *)config + keys[i].offset;

		if (!memcmp(from, to, keys[i].size))
			continue;
		if (keys[i].flags & LIVE)
			memcpy(to, from, keys[i].size);
		else
			say("%s: another %s needs a restart", path,
			    keys[i].name);
	}
}

/* Removes the socket of a service that has ended: nobody listens there. */
static void remove_stale(const struct address *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct stat stat;

	if (!lstat(address->un.sun_path, &stat) && S_ISSOCK(stat.st_mode) &&
	    connect(fd, &address->any, address->length) < 0 &&
	    errno == ECONNREFUSED)
		unlink(address->un.sun_path);
	close(fd);
}

int config_listen(const struct address *address)
{
	int fd = socket(address->any.sa_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0)
		die(errno, "socket");
	/*
	 * Connections inherit keepalive. It ends the connections of peers that have
	 * vanished, also with "close = no".
	 */
	if (address->any.sa_family == AF_UNIX)
		remove_stale(address);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		 setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)))
		die(errno, "socket");
	if (bind(fd, &address->any, address->length) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		char host[108], port[8];
		int err = errno;

		if (address->any.sa_family == AF_UNIX)
			die(err, "listening on %s", address->un.sun_path);
		getnameinfo(&address->any, address->length, host, sizeof(host),
			    port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
		die(err, "listening on %s port %s", host, port);
	}
	return fd;
}
