/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where kernels differ. Each TW_HAS_ macro is set by Kbuild, which looks for a
 * feature in the headers; nothing else in the module asks what kernel it is.
 */
#ifndef TW_COMPAT_H
#define TW_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/mm.h>

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

/* Whether device_type->devnode() may change the device. */
#ifdef TW_HAS_CONST_DEVNODE
#define TW_DEVNODE_CONST	const
#else
#define TW_DEVNODE_CONST
#endif

#endif /* TW_COMPAT_H */
