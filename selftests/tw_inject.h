/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Faults on demand: the kernel's allocations fail, and its copies from and to user
 * space. For root, and kernels with FAILSLAB, FAIL_PAGE_ALLOC and FAIL_USERCOPY.
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

/* The percentage that fails, in tasks that have asked for it; 0: none. */
static inline bool tw_inject_percent(const char *who, const char *percent)
{
	return tw_inject_set(who, "times", "1000000000") &&
	       tw_inject_set(who, "space", "0") &&
	       tw_inject_set(who, "probability", percent);
}

/*
 * Has everything counted that may fail, also allocations for which the kernel would
 * go to some length, and nothing fail by chance. Returns false where it cannot.
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
 * Turns a switch, though the write itself may be made to fail. Returns how often it
 * was.
 */
static inline unsigned int tw_inject_switch(int fd, const char *value)
{
	unsigned int failed = 0;

	while (pwrite(fd, value, strlen(value), 0) < 0)
		failed++;
	return failed;
}

#endif /* TW_INJECT_H */
