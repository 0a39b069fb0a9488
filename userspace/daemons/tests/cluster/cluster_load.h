/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The load of a cluster: producers by the protocol and by SQL, and workers, at all nodes. They
 * enter the answers in the ledger, see cluster.h.
 */
#ifndef CLUSTER_LOAD_H
#define CLUSTER_LOAD_H

#include <libpq-fe.h>

#include "cluster.h"

#define PRODUCERS	3
/*
 * Each node has this many workers. With one alone a node has more jobs to hand out than its worker
 * can do when other nodes are dead.
 */
#define WORKERS		2
/*
 * Jobs that are put to be cancelled, or to be moved to an earlier time, are due this many ms
 * later.
 */
#define FAR_MS		4000
/*
 * A producer by SQL waits for a few seconds, also for a server that died while it was cut off,
 * and that sends no end of its connections.
 */
#define SQL_PATIENCE	"tcp_user_timeout=4000 keepalives_idle=2 keepalives_interval=1 " \
			"keepalives_count=3 options='-c statement_timeout=4s'"

/* The last producer puts by SQL. */
static pthread_t producers[PRODUCERS + 1], workers[WORKERS * MAX_NODES];
static atomic_bool stop_producers, stop_workers;

/* Notes that the job comes after @ms or, if it was put before, when it would have come. */
static inline void note_due(int index, long long ms)
{
	long long due = now_ms(CLOCK_REALTIME) + ms;

	if (!entries[index].earliest || due < entries[index].earliest)
		entries[index].earliest = due;
}

/* Notes the answer to a put. Returns the job's id, or -1 if there is no job or a doubt. */
static inline long long note_put(int index, redisReply *reply)
{
	long long id = -1;

	if (!reply)
		in_doubt++;
	else if (reply->type == REDIS_REPLY_INTEGER)
		id = reply->integer;
	else if (reply->type == REDIS_REPLY_ARRAY)
		id = reply->element[0]->integer;
	else if (!is_error(reply, "HELD"))
		is_bad("PUT", reply);
	if (id >= 0) {
		entries[index].put = true;
		accepted++;
	} else if (reply && is_refusal(reply)) {
		/* The refusal says nothing about an earlier put of this job. */
		entries[index].refused = !entries[index].repeated;
	}
	if (reply)
		freeReplyObject(reply);
	return id;
}

static inline long long put(struct clients *clients, int index, int ms)
{
	redisContext *client = any_client(clients);

	if (!client)
		return -1;
	note_due(index, ms);
	return note_put(index, say(client, "TW.PUT q %d IN %d.%03d", index, ms / 1000,
				   ms % 1000));
}

/* Repeats a put at any node until it is answered. The key tells whether an earlier put was kept. */
static inline long long put_keyed(struct clients *clients, int index, int ms,
				  const char *more)
{
	note_due(index, ms);
	while (!stop_producers) {
		redisContext *client = any_client(clients);
		redisReply *reply;

		if (!client)
			continue;
		reply = tell(client, "TW.PUT q %d IN %d.%03d KEY k%d%s", index,
			     ms / 1000, ms % 1000, index, more);
		if (reply && !is_refusal(reply))
			return note_put(index, reply);
		if (reply) {
			is_bad("PUT", reply);
			freeReplyObject(reply);
		} else {
			entries[index].repeated = true;
		}
	}
	return -1;
}

/* Notes the answer to a cancel: 1, or 0, which says that a worker has done the job. */
static inline void note_cancel(int index, redisReply *reply)
{
	struct entry *entry = &entries[index];

	if (!reply) {
		entry->cancel_in_doubt = true;
		return;
	}
	if (reply->type == REDIS_REPLY_INTEGER) {
		entry->gone = true;
		entry->cancelled = reply->integer == 1;
	} else if (!is_error(reply, "HELD")) {
		is_bad("CANCEL", reply);
	}
	freeReplyObject(reply);
}

/* Notes the answer to a move: 1, or that the job is held or done because the move took so long. */
static inline void note_move(redisReply *reply)
{
	if (reply && reply->type != REDIS_REPLY_INTEGER && !is_error(reply, "HELD"))
		is_bad("MOVE", reply);
	if (reply)
		freeReplyObject(reply);
}

/* Changes a job that was put to be changed before any worker has it. */
static inline void change(struct clients *clients, unsigned int what, int index,
			  long long id)
{
	redisContext *client = any_client(clients);

	if (!client)
		return;
	if (what < 20) {
		note_cancel(index, say(client, "TW.CANCEL q %lld", id));
	} else if (what < 30) {
		note_cancel(index, say(client, "TW.CANCELKEY q k%d", index));
	} else {
		note_due(index, 100);
		note_move(what < 40 ? say(client, "TW.MOVE q %lld IN 0.1", id) :
				      say(client, "TW.MOVEKEY q k%d IN 0.1", index));
	}
}

