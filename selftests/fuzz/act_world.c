// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts on the rest of the machine.
 */
#include "act.h"

long act_sleep(const __u64 *v)
{
	struct timespec ts = { .tv_nsec = v[0] % 16 * 1000000 };

	return nanosleep(&ts, NULL);
}

/* Sets the wall clock a number of seconds ahead or back. */
long act_set_clock(const __u64 *v)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += (__s64)v[0];
	return clock_settime(CLOCK_REALTIME, &ts);
}

static long act_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	long ret = write(fd, text, strlen(text));

	close(fd);
	return ret;
}

/* Makes the n-th operation fail that can fail, if the kernel can inject faults. */
long act_fail(const __u64 *v)
{
	char text[32];

	sprintf(text, "%u", (unsigned int)v[0]);
	return act_write_file("/proc/thread-self/fail-nth", text);
}

long act_user(const __u64 *v)
{
	return syscall(SYS_setresuid, -1, (uid_t)v[0], -1);
}

/* Enters a time namespace in which it is later. A thread cannot enter one alone. */
long act_time_namespace(const __u64 *v)
{
	char text[64];
	long ret;
	int fd;

	sprintf(text, "monotonic %u 0\nboottime %u 5\n", (unsigned int)v[0],
		(unsigned int)v[0]);
	if (unshare(0x80 /* CLONE_NEWTIME */))
		return -1;
	act_write_file("/proc/self/timens_offsets", text);
	fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	ret = setns(fd, 0);
	close(fd);
	return ret;
}
