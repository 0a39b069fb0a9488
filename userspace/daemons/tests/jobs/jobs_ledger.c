// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd is killed again and again, or another one takes its place, while producers, workers and
 * an operator use all verbs by chance. They enter all answers in a ledger, and in the end twjobd
 * has to keep these promises:
 *
 * J1	an answered put, change or end is never undone
 * J2	no job is handed out early, none while another worker has it, and none ends twice
 * J3	no job is handed out more often than its queue tells
 * J4	kill -9 at any moment; what workers hold stays theirs if the service manager has
 *	the wheel's file
 * J6	answers, store and wheel agree; and workers have no more jobs of a queue than its LIMIT,
 *	or of a group than its GROUPLIMIT, and get no more of a queue than its RATE
 *
 * A command whose connection ended before its answer may have been carried out or not. TW_SCALE
 * scales the number of kills, and the number of threads up to 64.
 */
#include <sqlite3.h>

#include "jobs_load.h"
#include "jobs_manager.h"

#define PRODUCERS	4
#define WORKERS		4
#define KILLS		8	/* and one more kill after each fourth one */
#define UPGRADES	3
#define HELD		5
#define SETTINGS	"LEASE %.1f TRIES %d LIMIT %d RATE %d %d GROUPLIMIT %d KEEPDONE %s"

/* Checks that all jobs are listed. */
static void compare_lists(struct __test_metadata *_metadata, struct client *client)
{
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		long long cursor = 0, jobs = figure(client->connection, queues[i].name, "jobs");
		size_t listed = 0;

		do {
			cursor = list(client, &queues[i], cursor, 50, &listed);
		} while (cursor > 0);
		EXPECT_EQ(0, cursor);
		EXPECT_EQ(jobs, listed);
	}
}

/* Moves jobs that are due later, so that they are due now. */
static void bring_near(struct client *client)
{
	for (struct entry *entry = entries; entry < entries + next_entry; entry++) {
		struct call call = { .entry = entry };

		call.verb = change_called(entry->id ? "MOVE" : "MOVEKEY");
		if (entry->known.states != GONE &&
		    entry->known.latest > now_ms(CLOCK_REALTIME))
			carry_out(client, &call);
	}
}

/* Takes all due jobs. Jobs that are listed as ready have to be handed out then. */
static void take_ready(struct client *client, long long until)
{
	for (struct entry *entry = entries; entry < entries + next_entry; entry++)
		entry->awaited = false;
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		list(client, &queues[i], 0, 1000, NULL);
	while (take_some(client, "q u", &ends[0]) && now_ms(CLOCK_MONOTONIC) < until)
		;
	for (struct entry *entry = entries; entry < entries + next_entry; entry++)
		if (entry->awaited)
			is_wrong(STUCK, entry, "LIST", "ready");
}

/*
 * Kicks all buried jobs while no client buries any more: their number was right, and none is
 * left.
 */
static void bring_back(struct __test_metadata *_metadata, struct client *client,
		       const struct queue *queue)
{
	long long buried = figure(client->connection, queue->name, "buried");

	EXPECT_EQ(buried, kick_all(client, queue, 10000));
	EXPECT_EQ(0, figure(client->connection, queue->name, "buried"));
}

/* Ends the jobs that are left while no other client works, unless this takes too long. */
static void drain(struct __test_metadata *_metadata, struct client *client)
{
	long long until = now_ms(CLOCK_MONOTONIC) + 4 * PATIENCE, jobs;

	bring_near(client);
	do {
		take_ready(client, until);
		jobs = 0;
		for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
			bring_back(_metadata, client, &queues[i]);
			jobs += figure(client->connection, queues[i].name, "jobs") -
				figure(client->connection, queues[i].name, "done");
		}
	} while (jobs && now_ms(CLOCK_MONOTONIC) < until);
}

/* Finds the job's number by its key. A put without an answer has not told the number. */
static void find_number(struct client *client, struct entry *entry)
{
	redisReply *reply = tell(client, "TW.GETKEY %s k%d", entry->queue->name,
				 (int)(entry - entries));

	wrong[LIES] += !reply || reply->type == REDIS_REPLY_ERROR;
	if (reply && reply->type == REDIS_REPLY_ARRAY)
		note_id(entry, value_of(reply, "id")->integer);
	if (reply)
		freeReplyObject(reply);
}

