// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watched tokens: each is due when its connection has carried no data for the
 * timeout, and ends with its connection. What goes wrong meanwhile is in
 * watch_faults.c, network namespaces are in watch_namespaces.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tw_named.h"
#include "tw_process.h"
#include "tw_watch.h"

#define PAGE	((__u64)sysconf(_SC_PAGESIZE))
#define SHORT	(80 * TW_MS)	/* a timeout that tests wait for */
#define NAMED	"watch-test"
#define RECEIVED TIMEWHEEL_OPF_RECEIVED

/* A wheel of 1 ms ticks that watches, and a connection. */
FIXTURE(watch) {
	int fd;
	struct tw_conn conn;
	struct tw_span made;	/* when the connection was */
};

FIXTURE_VARIANT(watch) {
	int family;
};

FIXTURE_VARIANT_ADD(watch, v4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(watch, v6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(watch)
{
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000, 0));
	ASSERT_TRUE(tw_connect_spanned(variant->family, &self->conn,
				       &self->made));
}

FIXTURE_TEARDOWN(watch)
{
	tw_disconnect(&self->conn);
	close(self->fd);
}

/* In place of the wheel there is one that tells when connections have ended. */
static void tell_ended(struct __test_metadata *_metadata, FIXTURE_DATA(watch) *self)
{
	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1000,
				    TIMEWHEEL_SETUP_TELL_ENDED));
}

static __u64 later(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Long enough for what follows to be in a later jiffy. */
static void pass_jiffies(void)
{
	tw_sleep_ms(5 * tw_jiffy() / TW_MS);
}

/*
 * P1, P2: the event comes a timeout after the last data, later by a jiffy and a tick
 * at most. A timeout is rounded up to whole jiffies.
 */
TEST_F(watch, idle_connection_is_due_after_its_timeout)
{
	const __u64 timeouts[] = { SHORT, SHORT - 1, 1, SHORT + TW_MS + 7 };
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	struct tw_span span;

	for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++) {
		for (int way = 0; way < 2; way++) {
			ASSERT_TRUE(tw_say(c->a, c->b, &span));
			ASSERT_EQ(0, tw_watch(self->fd, 1, way ? c->a : c->b,
					      timeouts[i], 0));
			/* If that has passed by then, it is due at once. */
			span.to = later(span.to, tw_now(CLOCK_MONOTONIC) -
						 timeouts[i]);
			tw_expect_event(self->fd, 1, 0, &event);
			EXPECT_EQ(0ULL, event.deadline % TW_MS);
			EXPECT_LE(span.from + timeouts[i], event.taken);
			tw_expect_deadline(event.deadline, span, timeouts[i]);
		}
	}
}

/* A connection that has never carried data has been idle since it was made. */
TEST_F(watch, new_connection_counts_from_its_beginning)
{
	struct tw_conn *c = &self->conn;

	pass_jiffies();
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, TW_AN_HOUR, 0));
	tw_expect_deadline(tw_deadline_of(self->fd, 1), self->made, TW_AN_HOUR);
	tw_expect_deadline(tw_deadline_of(self->fd, 2), self->made, TW_AN_HOUR);
}

/* Nobody touches the token: data puts its deadline off, in either direction. */
TEST_F(watch, data_in_either_direction_puts_it_off)
{
	struct tw_conn *c = &self->conn;
	struct tw_span span;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	for (int i = 0; i < 10; i++) {
		pass_jiffies();
		ASSERT_TRUE(i % 2 ? tw_say(c->a, c->b, &span) :
				    tw_say(c->b, c->a, &span));
		tw_expect_deadline(tw_deadline_of(self->fd, 1), span,
				   TW_AN_HOUR);
	}
}

/* P2: a jiffy and a tick late at most, where the machine does not stand still. */
TEST_F(watch, deadline_is_late_by_a_jiffy_and_a_tick)
{
	const __u64 most = tw_jiffy() + TW_MS;
	struct tw_conn *c = &self->conn;
	struct tw_span span;
	__u64 late = ~0ULL;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	for (int i = 0; i < 100 && late > most; i++) {
		ASSERT_TRUE(tw_say(c->a, c->b, &span));
		late = later(tw_deadline_of(self->fd, 1), span.to + TW_AN_HOUR) -
		       span.to - TW_AN_HOUR;
	}
	EXPECT_GE(most, late);
}

