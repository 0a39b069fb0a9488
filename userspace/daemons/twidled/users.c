// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections of users. The first line of a connection names its user. This line,
 * and all that comes after it, are packets: the user lives.
 *
 * The connections have an epoll of their own inside the service's loop: a turn
 * takes up to TURN connections that have packets, and tells the wheel by one batch.
 * The loop itself would come back once for each connection.
 *
 * A connection is not a user. When a connection ends, its user has the rest of the
 * timeout to come back. Only a user's newest connection counts.
 *
 * A token keeps the timeout it was registered with. After the configured timeout
 * changes, the next packet of each connection moves its user's token to the new
 * one; service.timeouts tells which connections have done so. Tokens from an earlier
 * run of this service get the new timeout in the same way.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#include "twidled.h"

#define TURN		512
#define PACKET		4096
#define PAUSE		100000	/* us without accepting if there is no room */
#define SAY_EVERY	60000000	/* us between two messages of the same kind */

static const char hello[] = "user ";

/* How far a connection's first line has come, beyond the bytes of @hello. */
enum {
	DIGIT	= sizeof(hello),
	RETURN,
	KNOWN,
};

struct connection {
	TAILQ_ENTRY(connection) next;	/* in the list of unknown or of closed connections */
	uint64_t user;
	uint64_t accepted;		/* us, while unknown */
	int fd;				/* -1: closed, freed after the turn */
	uint32_t timeout;		/* service.timeouts of its token's timeout */
	uint8_t progress;
	bool revived;			/* sent a packet just as it was given up */
};

TAILQ_HEAD(connections, connection);

static struct users {
	int epoll;
	struct sd_event_source *listeners[MAX_LISTENERS];
	int nr_listeners;
	struct sd_event_source *pause;		/* ends a pause of accepting */
	struct sd_event_source *login;		/* when the oldest unknown connection times out */
	struct connections unknown;	/* in the order of their arrival */
	struct connections closed;
	uint64_t count;
	void *tree;			/* the newest connection of each known user */
	struct tw_batch *batch;
	struct connection *heard[TURN];	/* the connections with operations in the batch */
} users = {
	.unknown = TAILQ_HEAD_INITIALIZER(users.unknown),
	.closed = TAILQ_HEAD_INITIALIZER(users.closed),
};

static int compare(const void *a, const void *b)
{
	const struct connection *x = a, *y = b;

	return x->user < y->user ? -1 : x->user > y->user;
}

/* @last: a line that tells the client why, or NULL. */
static void hang_up(struct connection *connection, const char *last)
{
	if (last)
		send(connection->fd, last, strlen(last),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
	close(connection->fd);
	connection->fd = -1;
	users.count--;
	if (connection->progress == KNOWN)
		tdelete(connection, &users.tree, compare);
	else
		TAILQ_REMOVE(&users.unknown, connection, next);
	TAILQ_INSERT_TAIL(&users.closed, connection, next);
}

/* Called when no pointer to them is left. */
static void free_closed(void)
{
	struct connection *connection;

	while ((connection = TAILQ_FIRST(&users.closed))) {
		TAILQ_REMOVE(&users.closed, connection, next);
		free(connection);
	}
}

/* The first line is complete. An older connection of the same user goes. */
static void log_in(struct connection *connection)
{
	struct connection **found = tsearch(connection, &users.tree, compare);

	if (!found)
		die(ENOMEM, "a user");
	TAILQ_REMOVE(&users.unknown, connection, next);
	if (*found != connection) {
		struct connection *old = *found;

		hang_up(old, "error connected again\n");
		if (!tsearch(connection, &users.tree, compare))
			die(ENOMEM, "a user");
	}
	connection->progress = KNOWN;
}

/* Returns 1 if the first line is complete, 0 if not yet, -1 if it is invalid. */
static int parse_hello(struct connection *connection, const char *text,
		       size_t length)
{
	uint64_t *user = &connection->user;

	for (; length--; text++) {
		if (connection->progress < sizeof(hello) - 1) {
			if (*text != hello[connection->progress++])
				return -1;
		} else if (*text >= '0' && *text <= '9' &&
			   connection->progress <= DIGIT) {
			if (__builtin_mul_overflow(*user, 10, user) ||
			    __builtin_add_overflow(*user, *text - '0', user))
				return -1;
			connection->progress = DIGIT;
		} else if (*text == '\r' && connection->progress == DIGIT) {
			connection->progress = RETURN;
		} else {
			return *text == '\n' && connection->progress >= DIGIT ?
			       1 : -1;
		}
	}
	return 0;
}

/* The batch has room for all operations of one turn. */
static struct timewheel_op *next_operation(void)
{
	struct timewheel_op *op = tw_batch_next(users.batch);

	if (!op)
		die(errno, "a batch");
	return op;
}

/* Adds the packet to the batch for the wheel, with the others of this turn. */
static void touch(struct connection *connection)
{
	struct timewheel_op *op = next_operation();

	tw_op_touch_or_register(op, connection->user, service.config.timeout, 0,
				0);
	users.heard[tw_batch_count(users.batch) - 1] = connection;
}

static void take_packet(struct connection *connection)
{
	char packet[PACKET];
	ssize_t bytes = recv(connection->fd, packet, sizeof(packet), 0);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		hang_up(connection, NULL);
		return;
	}
	if (connection->progress != KNOWN) {
		int complete = parse_hello(connection, packet, bytes);

		if (complete < 0)
			hang_up(connection, "error expected: user NUMBER\n");
		if (complete <= 0)
			return;
		log_in(connection);
	}
	touch(connection);
}

