// SPDX-License-Identifier: GPL-2.0-only
/*
 * reap: ends connections of a program that have been idle for long. A private wheel
 * watches them, so the program does nothing at all, and may even hang. When a
 * connection comes due, the kernel is asked once more how long it has been idle, and
 * ends it; its cookie says that it is still the same connection.
 */
#include <arpa/inet.h>
#include <linux/capability.h>

#include "reap.h"

/* How often new connections are looked for in the idle time. */
#define LOOKS		3

/* With 1000 jiffies a second, the kernel counts to 2^31 of them in 24.8 days. */
#define LEAST_IDLE	TW_SEC(1)
#define MOST_IDLE	TW_DAY(24)

/* The kernel tells the idle time in whole jiffies, which are rounded to ms. */
#define ROUNDING	TW_MS(10)

#define MOST_CONNS	262144
#define EVENTS		64

/* Watches a connection, of which @fd is a file. Returns what it is from now on. */
enum conn_state conn_watch(struct reap *reap, const struct conn *conn, int fd)
{
	struct timewheel_op op;

	tw_op_watch(&op, conn->cookie, fd, reap->idle, 0,
		    reap->received ? TIMEWHEEL_OPF_RECEIVED : 0);
	if (tw_wheel_run(reap->wheel, &op) >= 0)
		return CONN_WATCHED;
	return tell_refused(reap, errno);
}

/* One end of a connection, as sock_diag has it. */
static void end_text(char *text, size_t size, int family, const uint32_t *address,
		     uint16_t port)
{
	const uint32_t mapped[] = { 0, 0, htonl(0xffff), *address };

	address_text(text, size,
		     (const uint8_t *)(family == AF_INET ? mapped : address),
		     ntohs(port));
}

/* A line for a connection that has been ended, or would be. */
static void print(const struct reap *reap, const struct conn *conn, uint64_t idle)
{
	char line[256], time[TIME_TEXT], span[TIME_TEXT];
	char local[ADDRESS_TEXT], remote[ADDRESS_TEXT];
	int length;

	real_text(time, sizeof(time), real_now(), true);
	span_text(span, sizeof(span), idle);
	end_text(local, sizeof(local), conn->family, conn->id.idiag_src,
		 conn->id.idiag_sport);
	end_text(remote, sizeof(remote), conn->family, conn->id.idiag_dst,
		 conn->id.idiag_dport);
	length = snprintf(line, sizeof(line), "%s %s %s %s idle %s\n", time,
			  reap->dry ? "due" : "ended", local, remote, span);
	if (write_line(line, length))
		return;
	if (errno == EPIPE || errno == EINTR)
		signal_end();
	die(STATUS_FAILED, "cannot write what it prints: %s", strerror(errno));
}

/* Ends a connection that is due, unless it has carried data or has ended meanwhile. */
static void end_conn(const struct reap *reap, struct conn *conn)
{
	uint64_t idle;
	int err = diag_idle(conn, reap->received, &idle);

	if (!err && idle + ROUNDING < reap->idle) {
		conn->state = CONN_NEW;
		return;
	}
	if (!err && !reap->dry)
		err = diag_end(conn);
	conn->state = CONN_LEFT;
	if (err && err != ENOENT)
		exit(diag_trouble(err));
	if (!err)
		print(reap, conn, idle);
}

static void end_due(struct reap *reap)
{
	ssize_t i, count = tw_events_read(reap->events, reap->wheel, 0);

	if (count < 0)
		die(STATUS_FAILED, "cannot read what is due: %s",
		    tw_strerror(errno));
	for (i = 0; i < count; i++) {
		const struct timewheel_event *event = tw_events_at(reap->events, i);
		struct conn *conn = conn_known(reap, event->id);

		if (conn && event->error)
			conn->state = tell_refused(reap, event->error);
		else if (conn)
			end_conn(reap, conn);
	}
}

/* Returns what has gone: the program has ended. */
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

static struct tw_wheel *wheel_to_watch(uint64_t idle)
{
	struct timewheel_caps caps = { .size = sizeof(caps) };
	struct timewheel_setup setup = {
		.size = sizeof(setup),
		.flags = TIMEWHEEL_SETUP_WATCH | TIMEWHEEL_SETUP_NO_COOKIES,
		.clock = TIMEWHEEL_CLOCK_MONOTONIC,
		.slots = 1024,
		.tick = idle / 64 < TW_SEC(1) ? idle / 64 : TW_SEC(1),
		.max_tokens = MOST_CONNS,
	};
	struct tw_wheel *wheel;

	if (tw_device_caps(&caps) < 0)
		exit(device_trouble());
	if (!(caps.setup_flags & TIMEWHEEL_SETUP_WATCH))
		die(STATUS_FAILED,
		    "the module cannot watch connections: it is older than this twctl, or the kernel has no IPv4");
	wheel = tw_wheel_open(&setup);
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

	if (!args->option[OPT_PID] == !args->option[OPT_CGROUP])
		die(STATUS_USAGE, "--pid PID or --cgroup DIR is needed, and not both");
	if (!reap.events)
		die(STATUS_FAILED, "no memory for events");
	signals_begin();
	reap_target(&reap, args);
	reap.wheel = wheel_to_watch(reap.idle);
	/* Each right that is missing is told, not only the first. */
	if (!reap.dry && !may(CAP_NET_ADMIN))
		status = diag_trouble(EPERM);
	reap_look(&reap);
	if (!status && !reap.dry && reap.spaces && diag_can_end(reap.spaces))
		status = diag_trouble(diag_can_end(reap.spaces));
	if (!status)
		complain("%s", run(&reap));
	return status;
}
