/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries over a planned restart, where wheels end with the process: an orderly stop
 * saves what workers have, and the next start goes on with it, so that receipts stay good.
 */
#ifndef TWJOBD_HELD_H
#define TWJOBD_HELD_H

#include "store.h"

/* At an orderly stop, when no connection is left. */
void held_save(void);
/* At a start, when the wheels have been opened, and nothing has been read from them yet. */
void held_go_on(void);
/* A receipt of a process before becomes that of the delivery which goes on for it. */
void held_translate(struct receipt *receipt);

#endif /* TWJOBD_HELD_H */
