// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A wheel in a loop of libevent.
 *
 *	cc libevent.c $(pkg-config --cflags --libs libtimewheel libevent_core)
 */
#include <event2/event.h>

#include "users.h"

struct context {
	struct users	users;
	struct event	*event;
};

static void readable(evutil_socket_t fd, short what, void *arg)
{
	struct context *context = arg;

	(void)fd;
	(void)what;
	if (!users_readable(&context->users))
		event_del(context->event);
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct context context;

	users_begin(&context.users);
	context.event = event_new(base, tw_wheel_fd(context.users.wheel),
				  EV_READ | EV_PERSIST, readable, &context);
	if (!context.event || event_add(context.event, NULL))
		users_fail("event");
	/* The loop ends when there is no event left to wait for. */
	event_base_dispatch(base);
	event_free(context.event);
	event_base_free(base);
	return users_end(&context.users, "libevent");
}
