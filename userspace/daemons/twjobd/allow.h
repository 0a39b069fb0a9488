/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may do what: the lines "allow" of the configuration. Each line gives classes of verbs, for
 * some queues, to a user of this machine or to clients that know a password. Lines add up. Root
 * may do all, and without any line everybody may.
 */
#ifndef TWJOBD_ALLOW_H
#define TWJOBD_ALLOW_H

#include "client.h"

#define MAY_PUT		1U
#define MAY_TAKE	2U
#define MAY_ANSWER	4U
#define MAY_CANCEL	8U
#define MAY_LOOK	16U
#define MAY_ADMIN	32U

/* A client that is no process of this machine has this uid. */
#define NO_UID		((uid_t)-1)

/* Adds one more line to the field, which is config.allow. */
const char *allow_parse(const struct config_key *key, void *field, const char *value);
/* Returns what the client may do with this queue or, if @queue is NULL, with at least one queue. */
unsigned int allow_classes(const struct client *client, const struct bytes *queue);
bool allow_look(const struct client *client, const struct queue *queue);
/* Returns the word that a line has for the first of these classes. */
const char *allow_word(unsigned int classes);
/* Tells whether @given is a password. If so, the lines of this password apply to the client. */
bool allow_enter(struct client *client, struct bytes given);
/* Tells whether the same lines apply to both clients. */
bool allow_alike(const struct client *one, const struct client *other);

#endif /* TWJOBD_ALLOW_H */
