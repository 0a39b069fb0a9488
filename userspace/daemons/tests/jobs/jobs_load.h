/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Producers, workers and an operator use all verbs by chance, and enter the answers in the
 * ledger: see jobs_ledger.h.
 */
#ifndef JOBS_LOAD_H
#define JOBS_LOAD_H

#include "jobs_ledger.h"

#define CROWD		32	/* producers and workers, at most this many of each */
/* This queue exists only for a short time each time. */
#define PASSING		"passing"
/* A producer chooses a job to change among this many of the newest jobs. */
#define NEWEST		2000
/* A worker takes at most this many jobs at once. */
#define TAKEN		8
/* FAR_MS is for jobs that become due only by a change, and NEAR_MS for other jobs. */
#define FAR_MS		3600000
#define NEAR_MS		2000

/* Producers send these commands, and workers answer a delivery with them. */
static const struct verb put_verb = {
	"PUT", BY_BODY, 0, GONE, LIVE, MAKES | MOVES | TIMED | ANEW,
		"NEW EXISTS BURIED DONE HELD DRAINING", ""
}, changes[] = {
	{ "PUT", BY_KEY, 8, GONE, LIVE, MAKES | MOVES | TIMED | ANEW,
		"NEW EXISTS BURIED DONE HELD DRAINING", "" },
	{ "PUT", BY_KEY, 15, ANY, LIVE, MAKES | MOVES | TIMED | ANEW,
		"NEW REPLACED DONE HELD DRAINING", " REPLACE" },
	{ "CANCEL", BY_ID, 10, LIVE | BURIED, GONE, ENDS, "1 0 HELD", "" },
	{ "CANCELKEY", BY_KEY, 8, LIVE | BURIED, GONE, ENDS, "1 0 HELD", "" },
	{ "DELETE", BY_ID, 8, LIVE | BURIED, GONE, ENDS | FREES, "1 0", "" },
	{ "MOVE", BY_ID, 14, LIVE, LIVE, MOVES | TIMED, "1 0 HELD BURIED", "" },
	{ "MOVEKEY", BY_KEY, 10, LIVE, LIVE, MOVES | TIMED, "1 0 HELD BURIED", "" },
	{ "KICK", BY_ID, 10, LIVE | BURIED, LIVE, MOVES | ANEW, "1 0 HELD", "" },
	{ "GET", BY_ID, 10, 0, 0, 0, "delayed ready held waiting buried done nil", "" },
	{ "LIST", BY_QUEUE, 4 },
	{ "KICK", BY_QUEUE, 3 },
}, ends[] = {
	{ "ACK", BY_RECEIPT, 60, LIVE, GONE, ENDS | FREES, "1 STALE", "" },
	{ "NACK", BY_RECEIPT, 16, LIVE, LIVE, MOVES | TIMED | FREES | FAILS,
		"OK BURIED STALE", "" },
	{ "NACK", BY_RECEIPT, 8, LIVE, LIVE, MOVES | TIMED | FREES | UNTRIES, "OK STALE",
		" UNTRIED" },
	{ "BURY", BY_RECEIPT, 12, LIVE, BURIED, FREES | FAILS, "OK STALE", "" },
	/* The worker waits until the lease ends, or answers much later. */
	{ "forget", BY_QUEUE, 12 },
}, extend_verb = {
	"EXTEND", BY_RECEIPT, 0, LIVE, LIVE, HOLDS, "OK STALE", ""
};

static atomic_bool stop_producers, stop_workers;

struct client {
	redisContext *connection;
	unsigned int seed;
	/* This delivery has no answer yet, and its answer may come too late. */
	struct entry *forgotten;
	char receipt[128];
};

static inline unsigned int roll(struct client *client)
{
	return rand_r(&client->seed) % 100;
}

/* Connects again if the connection has ended. */
static inline bool revive(struct client *client)
{
	if (client->connection && !client->connection->err)
		return true;
	if (client->connection)
		redisFree(client->connection);
	client->connection = connect_daemon();
	return client->connection;
}

static inline void end_client(struct client *client)
{
	if (client->connection)
		redisFree(client->connection);
}

__attribute__((__format__(printf, 2, 3)))
static inline redisReply *tell(struct client *client, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return redisCommand(client->connection, line);
}

/* Sends a command, and does not wait for the answer. */
__attribute__((__format__(printf, 2, 3)))
static inline void append(struct client *client, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	redisAppendCommand(client->connection, line);
}

