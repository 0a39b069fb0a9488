// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses of sockets that listen: see address.h.
 */
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"
#include "log.h"

#define DIGITS		"0123456789"

const char *address_parse_path(struct address *address, const char *text)
{
	if (text[0] != '/')
		return "is no path that begins with \"/\"";
	if (strlen(text) >= sizeof(address->un.sun_path))
		return "is too long for a socket";
	address->un.sun_family = AF_UNIX;
	strcpy(address->un.sun_path, text);
	address->length = sizeof(address->un);
	return NULL;
}

/* ADDRESS:PORT in numbers, an IPv6 address in []. */
static const char *parse_tcp(struct address *address, const char *text)
{
	static const char wrong[] =
		"is neither ADDRESS:PORT, in numbers, nor a path";
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char host[64], *port, *start = host, *end;
	struct addrinfo *found;

	if (strlen(text) >= sizeof(host))
		return wrong;
	strcpy(host, text);
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

const char *address_parse(struct address *address, const char *text)
{
	return text[0] == '/' ? address_parse_path(address, text) :
				parse_tcp(address, text);
}

/* Removes the socket of a service that has ended: no process listens at it. */
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

__noreturn
static void die_listening(int err, const struct address *address)
{
	char host[108], port[8];

	if (address->any.sa_family == AF_UNIX)
		die(err, "listening on %s", address->un.sun_path);
	getnameinfo(&address->any, address->length, host, sizeof(host), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	die(err, "listening on %s port %s", host, port);
}

int address_listen(const struct address *address)
{
	int fd = socket(address->any.sa_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0)
		die(errno, "socket");
	/*
	 * Connections inherit the option keepalive, which ends connections whose peers have
	 * vanished.
	 */
	if (address->any.sa_family == AF_UNIX)
		remove_stale(address);
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
		 setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)))
		die(errno, "socket");
	if (bind(fd, &address->any, address->length) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		die_listening(errno, address);
	return fd;
}
