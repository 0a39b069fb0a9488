// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Work that has to be done although workers die: a token is a customer to be
 * reminded of an order, and ends when a worker says that it has been done.
 *
 * Two workers share a named wheel. Each opens it by itself: tokens that a worker holds come
 * back when its open file is released, and a file that both had by fork(2) would stay open in
 * the other worker. A worker reads one event at a time, because it holds the token of each
 * event that it has read. Reminding twice must do no harm, since a worker may die between the
 * work and its ack.
 *
 *	cc worker.c $(pkg-config --cflags --libs libtimewheel)
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <timewheel.h>

#define NAME	"example-worker"
#define ORDERS	5

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* Reminds of an order, which goes wrong in three ways. Returns true when it is done. */
static bool remind(struct tw_wheel *wheel, const struct timewheel_event *event)
{
	bool first = event->delivery == 1;
	struct timewheel_op op;

	printf("%d: order %llu, delivery %u\n", getpid(), event->id,
	       event->delivery);
	if (event->id == 2 && first)
		return false;
	if (event->id == 3) {
		/* The work will take longer than the lease. */
		tw_op_extend(&op, event->id, event->delivery, TW_MIN(1), 0);
		if (tw_wheel_run(wheel, &op) < 0)
			fail("extend");
	}
	if (event->id == 4 && first)
		raise(SIGKILL);
	return true;
}

/* Works until the wheel is destroyed. Returns the worker's exit status. */
static int work(void)
{
	struct tw_wheel *wheel = tw_wheel_open_named(NAME, O_RDWR);
	struct tw_events *events = tw_events_new(1);
	struct timewheel_op op;
	int status;

	if (!wheel || !events)
		fail("no wheel");
	while (tw_events_read(events, wheel, TIMEWHEEL_NEVER) > 0) {
		const struct timewheel_event *event = tw_events_at(events, 0);

		if (remind(wheel, event))
			tw_op_ack(&op, event->id, event->delivery, 0);
		else
			tw_op_nack(&op, event->id, event->delivery, TW_MS(100),
				   0);
		/* ESTALE: the answer is too late, another worker has got the token since. */
		if (tw_wheel_run(wheel, &op) < 0 && errno != ESTALE)
			break;
	}
	status = errno != ENODEV;
	tw_wheel_close(wheel);
	tw_events_free(events);
	return status;
}

/* Makes the wheel, and a token for each order. Ends the program without a device. */
static struct tw_wheel *begin(void)
{
	const struct timewheel_setup setup = {
		.size = sizeof(setup),
		.clock = TIMEWHEEL_CLOCK_BOOTTIME,
		.slots = 60,
		.tick = TW_MS(1),
		.max_tokens = ORDERS,
		.lease = TW_SEC(10),
		.max_held = ORDERS,
	};
	struct tw_wheel *wheel = tw_wheel_open_or_create(NAME, &setup, O_RDWR);
	struct timewheel_op op;

	if (!wheel && (errno == ENOENT || errno == ENODEV)) {
		puts("no device: is the module loaded?");
		exit(4);
	}
	if (!wheel)
		fail("no wheel");
	for (uint64_t order = 1; order <= ORDERS; order++) {
		tw_op_register(&op, order, TW_MS(10 * order), 0, 0);
		if (tw_wheel_run(wheel, &op) < 0)
			fail("register");
	}
	return wheel;
}

/* Waits until all has been dealt with. */
static struct timewheel_info finish(struct tw_wheel *wheel)
{
	struct timewheel_info info = { .size = sizeof(info) };

	do {
		poll(NULL, 0, 10);
		if (tw_wheel_info(wheel, &info) < 0)
			fail("info");
	} while (info.acked < ORDERS);
	return info;
}

int main(void)
{
	struct tw_wheel *wheel;
	struct timewheel_info info;
	int status, killed = 0;

	setlinebuf(stdout);
	wheel = begin();
	for (int worker = 0; worker < 2; worker++)
		if (!fork())
			_exit(work());
	info = finish(wheel);
	tw_wheel_close(wheel);
	if (tw_wheel_destroy(NAME) < 0)
		fail("destroy");
	while (wait(&status) > 0)
		killed += WIFSIGNALED(status);
	printf("%llu orders done, by %llu deliveries\n", info.acked,
	       info.delivered);
	return info.acked != ORDERS || info.delivered != ORDERS + 2 || killed != 1;
}
