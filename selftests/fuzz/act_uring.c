// SPDX-License-Identifier: GPL-2.0-only
/*
 * Acts: io_uring, by its bare system calls. An io_uring is a file like others. It
 * lives on after the close of the file, if its memory stays mapped.
 */
#include "act.h"

/* At most so many buffers are registered. */
#define ACT_BUFFERS	2

__thread int act_outcome;

static char *act_uring_map(int fd, size_t size, __u64 at)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_POPULATE, fd, at);
}

/* Maps an io_uring, and lets its requests be sent in their order. */
static void act_uring_begin(struct act_uring *uring, int fd)
{
	const struct io_uring_params *params = &uring->params;
	size_t sq = params->sq_off.array + params->sq_entries * sizeof(__u32);
	size_t cq = params->cq_off.cqes +
		    params->cq_entries * sizeof(struct io_uring_cqe);
	char *rings;

	uring->size = sq > cq ? sq : cq;
	uring->sqes_size = params->sq_entries * sizeof(struct io_uring_sqe);
	rings = act_uring_map(fd, uring->size, IORING_OFF_SQ_RING);
	uring->sqes = act_uring_map(fd, uring->sqes_size, IORING_OFF_SQES);
	if (rings == MAP_FAILED || uring->sqes == MAP_FAILED)
		return;
	for (__u32 i = 0; i < params->sq_entries; i++)
		((__u32 *)(rings + params->sq_off.array))[i] = i;
	uring->rings = rings;
}

long act_uring(const __u64 *v)
{
	struct act_uring uring = {
		.params = {
			.flags = v[2], .cq_entries = v[3], .sq_thread_idle = 1,
		},
	};
	int fd = syscall(SYS_io_uring_setup, (unsigned int)v[1], &uring.params);

	if (fd < 0)
		return -1;
	act_uring_end(v[0]);
	act_keep_file(v[0], fd, NULL);
	act_uring_begin(&uring, fd);
	*act_at_uring(v[0]) = uring;
	return 0;
}

/* The following functions register files, buffers and others. */

static long act_register(__u64 ring, unsigned int what, const void *arg,
			 unsigned int n)
{
	return syscall(SYS_io_uring_register, act_fd(ring), what, arg, n);
}

/* Registers all files, at their indices in the table, or one file or none at place @v[2]. */
long act_uring_files(const __u64 *v)
{
	int fds[ACT_FILES];
	struct io_uring_files_update update = {
		.offset = v[2], .fds = (uintptr_t)fds,
	};

	switch (v[1] % 4) {
	case 0:
		/* An io_uring cannot be registered. */
		for (int i = 0; i < ACT_FILES; i++)
			fds[i] = act_at_uring(i)->rings ? -1 : act_fd(i);
		return act_register(v[0], IORING_REGISTER_FILES, fds, ACT_FILES);
	case 1:
		fds[0] = act_fd(v[3]);
		break;
	case 2:
		fds[0] = -1;
		break;
	default:
		return act_register(v[0], IORING_UNREGISTER_FILES, NULL, 0);
	}
	return act_register(v[0], IORING_REGISTER_FILES_UPDATE, &update, 1);
}

/* @v[4], @v[5], @v[6]: a part of a mapping. */
long act_uring_buffers(const __u64 *v)
{
	struct act_map part = act_part(v + 4);
	const struct iovec array = { ACT_MEMORY + ACT_ARRAY, ACT_ARRAY };
	const struct iovec mapped = { part.at, part.size };
	const struct iovec any = { act_where(v[2], v[3], ACT_OTHER), v[3] };
	struct iovec iov[ACT_BUFFERS] = { array, mapped };
	unsigned int n = ACT_BUFFERS;

	switch (v[1] % 5) {
	case 0:
		n = 1;
		break;
	case 1:
		break;
	case 2:
		iov[1] = any;
		break;
	case 3:
		iov[0] = mapped;
		iov[1] = any;
		break;
	default:
		return act_register(v[0], IORING_UNREGISTER_BUFFERS, NULL, 0);
	}
	return act_register(v[0], IORING_REGISTER_BUFFERS, iov, n);
}