void users_turn(void)
{
	struct epoll_event events[TURN];
	int i, n = epoll_wait(users.epoll, events, TURN, 0);

	for (i = 0; i < n; i++) {
		struct connection *connection = events[i].data.ptr;

		/* Another connection's line may have closed it in this turn. */
		if (connection->fd >= 0)
			take_packet(connection);
	}
	users_flush();
}

static uint64_t now_us(void)
{
	uint64_t now;

	must(sd_event_now(service.event, CLOCK_MONOTONIC, &now));
	return now;
}

/* Is it time to print the message again? @said: when it was printed last, or 0 */
static bool worth_saying(uint64_t *said)
{
	uint64_t now = now_us();

	if (*said && now - *said < SAY_EVERY)
		return false;
	*said = now;
	return true;
}

/* The wheel has no token for this user, so its silence could not be noticed. */
static void refuse(struct connection *connection, int err)
{
	static uint64_t said;

	if (worth_saying(&said))
		say("user %llu is refused: %s",
		    (unsigned long long)connection->user,
		    err == ENOSPC ? "max-users are online" : tw_strerror(err));
	if (connection->fd >= 0)
		hang_up(connection, "error no room\n");
}

static void run_batch(void)
{
	while (tw_batch_run(users.batch, service.wheel) < 0) {
		if (errno == ENODEV)
			die(0, "the wheel \"%s\" has been destroyed",
			    service.config.wheel);
		if (errno != EINTR)
			die(errno, "the wheel \"%s\"", service.config.wheel);
	}
}

/* Moves tokens that existed with another timeout than the configured one. */
static void move_tokens(struct connection **movers, size_t n)
{
	size_t i;

	tw_batch_clear(users.batch);
	for (i = 0; i < n; i++)
		tw_op_move(next_operation(), movers[i]->user,
			   service.config.timeout, 0);
	run_batch();
}

void users_flush(void)
{
	size_t i, n = tw_batch_count(users.batch), nr_movers = 0;
	struct connection *movers[TURN];

	if (n)
		run_batch();
	for (i = 0; i < n; i++) {
		struct connection *connection = users.heard[i];
		const struct timewheel_op *op = tw_batch_op(users.batch, i);
		int result = tw_batch_result(users.batch, i);

		if (result < 0) {
			refuse(connection, errno);
			continue;
		}
		if (!(result & TIMEWHEEL_RES_REGISTERED)) {
			if (connection->timeout != service.timeouts)
				movers[nr_movers++] = connection;
		} else if (!connection->revived) {
			outbox_online(op->id, op->handle);
		}
		connection->timeout = service.timeouts;
		connection->revived = false;
	}
	if (nr_movers)
		move_tokens(movers, nr_movers);
	tw_batch_clear(users.batch);
	free_closed();
	outbox_flush();
	subscribers_flush();
}

bool users_silent(uint64_t user)
{
	const struct connection sought = { .user = user };
	struct connection **found = tfind(&sought, &users.tree, compare);
	struct connection *connection;
	char byte;

	if (!found)
		return true;
	connection = *found;
	/* A packet that has come but has not been read yet counts too. */
	if (recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		connection->revived = true;
		take_packet(connection);
		return false;
	}
	if (service.config.close)
		hang_up(connection, "offline\n");
	return true;
}

static void set_listening(bool on)
{
	int i;

	for (i = 0; i < users.nr_listeners; i++)
		must(sd_event_source_set_enabled(users.listeners[i],
						 on ? SD_EVENT_ON : SD_EVENT_OFF));
}

