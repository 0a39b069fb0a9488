// SPDX-License-Identifier: GPL-2.0-only
/*
 * The configuration file: lines "key = value", blank ones, and comments from a "#"
 * at their beginning. Each key has a parser that returns what is wrong with a
 * value, or NULL. Also sockets that listen.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "twjobd.h"

#define NAME_BYTES	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
			"abcdefghijklmnopqrstuvwxyz0123456789-_"
#define DIGITS		"0123456789"

struct config config;

static const char *parse_text(char *to, size_t room, const char *value)
{
	if (strlen(value) >= room)
		return "is too long";
	strcpy(to, value);
	return NULL;
}

static const char *parse_store(const char *value)
{
	if (value[0] != '/')
		return "is no path that begins with \"/\"";
	return parse_text(config.store, sizeof(config.store), value);
}

static const char *parse_prefix(const char *value)
{
	if (value[strspn(value, NAME_BYTES)])
		return "has other bytes than letters, digits, \"-\" and \"_\"";
	return parse_text(config.prefix, sizeof(config.prefix), value);
}

static const char *parse_password(const char *value)
{
	return parse_text(config.password, sizeof(config.password), value);
}

static const char *parse_number(const char *value, uint64_t most, uint64_t *to)
{
	char *end;

	errno = 0;
	*to = strtoull(value, &end, 10);
	if (!strspn(value, DIGITS) || *end || errno || !*to || *to > most)
		return "is no number, or one that is out of range";
	return NULL;
}

static const char *parse_max_body(const char *value)
{
	return parse_number(value, 64 << 20, &config.max_body);
}

static const char *parse_max_connections(const char *value)
{
	return parse_number(value, 1000000, &config.max_connections);
}

static const char *parse_path(struct address *address, const char *value)
{
	if (strlen(value) >= sizeof(address->un.sun_path))
		return "is too long for a socket";
	address->un.sun_family = AF_UNIX;
	strcpy(address->un.sun_path, value);
	address->length = sizeof(address->un);
	return NULL;
}

/* ADDRESS:PORT in numbers, an IPv6 address in []. */
static const char *parse_tcp(struct address *address, char *value)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char *port = strrchr(value, ':');
	struct addrinfo *found;

	if (!port || port == value)
		return "is neither ADDRESS:PORT, in numbers, nor a path";
	*port++ = '\0';
	if (value[0] == '[' && port[-2] == ']') {
		value++;
		port[-2] = '\0';
	}
	if (getaddrinfo(value, port, &hints, &found))
		return "is neither ADDRESS:PORT, in numbers, nor a path";
	memcpy(&address->any, found->ai_addr, found->ai_addrlen);
	address->length = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

/* May be given several times. */
static const char *parse_listen(const char *value)
{
	char tcp[64];
	int i = 0;

	while (i < MAX_LISTENERS && config.listen[i].length)
		i++;
	if (i == MAX_LISTENERS)
		return "is one address too many";
	if (value[0] == '/')
		return parse_path(&config.listen[i], value);
	return parse_text(tcp, sizeof(tcp), value) ?:
	       parse_tcp(&config.listen[i], tcp);
}

static const struct {
	const char *name;
	const char *(*parse)(const char *value);
} keys[] = {
	{ "listen", parse_listen },
	{ "store", parse_store },
	{ "wheel-prefix", parse_prefix },
	{ "password", parse_password },
	{ "max-body", parse_max_body },
	{ "max-connections", parse_max_connections },
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

/* Returns what is wrong with a line, NULL for nothing. */
static const char *parse_line(char *line)
{
	char *name = trim(line), *value = strchr(name, '=');

	if (!*name || *name == '#')
		return NULL;
	if (!value)
		return "is not \"key = value\"";
	*value++ = '\0';
	name = trim(name);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].name, name))
			return keys[i].parse(trim(value));
	return "has an unknown key";
}

static void set_defaults(void)
{
	parse_store("/var/lib/twjobd/jobs");
	parse_prefix("jobs-");
	config.max_body = 1 << 20;
	config.max_connections = 10000;
}

int config_load(const char *path)
{
	FILE *file = fopen(path, "re");
	const char *error = NULL;
	unsigned int number = 0;
	char line[512];

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	set_defaults();
	while (!error && fgets(line, sizeof(line), file)) {
		number++;
		error = strchr(line, '\n') || feof(file) ? parse_line(line) :
			"is too long";
	}
	fclose(file);
	if (error) {
		fprintf(stderr, "%s:%u: the line %s\n", path, number, error);
		return -1;
	}
	if (!config.listen[0].length) {
		parse_listen("/run/twjobd/socket");
		parse_listen("127.0.0.1:7076");
	}
	return 0;
}

/* Removes a socket at which nobody listens: of a daemon that has ended. */
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
	/* Keepalive, which connections inherit, ends those of peers that vanished. */
	if (address->any.sa_family == AF_UNIX)
		remove_stale(address);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		 setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)))
		die(errno, "socket");
	if (bind(fd, &address->any, address->length) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		die(errno, "listening on %s",
		    address->any.sa_family == AF_UNIX ?
		    address->un.sun_path : "the TCP address");
	return fd;
}
