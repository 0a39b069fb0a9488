/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to the machines of a cluster, and one line of the table for each of these.
 * After an event all machines run again.
 */
#ifndef CLUSTER_EVENTS_H
#define CLUSTER_EVENTS_H

#include "cluster_load.h"

/* What a node's lease, and the look of others at it, take. */
#define TAKEOVER_MS	12000

static unsigned int seed;

static inline void begin_ledger(void)
{
	const char *wanted = getenv("TW_SEED");

	signal(SIGPIPE, SIG_IGN);
	seed = wanted ? (unsigned int)atoi(wanted) : (unsigned int)time(NULL);
	printf("# TW_SEED=%u\n", seed);
}

/* The standby that is not @standby. */
static inline int other_standby(int standby)
{
	return 6 - primary() - standby;
}

static inline int any_node(void)
{
	return rand_r(&seed) % NODES + 1;
}

static inline int any_standby(void)
{
	int old = primary();

	return (old + rand_r(&seed) % 2) % 3 + 1;
}

static inline int node_killed(void)
{
	int node = any_node();

	if (operate("kill n%d", node))
		return -1;
	sleep_ms(rand_r(&seed) % 2000);
	return operate("start n%d", node);
}

/* Its connections to the servers do not end by that: nothing comes any more. */
static inline int node_dead(void)
{
	int node = any_node();

	if (operate("cut n%d", node) || operate("kill n%d", node))
		return -1;
	sleep_ms(TAKEOVER_MS + 3000);
	return operate("mend n%d", node) ?: operate("start n%d", node);
}

static inline int node_stopped(void)
{
	int node = any_node(), result = operate("stop n%d", node);

	sleep_ms(30000);
	return result ?: operate("go n%d", node);
}

static inline int node_cut(void)
{
	int node = any_node(), result = operate("cut n%d", node);

	sleep_ms(5000 + rand_r(&seed) % 20000);
	return result ?: operate("mend n%d", node);
}

static inline int node_upgraded(void)
{
	int node = any_node();

	return operate("end n%d", node) ?: operate("start n%d", node);
}

static inline int standby_killed(void)
{
	int standby = any_standby();

	return operate("kill d%d", standby) ?: operate("start d%d", standby);
}

static inline int standby_stopped(void)
{
	int standby = any_standby(), result = operate("stop d%d", standby);

	sleep_ms(30000);
	return result ?: operate("go d%d", standby);
}

static inline int standby_cut(void)
{
	int standby = any_standby(), result = operate("cut d%d", standby);

	sleep_ms(5000 + rand_r(&seed) % 10000);
	return result ?: operate("mend d%d", standby);
}

/* ANY 2 pauses while one standby is away, and loses nothing either. */
static inline int standbys_reloaded(void)
{
	int old = primary(), a = old % 3 + 1, b = a % 3 + 1;
	int result = operate("standbys d%d 'ANY 2 (d%d,d%d)'", old, a, b);

	sleep_ms(2000);
	return result ?: operate("standbys d%d 'ANY 1 (d%d,d%d)'", old, a, b);
}

static inline int primary_killed(void)
{
	int old = primary();

	return operate("kill d%d", old) ?: operate("failover") ?: operate("rejoin d%d", old);
}

/* It goes on when another has its place: for nodes that still are connected to it. */
static inline int primary_stopped(void)
{
	int old = primary();

	if (operate("stop d%d", old) || operate("failover"))
		return -1;
	sleep_ms(rand_r(&seed) % 30000);
	if (operate("go d%d", old))
		return -1;
	sleep_ms(8000);
	return operate("kill d%d", old) ?: operate("rejoin d%d", old);
}

static inline int primary_cut(void)
{
	int old = primary();

	if (operate("cut d%d", old) || operate("failover"))
		return -1;
	sleep_ms(rand_r(&seed) % 10000);
	if (operate("mend d%d", old))
		return -1;
	sleep_ms(8000);
	return operate("kill d%d", old) ?: operate("rejoin d%d", old);
}

/*
 * The link is cut first: a kernel goes on to send what a process that is killed has left.
 */
static inline int machine_dies(int server)
{
	return operate("cut d%d", server) ?: operate("kill d%d", server);
}

/*
 * Both have what was acknowledged, since the other standby was away; what is left must
 * not be promoted before one of them is back.
 */
static inline int primary_and_standby_killed(void)
{
	int old = primary(), had_it = any_standby(), behind = other_standby(had_it);

	if (operate("cut d%d", behind))
		return -1;
	sleep_ms(2000);
	if (machine_dies(old) || machine_dies(had_it) || operate("mend d%d", behind))
		return -1;
	if (!operate("failover 2>/dev/null"))
		return -1;
	sleep_ms(1000);
	return operate("mend d%d d%d", old, had_it) ?: operate("start d%d", had_it) ?:
	       operate("failover") ?: operate("rejoin d%d", old);
}

/*
 * What is answered while the standbys are cut off is on the primary's disk alone, which
 * does not come back. With a quorum nothing is answered then.
 */
static inline int primary_lost(void)
{
	int old = primary(), a = old % 3 + 1, b = a % 3 + 1;

	if (operate("cut d%d d%d", a, b))
		return -1;
	sleep_ms(2000);
	if (machine_dies(old) || operate("wipe d%d", old) ||
	    operate("mend d%d d%d", a, b))
		return -1;
	return operate("failover") ?: operate("mend d%d", old) ?:
	       operate("rejoin d%d", old);
}

static const struct event {
	const char *name;
	int (*happens)(void);
} events[] = {
	/* Each short run has these. */
	{ "primary_killed", primary_killed },
	{ "node_dead", node_dead },
	{ "primary_and_standby_killed", primary_and_standby_killed },
	{ "node_killed", node_killed },
	{ "node_stopped", node_stopped },
	{ "node_cut", node_cut },
	{ "node_upgraded", node_upgraded },
	{ "standby_killed", standby_killed },
	{ "standby_stopped", standby_stopped },
	{ "standby_cut", standby_cut },
	{ "standbys_reloaded", standbys_reloaded },
	{ "primary_stopped", primary_stopped },
	{ "primary_cut", primary_cut },
	{ "primary_lost", primary_lost },
};

#define EVENTS	(sizeof(events) / sizeof(*events))
#define SHORT	3

static inline const struct event *choose_event(int run)
{
	const char *name = getenv("TW_EVENT");

	for (size_t i = 0; name && i < EVENTS; i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return run < SHORT ? &events[run] : &events[rand_r(&seed) % EVENTS];
}

/* One line of the table. */
static inline int run_event(int run)
{
	const struct event *event = choose_event(run);
	int puts_before = accepted, done_before = done, doubt_before = in_doubt;
	long long start = mono();
	int result;

	longest_pause = 0;
	latest = 0;
	sleep_ms(1000);
	result = event->happens();
	sleep_ms(2000);
	printf("# %3d %-26s %3lld s, puts %5d, done %5d, in doubt %3d, ", run + 1,
	       event->name, (mono() - start) / 1000, accepted - puts_before,
	       done - done_before, in_doubt - doubt_before);
	printf("pause %5lld ms, latest %5lld ms%s\n", longest_pause, latest,
	       result ? ", FAILED" : "");
	fflush(stdout);
	/* The others go on at once, and have the jobs of a node that dies in time. */
	if (!strncmp(event->name, "node", 4) && latest > TAKEOVER_MS)
		return -1;
	return result;
}

#endif /* CLUSTER_EVENTS_H */
