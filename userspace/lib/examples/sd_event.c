// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in a loop of sd-event.
 *
 *	cc sd_event.c $(pkg-config --cflags --libs libtimewheel libsystemd)
 */
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "users.h"

static int readable(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	(void)fd;
	if (revents & (EPOLLERR | EPOLLHUP))
		users_fail("destroyed");
	if (!users_readable(arg))
		return sd_event_exit(sd_event_source_get_event(source), 0);
	return 0;
}

int main(void)
{
	sd_event *event = NULL;
	struct users users;

	users_begin(&users);
	if (sd_event_new(&event) < 0 ||
	    sd_event_add_io(event, NULL, tw_wheel_fd(users.wheel), EPOLLIN,
			    readable, &users) < 0 ||
	    sd_event_loop(event) < 0)
		users_fail("sd-event");
	sd_event_unref(event);
	return users_end(&users, "sd-event");
}