/* With RECEIVED only what comes puts it off. */
TEST_F(watch, received_alone_puts_it_off)
{
	struct tw_conn *c = &self->conn;
	struct tw_span span;

	ASSERT_TRUE(tw_say(c->b, c->a, &span));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, RECEIVED));
	for (int i = 0; i < 10; i++) {
		struct tw_span other;

		pass_jiffies();
		ASSERT_TRUE(i % 3 ? tw_say(c->a, c->b, &other) :
				    tw_say(c->b, c->a, &span));
		tw_expect_deadline(tw_deadline_of(self->fd, 1), span,
				   TW_AN_HOUR);
	}
}

/*
 * With RECEIVED a connection that has received nothing is due a timeout after WATCH or
 * after it was made, whichever the kernel knows, although it sends all the time.
 */
TEST_F(watch, received_nothing_counts_from_watch)
{
	struct tw_conn *c = &self->conn;
	struct tw_span span, watched = self->made;
	struct timewheel_event event;

	pass_jiffies();
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, RECEIVED));
	watched.to = tw_now(CLOCK_MONOTONIC);
	while (!tw_readable(self->fd))
		ASSERT_TRUE(tw_say(c->a, c->b, &span));
	tw_expect_event(self->fd, 1, 0, &event);
	tw_expect_deadline(event.deadline, watched, SHORT);
}

/* A connection in use is not due, however often its timeout passes. */
TEST_F(watch, connection_in_use_is_never_due)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	struct timewheel_info info;
	struct tw_span span;

	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	for (__u64 end = span.to + 8 * SHORT; span.to < end;) {
		struct tw_span last = span;

		ASSERT_TRUE(tw_say(c->a, c->b, &span));
		if (!tw_readable(self->fd))
			continue;
		/* Only a machine that stood still has an excuse. */
		ASSERT_LE(last.from + SHORT, tw_now(CLOCK_MONOTONIC));
		if (tw_read(self->fd, &event, 1) == 1) {
			EXPECT_LE(last.from + SHORT, event.taken);
			ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
		}
	}
	tw_expect_event(self->fd, 1, 0, &event);
	tw_expect_deadline(event.deadline, span, SHORT);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_LE(1ULL, info.refiled);
	EXPECT_LE(info.refiled, info.asked);
}

/* A segment that is sent again into a line that was cut counts as sent. */
TEST_F(watch, retransmissions_count_as_sent)
{
	struct tw_conn *c = &self->conn;
	struct tw_span span;
	__u64 again, received;

	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_TRUE(tw_cut(c->b));
	ASSERT_EQ(1, send(c->a, "x", 1, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->a, TW_AN_HOUR, RECEIVED));
	ASSERT_EQ(0, tw_watch(self->fd, 3, c->b, TW_AN_HOUR, 0));
	received = tw_deadline_of(self->fd, 2);
	for (__u32 sent = 1; sent <= 2; sent++) {
		do {
			again = tw_span_begins();
			tw_sleep_ms(1);
		} while (tw_tcp_info(c->a).tcpi_total_retrans < sent &&
			 again < span.to + TW_SOON);
		EXPECT_LE(sent, tw_tcp_info(c->a).tcpi_total_retrans);
		EXPECT_LE(again + TW_AN_HOUR - 10 * TW_MS,
			  tw_deadline_of(self->fd, 1));
	}
	/* Its peer hears none of it. */
	tw_expect_deadline(tw_deadline_of(self->fd, 3), span, TW_AN_HOUR);
	/* Jiffies may have been late for a moment, at either time. */
	EXPECT_LE(received, tw_deadline_of(self->fd, 2) + 100 * TW_MS);
	EXPECT_GE(received + 100 * TW_MS, tw_deadline_of(self->fd, 2));
}

/* Two halves of a connection that is cut come due, each for itself. */
TEST_F(watch, half_open_connection_is_due)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	struct tw_span span;

	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_TRUE(tw_cut(c->b));
	tw_reset(&c->a);
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->b, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	tw_expect_deadline(event.deadline, span, SHORT);
}

/* A connection that ends has no event, and its token goes. */
TEST_F(watch, ended_connection_has_no_event)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_token token;
	struct timewheel_info info;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, SHORT, 0));
	tw_disconnect(c);
	tw_expect_ended(self->fd, 2);
	for (int id = 1; id <= 2; id++)
		EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, id, &token)));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2ULL, info.registered);
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.delivered);
	EXPECT_EQ(0ULL, info.cancelled);
}

