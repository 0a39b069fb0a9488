/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations for all parts of twidled. The parts are:
 *
 * main.c         the configuration's keys, the service's life
 * users.c        connections of users, and their tokens on the wheel
 * outbox.c       lines to print, in a file that survives a kill
 * subscribers.c  programs that get the lines besides standard output
 * command.c      the command that is run for each user who has fallen silent
 * news.c         the lines themselves
 * names.c        names of users, and the ids of their tokens
 * state.c        files that are mapped
 * wheel.c        the wheel
 * service.c      data that all parts share
 * ../common/     what twidled has in common with other daemons: options and signals,
 *                the configuration file, where the wheels are, sockets that listen,
 *                messages
 *
 * Each part uses only the parts below it. userspace/layers checks this order. One thread runs
 * all, in one loop of sd-event.
 */
#ifndef TWIDLED_H
#define TWIDLED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include <timewheel.h>

#include "../common/config.h"
#include "../common/log.h"
#include "../common/wheels.h"

#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_USEC	1000ULL

#define MAX_LISTENERS	8
#define MAX_SUBSCRIBERS	64
#define MAX_COMMANDS	16

/* Sizes of texts, with the zero byte at the end. */
#define NAME_SIZE	64
#define TIME_SIZE	40
#define DEADLINE_SIZE	32

/* The key "watch" has these values, and 0 if the file does not give the key. */
enum watch {
	WATCH_YES		= 1,
	WATCH_NO		= 2,
};

struct config {
	enum wheels wheels;
	char wheel[TIMEWHEEL_NAME_SIZE];
	struct address listen[MAX_LISTENERS];
	struct address events;
	char state[256];
	struct command_words exec;
	uint64_t exec_timeout;	/* ns */
	uint64_t timeout;	/* ns */
	uint64_t tick;		/* ns */
	uint64_t max_users;
	uint64_t buffer;	/* bytes */
	enum watch watch;
	bool close;
};

/* There is one service. service.c has it. */
extern struct service {
	struct config config;
	sd_event *event;
	struct tw_wheel *wheel;
	bool watch;			/* connections by TCP are asked */
	sd_event_source *silent;	/* the wheel has events */
	uint64_t max_connections;
	/* Grows with each reload, which may have changed the timeout: see users.c. */
	uint32_t timeouts;
	/* Calls @mark for each id that may still be named. */
	void (*ids_in_use)(void (*mark)(uint64_t id));
} service;

/* The time in us, as the loop has it. */
uint64_t now_us(void);
/*
 * Tells whether it is time to print a message again. @said is the time when the message was
 * printed last, or 0.
 */
bool worth_saying(uint64_t *said);

/* wheel.c */
void wheel_open(const struct config *config);
/* Exits because an operation on the wheel has failed. */
__noreturn void wheel_died(int err);
/* Tells whether no token has been registered yet. */
bool wheel_is_new(void);
/* Calls @each for each user who is online. */
void wheel_each(void (*each)(uint64_t id));
/* Returns false and sets errno if the wheel then has no token with this id. */
bool wheel_register(uint64_t id, uint64_t delay);
void wheel_touch_all(void);

/* state.c */
/* Returns a file descriptor that no other process has locked. @size gets the file's size. */
int state_open(const char *path, size_t *size);
/* @flags are flags of mmap(2) besides MAP_SHARED. */
void *state_map(int fd, const char *path, size_t size, int flags);
/* Exits because the file is not one of this program's files. */
__noreturn void state_foreign(const char *path);

/* names.c: at most @most names may be in use at a time. */
void names_open(const char *path, uint64_t most);
/* The wheel has a token with this id, for which there may be no name. */
void names_adopt(uint64_t id);
/* Returns false if there is no room for the name. */
bool names_id(const char *text, uint64_t *id);
/* Returns the name, or the id as a number, which is written to @number. */
const char *names_text(uint64_t id, char number[NAME_SIZE]);

/*
 * news.c: a line to print, as a struct timewheel_event. Its field cookie is the wall
 * time in the line. Its field missed, which the kernel sets for periodic tokens only,
 * tells which line it is.
 */
enum news {
	NEWS_OFFLINE	= 0,	/* as the kernel sets it */
	NEWS_ONLINE	= 1,
	NEWS_NONE	= 2,	/* the user was not silent after all */
	NEWS_ANEW	= 3,	/* the wheel is new */
	NEWS_AGAIN	= 4,	/* no line: the user needs a token again */
};

#define NEWS_LINE	192	/* longer than any line */

size_t news_format(const struct timewheel_event *news, char *line);
/* Returns the wheel's time in ns. */
uint64_t news_now(void);
/*
 * The functions return wall times in ns, of now and of a deadline of the wheel, and write a wall
 * time as text of RFC 3339.
 */
uint64_t news_wall_now(void);
uint64_t news_wall(uint64_t deadline);
void news_time(uint64_t wall, char text[TIME_SIZE]);
/* Writes a deadline of the wheel in seconds. */
void news_deadline(uint64_t deadline, char text[DEADLINE_SIZE]);

/* command.c: @room is called when one more command may run. */
void command_open(void (*room)(void));
/* Returns false if no more command may run now. */
bool command_start(const struct timewheel_event *news);

/* outbox.c */
void outbox_open(const char *path);
/* Reads the wheel. Returns how many users it reports as silent. */
size_t outbox_read(struct timewheel_event **silent);
/* @handle must not be 0. */
void outbox_tell(enum news what, uint64_t user, uint64_t handle);
/* The caller has judged an event that was read: @what tells whether there is a line. */
void outbox_judge(struct timewheel_event *event, enum news what);
/* Notes that tokens may be due early from now on, because connections are asked. */
void outbox_asks(void);
/* Notes that all tokens have the deadlines of their users again. */
void outbox_asks_no_more(void);
/* Gives the whole timeout to users whose connections a kill has left unasked. */
void outbox_settle(void);
/* Calls @each for each user that a line or a command is still about. */
void outbox_each(void (*each)(uint64_t id));
/* Writes to standard output as much as it takes now, and starts commands. */
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
/* The wheel reports a user. Returns false if the user is not silent after all. */
bool users_silent(struct timewheel_event *event);
/* Passes the packets of this turn to the wheel, and handles the results. */
void users_flush(void);
/* Calls @each for each user who has a connection. */
void users_each(void (*each)(uint64_t id));
/* No connection is asked after this call, because the service stops. */
void users_stop(void);
/* Says how many packets have needed no touch. */
void users_say_saved(void);

#endif /* TWIDLED_H */
