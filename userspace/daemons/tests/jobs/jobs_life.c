// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd through restarts, reboots, full disks and lost wheels.
 */
#include <sys/mount.h>

#include "jobs_manager.h"

FIXTURE(life) {
	pid_t daemon;
	redisContext *client;
};

static void start(FIXTURE_DATA(life) *self)
{
	self->daemon = start_daemon();
	self->client = must_connect();
}

static void killed(FIXTURE_DATA(life) *self)
{
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
}

FIXTURE_SETUP(life)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("", "");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(life)
{
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	umount(DIR);
	clean_up();
}

static int scaled(int n)
{
	const char *scale = getenv("TW_SCALE");

	n *= scale ? atof(scale) : 1;
	return n < 1000 ? 1000 : n;
}

/* Returns how many ms after a start that follows a kill the first job comes. */
static long long first_job(struct __test_metadata *_metadata,
			   FIXTURE_DATA(life) *self)
{
	struct taken taken;
	long long begin;

	EXPECT_GT(number_of(say(self->client, "TW.PUT q now IN 0.1")), 0);
	killed(self);
	sleep_ms(200);
	begin = now_ms(CLOCK_MONOTONIC);
	start(self);
	EXPECT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("now", taken.body);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	return now_ms(CLOCK_MONOTONIC) - begin;
}

/*
 * The wheel has kept turning, so no job is loaded. The first job comes as soon as from an empty
 * queue, but for the log of at most 4 MB that is written back. A machine that is not emulated
 * shows how many ms this takes.
 */
