// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd is killed again and again, or another one takes its place, while producers
 * and workers use it. They keep a ledger of what they were answered, and in the end
 * all of it has to be so:
 *
 * J1	an answered put, cancel or ack is never undone
 * J2	no job is handed out early, and none is done twice
 * J4	kill -9 at any moment; what workers hold stays theirs when the daemon is
 *	upgraded
 *
 * A command whose connection ended before the answer is in doubt: either is right.
 * TW_SCALE scales the number of kills, and that of threads up to 64.
 */
#include <sqlite3.h>

#include "jobs_manager.h"

#define PRODUCERS	4
#define WORKERS		4
#define CROWD		32	/* of each, at most */
#define KILLS		10
#define UPGRADES	4
#define HELD		5
#define JOBS		200000
/* Of jobs that are put to be cancelled, or moved nearer. */
#define FAR_MS		4000

/* What is known of a job; its body is its index. */
static struct entry {
	/* @repeated: the first put may have been done before the second. */
	atomic_bool put, repeated;
	atomic_bool cancelled, cancel_in_doubt;
	atomic_int delivered, done, ack_in_doubt;
} entries[JOBS];

static atomic_int next_entry, early, strange, stale, in_doubt, nacked, bad_answers;
static atomic_bool stop_producers, stop_workers;

/* Connects again if the connection has ended. */
static redisContext *revive(redisContext *client)
{
	if (client && !client->err)
		return client;
	if (client)
		redisFree(client);
	return connect_daemon();
}

static unsigned int roll(unsigned int *seed)
{
	return rand_r(seed) % 100;
}

/* A put that may be repeated: its key tells whether the first one was kept. */
static long long put_keyed(redisContext **client, int index, int delay)
{
	for (;;) {
		redisReply *reply = say(*client, "TW.PUT q %d IN 0.%03d KEY key-%d",
					index, delay, index);
		long long id = -1;

		if (!reply) {
			entries[index].repeated = true;
			*client = revive(*client);
			if (!*client)
				return -1;
			continue;
		}
		if (reply->type == REDIS_REPLY_ARRAY)
			id = reply->element[0]->integer;
		/* The first one was kept, and a worker has it already. */
		else if (strncmp(reply->str, "HELD", 4))
			bad_answers++;
		freeReplyObject(reply);
		return id;
	}
}

static long long put(redisContext **client, int index, int delay)
{
	redisReply *reply = say(*client, "TW.PUT q %d IN %d.%03d", index,
				delay / 1000, delay % 1000);
	long long id = -1;

	if (reply && reply->type == REDIS_REPLY_INTEGER)
		id = reply->integer;
	else if (reply)
		bad_answers++;
	else
		in_doubt++;
	if (reply)
		freeReplyObject(reply);
	return id;
}

static void cancel(redisContext *client, int index, long long id)
{
	redisReply *reply = say(client, "TW.CANCEL q %lld", id);

	if (!reply)
		entries[index].cancel_in_doubt = true;
	else if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1)
		entries[index].cancelled = true;
	else
		bad_answers++;
	if (reply)
		freeReplyObject(reply);
}

static void *produce(void *number)
{
	unsigned int seed = (long)number;
	redisContext *client = NULL;

	while (!stop_producers) {
		int index = next_entry++;
		unsigned int what = roll(&seed);
		long long id;

		client = revive(client);
		if (!client || index >= JOBS)
			break;
		if (what < 30)
			id = put_keyed(&client, index, roll(&seed) * 3);
		else
			id = put(&client, index, what < 60 ? FAR_MS :
						 (int)roll(&seed) * 3);
		if (id < 0)
			continue;
		entries[index].put = true;
		if (what >= 30 && what < 50)
			cancel(client, index, id);
		else if (what >= 50 && what < 60)
			number_of(say(client, "TW.MOVE q %lld IN 0.1", id));
	}
	if (client)
		redisFree(client);
	return NULL;
}

static void ack(redisContext *client, const struct taken *taken, int index)
{
	redisReply *reply = say(client, "TW.ACK q %s", taken->receipt);

	if (!reply)
		entries[index].ack_in_doubt++;
	else if (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1)
		entries[index].done++;
	else if (!strncmp(reply->str, "STALE", 5))
		stale++;
	else
		bad_answers++;
	if (reply)
		freeReplyObject(reply);
}

