/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests in a memory cgroup: they set its limit and read its charge. A
 * program defines TW_GROUP, the folder of the group, before it includes this file. The
 * helpers need root and a version 2 hierarchy with the memory controller.
 */
#ifndef TW_GROUP_H
#define TW_GROUP_H

#include <sys/stat.h>

#include "tw_test.h"

/* The kernel may charge a CPU so many bytes in advance: 64 pages. */
#define TW_GROUP_STOCK	(64ULL * sysconf(_SC_PAGESIZE))

static inline bool tw_group_set(const char *file, __u64 value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), TW_GROUP "/%s", file);
	snprintf(text, sizeof(text), "%llu", value);
	return tw_write_file(path, text);
}

/* Sets the limit of the group's charge, in bytes. */
static inline bool tw_group_limit(__u64 bytes)
{
	return tw_group_set("memory.max", bytes);
}

/* Returns the group's charge in bytes, or 0 if there is no group. */
static inline __u64 tw_group_charged(void)
{
	FILE *file = fopen(TW_GROUP "/memory.current", "re");
	__u64 bytes = 0;

	if (file && fscanf(file, "%llu", &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes;
}

static inline bool tw_group_make(__u64 bytes)
{
	if (mkdir(TW_GROUP, 0755) && errno != EEXIST)
		return false;
	if (tw_group_limit(bytes))
		return true;
	rmdir(TW_GROUP);
	return false;
}

/* Makes the group, or skips the test if there can be none. */
#define TW_MAKE_GROUP(bytes) do {					\
	if (!tw_group_make(bytes))					\
		SKIP(return, "no cgroup with a memory controller: %s",	\
		     strerror(errno));					\
} while (0)

/* The group is charged for the calling process from now on. */
static inline bool tw_group_enter(void)
{
	return tw_group_set("cgroup.procs", 0);
}

/*
 * Enters the group with all pages of the process locked in memory, for a process that
 * will have no memory left.
 */
static inline bool tw_group_enter_locked(void)
{
	return !mlockall(MCL_CURRENT) && tw_group_enter();
}

#endif /* TW_GROUP_H */
