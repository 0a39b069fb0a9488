/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Addresses of sockets that listen: paths, and addresses of TCP.
 */
#ifndef COMMON_ADDRESS_H
#define COMMON_ADDRESS_H

#include <sys/socket.h>
#include <sys/un.h>

struct address {
	socklen_t length;
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage room;
	};
};

/*
 * address_parse_path() reads the path of a socket, and address_parse() a path or ADDRESS:PORT.
 * Both functions return what is wrong with the text, or NULL.
 */
const char *address_parse_path(struct address *address, const char *text);
const char *address_parse(struct address *address, const char *text);
/* Makes a socket that listens at the address. Exits if it fails. */
int address_listen(const struct address *address);

#endif /* COMMON_ADDRESS_H */
