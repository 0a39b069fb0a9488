// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in a loop of poll(2).
 *
 *	cc poll.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <poll.h>

#include "users.h"

int main(void)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct users users;
	bool more = true;

	users_begin(&users);
	pollfd.fd = tw_wheel_fd(users.wheel);
	while (more) {
		if (poll(&pollfd, 1, -1) < 0)
			users_fail("poll");
		if (pollfd.revents & (POLLERR | POLLHUP))
			users_fail("destroyed");
		more = users_readable(&users);
	}
	return users_end(&users, "poll");
}
