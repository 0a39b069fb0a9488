// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in io_uring(7), by a poll that is armed once and tells again and again.
 *
 *	cc io_uring.c $(pkg-config --cflags --libs libtimewheel liburing)
 */
#include <liburing.h>
#include <poll.h>
#include <string.h>

#include "users.h"

static void arm(struct io_uring *ring, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_poll_multishot(sqe, fd, POLLIN);
	if (io_uring_submit(ring) != 1)
		users_fail("submit");
}

int main(void)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	struct users users;
	bool more = true;
	int err;

	users_begin(&users);
	err = io_uring_queue_init(8, &ring, 0);
	if (err) {
		fprintf(stderr, "io_uring: %s\n", strerror(-err));
		return 1;
	}
	arm(&ring, tw_wheel_fd(users.wheel));
	while (more) {
		bool armed;

		if (io_uring_wait_cqe(&ring, &cqe))
			users_fail("wait");
		if (cqe->res < 0 || cqe->res & (POLLERR | POLLHUP))
			users_fail("poll");
		armed = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(&ring, cqe);
		/*
		 * The poll is armed again before the read: events that come in between are then
		 * told.
		 */
		if (!armed)
			arm(&ring, tw_wheel_fd(users.wheel));
		more = users_readable(&users);
	}
	io_uring_queue_exit(&ring);
	return users_end(&users, "io_uring");
}
