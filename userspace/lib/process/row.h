/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/*
 * Row: memory in one piece, of which the addresses are kept from the start and the memory
 * comes as it is needed. Memory that has come stays until the row is freed.
 */
#ifndef TW_ROW_H
#define TW_ROW_H

#include <stdbool.h>
#include <stddef.h>

/* Keeps addresses for so many bytes. Returns NULL when there are not enough. */
void *tw_row_new(size_t bytes);

/*
 * Makes the bytes from @from up to @to of a row usable, and they are zero at first. The bytes
 * before @from may be usable already. Returns whether there was memory.
 */
bool tw_row_use(void *row, size_t from, size_t to);

/* @used: how many bytes of the row can be used. */
void tw_row_free(void *row, size_t bytes, size_t used);

#endif /* TW_ROW_H */