TEST_F_TIMEOUT(life, J4_first_job_after_a_kill, 120)
{
	int many = scaled(10000);
	long long empty = first_job(_metadata, self), full;

	ASSERT_GT(put_many(self->client, many, "IN 10000"), 0);
	full = first_job(_metadata, self);
	TH_LOG("the first job %lld ms after the start, %lld with %d pending",
	       empty, full, many);
	EXPECT_LT(full, 2 * empty + 1000);
	EXPECT_EQ(0, figure(self->client, "q", "loading"));
	EXPECT_EQ(many, figure(self->client, "q", "pending"));
	EXPECT_EQ(many, figure(self->client, "q", "jobs"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

/* After a reboot there is no wheel: all jobs are loaded, and come when due. */
TEST_F_TIMEOUT(life, J4_reboot, 120)
{
	int many = scaled(5000);
	struct taken held, taken, buried;
	long long id;

	EXPECT_GT(number_of(say(self->client, "TW.PUT q buried")), 0);
	ASSERT_TRUE(take(self->client, &buried, "TW.TAKE q"));
	SAYS("OK", self->client, "TW.BURY q %s", buried.receipt);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q held")), 0);
	ASSERT_TRUE(take(self->client, &held, "TW.TAKE q"));
	ASSERT_GT(put_many(self->client, many, "IN 10000 KEY key-%d"), 0);
	id = put_many(self->client, 3, "IN 10000");
	killed(self);
	destroy_wheel("q");
	start(self);
	/* By its number a job is known at once. By its key it may still be loading. */
	SAYS("1", self->client, "TW.MOVE q %lld IN 0", id + 2);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	ASSERT_TRUE(comes_to(self->client, "q", "loading", 0));
	EXPECT_EQ(many + 5, figure(self->client, "q", "jobs"));
	EXPECT_EQ(1, figure(self->client, "q", "buried"));
	SAYS("STALE", self->client, "TW.ACK q %s", held.receipt);
	SAYS("1", self->client, "TW.CANCELKEY q key-%d", many - 1);
	SAYS("[2]", self->client, "TW.PUT q again KEY key-%d", 0);
	EXPECT_EQ(many + 4, figure(self->client, "q", "jobs"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	/* The job that was held when the machine went down is handed out again. */
	ASSERT_TRUE(take(self->client, &held, "TW.TAKE q BLOCK 30000"));
	EXPECT_TRUE((taken.id == id + 2) != (held.id == id + 2));
	SAYS("nil", self->client, "TW.TAKE q");
}

/* A job that was handed out while jobs were loaded stays with its worker, too. */
TEST_F_TIMEOUT(life, J4_killed_while_jobs_are_loaded, 120)
{
	int many = scaled(5000), notify, kept;
	struct taken held, again;

	NEEDS_KERNEL("a wheel of the process ends with it");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q held")), 0);
	ASSERT_GT(put_many(self->client, many, "IN 10000"), 0);
	killed(self);
	destroy_wheel("q");
	notify = open_notify();
	start(self);
	ASSERT_TRUE(take(self->client, &held, "TW.TAKE q BLOCK 30000"));
	killed(self);
	kept = kept_file(notify);
	ASSERT_GE(kept, 0);
	self->daemon = start_with_file(kept);
	self->client = must_connect();
	TH_LOG("loading: %lld", figure(self->client, "q", "loading"));
	ASSERT_TRUE(comes_to(self->client, "q", "loading", 0));
	EXPECT_EQ(many, figure(self->client, "q", "pending"));
	EXPECT_EQ(1, figure(self->client, "q", "held"));
	EXPECT_FALSE(take(self->client, &again, "TW.TAKE q"));
	SAYS("1", self->client, "TW.ACK q %s", held.receipt);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	close(kept);
	close(notify);
	unsetenv("NOTIFY_SOCKET");
}

TEST_F_TIMEOUT(life, J4_what_is_held_stays_held, 60)
{
	struct taken plain, bound, again;
	int notify, kept;

	NEEDS_KERNEL("a wheel of the process ends with it");
	/* Without a service manager the job is given back at once. */
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	ASSERT_TRUE(take(self->client, &plain, "TW.TAKE q"));
	killed(self);
	start(self);
	ASSERT_TRUE(take(self->client, &again, "TW.TAKE q BLOCK 20000"));
	EXPECT_EQ(2, again.attempt);
	SAYS("STALE", self->client, "TW.ACK q %s", plain.receipt);
	SAYS("1", self->client, "TW.ACK q %s", again.receipt);

	killed(self);
	notify = open_notify();
	start(self);
	kept = kept_file(notify);
	ASSERT_GE(kept, 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q plain")), 0);
	ASSERT_TRUE(take(self->client, &plain, "TW.TAKE q"));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q bound")), 0);
	ASSERT_TRUE(take(self->client, &bound, "TW.TAKE q BOUND"));
	killed(self);
	self->daemon = start_with_file(kept);
	self->client = connect_daemon();
	ASSERT_NE(NULL, self->client);
	/* J3: the bound job comes again, because its connection has ended with the daemon. */
	ASSERT_TRUE(take(self->client, &again, "TW.TAKE q BLOCK 20000"));
	EXPECT_EQ(bound.id, again.id);
	SAYS("STALE", self->client, "TW.ACK q %s", bound.receipt);
	SAYS("nil", self->client, "TW.TAKE q BLOCK 200");
	SAYS("1", self->client, "TW.ACK q %s", plain.receipt);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	close(kept);
	close(notify);
	unsetenv("NOTIFY_SOCKET");
}

/* Starts a worker whose commands write down their jobs, and take longer than a restart. */
static pid_t start_work(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* twjob is where make leaves it, or in a guest in the folder of all programs. */
	execl(in_process() ? "twjob/twjob" : "./twjob", "twjob", "work", "--server", SOCKET,
	      "q", "-j", "4", "--", "sh", "-c", "echo $TWJOB_ID >>" DIR "/ledger; sleep 1", NULL);
	_exit(127);
}

/* Returns how many lines the ledger has. @most is the highest number of lines of one job. */
static int count_ledger(int *most)
{
	static int times[100];
	FILE *file = fopen(DIR "/ledger", "r");
	int id, lines = 0;

	*most = 0;
	memset(times, 0, sizeof(times));
	while (file && fscanf(file, "%d", &id) == 1) {
		lines++;
		/* The numbers of the jobs follow each other. */
		if (++times[id % 100] > *most)
			*most = times[id % 100];
	}
	if (file)
		fclose(file);
	return lines;
}

/* The service manager restarts the daemon three times while commands of "twjob work" run. */
TEST_F_TIMEOUT(life, work_over_planned_restarts_runs_each_job_once, 120)
{
	int notify, kept = -1, most;
	pid_t work;

	killed(self);
	notify = open_notify();
	start(self);
	if (!in_process()) {
		kept = kept_file(notify);
		ASSERT_GE(kept, 0);
	}
	unlink(DIR "/ledger");
	ASSERT_GT(put_many(self->client, 20, "IN 0"), 0);
	work = start_work();
	for (int i = 1; i <= 3; i++) {
		while (count_ledger(&most) < 4 * i)
			sleep_ms(20);
		redisFree(self->client);
		ASSERT_EQ(0, end_daemon(self->daemon, SIGTERM));
		self->daemon = in_process() ? start_daemon() : start_with_file(kept);
		self->client = must_connect();
	}
	EXPECT_TRUE(comes_to(self->client, "q", "jobs", 0));
	EXPECT_EQ(0, end_daemon(work, SIGTERM));
	EXPECT_EQ(20, count_ledger(&most));
	EXPECT_EQ(1, most);
	EXPECT_EQ(0, figure(self->client, "q", "lapsed"));
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	close(kept);
	close(notify);
	unsetenv("NOTIFY_SOCKET");
}

/* With the other kind of wheels the jobs are loaded, and the kernel's wheel is destroyed. */
TEST_F_TIMEOUT(life, from_wheels_of_the_kernel_to_others, 60)
{
	int notify = open_notify(), kept;
	struct taken taken;

	NEEDS_KERNEL("there is no kernel's wheel to be left");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	killed(self);
	start(self);
	kept = kept_file(notify);
	ASSERT_GE(kept, 0);
	killed(self);
	EXPECT_EQ(0, access("/dev/timewheels/" PREFIX "q", F_OK));

	write_config("wheels = process\n");
	count_messages(notify, "");
	self->daemon = start_with_file(kept);
	self->client = must_connect();
	EXPECT_NE(0, access("/dev/timewheels/" PREFIX "q", F_OK));
	EXPECT_EQ(1, count_messages(notify, "FDSTOREREMOVE=1\nFDNAME=" PREFIX "q"));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 20000"));
	killed(self);
	/* The job is handed out again, because no process knows any more that a worker had it. */
	start(self);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 20000"));
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	EXPECT_EQ(0, count_messages(notify, "FDSTORE=1"));
	EXPECT_NE(0, access("/dev/timewheels/" PREFIX "q", F_OK));
	close(kept);
	close(notify);
	unsetenv("NOTIFY_SOCKET");
}

static void set_clock(long long ahead)
{
	long long ms = now_ms(CLOCK_BOOTTIME) + ahead;
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (clock_settime(CLOCK_REALTIME, &time))
		abort();
}

/* Leases end when they would have ended, also if the clock is set back while there is no daemon. */
TEST_F_TIMEOUT(life, J4_clock_is_set_back_meanwhile, 60)
{
	long long ahead = now_ms(CLOCK_REALTIME) - now_ms(CLOCK_BOOTTIME), begin;
	struct taken taken, again;
	int notify, kept;
	bool got;

	NEEDS_KERNEL("a wheel of the process ends with it");
	SAYS("OK", self->client, "TW.CREATE q LEASE 3");
	killed(self);
	notify = open_notify();
	start(self);
	kept = kept_file(notify);
	ASSERT_GE(kept, 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body AT 1000")), 0);
	begin = now_ms(CLOCK_BOOTTIME);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 20000"));
	killed(self);
	set_clock(ahead - 86400 * 1000);
	self->daemon = start_with_file(kept);
	self->client = must_connect();
	got = take(self->client, &again, "TW.TAKE q BLOCK 20000");
	set_clock(ahead);
	ASSERT_TRUE(got);
	EXPECT_EQ(2, again.attempt);
	EXPECT_GE(now_ms(CLOCK_BOOTTIME) - begin, 3000);
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("1", self->client, "TW.ACK q %s", again.receipt);
	close(kept);
	close(notify);
	unsetenv("NOTIFY_SOCKET");
}

static long long bytes_of(const char *name)
{
	struct stat stat_;

	return stat(name, &stat_) ? 0 : stat_.st_size;
}

static void move_all(redisContext *client, long long first, int count)
{
	for (int i = 0; i < count; i++)
		redisAppendCommand(client, "TW.MOVE q %lld IN 5000", first + i);
	for (int i = 0; i < count; i++) {
		redisReply *reply = NULL;

		redisGetReply(client, (void **)&reply);
		if (number_of(reply) != 1)
			abort();
	}
}

static int cancel_all(redisContext *client, long long first, int count)
{
	int done = 0;

	for (int i = 0; i < count; i++)
		redisAppendCommand(client, "TW.CANCEL q %lld", first + i);
	for (int i = 0; i < count; i++) {
		redisReply *reply = NULL;

		redisGetReply(client, (void **)&reply);
		done += number_of(reply) == 1;
	}
	return done;
}

TEST_F_TIMEOUT(life, J5_the_store_stays_small, 120)
{
	int many = 2000;
	long long first, before, after;

	first = put_many(self->client, many, "IN 10000");
	ASSERT_GT(first, 0);
	move_all(self->client, first, many);
	/* A start writes the log back. */
	killed(self);
	start(self);
	before = bytes_of(STORE);
	for (int round = 0; round < 10; round++)
		move_all(self->client, first, many);
	EXPECT_LE(bytes_of(STORE "-wal"), 6 << 20);
	killed(self);
	start(self);
	after = bytes_of(STORE);
	TH_LOG("%d jobs: %lld bytes, after all have been moved 10 times %lld",
	       many, before, after);
	/*
	 * Pages of a tree that changes in no order are 69 % full. A tree in order takes 1/1.45 of
	 * their room.
	 */
	EXPECT_LE(after, before + before / 2);
	/* Room is given back, also by a daemon with nothing to do. */
	EXPECT_EQ(many, cancel_all(self->client, first, many));
	for (int tries = 0; tries < 200 && after > before / 2; tries++) {
		sleep_ms(100);
		after = bytes_of(STORE);
	}
	EXPECT_LE(after, before / 2);
}

TEST_F_TIMEOUT(life, J5_disk_full, 120)
{
	static char body[60001];
	struct taken taken;
	int puts = 0, acks = 0;
	redisReply *reply;

	killed(self);
	clean_up();
	mkdir(DIR, 0700);
	ASSERT_EQ(0, mount("none", DIR, "tmpfs", 0, "size=24m"));
	write_config("");
	start(self);
	SAYS("OK", self->client, "TW.CREATE q");
	memset(body, 'x', sizeof(body) - 1);
	do {
		reply = say(self->client, "TW.PUT q %s", body);
		puts += reply && reply->type == REDIS_REPLY_INTEGER;
		if (!reply || reply->type != REDIS_REPLY_INTEGER)
			break;
		freeReplyObject(reply);
	} while (puts < 1000);
	EXPECT_STREQ("FULL", as_text(reply));
	freeReplyObject(reply);
	EXPECT_GT(puts, 20);
	EXPECT_EQ(1, figure(self->client, NULL, "disk_full"));
	EXPECT_EQ(puts, figure(self->client, "q", "jobs"));
	EXPECT_EQ(puts, figure(self->client, "q", "pending"));
	SAYS("FULL", self->client, "TW.PUT q body");
	/* All other commands are carried out. */
	while (take(self->client, &taken, "TW.TAKE q BLOCK 300")) {
		long long done = number_of(say(self->client, "TW.ACK q %s",
					       taken.receipt));

		ASSERT_EQ(1, done);
		acks++;
	}
	EXPECT_EQ(puts, acks);
	TH_LOG("%d puts before the disk was full", puts);
	ASSERT_TRUE(comes_to(self->client, NULL, "disk_full", 0));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

/* Returns the counts of the wheel of the queue "q". */
static struct timewheel_info wheel_info(void)
{
	struct timewheel_info info = { .size = sizeof(info) };
	struct tw_wheel *wheel = tw_wheel_open_named(PREFIX "q", O_RDONLY);

	if (!wheel || tw_wheel_info(wheel, &info))
		abort();
	tw_wheel_close(wheel);
	return info;
}

/* The kernel does not know that a job is buried: the job's token waits, and keeps the key. */
TEST_F(life, J3_buried)
{
	long long id = number_of(say(self->client, "TW.PUT q body IN 1000"));
	struct timewheel_info info;
	struct taken taken;
	redisReply *reply;

	NEEDS_KERNEL("other processes do not see the wheel");
	SAYS("[2]", self->client, "TW.PUT q body KEY k");
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
		EXPECT_EQ(1, taken.attempt);
		SAYS("OK", self->client, "TW.BURY q %s", taken.receipt);
		SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
		SAYS("nil", self->client, "TW.TAKE q BLOCK 200");
		EXPECT_EQ(1, figure(self->client, "q", "buried"));
		EXPECT_EQ(1, figure(self->client, "q", "pending"));
		/* The stamp is one of the three tokens. */
		info = wheel_info();
		EXPECT_EQ(3, info.pending);
		EXPECT_EQ(0, info.held);
		reply = say(self->client, "TW.PUT q other KEY k");
		ASSERT_EQ(2, reply->elements);
		EXPECT_EQ(taken.id, reply->element[0]->integer);
		EXPECT_STREQ("BURIED", reply->element[1]->str);
		freeReplyObject(reply);
		SAYS("1", self->client, i ? "TW.CANCELKEY q k" : "TW.KICK q ALL 9");
	}
	EXPECT_EQ(0, figure(self->client, "q", "buried"));
	SAYS("1", self->client, "TW.CANCEL q %lld", id);
	info = wheel_info();
	EXPECT_EQ(1, info.pending);
}

/*
 * The wheel has been destroyed, and the first of these commands finds out. All commands are
 * carried out before there is another wheel.
 */
TEST_F(life, without_a_wheel)
{
	static const struct {
		const char *answer, *command;
	} rows[] = {
		{ "UNAVAILABLE", "TW.PUT q body" },
		{ "UNAVAILABLE", "TW.TAKE q" },
		{ "UNAVAILABLE", "TW.CANCEL q 1" },
		{ "UNAVAILABLE", "TW.MOVE q 1 IN 1" },
		{ "UNAVAILABLE", "TW.KICK q 1" },
		{ "UNAVAILABLE", "TW.DELETE q 1" },
		{ "UNAVAILABLE", "TW.GET q 1" },
		{ "UNAVAILABLE", "TW.ACK q %s" },
		{ "UNAVAILABLE", "TW.NACK q %s" },
		{ "UNAVAILABLE", "TW.EXTEND q %s" },
		{ "UNAVAILABLE", "TW.BURY q %s" },
		{ "LOADING", "TW.PUT q body KEY k" },
		{ "LOADING", "TW.PUT q body KEY k REPLACE" },
		{ "LOADING", "TW.CANCELKEY q k" },
		{ "LOADING", "TW.MOVEKEY q k IN 1" },
		/* The store alone can answer these commands. */
		{ "[2]", "TW.LIST q" },
		{ "0", "TW.KICK q ALL 10" },
		{ "OK", "TW.PAUSE q" },
		{ "OK", "TW.RESUME q" },
	};
	redisContext *client = self->client;
	struct taken taken;
	redisReply *reply;

	NEEDS_KERNEL("other processes do not see the wheel");
	SAYS("1", client, "TW.PUT q body IN 0.1");
	SAYS("[2]", client, "TW.PUT q body KEY k");
	ASSERT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 30000"));
	destroy_wheel("q");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		redisAppendCommand(client, rows[i].command, taken.receipt);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ASSERT_EQ(REDIS_OK, redisGetReply(client, (void **)&reply));
		EXPECT_STREQ(rows[i].answer, as_text(reply)) {
			TH_LOG("%s", rows[i].command);
		}
		freeReplyObject(reply);
	}
	/* Nothing was changed, and both jobs come. */
	EXPECT_EQ(2, figure(client, "q", "jobs"));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 30000"));
		EXPECT_STREQ("body", taken.body);
		SAYS("1", client, "TW.ACK q %s", taken.receipt);
	}
}

/* The daemon finds and counts each change of a token by another program. */
TEST_F_TIMEOUT(life, J6_backstop, 60)
{
	long long id = number_of(say(self->client, "TW.PUT q missing IN 3"));
	long long late = number_of(say(self->client, "TW.PUT q late IN 3"));
	struct tw_wheel *wheel = tw_wheel_open_named(PREFIX "q", O_RDWR);
	struct timewheel_op op;
	struct taken taken;

	NEEDS_KERNEL("other processes do not see the wheel");
	ASSERT_NE(NULL, wheel);
	sleep_ms(2500);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	tw_op_cancel(&op, id, 0);
	ASSERT_GE(tw_wheel_run(wheel, &op), 0);
	tw_op_move(&op, late, TW_HOUR(1), 0);
	ASSERT_GE(tw_wheel_run(wheel, &op), 0);
	tw_op_register(&op, 123456, TW_HOUR(1), 123456, 0);
	ASSERT_GE(tw_wheel_run(wheel, &op), 0);
	ASSERT_TRUE(comes_to(self->client, NULL, "mended", 3));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(0, figure(self->client, "q", "pending"));
	tw_wheel_close(wheel);
}

TEST_F_TIMEOUT(life, wheel_destroyed_under_it, 60)
{
	int many = 1000;

	NEEDS_KERNEL("other processes do not see the wheel");
	ASSERT_GT(put_many(self->client, many, "IN 0.5"), 0);
	destroy_wheel("q");
	redisAppendCommand(self->client, "TW.TAKE q BLOCK 30000");
	redisBufferWrite(self->client, NULL);
	{
		struct taken taken;
		redisReply *reply;

		ASSERT_EQ(REDIS_OK, redisGetReply(self->client,
						  (void **)&reply));
		ASSERT_EQ(1, reply->elements);
		read_taken(reply->element[0], &taken);
		freeReplyObject(reply);
		SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	}
	ASSERT_TRUE(comes_to(self->client, "q", "loading", 0));
	EXPECT_EQ(many - 1, take_all(self->client, many));
}

/* The wheel outlives the daemon, with tokens of jobs that do not exist any more. */
TEST(store_in_memory_ends_with_its_process)
{
	struct taken old, new;
	redisContext *client;
	pid_t daemon;

	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	test_store = "memory";
	daemon = start_fresh("", "LEASE 60");
	client = must_connect();
	EXPECT_EQ(1, number_of(say(client, "TW.PUT q old")));
	EXPECT_EQ(2, number_of(say(client, "TW.PUT q another")));
	ASSERT_TRUE(take(client, &old, "TW.TAKE q"));
	redisFree(client);
	end_daemon(daemon, SIGKILL);
	daemon = start_daemon();
	client = must_connect();
	SAYS("[0]", client, "TW.QUEUES");
	SAYS("OK", client, "TW.CREATE q LEASE 60");
	SAYS("nil", client, "TW.TAKE q");
	EXPECT_EQ(0, figure(client, "q", "pending"));
	EXPECT_EQ(0, figure(client, "q", "held"));
	EXPECT_EQ(1, number_of(say(client, "TW.PUT q new")));
	ASSERT_TRUE(take(client, &new, "TW.TAKE q"));
	EXPECT_STREQ("new", new.body);
	SAYS("STALE", client, "TW.ACK q %s", old.receipt);
	SAYS("1", client, "TW.ACK q %s", new.receipt);
	EXPECT_EQ(0, figure(client, NULL, "mended"));
	redisFree(client);
	EXPECT_EQ(0, end_daemon(daemon, SIGTERM));
	clean_up();
}

TEST_HARNESS_MAIN
