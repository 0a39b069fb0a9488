/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As the tests of the core have it, but for the barrier, which the thread
 * sanitizer wanted to be dearer than it is.
 */
#ifndef BENCH_LINUX_TYPES_H
#define BENCH_LINUX_TYPES_H

#define smp_rmb shim_smp_rmb
#include_next <linux/types.h>
#undef smp_rmb
#define smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)

#endif /* BENCH_LINUX_TYPES_H */
