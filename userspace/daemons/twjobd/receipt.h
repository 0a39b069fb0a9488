/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Receipts as workers get them, and as they send them back: four hexadecimal numbers with dashes
 * between them.
 */
#ifndef TWJOBD_RECEIPT_H
#define TWJOBD_RECEIPT_H

#include "store.h"

#define RECEIPT_TEXT	64

/* Returns the receipt's text, which is in @room. */
struct bytes receipt_write(const struct receipt *receipt, char room[RECEIPT_TEXT]);
/* Returns false if the text is no receipt. */
bool receipt_read(struct bytes text, struct receipt *receipt);

#endif /* TWJOBD_RECEIPT_H */
