/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that happen to the machines of a cluster, each with one line of the table.
 */
#ifndef CLUSTER_EVENTS_H
#define CLUSTER_EVENTS_H

#include "cluster_load.h"

/* This many ms are enough for the end of a node's lease, and for the next look of other nodes. */
#define TAKEOVER_MS	12000
/*
 * Other nodes need this many ms to take over from a node that has ended its lease itself: two
 * looks.
 */
#define HANDOVER_MS	4000

static unsigned int seed;

static inline void begin_ledger(void)
{
	const char *wanted = getenv("TW_SEED");

	signal(SIGPIPE, SIG_IGN);
	seed = wanted ? (unsigned int)atoi(wanted) : (unsigned int)time(NULL);
	printf("# TW_SEED=%u\n", seed);
}

/*
 * An event is a script with commands of "bed". $n is any node and $m the next one, $p the
 * primary, $s any standby and $o the other one, and $t is up to 15 seconds. After an event all
 * machines run again.
 *
 * A machine that dies is cut off first, because a kernel still sends data that a killed process
 * has left. Such a node is dead for longer than its lease. An old primary goes on for nodes that
 * are still connected to it when another server has taken its place.
 */
static const struct event {
	const char *name, *happens;
	/*
	 * A job may be this many ms late because of the event. 0: this depends on other machines.
	 */
	int latest;
} events[] = {
	/* Each short run has the events from here on. */
	{ "primary_killed", "bed kill $p; bed failover; bed rejoin $p" },
	{ "node_dead", "bed cut $n; bed kill $n; sleep 15; bed mend $n; bed start $n",
		TAKEOVER_MS },
	/* The last node finds only nodes that have just begun, and stays away for a while. */
	{ "nodes_upgraded",
		"set -- $(bed nodes)\n"
		"for n; do bed end $n; [ $# = 1 ] || bed start $n; shift; done\n"
		"sleep 6; bed start $n", HANDOVER_MS },
	/*
	 * Both servers have all acknowledged data, because the other standby was away. The other
	 * standby must not be promoted before one of the two is back.
	 */
	{ "primary_and_standby_killed",
		"bed cut $o; sleep 2; bed cut $p $s; bed kill $p $s; bed mend $o\n"
		"if bed failover 2>/dev/null; then exit 1; fi\n"
		"sleep 1; bed mend $p $s; bed start $s; bed failover; bed rejoin $p" },

	{ "two_nodes_dead", "bed cut $n $m; bed kill $n $m; sleep 15; bed mend $n $m\n"
		"bed start $n $m", TAKEOVER_MS },
	/* A node and the primary are often on one machine. */
	{ "node_and_primary_dead", "bed cut $n $p; bed kill $n $p; bed failover; sleep 10\n"
		"bed mend $n $p; bed start $n; bed rejoin $p" },
	{ "node_killed", "bed kill $n; sleep $(($t / 8)); bed start $n", TAKEOVER_MS },
	{ "node_stopped", "bed stop $n; sleep 30; bed go $n" },
	{ "node_cut", "bed cut $n; sleep $(($t + 5)); bed mend $n" },
	{ "node_upgraded", "bed end $n; bed start $n", HANDOVER_MS },
	{ "standby_killed", "bed kill $s; bed start $s" },
	{ "standby_stopped", "bed stop $s; sleep 30; bed go $s" },
	{ "standby_cut", "bed cut $s; sleep $t; bed mend $s" },
	/* With ANY 2 the cluster pauses while one standby is away, but loses nothing. */
	{ "standbys_reloaded",
		"bed standbys $p \"ANY 2 ($s,$o)\"; sleep 2; bed standbys $p \"ANY 1 ($s,$o)\"" },
	{ "primary_stopped",
		"bed stop $p; bed failover; sleep $t; bed go $p; sleep 8\n"
		"bed kill $p; bed rejoin $p" },
	{ "primary_cut",
		"bed cut $p; bed failover; sleep $t; bed mend $p; sleep 8\n"
		"bed kill $p; bed rejoin $p" },
	/*
	 * Answers that come while the standbys are cut off are about data on the primary's disk
	 * alone, which is lost. With a quorum nothing is answered then.
	 */
	{ "primary_lost",
		"bed cut $s $o; sleep 2; bed cut $p; bed kill $p; bed wipe $p\n"
		"bed mend $s $o; bed failover; bed mend $p; bed rejoin $p" },
};

#define EVENTS	(sizeof(events) / sizeof(*events))
#define SHORT	4

static inline const struct event *find_event(const char *name)
{
	for (size_t i = 0; name && i < EVENTS; i++)
		if (!strcmp(events[i].name, name))
			return &events[i];
	return NULL;
}

static inline int happen(const struct event *event)
{
	int p = primary(), s = (p + rand_r(&seed) % 2) % 3 + 1;
	int n = rand_r(&seed) % nr_nodes();
	char script[512];

	snprintf(script, sizeof(script), "set -eu; n=n%d m=n%d p=d%d s=d%d o=d%d t=%d\n%s",
		 n + 1, (n + 1) % nr_nodes() + 1, p, s, 6 - p - s, rand_r(&seed) % 16,
		 event->happens);
	return system(script);
}

/* Runs an event, and prints its line of the table. */
static inline int run_event(int run)
{
	const struct event *event = find_event(getenv("TW_EVENT")) ?:
				    &events[run < SHORT ? run : rand_r(&seed) % EVENTS];
	int puts_before = accepted, done_before = done, doubt_before = in_doubt;
	long long start = mono();
	int result;

	longest_pause = 0;
	latest = 0;
	since = now_ms(CLOCK_REALTIME);
	sleep_ms(1000);
	result = happen(event);
	sleep_ms(2000);
	printf("# %3d %-26s %3lld s, puts %5d, done %5d, in doubt %3d, ", run + 1,
	       event->name, (mono() - start) / 1000, accepted - puts_before,
	       done - done_before, in_doubt - doubt_before);
	printf("pause %5lld ms, latest %5lld ms%s\n", longest_pause, latest,
	       result ? ", FAILED" : "");
	fflush(stdout);
	/* Workers wait for a node that is stopped or cut off, and the node is not dead. */
	return event->latest && latest > event->latest ? -1 : result;
}

#endif /* CLUSTER_EVENTS_H */
