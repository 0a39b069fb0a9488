// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: see conn.h.
 *
 * An answer is final when the turn that it belongs to has been committed, or if its
 * verb says so, and only final bytes are sent. If the commit fails, all other answers
 * of the turn become errors.
 * A connection that does not take its answers is not heard until it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "verbs.h"

/* Connections that are heard, and accepted, in a row. */
#define TURN		256
#define RECEIVE		65536
/* With so many bytes of answers a connection is not heard. */
#define MAX_OUT		(1 << 20)
/* Jobs for whose rows is asked at once. */
#define ASK_AT_ONCE	500
/* A stop hears connections at most so often: a client may send without an end. */
#define MAX_STOP	64
/* Bytes of a command beside its body. */
#define MAX_COMMAND	(1 << 20)
/* A commit that took longer than so many ns counts as one of this length, see gather(). */
#define MAX_GATHER	(10 * NSEC_PER_MSEC)

struct conn {
	LIST_ENTRY(conn) all;
	TAILQ_ENTRY(conn) next;	/* of those with something to do at the end */
	struct client client;
	int fd;
	uint32_t events;	/* that epoll looks for */
	struct buffer in, out;
	size_t final;		/* bytes of @out that may be sent */
	uint64_t sent;		/* bytes of the whole stream */
	unsigned int answers;	/* in @out behind @final */
	size_t skip;		/* bytes of a too long argument yet to come */
	bool too_big;		/* the command that is coming has such a one */
	bool dead, listed;
	uint64_t expected;	/* the turn that may wait for the next command */
};

static LIST_HEAD(, conn) all = LIST_HEAD_INITIALIZER(all);
static TAILQ_HEAD(, conn) busy = TAILQ_HEAD_INITIALIZER(busy);

static struct {
	int epoll;
	uint64_t count, number;
	uint64_t turn;		/* the number of the present one, from 1 */
	uint64_t expected;	/* how many connections it may wait for */
} conns;

static struct conn *conn_of(struct client *client)
{
	return (struct conn *)((char *)client - offsetof(struct conn, client));
}

static void make_busy(struct conn *conn)
{
	if (conn->listed)
		return;
	conn->listed = true;
	TAILQ_INSERT_TAIL(&busy, conn, next);
}

/* A client that has got all its answers probably sends its next command soon. */
static void expect(struct conn *conn)
{
	if (conn->expected == conns.turn)
		return;
	conn->expected = conns.turn;
	conns.expected++;
}

static void unexpect(struct conn *conn)
{
	if (conn->expected != conns.turn)
		return;
	conn->expected = 0;
	conns.expected--;
}

/* An answer is complete: so are the deliveries in it. */
static void count_answer(struct conn *conn)
{
	/* An answer behind one that waits for the commit waits as well. */
	if (conn->client.final && !conn->answers)
		conn->final = conn->out.length;
	else
		conn->answers++;
	conn->client.final = false;
	client_answered(&conn->client, conn->sent + conn->out.length);
	make_busy(conn);
}

/* A take that waited has its answer; what came behind it goes on. */
static void resume(struct client *client)
{
	count_answer(conn_of(client));
}

static void replace_answers(struct conn *conn, int error)
{
	conn->out.length = conn->final;
	/* Neither "done" nor "not done" would be true. */
	if (error == -EINPROGRESS) {
		conn->dead |= conn->answers;
		return;
	}
	client_give_back(&conn->client, conn->sent + conn->final, true);
	while (conn->answers) {
		reply_error(&conn->client.reply, error == -ENOSPC ?
			    "FULL the disk is full: nothing was changed" :
			    "UNAVAILABLE the store did not take it: nothing was changed");
		conn->answers--;
	}
}

static void on_turn_end(int error)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &busy, next) {
		if (error)
			replace_answers(conn, error);
		conn->final = conn->out.length;
		conn->answers = 0;
	}
}

static void destroy(struct conn *conn)
{
	unexpect(conn);
	take_forget(&conn->client);
	client_give_back(&conn->client, 0, false);
	close(conn->fd);
	buffer_free(&conn->in);
	buffer_free(&conn->out);
	LIST_REMOVE(conn, all);
	conns.count--;
	free(conn);
}