long act_uring_register(const __u64 *v)
{
	struct io_uring_sync_cancel_reg cancel = {
		.addr = v[3], .fd = act_fd(v[2]), .flags = v[4],
		.timeout.tv_nsec = v[5] % 8 * 1000000,
	};
	unsigned int workers[] = { 1, 1 };
	int fd = act_fd(v[2]);

	switch (v[1] % 4) {
	case 0:
		return act_register(v[0], IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	case 1:
		return act_register(v[0], IORING_REGISTER_SYNC_CANCEL, &cancel,
				    1);
	case 2:
		return act_register(v[0], IORING_REGISTER_IOWQ_MAX_WORKERS,
				    workers, 2);
	default:
		return act_register(v[0], IORING_REGISTER_EVENTFD, &fd, 1);
	}
}

/* The following functions send requests. */

/* Sends all waiting requests, and waits for completions for some ms. */
static long act_enter(__u64 ring, __u32 flags, __u32 completions, __u64 ms)
{
	const struct __kernel_timespec ts = { .tv_nsec = ms % 8 * 1000000 };
	const struct io_uring_getevents_arg arg = { .ts = (uintptr_t)&ts };

	return syscall(SYS_io_uring_enter, act_fd(ring), ~0U, completions,
		       flags | IORING_ENTER_SQ_WAKEUP | IORING_ENTER_EXT_ARG,
		       &arg, sizeof(arg));
}

/*
 * Takes all completions. The result of the last one is the call's outcome, if the
 * request was for a wheel.
 */
static long act_take(__u64 ring)
{
	const struct act_uring *uring = act_at_uring(ring);
	const struct io_uring_params *params = &uring->params;
	const struct io_uring_cqe *cqes;
	struct io_uring_cqe last;
	__u32 head, tail;

	if (!uring->rings ||
	    !act_copy(&head, uring->rings + params->cq_off.head, sizeof(head)) ||
	    !act_copy(&tail, uring->rings + params->cq_off.tail, sizeof(tail)) ||
	    head == tail)
		return -1;
	cqes = (const void *)(uring->rings + params->cq_off.cqes);
	act_copy(&last, &cqes[(tail - 1) & (params->cq_entries - 1)],
		 sizeof(last));
	act_copy(uring->rings + params->cq_off.head, &tail, sizeof(tail));
	if (act_at_file(uring->of)->setup.tick)
		act_outcome = last.res > 0 ? 2 : last.res ? : 1;
	return last.res;
}

static void act_queue(__u64 ring, const struct io_uring_sqe *sqe)
{
	struct act_uring *uring = act_at_uring(ring);
	const struct io_uring_params *params = &uring->params;
	size_t at = uring->tail & (params->sq_entries - 1);

	if (!uring->rings)
		return;
	act_copy(uring->sqes + at * sizeof(*sqe), sqe, sizeof(*sqe));
	uring->tail++;
	act_copy(uring->rings + params->sq_off.tail, &uring->tail,
		 sizeof(uring->tail));
}

/*
 * Sends a request, or lets it wait for the next one. @v: ring, file or index of a
 * registered file, flags, a number for cancellation, whether the request waits, ms of
 * its time limit if not 0, ...
 */
static long act_request(const __u64 *v, struct io_uring_sqe sqe)
{
	static __thread struct __kernel_timespec limit;

	sqe.fd = v[2] & IOSQE_FIXED_FILE ? (__s32)v[1] : act_fd(v[1]);
	sqe.flags = v[2] | (v[5] ? IOSQE_IO_LINK : 0);
	sqe.user_data = v[3];
	act_at_uring(v[0])->of = v[1];
	act_queue(v[0], &sqe);
	if (v[5]) {
		limit.tv_nsec = v[5] % 16 * 1000000;
		sqe = (struct io_uring_sqe){
			.opcode = IORING_OP_LINK_TIMEOUT, .len = 1,
			.addr = (uintptr_t)&limit, .user_data = v[3] + 1,
		};
		act_queue(v[0], &sqe);
	}
	if (v[4] & 1)
		return 0;
	act_enter(v[0], 0, 0, 0);
	return act_take(v[0]);
}

long act_uring_read(const __u64 *v)
{
	static const __u8 op[] = {
		IORING_OP_READ, IORING_OP_READV, IORING_OP_READ_FIXED,
	};
	const struct iovec iov[] = {
		{ act_where(v[7], v[8], ACT_ARRAY), v[8] },
		{ act_where(v[9], v[8], ACT_OTHER), v[8] },
	};
	struct io_uring_sqe sqe = {
		.opcode = op[v[6] % 3], .len = v[8], .rw_flags = v[10],
		.addr = act_address(v[7], v[8], ACT_ARRAY), .off = v[11] - 1,
		.buf_index = v[12],
	};

	if (sqe.opcode == IORING_OP_READV) {
		sqe.addr = act_put(v[12], iov, sizeof(iov), ACT_VECTOR);
		sqe.len = 1 + v[9] % 3;
	}
	return act_request(v, sqe);
}

long act_uring_poll(const __u64 *v)
{
	return act_request(v, (struct io_uring_sqe){
		.opcode = IORING_OP_POLL_ADD, .poll32_events = v[6],
		.len = v[7],
	});
}

/* Cancels requests by number, file or kind, or changes a poll. */
long act_uring_cancel(const __u64 *v)
{
	static const __u8 op[] = {
		IORING_OP_ASYNC_CANCEL, IORING_OP_POLL_REMOVE,
		IORING_OP_TIMEOUT_REMOVE,
	};
	struct io_uring_sqe sqe = { .opcode = op[v[6] % 3], .addr = v[7] };

	if (sqe.opcode == IORING_OP_ASYNC_CANCEL) {
		sqe.cancel_flags = v[8];
	} else {
		sqe.len = v[8];
		sqe.off = v[9];
		sqe.poll32_events = v[10];
	}
	return act_request(v, sqe);
}

/* Sends a request of another kind, about a file or about something else. */
long act_uring_do(const __u64 *v)
{
	static __thread struct __kernel_timespec ts;
	static __thread struct epoll_event event = { .events = EPOLLIN };
	struct act_map part = act_map[v[8] % ACT_MAPS];
	struct io_uring_sqe sqe = {
		.opcode = v[6], .file_index = v[7],
		.addr = (uintptr_t)ACT_MEMORY + ACT_OTHER, .len = 64,
	};

	switch (v[6]) {
	case IORING_OP_CLOSE:
		sqe.addr = 0;
		sqe.len = 0;
		break;
	case IORING_OP_OPENAT:
		sqe.addr = (uintptr_t)act_path(v[8]);
		sqe.open_flags = O_RDWR | O_NONBLOCK;
		sqe.len = 0;
		break;
	case IORING_OP_EPOLL_CTL:
		sqe.addr = (uintptr_t)&event;
		sqe.len = EPOLL_CTL_ADD + v[9] % 3;
		sqe.off = act_fd(v[8]);
		break;
	case IORING_OP_MADVISE:
		sqe.addr = (uintptr_t)part.at;
		sqe.len = part.size;
		sqe.fadvise_advice = v[9];
		break;
	case IORING_OP_PROVIDE_BUFFERS:
		/* The buffers have 64 bytes, and v[9] is their number. */
		sqe.flags = v[2];
		sqe.user_data = v[3];
		sqe.fd = v[9];
		act_queue(v[0], &sqe);
		return act_enter(v[0], 0, 0, 0);
	case IORING_OP_TIMEOUT:
		ts.tv_nsec = v[9] % 16 * 1000000;
		sqe.addr = (uintptr_t)&ts;
		sqe.len = 1;
		break;
	}
	return act_request(v, sqe);
}

long act_uring_enter(const __u64 *v)
{
	act_enter(v[0], v[3] | IORING_ENTER_GETEVENTS, v[1], v[2]);
	return act_take(v[0]);
}
