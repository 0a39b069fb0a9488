/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs that could not be claimed, perhaps because the body of one of them cannot be read: the
 * database finds it damaged, or does not tell it in time. This knows no statement.
 */
#ifndef TWJOBD_SUSPECTS_H
#define TWJOBD_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

/* A claim of these jobs, and of nothing else, has failed, or has told their bodies. */
void suspects_note(const int64_t *ids, int count, bool failed);
/* The job is to be claimed by itself. */
bool suspects_have(int64_t id);
/* That has failed so often that the body is not to be asked for any more. */
bool suspects_condemn(int64_t id);

#endif /* TWJOBD_SUSPECTS_H */
