// SPDX-License-Identifier: GPL-2.0-only
/*
 * Job one: a TCP server that notices which of its users fell silent. Each turn
 * of its loop is one epoll_wait() and, for all users who sent packets, one batch
 * for the wheel. The wheel is one more file in the loop: it is readable when a
 * user has not been heard of for the whole timeout.
 *
 * A second wheel does the same job beside it in the other way: nobody tells it of
 * packets. When a token of it is due, the connection is asked when data last came in.
 * The server hangs up on a user when both have found the user silent.
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "demo.h"

#define TURN	512		/* files that one turn looks after */
#define MAX_FD	(USERS + 64)
#define RECENT	8

struct user {
	int connection;		/* -1: none */
	/* The last touch of the token happened between these two moments. */
	__u64 before, after;
	/* Times that the wheel, and its connection that was asked, said so. */
	unsigned int offline, idle;
};

static struct server {
	int wheel, asking, epoll, listener, seconds, farewell_pipe;
	__u64 start_hand;
	bool over;		/* the farewell has come */
	struct farewell farewell;
	unsigned int online, offline, logouts;
	unsigned int early, wrong_tick, wrong_cookie, wrong_idle;
	__u64 packets, packets_drawn, touches, calls, asked, late, late_sum;
	__u64 recent[RECENT];
} server;

static struct user users[USERS];
static struct user *user_of[MAX_FD];	/* the user of each connection */

static void wait_for(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || fd >= MAX_FD)
		errx(1, "file %d is out of range", fd);
	if (epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		err(1, "epoll");
}

/* Returns the port, in network order. */
static in_port_t listen_to_users(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 ||
	    listen(fd, USERS) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err(1, "listening");
	server.listener = fd;
	return address.sin_port;
}

/* Ticks when a second of the clock is over and its events have been read. */
static int second_timer(void)
{
	__u64 first = clock_ns(CLOCK_MONOTONIC) / SEC + 1;
	struct itimerspec each = {
		.it_interval.tv_sec = 1,
		.it_value = { .tv_sec = first, .tv_nsec = 100 * MS },
	};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &each, NULL) < 0)
		err(1, "timerfd");
	return fd;
}

static void accept_users(void)
{
	struct timewheel_op op;
	int fd;

	while ((fd = accept4(server.listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		wait_for(fd);
		/* A connection that had this number may have left a token. */
		op = op_touch_or_register(fd, TIMEOUT, NULL);
		wheel_batch(server.asking, &op, 1);
	}
	if (errno != EAGAIN)
		err(1, "accept");
}

static struct user *log_in(int fd, __u64 uid)
{
	struct user *user;

	if (uid < FIRST_UID || uid >= FIRST_UID + USERS)
		errx(1, "a stranger: %llu", uid);
	user = &users[uid - FIRST_UID];
	user->connection = fd;
	user_of[fd] = user;
	server.online++;
	return user;
}

static __u64 uid_of(const struct user *user)
{
	return FIRST_UID + (user - users);
}

static void hang_up(struct user *user)
{
	user_of[user->connection] = NULL;
	close(user->connection);
	user->connection = -1;
	server.online--;
}

/* Reads a user's packets and returns what the wheel has to do. */
static struct timewheel_op take_packets(int fd)
{
	struct user *user = user_of[fd];
	char lines[256];
	ssize_t i, bytes = read(fd, lines, sizeof(lines) - 1);
	__u64 uid;

	if (bytes < 0)
		err(1, "reading from a user");
	if (!user && !bytes)
		errx(1, "a connection ended before its login");
	if (!bytes) {
		hang_up(user);
		server.logouts++;
		return op_cancel(uid_of(user));
	}
	lines[bytes] = '\0';
	if (!user && sscanf(lines, "user %llu", &uid) != 1)
		errx(1, "a connection did not begin with its login");
	if (!user)
		user = log_in(fd, uid);
	/* A packet is a line. */
	for (i = 0; i < bytes; i++)
		server.packets += lines[i] == '\n';
	server.touches++;
	return op_touch_or_register(uid_of(user), TIMEOUT, user);
}

/*
 * One call touches all users who sent packets in this turn. The wheel reads its
 * clock between before and after: this server notes both as the time of each user's
 * last packet.
 */
static void tell_wheel(struct timewheel_op *ops, unsigned int count)
{
	__u64 before, after;
	unsigned int i;

	if (!count)
		return;
	before = clock_ns(CLOCK_MONOTONIC);
	wheel_batch(server.wheel, ops, count);
	after = clock_ns(CLOCK_MONOTONIC);
	server.calls++;
	for (i = 0; i < count; i++) {
		users[ops[i].id - FIRST_UID].before = before;
		users[ops[i].id - FIRST_UID].after = after;
	}
}

static __u64 round_up_to_tick(__u64 time)
{
	return (time + SEC - 1) / SEC * SEC;
}

/* The wheel says that a user fell silent. Is that so, by the server's notes? */
static void user_silent(const struct timewheel_event *event)
{
	struct user *user = (struct user *)(uintptr_t)event->cookie;
	__u64 now = clock_ns(CLOCK_MONOTONIC);

	if (user < users || user >= users + USERS || uid_of(user) != event->id) {
		server.wrong_cookie++;
		return;
	}
	if (event->deadline < user->before + TIMEOUT ||
	    event->taken < event->deadline || now < event->taken)
		server.early++;
	if (event->deadline < round_up_to_tick(user->before + TIMEOUT) ||
	    event->deadline > round_up_to_tick(user->after + TIMEOUT))
		server.wrong_tick++;
	if (now - event->deadline > server.late)
		server.late = now - event->deadline;
	server.late_sum += now - event->deadline;

	memmove(server.recent + 1, server.recent,
		sizeof(server.recent) - sizeof(server.recent[0]));
	server.recent[0] = event->id;
	server.offline++;
	user->offline++;
	if (user->connection >= 0 && user->idle)
		hang_up(user);
}

/* For how long no data has come in, in ns. */
static __u64 tcp_idle(int connection)
{
	struct tcp_info info;
	socklen_t length = sizeof(info);

	if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &length) < 0)
		err(1, "a connection is asked");
	return info.tcpi_last_data_recv * MS;
}

