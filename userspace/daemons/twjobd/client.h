/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What verbs see of a connection: where their answer goes, and the deliveries that
 * are to be given back when it ends.
 */
#ifndef TWJOBD_CLIENT_H
#define TWJOBD_CLIENT_H

#include <sys/queue.h>

#include "queue.h"
#include "resp.h"

/*
 * A delivery that is given back if its connection ends: until it has been @sent, or,
 * if @bound, as long as it is out. @end: where its bytes end in the stream of
 * answers.
 */
struct delivery {
	TAILQ_ENTRY(delivery) next;
	int64_t queue, job;
	uint64_t epoch, handle, version, end;
	uint32_t number;
	bool bound, sent;
};

TAILQ_HEAD(deliveries, delivery);

struct waiter;
struct holder;

/* Bytes of a name or an address, with a zero byte. */
#define CLIENT_WORD	64

struct client {
	LIST_ENTRY(client) all;
	struct reply reply;
	uint64_t number;
	/* For CLIENT LIST; the times are ms, and @verb is that of the last command. */
	char address[CLIENT_WORD], name[CLIENT_WORD], library[CLIENT_WORD],
	     version[CLIENT_WORD];
	uint64_t since, last;
	const char *verb;
	/* For allow.c: the process' user, and the file of the password that it has given. */
	uid_t uid;
	char *password;
	bool known;		/* needs no password (any more) */
	bool quit;		/* ends after this answer */
	bool late;		/* this answer is to come late: the password was wrong */
	bool final;		/* this answer tells nothing that the turn can undo */
	/* A take that waits, and later commands with it. */
	struct waiter *waiter;
	struct deliveries deliveries;
	/* With so @many it is time to forget those that are not out any more. */
	size_t nr_deliveries, many;
	/* The take has been answered. */
	void (*resume)(struct client *client);
	/*
	 * A command that is carried out in steps, between which other clients are served:
	 * does the next step. The answer is complete when this is NULL. With @end the
	 * client has gone. @steps is what the command keeps between its steps.
	 */
	void (*step)(struct client *client, bool end);
	void *steps;
	struct holder *holder;	/* see holder.c; NULL: it has taken no job */
	struct multi *multi;	/* NULL: no transaction has begun */
};

LIST_HEAD(clients, client);
/* All of them. */
extern struct clients clients_all;

void client_init(struct client *client, void (*resume)(struct client *client));
/* The client has no deliveries any more. */
void client_end(struct client *client);
/* The answer that is being written has this delivery in it. */
void client_delivered(struct client *client, struct queue *queue,
		      const struct timewheel_event *delivery, uint64_t version,
		      bool bound);
/* That answer is complete. Its bytes end at @end of the stream of answers. */
void client_answered(struct client *client, uint64_t end);
/* The stream has been sent up to @end: what is not bound need not be remembered. */
void client_sent(struct client *client, uint64_t end);
void client_forget(struct client *client, struct delivery *delivery);

#endif /* TWJOBD_CLIENT_H */