/* Checks that the keys of done jobs are known, and ends these jobs. */
static void end_keys(struct client *client)
{
	for (struct entry *entry = entries; entry < entries + next_entry; entry++) {
		struct call call = { .verb = change_called("GET"), .entry = entry };

		if (!entry->unique)
			continue;
		if (!entry->id)
			find_number(client, entry);
		if (!entry->id)
			continue;
		carry_out(client, &call);
		if (!(entry->known.states & GONE))
			insist(client, "1", "TW.DELETE %s %lld", entry->queue->name, entry->id);
	}
}

/* Enters the jobs that workers have done, as the daemon tells. */
static void read_done(struct client *client, const struct queue *queue)
{
	long long cursor = 0;

	do {
		redisReply *reply = tell(client, "TW.DONE %s COUNT 1000 CURSOR %lld",
					 queue->name, cursor);

		wrong[LIES] += !reply || reply->type != REDIS_REPLY_ARRAY;
		if (wrong[LIES])
			return;
		cursor = reply->element[0]->integer;
		for (size_t i = 0; i < reply->element[1]->elements; i++)
			note_told(reply->element[1]->element[i]->element[1]->integer);
		freeReplyObject(reply);
	} while (cursor);
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
	int kept[2];		/* the wheels' files, for upgrades */
	pthread_t producers[CROWD], workers[CROWD], operator;
};

FIXTURE_SETUP(ledger)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("", "");
}

/* Checks that the store is whole and empty. */
FIXTURE_TEARDOWN(ledger)
{
	char threads[32];
	struct stat task;
	sqlite3 *db;

	/* The daemon has one thread, so ThreadSanitizer could find nothing. */
	snprintf(threads, sizeof(threads), "/proc/%d/task", self->daemon);
	ASSERT_EQ(0, stat(threads, &task));
	EXPECT_EQ(3, task.st_nlink);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	ASSERT_EQ(SQLITE_OK, sqlite3_open(STORE, &db));
	EXPECT_EQ(0, number(db, "select count(*) from job"));
	EXPECT_EQ(0, number(db, "select count(*) from body"));
	EXPECT_EQ(0, number(db, "select count(*) from rule"));
	EXPECT_EQ(1, number(db, "select count(*) from pragma_integrity_check\n"
				"where integrity_check = 'ok'"));
	sqlite3_close(db);
	clean_up();
}

/*
 * Notes that the daemon has ended, and the next one has not begun. A take that was asked before
 * belongs to the life that is over, also if it was asked at the last moment.
 */
static void note_end(bool is_killed)
{
	pthread_mutex_lock(&ledger);
	kills += is_killed;
	lives++;
	life_begun = mono();
	pthread_mutex_unlock(&ledger);
}

/*
 * Kills the daemon. No other process has the wheels' files then, so all deliveries are given
 * back.
 */
static void killed(FIXTURE_DATA(ledger) *self)
{
	if (end_daemon(self->daemon, SIGKILL) != SIGKILL) {
		printf("# the daemon has ended by itself\n");
		wrong[STRANGE]++;
	}
	note_end(true);
	self->daemon = start_daemon();
}

/* Kills the daemon under load, and now and then while it starts. */
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

/* Restarts the daemon as the service manager does, while a worker has jobs. */
static void upgrade(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self,
		    int signal)
{
	struct client client = { .seed = signal };
	struct entry *held[HELD];
	struct taken taken[HELD];
	int count = 0;

	EXPECT_TRUE(revive(&client));
	while (count < HELD) {
		struct asked asked = ask(false);

		if (!take(client.connection, &taken[count], "TW.TAKE q u BLOCK 5000"))
			break;
		held[count] = note_delivery(&taken[count], &asked);
		count += !!held[count];
	}
	EXPECT_EQ(signal == SIGKILL ? SIGKILL : 0, end_daemon(self->daemon, signal));
	note_end(false);
	self->daemon = start_with_files(PREFIX "q:" PREFIX "u", self->kept, 2);
	end_client(&client);
	client.connection = NULL;
	EXPECT_TRUE(revive(&client));
	for (int i = 0; i < count; i++)
		work_on(&client, &taken[i], held[i], &ends[0]);
	end_client(&client);
}

static long long mended(void)
{
	redisContext *client = must_connect();
	long long count = figure(client, NULL, "mended");

	redisFree(client);
	return count;
}

/* Checks that nothing has to be mended as long as nothing is killed. */
static void upgrade_it(struct __test_metadata *_metadata,
		       FIXTURE_DATA(ledger) *self)
{
	for (int i = scaled(UPGRADES); i; i--) {
		sleep_ms(200 + rand() % 400);
		EXPECT_EQ(0, mended());
		upgrade(_metadata, self, SIGTERM);
	}
	sleep_ms(300);
	EXPECT_EQ(0, mended());
	for (int i = scaled(UPGRADES) / 2; i; i--) {
		sleep_ms(200 + rand() % 400);
		upgrade(_metadata, self, SIGKILL);
	}
}

