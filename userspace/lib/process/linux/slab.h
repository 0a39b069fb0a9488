/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header: memory of any size, zeroed. */
#ifndef TW_LINUX_SLAB_H
#define TW_LINUX_SLAB_H

static inline void *kvcalloc(size_t n, size_t size, gfp_t gfp)
{
	(void)gfp;

	return calloc(n, size);
}

static inline void kvfree(const void *memory)
{
	free((void *)memory);
}

static inline void *kzalloc(size_t size, gfp_t gfp)
{
	return kvcalloc(1, size, gfp);
}

#define kmalloc(size, gfp)	kzalloc(size, gfp)
#define kfree(memory)		kvfree(memory)

#endif /* TW_LINUX_SLAB_H */
