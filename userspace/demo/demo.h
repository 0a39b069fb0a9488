/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations for all parts of the demonstration.
 */
#ifndef DEMO_H
#define DEMO_H

#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>

#include "device.h"

#define __printf(text, first) __attribute__((\
	__format__(printf, text, first)))

/*
 * The users of the TCP server. There is one slot more than the timeout has ticks: the
 * token of a user who has just sent a packet is filed on the hand's slot, a lap ahead.
 */
#define USERS		2000
#define FIRST_UID	100000ULL
#define TIMEOUT		(10 * SEC)
#define SLOTS		11

/* This many users fall silent for good, within this many seconds. */
#define SILENT		50
#define SILENT_WITHIN	(20 * SEC)

/* The clients send this to the server once, at the end. */
struct farewell {
	__u64 packets;		/* sent by all */
	/* Users that fell silent, or whose connection was lost */
	__u32 silent;
	struct silent_user {
		__u64 uid;
		__u64 last;	/* when it sent its last packet */
		__u64 closed;	/* when the server closed its connection */
	} user[SILENT];
};

/* clients.c: the users, in a process of their own. */
int clients_start(in_port_t port);
bool clients_farewell(int pipe, struct farewell *farewell);

/* idle.c: the server that notices which users fell silent. */
void idle_users(void);

/* draw.c: the server's wheel, once a second. */
struct picture {
	__u64 second;		/* since the beginning */
	__u64 hand;		/* the tick on which it is */
	__u64 lap;		/* since the beginning, from 0 */
	unsigned int *slots;	/* users due in each slot */
	unsigned int online, offline;
	unsigned int rate;	/* packets in the last second */
	__u64 packets, touches, calls, asked, callbacks;
	const __u64 *recent;	/* uids, the last to go offline first */
	unsigned int nr_recent;
};

void draw_start(void);
void draw(const struct picture *picture);

/* orders.c: delays of days, and an hour of the wall clock. */
void delayed_orders(void);
void text_messages(void);

/* main.c: the lines of the summary. */
__printf(2, 3)
void claim(bool ok, const char *format, ...);
__printf(2, 3)
void figure(const char *name, const char *format, ...);

/* One more of a list of uids;  counts from 0. */
void list_uid(unsigned int nth, __u64 uid);

#endif /* DEMO_H */
