/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Guests: connections that have not given their password yet. They are few, and none stays
 * for long. Guests never keep out a client that has given a password. This file knows
 * addresses and no socket.
 */
#ifndef TWJOBD_DOOR_H
#define TWJOBD_DOOR_H

#include <netinet/in.h>
#include <sys/queue.h>

#include "twjobd.h"

/* So many guests there are at most, and so many from one address. */
#define MAX_GUESTS	100
#define MAX_ALIKE	10
/* Bytes that a guest may have sent, or not read. */
#define GUEST_BYTES	65536
#define GUEST_TIME	(30 * USEC_PER_SEC)

struct guest {
	TAILQ_ENTRY(guest) next;
	struct in6_addr from;
	uint64_t end;		/* when it has to have given the password: us */
	bool waits;		/* it is a guest */
};

/* Sets what ends a connection because it is a guest. @end calls door_leave() at once. */
void door_start(void (*end)(struct guest *guest));
/* If there are too many guests, the oldest one is ended. */
void door_enter(struct guest *guest, const struct sockaddr_storage *peer);
/* The guest has given its password, or its connection has ended. */
void door_leave(struct guest *guest);

#endif /* TWJOBD_DOOR_H */
