/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: bytes come in, commands are carried out in their order, and answers
 * go out in the same order once they are durable. This knows no verb.
 */
#ifndef TWJOBD_CONN_H
#define TWJOBD_CONN_H

/* Files that there may be besides those of config.max_connections. */
#define MORE_FILES	128

/* Connections are accepted from a socket that listens. */
void conn_listen(int fd);
/* When the loop ends, what clients have sent by then is answered first. */
void conn_start(void);

#endif /* TWJOBD_CONN_H */
