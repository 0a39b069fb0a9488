/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests with several processes: memory that a child shares with its parent,
 * the end of a child, and passing of open files.
 */
#ifndef TW_PROCESS_H
#define TW_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns zeroed memory that children share, or MAP_FAILED and errno. */
static inline void *tw_shared_memory(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Forks a child that ends with the test, however the test ends. */
static inline pid_t tw_fork(void)
{
	pid_t child = fork();

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

/* Ends a child for good: its files are released when this returns. */
static inline bool tw_kill(pid_t child)
{
	int status;

	return !kill(child, SIGKILL) && waitpid(child, &status, 0) == child &&
	       WIFSIGNALED(status);
}

/* Waits for a child. Returns its exit status, or -1 when a signal ended it. */
static inline int tw_reap(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* A message has this room for a file that it passes. */
union tw_passed {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

/* Passes @fd over @socket, in a message of its own. Returns 0 or -1. */
static inline int tw_send_fd(int socket, int fd, int flags)
{
	union tw_passed control = {
		.header = {
			.cmsg_len = CMSG_LEN(sizeof(fd)),
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
		},
	};
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, flags) == 1 ? 0 : -1;
}

/* Returns the file that the next message of @socket passes, or -1. */
static inline int tw_receive_fd(int socket, int flags)
{
	union tw_passed control;
	char room;
	struct iovec byte = { .iov_base = &room, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;
	int fd = -1;

	if (recvmsg(socket, &message, flags) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

#endif /* TW_PROCESS_H */
