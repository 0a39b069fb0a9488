// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens around twjobd: the module is missing, the clock is set, the daemon stands still,
 * the wheel is destroyed, or is another daemon's. The answers are true, nothing is lost, and all
 * goes on when the cause is gone. A store that cannot be written is in ../sockets.
 */
#include <sqlite3.h>

#include "jobs.h"

#define DAY	86400

FIXTURE(faults) {
	pid_t daemon;
	redisContext *client;
	long long ahead;	/* ms that the wall clock is ahead of a clock that is never set */
	int log;
};

/* Sets the wall clock @seconds later than it would be by itself. */
static void set_clock(FIXTURE_DATA(faults) *self, long long seconds)
{
	long long ms = now_ms(CLOCK_BOOTTIME) + self->ahead + seconds * 1000;
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (clock_settime(CLOCK_REALTIME, &time))
		abort();
}

FIXTURE_SETUP(faults)
{
	int pipes[2];

	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->ahead = now_ms(CLOCK_REALTIME) - now_ms(CLOCK_BOOTTIME);
	ASSERT_EQ(0, pipe2(pipes, O_NONBLOCK | O_CLOEXEC));
	self->log = pipes[0];
	daemon_log = pipes[1];
	self->daemon = start_fresh("", "LEASE 2");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(faults)
{
	if (!in_process())
		set_clock(self, 0);
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Tells whether the daemon's messages have this text in exactly one line. */
static bool tells(FIXTURE_DATA(faults) *self, const char *text)
{
	char log[4096] = "", *at;

	if (read(self->log, log, sizeof(log) - 1) < 0)
		return false;
	at = strstr(log, text);
	if (at && !strstr(at + 1, text))
		return true;
	printf("# %s\n", log);
	return false;
}

static void shell(const char *command)
{
	if (system(command))
		abort();
}

/*
 * Without the module the daemon starts, and it takes the jobs up again when the module is loaded.
 */
TEST_F_TIMEOUT(faults, module_is_missing, 60)
{
	struct taken taken;

	NEEDS_KERNEL("it needs no module");
	SAYS("[2]", self->client, "TW.PUT q body KEY k");
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	destroy_wheel("q");
	shell("rmmod timewheel");
	self->daemon = start_daemon();
	self->client = must_connect();
	SAYS("[1]", self->client, "TW.QUEUES");
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	SAYS("UNAVAILABLE", self->client, "TW.PUT q body");
	SAYS("UNAVAILABLE", self->client, "TW.TAKE q");
	SAYS("UNAVAILABLE", self->client, "TW.CREATE more");
	SAYS("UNAVAILABLE", self->client, "TW.CREATE q LEASE 7");
	EXPECT_EQ(2000, figure(self->client, "q", "lease_ms"));
	SAYS("[1]", self->client, "TW.QUEUES");
	sleep_ms(1200);
	EXPECT_TRUE(tells(self, "queue \"q\": there is no device"));
	shell("insmod /timewheel.ko");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("k", taken.key);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("OK", self->client, "TW.CREATE more");
	SAYS("OK", self->client, "TW.DROP more");
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_F(faults, wheels_of_the_kernel_are_told)
{
	redisReply *info, *metrics;

	NEEDS_KERNEL("its wheels are told");
	info = say(self->client, "INFO");
	EXPECT_NE(NULL, strstr(info->str, "wheels:kernel\r\n"));
	metrics = say(self->client, "TW.METRICS");
	EXPECT_NE(NULL, strstr(metrics->str, "\ntwjobd_process_wheels 0\n"));
	EXPECT_EQ(0, figure(self->client, NULL, "process_wheels"));
	freeReplyObject(info);
	freeReplyObject(metrics);
}

/*
 * Two daemons have a queue "q" each, and each says that the queue's wheel belongs to it, whether
 * the settings of both wheels are equal or not.
 */
TEST_F_TIMEOUT(faults, second_daemon_with_the_same_prefix, 60)
{
	struct taken taken;
	int status = -1;

	NEEDS_KERNEL("other processes do not see the wheel");
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	test_store = DIR "/other";
	write_config("");
	self->daemon = start_daemon();
	self->client = must_connect();
	test_store = STORE;
	write_config("");
	for (int lease = 2; lease <= 3; lease++) {
		SAYS("OK", self->client, "TW.CREATE q LEASE %d", lease);
		EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
		ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 20000"));
		SAYS("OK", self->client, "TW.EXTEND q %s 60", taken.receipt);
		waitpid(start_daemon(), &status, 0);
		EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1);
		EXPECT_TRUE(tells(self,
				  "the wheel \"tj-q\" is another twjobd's: set wheel-prefix"));
		/* The worker still has its job. */
		SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	}
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

/* A daemon with nothing to do finds out, too, that a wheel has been destroyed. */
TEST_F_TIMEOUT(faults, wheel_of_an_empty_queue_is_destroyed, 60)
{
	long long until = now_ms(CLOCK_MONOTONIC) + PATIENCE, id = -1;
	struct taken taken;

	NEEDS_KERNEL("other processes do not see the wheel");
	destroy_wheel("q");
	while (id < 0 && now_ms(CLOCK_MONOTONIC) < until)
		id = number_of(say(self->client, "TW.PUT q body"));
	ASSERT_GT(id, 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(id, taken.id);
	EXPECT_TRUE(tells(self, "has been destroyed"));
}

/* Returns in how many ns the lease of a job without a key ends, or -1 if no worker has the job. */
static long long lease_left(long long id)
{
	struct tw_wheel *wheel = tw_wheel_open_named(PREFIX "q", O_RDWR);
	struct timewheel_token token = { };

	if (!wheel)
		return -1;
	if (tw_wheel_get(wheel, id, 0, &token) ||
	    token.state != TIMEWHEEL_STATE_HELD)
		token.left = -1;
	tw_wheel_close(wheel);
	return token.left;
}

/* Puts a job that is due at any setting of the clock, and takes it. */
static void take_old(struct __test_metadata *_metadata,
		     FIXTURE_DATA(faults) *self, struct taken *taken)
{
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body AT 1000")), 0);
	ASSERT_TRUE(take(self->client, taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(1000, taken->due);
}

/*
 * Leases end when they would have ended, and not a day later. A job that was due is due again
 * when the clock shows its time.
 */
TEST_F_TIMEOUT(faults, clock_is_set_back_by_a_day, 90)
{
	struct taken lapsed, extended, acked, taken;
	long long begin, due;

	NEEDS_KERNEL("the machine's clock is not the test's");
	take_old(_metadata, self, &extended);
	SAYS("OK", self->client, "TW.EXTEND q %s 1500", extended.receipt);
	take_old(_metadata, self, &acked);
	SAYS("OK", self->client, "TW.EXTEND q %s 1000", acked.receipt);
	begin = now_ms(CLOCK_BOOTTIME);
	take_old(_metadata, self, &lapsed);
	due = now_ms(CLOCK_REALTIME);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q due")), 0);
	set_clock(self, -DAY);

	/* Only jobs that are due by the present clock come. */
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(lapsed.id, taken.id);
	EXPECT_EQ(2, taken.attempt);
	EXPECT_GE(now_ms(CLOCK_BOOTTIME) - begin, 2000);
	SAYS("STALE", self->client, "TW.ACK q %s", lapsed.receipt);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	EXPECT_LT(lease_left(extended.id), 1500LL * 1000000000);
	EXPECT_GT(lease_left(extended.id), 1000LL * 1000000000);
	SAYS("1", self->client, "TW.ACK q %s", acked.receipt);
	SAYS("1", self->client, "TW.ACK q %s", extended.receipt);
	SAYS("nil", self->client, "TW.TAKE q");
	EXPECT_TRUE(tells(self, "the clock has been set back"));

	set_clock(self, 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("due", taken.body);
	EXPECT_GE(taken.due, due);
	EXPECT_GE(now_ms(CLOCK_REALTIME), taken.due);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(0, figure(self->client, "q", "jobs"));
}

/* Jobs are due at the time that the clock shows, and leases end early. */
TEST_F_TIMEOUT(faults, clock_is_set_forward_by_a_day, 60)
{
	struct taken held, taken;
	long long later;

	NEEDS_KERNEL("the machine's clock is not the test's");
	take_old(_metadata, self, &held);
	later = number_of(say(self->client, "TW.PUT q later IN %d", DAY - 60));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q more IN %d", DAY + 600)),
		  0);
	set_clock(self, DAY);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(held.id, taken.id);
	EXPECT_EQ(2, taken.attempt);
	SAYS("STALE", self->client, "TW.ACK q %s", held.receipt);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(later, taken.id);
	SAYS("OK", self->client, "TW.EXTEND q %s 60", taken.receipt);
	EXPECT_GE(now_ms(CLOCK_REALTIME), taken.due);
	SAYS("nil", self->client, "TW.TAKE q");
	/* The clock is set back again, and the receipt is still good. */
	set_clock(self, 0);
	sleep_ms(1500);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_F_TIMEOUT(faults, daemon_stands_still, 60)
{
	enum { JOBS = 20 };
	redisContext *other = must_connect();

	ASSERT_GT(put_many(self->client, JOBS / 2, "IN 1"), 0);
	kill(self->daemon, SIGSTOP);
	for (int i = JOBS / 2; i < JOBS; i++)
		redisAppendCommand(other, "TW.PUT q %d IN 0.1", i);
	redisBufferWrite(other, NULL);
	sleep_ms(3000);
	kill(self->daemon, SIGCONT);
	for (int i = JOBS / 2; i < JOBS; i++) {
		redisReply *reply = NULL;

		redisGetReply(other, (void **)&reply);
		EXPECT_GT(number_of(reply), 0);
	}
	EXPECT_EQ(JOBS, take_all(self->client, JOBS));
	EXPECT_EQ(JOBS, figure(self->client, "q", "delivered"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(other);
}

/* Returns the number that a query of the store gives. */
static int count_rows(const char *sql)
{
	sqlite3_stmt *statement;
	sqlite3 *db;
	int count = -1;

	if (sqlite3_open(STORE, &db) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
		if (sqlite3_step(statement) == SQLITE_ROW)
			count = sqlite3_column_int(statement, 0);
		sqlite3_finalize(statement);
	}
	sqlite3_close(db);
	return count;
}

/*
 * The daemon is killed when a drop has been committed and the wheel still exists. The next start
 * destroys that wheel, but not the wheel of a new queue with the same name.
 */
TEST_F_TIMEOUT(faults, killed_within_a_drop, 60)
{
	SAYS("OK", self->client, "TW.CREATE gone");
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	count_rows("update queue set dropped = 1 where name = 'gone'");
	self->daemon = start_daemon();
	self->client = must_connect();
	SAYS("NOQUEUE", self->client, "TW.PUT gone body");
	EXPECT_NE(0, access("/dev/timewheels/" PREFIX "gone", F_OK));
	SAYS("OK", self->client, "TW.CREATE gone");
	EXPECT_GT(number_of(say(self->client, "TW.PUT gone body IN 1000")), 0);
	SAYS("OK", self->client, "TW.DROP gone");
}

TEST_HARNESS_MAIN
