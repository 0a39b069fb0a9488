/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header: memory of any size. */
#ifndef SHIM_LINUX_SLAB_H
#define SHIM_LINUX_SLAB_H

#include <linux/gfp.h>

void *kvcalloc(size_t n, size_t size, gfp_t gfp);
void kvfree(const void *memory);

#endif /* SHIM_LINUX_SLAB_H */