/* Writes the object of a command, which comes after the queue. */
static inline void write_object(const struct call *call, char *text, size_t size)
{
	const struct entry *entry = call->entry;
	const struct verb *verb = call->verb;
	int index = entry - entries;
	char options[64] = "";
	size_t length = 0;

	if (entry->options)
		length = snprintf(options, sizeof(options), " LEASE %.3f TRIES %d BACKOFF 1 2",
				  (lease + EXTENSION) / 1000000.0, entry->queue->tries);
	if (entry->group)
		snprintf(options + length, sizeof(options) - length, " GROUP g%td",
			 entry->group - groups);
	if (verb->flags & MAKES && entry->keyed)
		snprintf(text, size, "%d.%d KEY k%d%s%s%s", index, call->version, index,
			 verb->more, entry->unique ? " UNIQUE " KEPT : "", options);
	else if (verb->flags & MAKES)
		snprintf(text, size, "%d.%d%s", index, call->version, options);
	else if (verb->flags & FAILS)
		snprintf(text, size, "%s REASON %d.failed", call->receipt, index);
	else if (verb->flags & HOLDS)
		snprintf(text, size, "%s %.3f", call->receipt,
			 (lease + EXTENSION) / 1000000.0);
	else if (verb->by == BY_KEY)
		snprintf(text, size, "k%d", index);
	else if (verb->by == BY_RECEIPT)
		snprintf(text, size, "%s%s", call->receipt, verb->more);
	else
		snprintf(text, size, "%lld", call->id);
}

/* Sends a command about a job, and enters the answer. Returns false if there is no answer. */
static inline bool carry_out(struct client *client, struct call *call)
{
	char object[192], in[32] = "";
	redisReply *reply;
	bool answered;

	if (!begin(call))
		return true;
	write_object(call, object, sizeof(object));
	if (call->verb->flags & TIMED)
		snprintf(in, sizeof(in), " IN %d.%03d", call->ms / 1000, call->ms % 1000);
	reply = tell(client, "TW.%s %s %s%s", call->verb->name, call->entry->queue->name,
		     object, in);
	answered = end(call, reply);
	if (reply)
		freeReplyObject(reply);
	return answered;
}

/*
 * Puts a job. A put by key that got no answer is sent again: the key tells whether the job was
 * kept.
 */
static inline void put_new(struct client *client)
{
	unsigned int what = roll(client);
	struct entry *entry = new_entry(what % 3 == 0, what < 70);
	struct call call = { .verb = &put_verb, .entry = entry };

	/*
	 * A job that is due late has a key, by which a producer can change it even if the answer
	 * is lost.
	 */
	call.ms = what % 2 && what < 70 ? FAR_MS : (int)roll(client) * 3;
	while (entry && !carry_out(client, &call) && entry->keyed && revive(client))
		call.verb = &changes[0];
}

static inline const struct verb *choose(struct client *client, const struct verb *verbs,
					size_t count)
{
	int sum = 0, left;

	for (size_t i = 0; i < count; i++)
		sum += verbs[i].weight;
	left = rand_r(&client->seed) % sum;
	while (left >= verbs->weight)
		left -= verbs++->weight;
	return verbs;
}

/* Notes what a TW.LIST that was sent at @sent tells of a job. */
static inline void note_listed(redisReply **map, long long sent)
{
	long long id = map[1]->integer;
	const char *state = map[3]->str;
	struct entry *entry;

	entry = id > 0 && id < IDS && entry_of_id[id] ? &entries[entry_of_id[id] - 1] : NULL;
	if (!entry)
		return;
	entry->listed = sent;
	/* A job that is tried too often gets buried instead, and a job of a group may wait. */
	entry->awaited = !strcmp(state, "ready") && !entry->queue->tries && !entry->group;
	if (entry->since >= sent)
		return;
	if (!(entry->known.states & states_of(state)))
		is_wrong(LIES, entry, "LIST", state);
	if (strcmp(state, "buried") && strcmp(state, "done"))
		note_due(entry, &entry->known, "LIST", map[5]->integer);
}

/* Checks that all jobs between both cursors that existed all the time have been listed. */
static inline void compare_list(const struct queue *queue, long long cursor, long long next,
				long long sent)
{
	for (struct entry *entry = entries; entry < entries + next_entry; entry++)
		if (entry->queue == queue && entry->id > cursor &&
		    (!next || entry->id <= next) && !(entry->known.states & GONE) &&
		    entry->since < sent && is_quiet(entry, sent, 0) && entry->listed != sent)
			is_wrong(LOST, entry, "LIST", "");
}

