/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds a job: the connection to which its delivery that is out was sent. It is known of
 * what this process has handed out, also when the connection has ended.
 */
#ifndef TWJOBD_HOLDER_H
#define TWJOBD_HOLDER_H

#include "client.h"

/* The client gets this delivery of the job. @version: that of a shared store's row. */
void holder_note(struct client *client, const struct queue *queue,
		 const struct timewheel_event *event, uint64_t version);
/* The client has gone. */
void holder_end(struct client *client);

#define HOLDER_TEXT	256
/* Who has the held token of the job, as the begin of a line of CLIENT LIST. False: not known. */
bool holder_of(const struct job *job, const struct timewheel_token *token,
	       char text[HOLDER_TEXT]);

#endif /* TWJOBD_HOLDER_H */
