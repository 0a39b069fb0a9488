/* SPDX-License-Identifier: GPL-2.0-only */
/* A walk through a whole ring that checks that all its parts agree. */
#ifndef WALK_H
#define WALK_H

#include "ring.h"

/* The chunks of which lists are made; the other chunks are free. */
u32 chunks_in_use(const struct tw_lists *lists);

void walk(struct tw_ring *ring);
u32 list_level(const struct tw_ring *ring, u32 list);

#endif /* WALK_H */