/* Returns whether all has been taken. */
static bool send_some(struct conn *conn)
{
	size_t done = 0;

	while (done < conn->final) {
		ssize_t bytes = send(conn->fd, conn->out.data + done,
				     conn->final - done,
				     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0) {
			conn->dead |= errno != EAGAIN;
			break;
		}
		done += bytes;
	}
	buffer_cut(&conn->out, done);
	conn->final -= done;
	conn->sent += done;
	client_sent(&conn->client, conn->sent);
	if (done && !conn->out.length)
		expect(conn);
	return !conn->out.length;
}

/* What is to be heard of the connection. While a take waits, only its end is. */
static void set_events(struct conn *conn)
{
	struct epoll_event wanted = { .data.ptr = conn };

	if (conn->out.length)
		wanted.events |= EPOLLOUT;
	if (conn->out.length < MAX_OUT && !conn->client.quit)
		wanted.events |= conn->client.waiter ? EPOLLRDHUP : EPOLLIN;
	if (wanted.events == conn->events)
		return;
	conn->events = wanted.events;
	if (epoll_ctl(conns.epoll, EPOLL_CTL_MOD, conn->fd, &wanted) < 0)
		die(errno, "epoll");
}

/* Drops bytes of a too long argument. */
static void skip(struct conn *conn, size_t at)
{
	size_t bytes = conn->in.length - at;

	if (bytes > conn->skip)
		bytes = conn->skip;
	memmove(conn->in.data + at, conn->in.data + at + bytes,
		conn->in.length - at - bytes);
	conn->in.length -= bytes;
	conn->skip -= bytes;
}

/* A too long argument becomes an empty one, and the command an error. */
static void begin_skip(struct conn *conn, size_t at,
		       const struct resp_parsed *parsed)
{
	static const char empty[] = "$0\r\n";
	size_t header = at + parsed->header;
	size_t end = header + parsed->header_length;

	memcpy(conn->in.data + header, empty, sizeof(empty) - 1);
	memmove(conn->in.data + header + sizeof(empty) - 1, conn->in.data + end,
		conn->in.length - end);
	conn->in.length -= parsed->header_length - (sizeof(empty) - 1);
	conn->skip = parsed->length;
	conn->too_big = true;
	skip(conn, header + sizeof(empty) - 1);
}

static void run_command(struct conn *conn, struct command *command)
{
	if (conn->too_big)
		reply_error(&conn->client.reply,
			    "TOOBIG an argument has at most %" PRIu64 " bytes",
			    config.max_body);
	else if (command->argc)
		verbs_run(&conn->client, command);
	else
		return;
	conn->too_big = false;
	if (!conn->client.waiter)
		count_answer(conn);
	turn_limit();
}

static bool may_run(const struct conn *conn)
{
	return !conn->dead && !conn->client.quit && !conn->client.waiter &&
	       !conn->skip && conn->out.length < MAX_OUT;
}

/* Carries out the commands that have come. Returns whether there were any. */
static bool run_commands(struct conn *conn)
{
	static struct command command;
	size_t at = 0;
	enum resp_found found = RESP_COMMAND;

	while (found != RESP_PARTIAL && may_run(conn) && at < conn->in.length) {
		struct bytes in = { conn->in.data + at, conn->in.length - at };
		struct resp_parsed parsed = resp_parse(in, config.max_body,
						       &command);

		found = parsed.found;
		if (found == RESP_COMMAND) {
			run_command(conn, &command);
			at += parsed.used;
			/* What comes behind a take can be in the same turn. */
			if (conn->client.waiter && at < conn->in.length)
				take_serve();
		} else if (found == RESP_BIG) {
			begin_skip(conn, at, &parsed);
		} else if (found == RESP_WRONG ||
			   in.length > config.max_body + MAX_COMMAND) {
			reply_error(&conn->client.reply,
				    "ERR Protocol error: expected a short array of bulk strings");
			conn->client.quit = true;
			count_answer(conn);
		}
	}
	buffer_cut(&conn->in, at);
	return at;
}

