/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs that could not be claimed, perhaps because the body of one job cannot be read: the
 * database finds the body damaged, or does not tell it in time. This part knows no statement.
 */
#ifndef TWJOBD_SUSPECTS_H
#define TWJOBD_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that a claim of only these jobs has failed, or has read their bodies. */
void suspects_note(const int64_t *ids, int count, bool failed);
/* Tells whether the job is to be claimed by itself. */
bool suspects_have(int64_t id);
/*
 * Tells whether claims of the job alone have failed so often that its body must not be read any
 * more.
 */
bool suspects_condemn(int64_t id);

#endif /* TWJOBD_SUSPECTS_H */
