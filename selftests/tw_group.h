/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A memory cgroup for the test: its limit and its charge. TW_GROUP, which is defined
 * before this is included, is its folder. Needs root and a version 2 hierarchy with the
 * memory controller.
 */
#ifndef TW_GROUP_H
#define TW_GROUP_H

#include <sys/stat.h>

#include "tw_test.h"

static inline bool tw_group_set(const char *file, __u64 value)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), TW_GROUP "/%s", file);
	snprintf(text, sizeof(text), "%llu", value);
	return tw_write_file(path, text);
}

/* Sets the limit of its charge, in bytes. */
static inline bool tw_group_limit(__u64 bytes)
{
	return tw_group_set("memory.max", bytes);
}

/* Its charge in bytes, or 0 if there is no group. */
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

/* Makes the group, or skips the test if it cannot. */
#define TW_MAKE_GROUP(bytes) do {					\
	if (!tw_group_make(bytes))					\
		SKIP(return, "no cgroup with a memory controller: %s",	\
		     strerror(errno));					\
} while (0)

/* The calling process is charged to it from now on. */
static inline bool tw_group_enter(void)
{
	return tw_group_set("cgroup.procs", 0);
}

/* The same, for one that will have no memory left: then it has its own pages. */
static inline bool tw_group_enter_locked(void)
{
	return !mlockall(MCL_CURRENT) && tw_group_enter();
}

#endif /* TW_GROUP_H */
