/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger of a cluster notes the answers that clients got about each job, and finds wrong
 * ones. A job's body is the number of its entry.
 *
 * A worker is sure of a job from the answer of its TAKE until a lease after it has sent that
 * TAKE: the job was not handed to it before it sent the TAKE. The worker ignores an answer that
 * comes after this time, and trusts only its own clock.
 */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "bed.h"

#define MAX_NODES	90
#define JOBS		400000
#define LEASE		4	/* s */
#define EXTENDED	6	/* s, by TW.EXTEND */
/* A client waits this many seconds for an answer. */
#define ANSWER_S	6
/* The rounding of times to milliseconds may change a lease by this many ms. */
#define ROUNDING	20

static struct entry {
	/* @repeated: the first put may have been carried out before the second one. */
	atomic_bool put, repeated;
	/* An answer said that the put was refused or rolled back, so the job does not exist. */
	atomic_bool refused;
	/*
	 * An answer said that the job does not exist any more. @cancelled: this command has ended
	 * it.
	 */
	atomic_bool gone, cancelled, cancel_in_doubt;
	atomic_int delivered, done, ack_in_doubt;
	/* The job may not come before this point of the wall clock, in ms. */
	_Atomic long long earliest;
	/* The job's worker is sure of the job until this time, in ms. */
	_Atomic long long held_until;
} entries[JOBS];

/* These counters are for what may happen. */
static atomic_int next_entry, accepted, in_doubt, refusals, done, stale, too_late, no_node;
/* These counters are for what must not happen. */
static atomic_int early, shared, robbed, back_again, ghosts, strange, bad_answers;
/*
 * @longest_pause is the longest time without any delivery. @latest is the longest time from a
 * job's due time, if this is after @since, to its first delivery. Both are in ms.
 */
static _Atomic long long last_delivery, longest_pause, latest, since;

/* A client has connections to all nodes. Each connection is made when it is needed. */
struct clients {
	redisContext *node[MAX_NODES + 1];
	unsigned int seed;
};

/* Returns how many nodes there are, as the script "bed" has it. */
static inline int nr_nodes(void)
{
	const char *wanted = getenv("TW_NODES");

	return wanted ? atoi(wanted) : 3;
}

static inline unsigned int roll(struct clients *clients)
{
	return rand_r(&clients->seed) % 100;
}

/*
 * Tells whether the connection has ended. A command to a node that has stopped is not in doubt
 * then, because nothing was sent.
 */
static inline bool has_ended(const redisContext *client)
{
	char byte;

	return client->err || !recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

static inline redisContext *client_of(struct clients *clients, int node)
{
	redisContext **client = &clients->node[node];

	if (*client && has_ended(*client)) {
		redisFree(*client);
		*client = NULL;
	}
	if (!*client)
		*client = connect_node(node, ANSWER_S);
	return *client;
}

/* Returns a connection to the node, or to the next node that has one, or NULL if there is none. */
static inline redisContext *client_near(struct clients *clients, int node)
{
	int nodes = nr_nodes();

	for (int i = 0; i < nodes; i++) {
		redisContext *client = client_of(clients, (node + i) % nodes + 1);

		if (client)
			return client;
	}
	no_node++;
	sleep_ms(50);
	return NULL;
}

static inline redisContext *any_client(struct clients *clients)
{
	return client_near(clients, roll(clients) % nr_nodes());
}

static inline void end_clients(struct clients *clients)
{
	for (int node = 1; node <= nr_nodes(); node++)
		if (clients->node[node])
			redisFree(clients->node[node]);
}

/* Does what say() does for words that are put together from parts. */
__attribute__((__format__(printf, 2, 3)))
static inline redisReply *tell(redisContext *client, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return redisCommand(client, line);
}

/* Tells whether an error says that the command was not carried out, and may be sent again. */
static inline bool is_refusal(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	       (!strncmp(reply->str, "UNAVAILABLE", 11) ||
		!strncmp(reply->str, "LOADING", 7) || !strncmp(reply->str, "BUSY", 4));
}

static inline bool is_error(const redisReply *reply, const char *name)
{
	return reply && reply->type == REDIS_REPLY_ERROR &&
	       !strncmp(reply->str, name, strlen(name));
}

/* Notes an answer that is not one of the expected answers. */
static inline void is_bad(const char *verb, const redisReply *reply)
{
	if (is_refusal(reply)) {
		refusals++;
		sleep_ms(20);
		return;
	}
	sleep_ms(5);
	if (bad_answers++ < 5)
		printf("# %s: %s\n", verb,
		       reply->type == REDIS_REPLY_ERROR ? reply->str : as_text(reply));
}

static inline void note_longest(_Atomic long long *longest, long long ms)
{
	if (ms > *longest)
		*longest = ms;
}

/*
 * Checks the times of a delivery. All machines have one clock, so the client's clock is the
 * database's clock.
 */
static inline void note_times(const struct taken *taken, const struct entry *entry)
{
	long long now = now_ms(CLOCK_REALTIME);

	if (taken->attempt == 1 && taken->due > since)
		note_longest(&latest, now - taken->due);
	if (now >= taken->due && now >= entry->earliest)
		return;
	if (early++ < 5)
		printf("# early: %lld ms by its row, %lld ms by its sender\n",
		       taken->due - now, entry->earliest - now);
}

/*
 * Notes that a worker has got this job by a TAKE that it sent at @sent. Returns whether the
 * worker is sure of the job.
 */
static inline bool note_delivery(const struct taken *taken, long long sent, bool bound)
{
	long long now = mono(), until = sent + LEASE * 1000 - ROUNDING;
	int index = atoi(taken->body);
	struct entry *entry = &entries[index];

	if (index < 0 || index >= next_entry) {
		strange++;
		return false;
	}
	if (now >= until) {
		too_late++;
		return false;
	}
	note_longest(&longest_pause, now - atomic_exchange(&last_delivery, now));
	note_times(taken, entry);
	back_again += entry->gone;
	ghosts += entry->refused;
	entry->delivered++;
	/* A node that dies gives back deliveries that are bound to its connections. */
	if (bound)
		until = 0;
	shared += atomic_exchange(&entry->held_until, until) > now;
	return true;
}

/* Notes that a worker is about to end the job. Returns until when it was sure of the job. */
static inline long long note_end(struct entry *entry)
{
	return atomic_exchange(&entry->held_until, 0);
}

/* Prints a summary of the ledger. Returns how many acknowledged jobs were lost. */
static inline int sum_up(int *twice)
{
	int lost = 0;

	*twice = 0;
	for (int i = 0; i < next_entry; i++) {
		struct entry *entry = &entries[i];

		*twice += entry->done > 1 + entry->repeated;
		lost += entry->put && !entry->cancelled && !entry->done &&
			!entry->cancel_in_doubt && !entry->ack_in_doubt;
	}
	printf("# puts answered %d, in doubt %d, refused %d; done %d, stale %d, late %d\n",
	       accepted, in_doubt, refusals, done, stale, too_late);
	printf("# lost %d, twice %d, shared %d, robbed %d, early %d, back again %d,\n"
	       "# ghosts %d, strange %d, bad answers %d\n", lost, *twice, shared, robbed,
	       early, back_again, ghosts, strange, bad_answers);
	return lost;
}

#endif /* CLUSTER_H */
