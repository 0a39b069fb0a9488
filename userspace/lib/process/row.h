/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Row: memory in one piece, of which the addresses are kept from the start and the
 * memory comes as it is needed. What has come stays until the row goes.
 */
#ifndef TW_ROW_H
#define TW_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* Addresses for so many bytes, NULL when there are not enough. */
void *tw_row_new(size_t bytes);

/*
 * The bytes from @from up to @to of a row are zero and can be used: those before @from can
 * be already. Returns whether there was memory.
 */
bool tw_row_use(void *row, size_t from, size_t to);

/* @used: how many of its bytes can be used. */
void tw_row_free(void *row, size_t bytes, size_t used);

#endif /* TW_ROW_H */
