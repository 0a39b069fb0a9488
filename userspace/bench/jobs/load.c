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
/* Only the first answers are timed, so many of them. */
#define TIMED	(1 << 21)

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
	int waiting;		/* connections that wait for an answer */
	float *times;
	size_t timed;
	struct result result;
};

static void send_next(struct load *load, struct conn *conn)
{
	enum command command = PUT;

	if (load->work)
		command = conn->command == TAKE && conn->got ? ACK : TAKE;
	conn->got = false;
	load->waiting++;
	conn->sent = now();
	load->crew->kind->speaker->send(load->crew->kind, conn, command);
	conn->command = command;
}

static void take_answer(struct load *load, struct conn *conn, double at)
{
	load->waiting--;
	if (load->timed < TIMED)
		load->times[load->timed++] = (at - conn->sent) * 1000;
	load->result.done += conn->command != TAKE;
	/* A taken job is always acked, and the next load finds it gone. */
	if (conn->command == TAKE ? conn->got : at < load->until)
		send_next(load, conn);
}

static int compare(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void sum_up(struct load *load)
{
	qsort(load->times, load->timed, sizeof(*load->times), compare);
	load->result.median = load->times[load->timed / 2];
	load->result.p99 = load->times[load->timed * 99 / 100];
	free(load->times);
}

struct result crew_load(struct crew *crew, bool work, double seconds)
{
	struct load load = {
		.crew = crew, .work = work, .times = malloc(TIMED * sizeof(*load.times)),
	};
	struct epoll_event ready[READY];
	double begin = now(), at = begin;

	NEED(load.times);
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
	/* Many answers may come at once, and the last ones count, too, with their time. */
	load.result.seconds = at - begin;
	sum_up(&load);
	return load.result;
}
