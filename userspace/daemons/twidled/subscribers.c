// SPDX-License-Identifier: GPL-2.0-only
/*
 * Subscribers: a program that connects to the events' socket is told every line
 * from then on. Each has a buffer of its own for what its socket does not take at
 * once. A subscriber that falls further behind is dropped, so that nothing waits for it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twidled.h"

struct subscriber {
	sd_event_source *source;	/* the event source, which owns the socket */
	unsigned long number;
	size_t room, start, length;
	char *buffer;			/* from @start on, wrapping */
	bool waiting;			/* for its socket to take more */
};

static struct subscriber *subscribers[MAX_SUBSCRIBERS];

/* @slot: the subscriber's place in the array. */
static void drop(int slot)
{
	struct subscriber *subscriber = subscribers[slot];

	subscribers[slot] = NULL;
	sd_event_source_disable_unref(subscriber->source);
	free(subscriber->buffer);
	free(subscriber);
}

/* Sends as much as the subscriber's socket takes. */
static void send_to(int slot)
{
	struct subscriber *subscriber = subscribers[slot];
	int fd = sd_event_source_get_io_fd(subscriber->source);

	while (subscriber->length && !subscriber->waiting) {
		size_t part = subscriber->room - subscriber->start;
		ssize_t bytes;

		if (part > subscriber->length)
			part = subscriber->length;
		bytes = send(fd, subscriber->buffer + subscriber->start, part,
			     MSG_DONTWAIT | MSG_NOSIGNAL);
		if (bytes >= 0) {
			subscriber->start = (subscriber->start + bytes) %
					    subscriber->room;
			subscriber->length -= bytes;
			continue;
		}
		if (errno != EAGAIN) {
			drop(slot);
			return;
		}
		must(sd_event_source_set_io_events(subscriber->source, EPOLLOUT));
		subscriber->waiting = true;
	}
}

/* The socket takes more, or is closed. What the subscriber sends is ignored. */
static int on_subscriber(sd_event_source *source, int fd, uint32_t events,
			 void *data)
{
	int slot = (int)(intptr_t)data;

	(void)source;
	(void)fd;
	if (events & (EPOLLHUP | EPOLLERR)) {
		drop(slot);
		return 0;
	}
	must(sd_event_source_set_io_events(source, 0));
	subscribers[slot]->waiting = false;
	send_to(slot);
	return 0;
}

static void add(int fd)
{
	static unsigned long number;
	struct subscriber *subscriber;
	int slot = 0;

	while (slot < MAX_SUBSCRIBERS && subscribers[slot])
		slot++;
	if (slot == MAX_SUBSCRIBERS) {
		say("more than %d subscribers: one is refused", MAX_SUBSCRIBERS);
		close(fd);
		return;
	}
	subscriber = calloc(1, sizeof(*subscriber));
	if (subscriber)
		subscriber->buffer = malloc(service.config.buffer);
	if (!subscriber || !subscriber->buffer)
		die(ENOMEM, "a subscriber");
	subscriber->room = service.config.buffer;
	subscriber->number = ++number;
	must(sd_event_add_io(service.event, &subscriber->source, fd, 0,
			     on_subscriber, (void *)(intptr_t)slot));
	must(sd_event_source_set_io_fd_own(subscriber->source, true));
	subscribers[slot] = subscriber;
}

static int on_connection(sd_event_source *source, int listener, uint32_t events,
			 void *unused)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)source;
	(void)events;
	(void)unused;
	if (fd >= 0)
		add(fd);
	return 0;
}

void subscribers_open(const struct address *address)
{
	sd_event_source *source;

	must(sd_event_add_io(service.event, &source, address_listen(address),
			     EPOLLIN, on_connection, NULL));
	must(sd_event_source_set_floating(source, true));
	/* Without a free fd the loop must not spin. */
	must(sd_event_source_set_ratelimit(source, NSEC_PER_SEC / NSEC_PER_USEC,
					   MAX_SUBSCRIBERS));
	sd_event_source_unref(source);
}

void subscribers_tell(const struct timewheel_event *news)
{
	char line[NEWS_LINE];
	size_t length = news_format(news, line), i;
	int slot;

	for (slot = 0; slot < MAX_SUBSCRIBERS; slot++) {
		struct subscriber *subscriber = subscribers[slot];

		if (!subscriber)
			continue;
		if (subscriber->room - subscriber->length < length) {
			say("subscriber %lu is more than %zu bytes behind: dropped",
			    subscriber->number, subscriber->length);
			drop(slot);
			continue;
		}
		for (i = 0; i < length; i++)
			subscriber->buffer[(subscriber->start +
					    subscriber->length++) %
					   subscriber->room] = line[i];
	}
}

void subscribers_flush(void)
{
	int slot;

	for (slot = 0; slot < MAX_SUBSCRIBERS; slot++)
		if (subscribers[slot])
			send_to(slot);
}