/* Returns the next cursor, or -1 without an answer. Adds the number of jobs to @jobs. */
static inline long long list(struct client *client, const struct queue *queue,
			     long long cursor, int count, size_t *jobs)
{
	struct asked asked = ask(false);
	redisReply *reply = tell(client, "TW.LIST %s CURSOR %lld COUNT %d", queue->name,
				 cursor, count);
	long long next = -1;

	pthread_mutex_lock(&ledger);
	if (reply && reply->type == REDIS_REPLY_ARRAY) {
		next = reply->element[0]->integer;
		for (size_t i = 0; i < reply->element[1]->elements; i++)
			note_listed(reply->element[1]->element[i]->element, asked.sent);
		compare_list(queue, cursor, next, asked.sent);
		if (jobs)
			*jobs += reply->element[1]->elements;
	}
	wrong[LIES] += reply && next < 0;
	pthread_mutex_unlock(&ledger);
	if (reply)
		freeReplyObject(reply);
	return next;
}

/* Returns the number of kicked jobs, or -1 without an answer. */
static inline long long kick_all(struct client *client, const struct queue *queue, int most)
{
	redisReply *reply;
	long long count;

	begin_kicks(queue);
	reply = tell(client, "TW.KICK %s ALL %d", queue->name, most);
	end_kicks();
	wrong[LIES] += reply && reply->type != REDIS_REPLY_INTEGER;
	count = number_of(reply);
	wrong[LIES] += count > most;
	return count;
}

/* Prefers newer jobs, and jobs that are not gone. */
static inline struct entry *choose_entry(struct client *client)
{
	struct entry *entry = NULL;

	pthread_mutex_lock(&ledger);
	for (int tries = 0; tries < 8; tries++) {
		int most = 1 + rand_r(&client->seed) % MIN(next_entry, NEWEST);

		entry = &entries[next_entry - 1 - rand_r(&client->seed) % most];
		if (entry->known.states != GONE)
			break;
	}
	pthread_mutex_unlock(&ledger);
	return entry;
}

static inline const struct verb *change_called(const char *name)
{
	const struct verb *verb = changes;

	while (strcmp(verb->name, name))
		verb++;
	return verb;
}

static inline void change(struct client *client, struct entry *entry)
{
	const struct verb *verb = choose(client, changes, ARRAY_SIZE(changes));
	struct call call = { .verb = verb, .entry = entry };

	if (verb->flags & TIMED)
		call.ms = roll(client) < 60 ? 100 : entry->keyed ? FAR_MS / 2 : NEAR_MS;
	if (verb->by != BY_QUEUE)
		carry_out(client, &call);
	else if (!strcmp(verb->name, "LIST"))
		list(client, call.entry->queue, call.entry->id,
		     roll(client) % 2 ? 20 : 1000, NULL);
	else
		kick_all(client, call.entry->queue, 20);
}

static inline void *produce(void *number)
{
	struct client client = { .seed = (long)number };

	while (!stop_producers && revive(&client)) {
		put_new(&client);
		if (roll(&client) < 80 && revive(&client))
			change(&client, choose_entry(&client));
	}
	end_client(&client);
	return NULL;
}

static inline void forget(struct client *client, const struct taken *taken,
			  struct entry *entry)
{
	client->forgotten = entry;
	memcpy(client->receipt, taken->receipt, sizeof(client->receipt));
}

static inline void remember(struct client *client)
{
	struct call call = {
		.verb = choose(client, ends, ARRAY_SIZE(ends) - 1),
		.entry = client->forgotten,
		.receipt = client->receipt,
	};

	if (roll(client) < 90 || !call.entry || client->connection->err)
		return;
	client->forgotten = NULL;
	carry_out(client, &call);
}

/* Notes that a command has been undone. */
static inline void end_undone(struct call *call)
{
	pthread_mutex_lock(&ledger);
	note_not_done(call, is_quiet(call->entry, call->sent, 1), ANY, "");
	call->entry->under_way--;
	call->entry->answered = mono();
	pthread_mutex_unlock(&ledger);
}

/* Notes the answer to EXEC. The error of a transaction is the error of one of its commands. */
static inline void end_both(struct call *calls[2], const redisReply *reply)
{
	redisReply error = { .type = REDIS_REPLY_ERROR };
	int failed = 0, at = 0;

	if (reply && reply->type == REDIS_REPLY_ERROR &&
	    (sscanf(reply->str, "EXECABORT %d: %n", &failed, &at) != 1 || !at ||
	     failed < 1 || failed > 2)) {
		is_wrong(LIES, calls[0]->entry, "EXEC", reply->str);
		failed = 0;
	}
	error.str = reply ? reply->str + at : NULL;
	for (int i = 0; i < 2; i++) {
		if (!reply)
			end(calls[i], NULL);
		else if (reply->type == REDIS_REPLY_ARRAY)
			end(calls[i], reply->element[i]);
		else if (i + 1 == failed)
			end(calls[i], &error);
		else
			end_undone(calls[i]);
	}
}

