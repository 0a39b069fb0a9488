/* SPDX-License-Identifier: GPL-2.0-only */
/* A walk through a whole ring that checks that all its parts agree. */
#ifndef WALK_H
#define WALK_H

#include "ring.h"

void walk(struct tw_ring *ring);
u32 list_level(const struct tw_ring *ring, u32 list);

#endif /* WALK_H */
