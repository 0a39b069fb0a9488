/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deliveries over a planned restart, where wheels end with the process: an orderly stop saves
 * what workers have, and the next start goes on with these deliveries, so that receipts stay
 * good.
 */
#ifndef TWJOBD_HELD_H
#define TWJOBD_HELD_H

#include "store.h"

/* Saves the deliveries at an orderly stop, when no connection is left. */
void held_save(void);
/*
 * Goes on with the deliveries at a start. The wheels are open, and nothing has been read from
 * them.
 */
void held_go_on(void);
/* Replaces a receipt of an earlier process by the receipt of the delivery that goes on for it. */
void held_translate(struct receipt *receipt);

#endif /* TWJOBD_HELD_H */
