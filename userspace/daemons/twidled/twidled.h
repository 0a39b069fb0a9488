/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations for all parts of twidled. The parts are:
 *
 * main.c         the configuration's keys, the service's life, the wheel
 * users.c        connections of users, and their tokens on the wheel
 * outbox.c       lines to print, in a file that survives a kill
 * subscribers.c  programs that get the lines besides standard output
 * news.c         the lines themselves
 * service.c      data that all parts share
 * ../common      what it has in common with other daemons: options and signals,
 *                the configuration file, sockets that listen, messages
 *
 * Each part uses only the parts below it. One thread runs all, in one loop of
 * sd-event.
 */
#ifndef TWIDLED_H
#define TWIDLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include <timewheel.h>

#include "../common/config.h"
#include "../common/log.h"

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_USEC	1000ULL

#define MAX_LISTENERS	8
#define MAX_SUBSCRIBERS	64

struct config {
	char wheel[TIMEWHEEL_NAME_SIZE];
	struct address listen[MAX_LISTENERS];
	struct address events;
	char state[256];
	uint64_t timeout;	/* ns */
	uint64_t tick;		/* ns */
	uint64_t max_users;
	uint64_t buffer;	/* bytes */
	bool close;
};

/* The service (service.c). There is one. */
extern struct service {
	struct config config;
	sd_event *event;
	struct tw_wheel *wheel;
	sd_event_source *silent;	/* the wheel has events */
	uint64_t max_connections;
	/* Grows with each reload, which may have changed the timeout: see users.c. */
	uint32_t timeouts;
} service;

/*
 * news.c: a line to print, as a struct timewheel_event. Its field missed, which the
 * kernel sets for periodic tokens only, tells which line it is.
 */
enum news {
	NEWS_OFFLINE	= 0,	/* as the kernel sets it */
	NEWS_ONLINE	= 1,
	NEWS_NONE	= 2,	/* it was not silent after all */
};

#define NEWS_LINE	64	/* longer than any line */

size_t news_format(const struct timewheel_event *news, char *line);

/* outbox.c */
void outbox_open(const char *path);
/* Reads the wheel. Returns how many users it reports as silent. */
size_t outbox_read(struct timewheel_event **silent);
void outbox_online(uint64_t user, uint64_t handle);
/* Writes to standard output as much as it takes now. */
void outbox_flush(void);

/* subscribers.c */
void subscribers_open(const struct address *address);
void subscribers_tell(const struct timewheel_event *news);
/* Sends waiting lines, as much as the subscribers take now. */
void subscribers_flush(void);

/* users.c */
void users_open(const struct config *config);
/* Accepts waiting connections, up to the limit of one turn. */
void users_accept(void);
/* Reads packets from all connections that have them, up to the limit of one turn. */
void users_turn(void);
/* The wheel reports this user. Returns false if a packet of it has come after all. */
bool users_silent(uint64_t user);
/* Passes the packets of this turn to the wheel, and handles the results. */
void users_flush(void);

#endif /* TWIDLED_H */
