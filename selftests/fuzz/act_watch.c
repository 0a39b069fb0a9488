// SPDX-License-Identifier: GPL-2.0-only
/* Acts: TCP connections of this machine with itself, which tokens may watch. */
#include "act.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Both ends of each connection, and 1; 0 if there is none. */
static int act_end_of[ACT_PAIRS][2];

/* What WATCH is told to watch: an end of a connection, a file, or some number. */
int act_socket(__u64 n)
{
	if (n < 2 * ACT_PAIRS)
		return act_end_of[n / 2][n % 2] - 1;
	return n < 64 ? act_fd(n) : (int)n;
}

static void act_keep_end(__u64 pair, int end, int fd)
{
	int before = __atomic_exchange_n(&act_end_of[pair % ACT_PAIRS][end], fd + 1,
					 __ATOMIC_SEQ_CST);

	if (before)
		close(before - 1);
}

/* Ended by a reset, it leaves no port in use: there are many programs. */
static void act_reset_at_end(int fd, bool yes)
{
	const struct linger linger = { .l_onoff = yes };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

/* By IPv4, by IPv6, or by the one in the other. */
long act_connect(const __u64 *v)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	bool is_v4 = v[1] % 3 == 0;
	struct sockaddr *address = is_v4 ? (void *)&v4 : (void *)&v6;
	socklen_t size = is_v4 ? sizeof(v4) : sizeof(v6);
	int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int a = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), b = -1;

	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	inet_pton(AF_INET6, v[1] % 3 == 1 ? "::1" : "::ffff:127.0.0.1",
		  &v6.sin6_addr);
	if (!bind(listener, address, size) && !listen(listener, 4) &&
	    !getsockname(listener, address, &size) && !connect(a, address, size))
		b = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	if (b < 0)
		return close(a);
	act_reset_at_end(a, true);
	act_reset_at_end(b, true);
	act_keep_end(v[0], 0, a);
	act_keep_end(v[0], 1, b);
	return 0;
}

/* Data from one end to the other. */
long act_say(const __u64 *v)
{
	static char data[256];
	int from = act_socket(v[0] % ACT_PAIRS * 2 + v[1] % 2);
	int to = act_socket(v[0] % ACT_PAIRS * 2 + 1 - v[1] % 2);
	long ret = send(from, data, 1 + v[2] % sizeof(data),
			MSG_DONTWAIT | MSG_NOSIGNAL);

	recv(to, data, sizeof(data), MSG_DONTWAIT);
	return ret;
}

/* What else may happen to an end. */
long act_hang_up(const __u64 *v)
{
	const struct sockaddr nothing = { .sa_family = AF_UNSPEC };
	int fd = act_socket(v[0] % ACT_PAIRS * 2 + v[1] % 2);

	switch (v[2] % 8) {
	case 0:
		act_keep_end(v[0], v[1] % 2, -1);
		return 0;
	case 1:
		act_reset_at_end(fd, false);
		act_keep_end(v[0], v[1] % 2, -1);
		return 0;
	case 2:
		return shutdown(fd, SHUT_WR);
	case 3:
		return shutdown(fd, SHUT_RDWR);
	case 4:
		return connect(fd, &nothing, sizeof(nothing));
	case 5:
		return listen(fd, 1);
	case 6:
		return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 2);
	default:
		return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", 3);
	}
}
