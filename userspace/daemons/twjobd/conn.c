// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: see conn.h.
 *
 * An answer is final when the turn that it belongs to has been committed, or if its verb says so,
 * and only final bytes are sent. If the commit fails, all other answers of the turn become
 * errors. A connection that does not take its answers is not heard until it takes them. A
 * connection that sends many commands has a backlog, and each pass over all such connections
 * carries out a part of each backlog.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "door.h"
#include "take.h"
#include "verbs.h"

/* This many connections are heard, or accepted, in a row. */
#define TURN		256
#define RECEIVE		65536
/* A connection with this many bytes of answers is not heard. */
#define MAX_OUT		(1 << 20)
/* One question to the store asks for the rows of this many jobs. */
#define ASK_AT_ONCE	500
/* A stop hears connections at most this often, because a client may send without an end. */
#define MAX_STOP	64
/*
 * The commands of one connection get this many ns before other connections have their turn. A
 * single command may take longer, and so may the first SLICE_LEAST commands, if none has further
 * steps.
 */
#define SLICE		150000
#define SLICE_LEAST	32
/* The answer to a wrong password comes this many us later. */
#define LATE		USEC_PER_SEC
/*
 * The commands and answers of all connections have at most this many bytes, and room for some
 * bodies.
 */
#define MAX_ALL		(128ULL << 20)
#define SOME_BODIES	4
/*
 * While there is little room, a connection with this many bytes has to send or read within this
 * many ns.
 */
#define MUCH		65536
#define STALLED		(10 * NSEC_PER_SEC)
/* Root may have this many connections beyond the limit of other users. */
#define RESERVED	16
/* A command may have this many bytes beside its body. */
#define MAX_COMMAND	(1 << 20)
/* A commit that took longer than this many ns counts as if it had taken this long: see gather(). */
#define MAX_GATHER	(10 * NSEC_PER_MSEC)

struct conn {
	LIST_ENTRY(conn) all;
	TAILQ_ENTRY(conn) next;	/* of @busy: it has something to do at the turn's end */
	TAILQ_ENTRY(conn) next_more;
	struct client client;
	int fd;
	uint32_t events;	/* the events that epoll looks for */
	struct buffer in, out;
	size_t final;		/* bytes of @out that may be sent */
	uint64_t sent;		/* bytes of the whole stream that have been sent */
	unsigned int answers;	/* the number of answers in @out behind @final */
	size_t skip;		/* bytes of a too long argument that are still to come */
	size_t too_big;		/* the length of the coming command's longest such argument */
	bool dead, listed;
	uint64_t expected;	/* the turn that may wait for its next command */
	struct guest guest;	/* waits until it has given the password */
	/*
	 * @backlog: commands have come and are not carried out yet. @more: they can be carried
	 * out now.
	 */
	bool backlog, more;
	size_t bytes;		/* bytes of memory of @in and @out, as conns.bytes counts them */
	uint64_t moved;		/* ns: when bytes last came or went */
	sd_event_source *late;	/* while the answer to a wrong password waits */
};

static LIST_HEAD(, conn) all = LIST_HEAD_INITIALIZER(all);
static TAILQ_HEAD(, conn) busy = TAILQ_HEAD_INITIALIZER(busy);
static TAILQ_HEAD(backlogs, conn) more = TAILQ_HEAD_INITIALIZER(more);

static struct {
	int epoll;
	uint64_t count, number;	/* @count: connections without guests */
	uint64_t bytes;		/* the sum of all connections' @bytes */
	uint64_t reclaimed;	/* ns: when stalled connections were last looked for */
	bool fresh;		/* a connection without backlog has been heard */
	bool stopping;
	sd_event_source *go_on;	/* runs while the list @more is not empty */
	uint64_t turn;		/* the number of the present turn, from 1 */
	uint64_t expected;	/* the number of connections that the turn may wait for */
} conns;

static uint64_t most_bytes(void)
{
	return MAX_ALL + SOME_BODIES * config.max_body;
}

static bool is_over(void)
{
	return conns.bytes > most_bytes();
}

/* The caller may have changed @in or @out. */
static void count_bytes(struct conn *conn)
{
	conns.bytes -= conn->bytes;
	conn->bytes = conn->in.room + conn->out.room + multi_bytes(&conn->client);
	conns.bytes += conn->bytes;
}

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

