/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The disk under a store's file. A ballast file beside the store is given up when the
 * disk is full, so that jobs can still end. New jobs are refused until there is room
 * for it again.
 */
#ifndef TWJOBD_DISK_H
#define TWJOBD_DISK_H

#include "twjobd.h"

/* Makes the ballast file. Its lock says that a twjobd uses the store. */
void disk_open(const char *path);
/* A write has found the disk full: the ballast is given up. */
void disk_give_ballast(void);
/* Takes the ballast again, if there is room for it. */
void disk_take_ballast(void);
/* Whether the disk was full, and there is no room yet for the ballast. */
bool disk_is_full(void);
/* After an error a file system may become read-only, and still say that a sync succeeded. */
bool disk_is_read_only(void);

#endif /* TWJOBD_DISK_H */
