// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in a loop of libuv.
 *
 *	cc libuv.c $(pkg-config --cflags --libs libtimewheel libuv)
 */
#include <uv.h>

#include "users.h"

static void readable(uv_poll_t *poll, int status, int events)
{
	(void)events;
	if (status < 0)
		users_fail(uv_strerror(status));
	if (!users_readable(poll->data))
		uv_poll_stop(poll);
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();
	struct users users;
	uv_poll_t poll;

	users_begin(&users);
	poll.data = &users;
	/* libuv makes the fd non-blocking, which the library does not mind. */
	if (uv_poll_init(loop, &poll, tw_wheel_fd(users.wheel)) ||
	    uv_poll_start(&poll, UV_READABLE, readable))
		users_fail("uv_poll");
	uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&poll, NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	uv_loop_close(loop);
	return users_end(&users, "libuv");
}
