/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that are not there until somebody brings them, as from a network or a
 * file system that hangs: they belong to userfaultfd.
 */
#ifndef TW_FAULT_H
#define TW_FAULT_H

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns -1 where the kernel's own faults cannot be kept waiting. */
static inline int tw_open_userfaultfd(void *pages, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)pages, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) || madvise(pages, size, MADV_DONTNEED) ||
	    ioctl(fd, UFFDIO_REGISTER, &range)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline bool tw_wait_for_fault(int uffd)
{
	struct pollfd p = { .fd = uffd, .events = POLLIN };
	struct uffd_msg msg;

	return poll(&p, 1, 10000) == 1 &&
	       read(uffd, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT;
}

/* Lets the fault end well: the pages are there. */
static inline bool tw_bring_pages(int uffd, void *pages, size_t size)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)pages, .len = size },
	};

	return !ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
}

/* Lets it end badly: the pages are gone. */
static inline bool tw_lose_pages(int uffd, void *pages, size_t size)
{
	struct uffdio_range range = { .start = (uintptr_t)pages, .len = size };

	return !munmap(pages, size) && !ioctl(uffd, UFFDIO_WAKE, &range);
}

#endif /* TW_FAULT_H */
