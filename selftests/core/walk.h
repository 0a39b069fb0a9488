/* SPDX-License-Identifier: GPL-2.0-only */
/* A walk through a whole ring that checks that all its parts agree. */
#ifndef WALK_H
#define WALK_H

#include "ring.h"

/* The linker has the ring call one instead of tw_lists_add(), the other is it. */
bool __wrap_tw_lists_add(struct tw_lists *lists, u32 list, u32 token);
bool __real_tw_lists_add(struct tw_lists *lists, u32 list, u32 token);

void walk(struct tw_ring *ring);
u32 list_level(const struct tw_ring *ring, u32 list);

#endif /* WALK_H */