static void leave_more(struct conn *conn)
{
	if (conn->more)
		TAILQ_REMOVE(&more, conn, next_more);
	conn->more = false;
}

static int on_late(sd_event_source *source, uint64_t time, void *data)
{
	struct conn *conn = data;

	conn->late = sd_event_source_disable_unref(conn->late);
	make_busy(conn);
	return 0;
}

/* The password was wrong. Neither is the answer sent at once, nor are further passwords heard. */
static void make_late(struct conn *conn)
{
	conn->client.late = false;
	must(sd_event_add_time_relative(event, &conn->late, CLOCK_MONOTONIC, LATE, 1,
					on_late, conn));
}

/* An answer is complete, and with it the deliveries in the answer. */
static void count_answer(struct conn *conn)
{
	if (conn->client.late)
		make_late(conn);
	/* An answer behind an answer that waits for the commit has to wait, too. */
	if (conn->client.final && !conn->answers)
		conn->final = conn->out.length;
	else
		conn->answers++;
	conn->client.final = false;
	client_answered(&conn->client, conn->sent + conn->out.length);
	make_busy(conn);
}

/* A take that waited has its answer. Commands behind the take go on after that. */
static void resume(struct client *client)
{
	count_answer(conn_of(client));
}

static void replace_answers(struct conn *conn, int error)
{
	conn->out.length = conn->final;
	/* The client gets no answer: neither "done" nor "not done" would be true. */
	if (error == -EINPROGRESS) {
		conn->dead |= conn->answers;
		return;
	}
	take_give_back(&conn->client, conn->sent + conn->final, true);
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
	leave_more(conn);
	sd_event_source_disable_unref(conn->late);
	if (conn->client.step)
		conn->client.step(&conn->client, true);
	multi_forget(&conn->client);
	take_forget(&conn->client);
	take_give_back(&conn->client, 0, false);
	client_end(&conn->client);
	close(conn->fd);
	buffer_free(&conn->in);
	buffer_free(&conn->out);
	count_bytes(conn);
	LIST_REMOVE(conn, all);
	conns.count -= !conn->guest.waits;
	door_leave(&conn->guest);
	free(conn);
}

