// SPDX-License-Identifier: GPL-2.0-only
/*
 * Job two: messages that must be sent much later. This program moves the hand of a
 * MANUAL wheel, so that two days pass in a moment. The text messages are due at a
 * time of the real wall clock.
 */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "demo.h"

#define ORDERS		10000
#define FIRST_ORDER	700000ULL
#define HOUR		3600ULL		/* ticks, and the ring's slots */
#define DELAY		(48 * HOUR)
#define END		(62 * HOUR)

/* Orders that the program asks about meanwhile and never changes; and the one shown. */
#define EVERY		100
#define EXAMPLE		5000

#define MESSAGES	1000
#define PHONE		4915000000ULL

/* The expected tick of each order's message; 0 for none. */
static __u64 due[ORDERS];

static struct orders {
	int wheel;
	unsigned int cancelled, moved, delivered, wrong_tick, wrong_slot;
} orders;

/* The hour's orders are closed one after the other. */
static __u64 closed_at(unsigned int order)
{
	return order * HOUR / ORDERS;
}

static void take_orders(void)
{
	struct timewheel_op ops[ORDERS / HOUR + 1];
	unsigned int order = 0, n;
	__u64 second;

	for (second = 0; second < HOUR; second++) {
		wheel_advance(orders.wheel, second);
		for (n = 0; order < ORDERS && closed_at(order) == second; n++) {
			ops[n] = op_register(FIRST_ORDER + order, DELAY * SEC);
			due[order++] = second + DELAY;
		}
		wheel_batch(orders.wheel, ops, n);
	}
	wheel_advance(orders.wheel, HOUR);
}

/* One in ten is cancelled; one in twenty moved by half a day, back or forth. */
static void change_minds(void)
{
	static struct timewheel_op ops[ORDERS];
	unsigned int order, n = 0;

	for (order = 0; order < ORDERS; order++) {
		__u64 id = FIRST_ORDER + order;

		if (order % 10 == 3) {
			ops[n++] = op_cancel(id);
			due[order] = 0;
			orders.cancelled++;
		} else if (order % 20 == 7) {
			if (order % 40 == 7)
				due[order] += 12 * HOUR;
			else
				due[order] -= 12 * HOUR;
			ops[n++] = op_move_to(id, due[order] * SEC);
			orders.moved++;
		}
	}
	wheel_batch(orders.wheel, ops, n);
}

/* Reads the messages due while the hand is on @hand; no other may come. */
static void send_messages(__u64 hand)
{
	struct timewheel_event events[64];
	size_t i, n;

	while ((n = wheel_read(orders.wheel, events, 64))) {
		for (i = 0; i < n; i++) {
			__u64 order = events[i].id - FIRST_ORDER;

			if (order >= ORDERS || due[order] != hand ||
			    events[i].deadline != hand * SEC)
				orders.wrong_tick++;
			else
				due[order] = 0;
			orders.delivered++;
		}
	}
}

static void show_example(const struct timewheel_token *token, __u64 hour)
{
	__u64 to_go = token->left / SEC;

	if (hour == 1 || hour % 12 == 0 || hour == 47)
		printf("  %4llu h     %2llu h %02llu min      %4u   %9llu\n", hour,
		       to_go / HOUR, to_go % HOUR / 60, token->slot,
		       token->cycle);
}

/*
 * Checks the slots and Cycle-Nums that the wheel reports for some orders. The first
 * one is due on the hour, a whole number of laps ahead. There d / slots is one lap more
 * than the hand still makes before the lap in which the order is due.
 */
static void look_at_orders(__u64 hand)
{
	struct timewheel_token tokens[ORDERS / EVERY];
	unsigned int order, i, n = 0;
	__u64 ids[ORDERS / EVERY];

	for (order = 0; order < ORDERS; order += EVERY)
		if (due[order] > hand)
			ids[n++] = FIRST_ORDER + order;
	wheel_get(orders.wheel, ids, tokens, n);
	for (i = 0; i < n; i++) {
		__u64 tick = due[ids[i] - FIRST_ORDER], to_go = tick - hand;

		if (tokens[i].id != ids[i] || tokens[i].slot != tick % HOUR ||
		    tokens[i].cycle != (to_go - 1) / HOUR ||
		    tokens[i].deadline != tick * SEC ||
		    tokens[i].left != to_go * SEC)
			orders.wrong_slot++;
		if (ids[i] == FIRST_ORDER + EXAMPLE)
			show_example(&tokens[i], hand / HOUR);
	}
}

