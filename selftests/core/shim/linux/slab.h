/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header, for memory of any size. */
#ifndef SHIM_LINUX_SLAB_H
#define SHIM_LINUX_SLAB_H

void *alloc_pages_exact(size_t size, gfp_t gfp);
void free_pages_exact(void *pages, size_t size);
void *kvcalloc(size_t n, size_t size, gfp_t gfp);
void kvfree(const void *memory);

static inline void *kzalloc(size_t size, gfp_t gfp)
{
	return kvcalloc(1, size, gfp);
}

static inline void *__vmalloc(size_t size, gfp_t gfp)
{
	return kvcalloc(1, size, gfp);
}

/* A cache only knows the size of its objects. */
struct kmem_cache;

#define SLAB_NO_MERGE	0

static inline struct kmem_cache *kmem_cache_create(const char *name, size_t size,
						   size_t align, unsigned int flags,
						   void (*ctor)(void *object))
{
	(void)name;
	(void)align;
	(void)flags;
	(void)ctor;
	return (struct kmem_cache *)size;
}

static inline void kmem_cache_destroy(struct kmem_cache *cache)
{
	(void)cache;
}

static inline void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t gfp)
{
	return alloc_pages_exact((size_t)cache, gfp);
}

static inline void kmem_cache_free(struct kmem_cache *cache, void *object)
{
	free_pages_exact(object, (size_t)cache);
}

#endif /* SHIM_LINUX_SLAB_H */
