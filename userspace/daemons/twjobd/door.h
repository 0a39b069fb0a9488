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

/* There are at most this many guests, and at most this many from one address. */
#define MAX_GUESTS	100
#define MAX_ALIKE	10
/* A guest may have sent this many bytes, or have this many bytes unread. */
#define GUEST_BYTES	65536
#define GUEST_TIME	(30 * USEC_PER_SEC)

struct guest {
	TAILQ_ENTRY(guest) next;
	struct in6_addr from;
	uint64_t end;		/* us: when it has to have given the password */
	bool waits;		/* true while it is a guest */
};

/* @end ends the connection of a guest that has to leave. @end calls door_leave() at once. */
void door_start(void (*end)(struct guest *guest));
/* Adds a guest. If there are too many guests, the oldest guest is ended. */
void door_enter(struct guest *guest, const struct sockaddr_storage *peer);
/* The guest has given its password, or its connection has ended. */
void door_leave(struct guest *guest);

#endif /* TWJOBD_DOOR_H */