/* Returns whether bytes have come. */
static bool hear(struct conn *conn)
{
	static char received[RECEIVE];
	ssize_t bytes = recv(conn->fd, received, RECEIVE, MSG_DONTWAIT);
	size_t at = conn->in.length;

	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	unexpect(conn);
	if (bytes <= 0) {
		conn->dead = true;
		return false;
	}
	buffer_add(&conn->in, received, bytes);
	if (conn->skip)
		skip(conn, at);
	return true;
}

/* The jobs for whose rows the commands of this connection will ask. Returns their number. */
static int look_ahead(const struct conn *conn, int64_t *ids, int room)
{
	static struct command command;
	size_t at = 0;
	int n = 0;

	if (!conn->client.known || !may_run(conn))
		return 0;
	while (at < conn->in.length && n < room) {
		struct bytes in = { conn->in.data + at, conn->in.length - at };
		struct resp_parsed parsed = resp_parse(in, config.max_body,
						       &command);

		if (parsed.found != RESP_COMMAND)
			break;
		n += answer_jobs(&command, ids + n, room - n);
		at += parsed.used;
	}
	return n;
}

/*
 * With a shared store each question costs a way there and back: for the commands of all
 * these connections there is one.
 */
static void ask_at_once(const struct epoll_event *ready, int count)
{
	static int64_t ids[ASK_AT_ONCE];
	int n = 0;

	for (int i = 0; i < count; i++)
		n += look_ahead(ready[i].data.ptr, ids + n, ASK_AT_ONCE - n);
	if (n && !turn_begin())
		turn_result(store->want(ids, n, true));
}

/* Final answers do not wait for the disk. */
static void send_final(struct conn *conn)
{
	if (!conn->dead && conn->final)
		send_some(conn);
}

/* Carries out the commands that have come. Returns whether any bytes have. */
static bool hear_ready(void)
{
	struct epoll_event ready[TURN];
	int n = epoll_wait(conns.epoll, ready, TURN, 0);
	bool heard = false;

	for (int i = 0; i < n; i++) {
		struct conn *conn = ready[i].data.ptr;

		make_busy(conn);
		if (ready[i].events & EPOLLIN)
			heard |= hear(conn);
		else if (ready[i].events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
			conn->dead = true;
	}
	if (store->shared)
		ask_at_once(ready, n);
	for (int i = 0; i < n; i++)
		run_commands(ready[i].data.ptr);
	take_serve();
	for (int i = 0; i < n; i++)
		send_final(ready[i].data.ptr);
	return heard;
}

static int on_conns(sd_event_source *source, int fd, uint32_t events,
		    void *unused)
{
	(void)source;
	(void)fd;
	(void)events;
	(void)unused;
	hear_ready();
	return 0;
}

/*
 * Before a commit. The clients that the commit before has answered will soon send their next
 * commands. If this commit did not wait for them, the clients would fall into two groups, of
 * which each waits for the other's commit. It waits only if the last commit was a short while
 * ago, and it sleeps for at most half the time that the last commit took.
 */
static void gather(void)
{
	struct pollfd pollfd = { .fd = conns.epoll, .events = POLLIN };
	struct turn_commit last = turn_last_commit();
	int64_t took = last.took < MAX_GATHER ? last.took : MAX_GATHER;
	uint64_t now = monotonic_ns(), end = last.end + 4 * took;
	int64_t left = took / 2;

	while (conns.expected && left > 0 && now < end) {
		struct timespec wait = { .tv_nsec = left };
		uint64_t begin = now;

		if (ppoll(&pollfd, 1, &wait, NULL) <= 0)
			break;
		left -= monotonic_ns() - begin;
		if (!hear_ready())
			break;
		now = monotonic_ns();
	}
	conns.turn++;
	conns.expected = 0;
}

/*
 * The end of a turn of the loop. Commands that waited for a take, or for room, are
 * carried out before the loop goes on, as no event will tell of them.
 */
static void finish(void)
{
	struct conn *conn;

	TAILQ_FOREACH(conn, &busy, next)
		send_final(conn);
	if (turn_is_begun())
		gather();
	turn_end();
	while ((conn = TAILQ_FIRST(&busy))) {
		bool ran = false;

		if (!conn->dead && send_some(conn) && conn->client.quit)
			conn->dead = true;
		if (!conn->dead && may_run(conn))
			ran = run_commands(conn);
		if (ran) {
			take_serve();
			turn_end();
			continue;
		}
		TAILQ_REMOVE(&busy, conn, next);
		conn->listed = false;
		if (conn->dead)
			destroy(conn);
		else
			set_events(conn);
	}
	/* What connections that have ended gave back. */
	turn_end();
}

static int on_post(sd_event_source *source, void *unused)
{
	(void)source;
	(void)unused;
	finish();
	return 0;
}

static void add(int fd, bool tcp)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = conn };
	const int on = 1;

	if (!conn || epoll_ctl(conns.epoll, EPOLL_CTL_ADD, fd, &wanted) < 0) {
		say("a connection: %s", strerror(errno));
		free(conn);
		close(fd);
		return;
	}
	if (tcp)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->fd = fd;
	conn->events = EPOLLIN;
	conn->client.reply = (struct reply) { &conn->out, 2 };
	conn->client.number = ++conns.number;
	conn->client.known = !tcp || !config.password[0];
	client_init(&conn->client, resume);
	LIST_INSERT_HEAD(&all, conn, all);
	conns.count++;
}

