/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* User-space stand-in for the kernel's header. */
#ifndef TW_LINUX_SCHED_H
#define TW_LINUX_SCHED_H

#include <linux/spinlock.h>

#define cond_resched()	might_sleep()

#endif /* TW_LINUX_SCHED_H */
