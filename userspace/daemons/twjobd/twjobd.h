/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This header has what all parts of twjobd share. Each part uses only the parts below it:
 *
 * main.c		the configuration's keys, the daemon's life
 * conn.c		sockets, pipelining, answers in order; see conn.h
 * door.c		connections that have not given a password yet; see door.h
 * verbs.c		what clients can ask, by name; see verbs.h
 * verbs_client.c	verbs about connections
 * verbs_multi.c	transactions
 * postgresql/node.c	what the nodes of a shared store do for each other; see store.h
 * verbs_queue.c	verbs about queues
 * verbs_rule.c		a verb about rules by which jobs come again
 * verbs_job.c		verbs about jobs that no worker has
 * verbs_list.c		verbs that list jobs
 * verbs_done.c		a verb that lists done jobs
 * verbs_stats.c	figures, also for Prometheus
 * verbs_take.c		clients that take a job, or wait for one
 * verbs_answer.c	answers to deliveries
 * take.c		deliveries; see take.h
 * receipt.c		receipts as text; see receipt.h
 * request.c		what verbs have in common
 * client.c		the deliveries of a connection; see client.h
 * allow.c		who may do what; see allow.h
 * args.c		what the verbs' arguments mean
 * keep.c		loads wheels, and compares them with the store
 * held.c		what workers have, over a planned restart; see held.h
 * holder.c		the connections that hold jobs; see holder.h
 * group.c		groups of jobs, and their limits; see group.h
 * rule.c		rules by which jobs come again; see rule.h
 * job.c		one job, in the store and in its wheel; see job.h
 * limit.c		limits of a queue; see limit.h
 * turn.c		changes that one commit makes durable; see turn.h
 * queue.c		a queue and its named wheel; see queue.h
 * queue_due.c		what is due in a queue's wheel
 * store.c		which store the configuration asks for; see store.h
 * kinds.c		the kinds of stores that the program has
 * store_sqlite.c	the jobs, by SQLite
 * store_memory.c	the jobs, in memory
 * disk.c		whether the disk has room; see disk.h
 * postgresql/		the jobs, by PostgreSQL for several machines, of the program
 *			twjobd-postgresql
 * resp.c		the protocol's framing; see resp.h
 * histogram.c		how long something took
 * twjobd.c		what this header declares
 * ../../calendar/	what times a rule means
 * ../common/		what twjobd has in common with other daemons: options and
 *			signals, the configuration file, where the wheels are,
 *			sockets that listen, messages
 *
 * A part calls a function of a part above it only by a pointer that the part above has set.
 * userspace/layers compares this list with what the parts call.
 *
 * One thread does all work in one loop of sd-event. One turn of the loop hears many commands,
 * changes the store and commits once. Then it tells the wheels and sends the answers. While a
 * commit waits for the disk, the commands of the next turn gather in the sockets.
 */
#ifndef TWJOBD_H
#define TWJOBD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "../common/config.h"
#include "../common/log.h"
#include "../common/wheels.h"

#define MSEC_PER_SEC	1000ULL
#define USEC_PER_MSEC	1000ULL
#define USEC_PER_SEC	1000000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

#define MAX_LISTENERS	8
#define MAX_ALLOW	64
#define MAX_KEY		255
/* The numbers of jobs stay far below this number. */
#define MAX_ID		(INT64_MAX / 16)
/* The latest due time, in the year 2255. The wheel's clock ends in 2262. */
#define MAX_DUE		9000000000000ULL
/*
 * The token of a buried or waiting job is due at this time, which never comes. A time later than
 * MAX_DUE is no job's time.
 */
#define PARKED		(MAX_DUE + 7200 * MSEC_PER_SEC)

/* The configuration has this password if TCP is to be open to everybody. */
#define NO_PASSWORD	"none"
#define PASSWORD_SIZE	128

/* Bytes that another part of the program owns. */
struct bytes {
	const char *data;
	size_t length;
};

/*
 * A line "allow" of the configuration: see allow.h. The line is for the user @uid, unless it has
 * a @file.
 */
struct allow {
	char queues[256];	/* as the line has them */
	unsigned int classes;	/* 0: there is no such line */
	uid_t uid;
	char file[256], password[PASSWORD_SIZE];
};

/* The configuration. */
extern struct config {
	struct address listen[MAX_LISTENERS];
	char store[1024];	/* a path, or a connection string */
	char node[64];		/* the name of this node, with a shared store */
	uint64_t machines;
	enum wheels wheels;
	char prefix[32];	/* the beginning of the wheels' names */
	char password[PASSWORD_SIZE];	/* for TCP; NO_PASSWORD if it needs none */
	char password_file[1024];
	struct allow allow[MAX_ALLOW];
	uint64_t max_body;	/* bytes */
	uint64_t max_connections;
} config;

/* config.max_connections, or fewer if the limit of open files permits no more. */
extern uint64_t max_connections;

/* Returns the time in ms since 1970, by the clock of the machine where the store is. */
uint64_t now_ms(void);
/* Returns the time of CLOCK_MONOTONIC. */
uint64_t monotonic_ns(void);

/* Random bytes, which stay the same as long as the store exists. */
extern unsigned char store_secret[16];
/* The store's clock is this many ms ahead of this machine's clock. */
extern int64_t store_ahead;
/* The longest body that the store takes. */
extern uint64_t store_max_body;

/* The loop. */
extern sd_event *event;

#endif /* TWJOBD_H */
