/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space stand-in for the kernel's header without lock debugging. */
#ifndef BENCH_LINUX_LOCKDEP_H
#define BENCH_LINUX_LOCKDEP_H

#define lockdep_assert_held(lock)	((void)(lock))

#endif /* BENCH_LINUX_LOCKDEP_H */