/* Returns whether the client has taken all answers. */
static bool send_some(struct conn *conn)
{
	size_t done = 0;

	while (done < conn->final && !conn->late) {
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
	count_bytes(conn);
	conn->final -= done;
	conn->sent += done;
	if (done)
		conn->moved = monotonic_ns();
	client_sent(&conn->client, conn->sent);
	if (done && !conn->out.length)
		expect(conn);
	return !conn->out.length;
}

/* Returns whether more commands can be of use now. */
static bool may_hear(const struct conn *conn)
{
	return conn->out.length < MAX_OUT && !conn->client.quit && !conn->late &&
	       !conn->backlog;
}

/* Sets the events to look for. While a take waits, only the end of the connection counts. */
static void set_events(struct conn *conn)
{
	struct epoll_event wanted = { .data.ptr = conn };

	if (conn->out.length && !conn->late)
		wanted.events |= EPOLLOUT;
	if (conn->client.waiter)
		wanted.events |= EPOLLRDHUP;
	else if (may_hear(conn))
		wanted.events |= EPOLLIN;
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

/* Replaces a too long argument by an empty one. The command then gets an error. */
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
	if (conn->too_big < parsed->length)
		conn->too_big = parsed->length;
	skip(conn, header + sizeof(empty) - 1);
}

/* A guest that has given its password takes a place of max_connections. */
static void let_in(struct conn *conn)
{
	if (!conn->client.known || !conn->guest.waits)
		return;
	door_leave(&conn->guest);
	if (conns.count++ < max_connections)
		return;
	/* The answer that waits says that the guest has got in, which is not true. */
	conn->out.length = conn->final;
	conn->answers = 0;
	reply_error(&conn->client.reply, "FULL there are too many connections");
	conn->client.quit = true;
	count_answer(conn);
}

/* The answer to the command, or to the last step of a command, may be complete. */
static void end_command(struct conn *conn)
{
	if (!conn->client.waiter && !conn->client.step)
		count_answer(conn);
	let_in(conn);
	count_bytes(conn);
	turn_limit();
}

static void run_command(struct conn *conn, struct command *command)
{
	if (conn->too_big)
		multi_fail(&conn->client);
	if (conn->too_big > store_longest_body())
		reply_error(&conn->client.reply,
			    "TOOBIG an argument has at most %" PRIu64 " bytes",
			    store_longest_body());
	else if (conn->too_big)
		reply_error(&conn->client.reply,
			    "FULL all connections have their %" PRIu64 " bytes: try again",
			    most_bytes());
	else if (command->argc)
		verbs_run(&conn->client, command);
	else
		return;
	conn->too_big = 0;
	end_command(conn);
}

static bool may_run(const struct conn *conn)
{
	return !conn->dead && !conn->client.quit && !conn->client.waiter &&
	       !conn->skip && !conn->late && conn->out.length < MAX_OUT;
}

/* Returns the length of the longest argument that is accepted now. */
static uint64_t longest(const struct conn *conn)
{
	if (conn->guest.waits || conns.bytes > most_bytes() / 4 * 3)
		return store_longest_body() < MUCH / 4 ? store_longest_body() : MUCH / 4;
	return store_longest_body();
}

/* Returns how many bytes of a command may have come before the command is complete. */
static uint64_t longest_command(const struct conn *conn)
{
	return conn->guest.waits ? GUEST_BYTES : config.max_body + MAX_COMMAND;
}

static void end_talk(struct conn *conn, const char *error)
{
	reply_error(&conn->client.reply, "%s", error);
	conn->client.quit = true;
	count_answer(conn);
}

/* The bytes at @at are no command that can be carried out now. */
static void run_other(struct conn *conn, size_t at, const struct resp_parsed *parsed)
{
	if (parsed->found == RESP_WRONG)
		end_talk(conn, "ERR Protocol error: expected a short array of bulk strings");
	else if (parsed->found == RESP_BIG && conn->guest.waits)
		end_talk(conn, "NOAUTH a command before the password has few bytes");
	else if (parsed->found == RESP_BIG)
		begin_skip(conn, at, parsed);
	else if (conn->in.length - at > longest_command(conn))
		end_talk(conn, "ERR Protocol error: too long a command");
}

/* Carries out one command, or a step of a command. Returns the command's bytes of @in. */
static size_t run_next(struct conn *conn, size_t at, enum resp_found *found)
{
	static struct command command;
	struct bytes in = { conn->in.data + at, conn->in.length - at };
	struct resp_parsed parsed;

	if (conn->client.step) {
		conn->client.step(&conn->client, false);
		end_command(conn);
		return 0;
	}
	parsed = resp_parse(in, longest(conn), &command);
	*found = parsed.found;
	if (parsed.found != RESP_COMMAND) {
		run_other(conn, at, &parsed);
		return 0;
	}
	run_command(conn, &command);
	/* Commands behind a take can then be in the same turn. */
	if (conn->client.waiter && parsed.used < in.length)
		take_serve();
	return parsed.used;
}

/* Carries out commands that have come. If the commands take long, the rest is a backlog. */
static void run_commands(struct conn *conn)
{
	uint64_t end = conns.stopping ? UINT64_MAX : monotonic_ns() + SLICE;
	enum resp_found found = RESP_COMMAND;
	size_t at = 0;
	int n = 0;

	do {
		if (!may_run(conn) || (!conn->client.step && at == conn->in.length))
			break;
		at += run_next(conn, at, &found);
		n++;
	} while (found != RESP_PARTIAL && !is_over() &&
		 (monotonic_ns() < end || (!conn->client.step && n < SLICE_LEAST)));
	conn->backlog = conn->client.step ||
			(found != RESP_PARTIAL && !conn->skip && at < conn->in.length);
	buffer_cut(&conn->in, at);
	count_bytes(conn);
}

/* The backlog is carried out as soon as the other connections have been heard. */
static void join_more(struct conn *conn)
{
	if (conn->more || !conn->backlog || !may_run(conn))
		return;
	conn->more = true;
	TAILQ_INSERT_TAIL(&more, conn, next_more);
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
	conn->moved = monotonic_ns();
	buffer_add(&conn->in, received, bytes);
	if (conn->skip)
		skip(conn, at);
	count_bytes(conn);
	return true;
}

/* Writes the jobs for whose rows the commands of this connection will ask. Returns their number. */
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
 * With a shared store each question costs a round trip, so the commands of all these connections
 * ask in one question.
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

/* Commands that a client sent before it ended the connection are carried out. */
static void hear_one(struct conn *conn, uint32_t events, bool *heard)
{
	make_busy(conn);
	if (events & EPOLLIN && may_hear(conn) && !is_over()) {
		bool came = hear(conn);

		*heard |= came;
		conns.fresh |= came;
	} else if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP) && !conn->more) {
		conn->dead = true;
	}
}

