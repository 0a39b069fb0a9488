// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store of twjobd when the power is cut, and when the disk fails. All writes of a disk are
 * recorded, with a mark after each change that was answered. Then the disk is put again and again
 * into the state after some of the writes, in which a power cut may leave it. Each time the
 * daemon is started on this disk without a wheel, as after a reboot:
 *
 * J1	an answered change is kept, and no job that had ended is back
 *
 * A change that was under way may have been done or not. TW_SCALE scales the number of cuts; 30
 * is enough for a cut after each write.
 */
#include <sqlite3.h>
#include <sys/statvfs.h>

#include "jobs_changes.h"

#define CUTS		50
#define LOG		"/tmp/twjobd-log"

FIXTURE(power) {
	pid_t daemon;
	redisContext *client;
	int log;
};

/* Starts the daemon, whose messages go to self->log. */
static void start(FIXTURE_DATA(power) *self)
{
	int saved = dup(STDERR_FILENO);

	dup2(self->log, STDERR_FILENO);
	self->daemon = start_daemon();
	dup2(saved, STDERR_FILENO);
	close(saved);
	self->client = NULL;
}

/* Returns the messages of the daemon since the last call. */
static const char *messages(FIXTURE_DATA(power) *self)
{
	static char text[4096];

	memset(text, 0, sizeof(text));
	need(pread(self->log, text, sizeof(text) - 1, 0) >= 0 &&
	     !ftruncate(self->log, 0), LOG);
	if (*text)
		printf("# it said: %s", text);
	return text;
}

static void start_and_connect(FIXTURE_DATA(power) *self)
{
	start(self);
	self->client = connect_daemon();
	if (!self->client)
		messages(self);
	need(self->client, "the daemon has not started");
}

static void restart(FIXTURE_DATA(power) *self, int signal)
{
	redisFree(self->client);
	end_daemon(self->daemon, signal);
	start_and_connect(self);
}

static void work(FIXTURE_DATA(power) *self, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct batch batch = decide_batch(1 + rand() % BATCH);

		if (send_batch(self->client, &batch, false) < batch.count)
			complain("the change %d was not answered", changes);
		if (i % 4 == 3)
			work_on_one(self->client, i / 4);
		if (i % 8 == 5)
			set_rate(self->client);
	}
}

FIXTURE_SETUP(power)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	if (access("/dev/loop-control", F_OK) || access("/dev/mapper/control", F_OK))
		SKIP(return, "no loop devices, or no device mapper");
	clean_up();
	mkdir(DIR, 0700);
	disk_make();
	write_config("");
	self->log = open(LOG, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	start_and_connect(self);
	SAYS("OK", self->client, "TW.CREATE q TRIES 0 KEEPDONE 1000000");
	disk_mark(0);
}

FIXTURE_TEARDOWN(power)
{
	close(self->log);
	clean_up();
	EXPECT_EQ(0, system("rm -rf " DISK " " LOG));
}