/* There is no room: connections wait to be accepted, and the loop does not spin. */
static void pause_listening(int err)
{
	static uint64_t said;

	if (worth_saying(&said))
		say("connections wait, %llu are open: %s",
		    (unsigned long long)users.count,
		    err ? strerror(err) : "this is the limit");
	set_listening(false);
	must(sd_event_source_set_time_relative(users.pause, PAUSE));
	must(sd_event_source_set_enabled(users.pause, SD_EVENT_ONESHOT));
}

static int on_pause_over(sd_event_source *source, uint64_t time, void *unused)
{
	(void)source;
	(void)time;
	(void)unused;
	set_listening(true);
	return 0;
}

/* Sets the timer for the oldest connection without a name. */
static void expect_login(void)
{
	struct connection *oldest = TAILQ_FIRST(&users.unknown);

	if (!oldest)
		return;
	must(sd_event_source_set_time(users.login, oldest->accepted +
			service.config.timeout / NSEC_PER_USEC));
	must(sd_event_source_set_enabled(users.login, SD_EVENT_ONESHOT));
}

static int on_login_over(sd_event_source *source, uint64_t time, void *unused)
{
	uint64_t since = now_us() - service.config.timeout / NSEC_PER_USEC;
	struct connection *oldest;

	(void)source;
	(void)time;
	(void)unused;
	while ((oldest = TAILQ_FIRST(&users.unknown)) &&
	       (int64_t)(oldest->accepted - since) <= 0)
		hang_up(oldest, "error expected: user NUMBER\n");
	free_closed();
	expect_login();
	return 0;
}

static void add(int fd)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.ptr = connection,
	};
	bool first = TAILQ_EMPTY(&users.unknown);

	if (!connection || epoll_ctl(users.epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		say("a connection: %s", strerror(errno));
		free(connection);
		close(fd);
		return;
	}
	connection->fd = fd;
	connection->accepted = now_us();
	TAILQ_INSERT_TAIL(&users.unknown, connection, next);
	users.count++;
	if (first)
		expect_login();
}

/* accept(2) returns errors of one connection, not only errors of the listener. */
static bool passing(int err)
{
	return err == EINTR || err == ECONNABORTED || err == EPROTO ||
	       err == EPERM || err == ENETDOWN || err == ENETUNREACH ||
	       err == EHOSTDOWN || err == EHOSTUNREACH || err == ENONET ||
	       err == ENOPROTOOPT || err == EOPNOTSUPP;
}

static void accept_some(int listener)
{
	int i;

	for (i = 0; i < TURN; i++) {
		int fd;

		if (users.count >= service.max_connections) {
			pause_listening(0);
			break;
		}
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			add(fd);
		} else if (!passing(errno)) {
			if (errno != EAGAIN)
				pause_listening(errno);
			break;
		}
	}
}

static int on_listener(sd_event_source *source, int listener, uint32_t events,
		       void *unused)
{
	(void)source;
	(void)events;
	(void)unused;
	accept_some(listener);
	return 0;
}

void users_accept(void)
{
	int i;

	for (i = 0; i < users.nr_listeners; i++)
		accept_some(sd_event_source_get_io_fd(users.listeners[i]));
}

static int on_users(sd_event_source *source, int fd, uint32_t events,
		    void *unused)
{
	(void)source;
	(void)fd;
	(void)events;
	(void)unused;
	users_turn();
	return 0;
}

static void listen_at(const struct address *address)
{
	must(sd_event_add_io(service.event,
			     &users.listeners[users.nr_listeners++],
			     address_listen(address), EPOLLIN, on_listener, NULL));
}

void users_open(const struct config *config)
{
	int i;

	users.batch = tw_batch_new(TURN);
	users.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!users.batch || users.epoll < 0)
		die(errno, "users");
	must(sd_event_add_io(service.event, NULL, users.epoll, EPOLLIN,
			     on_users, NULL));
	must(sd_event_add_time_relative(service.event, &users.pause,
					CLOCK_MONOTONIC, 0, 0, on_pause_over,
					NULL));
	must(sd_event_add_time_relative(service.event, &users.login,
					CLOCK_MONOTONIC, 0, 0, on_login_over,
					NULL));
	must(sd_event_source_set_enabled(users.pause, SD_EVENT_OFF));
	must(sd_event_source_set_enabled(users.login, SD_EVENT_OFF));
	for (i = 0; i < MAX_LISTENERS && config->listen[i].length; i++)
		listen_at(&config->listen[i]);
}
