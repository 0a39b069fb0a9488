// SPDX-License-Identifier: GPL-2.0-only
/*
 * Subscribers: a program that connects to the events' socket is told who is online, and every
 * line from then on. Each subscriber has a buffer of its own for lines that its socket does not
 * take at once. A subscriber that falls further behind is dropped, so that nothing waits for it.
 *
 * Who is online is what the wheel says at the moment when the subscriber is accepted.
 * Until then all news that this process knows have been told to the subscribers, and
 * all that come later are about changes of this list. So nothing is missing between
 * the list and the lines behind it, and nothing is in both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "twidled.h"

struct subscriber {
	sd_event_source *source;	/* the event source, which owns the socket */
	unsigned long number;
	size_t room, start, length;
	char *buffer;			/* from @start on, wrapping */
	char *list;			/* who is online, sent before the buffer */
	size_t list_start, list_end;
	bool waiting;			/* waits until its socket takes more */
};

static struct subscriber *subscribers[MAX_SUBSCRIBERS];

/* The list of users who are online is being made here. */
static FILE *list;
static uint64_t listed;

/* @slot is the subscriber's place in the array. */
static void drop(int slot)
{
	struct subscriber *subscriber = subscribers[slot];

	subscribers[slot] = NULL;
	sd_event_source_disable_unref(subscriber->source);
	free(subscriber->buffer);
	free(subscriber->list);
	free(subscriber);
}

/* Finds the text that is sent next. Returns its length, which is not 0. */
static size_t next_part(const struct subscriber *subscriber, const char **part)
{
	size_t length = subscriber->room - subscriber->start;

	if (subscriber->list) {
		*part = subscriber->list + subscriber->list_start;
		return subscriber->list_end - subscriber->list_start;
	}
	*part = subscriber->buffer + subscriber->start;
	return length < subscriber->length ? length : subscriber->length;
}

static void sent(struct subscriber *subscriber, size_t bytes)
{
	if (!subscriber->list) {
		subscriber->start = (subscriber->start + bytes) %
				    subscriber->room;
		subscriber->length -= bytes;
		return;
	}
	subscriber->list_start += bytes;
	if (subscriber->list_start == subscriber->list_end) {
		free(subscriber->list);
		subscriber->list = NULL;
	}
}

/* Sends as much as the subscriber's socket takes. */
static void send_to(int slot)
{
	struct subscriber *subscriber = subscribers[slot];
	int fd = sd_event_source_get_io_fd(subscriber->source);

	while ((subscriber->list || subscriber->length) && !subscriber->waiting) {
		const char *part;
		size_t length = next_part(subscriber, &part);
		ssize_t bytes = send(fd, part, length,
				     MSG_DONTWAIT | MSG_NOSIGNAL);

		if (bytes >= 0) {
			sent(subscriber, bytes);
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

/* The socket takes more data, or is closed. Data that the subscriber sends is ignored. */
static int on_subscriber(sd_event_source *source, int fd, uint32_t events,
			 void *data)
{
	int slot = (int)(intptr_t)data;

	if (events & (EPOLLHUP | EPOLLERR)) {
		drop(slot);
		return 0;
	}
	must(sd_event_source_set_io_events(source, 0));
	subscribers[slot]->waiting = false;
	send_to(slot);
	return 0;
}

static void list_user(uint64_t id)
{
	char number[NAME_SIZE];

	fprintf(list, "is-online %s\n", names_text(id, number));
	listed++;
}

static void make_list(struct subscriber *subscriber)
{
	char time[TIME_SIZE];

	list = open_memstream(&subscriber->list, &subscriber->list_end);
	if (!list)
		die(errno, "a list of users");
	listed = 0;
	wheel_each(list_user);
	news_time(news_wall_now(), time);
	fprintf(list, "listed %llu %s\n", (unsigned long long)listed, time);
	if (fclose(list))
		die(errno, "a list of users");
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
	make_list(subscriber);
	send_to(slot);
}

static int on_connection(sd_event_source *source, int listener, uint32_t events,
			 void *unused)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

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
	/* The loop must not spin while there is no free file descriptor. */
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
