/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for tests with pages that are not there until the test brings them, as on a
 * network or a file system that hangs. The pages belong to a userfaultfd, and readers
 * in threads of their own read into such pages.
 */
#ifndef TW_FAULT_H
#define TW_FAULT_H

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "tw_test.h"

/* Returns new pages, or MAP_FAILED and errno. */
static inline void *tw_new_pages(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/*
 * Returns a userfaultfd, or -1 where the kernel's own faults cannot be kept waiting. A wheel of
 * the process copies in user mode, where each user may have faults wait.
 */
static inline int tw_open_userfaultfd(void *pages, size_t size)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { .start = (uintptr_t)pages, .len = size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK |
			 (tw_in_process() ? UFFD_USER_MODE_ONLY : 0));

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

/* Ends the fault well: the pages are there afterwards. */
static inline bool tw_bring_pages(int uffd, void *pages, size_t size)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)pages, .len = size },
	};

	return !ioctl(uffd, UFFDIO_ZEROPAGE, &zero);
}

/* Ends the fault badly: the pages are gone afterwards. */
static inline bool tw_lose_pages(int uffd, void *pages, size_t size)
{
	struct uffdio_range range = { .start = (uintptr_t)pages, .len = size };

	return !munmap(pages, size) && !ioctl(uffd, UFFDIO_WAKE, &range);
}

/* A slow reader is a thread whose buffer may come late or never. */
struct tw_slow_reader {
	pthread_t thread;
	int fd, uffd;
	void *pages;
	size_t size;
	int ret;	/* result of read(2), or -errno */
};

static inline void *tw_read_slowly(void *arg)
{
	struct tw_slow_reader *reader = arg;

	reader->ret = tw_ret(read(reader->fd, reader->pages, reader->size));
	return NULL;
}

/* Returns false if there is no userfaultfd for the buffer, or no thread. */
static inline bool tw_start_slow_reader(struct tw_slow_reader *reader, int fd,
					void *pages, size_t size)
{
	*reader = (struct tw_slow_reader) {
		.fd = fd, .pages = pages, .size = size,
		.uffd = tw_open_userfaultfd(pages, size),
	};
	return reader->uffd >= 0 &&
	       !pthread_create(&reader->thread, NULL, tw_read_slowly, reader);
}

/*
 * Afterwards the reader waits for its memory, and has put back the tokens it had taken.
 */
#define TW_START_SLOW_READER(reader, fd, pages, size) do {		\
	if (!tw_start_slow_reader(reader, fd, pages, size))		\
		SKIP(return, "no userfaultfd for faults of the kernel"); \
	ASSERT_TRUE(tw_wait_for_fault((reader)->uffd));			\
} while (0)

#endif /* TW_FAULT_H */