/* Sends commands that change nothing, or that kick buried jobs. */
static inline void look_around(struct clients *clients, unsigned int what, long long id)
{
	redisContext *client = any_client(clients);
	redisReply *reply;

	if (!client || id < 0)
		return;
	if (what < 3)
		reply = say(client, "TW.KICK q ALL 20");
	else if (what < 6)
		reply = say(client, "TW.GET q %lld", id);
	else if (what < 8)
		reply = say(client, "TW.LIST q COUNT 5");
	else
		reply = say(client, "TW.STATS q");
	if (!reply)
		return;
	if (reply->type == REDIS_REPLY_ERROR)
		is_bad("KICK, GET, LIST or STATS", reply);
	freeReplyObject(reply);
}

static inline void produce_one(struct clients *clients, int index)
{
	unsigned int what = roll(clients);
	int ms = what < 50 ? FAR_MS : (int)roll(clients) * 3;
	long long id;

	if (what >= 20 && what < 30)
		id = put_keyed(clients, index, ms, "");
	else if (what >= 40 && what < 60)
		id = put_keyed(clients, index, ms, what % 2 ? "" : " REPLACE");
	else
		id = put(clients, index, ms);
	/* After two puts there may be two jobs, of which a cancel ends only one. */
	if (id >= 0 && what < 50 && !entries[index].repeated)
		change(clients, what, index, id);
	look_around(clients, roll(clients), id);
}

static inline void *produce(void *number)
{
	struct clients clients = { .seed = (long)number };

	while (!stop_producers) {
		int index = next_entry++;

		if (index >= JOBS)
			break;
		produce_one(&clients, index);
		sleep_ms(roll(&clients));
	}
	end_clients(&clients);
	return NULL;
}

/* A commit that is not confirmed by the standbys ends with a warning. */
static inline void see_warning(void *warned, const char *text)
{
	if (strstr(text, "WARNING"))
		*(bool *)warned = true;
}

static inline bool run_sql(PGconn *sql, const char *text, const char *status)
{
	PGresult *result = PQexec(sql, text);
	bool good = !strcmp(PQcmdStatus(result), status);

	PQclear(result);
	return good;
}

/* Makes the calls that a business makes in its own transaction, and notes its end. */
static inline void put_by_sql(PGconn *sql, struct clients *clients, bool *warned)
{
	bool commits = roll(clients) < 70, good;
	int first = next_entry, count = 1 + roll(clients) % 3;
	char line[128];

	first = atomic_fetch_add(&next_entry, count);
	if (first + count > JOBS)
		return;
	*warned = false;
	good = run_sql(sql, "begin", "BEGIN");
	for (int i = first; i < first + count; i++) {
		note_due(i, 100);
		snprintf(line, sizeof(line), "select timewheel.put('q', '%d',\n"
			 "clock_timestamp() + interval '100 ms')", i);
		good = good && run_sql(sql, line, "SELECT 1");
	}
	if (!good || !commits) {
		run_sql(sql, "rollback", "ROLLBACK");
		for (int i = first; i < first + count; i++)
			entries[i].refused = true;
		return;
	}
	good = run_sql(sql, "commit", "COMMIT") && !*warned;
	for (int i = first; good && i < first + count; i++)
		entries[i].put = true;
	*(good ? &accepted : &in_doubt) += count;
}

static inline PGconn *connect_sql(bool *warned)
{
	PGconn *sql = PQconnectdb(SERVERS SQL_PATIENCE);

	if (PQstatus(sql) == CONNECTION_OK) {
		PQsetNoticeProcessor(sql, see_warning, warned);
		return sql;
	}
	PQfinish(sql);
	sleep_ms(100);
	return NULL;
}

static inline void *produce_by_sql(void *number)
{
	struct clients clients = { .seed = (long)number };
	PGconn *sql = NULL;
	bool warned = false;

	while (!stop_producers) {
		if (sql && (warned || PQstatus(sql) != CONNECTION_OK)) {
			PQfinish(sql);
			sql = NULL;
		}
		if (!sql)
			sql = connect_sql(&warned);
		if (sql)
			put_by_sql(sql, &clients, &warned);
		sleep_ms(roll(&clients) / 2);
	}
	if (sql)
		PQfinish(sql);
	return NULL;
}

static inline void ack(redisContext *client, const struct taken *taken, bool bound)
{
	struct entry *entry = &entries[atoi(taken->body)];
	long long until = note_end(entry);
	redisReply *reply = say(client, "TW.ACK q %s", taken->receipt);

	if (!reply) {
		entry->ack_in_doubt++;
		return;
	}
	if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1) {
		done++;
		entry->done++;
	} else if (is_error(reply, "STALE")) {
		stale++;
		robbed += !bound && mono() < until;
	} else {
		is_bad("ACK", reply);
	}
	freeReplyObject(reply);
}

