// SPDX-License-Identifier: GPL-2.0-only
/*
 * The older ways of Linux to keep timeouts, one object for each timeout: timerfd with
 * epoll, io_uring timeouts.
 */
#include <errno.h>
#include <liburing.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "bench.h"

#define AT_ONCE	512

static unsigned int opened;

/* timerfd: a timerfd is created and watched when armed, and closed when cancelled */

static int *fds, epoll;

static void fd_open(const struct kind *kind, unsigned int n, u64 tick)
{
	(void)kind;
	(void)tick;
	fds = grab(n * sizeof(*fds));
	memset(fds, -1, n * sizeof(*fds));
	opened = n;
	epoll = epoll_create1(EPOLL_CLOEXEC);
	NEED(epoll >= 0);
}

static void fd_close(void)
{
	for (unsigned int i = 0; i < opened; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(epoll);
	free(fds);
}

static void fd_settime(unsigned int i, u64 time, bool absolute)
{
	const struct itimerspec spec = { .it_value = to_timespec(time) };

	NEED(!timerfd_settime(fds[i], absolute ? TFD_TIMER_ABSTIME : 0, &spec,
			      NULL));
}

static void fd_arm(unsigned int i, u64 time, bool absolute)
{
	struct epoll_event in = { .events = EPOLLIN, .data.u32 = i };

	if (fds[i] < 0) {
		fds[i] = timerfd_create(CLOCK_MONOTONIC,
					TFD_CLOEXEC | TFD_NONBLOCK);
		NEED(fds[i] >= 0);
		NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &in));
	}
	fd_settime(i, time, absolute);
}

static void fd_rearm(unsigned int i)
{
	fd_settime(i, FAR, false);
}

static void fd_cancel(unsigned int i)
{
	NEED(!close(fds[i]));
	fds[i] = -1;
}

static unsigned int fd_drain(bool wait)
{
	static struct epoll_event got[AT_ONCE];
	int n = epoll_wait(epoll, got, AT_ONCE, wait ? -1 : 0);
	u64 expirations;

	for (int i = 0; i < n; i++)
		NEED(read(fds[got[i].data.u32], &expirations, 8) == 8);
	return n < 0 ? 0 : n;
}

const struct kind timerfd = {
	.name = "timerfd", .open = fd_open, .close = fd_close, .arm = fd_arm,
	.rearm = fd_rearm, .cancel = fd_cancel, .drain = fd_drain,
	.most = 1048000,	/* fs.nr_open */
};

/* io_uring timeouts, in batches: one submission has up to BATCH of them */

static struct io_uring ring;
static struct __kernel_timespec times[BATCH];
static unsigned int queued, answers;

#define ANSWER	(1ULL << 32)	/* the answer to an update or a removal */
#define ENTRIES	32768

static void uring_open(const struct kind *kind, unsigned int n, u64 tick)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE, .cq_entries = 2 * ENTRIES,
	};

	(void)kind;
	(void)tick;
	(void)n;
	NEED(!io_uring_queue_init_params(BATCH, &ring, &params));
}

static void uring_close(void)
{
	io_uring_queue_exit(&ring);
}

static struct io_uring_sqe *next_sqe(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	NEED(sqe);
	return sqe;
}

static struct __kernel_timespec *next_time(u64 ns)
{
	struct __kernel_timespec *ts = &times[queued++ % BATCH];

	ts->tv_sec = ns / SEC;
	ts->tv_nsec = ns % SEC;
	return ts;
}

static void uring_arm(unsigned int i, u64 time, bool absolute)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_timeout(sqe, next_time(time), 0,
			      absolute ? IORING_TIMEOUT_ABS : 0);
	sqe->user_data = i;
}

static void uring_rearm(unsigned int i)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_timeout_update(sqe, next_time(FAR), i, 0);
	sqe->user_data = ANSWER;
	answers++;
}

/* The timeout itself answers, too, with -ECANCELED. */
static void uring_cancel(unsigned int i)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_timeout_remove(sqe, i, 0);
	sqe->user_data = ANSWER;
	answers += 2;
}

static unsigned int uring_reap(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0, expired = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		n++;
		if (cqe->user_data & ANSWER || cqe->res == -ECANCELED) {
			NEED(cqe->res == 0 || cqe->res == -ECANCELED);
			answers--;
			continue;
		}
		NEED(cqe->res == -ETIME);
		expired++;
	}
	io_uring_cq_advance(&ring, n);
	return expired;
}

static void uring_flush(void)
{
	NEED(io_uring_submit(&ring) >= 0);
	while (answers) {
		if (!io_uring_cq_ready(&ring))
			NEED(io_uring_get_events(&ring) >= 0);
		NEED(!uring_reap());
	}
}

static unsigned int uring_drain(bool wait)
{
	struct io_uring_cqe *cqe;

	if (wait)
		NEED(!io_uring_wait_cqe(&ring, &cqe));
	else if (!io_uring_cq_ready(&ring))
		NEED(io_uring_get_events(&ring) >= 0);
	return uring_reap();
}

const struct kind uring = {
	.name = "io_uring", .open = uring_open, .close = uring_close,
	.arm = uring_arm, .rearm = uring_rearm, .cancel = uring_cancel,
	.flush = uring_flush, .drain = uring_drain, .most = 1000000,
};