/* With TELL_ENDED it has one that says so. */
TEST_F(watch, tell_ended_has_an_event)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	struct timewheel_info info;

	tell_ended(_metadata, self);
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	tw_disconnect(c);
	tw_expect_event(self->fd, 1, ENOTCONN, &event);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2ULL, info.delivered);
	EXPECT_EQ(0ULL, info.pending);
}

/* A program that has shut its half down still has the connection. */
TEST_F(watch, half_closed_connection_is_still_the_programs)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;

	ASSERT_EQ(0, shutdown(c->a, SHUT_WR));
	ASSERT_TRUE(tw_state_becomes(c->b, TCP_CLOSE_WAIT));
	ASSERT_TRUE(tw_state_becomes(c->a, TCP_FIN_WAIT2));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, SHORT, 0));
	tw_expect_event(self->fd, 2, 0, &event);

	/* The other half as well: now it has ended, although its file is open. */
	ASSERT_EQ(0, tw_watch(self->fd, 3, c->a, SHORT, 0));
	close(c->b);
	c->b = -1;
	ASSERT_TRUE(tw_state_becomes(c->a, TCP_CLOSE));
	tw_expect_ended(self->fd, 1);
	EXPECT_EQ(-ENOTCONN, tw_watch(self->fd, 3, c->a, SHORT, 0));
}

/* After close(2) nobody has it, whatever TCP still does for its peer. */
TEST_F(watch, closed_connection_in_fin_wait_has_ended)
{
	struct tw_conn *c = &self->conn;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_TRUE(tw_cut(c->b));
	close(c->a);
	c->a = -1;
	/* Its peer has not heard of it: in FIN_WAIT1. */
	EXPECT_EQ(TCP_ESTABLISHED, tw_tcp_info(c->b).tcpi_state);
	tw_expect_ended(self->fd, 1);
	EXPECT_EQ(TCP_ESTABLISHED, tw_tcp_info(c->b).tcpi_state);
}

TEST_F(watch, closed_connection_in_last_ack_has_ended)
{
	struct tw_conn *c = &self->conn;

	ASSERT_EQ(0, shutdown(c->a, SHUT_WR));
	ASSERT_TRUE(tw_state_becomes(c->b, TCP_CLOSE_WAIT));
	ASSERT_TRUE(tw_state_becomes(c->a, TCP_FIN_WAIT2));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->b, SHORT, 0));
	ASSERT_TRUE(tw_cut(c->a));
	close(c->b);
	c->b = -1;
	tw_expect_ended(self->fd, 1);
	EXPECT_EQ(TCP_FIN_WAIT2, tw_tcp_info(c->a).tcpi_state);
}

TEST_F(watch, reset_connection_has_ended)
{
	struct tw_conn *c = &self->conn;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->b, SHORT, 0));
	tw_reset(&c->a);
	ASSERT_TRUE(tw_state_becomes(c->b, TCP_CLOSE));
	tw_expect_ended(self->fd, 1);
}

/* An id whose connection has ended can be used at once, as an fd's number is. */
TEST_F(watch, ended_connection_is_replaced)
{
	struct timewheel_token token;
	struct timewheel_info info;
	struct timewheel_op op;
	struct tw_conn other;
	__u64 handle;

	op = tw_watch_op(1, self->conn.a, TW_AN_HOUR, 0);
	ASSERT_EQ(0, tw_op(self->fd, &op));
	handle = op.handle;
	ASSERT_TRUE(tw_connect(variant->family, &other));
	EXPECT_EQ(-EEXIST, tw_watch(self->fd, 1, other.a, TW_AN_HOUR, 0));
	EXPECT_EQ(-EEXIST, tw_watch(self->fd, 1, self->conn.a, TW_AN_HOUR, 0));
	tw_disconnect(&self->conn);
	op = tw_watch_op(1, other.a, TW_AN_HOUR, 0);
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED, tw_ret(tw_op(self->fd, &op)));
	EXPECT_NE(handle, op.handle);
	EXPECT_EQ(-ESTALE, tw_ret(tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE, handle,
					 &token)));
	ASSERT_EQ(0, tw_get(self->fd, TIMEWHEEL_OPF_BY_HANDLE, op.handle, &token));
	EXPECT_EQ(tw_socket_cookie(other.a), token.socket);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1ULL, info.ended);
	EXPECT_EQ(1ULL, info.pending);
	EXPECT_EQ(2ULL, info.registered);
	tw_disconnect(&other);
}

