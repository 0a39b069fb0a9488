/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This header is included first. The core then calls lists_add() of a test instead of
 * tw_lists_add(), which is inline. The test itself calls (tw_lists_add)().
 */
#ifndef LISTS_SEEN_H
#define LISTS_SEEN_H

#include "list.h"

bool lists_add(struct tw_lists *lists, u32 list, u32 index,
	       struct tw_token *token);

#define tw_lists_add(lists, list, index, token) \
	lists_add(lists, list, index, token)

#endif /* LISTS_SEEN_H */
