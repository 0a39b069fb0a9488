// SPDX-License-Identifier: GPL-2.0-only
/*
 * reap: ends connections of a program that have been idle for long. The program does nothing
 * at all for it, and may even hang. A private wheel has a token for each connection, which
 * nobody touches. When a token comes due, the kernel is asked how long its connection has been
 * idle, and either the connection is ended, or the token waits for the rest of the time.
 */
#include <arpa/inet.h>
#include <linux/capability.h>

#include "reap.h"

/* New connections are looked for so often within the idle time. */
#define LOOKS		3

/* The kernel counts the idle time in ms with 32 bits, which is 49 days. */
#define LEAST_IDLE	TW_SEC(1)
#define MOST_IDLE	TW_DAY(24)

/* The kernel tells the idle time in whole jiffies, which are rounded to ms. */
#define ROUNDING	TW_MS(10)

#define MOST_CONNS	262144
#define EVENTS		64

#define ADDRESS_TEXT	64

/* One end of a connection, as sock_diag has it. */
static void end_text(char *text, size_t size, int family, const uint32_t *address,
		     uint16_t port)
{
	char number[INET6_ADDRSTRLEN];
	bool mapped = family == AF_INET6 &&
		      IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address);

	if (mapped)
		family = AF_INET;
	inet_ntop(family, mapped ? address + 3 : address, number, sizeof(number));
	snprintf(text, size, family == AF_INET ? "%s:%u" : "[%s]:%u", number,
		 ntohs(port));
}

/* A line for a connection that has been ended, or would be. */
static void print(const struct reap *reap, const struct conn *conn, uint64_t idle)
{
	const struct tw_tcp *tcp = &conn->tcp;
	char line[256], time[TIME_TEXT], span[TIME_TEXT];
	char local[ADDRESS_TEXT], remote[ADDRESS_TEXT];
	int length;

	real_text(time, sizeof(time), real_now(), true);
	span_text(span, sizeof(span), idle);
	end_text(local, sizeof(local), tcp->family, tcp->id.idiag_src,
		 tcp->id.idiag_sport);
	end_text(remote, sizeof(remote), tcp->family, tcp->id.idiag_dst,
		 tcp->id.idiag_dport);
	length = snprintf(line, sizeof(line), "%s %s %s %s idle %s\n", time,
			  reap->dry ? "due" : "ended", local, remote, span);
	if (write_line(line, length))
		return;
	if (errno == EPIPE || errno == EINTR)
		signal_end();
	die(STATUS_FAILED, "cannot write what it prints: %s", strerror(errno));
}

/* Ends a connection whose idle time is known, or registers its token again, or forgets it. */
static void end_conn(struct reap *reap, struct conn *conn)
{
	const struct tw_tcp *tcp = &conn->tcp;
	uint64_t idle = tcp->received;
	int err = tcp->error;

	if (!reap->received && tcp->sent < idle)
		idle = tcp->sent;
	if (!err && idle + ROUNDING < reap->idle) {
		conn->state = conn_expect(reap, conn, reap->idle - idle);
		return;
	}
	conn->state = CONN_LEFT;
	if (!err && !reap->dry)
		err = diag_end(conn);
	/* The connection has ended meanwhile. */
	if (err == ENOTCONN || err == ENOENT)
		return;
	if (err)
		exit(diag_trouble(err));
	print(reap, conn, idle);
}

/* Asks about the due connections of one network namespace, and ends the idle ones. */
static void end_some(struct reap *reap, const struct space *space,
		     struct conn **due, size_t count)
{
	struct tw_tcp asked[EVENTS];
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (due[i]->space == space)
			asked[n++] = due[i]->tcp;
	}
	if (tw_tcp_ask(space->diag, asked, n) < 0)
		exit(diag_trouble(errno));
	for (i = 0, n = 0; i < count; i++) {
		if (due[i]->space != space)
			continue;
		due[i]->tcp = asked[n++];
		end_conn(reap, due[i]);
	}
}

static void end_due(struct reap *reap)
{
	ssize_t i, count = tw_events_read(reap->events, reap->wheel, 0);
	struct conn *due[EVENTS];
	struct space *space;
	size_t n = 0;

	if (count < 0)
		die(STATUS_FAILED, "cannot read what is due: %s",
		    tw_strerror(errno));
	for (i = 0; i < count; i++) {
		due[n] = conn_known(reap, tw_events_at(reap->events, i)->id);
		n += !!due[n];
	}
	for (space = reap->spaces; space; space = space->next)
		end_some(reap, space, due, n);
}

/* Runs until the program has ended. Returns what has ended: the process or the control group. */
static const char *run(struct reap *reap)
{
	struct pollfd fds[] = {
		{ .fd = tw_wheel_fd(reap->wheel), .events = POLLIN },
		{ .fd = reap->pidfd, .events = POLLIN },
	};
	uint64_t next = end_after(reap->idle / LOOKS);

	for (;;) {
		fds[0].revents = 0;
		fds[1].revents = 0;
		wait_for(fds, ARRAY_SIZE(fds), next);
		if (stop_signal)
			signal_end();
		if (fds[1].revents)
			return "the process has ended";
		if (fds[0].revents)
			end_due(reap);
		if (end_after(0) < next)
			continue;
		next = end_after(reap->idle / LOOKS);
		if (!reap_look(reap))
			return "the control group has gone";
	}
}

static struct tw_wheel *wheel_for(uint64_t idle)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_NO_COOKIES,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 1024,
		.tick = idle / 64 < TW_SEC(1) ? idle / 64 : TW_SEC(1),
		.max_tokens = MOST_CONNS,
	};
	struct tw_wheel *wheel = tw_wheel_open(&setup);

	if (!wheel)
		exit(device_trouble());
	return wheel;
}

static uint64_t idle_of(const struct args *args)
{
	uint64_t idle = option_span(args, OPT_IDLE, 0);

	if (!args->option[OPT_IDLE])
		die(STATUS_USAGE, "--idle SPAN is needed");
	if (idle < LEAST_IDLE || idle > MOST_IDLE)
		die_usage("--idle", args->option[OPT_IDLE], "from 1s to 24d");
	return idle;
}

enum status verb_reap(const struct args *args)
{
	struct reap reap = {
		.pid = option_number(args, OPT_PID, 1, INT_MAX, 0),
		.port = option_number(args, OPT_LISTEN, 1, UINT16_MAX, 0),
		.idle = idle_of(args),
		.grace = option_span(args, OPT_GRACE, 0),
		.received = args->option[OPT_RECEIVED],
		.dry = args->option[OPT_DRY_RUN],
		.events = tw_events_new(EVENTS),
	};
	enum status status = STATUS_OK;

	if (args->option[OPT_PID] && args->option[OPT_CGROUP])
		die(STATUS_USAGE, "--pid and --cgroup: not both");
	if (!reap.pid && !args->option[OPT_CGROUP] && !reap.port)
		die(STATUS_USAGE, "--pid PID, --cgroup DIR or --listen PORT is needed");
	if (!reap.events)
		die(STATUS_FAILED, "no memory for events");
	signals_begin();
	reap_target(&reap, args);
	reap.wheel = wheel_for(reap.idle);
	/* Each right that is missing is told, and not only the first of them. */
	if (!reap.dry && !may(CAP_NET_ADMIN))
		status = diag_trouble(EPERM);
	reap_look(&reap);
	if (!status && !reap.dry && reap.spaces && diag_can_end(reap.spaces))
		status = diag_trouble(diag_can_end(reap.spaces));
	if (!status)
		complain("%s", run(&reap));
	return status;
}