static void refuse(int fd)
{
	static const char full[] = "-FULL there are too many connections\r\n";

	send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static int on_listener(sd_event_source *source, int listener, uint32_t events,
		       void *unused)
{
	struct sockaddr_storage peer;

	(void)source;
	(void)events;
	(void)unused;
	for (int i = 0; i < TURN; i++) {
		socklen_t length = sizeof(peer);
		int fd = accept4(listener, (struct sockaddr *)&peer, &length,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			break;
		if (conns.count >= max_connections)
			refuse(fd);
		else
			add(fd, peer.ss_family != AF_UNIX);
	}
	return 0;
}

void conn_listen(int fd)
{
	sd_event_source *source;

	/* The service manager's are not. */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	must(sd_event_add_io(event, &source, fd, EPOLLIN, on_listener, NULL));
	must(sd_event_source_set_floating(source, true));
	/* While there are no files for one more the loop is not to spin. */
	must(sd_event_source_set_ratelimit(source, USEC_PER_SEC, 1000));
	sd_event_source_unref(source);
}

static bool has_sent(const struct conn *conn)
{
	char byte;

	return recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* A connection ends when it has its answers, and has sent nothing more meanwhile. */
static void stop_some(void)
{
	struct conn *conn, *next;

	for (conn = LIST_FIRST(&all); conn; conn = next) {
		next = LIST_NEXT(conn, all);
		if (may_run(conn) && has_sent(conn)) {
			make_busy(conn);
			hear(conn);
		} else {
			destroy(conn);
		}
	}
	TAILQ_FOREACH(conn, &busy, next)
		run_commands(conn);
	take_serve();
	finish();
}

/*
 * Runs when the loop is to end, but before it does: a command that is carried out now may add
 * a timer or a file to the loop.
 */
static int on_end(sd_event_source *source, void *unused)
{
	struct conn *conn;

	(void)source;
	(void)unused;
	finish();
	for (int i = 0; i < MAX_STOP && !LIST_EMPTY(&all); i++)
		stop_some();
	while ((conn = LIST_FIRST(&all)))
		destroy(conn);
	turn_end();
	return 0;
}

void conn_start(void)
{
	conns.turn = 1;
	conns.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (conns.epoll < 0)
		die(errno, "epoll");
	must(sd_event_add_io(event, NULL, conns.epoll, EPOLLIN, on_conns, NULL));
	must(sd_event_add_post(event, NULL, on_post, NULL));
	must(sd_event_add_exit(event, NULL, on_end, NULL));
	turn_at_end(on_turn_end);
}