/* It is replaced also in a full wheel, and without an event with TELL_ENDED. */
TEST_F(watch, replaced_connection_has_no_event)
{
	struct timewheel_event event;
	struct tw_conn other;

	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1,
				    TIMEWHEEL_SETUP_TELL_ENDED));
	ASSERT_TRUE(tw_connect(variant->family, &other));
	ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
	EXPECT_EQ(-ENOSPC, tw_watch(self->fd, 2, other.a, SHORT, 0));
	tw_disconnect(&self->conn);
	ASSERT_EQ(TIMEWHEEL_RES_REPLACED,
		  tw_watch(self->fd, 1, other.a, 2 * SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	EXPECT_EQ(-EAGAIN, tw_ret(tw_read(self->fd, &event, 1)));
	tw_disconnect(&other);
}

/* Any registration replaces it; a touch is one of the token that is there. */
TEST_F(watch, ended_connection_is_replaced_by_a_plain_token)
{
	struct timewheel_info info;

	ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, TW_AN_HOUR, 0));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, 1, TW_AN_HOUR, 0, NULL)));
	tw_disconnect(&self->conn);
	EXPECT_EQ(0, tw_touch_or_register(self->fd, 1, TW_AN_HOUR, 0));
	EXPECT_EQ(TIMEWHEEL_RES_REPLACED,
		  tw_ret(tw_register(self->fd, 1, TW_AN_HOUR, 0, NULL)));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(self->fd, 1, TW_AN_HOUR, 0, NULL)));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(1ULL, info.ended);
	EXPECT_EQ(1ULL, info.pending);
}

/* A token that is no watched one is not replaced. */
TEST_F(watch, plain_token_is_not_replaced)
{
	ASSERT_EQ(0, tw_register(self->fd, 1, TW_AN_HOUR, 0, NULL));
	EXPECT_EQ(-EEXIST, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
}

/* Any number of tokens may watch a connection, on any number of wheels. */
TEST_F(watch, one_connection_on_two_wheels_and_twice_on_one)
{
	struct tw_conn *c = &self->conn;
	int other = TW_OPEN(O_RDWR | O_NONBLOCK);
	struct timewheel_event event;
	struct tw_span span;

	ASSERT_EQ(0, tw_setup_watch(other, TW_MS, 10, 0));
	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->a, 2 * SHORT, 0));
	ASSERT_EQ(0, tw_watch(other, 1, c->a, SHORT, 0));
	tw_expect_event(self->fd, 1, 0, &event);
	tw_expect_deadline(event.deadline, span, SHORT);
	tw_expect_event(other, 1, 0, &event);
	tw_expect_deadline(event.deadline, span, SHORT);
	tw_expect_event(self->fd, 2, 0, &event);
	tw_expect_deadline(event.deadline, span, 2 * SHORT);
	close(other);
}

/* The connection counts, not the file, the process or the descriptor. */
TEST_F(watch, connection_lives_in_another_process)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_event event;
	int pair[2];
	pid_t child;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = tw_fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* One end is inherited, the other one passed. */
		close(c->b);
		c->b = tw_receive_fd(pair[1], 0);
		close(pair[0]);
		while (read(pair[1], &event, 1) > 0)
			;
		_exit(0);
	}
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, c->b, SHORT, 0));
	ASSERT_EQ(0, tw_send_fd(pair[0], c->b, 0));
	tw_disconnect(c);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { .fd = self->fd, .events = POLLIN };

		ASSERT_EQ(1, poll(&p, 1, TW_SOON / TW_MS));
		ASSERT_EQ(1, tw_read(self->fd, &event, 1));
		EXPECT_EQ(0U, event.error);
	}
	close(pair[0]);
	EXPECT_EQ(0, tw_reap(child));
	close(pair[1]);
}

