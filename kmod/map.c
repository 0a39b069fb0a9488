// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map: a wheel's touch words and event ring, in its users' memory.
 *
 * A mapping holds its file open, and so the wheel, with all its pages, is there
 * as long as any mapping is. A mapping is one piece for good: it is not split,
 * moved or given other rights.
 */
#include <linux/mm.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "map.h"
#include "wheel.h"

/**
 * struct tw_region - what can be mapped as one
 * @at: its offset
 * @writable: not only readable
 * @pages: how many it has on a wheel, 0 if it has none
 * @page: one of them, NULL if it is not there yet
 */
struct tw_region {
	u64		at;
	bool		writable;
	unsigned long	(*pages)(const struct tw_wheel *wheel);
	struct page	*(*page)(const struct tw_wheel *wheel, unsigned long nr);
};

static unsigned long tw_words_pages(const struct tw_wheel *wheel)
{
	return wheel->ring.words.nr;
}

/* Where there has been no token yet there is no page. */
static struct page *tw_words_get(const struct tw_wheel *wheel, unsigned long nr)
{
	void *page;

	return tw_blocks_find(&wheel->ring.words, nr, &page) ?
		virt_to_page(page) : NULL;
}

static unsigned long tw_produced_pages(const struct tw_wheel *wheel)
{
	return wheel->events.size ?
		tw_event_ring_bytes(&wheel->events) / PAGE_SIZE - 1 : 0;
}

static struct page *tw_produced_get(const struct tw_wheel *wheel,
				    unsigned long nr)
{
	return vmalloc_to_page((void *)wheel->events.kernel + nr * PAGE_SIZE);
}

static unsigned long tw_consumed_pages(const struct tw_wheel *wheel)
{
	return wheel->events.size ? 1 : 0;
}

static struct page *tw_consumed_get(const struct tw_wheel *wheel,
				    unsigned long nr)
{
	return vmalloc_to_page(wheel->events.user);
}

static const struct tw_region tw_regions[] = {
	{ TIMEWHEEL_MAP_WORDS, true, tw_words_pages, tw_words_get },
	{ TIMEWHEEL_MAP_PRODUCED, false, tw_produced_pages, tw_produced_get },
	{ TIMEWHEEL_MAP_CONSUMED, true, tw_consumed_pages, tw_consumed_get },
};

static const struct tw_region *tw_region_at(unsigned long pgoff)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tw_regions); i++)
		if (tw_regions[i].at >> PAGE_SHIFT == pgoff)
			return &tw_regions[i];

	return NULL;
}

static vm_fault_t tw_map_fault(struct vm_fault *vmf)
{
	const struct tw_wheel *wheel = vmf->vma->vm_file->private_data;
	const struct tw_region *region = vmf->vma->vm_private_data;
	unsigned long nr = vmf->pgoff - vmf->vma->vm_pgoff;
	struct page *page = NULL;

	if (nr < region->pages(wheel))
		page = region->page(wheel, nr);
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;

	return 0;
}

static int tw_map_may_split(struct vm_area_struct *vma, unsigned long at)
{
	return -EINVAL;
}

static int tw_map_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

static int tw_map_mprotect(struct vm_area_struct *vma, unsigned long start,
			   unsigned long end, unsigned long flags)
{
	return -EACCES;
}

static const struct vm_operations_struct tw_map_ops = {
	.fault		= tw_map_fault,
	.may_split	= tw_map_may_split,
	.mremap		= tw_map_mremap,
	.mprotect	= tw_map_mprotect,
};

/* mmap(2) of a wheel; its contract is in <linux/timewheel.h>. */
int tw_map(struct file *file, struct vm_area_struct *vma)
{
	const struct tw_region *region = tw_region_at(vma->vm_pgoff);
	const struct tw_wheel *wheel = file->private_data;
	int err = tw_wheel_check(wheel);

	if (err)
		return err;
	if (!region || vma_pages(vma) != region->pages(wheel) ||
	    !(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE && !region->writable)
		return -EACCES;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	if (!region->writable)
		vm_flags_clear(vma, VM_MAYWRITE);
	vma->vm_private_data = (void *)region;
	vma->vm_ops = &tw_map_ops;

	return 0;
}
