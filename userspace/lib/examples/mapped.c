// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A busy server: packets of its users come by the thousand, and each is a touch. A touch is a
 * store to memory, with the tick that was read once per turn of the loop, and makes no system
 * call.
 *
 *	cc mapped.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <timewheel.h>

#define USERS	1000
#define TIMEOUT	TW_MS(100)
/* The network sends packets so many times, every 10 ms; each second user sends one. */
#define ROUNDS	30

/* The number of a user is the cookie of the user's token: the token needs no id. */
static uint64_t handles[USERS];
static unsigned int offline[USERS];
static unsigned int online = USERS, touches, rounds;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct tw_wheel *open_wheel(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_NO_IDS | TIMEWHEEL_SETUP_TOUCH_WORDS,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 128,
		.tick = TW_MS(1),
		.max_tokens = USERS,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);

	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!wheel)
		fail("no wheel");
	return wheel;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		fail("epoll_ctl");
}

static int start_network(void)
{
	const struct itimerspec every = {
		.it_interval.tv_nsec = TW_MS(10),
		.it_value.tv_nsec = TW_MS(10),
	};
	int network = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (network < 0 || timerfd_settime(network, 0, &every, NULL) < 0)
		fail("timerfd");
	return network;
}

/* Takes the packets of every second user, who may be online or not. */
static void packets(int network, struct tw_words *words, uint32_t tick)
{
	uint64_t count;

	if (read(network, &count, sizeof(count)) < 0)
		fail("read");
	if (rounds++ >= ROUNDS)
		return;
	for (int user = 0; user < USERS; user += 2)
		tw_touch(words, handles[user], tick);
	touches += USERS / 2;
}

/* Takes expired tokens. The next epoll_wait(2) tells of tokens that @events had no room for. */
static void expired(struct tw_events *events, struct tw_wheel *wheel)
{
	ssize_t n = tw_events_read(events, wheel, 0);

	if (n < 0)
		fail("read");
	for (ssize_t i = 0; i < n; i++)
		offline[tw_events_at(events, i)->cookie]++;
	online -= n;
}

int main(void)
{
	struct tw_wheel *wheel = open_wheel();
	struct tw_words *words = tw_words_map(wheel);
	struct tw_events *events = tw_events_new(256);
	int epoll = epoll_create1(EPOLL_CLOEXEC), network = start_network();
	struct epoll_event event;
	struct timewheel_op op;

	if (!words || !events || epoll < 0)
		fail("no mapping");
	watch(epoll, tw_wheel_fd(wheel));
	watch(epoll, network);
	for (uint64_t user = 0; user < USERS; user++) {
		tw_op_register(&op, 0, TIMEOUT, user, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			fail("register");
		handles[user] = op.handle;
	}

	while (online) {
		if (epoll_wait(epoll, &event, 1, -1) < 0)
			fail("epoll_wait");
		if (event.data.fd == network)
			packets(network, words, tw_tick(words));
		else
			expired(events, wheel);
	}
	tw_events_free(events);
	tw_words_unmap(words);
	tw_wheel_close(wheel);
	for (int user = 0; user < USERS; user++)
		if (offline[user] != 1)
			return 1;
	printf("mapped: %u users went offline, once each, after %u touches\n",
	       USERS, touches);
	return 0;
}
