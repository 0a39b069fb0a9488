/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of twidled share. The parts are:
 *
 * main.c         options, signals, the service's life, the wheel
 * users.c        connections of users, and what the wheel is told of them
 * outbox.c       what is to be told, kept where a kill cannot reach it
 * subscribers.c  those who are told besides standard output
 * news.c         the lines that are told
 * config.c       the configuration file
 * service.c      what all parts know of the service
 * log.c          messages on standard error, see log.h
 *
 * Each part uses those below it only. All is done by one thread in one loop of
 * sd-event.
 */
#ifndef TWIDLED_H
#define TWIDLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include <timewheel.h>

#include "log.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_USEC	1000ULL

#define MAX_LISTENERS	8
#define MAX_SUBSCRIBERS	64

struct address {
	socklen_t length;
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_storage room;
	};
};

/* Two that say the same are the same bytes. */
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
	/* Counts timeouts configured so far, see users.c. */
	uint32_t timeouts;
} service;

/* config.c: one line on standard error when it returns -1. */
int config_load(const char *path, struct config *config);
/* Takes over what may change while the service runs; tells of what may not. */
void config_reload(const char *path, struct config *config);
/* A socket that listens there. Exits when there can be none. */
int config_listen(const struct address *address);

/*
 * news.c: a line that is to be told. It is a struct timewheel_event, as the
 * kernel wrote it, of which the last field, for periodic tokens, says more.
 */
enum news {
	NEWS_OFFLINE	= 0,	/* what the kernel writes */
	NEWS_ONLINE	= 1,
	NEWS_NONE	= 2,	/* it was not silent after all */
};

#define NEWS_LINE	64	/* no line is as long */

size_t news_format(const struct timewheel_event *news, char *line);

/* outbox.c */
void outbox_open(const char *path);
/* Reads the wheel. Returns how many users it says are silent. */
size_t outbox_read(struct timewheel_event **silent);
void outbox_online(uint64_t user, uint64_t handle);
/* Writes to standard output as much as it takes now. */
void outbox_flush(void);

/* subscribers.c */
void subscribers_open(const struct address *address);
void subscribers_tell(const struct timewheel_event *news);
/* Sends what they have been told, as much as they take now. */
void subscribers_flush(void);

/* users.c */
void users_open(const struct config *config);
/* Accepts those who wait for it, as far as one turn goes. */
void users_accept(void);
/* Hears all who have said something, as far as one turn goes. */
void users_turn(void);
/* The wheel says that this user is silent. Returns false if it is not. */
bool users_silent(uint64_t user);
/* Tells the wheel who was heard, and what came of it. */
void users_flush(void);

#endif /* TWIDLED_H */
