// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections that have not given their password yet: see door.h.
 */
#include <string.h>

#include "door.h"

TAILQ_HEAD(guests, guest);

static struct {
	struct guests guests;		/* the oldest guest first */
	unsigned int count;
	sd_event_source *timer;
	void (*end)(struct guest *guest);
} door = { .guests = TAILQ_HEAD_INITIALIZER(door.guests) };

static void set_timer(void)
{
	struct guest *first = TAILQ_FIRST(&door.guests);

	if (first)
		must(sd_event_source_set_time(door.timer, first->end));
	must(sd_event_source_set_enabled(door.timer,
					 first ? SD_EVENT_ONESHOT : SD_EVENT_OFF));
}

static int on_timer(sd_event_source *source, uint64_t now, void *unused)
{
	struct guest *first;

	while ((first = TAILQ_FIRST(&door.guests)) && first->end <= now)
		door.end(first);
	set_timer();
	return 0;
}

void door_start(void (*end)(struct guest *guest))
{
	door.end = end;
	must(sd_event_add_time(event, &door.timer, CLOCK_MONOTONIC, 0, 0, on_timer, NULL));
	set_timer();
}

/*
 * The owner of an IPv6 address has all addresses with the same first half, so the first half
 * counts. An IPv6 socket shows an IPv4 address in the last half, which counts then.
 */
static struct in6_addr address_of(const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)peer;
	struct in6_addr from = { };

	if (peer->ss_family == AF_INET)
		memcpy(&from, &((struct sockaddr_in *)peer)->sin_addr,
		       sizeof(struct in_addr));
	else if (peer->ss_family == AF_INET6)
		memcpy(&from, &v6->sin6_addr,
		       IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) ? sizeof(from) : 8);
	return from;
}

/* @alike is the number of guests that have this address. */
static struct guest *first_alike(const struct in6_addr *from, unsigned int *alike)
{
	struct guest *guest, *first = NULL;

	*alike = 0;
	TAILQ_FOREACH(guest, &door.guests, next) {
		if (memcmp(&guest->from, from, sizeof(*from)))
			continue;
		first = first ?: guest;
		(*alike)++;
	}
	return first;
}

void door_enter(struct guest *guest, const struct sockaddr_storage *peer)
{
	struct guest *first;
	unsigned int alike;
	uint64_t now;

	guest->from = address_of(peer);
	first = first_alike(&guest->from, &alike);
	if (alike >= MAX_ALIKE)
		door.end(first);
	else if (door.count >= MAX_GUESTS)
		door.end(TAILQ_FIRST(&door.guests));
	must(sd_event_now(event, CLOCK_MONOTONIC, &now));
	guest->end = now + GUEST_TIME;
	guest->waits = true;
	TAILQ_INSERT_TAIL(&door.guests, guest, next);
	door.count++;
	set_timer();
}

void door_leave(struct guest *guest)
{
	if (!guest->waits)
		return;
	guest->waits = false;
	TAILQ_REMOVE(&door.guests, guest, next);
	door.count--;
	set_timer();
}
