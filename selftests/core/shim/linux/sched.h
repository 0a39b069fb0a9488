/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header. */
#ifndef SHIM_LINUX_SCHED_H
#define SHIM_LINUX_SCHED_H

#include <linux/spinlock.h>

#define cond_resched()	might_sleep()

#endif /* SHIM_LINUX_SCHED_H */
