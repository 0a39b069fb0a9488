/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may do what: the lines "allow" of the configuration. Each one gives classes of verbs, for
 * some queues, to a user of this machine or to those who know a password. Lines add up. Root may
 * do all, and without any line everybody may.
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

/* The uid of a client that is no process of this machine. */
#define NO_UID		((uid_t)-1)

/* One more line. The field is config.allow. */
const char *allow_parse(const struct config_key *key, void *field, const char *value);
/* What the client may do with this queue, or with NULL, with at least one. */
unsigned int allow_classes(const struct client *client, const struct bytes *queue);
bool allow_look(const struct client *client, const struct queue *queue);
/* What a line calls the first of these classes. */
const char *allow_word(unsigned int classes);
/* Whether @given is a password. The client then is one that the password's lines tell of. */
bool allow_enter(struct client *client, struct bytes given);
/* Whether the same lines tell of both. */
bool allow_alike(const struct client *one, const struct client *other);

#endif /* TWJOBD_ALLOW_H */
