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
 *
 * Packets by TCP need no touch: when the user's token comes due, the connection is asked
 * when data last came in, and the token is registered again for what is left. So a token
 * may be due before its user's timeout is over. When the connection ends, or this service
 * stops, the token is moved to the time that is right. After a kill the next service
 * gives each user the whole timeout again.
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
#define PAUSE		100000	/* us without accepting while there is no room */

static const char hello[] = "user ";

static const char expected[] = "error expected: user NAME\n";

/* This value tells how much of a connection's first line has come, beyond the bytes of @hello. */
enum {
	NAME	= sizeof(hello) - 1,
	RETURN	= NAME + NAME_SIZE,
	KNOWN,
};

struct connection {
	TAILQ_ENTRY(connection) next;	/* in the list of unknown or of closed connections */
	uint64_t user;			/* the user's id */
	uint64_t accepted;		/* us, while unknown */
	uint64_t last;			/* ns: when its last packet came, by the wheel's clock */
	uint64_t span;			/* ns: its token's timeout */
	char *name;			/* the part that has come, while unknown */
	int fd;				/* -1: closed, and freed after the turn */
	uint32_t timeout;		/* service.timeouts of its token's timeout */
	uint8_t progress;
	bool asked;			/* packets touch no token, because the socket is asked */
	bool expected;			/* its user has a token */
	bool revived;			/* sent a packet at the moment when it was given up */
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
	struct connection *heard[TURN];	/* the connection of each operation in the batch */
	uint64_t saved;			/* packets that needed no touch */
} users = {
	.unknown = TAILQ_HEAD_INITIALIZER(users.unknown),
	.closed = TAILQ_HEAD_INITIALIZER(users.closed),
};

static int compare(const void *a, const void *b)
{
	const struct connection *x = a, *y = b;

	return x->user < y->user ? -1 : x->user > y->user;
}

/* @last is a line that tells the client the reason, or NULL. */
static void hang_up(struct connection *connection, const char *last)
{
	if (last)
		send(connection->fd, last, strlen(last),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
	close(connection->fd);
	connection->fd = -1;
	free(connection->name);
	connection->name = NULL;
	users.count--;
	if (connection->progress == KNOWN)
		tdelete(connection, &users.tree, compare);
	else
		TAILQ_REMOVE(&users.unknown, connection, next);
	TAILQ_INSERT_TAIL(&users.closed, connection, next);
}

/* The caller has no pointer to a closed connection any more. */
static void free_closed(void)
{
	struct connection *connection;

	while ((connection = TAILQ_FIRST(&users.closed))) {
		TAILQ_REMOVE(&users.closed, connection, next);
		free(connection);
	}
}

/* Returns whether there is room for one more name. */
static bool find_id(struct connection *connection)
{
	bool found = names_id(connection->name, &connection->user);

	if (!found)
		hang_up(connection, "error no room\n");
	free(connection->name);
	connection->name = NULL;
	return found;
}

/* The new connection replaces an older connection of the same user. */
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
	connection->asked = service.watch && tw_tcp_idle(connection->fd) >= 0;
	if (connection->asked)
		outbox_asks();
}

/* Returns 1 if the first line is complete, 0 if not yet, -1 if it is invalid. */
static int parse_hello(struct connection *connection, const char *text,
		       size_t length)
{
	for (; length--; text++) {
		uint8_t at = connection->progress;

		if (at < NAME && *text == hello[at])
			connection->progress++;
		else if (at > NAME && *text == '\n')
			return 1;
		else if (at > NAME && at < RETURN && *text == '\r')
			connection->progress = RETURN;
		else if (at >= NAME && at < RETURN - 1 && *text > ' ' &&
			 *text <= '~')
			connection->name[connection->progress++ - NAME] = *text;
		else
			return -1;
	}
	return 0;
}

/* The batch has room for all operations of one turn. */
static struct timewheel_op *next_operation(struct connection *connection)
{
	struct timewheel_op *op = tw_batch_next(users.batch);

	if (!op)
		die(errno, "a batch");
	users.heard[tw_batch_count(users.batch) - 1] = connection;
	return op;
}

/* Adds the packet to the batch for the wheel, with the others of this turn. */
static void touch(struct connection *connection)
{
	connection->expected = true;
	tw_op_touch_or_register(next_operation(connection), connection->user,
				service.config.timeout, 0, 0);
}

/*
 * Returns when data last came in. Data that was read may be later than TCP says, because TCP
 * counts jiffies.
 */
static uint64_t heard_at(const struct connection *connection)
{
	int64_t idle = tw_tcp_idle(connection->fd);
	uint64_t at = idle < 0 ? 0 : news_now() - idle;

	return at > connection->last ? at : connection->last;
}

/* The token gets the deadline that its user has, because no connection is asked any more. */
static void ask_no_more(struct connection *connection)
{
	struct timewheel_op op;

	if (!connection->asked || !connection->expected)
		return;
	tw_op_move(&op, connection->user, heard_at(connection) + connection->span,
		   TIMEWHEEL_OPF_ABSOLUTE);
	/* Another program may have cancelled the token. */
	if (tw_wheel_run(service.wheel, &op) < 0 && errno != ENOENT)
		wheel_died(errno);
}

static void take_packet(struct connection *connection)
{
	char packet[PACKET];
	ssize_t bytes = recv(connection->fd, packet, sizeof(packet), 0);

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (bytes <= 0) {
		ask_no_more(connection);
		hang_up(connection, NULL);
		return;
	}
	if (connection->progress != KNOWN) {
		int complete = parse_hello(connection, packet, bytes);

		if (complete < 0)
			hang_up(connection, expected);
		if (complete <= 0 || !find_id(connection))
			return;
		log_in(connection);
	}
	connection->last = news_now();
	if (connection->asked && connection->expected &&
	    connection->timeout == service.timeouts)
		users.saved++;
	else
		touch(connection);
}

