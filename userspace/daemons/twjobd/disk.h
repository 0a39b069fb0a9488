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
/* Gives up the ballast, because a write has found the disk full. */
void disk_give_ballast(void);
/* Takes the ballast again, if there is room for it. */
void disk_take_ballast(void);
/* Tells whether the disk was full and has no room for the ballast yet. */
bool disk_is_full(void);
/*
 * Tells whether the file system has become read-only. After an error a file system may do this
 * and still say that a sync succeeded.
 */
bool disk_is_read_only(void);

#endif /* TWJOBD_DISK_H */