/* Sends NACK or BURY. An answer that the command came too late is no error. */
static inline void give_back(redisContext *client, const struct taken *taken,
			     const char *verb, const char *more)
{
	redisReply *reply;

	note_end(&entries[atoi(taken->body)]);
	reply = tell(client, "TW.%s q %s%s", verb, taken->receipt, more);
	if (reply && reply->type == REDIS_REPLY_ERROR && !is_error(reply, "STALE"))
		is_bad(verb, reply);
	if (reply)
		freeReplyObject(reply);
}

static inline void extend(redisContext *client, const struct taken *taken)
{
	struct entry *entry = &entries[atoi(taken->body)];
	long long sent = mono();
	redisReply *reply = say(client, "TW.EXTEND q %s %d", taken->receipt, EXTENDED);

	if (reply && reply->type == REDIS_REPLY_STATUS)
		entry->held_until = sent + EXTENDED * 1000 - ROUNDING;
	else if (reply && !is_error(reply, "STALE"))
		is_bad("EXTEND", reply);
	if (reply)
		freeReplyObject(reply);
	if (mono() + 200 < entry->held_until)
		sleep_ms(200);
}

/* Works on a job that a client took by @from. A job that is not bound can be answered anywhere. */
static inline void work_on(struct clients *clients, redisContext *from, bool bound,
			   const struct taken *taken)
{
	unsigned int what = roll(clients);
	redisContext *client = bound ? from : any_client(clients);

	/* Some jobs are forgotten, and their lease has to end. */
	if (what < 3 || !client || client->err)
		return;
	if (what < 18) {
		give_back(client, taken, what < 13 ? "NACK" : "BURY",
			  what < 13 ? " IN 0.1" : "");
		return;
	}
	if (what < 28 && !bound)
		extend(client, taken);
	/*
	 * No other worker gets the job until the extended lease is over, though it is longer than
	 * the first one.
	 */
	if (what < 22 && !bound)
		return;
	if (!client->err)
		ack(client, taken, bound);
}

/* Takes jobs, and works on them. Returns how many jobs were taken. */
static inline size_t take_some(struct clients *clients, redisContext *client, bool bound)
{
	long long sent = mono();
	redisReply *reply = tell(client, "TW.TAKE q COUNT 4 BLOCK 200%s",
				 bound ? " BOUND" : "");
	size_t count = 0;

	if (!reply)
		return 0;
	if (reply->type == REDIS_REPLY_ERROR)
		is_bad("TAKE", reply);
	if (reply->type == REDIS_REPLY_ARRAY)
		count = reply->elements;
	for (size_t i = 0; i < count; i++) {
		struct taken taken;

		read_taken(reply->element[i], &taken);
		if (note_delivery(&taken, sent, bound))
			work_on(clients, client, bound, &taken);
	}
	freeReplyObject(reply);
	return count;
}

static inline void *work(void *number)
{
	struct clients clients = { .seed = 100 + (long)number };
	int node = (long)number % nr_nodes();
	bool bound = (long)number % 4 == 3;

	while (!stop_workers) {
		redisContext *client = client_near(&clients, node);

		if (client)
			take_some(&clients, client, bound);
	}
	end_clients(&clients);
	return NULL;
}

static inline void start_load(unsigned int seed)
{
	stop_producers = false;
	stop_workers = false;
	last_delivery = mono();
	for (long i = 0; i <= PRODUCERS; i++)
		pthread_create(&producers[i], NULL, i < PRODUCERS ? produce :
			       produce_by_sql, (void *)(seed + i));
	for (long i = 0; i < WORKERS * nr_nodes(); i++)
		pthread_create(&workers[i], NULL, work, (void *)(seed + i));
}

static inline void end_producers(void)
{
	stop_producers = true;
	for (int i = 0; i <= PRODUCERS; i++)
		pthread_join(producers[i], NULL);
}

/* Ends the load. The workers go on until no job is left, or until no job comes for @patience ms. */
static inline void end_load(int patience)
{
	struct clients clients = { };

	end_producers();
	while (ask_primary("select count(*) from timewheel.job") &&
	       mono() - last_delivery < patience) {
		look_around(&clients, 0, 0);
		sleep_ms(300);
	}
	end_clients(&clients);
	stop_workers = true;
	for (int i = 0; i < WORKERS * nr_nodes(); i++)
		pthread_join(workers[i], NULL);
}

#endif /* CLUSTER_LOAD_H */