static void check_integrity(const char *when)
{
	sqlite3_stmt *statement;
	const char *text = "no answer";
	sqlite3 *db;

	need(sqlite3_open(STORE, &db) == SQLITE_OK, STORE);
	if (sqlite3_prepare_v2(db, "pragma integrity_check", -1, &statement,
			       NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(statement, 0) ?: text;
	if (strcmp(text, "ok"))
		complain("%s: integrity_check: %.*s", when,
			 (int)strcspn(text, "\n"), text);
	sqlite3_finalize(statement);
	sqlite3_close(db);
}

/* Checks a reboot with the disk in this state. @from is -1 if there was no queue yet. */
static void check_cut(FIXTURE_DATA(power) *self, int from, int to, const char *when)
{
	disk_show();
	write_config("");
	destroy_wheel("q");
	start_and_connect(self);
	if (from >= 0)
		check_jobs(self->client, from, to, when);
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	check_integrity(when);
	need(!umount(DIR), DIR);
}

static int cuts(void)
{
	const char *scale = getenv("TW_SCALE");
	int n = CUTS * (scale ? atof(scale) : 1);

	return n < 10 ? 10 : n;
}

/*
 * Checks a power cut after each of some writes, from the mark @first up to the last mark. A write
 * after a mark belongs to the changes up to the next mark.
 */
static void cut_power(struct __test_metadata *_metadata, FIXTURE_DATA(power) *self,
		      int first, int most)
{
	struct disk_write *writes;
	int from = 0, done = 0, count, i;
	char when[80];

	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	disk_remove();
	disk_log(&writes);
	if (first >= 0)
		from = find_mark(writes, first);
	count = find_mark(writes, changes) - from + 1;
	if (most > count)
		most = count;
	for (i = 0; i < most && !wrong; i++) {
		int end = from + 1 + (long long)(i + 1) * (count - 1) / most;

		int mark = writes[end - 1].mark;

		disk_replay(writes + done, end - done);
		done = end;
		snprintf(when, sizeof(when), "after write %d, mark %d", end, mark);
		check_cut(self, mark, next_mark(writes, end - 1, changes), when);
	}
	TH_LOG("%d changes of %d jobs, the power was cut %d times in %d writes",
	       changes, job_count, i, count);
	free(writes);
}

TEST_F_TIMEOUT(power, J1_J4_power_cut, 7200)
{
	struct stat before, after;

	stat(STORE, &before);
	work(self, 60);
	/* The log has been written back into the store meanwhile. */
	EXPECT_EQ(0, stat(STORE, &after));
	EXPECT_GT(after.st_size, before.st_size);
	restart(self, SIGTERM);
	work(self, 8);
	restart(self, SIGKILL);
	work(self, 8);
	cut_power(_metadata, self, -1, cuts());
	EXPECT_EQ(0, wrong);
}

/* Tells whether the daemon has ended by itself, with an error and this line in its log. */
static bool has_given_up(FIXTURE_DATA(power) *self, const char *line)
{
	int status = 0, tries = PATIENCE / 10;

	while (!waitpid(self->daemon, &status, WNOHANG) && tries--)
		sleep_ms(10);
	if (tries < 0)
		end_daemon(self->daemon, SIGKILL);
	return strstr(messages(self), line) && WIFEXITED(status) &&
	       WEXITSTATUS(status);
}

/*
 * Sends a batch while the disk fails. The batch gets no answer. The log of the store was nearly
 * empty, so the batch is the first in this log to change most of its pages. Returns the last
 * change that was answered.
 */
static int fail_batch(struct __test_metadata *_metadata, FIXTURE_DATA(power) *self,
		      struct batch *batch)
{
	int answered;

	work(self, 20);
	restart(self, SIGKILL);
	work(self, 1);
	answered = changes;
	disk_fails(true);
	*batch = decide_batch(BATCH);
	EXPECT_EQ(0, send_batch(self->client, batch, false));
	EXPECT_TRUE(has_given_up(self, "cannot be trusted"));
	return answered;
}

/* Goes on when the disk is well again. The changes without an answer are repeated. */
static void go_on(struct __test_metadata *_metadata, FIXTURE_DATA(power) *self,
		  const struct batch *batch)
{
	redisFree(self->client);
	start_and_connect(self);
	EXPECT_EQ(batch->count, send_batch(self->client, batch, true));
	check_jobs(self->client, changes, changes, "the disk is well again");
	work(self, 2);
}

/*
 * After a failed sync the kernel takes the data in memory for the data on the disk. If the daemon
 * did this, too, a power cut would leave a broken store.
 */
TEST_F_TIMEOUT(power, J1_failed_sync_then_power_cut, 7200)
{
	struct batch batch;
	int answered = fail_batch(_metadata, self, &batch);

	disk_fails(false);
	go_on(_metadata, self, &batch);
	cut_power(_metadata, self, answered, cuts() / 2);
	EXPECT_EQ(0, wrong);
}

TEST_F_TIMEOUT(power, J1_disk_fails_for_a_while, 600)
{
	struct batch batch;

	fail_batch(_metadata, self, &batch);
	start(self);
	EXPECT_TRUE(has_given_up(self, "Input/output error"));
	disk_fails(false);
	need(!umount(DIR), DIR);
	disk_mount();
	write_config("");
	go_on(_metadata, self, &batch);
	cut_power(_metadata, self, changes, 1);
	EXPECT_EQ(0, wrong);
}

/* SQLite says that a commit is well even if it cannot write its log back. */
TEST_F_TIMEOUT(power, J1_log_cannot_be_written_back, 600)
{
	struct batch batch;
	int rounds = 0;

	work(self, 4);
	disk_fails_at(STORE);
	do {
		batch = decide_batch(BATCH);
		rounds++;
	} while (send_batch(self->client, &batch, false) == BATCH && rounds < 80);
	EXPECT_LT(rounds, 80);
	EXPECT_TRUE(has_given_up(self, "cannot be trusted"));
	disk_fails(false);
	go_on(_metadata, self, &batch);
	cut_power(_metadata, self, changes, 1);
	EXPECT_EQ(0, wrong);
}

/* Sends a command, whose answer is read later. */
static void ask(redisContext *client, const char *command)
{
	int done = 0;

	need(redisAppendCommand(client, command) == REDIS_OK, command);
	while (!done)
		need(redisBufferWrite(client, &done) == REDIS_OK, command);
}

static bool is_answered(redisContext *client, int ms)
{
	struct pollfd pollfd = { client->fd, POLLIN, 0 };

	return poll(&pollfd, 1, ms) == 1;
}

static long long answer_of(redisContext *client)
{
	redisReply *reply;

	need(redisGetReply(client, (void **)&reply) == REDIS_OK, "an answer");
	return number_of(reply);
}

/*
 * All commands come while the daemon stands still, so one commit is for all of them, and this
 * commit hangs. The job that is taken first is already on the disk.
 */
TEST_F_TIMEOUT(power, J1_a_take_waits_for_what_it_tells, 600)
{
	redisContext *ack = must_connect(), *first = must_connect();
	redisContext *put = must_connect(), *second = must_connect();
	struct taken taken;
	char command[160];

	EXPECT_GT(number_of(say(self->client, "TW.PUT q body AT 1")), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body AT 1")), 0);
	snprintf(command, sizeof(command), "TW.ACK q %s", taken.receipt);
	/* The daemon hears the commands in the order in which they have come. */
	kill(self->daemon, SIGSTOP);
	ask(ack, command);
	ask(first, "TW.TAKE q");
	ask(put, "TW.PUT q body AT 1");
	ask(second, "TW.TAKE q");
	disk_suspend();
	kill(self->daemon, SIGCONT);
	EXPECT_TRUE(is_answered(first, PATIENCE));
	EXPECT_FALSE(is_answered(second, 200));
	EXPECT_FALSE(is_answered(ack, 0) || is_answered(put, 0));
	disk_resume();
	EXPECT_EQ(1, answer_of(ack));
	EXPECT_GT(answer_of(put), 0);
	EXPECT_TRUE(is_answered(second, PATIENCE));
	EXPECT_EQ(2, figure(self->client, "q", "jobs"));
	redisFree(ack);
	redisFree(first);
	redisFree(put);
	redisFree(second);
	redisFree(self->client);
	end_daemon(self->daemon, SIGTERM);
	disk_remove();
}

/*
 * Makes the file system read-only, as the kernel does after errors of a disk, or an administrator
 * before a repair.
 */
static void make_read_only(void)
{
	struct statvfs disk = { };
	FILE *file = fopen("/proc/sysrq-trigger", "w");

	need(file && fputc('u', file) == 'u' && !fclose(file), "sysrq");
	while (!(disk.f_flag & ST_RDONLY)) {
		sleep_ms(10);
		need(!statvfs(DIR, &disk), DIR);
	}
}

/*
 * Has the daemon write its log from the beginning of the file again. Linux 6.12 warns if a file on
 * a disk that has become read-only grows, as Linux 6.1 does not.
 */
static void begin_log_again(void)
{
	sqlite3 *db;

	need(sqlite3_open(STORE, &db) == SQLITE_OK &&
	     sqlite3_exec(db, "pragma wal_checkpoint(restart)", NULL, NULL, NULL) == SQLITE_OK,
	     STORE);
	sqlite3_close(db);
}

static void make_writable(void)
{
	need(!mount(NULL, DIR, NULL, MS_REMOUNT, "commit=300"), DIR);
}

enum { TOGETHER = 8, PUTS = 800 };

static long long count_commits(redisContext *client)
{
	static const char name[] = "\ntwjobd_commit_seconds_count{} ";
	redisReply *reply = say(client, "TW.METRICS");
	const char *found = reply && reply->str ? strstr(reply->str, name) : NULL;

	long long count;

	need(found, "how many commits there were");
	count = atoll(found + strlen(name));
	freeReplyObject(reply);
	return count;
}

/* Each client sends its next put when it has the answer to its last put. */
static void put_in_a_loop(redisContext **clients)
{
	int asked = 0, answered = 0;

	while (asked < TOGETHER)
		ask(clients[asked++], "TW.PUT q body IN 3600");
	while (answered < PUTS) {
		struct pollfd pollfds[TOGETHER];

		for (int i = 0; i < TOGETHER; i++)
			pollfds[i] = (struct pollfd) { clients[i]->fd, POLLIN, 0 };
		need(poll(pollfds, TOGETHER, PATIENCE) > 0, "an answer");
		for (int i = 0; i < TOGETHER; i++) {
			if (!pollfds[i].revents)
				continue;
			need(answer_of(clients[i]) > 0, "a put");
			answered++;
			if (asked++ < PUTS)
				ask(clients[i], "TW.PUT q body IN 3600");
		}
	}
}

/*
 * If a commit did not wait for clients that have just got their answers, two groups of clients
 * would take turns most of the time, with almost twice as many commits.
 */
TEST_F_TIMEOUT(power, J1_many_answers_share_a_commit, 600)
{
	redisContext *clients[TOGETHER];
	long long before, count;

	for (int i = 0; i < TOGETHER; i++)
		clients[i] = must_connect();
	before = count_commits(self->client);
	put_in_a_loop(clients);
	count = count_commits(self->client) - before;
	EXPECT_LE(PUTS / TOGETHER, count);
	EXPECT_GE(PUTS / TOGETHER * 5 / 4, count);
	for (int i = 0; i < TOGETHER; i++)
		redisFree(clients[i]);
	redisFree(self->client);
	end_daemon(self->daemon, SIGTERM);
	disk_remove();
}

/*
 * On a read-only disk the kernel says that a sync is done, and has done nothing. Commands that
 * change nothing are answered. A change ends the daemon without an answer.
 */
TEST_F_TIMEOUT(power, J1_disk_is_read_only, 600)
{
	long long id = number_of(say(self->client, "TW.PUT q body IN 100"));

	EXPECT_GT(id, 0);
	begin_log_again();
	make_read_only();
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	SAYS("[12]", self->client, "TW.GET q %lld", id);
	SAYS("ended", self->client, "TW.CANCEL q %lld", id);
	EXPECT_TRUE(has_given_up(self, "is read-only"));
	redisFree(self->client);
	start(self);
	EXPECT_TRUE(has_given_up(self, "Read-only file system"));
	make_writable();
	start_and_connect(self);
	/* The change was under way, so either answer is right. */
	EXPECT_GE(number_of(say(self->client, "TW.CANCEL q %lld", id)), 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body IN 100")), 0);
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(self->client);
	end_daemon(self->daemon, SIGTERM);
	check_integrity("after all");
	disk_remove();
}

TEST_HARNESS_MAIN