/*
 * The connection is asked when data last came in. The event's id is its number, and it may
 * have left.
 */
static void user_idle(const struct timewheel_event *event)
{
	struct user *user = event->id < MAX_FD ? user_of[event->id] : NULL;
	struct timewheel_op op;
	__u64 idle;

	server.wrong_idle += event->taken < event->deadline;
	if (!user)
		return;
	server.asked++;
	idle = tcp_idle(event->id);
	if (idle < TIMEOUT) {
		op = op_register(event->id, TIMEOUT - idle);
		wheel_batch(server.asking, &op, 1);
		return;
	}
	user->idle++;
	if (user->offline)
		hang_up(user);
}

static void read_wheel(int wheel, void (*tell)(const struct timewheel_event *event))
{
	struct timewheel_event events[64];
	size_t i, n = wheel_read(wheel, events, 64);

	for (i = 0; i < n; i++)
		tell(&events[i]);
}

/* Asks the wheel for the slot of every user who is online. */
static void count_slots(unsigned int *slots)
{
	static struct timewheel_token tokens[USERS];
	static __u64 ids[USERS];
	unsigned int i, n = 0;

	memset(slots, 0, SLOTS * sizeof(*slots));
	for (i = 0; i < USERS; i++)
		if (users[i].connection >= 0 && !users[i].offline)
			ids[n++] = FIRST_UID + i;
	wheel_get(server.wheel, ids, tokens, n);
	for (i = 0; i < n; i++)
		slots[tokens[i].slot]++;
}

static void draw_second(void)
{
	struct timewheel_info info = wheel_info(server.wheel);
	unsigned int slots[SLOTS];
	struct picture picture = {
		.second = info.hand - server.start_hand,
		.hand = info.hand,
		.lap = info.hand / SLOTS - server.start_hand / SLOTS,
		.slots = slots,
		.online = server.online,
		.offline = server.offline,
		.rate = server.packets - server.packets_drawn,
		.packets = server.packets,
		.touches = server.touches,
		.calls = server.calls,
		.asked = server.asked,
		.callbacks = info.callbacks,
		.recent = server.recent,
		.nr_recent = server.offline < RECENT ? server.offline : RECENT,
	};
	__u64 expirations;

	if (read(server.seconds, &expirations, sizeof(expirations)) < 0)
		return;
	server.packets_drawn = server.packets;
	count_slots(slots);
	draw(&picture);
}

static void read_farewell(void)
{
	if (!clients_farewell(server.farewell_pipe, &server.farewell))
		return;
	server.over = true;
	epoll_ctl(server.epoll, EPOLL_CTL_DEL, server.farewell_pipe, NULL);
}

static void turn(void)
{
	struct epoll_event events[TURN];
	struct timewheel_op ops[TURN];
	bool silence = false, idle = false, second = false;
	int i, n = epoll_wait(server.epoll, events, TURN, -1);
	unsigned int count = 0;

	for (i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == server.wheel)
			silence = true;
		else if (fd == server.asking)
			idle = true;
		else if (fd == server.seconds)
			second = true;
		else if (fd == server.listener)
			accept_users();
		else if (fd == server.farewell_pipe)
			read_farewell();
		else
			ops[count++] = take_packets(fd);
	}
	/* First the users who sent packets: a user who was in time is not silent. */
	tell_wheel(ops, count);
	if (silence)
		read_wheel(server.wheel, user_silent);
	if (idle)
		read_wheel(server.asking, user_idle);
	if (second && !server.over)
		draw_second();
}