/* Jumps from hour to hour, but walks where messages are due. */
static void pass_time(void)
{
	__u64 hand;

	for (hand = HOUR; hand <= END;) {
		__u64 hour = hand / HOUR;
		bool walk = hour == 36 || hour == 48 || hour == 60;

		if (hand % HOUR == 0)
			look_at_orders(hand);
		send_messages(hand);
		hand += walk ? 1 : HOUR;
		wheel_advance(orders.wheel, hand);
	}
}

void delayed_orders(void)
{
	unsigned int order, missing = 0;
	struct timewheel_info info;
	__u64 start;

	orders.wheel = wheel_open(TIMEWHEEL_CLOCK_MANUAL, HOUR, ORDERS);
	printf("%u orders are closed within an hour; each asks for stars 48 h\n"
	       "later. The ring has %llu slots of one second; for longer delays a\n"
	       "token has a Cycle-Num: whole laps that the hand still makes first.\n"
	       "This wheel's hand is moved by this program.\n\n",
	       ORDERS, HOUR);
	start = clock_ns(CLOCK_MONOTONIC);
	take_orders();
	change_minds();
	printf("Order %llu, as the hours pass:\n\n"
	       "    hand          to go      slot   Cycle-Num\n",
	       FIRST_ORDER + EXAMPLE);
	pass_time();
	printf("\n%llu hours passed in %.0f ms.\n", END / HOUR,
	       (double)(clock_ns(CLOCK_MONOTONIC) - start) / MS);

	for (order = 0; order < ORDERS; order++)
		missing += due[order] != 0;
	info = wheel_info(orders.wheel);
	close(orders.wheel);

	figure("orders cancelled, moved, delivered", "%u, %u, %u",
	       orders.cancelled, orders.moved, orders.delivered);
	figure("tokens filed again on the way in", "%llu", info.refiled);
	claim(orders.delivered == ORDERS - orders.cancelled && !missing &&
	      !info.pending, "of %u orders the %u not cancelled came due, once",
	      ORDERS, orders.delivered);
	claim(!orders.wrong_tick,
	      "each in its very second, %u moved ones in their new one",
	      orders.moved);
	claim(!orders.wrong_slot,
	      "slot and Cycle-Num were right at every hour, of %u orders",
	      ORDERS / EVERY);
}

static const char *wall(__u64 ns)
{
	static char text[32];
	time_t seconds = ns / SEC;
	size_t n = strftime(text, sizeof(text), "%T", localtime(&seconds));

	snprintf(text + n, sizeof(text) - n, ".%03llu", ns % SEC / MS);
	return text;
}

/* Reads until all messages are there or half a minute has passed. */
static void await_messages(int wheel, __u64 when)
{
	struct pollfd ready = { .fd = wheel, .events = POLLIN };
	struct timewheel_event events[64];
	unsigned int delivered = 0, early = 0, wrong = 0;
	__u64 now = 0, first = 0;
	size_t i, n;

	do {
		n = wheel_read(wheel, events, 64);
		now = clock_ns(CLOCK_REALTIME);
		if (n && !first)
			first = now;
		for (i = 0; i < n; i++) {
			early += events[i].taken < when || now < when;
			wrong += events[i].deadline != when;
		}
		delivered += n;
	} while (delivered < MESSAGES && now < when + 30 * SEC &&
		 poll(&ready, 1, 1000) >= 0);

	printf("The first was read at %s", wall(first));
	printf(", the last at %s.\n", wall(now));
	figure("text messages: first and last after", "%.3f and %.3f ms",
	       (double)(first - when) / MS, (double)(now - when) / MS);
	claim(delivered == MESSAGES && !wrong,
	      "all %u messages were due in that second", delivered);
	claim(!early, "none of them came before");
}

void text_messages(void)
{
	static struct timewheel_op ops[MESSAGES];
	int wheel = wheel_open(TIMEWHEEL_CLOCK_REALTIME, 60, MESSAGES);
	__u64 when = (clock_ns(CLOCK_REALTIME) / SEC + 4) * SEC;
	unsigned int i;

	for (i = 0; i < MESSAGES; i++)
		ops[i] = op_register_at(PHONE + i, when);
	wheel_batch(wheel, ops, MESSAGES);
	printf("%u messages are to be sent at %s.\n", MESSAGES, wall(when));
	printf("They were all registered at   %s.\n",
	       wall(clock_ns(CLOCK_REALTIME)));
	await_messages(wheel, when);
	close(wheel);
}