void users_turn(void)
{
	struct epoll_event events[TURN];
	int i, n = epoll_wait(users.epoll, events, TURN, 0);

	for (i = 0; i < n; i++) {
		struct connection *connection = events[i].data.ptr;

		/* A line of another connection may have closed this connection in this turn. */
		if (connection->fd >= 0)
			take_packet(connection);
	}
	users_flush();
}

/*
 * The user is refused because the wheel has no token for this user, whose silence could not be
 * noticed.
 */
static void refuse(struct connection *connection, int err)
{
	static uint64_t said;

	char number[NAME_SIZE];

	if (worth_saying(&said))
		say("user %s is refused: %s",
		    names_text(connection->user, number),
		    err == ENOSPC ? "max-users are online" : tw_strerror(err));
	if (connection->fd >= 0)
		hang_up(connection, "error no room\n");
}

static void run_batch(void)
{
	while (tw_batch_run(users.batch, service.wheel) < 0)
		if (errno != EINTR)
			wheel_died(errno);
}

/* Moves the connection's token, which existed with another timeout than the configured timeout. */
static void move_token(struct connection *connection)
{
	struct timewheel_op op;

	tw_op_move(&op, connection->user, service.config.timeout, 0);
	tw_wheel_run(service.wheel, &op);
}

/* Handles the result of one operation. Returns whether the token still has a wrong timeout. */
static bool handle(struct connection *connection, const struct timewheel_op *op,
		   int result)
{
	bool came, wrong;

	if (result < 0) {
		refuse(connection, errno);
		return false;
	}
	came = result & TIMEWHEEL_RES_REGISTERED;
	if (came && !connection->revived)
		outbox_tell(NEWS_ONLINE, op->id, op->handle);
	wrong = !came && connection->timeout != service.timeouts;
	connection->timeout = service.timeouts;
	connection->span = service.config.timeout;
	connection->revived = false;
	return wrong;
}

void users_flush(void)
{
	size_t i, n = tw_batch_count(users.batch), nr_wrong = 0;
	struct connection *wrong[TURN];

	if (n)
		run_batch();
	for (i = 0; i < n; i++) {
		struct connection *connection = users.heard[i];
		const struct timewheel_op *op = tw_batch_op(users.batch, i);
		int result = tw_batch_result(users.batch, i);

		if (handle(connection, op, result))
			wrong[nr_wrong++] = connection;
	}
	for (i = 0; i < nr_wrong; i++)
		move_token(wrong[i]);
	tw_batch_clear(users.batch);
	free_closed();
	outbox_flush();
	subscribers_flush();
}

/*
 * Asks the connection. Returns true if its user has a token again. Otherwise the deadline in the
 * line about the user is the end of the timeout after the last data.
 */
static bool is_heard(const struct connection *connection, struct timewheel_event *event)
{
	uint64_t end = heard_at(connection) + connection->span, now = news_now();

	if (end > now)
		return wheel_register(connection->user, end - now);
	if (end > event->deadline)
		event->deadline = end;
	return false;
}

bool users_silent(struct timewheel_event *event)
{
	const struct connection sought = { .user = event->id };
	struct connection **found = tfind(&sought, &users.tree, compare);
	struct connection *connection = found ? *found : NULL;
	char byte;

	if (!connection)
		return true;
	if (connection->asked && connection->expected && is_heard(connection, event))
		return false;
	connection->expected = false;
	/* A packet that has come and has not been read yet counts, too. */
	if (recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		connection->revived = true;
		take_packet(connection);
		return false;
	}
	if (service.config.close)
		hang_up(connection, "offline\n");
	return true;
}

static void (*each_user)(uint64_t id);

static void call_each(const void *node, VISIT visit, int depth)
{
	const struct connection * const *connection = node;

	if (visit == postorder || visit == leaf)
		each_user((*connection)->user);
}

void users_each(void (*each)(uint64_t id))
{
	each_user = each;
	twalk(users.tree, call_each);
}

static void leave_node(const void *node, VISIT visit, int depth)
{
	struct connection * const *connection = node;

	if (visit == postorder || visit == leaf)
		ask_no_more(*connection);
}

void users_stop(void)
{
	twalk(users.tree, leave_node);
	outbox_asks_no_more();
}

void users_say_saved(void)
{
	if (users.saved)
		say("%llu packets needed no touch, as their connections are asked",
		    (unsigned long long)users.saved);
}

static void set_listening(bool on)
{
	int i;

	for (i = 0; i < users.nr_listeners; i++)
		must(sd_event_source_set_enabled(users.listeners[i],
						 on ? SD_EVENT_ON : SD_EVENT_OFF));
}

/*
 * The pause lets connections wait to be accepted, because there is no room and the loop must not
 * spin.
 */
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

	while ((oldest = TAILQ_FIRST(&users.unknown)) &&
	       (int64_t)(oldest->accepted - since) <= 0)
		hang_up(oldest, expected);
	free_closed();
	expect_login();
	return 0;
}

static struct connection *new_connection(void)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->name = calloc(1, NAME_SIZE);
	if (connection->name)
		return connection;
	free(connection);
	return NULL;
}

static void add(int fd)
{
	struct connection *connection = new_connection();
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.ptr = connection,
	};
	bool first = TAILQ_EMPTY(&users.unknown);

	if (!connection || epoll_ctl(users.epoll, EPOLL_CTL_ADD, fd, &event) < 0) {
		say("a connection: %s", strerror(errno));
		if (connection)
			free(connection->name);
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

/* accept(2) also returns errors of a single connection, not only errors of the listener. */
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
