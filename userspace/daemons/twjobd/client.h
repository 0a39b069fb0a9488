/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verbs' view of a connection: where their answers go, and which deliveries are given back
 * when the connection ends.
 */
#ifndef TWJOBD_CLIENT_H
#define TWJOBD_CLIENT_H

#include <sys/queue.h>

#include "queue.h"
#include "resp.h"

/*
 * A delivery is given back if its connection ends before the delivery has been @sent or, if it is
 * @bound, while it is out. @end is where the delivery's bytes end in the stream of answers.
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

/* A name or an address has this many bytes, with its zero byte. */
#define CLIENT_WORD	64

struct client {
	LIST_ENTRY(client) all;
	struct reply reply;
	uint64_t number;
	/*
	 * CLIENT LIST tells these fields; the times are ms, and @verb is the verb of the last
	 * command.
	 */
	char address[CLIENT_WORD], name[CLIENT_WORD], library[CLIENT_WORD],
	     version[CLIENT_WORD];
	uint64_t since, last;
	const char *verb;
	/*
	 * allow.c uses these fields: the user of the process, and the file of the password that
	 * it has given.
	 */
	uid_t uid;
	char *password;
	bool known;		/* needs no password, or has given it */
	bool quit;		/* ends after this answer */
	bool late;		/* this answer has to come late, because the password was wrong */
	bool final;		/* this answer tells nothing that the turn can undo */
	/* A take of this client waits, and later commands wait behind it. */
	struct waiter *waiter;
	struct deliveries deliveries;
	/* When there are so @many deliveries it is time to forget the ended ones. */
	size_t nr_deliveries, many;
	/* take.c calls this function when the waiting take has been answered. */
	void (*resume)(struct client *client);
	/*
	 * A command may be carried out in steps, between which other clients are served. This
	 * function does the next step. It is NULL when the answer is complete. @end says that the
	 * client has gone. @steps is what the command keeps between its steps.
	 */
	void (*step)(struct client *client, bool end);
	void *steps;
	struct holder *holder;	/* see holder.c; NULL: the client has taken no job */
	struct multi *multi;	/* NULL: no transaction has begun */
};

LIST_HEAD(clients, client);
/* The list has all clients. */
extern struct clients clients_all;

void client_init(struct client *client, void (*resume)(struct client *client));
/* Forgets the client. The client has no deliveries any more. */
void client_end(struct client *client);
/* The caller is writing an answer that has this delivery in it. */
void client_delivered(struct client *client, struct queue *queue,
		      const struct timewheel_event *delivery, uint64_t version,
		      bool bound);
/* The answer with the deliveries is complete. Its bytes end at @end of the stream of answers. */
void client_answered(struct client *client, uint64_t end);
/* The stream has been sent up to @end. A delivery that is not bound need not be remembered then. */
void client_sent(struct client *client, uint64_t end);
void client_forget(struct client *client, struct delivery *delivery);

#endif /* TWJOBD_CLIENT_H */
