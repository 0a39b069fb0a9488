// SPDX-License-Identifier: GPL-2.0-only
/*
 * Map: a wheel's touch words, in its users' memory.
 *
 * A mapping holds its file open, and so the wheel, with all its pages, is there
 * as long as any mapping is. A mapping is one piece for good: it is not split,
 * moved or given other rights.
 */
#include <linux/mm.h>

#include "file.h"

/* A place that no token has used yet has no page. */
static vm_fault_t tw_map_fault(struct vm_fault *vmf)
{
	const struct tw_wheel *wheel = tw_file_wheel(vmf->vma->vm_file);
	void *words = tw_ring_word_page(&wheel->ring, vmf->pgoff);

	if (!words)
		return VM_FAULT_SIGBUS;
	vmf->page = virt_to_page(words);
	get_page(vmf->page);

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

static int __maybe_unused
tw_map_mprotect(struct vm_area_struct *vma, unsigned long start,
		unsigned long end, unsigned long flags)
{
	return -EACCES;
}

static const struct vm_operations_struct tw_map_ops = {
	.fault		= tw_map_fault,
	.may_split	= tw_map_may_split,
	.mremap		= tw_map_mremap,
	TW_VM_MPROTECT(tw_map_mprotect)
};

/* mmap(2) of a wheel; its contract is in timewheel(7). */
int tw_map(struct file *file, struct vm_area_struct *vma)
{
	const struct tw_wheel *wheel = tw_file_wheel(file);
	int err = tw_wheel_check(wheel);

	if (err)
		return err;
	if (!tw_ring_has_words(&wheel->ring) ||
	    vma->vm_pgoff != TIMEWHEEL_MAP_WORDS ||
	    vma_pages(vma) != tw_ring_word_pages(&wheel->ring) ||
	    !(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &tw_map_ops;

	return 0;
}
