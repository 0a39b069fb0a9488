/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All examples of event loops do this: three users are online and go offline when they have
 * sent nothing for 100 ms. The second user sends something once more, just before the first
 * one goes offline, and so stays online longest. Each example is a loop of its own kind around
 * this code.
 */
#ifndef USERS_H
#define USERS_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <timewheel.h>

#define USERS	3
#define TIMEOUT	TW_MS(100)

/**
 * struct users - the users
 * @wheel: has a token for each user that is online
 * @events: tells of users that went offline
 * @heard: the second user has sent something once more
 * @online: how many users are online
 * @gone: bit n is set when user n has gone offline
 */
struct users {
	struct tw_wheel		*wheel;
	struct tw_events	*events;
	bool			heard;
	unsigned int		online;
	unsigned int		gone;
};

static inline void users_fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Makes the wheel, and a token for each user. Ends the program without a device. */
static inline void users_begin(struct users *users)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 64,
		.tick = TW_MS(1),
		.max_tokens = USERS,
	};
	struct timewheel_op op;

	*users = (struct users) {
		.wheel = tw_wheel_open(&setup),
		.events = tw_events_new(USERS),
	};
	if (!users->wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!users->wheel || !users->events)
		users_fail("no wheel");
	for (uint64_t user = 1; user <= USERS; user++) {
		tw_op_register(&op, user, TIMEOUT, 0, 0);
		if (tw_wheel_run(users->wheel, &op) < 0)
			users_fail("register");
	}
	users->online = USERS;
}

/*
 * Called when the wheel is readable. Reads until nothing more is due, because some loops tell
 * only of a change. Returns whether anybody is still online.
 */
static inline bool users_readable(struct users *users)
{
	ssize_t n;

	if (!users->heard && tw_wheel_touch(users->wheel, 2, 0) < 0)
		users_fail("touch");
	users->heard = true;
	while ((n = tw_events_read(users->events, users->wheel, 0)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			uint64_t user = tw_events_at(users->events, i)->id;

			users->online--;
			users->gone |= 1U << user;
			printf("user %" PRIu64 " is offline\n", user);
		}
	}
	if (n < 0)
		users_fail("read");
	return users->online;
}

/* Returns the program's exit status. */
static inline int users_end(struct users *users, const char *loop)
{
	tw_wheel_close(users->wheel);
	tw_events_free(users->events);
	printf("%s: %u users went offline\n", loop, USERS - users->online);
	return users->gone != (1U << 1 | 1U << 2 | 1U << 3);
}

#endif /* USERS_H */
