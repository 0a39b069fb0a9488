/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the server that commits, among the hosts of a connection string.
 */
#ifndef TWJOBD_CONNECT_H
#define TWJOBD_CONNECT_H

#include <libpq-fe.h>
#include <stdint.h>

/* Returns the time of a clock that is never set, in ms. */
uint64_t pg_ticks(void);

/*
 * Goes on trying, and waits for the hosts until @until, unless all hosts have refused. Returns a
 * connection whose session has its settings, or NULL if there is no connection yet.
 */
PGconn *connect_try(const char *where, uint64_t until);
/* The server of the last connection cannot be used: other servers are to be tried first. */
void connect_avoid(void);
/* Tells why a host was of no use. */
const char *connect_error(void);

#endif /* TWJOBD_CONNECT_H */
