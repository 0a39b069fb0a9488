// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stand-ins for the kernel's memory. Only touch words take single pages. They lie in a
 * row here, as a program that maps touch words sees them.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/mm.h>
#include <linux/slab.h>

#define ROW_BYTES	(1UL << 32)

static void *row_page(void)
{
	static char *row;
	static size_t used;

	if (!row)
		row = mmap(NULL, ROW_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (row == MAP_FAILED || used == ROW_BYTES)
		return NULL;
	used += PAGE_SIZE;

	return row + used - PAGE_SIZE;
}

void *alloc_pages_exact(size_t size, gfp_t gfp)
{
	void *pages;

	(void)gfp;
	if (size == PAGE_SIZE)
		pages = row_page();
	else
		pages = aligned_alloc(PAGE_SIZE, PAGE_ALIGN(size));
	if (pages)
		memset(pages, 0, size);

	return pages;
}

void free_pages_exact(void *pages, size_t size)
{
	if (size != PAGE_SIZE)
		free(pages);
}

void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	(void)gfp;
	return calloc(n, size);
}

void kvfree(const void *memory)
{
	free((void *)memory);
}

void shim_bug(const char *what, const char *file, int line)
{
	(void)what;
	(void)file;
	(void)line;
	abort();
}