/* Ends a job, and puts the next job of a chain, by one transaction. */
static inline void go_on(struct client *client, struct call *ack)
{
	struct entry *entry = new_entry(roll(client) % 2, roll(client) < 50);
	struct call put = { .verb = &put_verb, .entry = entry, .ms = roll(client) * 3 };
	struct call *calls[] = { ack, &put };
	redisReply *reply = NULL;
	char object[192];

	if (!entry)
		return;
	begin(ack);
	begin(&put);
	write_object(&put, object, sizeof(object));
	redisAppendCommand(client->connection, "MULTI");
	redisAppendCommand(client->connection, "TW.ACK %s %s", ack->entry->queue->name,
			   ack->receipt);
	append(client, "TW.PUT %s %s IN 0.%03d", entry->queue->name, object, put.ms);
	redisAppendCommand(client->connection, "EXEC");
	for (int i = 0; i < 4; i++) {
		if (reply)
			freeReplyObject(reply);
		reply = NULL;
		if (redisGetReply(client->connection, (void **)&reply) != REDIS_OK)
			break;
	}
	end_both(calls, reply);
	if (reply)
		freeReplyObject(reply);
}

static inline void work_on(struct client *client, const struct taken *taken,
			   struct entry *entry, const struct verb *last)
{
	struct call call = { .entry = entry, .receipt = taken->receipt };

	remember(client);
	/* Other clients cannot change the job at this moment. */
	if (roll(client) < 10)
		change(client, entry);
	if (roll(client) < 12 && !client->connection->err) {
		call.verb = &extend_verb;
		carry_out(client, &call);
	}
	call.verb = last;
	call.ms = roll(client) * 2;
	if (last == &ends[0] && !stop_producers && roll(client) < 20 &&
	    !client->connection->err)
		go_on(client, &call);
	else if (last->by == BY_RECEIPT && !client->connection->err)
		carry_out(client, &call);
	else if (!client->forgotten)
		forget(client, taken, entry);
}

/* Acks the jobs of the entries that are not NULL, by one command. */
static inline void ack_several(struct client *client, const struct taken *taken,
			       struct entry * const *got)
{
	static const redisReply stale = { .type = REDIS_REPLY_ERROR, .str = "STALE" };
	struct call calls[TAKEN];
	char line[TAKEN * sizeof(taken->receipt)];
	redisReply *reply;
	size_t count = 0, length;

	length = snprintf(line, sizeof(line), "TW.ACK %s", taken->queue);
	for (int i = 0; i < TAKEN; i++) {
		if (!got[i])
			continue;
		calls[count] = (struct call) {
			.verb = &ends[0], .entry = got[i], .receipt = taken[i].receipt,
		};
		begin(&calls[count++]);
		length += snprintf(line + length, sizeof(line) - length, " %s",
				   taken[i].receipt);
	}
	reply = redisCommand(client->connection, line);
	if (reply && (reply->type != REDIS_REPLY_ARRAY || reply->elements != count))
		abort();
	for (size_t i = 0; i < count; i++)
		end(&calls[i], !reply ? NULL : reply->element[i]->integer ?
				reply->element[i] : &stale);
	if (reply)
		freeReplyObject(reply);
}

static inline void work_on_all(struct client *client, const struct taken *taken,
			       struct entry * const *got, const struct verb *last)
{
	bool several = !last && got[0] && got[1] && got[0]->queue == got[1]->queue &&
		       roll(client) < 30;
	struct entry *together[TAKEN] = { };

	for (int i = 0; i < TAKEN; i++) {
		if (several && got[i] && got[i]->queue == got[0]->queue)
			together[i] = got[i];
		else if (got[i])
			work_on(client, &taken[i], got[i],
				last ?: choose(client, ends, ARRAY_SIZE(ends)));
	}
	if (several)
		ack_several(client, taken, together);
}

/*
 * Returns how many jobs were taken. Their deliveries end by @last, or by a verb chosen by chance
 * if @last is NULL.
 */