/* @same, @idle: how many silent users each wheel has reported once. */
static void check_asking(unsigned int same, unsigned int idle)
{
	struct timewheel_info info = wheel_info(server.asking);

	figure("asked instead: registrations", "%llu", info.registered);
	figure("times that a connection was asked", "%llu", server.asked);
	claim(idle == same && !server.wrong_idle,
	      "the connections that were asked are the same %u", idle);
}

/* Compares the clients' list of silent users with the wheel's. */
static void compare_lists(void)
{
	const struct farewell *farewell = &server.farewell;
	__u64 shortest = ~0ULL, longest = 0;
	unsigned int i, same = 0, idle = 0;

	for (i = 0; i < farewell->silent && i < SILENT; i++) {
		const struct silent_user *silent = &farewell->user[i];
		__u64 silence = silent->closed - silent->last;

		if (!silent->closed)
			continue;
		same += users[silent->uid - FIRST_UID].offline == 1;
		idle += users[silent->uid - FIRST_UID].idle == 1;
		if (silence < shortest)
			shortest = silence;
		if (silence > longest)
			longest = silence;
	}
	claim(same == SILENT && farewell->silent == SILENT,
	      "the %u users who fell silent were reported, each once", same);
	claim(server.offline == same,
	      "nobody else was reported or cut off");
	check_asking(same, idle);
	if (same)
		figure("silence until the user was cut off", "%.3f to %.3f s",
		       (double)shortest / SEC, (double)longest / SEC);
}

static void check(void)
{
	struct timewheel_info info = wheel_info(server.wheel);
	__u64 ticks = info.hand - server.start_hand;
	unsigned int i, n = 0;

	printf("\nFell silent, by the clients' ledger:\n\n");
	for (i = 0; i < server.farewell.silent && i < SILENT; i++)
		list_uid(i, server.farewell.user[i].uid);
	printf("\n\nReported offline:\n\n");
	for (i = 0; i < USERS; i++)
		if (users[i].offline)
			list_uid(n++, FIRST_UID + i);
	puts("");

	figure("packets of users", "%llu", server.packets);
	figure("touches", "%llu", server.touches);
	figure("system calls used for touches", "%llu (%.1f touches in each)",
	       server.calls, (double)server.touches / server.calls);
	figure("callbacks of the wheel's timer", "%llu in %llu s",
	       info.callbacks, ticks);
	figure("tokens filed again", "%llu", info.refiled);
	figure("users reported offline (events)", "%llu", info.delivered);
	figure("latest, after the deadline", "%.3f ms", (double)server.late / MS);
	if (server.offline)
		figure("on average", "%.3f ms",
		       (double)server.late_sum / server.offline / MS);

	claim(server.packets == server.farewell.packets,
	      "%llu packets sent, all of them received", server.packets);
	compare_lists();
	claim(!server.early, "nobody was reported before the timeout was over");
	claim(!server.wrong_tick && !server.wrong_cookie,
	      "each in the tick of its last packet and 10 s");
	claim(info.registered == USERS && info.delivered == SILENT &&
	      info.cancelled == USERS - SILENT &&
	      info.cancelled == server.logouts && !info.pending,
	      "%u registered = %llu reported + %llu logged out, none is left",
	      USERS, info.delivered, info.cancelled);
	claim(info.callbacks <= ticks + 1,
	      "at most one callback per tick, for all users together");
}

/* The clients are forked first, because only the server has the wheel. */
void idle_users(void)
{
	unsigned int i;

	for (i = 0; i < USERS; i++)
		users[i].connection = -1;
	printf("%u users talk to a TCP server here. Ten seconds without a packet\n"
	       "mean offline. The wheel has %u slots of one second. %u of them will\n"
	       "fall silent. A second wheel, by which the connections are asked, is told of\n"
	       "no packet and has to find the same.\n\n", USERS, SLOTS, SILENT);
	draw_start();
	server.farewell_pipe = clients_start(listen_to_users());

	server.wheel = wheel_open(TIMEWHEEL_CLOCK_MONOTONIC, SLOTS, USERS);
	server.asking = wheel_open(TIMEWHEEL_CLOCK_MONOTONIC, SLOTS, USERS);
	server.start_hand = wheel_info(server.wheel).hand;
	server.seconds = second_timer();
	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	wait_for(server.wheel);
	wait_for(server.asking);
	wait_for(server.listener);
	wait_for(server.seconds);
	wait_for(server.farewell_pipe);
	while (!server.over || server.online)
		turn();
	check();
	close(server.asking);
	close(server.wheel);
}
