/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This file has what differs between kernels. Each TW_HAS_ macro is set by Kbuild, which looks
 * for a feature in the headers; nothing else in the module asks what kernel it is. Kbuild has
 * the compiler read this before each file, as the core, which also builds in user space,
 * cannot include it.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uio.h>

#ifndef try_cmpxchg64
#define try_cmpxchg64(ptr, old, new) ({					\
	typeof(ptr) __ptr = (ptr);					\
	u64 *__old = (old), __seen = *__old;				\
	u64 __was = cmpxchg64(__ptr, __seen, new);			\
									\
	*__old = __was;							\
	__was == __seen;						\
})
#endif

/* Without this flag, caches whose objects readers find by RCU are not merged either. */
#ifndef SLAB_NO_MERGE
#define SLAB_NO_MERGE	SLAB_TYPESAFE_BY_RCU
#endif

#ifndef TW_HAS_TASK_SIGPENDING
static inline int task_sigpending(struct task_struct *task)
{
	return signal_pending(task);
}
#endif

#ifndef TW_HAS_FAULT_IN_IOV_ITER
/* Returns how much could not be fetched. The old fault_in_ functions write zeros. */
static inline size_t fault_in_iov_iter_writeable(const struct iov_iter *to,
						 size_t size)
{
	struct iov_iter rest = *to;

	while (size) {
		struct page *page;
		size_t offset;
		ssize_t got = iov_iter_get_pages(&rest, &page, size, 1, &offset);

		if (got <= 0)
			break;
		put_page(page);
		iov_iter_advance(&rest, got);
		size -= got;
	}

	return size;
}
#endif

#ifndef TW_HAS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifndef TW_HAS_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

#ifndef TW_HAS_MAY_SPLIT
#define may_split	split
#endif

/*
 * In some kernels an accounted page has a type of its own and cannot be mapped, as type and
 * count of mappings share a word. This code takes the type away while the page is in use, and
 * gives it back before the page is freed, so that its charge ends.
 */
#if defined(TW_HAS_KMEMCG_PAGES) && defined(CONFIG_MEMCG)
static inline void *tw_alloc_pages_exact(size_t size, gfp_t gfp)
{
	void *pages = alloc_pages_exact(size, gfp);
	size_t at;

	for (at = 0; pages && at < size; at += PAGE_SIZE) {
		struct page *page = virt_to_page(pages + at);

		if (PageKmemcg(page))
			__ClearPageKmemcg(page);
	}

	return pages;
}

static inline void tw_free_pages_exact(void *pages, size_t size)
{
	size_t at;

	for (at = 0; at < size; at += PAGE_SIZE) {
		struct page *page = virt_to_page(pages + at);

		if (page->mem_cgroup)
			__SetPageKmemcg(page);
	}
	free_pages_exact(pages, size);
}

#define alloc_pages_exact	tw_alloc_pages_exact
#define free_pages_exact	tw_free_pages_exact
#endif

/* Without this a program may change the rights of its mapping, as of any other file. */
#ifdef TW_HAS_VM_MPROTECT
#define TW_VM_MPROTECT(function)	.mprotect = (function),
#else
#define TW_VM_MPROTECT(function)
#endif

/* Whether device_type->devnode() may change the device. */
#ifdef TW_HAS_CONST_DEVNODE
#define TW_DEVNODE_CONST	const
#else
#define TW_DEVNODE_CONST
#endif

/*
 * Called after the lock is let go: all starts and cancellations under it come into force. A
 * timer of the kernel needs no more. But a process compiles the wheel, too, and there the
 * timer is a file descriptor.
 */
static inline void tw_timer_settle(struct hrtimer *timer)
{
}

#endif /* TW_COMPAT_H */