static inline size_t take_some(struct client *client, const char *queues_and_more,
			       const struct verb *last)
{
	struct asked asked = ask(strstr(queues_and_more, "BOUND"));
	redisReply *reply = tell(client, "TW.TAKE %s COUNT %d BLOCK 200", queues_and_more,
				 TAKEN);
	size_t count = reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
	const char *before = queues_and_more;
	struct entry *got[TAKEN] = { };
	struct taken taken[TAKEN];

	for (size_t i = 0; i < count; i++) {
		const char *place;

		read_taken(reply->element[i], &taken[i]);
		/* The queues are asked in their order. */
		place = strstr(before, taken[i].queue);
		if (!place)
			printf("# %s after others of: %s\n", taken[i].queue, queues_and_more);
		wrong[STRANGE] += !place;
		before = place ?: before;
		got[i] = note_delivery(&taken[i], &asked);
	}
	work_on_all(client, taken, got, last);
	wrong[LIES] += reply && reply->type == REDIS_REPLY_ERROR;
	if (reply)
		freeReplyObject(reply);
	return count;
}

static inline void *work(void *number)
{
	static const char * const ways[] = { "q", "u q", "q u BOUND", "u BOUND" };
	struct client client = { .seed = 100 + (long)number };

	while (!stop_workers && revive(&client))
		take_some(&client, ways[(long)number % 4], NULL);
	end_client(&client);
	return NULL;
}

/*
 * Repeats a command until it is carried out, however often the daemon is killed meanwhile. A new
 * queue may still be loading.
 */
__attribute__((__format__(printf, 3, 4)))
static inline void insist(struct client *client, const char *answers, const char *format, ...)
{
	const char *answer;
	redisReply *reply;
	va_list args;

	do {
		va_start(args, format);
		reply = revive(client) ? redisvCommand(client->connection, format, args) : NULL;
		va_end(args);
		answer = as_text(reply);
		if (reply)
			freeReplyObject(reply);
	} while (is_one_of(answer, "ended LOADING") && client->connection);
	if (!is_one_of(answer, answers))
		printf("# %s: %s\n", format, answer);
	wrong[LIES] += !is_one_of(answer, answers);
}

/*
 * Checks that the queue still has this setting, also if the daemon has been killed and workers
 * are back.
 */
static inline void look_at(struct client *client, const struct queue *queue,
			   const char *setting)
{
	long long value = figure(client->connection, queue->name, setting);

	if (value < 0 && revive(client)) {
		sleep_ms(100);
		value = figure(client->connection, queue->name, setting);
	}
	wrong[LIES] += value == 0;
}

/* Checks that a figure has this value, however often the daemon is killed meanwhile. */
static inline void insist_on(struct client *client, const char *queue, const char *name,
			     long long value)
{
	long long found = -1;

	while (found < 0 && revive(client))
		found = figure(client->connection, queue, name);
	if (found != value)
		printf("# %s of %s: %lld, not %lld\n", name, queue, found, value);
	wrong[STRANGE] += found != value;
}

/* Makes a queue, which gets jobs and a rule, and drops it with all its jobs. */
static inline void come_and_go(struct client *client)
{
	insist(client, "OK", "TW.CREATE " PASSING);
	insist_on(client, PASSING, "jobs", 0);
	for (int i = 0; i < 3; i++)
		insist(client, "[2]", "TW.PUT " PASSING " body KEY %d IN %d", i, i * 1000);
	insist(client, "[2]", "TW.EVERY " PASSING " rule @hourly body");
	insist_on(client, PASSING, "jobs", 4);
	/* The queue may have been dropped before the daemon was killed. */
	insist(client, "OK NOQUEUE", "TW.DROP " PASSING);
	insist(client, "NOQUEUE", "TW.PUT " PASSING " body");
	if (!access("/dev/timewheels/" PREFIX PASSING, F_OK)) {
		printf("# the wheel of a queue that was dropped is there\n");
		wrong[STRANGE]++;
	}
}

/*
 * Pauses or drains a queue for a while, and resumes it. In between, another queue comes and goes.
 */
static inline void *operate(void *unused)
{
	struct client client = { .seed = 1000 };

	(void)unused;
	while (!stop_producers) {
		struct queue *queue = &queues[roll(&client) % 2];
		bool pauses = roll(&client) < 50;
		long long *since = pauses ? &queue->paused : &queue->drained;

		sleep_ms(300 + roll(&client) * 5);
		if (!pauses)
			note_time(&queue->was_drained, FOREVER);
		insist(&client, "OK", "TW.%s %s", pauses ? "PAUSE" : "DRAIN", queue->name);
		note_time(since, mono());
		sleep_ms(roll(&client) * 3);
		look_at(&client, queue, pauses ? "paused" : "draining");
		note_time(since, 0);
		insist(&client, "OK", "TW.RESUME %s", queue->name);
		if (!pauses)
			note_time(&queue->was_drained, mono());
		come_and_go(&client);
	}
	end_client(&client);
	return NULL;
}

#endif /* JOBS_LOAD_H */