/* A touch puts a watched token off, too, and a MOVE does not go with it. */
TEST_F(watch, touch_move_and_cancel)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_token token;
	struct tw_span span;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
	EXPECT_EQ(TIMEWHEEL_STATE_PENDING, token.state);
	EXPECT_EQ(TW_AN_HOUR, token.timeout);
	pass_jiffies();
	span.from = tw_now(CLOCK_MONOTONIC);
	EXPECT_EQ(0, tw_touch(self->fd, 0, 1));
	span.to = tw_now(CLOCK_MONOTONIC);
	tw_expect_deadline(tw_deadline_of(self->fd, 1), span, TW_AN_HOUR);
	EXPECT_EQ(0, tw_touch(self->fd, TIMEWHEEL_OPF_BY_HANDLE, token.handle));
	EXPECT_EQ(0, tw_touch_or_register(self->fd, 1, TW_SEC, 0));
	EXPECT_EQ(-EINVAL, tw_ret(tw_move(self->fd, 0, 1, TW_SEC)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_move(self->fd, TIMEWHEEL_OPF_BY_HANDLE,
					  token.handle, 2 * TW_AN_HOUR)));
	EXPECT_LE(span.from + TW_AN_HOUR, tw_deadline_of(self->fd, 1));
	EXPECT_EQ(0, tw_cancel(self->fd, 0, 1));
	EXPECT_EQ(-ENOENT, tw_ret(tw_get(self->fd, 0, 1, &token)));
}

/* What is no connection is touched on the same wheel. */
TEST_F(watch, plain_tokens_go_beside)
{
	struct timewheel_token token;
	struct timewheel_event event;
	__u64 before = tw_now(CLOCK_MONOTONIC);

	ASSERT_EQ(0, tw_register(self->fd, 1, SHORT, 7, NULL));
	ASSERT_EQ(0, tw_register(self->fd, 2, TW_AN_HOUR, 0, NULL));
	ASSERT_EQ(0, tw_watch(self->fd, 3, self->conn.a, TW_AN_HOUR, 0));
	EXPECT_EQ(0, tw_touch(self->fd, 0, 2));
	EXPECT_EQ(0, tw_move(self->fd, 0, 2, 2 * TW_AN_HOUR));
	ASSERT_EQ(0, tw_get(self->fd, 0, 2, &token));
	EXPECT_EQ(0ULL, token.socket);
	EXPECT_EQ(0, token.local_port);
	tw_expect_event(self->fd, 1, 0, &event);
	EXPECT_EQ(7ULL, event.cookie);
	EXPECT_LE(before + SHORT, event.deadline);
}

/* A place in the wheel that watched a connection may have a plain token next. */
TEST_F(watch, place_of_a_watched_token_is_used_again)
{
	struct timewheel_token token;
	struct timewheel_event event;

	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, TW_AN_HOUR, 0));
		ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
		ASSERT_EQ(0, tw_register(self->fd, 1, TW_AN_HOUR, 0, NULL));
		ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
		EXPECT_EQ(0ULL, token.socket);
		ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
	}
	tw_disconnect(&self->conn);
	ASSERT_EQ(0, tw_register(self->fd, 1, 0, 0, NULL));
	tw_expect_event(self->fd, 1, 0, &event);
}

/* GET and LIST tell who the connection is. */
TEST_F(watch, addresses_are_told)
{
	const struct in6_addr mapped = { { {
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1
	} } };
	const struct in6_addr *address = variant->family == AF_INET ?
					 &mapped : &in6addr_loopback;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.token_size = sizeof(struct timewheel_token),
	};
	struct timewheel_token token, listed = { };
	union tw_address name[2];
	__u64 key = 1;
	struct timewheel_get get = {
		.size = sizeof(get), .keys = (uintptr_t)&key,
		.tokens = (uintptr_t)&token, .count = 1, .token_size = 104,
	};

	for (int i = 0; i < 2; i++) {
		socklen_t size = sizeof(name[i]);

		ASSERT_EQ(0, getsockname(i ? self->conn.b : self->conn.a,
					 &name[i].any, &size));
	}
	ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_get(self->fd, 0, 1, &token));
	EXPECT_EQ(tw_socket_cookie(self->conn.a), token.socket);
	EXPECT_EQ(0, memcmp(address, token.local, 16));
	EXPECT_EQ(0, memcmp(address, token.remote, 16));
	/* Both kinds of address have the port in the same place. */
	EXPECT_EQ(ntohs(name[0].v4.sin_port), token.local_port);
	EXPECT_EQ(ntohs(name[1].v4.sin_port), token.remote_port);
	EXPECT_EQ(0U, token.interface);
	list.tokens = (uintptr_t)&listed;
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
	ASSERT_EQ(1U, list.listed);
	/* It was asked anew, perhaps while jiffies were late. */
	tw_expect_deadline(listed.deadline, self->made, TW_AN_HOUR);
	listed.deadline = token.deadline;
	listed.left = token.left;
	listed.cycle = token.cycle;
	listed.slot = token.slot;
	EXPECT_EQ(0, memcmp(&token, &listed, sizeof(token)));
	/* A program of the first release has no room for it. */
	memset(&token, 0x55, sizeof(token));
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_GET, &get));
	EXPECT_EQ(1ULL, token.id);
	EXPECT_EQ(0x5555555555555555ULL, token.socket);
}

