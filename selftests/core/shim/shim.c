// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stand-ins for the kernel that are longer than a line: memory, which is counted,
 * and whose allocation can be made to fail.
 */
#include <string.h>

#include "row.h"
#include "shim.h"

/* Stands in front of the memory of kvcalloc(), and keeps its alignment. */
struct shim_size {
	size_t	size;
	size_t	pad;
};

__thread int shim_locks_held;
unsigned int shim_fail_alloc;
int shim_fail_insert;

static size_t bytes;

void shim_bug(const char *what, const char *file, int line)
{
	fprintf(stderr, "# %s at %s:%d\n", what, file, line);
	abort();
}

/* The following functions allocate and free memory. */

size_t shim_bytes(void)
{
	return READ_ONCE(bytes);
}

static void count(size_t added)
{
	__atomic_fetch_add(&bytes, added, __ATOMIC_RELAXED);
}

static bool fails(void)
{
	might_sleep();
	return shim_fail_alloc && !--shim_fail_alloc;
}

void *alloc_pages_exact(size_t size, gfp_t gfp)
{
	void *pages;

	if (fails())
		return NULL;
	pages = aligned_alloc(PAGE_SIZE, PAGE_ALIGN(size));
	if (!pages)
		return NULL;
	memset(pages, gfp & __GFP_ZERO ? 0 : 0xa5, size);
	count(size);

	return pages;
}

void free_pages_exact(void *pages, size_t size)
{
	might_sleep();
	count(-size);
	free(pages);
}

void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	struct shim_size *memory;

	(void)gfp;
	if (fails())
		return NULL;
	memory = calloc(1, sizeof(*memory) + n * size);
	if (!memory)
		return NULL;
	memory->size = n * size;
	count(memory->size);

	return memory + 1;
}

void kvfree(const void *memory)
{
	struct shim_size *head;

	might_sleep();
	if (!memory)
		return;
	head = (struct shim_size *)memory - 1;
	count(-head->size);
	free(head);
}

/* All memory of a row exists from the start, but only the part in use is counted. */

void *tw_row_new(size_t size)
{
	return fails() ? NULL : calloc(1, size);
}

bool tw_row_use(void *row, size_t from, size_t to)
{
	(void)row;
	count(to - from);

	return true;
}

void tw_row_free(void *row, size_t size, size_t used)
{
	(void)size;
	might_sleep();
	count(-used);
	free(row);
}
