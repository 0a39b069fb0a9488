/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job is held by the connection to which its delivery that is out was sent. This process
 * knows the connections to which it has handed out jobs, also when they have ended.
 */
#ifndef TWJOBD_HOLDER_H
#define TWJOBD_HOLDER_H

#include "client.h"

/* The client gets this delivery of the job. @version: that of a shared store's row. */
void holder_note(struct client *client, const struct queue *queue,
		 const struct timewheel_event *event, uint64_t version);
/* The client has gone. */
void holder_end(struct client *client);
/* See @queue_changed. */
void holder_forget(int64_t job);

#define HOLDER_TEXT	256
/* The holder is written as the beginning of a line of CLIENT LIST. False: it is not known. */
bool holder_of(const struct job *job, const struct timewheel_token *token,
	       char text[HOLDER_TEXT]);

#endif /* TWJOBD_HOLDER_H */
