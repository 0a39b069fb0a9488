/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers that make faults on demand: the kernel's allocations fail, and its copies
 * from and to user space. They need root and a kernel with FAILSLAB, FAIL_PAGE_ALLOC
 * and FAIL_USERCOPY.
 */
#ifndef TW_INJECT_H
#define TW_INJECT_H

#include "tw_test.h"

/* Writes a file of the fault injection; @who names the kind of fault. */
static inline bool tw_inject_set(const char *who, const char *what,
				 const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s", who, what);
	return tw_write_file(path, value);
}

/* Sets the percentage of faults in tasks that have asked for faults. */
static inline bool tw_inject_percent(const char *who, const char *percent)
{
	return tw_inject_set(who, "times", "1000000000") &&
	       tw_inject_set(who, "space", "0") &&
	       tw_inject_set(who, "probability", percent);
}

/*
 * Prepares all kinds of faults: no fault happens by chance, and each call that may fail
 * is counted, also an allocation that may wait for memory. Returns false where the
 * kernel cannot do so.
 */
static inline bool tw_inject_init(void)
{
	const char *const all[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};

	for (int i = 0; i < 3; i++)
		if (!tw_inject_percent(all[i], "0") ||
		    !tw_inject_set(all[i], "task-filter", "Y") ||
		    !tw_inject_set(all[i], "verbose", "0") ||
		    (i < 2 && !tw_inject_set(all[i], "ignore-gfp-wait", "N")))
			return false;
	return tw_inject_set("fail_page_alloc", "ignore-gfp-highmem", "N") &&
	       tw_inject_set("fail_page_alloc", "min-order", "0");
}

/* Opens a switch of the calling thread: "fail-nth" or "make-it-fail". */
static inline int tw_inject_open(const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/thread-self/%s", name);
	return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * Writes a switch until no fault makes the write itself fail. Returns how many writes
 * failed.
 */
static inline unsigned int tw_inject_switch(int fd, const char *value)
{
	unsigned int failed = 0;

	while (pwrite(fd, value, strlen(value), 0) < 0)
		failed++;
	return failed;
}

#endif /* TW_INJECT_H */