/* LIST tells the raised deadline, and finds a token by that. */
TEST_F(watch, listing_asks)
{
	struct tw_conn *c = &self->conn;
	struct timewheel_token listed;
	struct timewheel_list list = {
		.size = sizeof(list), .to = TIMEWHEEL_NEVER, .count = 1,
		.tokens = (uintptr_t)&listed, .token_size = sizeof(listed),
	};
	struct tw_span span;

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	tw_sleep_ms(100);
	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	list.from = span.from + TW_AN_HOUR;
	ASSERT_EQ(0, ioctl(self->fd, TIMEWHEEL_IOC_LIST, &list));
	ASSERT_EQ(1U, list.listed);
	tw_expect_deadline(listed.deadline, span, TW_AN_HOUR);
}

/* A wheel without ids and cookies watches as well. */
TEST_F(watch, wheel_without_ids_and_cookies)
{
	struct timewheel_event event;
	struct timewheel_op op;

	close(self->fd);
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 10, TIMEWHEEL_SETUP_NO_IDS |
				    TIMEWHEEL_SETUP_NO_COOKIES));
	op = tw_watch_op(0, self->conn.a, SHORT, 0);
	ASSERT_EQ(0, tw_op(self->fd, &op));
	op.cookie = 1;
	EXPECT_EQ(-EINVAL, tw_ret(tw_op(self->fd, &op)));
	EXPECT_EQ(-EINVAL, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
	tw_expect_event(self->fd, 0, 0, &event);
	EXPECT_EQ(op.handle, event.handle);
}

/* A poll says readable only when a connection is idle. */
TEST_F(watch, poll_is_readable_only_when_due)
{
	struct epoll_event ready, ask = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct tw_conn *c = &self->conn;
	struct tw_span span;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &ask));
	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, SHORT, 0));
	EXPECT_EQ(1, epoll_wait(epoll, &ready, 1, TW_SOON / TW_MS));
	EXPECT_LE(span.from + SHORT, tw_now(CLOCK_MONOTONIC));
	/* Data after the deadline: it is no longer due. */
	ASSERT_TRUE(tw_say(c->a, c->b, &span));
	if (epoll_wait(epoll, &ready, 1, 0))
		EXPECT_LE(span.from + SHORT, tw_now(CLOCK_MONOTONIC));
	EXPECT_EQ(1, epoll_wait(epoll, &ready, 1, TW_SOON / TW_MS));
	EXPECT_LE(span.from + SHORT, tw_now(CLOCK_MONOTONIC));
	close(epoll);
}

/* A poll, and a read, that find only ended connections sleep on. */
TEST_F(watch, poll_sleeps_on_over_ended_ones)
{
	struct pollfd p = { .fd = self->fd, .events = POLLIN };
	struct epoll_event ready, ask = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct timewheel_event event;
	struct timewheel_info info;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &ask));
	for (int i = 0; i < 3; i++) {
		struct tw_conn other;

		ASSERT_TRUE(tw_connect(variant->family, &other));
		ASSERT_EQ(0, tw_watch(self->fd, i, other.a, (i + 1) * SHORT, 0));
		tw_disconnect(&other);
	}
	EXPECT_EQ(0, poll(&p, 1, 3 * SHORT / TW_MS / 2));
	EXPECT_EQ(0, epoll_wait(epoll, &ready, 1, SHORT / TW_MS));
	tw_expect_ended(self->fd, 3);
	/* A reader that sleeps is woken by what comes behind them. */
	for (int i = 0; i < 3; i++) {
		struct tw_conn other;

		ASSERT_TRUE(tw_connect(variant->family, &other));
		ASSERT_EQ(0, tw_watch(self->fd, i, other.a, SHORT, 0));
		tw_disconnect(&other);
	}
	ASSERT_EQ(0, tw_register(self->fd, 9, 2 * SHORT, 0, NULL));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, 0));
	ASSERT_EQ(1, tw_read(self->fd, &event, 1));
	EXPECT_EQ(9ULL, event.id);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(6ULL, info.ended);
	close(epoll);
}

