/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A line of input as an operation on a token. See request.c.
 */
#ifndef TWCTL_REQUEST_H
#define TWCTL_REQUEST_H

#include "twctl.h"

bool request_is_json(const char *line);

/* Changes @line, which has a word. Returns false if it is wrong: see times_wrong(). */
bool request_parse(struct timewheel_op *op, struct wheel *wheel, char *line);

#endif /* TWCTL_REQUEST_H */
