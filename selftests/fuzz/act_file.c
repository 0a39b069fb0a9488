// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts: files, and calls that wait for them.
 */
#include "act.h"

long act_open(const __u64 *v)
{
	int fd = open(act_path(v[2]), v[1] | O_CLOEXEC);

	act_keep_file(v[0], fd, v[2] && v[2] <= ACT_NAMES ?
				&act_named[v[2] - 1] : NULL);
	return fd;
}

long act_close(const __u64 *v)
{
	long ret;

	act_uring_end(v[0]);
	ret = close(act_fd(v[0]));
	act_at_file(v[0])->fd = -1;
	return ret;
}

long act_dup(const __u64 *v)
{
	int fd = dup(act_fd(v[1]));

	act_keep_file(v[0], fd, &act_at_file(v[1])->setup);
	return fd;
}

long act_read(const __u64 *v)
{
	return read(act_fd(v[0]), act_where(v[1], v[2], ACT_ARRAY), v[2]);
}

long act_readv(const __u64 *v)
{
	const struct iovec iov[] = {
		{ act_where(v[1], v[2], ACT_ARRAY), v[2] },
		{ act_where(v[3], v[4], ACT_OTHER), v[4] },
	};

	return preadv2(act_fd(v[0]), iov, (v[5] + 2) % 3, (long)v[6] - 1, v[7]);
}

/* Makes a call that a wheel refuses. */
long act_refused(const __u64 *v)
{
	int fd = act_fd(v[0]), other = act_fd(v[2]);
	char *at = act_where(v[3], 64, ACT_ARRAY);

	switch (v[1] % 8) {
	case 0:
		return write(fd, at, 64);
	case 1:
		return lseek(fd, 48, SEEK_SET);
	case 2:
		return pread(fd, at, 64, 0);
	case 3:
		return sendfile(other, fd, NULL, 96);
	case 4:
		return splice(fd, NULL, other, NULL, 96, SPLICE_F_NONBLOCK);
	case 5:
		return fsync(fd);
	case 6:
		return ftruncate(fd, 0);
	default:
		return fallocate(fd, 0, 0, 4096);
	}
}

long act_fcntl(const __u64 *v)
{
	return fcntl(act_fd(v[0]), F_SETFL, (int)v[1]);
}

long act_poll(const __u64 *v)
{
	struct pollfd p[] = {
		{ .fd = act_fd(v[0]), .events = v[1] },
		{ .fd = act_fd(v[2]), .events = v[1] },
	};

	return poll(p, 2, v[3] % 8);
}

long act_epoll(const __u64 *v)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	act_keep_file(v[0], fd, NULL);
	return fd;
}

long act_epoll_ctl(const __u64 *v)
{
	struct epoll_event event = {
		.events = EPOLLIN | v[3] << 24, .data.u64 = v[1],
	};

	return epoll_ctl(act_fd(v[0]), v[2] ? v[2] % 5 : EPOLL_CTL_ADD,
			 act_fd(v[1]), &event);
}

long act_epoll_wait(const __u64 *v)
{
	struct epoll_event events[4];

	return epoll_wait(act_fd(v[0]), events, 4, v[1] % 8);
}

/* Reads a file that shows wheels or files. */
long act_proc(const __u64 *v)
{
	static const char * const paths[] = {
		"/sys/kernel/debug/timewheel/wheels",
		"/sys/kernel/debug/timewheel/users",
		"/sys/kernel/debug/timewheel/stats",
		"/proc/self/smaps", "/proc/self/maps",
		"/sys/module/timewheel/parameters/max_tokens",
		"/sys/class/timewheel",
	};
	size_t which = v[1] % 8;
	char path[64], text[512];
	int fd;

	sprintf(path, "/proc/self/fdinfo/%d", act_fd(v[0]));
	fd = open(which ? paths[which - 1] : path, O_RDONLY | O_CLOEXEC);
	while (read(fd, text, sizeof(text)) > 0)
		;
	return close(fd);
}
