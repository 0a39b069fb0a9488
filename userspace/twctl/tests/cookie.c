// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends connections by reap_diag.c. Another connection that has got the same addresses and
 * ports meanwhile is left alone, because it has another cookie. Prints TAP.
 */
#include <arpa/inet.h>
#include <sys/socket.h>

#include "../reap.h"

static int results, failed;

static void result(bool good, const char *what)
{
	printf("%sok %d %s\n", good ? "" : "not ", ++results, what);
	failed |= !good;
}

/* A socket with an address and a port, which may have been another's a moment ago. */
static int bound(const char *address, uint16_t port, struct sockaddr_in6 *at)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0), on = 1;

	*at = (struct sockaddr_in6) {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
	};
	inet_pton(AF_INET6, address, &at->sin6_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0)
		die(STATUS_FAILED, "bind: %s", strerror(errno));
	return fd;
}

/* Makes a connection from one port to another, always the same two ports. */
static void make(const char *address, int listener, const struct sockaddr_in6 *to,
		 int ends[2])
{
	struct sockaddr_in6 from;

	ends[0] = bound(address, 7502, &from);
	if (connect(ends[0], (const struct sockaddr *)to, sizeof(*to)) < 0)
		die(STATUS_FAILED, "connect: %s", strerror(errno));
	ends[1] = accept(listener, NULL, NULL);
}

/* Closes a connection so that nothing is left of it, not even a TIME_WAIT. */
static void break_off(int ends[2])
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(ends[0]);
	close(ends[1]);
}

static bool carries(int ends[2])
{
	char byte = 'x';

	return send(ends[0], &byte, 1, MSG_NOSIGNAL) == 1 &&
	       recv(ends[1], &byte, 1, 0) == 1;
}

/* Finds what sock_diag tells of the connection's end with this port. */
static bool is_accepted(struct space *space, uint16_t port, struct conn *conn)
{
	struct conns conns = { };
	bool is = false;
	size_t i;

	diag_sockets(space, 0, &conns);
	for (i = 0; i < conns.count && !is; i++) {
		is = ntohs(conns.conn[i].tcp.id.idiag_sport) == port &&
		     !conns.conn[i].listens;
		*conn = conns.conn[i];
	}
	free(conns.conn);
	return is;
}

/* Asks how long a connection has been idle. Returns 0, or an errno. */
static int ask(struct conn *conn)
{
	return tw_tcp_ask(conn->space->diag, &conn->tcp, 1) < 0 ? errno :
								   conn->tcp.error;
}

static void end_by_cookie(struct space *space, const char *address)
{
	struct sockaddr_in6 at;
	int listener = bound(address, 7501, &at), first[2], second[2];
	struct conn old, new;
	char byte;

	listen(listener, 8);
	make(address, listener, &at, first);
	result(!is_accepted(space, 7502, &old) && is_accepted(space, 7501, &old),
	       "only the accepted end is found");
	usleep(300000);
	result(!ask(&old) && old.tcp.received >= TW_MS(290) &&
	       old.tcp.received < TW_SEC(60), "how long it has been idle");
	break_off(first);
	make(address, listener, &at, second);
	result(is_accepted(space, 7501, &new) &&
	       !memcmp(old.tcp.id.idiag_src, new.tcp.id.idiag_src, 32) &&
	       old.tcp.id.idiag_dport == new.tcp.id.idiag_dport,
	       "another one has its addresses and ports");
	result(ask(&old) == ENOTCONN, "the old one is not found");
	result(diag_end(&old) == ENOENT, "nor ended");
	result(carries(second), "the new one carries data");
	result(!diag_end(&new), "the new one is ended");
	result(recv(second[1], &byte, 1, 0) < 0 && errno == ECONNABORTED,
	       "its program reads ECONNABORTED");
	result(diag_end(&new) == ENOENT, "it has gone");
	break_off(second);
	close(listener);
}

int main(void)
{
	struct space *spaces = NULL, *space = space_of(&spaces, "self");

	result(space, "a socket of sock_diag");
	result(!diag_can_end(space), "the kernel ends connections");
	puts("# IPv6");
	end_by_cookie(space, "::1");
	puts("# IPv4, of sockets of IPv6");
	end_by_cookie(space, "::ffff:127.0.0.1");
	printf("1..%d\n", results);
	return failed;
}
