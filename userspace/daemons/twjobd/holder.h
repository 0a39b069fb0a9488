/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A job is held by the connection to which the job's present delivery was sent. This process
 * knows the connections to which it has handed out jobs, also when they have ended.
 */
#ifndef TWJOBD_HOLDER_H
#define TWJOBD_HOLDER_H

#include "client.h"

/* Notes that the client gets this delivery of the job. @version is the row's, in a shared store. */
void holder_note(struct client *client, const struct queue *queue,
		 const struct timewheel_event *event, uint64_t version);
/* Lets go of a client that has gone. */
void holder_end(struct client *client);
/* See @queue_changed. */
void holder_forget(int64_t job);

#define HOLDER_TEXT	256
/* Writes the holder as the beginning of a line of CLIENT LIST. Returns false if it is not known. */
bool holder_of(const struct job *job, const struct timewheel_token *token,
	       char text[HOLDER_TEXT]);

#endif /* TWJOBD_HOLDER_H */
