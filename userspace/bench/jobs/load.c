// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections that put jobs, or take and ack them: each sends its next command when
 * the answer to the last one has come.
 */
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "bench.h"

#define READY	256

struct crew crew_connect(const struct kind *kind, int count)
{
	struct crew crew = {
		.kind = kind,
		.count = count,
		.conns = calloc(count, sizeof(*crew.conns)),
		.epoll = epoll_create1(EPOLL_CLOEXEC),
	};

	NEED(crew.conns && crew.epoll >= 0);
	for (int i = 0; i < count; i++) {
		struct conn *conn = &crew.conns[i];
		struct epoll_event wanted = {
			.events = EPOLLIN,
			.data.ptr = conn,
		};

		kind->speaker->connect(conn);
		NEED(!epoll_ctl(crew.epoll, EPOLL_CTL_ADD, conn->fd, &wanted));
	}
	return crew;
}

void crew_close(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++)
		crew->kind->speaker->close(&crew->conns[i]);
	close(crew->epoll);
	free(crew->conns);
}

struct load {
	struct crew *crew;
	bool work;
	double until;
	int waiting;		/* connections whose answer has not come */
	struct result result;
};

static void send_next(struct load *load, struct conn *conn)
{
	enum command command = PUT;

	if (load->work)
		command = conn->command == TAKE && conn->got ? ACK : TAKE;
	conn->got = false;
	load->waiting++;
	load->crew->kind->speaker->send(load->crew->kind, conn, command);
	conn->command = command;
}

static void take_answer(struct load *load, struct conn *conn, double at)
{
	load->waiting--;
	load->result.done += conn->command != TAKE;
	/* What has been taken is acked, so that the next load finds it gone. */
	if (conn->command == TAKE ? conn->got : at < load->until)
		send_next(load, conn);
}

struct result crew_load(struct crew *crew, bool work, double seconds)
{
	struct load load = { .crew = crew, .work = work };
	struct epoll_event ready[READY];
	double begin = now(), at = begin;

	load.until = begin + seconds;
	for (int i = 0; i < crew->count; i++) {
		crew->conns[i].command = PUT;
		send_next(&load, &crew->conns[i]);
	}
	while (load.waiting) {
		int n = epoll_wait(crew->epoll, ready, READY, -1);

		at = now();
		for (int i = 0; i < n; i++) {
			struct conn *conn = ready[i].data.ptr;

			if (crew->kind->speaker->receive(crew->kind, conn))
				take_answer(&load, conn, at);
		}
	}
	/* Many answers may come at once: the last ones count, too, with their time. */
	load.result.seconds = at - begin;
	return load.result;
}