static void work_on(redisContext *client, const redisReply *job,
		    unsigned int what)
{
	struct taken taken;
	int index;

	read_taken(job, &taken);
	index = atoi(taken.body);
	if (index < 0 || index >= next_entry) {
		strange++;
		return;
	}
	early += now_ms(CLOCK_REALTIME) < taken.due;
	entries[index].delivered++;
	if (what < 85) {
		ack(client, &taken, index);
	} else if (what < 95) {
		redisReply *reply = say(client, "TW.NACK q %s IN 0.1",
					taken.receipt);

		nacked++;
		if (reply)
			freeReplyObject(reply);
	}
	/* Or it is forgotten, and its lease has to end. */
}

static void *work(void *number)
{
	unsigned int seed = 100 + (long)number;
	redisContext *client = NULL;

	while (!stop_workers) {
		redisReply *reply;

		client = revive(client);
		if (!client)
			break;
		reply = say(client, (long)number % 2 ?
			    "TW.TAKE q COUNT 8 BLOCK 200" :
			    "TW.TAKE q COUNT 8 BLOCK 200 BOUND");
		if (!reply)
			continue;
		for (size_t i = 0; i < reply->elements; i++)
			work_on(client, reply->element[i], roll(&seed));
		if (reply->type == REDIS_REPLY_ERROR)
			bad_answers++;
		freeReplyObject(reply);
	}
	if (client)
		redisFree(client);
	return NULL;
}

/* Nobody else works any more: what is left is done, as long as something comes. */
static void drain(redisContext *client)
{
	long long until = now_ms(CLOCK_MONOTONIC) + FAR_MS + 4000;

	while (figure(client, "q", "jobs") && now_ms(CLOCK_MONOTONIC) < until) {
		redisReply *reply = say(client, "TW.TAKE q COUNT 100 BLOCK 200");
		size_t count = reply ? reply->elements : 0;

		for (size_t i = 0; i < count; i++)
			work_on(client, reply->element[i], 0);
		if (count || figure(client, "q", "held"))
			until = now_ms(CLOCK_MONOTONIC) + FAR_MS + 4000;
		if (reply)
			freeReplyObject(reply);
	}
}

static long long number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement;
	long long value = -1;

	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static int scaled(int n)
{
	const char *scale = getenv("TW_SCALE");

	n *= scale ? atof(scale) : 1;
	return n < 3 ? 3 : n;
}

static int crowd(int n)
{
	n = scaled(n);
	return n < CROWD ? n : CROWD;
}

FIXTURE(ledger) {
	pid_t daemon;
	int kept;		/* the wheel's file, if it is upgraded */
	pthread_t producers[CROWD], workers[CROWD];
};

FIXTURE_SETUP(ledger)
{
	if (access("/dev/timewheel", F_OK))
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("", "LEASE 1.5 TRIES 0");
}

/* The store is whole, and has nothing in it. */
FIXTURE_TEARDOWN(ledger)
{
	char threads[32];
	struct stat task;
	sqlite3 *db;

	/* There is one: nothing that ThreadSanitizer could find. */
	snprintf(threads, sizeof(threads), "/proc/%d/task", self->daemon);
	ASSERT_EQ(0, stat(threads, &task));
	EXPECT_EQ(3, task.st_nlink);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	ASSERT_EQ(SQLITE_OK, sqlite3_open(STORE, &db));
	EXPECT_EQ(0, number(db, "select count(*) from job"));
	EXPECT_EQ(0, number(db, "select count(*) from body"));
	EXPECT_EQ(1, number(db, "select count(*) from pragma_integrity_check\n"
				"where integrity_check = 'ok'"));
	sqlite3_close(db);
	clean_up();
}

static void killed(FIXTURE_DATA(ledger) *self)
{
	/* It has not ended by itself before. */
	strange += end_daemon(self->daemon, SIGKILL) != SIGKILL;
	self->daemon = start_daemon();
}

/* Under load, and now and then while it starts. */
static void kill_it(FIXTURE_DATA(ledger) *self)
{
	for (int i = scaled(KILLS); i; i--) {
		redisFree(connect_daemon());
		sleep_ms(300 + rand() % 600);
		killed(self);
		if (i % 4 == 0) {
			sleep_ms(rand() % 200);
			killed(self);
		}
	}
	sleep_ms(500);
}

