/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The service manager's part, for tests of twjobd that start it again: it keeps the
 * file of a wheel, by which what workers hold stays theirs.
 */
#ifndef JOBS_MANAGER_H
#define JOBS_MANAGER_H

#include "jobs.h"

/* A socket on which the service manager is told things. */
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

/* The file that the daemon wants kept, or -1. */
static inline int kept_file(int notify)
{
	char text[256], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { text, sizeof(text) - 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd ready = { .fd = notify, .events = POLLIN };

	while (poll(&ready, 1, 2000) == 1) {
		ssize_t length;
		int fd;

		message.msg_controllen = sizeof(control);
		length = recvmsg(notify, &message, 0);
		if (length <= 0)
			break;
		text[length] = '\0';
		if (!strstr(text, "FDSTORE=1") ||
		    !strstr(text, "FDNAME=" PREFIX "q") || !CMSG_FIRSTHDR(&message))
			continue;
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		return fd;
	}
	return -1;
}

/* As the service manager starts it. */
static inline pid_t start_with_file(int kept)
{
	pid_t pid = fork();
	char number[16];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_FDNAMES", PREFIX "q", 1);
	if (dup2(kept, 3) < 0)
		_exit(126);
	execl("./twjobd", "twjobd", "--config", DIR "/config", NULL);
	_exit(127);
}

#endif /* JOBS_MANAGER_H */
