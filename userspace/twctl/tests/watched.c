// SPDX-License-Identifier: GPL-2.0-only
/*
 * watched WHEEL ID MS: has a connection to itself, which a token of WHEEL watches with a
 * timeout of so many ms. Prints both ports and the socket's cookie, and closes the
 * connection when its input ends.
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <timewheel.h>

static struct sockaddr_in address_of(int fd)
{
	struct sockaddr_in address = { };
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err(1, "getsockname");
	return address;
}

/* Returns the end that was accepted. */
static int connect_to_self(int client)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), server;
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 1) < 0)
		err(1, "listen");
	address = address_of(listener);
	if (connect(client, (struct sockaddr *)&address, sizeof(address)) < 0)
		err(1, "connect");
	server = accept(listener, NULL, NULL);
	if (server < 0)
		err(1, "accept");
	return server;
}

int main(int argc, char **argv)
{
	int client = socket(AF_INET, SOCK_STREAM, 0), server = connect_to_self(client);
	struct tw_wheel *wheel = tw_wheel_open_named(argv[1], O_WRONLY);
	struct timewheel_op op;
	uint64_t cookie;
	socklen_t length = sizeof(cookie);
	char end;

	if (argc != 4)
		errx(2, "usage: watched WHEEL ID MS");
	if (!wheel)
		err(1, "%s", argv[1]);
	tw_op_watch(&op, atoi(argv[2]), server, TW_MS(atoi(argv[3])), 0, 0);
	if (tw_wheel_run(wheel, &op) < 0)
		err(1, "watch");
	if (getsockopt(server, SOL_SOCKET, SO_COOKIE, &cookie, &length) < 0)
		err(1, "SO_COOKIE");
	printf("%u %u %llu\n", ntohs(address_of(server).sin_port),
	       ntohs(address_of(client).sin_port), (unsigned long long)cookie);
	fflush(stdout);
	return read(STDIN_FILENO, &end, 1);
}