/* As it is done with "systemctl restart", with jobs that a worker has meanwhile. */
static void upgrade(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self)
{
	redisContext *client = connect_daemon();
	struct taken held[HELD];
	int count = 0;

	while (count < HELD &&
	       take(client, &held[count], "TW.TAKE q BLOCK 5000"))
		entries[atoi(held[count++].body)].delivered++;
	redisFree(client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	self->daemon = start_with_file(self->kept);
	client = connect_daemon();
	for (int i = 0; i < count; i++) {
		ack(client, &held[i], atoi(held[i].body));
		EXPECT_GT(entries[atoi(held[i].body)].done, 0);
	}
	redisFree(client);
}

static void upgrade_it(struct __test_metadata *_metadata,
		       FIXTURE_DATA(ledger) *self)
{
	for (int i = scaled(UPGRADES); i; i--) {
		sleep_ms(200 + rand() % 400);
		upgrade(_metadata, self);
	}
	sleep_ms(300);
}

static void under_load(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self,
		       bool upgraded)
{
	int producers = crowd(PRODUCERS), workers = crowd(WORKERS);

	for (long i = 0; i < producers; i++)
		pthread_create(&self->producers[i], NULL, produce, (void *)i);
	for (long i = 0; i < workers; i++)
		pthread_create(&self->workers[i], NULL, work, (void *)i);
	if (upgraded)
		upgrade_it(_metadata, self);
	else
		kill_it(self);
	stop_producers = true;
	for (int i = 0; i < producers; i++)
		pthread_join(self->producers[i], NULL);
	stop_workers = true;
	for (int i = 0; i < workers; i++)
		pthread_join(self->workers[i], NULL);
}

/* What is left is done, and then the ledger is right. */
static void check_ledger(struct __test_metadata *_metadata)
{
	int puts = 0, done = 0, lost = 0, twice = 0, undone = 0;
	redisContext *client = connect_daemon();

	ASSERT_NE(NULL, client);
	drain(client);
	for (int i = 0; i < next_entry; i++) {
		struct entry *entry = &entries[i];

		puts += entry->put;
		done += entry->done;
		twice += entry->done > 1 + entry->repeated;
		undone += entry->cancelled && entry->delivered;
		lost += entry->put && !entry->cancelled && !entry->done &&
			!entry->cancel_in_doubt && !entry->ack_in_doubt;
	}
	TH_LOG("puts answered %d, in doubt %d, done %d, nacked %d, stale %d", puts,
	       in_doubt, done, nacked, stale);
	TH_LOG("lost %d, twice %d, undone %d, early %d, strange %d, mended %lld",
	       lost, twice, undone, early, strange, figure(client, NULL, "mended"));
	EXPECT_GT(puts, 100);
	EXPECT_GT(done, 50);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, undone);
	EXPECT_EQ(0, early);
	EXPECT_EQ(0, strange);
	EXPECT_EQ(0, bad_answers);
	EXPECT_EQ(0, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, "q", "bytes"));
	EXPECT_EQ(0, figure(client, "q", "held"));
	redisFree(client);
}

TEST_F_TIMEOUT(ledger, J1_J2_J4_killed_under_load, 3600)
{
	under_load(_metadata, self, false);
	check_ledger(_metadata);
}

/* None of what is held is handed out again, though all of it is held for a while. */
TEST_F_TIMEOUT(ledger, J1_J2_J4_upgraded_under_load, 3600)
{
	redisContext *client;
	int notify;

	/* Longer than an upgrade takes on a machine that is slow, for so many. */
	client = must_connect();
	SAYS("OK", client, "TW.CREATE q LEASE %d", crowd(PRODUCERS) + 4);
	redisFree(client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	notify = open_notify();
	self->daemon = start_daemon();
	self->kept = kept_file(notify);
	ASSERT_GE(self->kept, 0);
	/* Nobody reads what the later ones would tell. */
	unsetenv("NOTIFY_SOCKET");
	under_load(_metadata, self, true);
	client = must_connect();
	EXPECT_EQ(0, figure(client, NULL, "mended"));
	redisFree(client);
	check_ledger(_metadata);
	close(self->kept);
	close(notify);
}

TEST_HARNESS_MAIN