static void keep_files(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self)
{
	int notify = open_notify();

	self->daemon = start_daemon();
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		char queue[32] = "";
		int fd = next_kept_file(notify, queue);

		ASSERT_GE(fd, 0);
		self->kept[queue[0] != queues[0].name[0]] = fd;
	}
	/* No test reads further messages. */
	unsetenv("NOTIFY_SOCKET");
	close(notify);
}

static void create_queues(struct __test_metadata *_metadata, double seconds)
{
	redisContext *client = must_connect();

	lease = seconds * 1000000;
	life_begun = mono();
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		struct queue *queue = &queues[i];
		char line[128];

		queue->rate *= crowd(WORKERS);
		snprintf(line, sizeof(line), "TW.CREATE %s " SETTINGS, queue->name, seconds,
			 queue->tries, queue->all.limit, queue->rate,
			 queue->rate ? RATE_SPAN : 0, GROUP_LIMIT, queue->keep_done ?: "0");
		SAYS("OK", client, line);
	}
	redisFree(client);
}

static void under_load(struct __test_metadata *_metadata, FIXTURE_DATA(ledger) *self,
		       bool upgraded)
{
	int producers = crowd(PRODUCERS), workers = crowd(WORKERS);

	for (long i = 0; i < producers; i++)
		pthread_create(&self->producers[i], NULL, produce, (void *)i);
	for (long i = 0; i < workers; i++)
		pthread_create(&self->workers[i], NULL, work, (void *)i);
	pthread_create(&self->operator, NULL, operate, NULL);
	if (upgraded)
		upgrade_it(_metadata, self);
	else
		kill_it(self);
	stop_producers = true;
	for (int i = 0; i < producers; i++)
		pthread_join(self->producers[i], NULL);
	pthread_join(self->operator, NULL);
	stop_workers = true;
	for (int i = 0; i < workers; i++)
		pthread_join(self->workers[i], NULL);
}

/* All ends of the daemon have left the rates, which would make the end of the jobs take long. */
static void end_rates(struct __test_metadata *_metadata, struct client *client)
{
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		EXPECT_EQ(queues[i].rate, figure(client->connection, queues[i].name, "rate"));
		SAYS("OK", client->connection, "TW.CREATE %s RATE 0 0", queues[i].name);
		queues[i].rate = 0;
	}
}

/* Ends the jobs that are left, and checks the ledger. */
static void check_ledger(struct __test_metadata *_metadata)
{
	struct client client = { };

	ASSERT_TRUE(revive(&client));
	compare_lists(_metadata, &client);
	end_rates(_metadata, &client);
	drain(_metadata, &client);
	end_keys(&client);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		read_done(&client, &queues[i]);
	sum_up();
	TH_LOG("mended %lld", mended());
	EXPECT_TRUE(comes_to(client.connection, NULL, "rules", 0));
	EXPECT_GT(next_entry, 100);
	EXPECT_GT(deliveries, 50);
	for (int i = 0; i < WRONGS; i++) {
		EXPECT_EQ(0, wrong[i])
			TH_LOG("%s", wrongs[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++) {
		EXPECT_EQ(0, figure(client.connection, queues[i].name, "jobs"));
		EXPECT_EQ(0, figure(client.connection, queues[i].name, "bytes"));
		EXPECT_EQ(0, figure(client.connection, queues[i].name, "held"));
	}
	end_client(&client);
}

TEST_F_TIMEOUT(ledger, J1_J2_J3_J4_killed_under_load, 3600)
{
	create_queues(_metadata, 1.5);
	under_load(_metadata, self, false);
	check_ledger(_metadata);
}

/* No job that a worker has is handed out again, although workers keep all jobs for a while. */
TEST_F_TIMEOUT(ledger, J1_J2_J3_J4_upgraded_under_load, 3600)
{
	NEEDS_KERNEL("a wheel of the process ends with it");
	/* The leases are longer than an upgrade takes for so many clients on a slow machine. */
	create_queues(_metadata, crowd(PRODUCERS) + 4);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	keep_files(_metadata, self);
	under_load(_metadata, self, true);
	check_ledger(_metadata);
	for (size_t i = 0; i < ARRAY_SIZE(queues); i++)
		close(self->kept[i]);
}

TEST_HARNESS_MAIN
