/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This file does the service manager's part for tests of twjobd that start it again: it keeps the
 * file of a wheel, so that workers keep their jobs.
 */
#ifndef JOBS_MANAGER_H
#define JOBS_MANAGER_H

#include "jobs.h"

/* Returns a socket on which the daemon sends messages to the service manager. */
static inline int open_notify(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, DIR "/notify");
	unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		abort();
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	return fd;
}

/* Returns the next file that the daemon wants to be kept, and its queue, or -1 if there is none. */
static inline int next_kept_file(int notify, char *queue)
{
	static const char mark[] = "FDNAME=" PREFIX;
	char text[256], control[CMSG_SPACE(sizeof(int))], *name;
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd ready = { .fd = notify, .events = POLLIN };

	while (poll(&ready, 1, PATIENCE) == 1) {
		ssize_t length;
		int fd;

		message.msg_controllen = sizeof(control);
		length = recvmsg(notify, &message, 0);
		if (length <= 0)
			break;
		text[length] = '\0';
		name = strstr(text, mark);
		if (!strstr(text, "FDSTORE=1") || !CMSG_FIRSTHDR(&message) || !name ||
		    sscanf(name + strlen(mark), "%31[^\n]", queue) != 1)
			continue;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		return fd;
	}
	return -1;
}

/* Starts the daemon as the service manager does, with @names of files that are separated by ":". */
static inline pid_t start_with_files(const char *names, const int *kept, int count)
{
	pid_t pid = fork();
	char number[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%d", count);
	setenv("LISTEN_FDS", number, 1);
	/* The kept files may have numbers from 3 on, which are needed below. */
	for (int i = 0; i < count; i++)
		if (dup2(kept[i], 100 + i) < 0)
			_exit(126);
	for (int i = 0; i < count; i++)
		dup2(100 + i, 3 + i);
	execl("./twjobd", "twjobd", "--config", DIR "/config", NULL);
	_exit(127);
}

#endif /* JOBS_MANAGER_H */
