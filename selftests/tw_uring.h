/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for io_uring without its library: tests need only one request at a time.
 */
#ifndef TW_URING_H
#define TW_URING_H

#include <sys/mman.h>
#include <sys/syscall.h>

#include <linux/io_uring.h>

#include "tw_test.h"

struct tw_uring {
	struct io_uring_params params;
	struct io_uring_sqe *sqes;
	char *sq, *cq;
	int fd;
};

static inline void *tw_uring_map(const struct tw_uring *ring, __u64 offset)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		    offset);
}

/* Returns 0; or -1 and errno, also where there is no io_uring. */
static inline int tw_uring_open(struct tw_uring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(SYS_io_uring_setup, 8, &ring->params);
	if (ring->fd < 0)
		return -1;
	ring->sqes = tw_uring_map(ring, IORING_OFF_SQES);
	ring->sq = tw_uring_map(ring, IORING_OFF_SQ_RING);
	ring->cq = tw_uring_map(ring, IORING_OFF_CQ_RING);
	return ring->sqes != MAP_FAILED && ring->sq != MAP_FAILED &&
	       ring->cq != MAP_FAILED ? 0 : -1;
}

static inline void tw_uring_close(struct tw_uring *ring)
{
	close(ring->fd);
	munmap(ring->sqes, 4096);
	munmap(ring->sq, 4096);
	munmap(ring->cq, 4096);
}

static inline int tw_uring_submit(struct tw_uring *ring,
				  const struct io_uring_sqe *sqe)
{
	__u32 *tail = (void *)(ring->sq + ring->params.sq_off.tail);
	__u32 mask = ring->params.sq_entries - 1;
	__u32 *array = (void *)(ring->sq + ring->params.sq_off.array);

	ring->sqes[*tail & mask] = *sqe;
	array[*tail & mask] = *tail & mask;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0);
}

/* Returns @events as poll32_events has them: a big-endian kernel swaps their halves. */
static inline __u32 tw_uring_events(__u32 events)
{
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		return events << 16 | events >> 16;
	return events;
}

/* Polls @fd for POLLIN, once or, with IORING_POLL_ADD_MULTI, again and again. */
static inline int tw_uring_poll(struct tw_uring *ring, int fd, __u32 flags)
{
	const struct io_uring_sqe sqe = {
		.opcode = IORING_OP_POLL_ADD, .fd = fd, .len = flags,
		.poll32_events = tw_uring_events(POLLIN), .user_data = 7,
	};

	return tw_uring_submit(ring, &sqe);
}

/*
 * Takes the next completion, and waits for it if @wait. Returns false if there is none.
 */
static inline bool tw_uring_next(struct tw_uring *ring, bool wait,
				 struct io_uring_cqe *cqe)
{
	__u32 *head = (void *)(ring->cq + ring->params.cq_off.head);
	__u32 *tail = (void *)(ring->cq + ring->params.cq_off.tail);
	__u32 mask = ring->params.cq_entries - 1;
	struct io_uring_cqe *cqes;

	cqes = (void *)(ring->cq + ring->params.cq_off.cqes);
	/* The system call also runs work that the kernel has put off until then. */
	syscall(SYS_io_uring_enter, ring->fd, 0, wait, IORING_ENTER_GETEVENTS,
		NULL, 0);
	if (*head == __atomic_load_n(tail, __ATOMIC_ACQUIRE))
		return false;
	*cqe = cqes[*head & mask];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

#endif /* TW_URING_H */