/* Carries out the commands that have come. Returns whether any bytes have come. */
static bool hear_ready(void)
{
	struct epoll_event ready[TURN];
	int n = epoll_wait(conns.epoll, ready, TURN, 0);
	bool heard = false;

	for (int i = 0; i < n; i++)
		hear_one(ready[i].data.ptr, ready[i].events, &heard);
	if (store->shared)
		ask_at_once(ready, n);
	for (int i = 0; i < n; i++)
		run_commands(ready[i].data.ptr);
	take_serve();
	for (int i = 0; i < n; i++)
		send_final(ready[i].data.ptr);
	return heard;
}

/* Carries out some commands of each connection with a backlog. */
static void run_more(void)
{
	struct conn *conn, *last = TAILQ_LAST(&more, backlogs);
	bool ended = !last;

	while (!ended) {
		conn = TAILQ_FIRST(&more);
		ended = conn == last;
		leave_more(conn);
		make_busy(conn);
		run_commands(conn);
		join_more(conn);
	}
	take_serve();
}

static int on_more(sd_event_source *source, void *unused)
{
	(void)source;
	(void)unused;
	hear_ready();
	run_more();
	return 0;
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
 * This function runs before a commit. The clients that got their answers from the last commit
 * will soon send their next commands. If this commit did not wait for them, the clients would
 * fall into two groups, and each group would wait for the other's commit. The function waits only
 * if the last commit was a short while ago, and the function sleeps for at most half the time
 * that the last commit took.
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
 * While no other connection sends commands, a whole backlog is in one turn, up to a turn's
 * length.
 */
static void fill_turn(void)
{
	conns.fresh = false;
	while (turn_is_begun() && !TAILQ_EMPTY(&more) && !conns.fresh && !is_over()) {
		run_more();
		hear_ready();
	}
}

static void end_conn(struct conn *conn)
{
	conn->dead = true;
	make_busy(conn);
}

static struct conn *largest(void)
{
	struct conn *conn, *found = NULL;

	LIST_FOREACH(conn, &all, all)
		if (!conn->dead && (!found || conn->bytes > found->bytes))
			found = conn;
	return found;
}

/* Ends connections with much memory that neither send nor read. */
static void end_stalled(uint64_t now)
{
	struct conn *conn;

	LIST_FOREACH(conn, &all, all)
		if (conn->bytes > MUCH && conn->moved + STALLED < now)
			end_conn(conn);
}

/* Makes room if the commands and answers of all connections take too much. */
static void reclaim(void)
{
	uint64_t now = monotonic_ns(), over;
	struct conn *conn;

	if (conns.bytes <= most_bytes() / 4 * 3)
		return;
	if (conns.reclaimed + NSEC_PER_SEC < now) {
		conns.reclaimed = now;
		end_stalled(now);
	}
	over = is_over() ? conns.bytes - most_bytes() : 0;
	while (over && (conn = largest())) {
		say("a connection is ended, as it has %zu bytes, the most of all",
		    conn->bytes);
		end_conn(conn);
		over -= over < conn->bytes ? over : conn->bytes;
	}
}

/* Sends the answers that can be sent, and destroys connections that have ended. */
static void settle_all(void)
{
	struct conn *conn;

	while ((conn = TAILQ_FIRST(&busy))) {
		TAILQ_REMOVE(&busy, conn, next);
		conn->listed = false;
		if (!conn->dead && send_some(conn) && conn->client.quit)
			conn->dead = true;
		join_more(conn);
		if (conn->dead)
			destroy(conn);
		else
			set_events(conn);
	}
}

/*
 * The end of a turn of the loop. Commands that waited for a take, or for room, are carried out by
 * on_more(), because no event will tell of them.
 */
static void finish(void)
{
	struct conn *conn;

	fill_turn();
	TAILQ_FOREACH(conn, &busy, next)
		send_final(conn);
	if (turn_is_begun())
		gather();
	turn_end();
	settle_all();
	reclaim();
	settle_all();
	/* This turn has the jobs that ended connections gave back. */
	turn_end();
	must(sd_event_source_set_enabled(conns.go_on, TAILQ_EMPTY(&more) ?
					 SD_EVENT_OFF : SD_EVENT_ONESHOT));
}

static int on_post(sd_event_source *source, void *unused)
{
	(void)source;
	(void)unused;
	finish();
	return 0;
}

static struct conn *add(int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event wanted = { .events = EPOLLIN, .data.ptr = conn };

	if (!conn || epoll_ctl(conns.epoll, EPOLL_CTL_ADD, fd, &wanted) < 0) {
		say("a connection: %s", strerror(errno));
		free(conn);
		close(fd);
		return NULL;
	}
	conn->fd = fd;
	conn->events = EPOLLIN;
	conn->moved = monotonic_ns();
	conn->client.reply = (struct reply) { &conn->out, 2 };
	conn->client.number = ++conns.number;
	client_init(&conn->client, resume);
	LIST_INSERT_HEAD(&all, conn, all);
	return conn;
}

/* A guest has to leave, because there are too many guests or because its time is over. */
static void show_out(struct guest *guest)
{
	struct conn *conn = (struct conn *)((char *)guest - offsetof(struct conn, guest));

	/* The guest's password may have come meanwhile. */
	if (may_run(conn) && hear(conn))
		run_commands(conn);
	take_serve();
	make_busy(conn);
	if (!guest->waits)
		return;
	door_leave(guest);
	conns.count++;
	conn->dead = true;
}

static void refuse(int fd)
{
	static const char full[] = "-FULL there are too many connections\r\n";

	send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static struct ucred peer_of(int fd)
{
	struct ucred peer = { .uid = -1 };
	socklen_t length = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	return peer;
}

static void tell_address(const struct sockaddr_storage *peer, char address[CLIENT_WORD])
{
	char host[INET6_ADDRSTRLEN], port[8];

	if (!getnameinfo((struct sockaddr *)peer, sizeof(*peer), host, sizeof(host), port,
			 sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(address, CLIENT_WORD, "%s:%s", host, port);
}

static void accept_unix(int fd)
{
	struct conn *conn;

	if (conns.count >= max_connections + (peer_of(fd).uid ? 0 : RESERVED)) {
		refuse(fd);
		return;
	}
	conn = add(fd);
	if (!conn)
		return;
	conn->client.known = true;
	conn->client.uid = peer_of(fd).uid;
	snprintf(conn->client.address, CLIENT_WORD, "unix:%d", (int)peer_of(fd).pid);
	conns.count++;
}

static void accept_tcp(int fd, const struct sockaddr_storage *peer)
{
	bool open = !strcmp(config.password, NO_PASSWORD);
	const int on = 1;
	struct conn *conn;

	if (open && conns.count >= max_connections) {
		refuse(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn = add(fd);
	if (!conn)
		return;
	conn->client.known = open;
	tell_address(peer, conn->client.address);
	if (open)
		conns.count++;
	else
		door_enter(&conn->guest, peer);
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
		if (peer.ss_family == AF_UNIX)
			accept_unix(fd);
		else
			accept_tcp(fd, &peer);
	}
	return 0;
}

void conn_listen(int fd)
{
	sd_event_source *source;

	/* A socket of the service manager may be in blocking mode. */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	must(sd_event_add_io(event, &source, fd, EPOLLIN, on_listener, NULL));
	must(sd_event_source_set_floating(source, true));
	/* The loop must not spin while there is no free file descriptor for one more connection. */
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
		if (may_run(conn) && (conn->backlog || has_sent(conn))) {
			make_busy(conn);
			if (!conn->backlog)
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
 * This function runs before the loop ends, because a command that is carried out now may add a
 * timer or a file to the loop.
 */
static int on_end(sd_event_source *source, void *unused)
{
	struct conn *conn;

	(void)source;
	(void)unused;
	conns.stopping = true;
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
	must(sd_event_add_defer(event, &conns.go_on, on_more, NULL));
	must(sd_event_source_set_enabled(conns.go_on, SD_EVENT_OFF));
	must(sd_event_add_post(event, NULL, on_post, NULL));
	door_start(show_out);
	must(sd_event_add_exit(event, NULL, on_end, NULL));
	turn_at_end(on_turn_end);
}
