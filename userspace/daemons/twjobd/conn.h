/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: bytes come in, commands are carried out in their order, and answers go out in the
 * same order once they are durable. This part knows no verb.
 */
#ifndef TWJOBD_CONN_H
#define TWJOBD_CONN_H

/* The daemon opens this many files besides the connections of config.max_connections. */
#define MORE_FILES	128

/* Accepts connections from the socket @fd, which listens. */
void conn_listen(int fd);
/*
 * Starts the connections. When the loop ends, commands that clients have sent are answered first.
 */
void conn_start(void);

#endif /* TWJOBD_CONN_H */
