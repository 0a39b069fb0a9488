/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map: a wheel's touch words, in its users' memory.
 */
#ifndef TW_MAP_H
#define TW_MAP_H

#include <linux/fs.h>
#include <linux/mm_types.h>

int tw_map(struct file *file, struct vm_area_struct *vma);

#endif /* TW_MAP_H */
