/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the server that commits, among the hosts of a connection string.
 */
#ifndef TWJOBD_CONNECT_H
#define TWJOBD_CONNECT_H

#include <libpq-fe.h>
#include <stdint.h>

/* A clock that is never set, ms. */
uint64_t pg_ticks(void);

/*
 * Goes on trying, and waits for the hosts until @until, unless all have refused. Returns a
 * connection whose session is set, or NULL: there is none yet.
 */
PGconn *connect_try(const char *where, uint64_t until);
/* The last one that was returned cannot be used: others are to be tried before it. */
void connect_avoid(void);
/* Why a host was of no use. */
const char *connect_error(void);

#endif /* TWJOBD_CONNECT_H */
