/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header. */
#ifndef SHIM_LINUX_LOCKDEP_H
#define SHIM_LINUX_LOCKDEP_H

#include <linux/spinlock.h>

#define lockdep_assert_held(lock) do {					\
	if (!spin_is_mine(lock))					\
		shim_bug("lock not held", __FILE__, __LINE__);		\
} while (0)

#endif /* SHIM_LINUX_LOCKDEP_H */