/* The figures tell each question and each end. */
TEST_F(watch, counters_are_exact)
{
	struct tw_conn *c = &self->conn, other;
	struct timewheel_event event;
	struct timewheel_info info;
	__u64 asked;

	ASSERT_TRUE(tw_connect(variant->family, &other));
	EXPECT_EQ(-EBADF, tw_watch(self->fd, 1, -1, SHORT, 0));
	EXPECT_EQ(-ENOTSOCK, tw_watch(self->fd, 1, self->fd, SHORT, 0));
	/* These do not come to look at the connection. */
	EXPECT_EQ(-EINVAL, tw_watch(self->fd, 1, c->a, 0, 0));
	EXPECT_EQ(-ERANGE, tw_watch(self->fd, 1, c->a, 1ULL << 62, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(2ULL, info.refused);
	EXPECT_EQ(0ULL, info.registered);
	EXPECT_EQ(0ULL, info.pending);

	ASSERT_EQ(0, tw_watch(self->fd, 1, c->a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	asked = info.asked;
	for (int i = 0; i < 10; i++)
		tw_deadline_of(self->fd, 1);
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(asked + 10, info.asked);
	ASSERT_EQ(0, tw_watch(self->fd, 2, other.a, SHORT, 0));
	tw_expect_event(self->fd, 2, 0, &event);
	ASSERT_EQ(0, tw_watch(self->fd, 3, other.a, SHORT, 0));
	tw_disconnect(&other);
	tw_expect_ended(self->fd, 1);
	ASSERT_EQ(0, tw_cancel(self->fd, 0, 1));
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(3ULL, info.registered);
	EXPECT_EQ(1ULL, info.delivered);
	EXPECT_EQ(1ULL, info.cancelled);
	EXPECT_EQ(1ULL, info.ended);
	EXPECT_EQ(0ULL, info.pending);
	EXPECT_EQ(0ULL, info.touched);
	EXPECT_EQ(2ULL, info.refused);
}

/*
 * By how many bytes a wheel grows from FEW to MANY tokens, which have no ids: the table
 * of those grows now and then.
 */
enum { FEW = 1000, MANY = 9000 };

static __u64 grown_by(struct __test_metadata *_metadata, int socket, __u32 flags)
{
	struct timewheel_info few, many;
	struct timewheel_op op = tw_watch_op(0, socket, TW_AN_HOUR, 0);
	int fd = open(TW_DEVICE, O_RDWR | O_CLOEXEC);

	ASSERT_EQ(0, tw_setup(fd, TIMEWHEEL_CLOCK_MONOTONIC, 1024, TW_MS, MANY,
			      flags | TIMEWHEEL_SETUP_NO_IDS, 0));
	if (!(flags & TIMEWHEEL_SETUP_WATCH)) {
		op.code = TIMEWHEEL_OP_REGISTER;
		op.fd = 0;
	}
	for (int i = 0; i < MANY; i++) {
		if (i == FEW)
			ASSERT_EQ(0, tw_info(fd, &few));
		ASSERT_EQ(0, tw_op(fd, &op));
	}
	ASSERT_EQ(0, tw_info(fd, &many));
	close(fd);
	return many.bytes - few.bytes;
}

/* A watched token has at most 48 bytes more than a plain one, which has at most 48. */
TEST_F(watch, bytes_of_a_token)
{
	const __u64 plain = grown_by(_metadata, -1, 0);
	const __u64 watched = grown_by(_metadata, self->conn.a,
				       TIMEWHEEL_SETUP_WATCH);

	EXPECT_LE(plain, watched);
	/* Tokens come in blocks of some pages. */
	EXPECT_GE(48 * (MANY - FEW) + 4 * PAGE, watched - plain);
}

/* A batch watches what it can, and tells for each what it could not. */
TEST_F(watch, batch_with_some_that_fail)
{
	enum { COUNT = 200 };
	static struct timewheel_op ops[COUNT];
	struct timewheel_info info;
	__u32 done;

	for (int i = 0; i < COUNT; i++)
		ops[i] = tw_watch_op(i, i % 4 == 1 ? -1 : i % 4 == 2 ? self->fd :
				     self->conn.a, i % 4 == 3 ? 0 : TW_AN_HOUR, 0);
	ASSERT_EQ(0, tw_batch(self->fd, ops, COUNT, &done));
	ASSERT_EQ((__u32)COUNT, done);
	for (int i = 0; i < COUNT; i++) {
		const int expected[] = { 0, -EBADF, -ENOTSOCK, -EINVAL };

		EXPECT_EQ(expected[i % 4], ops[i].result);
		EXPECT_EQ(!(i % 4), !!ops[i].handle);
	}
	ASSERT_EQ(0, tw_info(self->fd, &info));
	EXPECT_EQ(COUNT / 4ULL, info.pending);
	EXPECT_EQ(COUNT / 2ULL, info.refused);
}

/* A wheel may end while it watches, and leaves the connection as it is. */
TEST_F(watch, wheel_is_closed_while_it_watches)
{
	struct tw_span span;

	ASSERT_EQ(0, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
	ASSERT_EQ(0, tw_watch(self->fd, 2, self->conn.b, 1, 0));
	close(self->fd);
	EXPECT_TRUE(tw_say(self->conn.a, self->conn.b, &span));
	self->fd = TW_OPEN(O_RDWR | O_NONBLOCK);
	ASSERT_EQ(0, tw_setup_watch(self->fd, TW_MS, 1, 0));
	EXPECT_EQ(0, tw_watch(self->fd, 1, self->conn.a, SHORT, 0));
}

/* What other files of a named wheel do cannot make a connection come due earlier. */
TEST_F(watch, other_files_cannot_make_it_due_earlier)
{
	const struct timewheel_setup setup = {
		.clock = TIMEWHEEL_CLOCK_MONOTONIC, .slots = 1024, .tick = TW_MS,
		.max_tokens = 10, .flags = TIMEWHEEL_SETUP_WATCH,
	};
	struct timewheel_token token;
	struct tw_conn other;
	struct tw_span span;
	int device = TW_OPEN(O_RDWR), one, two;

	TW_NEEDS_ROOT();
	tw_destroy_named(device, NAMED);
	ASSERT_EQ(0, tw_create_named(device, NAMED, setup));
	one = tw_open_named(NAMED, O_RDWR | O_NONBLOCK);
	two = tw_open_named(NAMED, O_RDWR | O_NONBLOCK);
	ASSERT_LE(0, one);
	ASSERT_LE(0, two);
	ASSERT_TRUE(tw_connect(variant->family, &other));
	ASSERT_TRUE(tw_say(self->conn.a, self->conn.b, &span));
	ASSERT_EQ(0, tw_watch(one, 1, self->conn.a, TW_AN_HOUR, 0));
	ASSERT_EQ(0, tw_get(two, 0, 1, &token));
	EXPECT_EQ(-EEXIST, tw_watch(two, 1, other.a, 1, 0));
	EXPECT_EQ(-EEXIST, tw_watch(two, 1, self->conn.a, 1, 0));
	EXPECT_EQ(-EEXIST, tw_ret(tw_register(two, 1, 0, 0, NULL)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_move(two, 0, 1, 1)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_move(two, TIMEWHEEL_OPF_ABSOLUTE, 1, 1)));
	EXPECT_EQ(-EINVAL, tw_ret(tw_answer(two, TIMEWHEEL_OP_KICK, 0, 1, 0, 0)));
	EXPECT_LE(0, tw_touch_or_register(two, 1, 1, 0));
	EXPECT_LE(span.from + TW_AN_HOUR, tw_deadline_of(one, 1));
	/* A look by the other file asks the connection as well. */
	ASSERT_TRUE(tw_say(self->conn.a, self->conn.b, &span));
	EXPECT_LE(span.from + TW_AN_HOUR, tw_deadline_of(two, 1));
	EXPECT_EQ(0, tw_destroy_named(device, NAMED));
	close(one);
	close(two);
	close(device);
	tw_disconnect(&other);
}

TEST_HARNESS_MAIN
