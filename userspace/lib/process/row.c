// SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later
/*
 * Row: memory in one piece, of which the addresses are kept from the start, and the memory
 * comes as it is needed.
 */
#include <sys/mman.h>

#include "core.h"
#include "row.h"

/* The size of a piece of memory that is asked for at once. */
#define PIECE	(64UL << 10)

static size_t up(size_t bytes)
{
	return (bytes + PIECE - 1) / PIECE * PIECE;
}

void *tw_row_new(size_t bytes)
{
	void *row = mmap(NULL, up(bytes), PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return row == MAP_FAILED ? NULL : row;
}

/* Makes memory usable. Threads that do this for the same piece at once do no harm. */
bool tw_row_use(void *row, size_t from, size_t to)
{
	from = up(from);
	to = up(to);

	return from >= to ||
	       !mprotect((char *)row + from, to - from, PROT_READ | PROT_WRITE);
}

void tw_row_free(void *row, size_t bytes, size_t used)
{
	(void)used;
	munmap(row, up(bytes));
}
