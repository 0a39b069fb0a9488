// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store of twjobd when the power is cut, and when the disk fails. All writes of a
 * disk are recorded, with a mark after each change that was answered. Then the disk
 * is put into the state after some of the writes, as a power cut may leave it, again
 * and again; each time the daemon is started on it, with no wheel, as after a reboot:
 *
 * J1	what was answered before is so, and nothing that had ended is back
 *
 * A change that was under way may have been done or not. TW_SCALE scales the number
 * of cuts; 30 is enough for one after each write.
 */
#include <sqlite3.h>

#include "jobs_disk.h"

#define JOBS		500
#define VERSIONS	12
#define BATCH		6
#define CUTS		50
#define MAX_BODY	30000
#define HOUR_MS		3600000
#define LOG		"/tmp/twjobd-log"

enum command {
	NONE, PUT, MOVE, CANCEL
};

/* What a job is after the change of this number; by which command, if by one. */
struct version {
	int change;
	enum command by;
	bool gone, buried;
	long long due;		/* ms, 0: not known */
	unsigned int body;
};

static struct job {
	long long id;
	int count;
	struct version versions[VERSIONS];
} jobs[JOBS];

static int job_count, changes, wrong;

/* Says what is wrong, but not that a hundred jobs are so. */
__attribute__((__format__(printf, 1, 2)))
static void complain(const char *format, ...)
{
	va_list args;

	if (wrong++ >= 5)
		return;
	va_start(args, format);
	printf("# ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
}

/* A body of its own for each number. */
static const char *body_of(unsigned int number)
{
	static char body[MAX_BODY + 16];
	int start = snprintf(body, sizeof(body), "%u ", number);
	int length = number * 7919 % MAX_BODY;

	memset(body + start, 'a' + number % 26, length);
	body[start + length] = '\0';
	return body;
}

static long long later(void)
{
	return now_ms(CLOCK_REALTIME) + HOUR_MS + rand() % HOUR_MS;
}

static struct job *new_job(void)
{
	struct job *job = &jobs[job_count++];

	need(job_count <= JOBS, "too many jobs");
	job->versions[job->count++].gone = true;
	return job;
}

static struct version *latest(struct job *job)
{
	return &job->versions[job->count - 1];
}

/* What the next change makes of the job is for the caller. */
static struct version *new_version(struct job *job, enum command by)
{
	struct version *version = latest(job) + 1;

	need(job->count++ < VERSIONS, "too many changes");
	*version = version[-1];
	version->change = ++changes;
	version->by = by;
	return version;
}

static void new_body(struct version *version)
{
	version->gone = false;
	version->body = changes;
	version->due = later();
}

/* A few changes at once, each of another job. */
struct batch {
	int count;
	struct job *jobs[BATCH];
};

static bool is_in(const struct batch *batch, const struct job *job)
{
	for (int i = 0; i < batch->count; i++)
		if (batch->jobs[i] == job)
			return true;
	return false;
}

/* One that can still be changed, or a new one. */
static struct job *pick_job(const struct batch *batch)
{
	for (int tries = 0; tries < 3 && job_count; tries++) {
		struct job *job = &jobs[rand() % job_count];
		struct version *last = latest(job);

		if (!last->gone && last->by && job->count < VERSIONS - 1 &&
		    !is_in(batch, job))
			return job;
	}
	return new_job();
}

static void decide(struct job *job)
{
	int what = latest(job)->gone ? 0 : rand() % 100;
	struct version *version;

	version = new_version(job, what < 50 ? PUT : what < 80 ? MOVE : CANCEL);
	if (version->by == PUT)
		new_body(version);
	else if (version->by == MOVE)
		version->due = later();
	else
		version->gone = true;
}

/* All these may be repeated. */
static void send_change(redisContext *client, struct job *job)
{
	const struct version *version = latest(job);

	if (version->by == PUT)
		redisAppendCommand(client, "TW.PUT q %s KEY key-%d AT %lld REPLACE",
				   body_of(version->body), (int)(job - jobs),
				   version->due);
	else if (version->by == MOVE)
		redisAppendCommand(client, "TW.MOVE q %lld AT %lld", job->id,
				   version->due);
	else
		redisAppendCommand(client, "TW.CANCEL q %lld", job->id);
}

static void take_answer(struct job *job, const redisReply *reply, bool repeated)
{
	const struct version *version = latest(job);
	bool right;

	if (version->by == PUT) {
		right = reply->type == REDIS_REPLY_ARRAY;
		if (right)
			job->id = reply->element[0]->integer;
	} else {
		right = reply->type == REDIS_REPLY_INTEGER &&
			(reply->integer == 1 ||
			 (repeated && version->by == CANCEL && !reply->integer));
	}
	if (!right)
		complain("the change %d was answered %s", version->change,
			 as_text(reply));
}

static struct batch decide_batch(int count)
{
	struct batch batch = { };

	while (batch.count < count) {
		struct job *job = pick_job(&batch);

		decide(job);
		batch.jobs[batch.count++] = job;
	}
	return batch;
}

/* Returns how many were answered. */
static int send_batch(redisContext *client, const struct batch *batch, bool repeated)
{
	int answered = 0;

	for (int i = 0; i < batch->count; i++)
		send_change(client, batch->jobs[i]);
	for (int i = 0; i < batch->count; i++) {
		redisReply *reply = NULL;

		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			break;
		take_answer(batch->jobs[i], reply, repeated);
		freeReplyObject(reply);
		answered++;
	}
	if (answered == batch->count)
		disk_mark(changes);
	return answered;
}

/* A command about one job, the answer of which is known. */
__attribute__((__format__(printf, 3, 4)))
static void answers(redisContext *client, const char *answer, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = redisvCommand(client, format, args);
	va_end(args);
	if (strcmp(as_text(reply), answer))
		complain("\"%s\" was answered %s", format, as_text(reply));
	if (reply)
		freeReplyObject(reply);
	disk_mark(changes);
}

static void take_it(redisContext *client, const struct job *job, struct taken *taken)
{
	if (!take(client, taken, "TW.TAKE q BLOCK 20000") || taken->id != job->id)
		complain("took %lld, not %lld", taken->id, job->id);
}

/* A job is put and worked on: in the end it is gone, put off, or buried. */
static void work_on_one(redisContext *client, int how)
{
	struct job *job = new_job();
	struct version *version = new_version(job, NONE);
	struct taken taken;

	new_body(version);
	version->due = now_ms(CLOCK_REALTIME) - 10;
	job->id = number_of(say(client, "TW.PUT q %s AT %lld",
				body_of(version->body), version->due));
	disk_mark(changes);
	take_it(client, job, &taken);
	version = new_version(job, NONE);
	if (how % 3 == 0) {
		version->due = later();
		answers(client, "OK", "TW.NACK q %s AT %lld", taken.receipt,
			version->due);
		return;
	}
	if (how % 3 == 1) {
		version->buried = true;
		answers(client, "OK", "TW.BURY q %s", taken.receipt);
		if (how % 2)
			return;
		version = new_version(job, NONE);
		version->buried = false;
		version->due = 0;
		answers(client, "1", "TW.KICK q %lld", job->id);
		take_it(client, job, &taken);
		version = new_version(job, NONE);
	}
	version->gone = true;
	answers(client, "1", "TW.ACK q %s", taken.receipt);
}

FIXTURE(power) {
	pid_t daemon;
	redisContext *client;
	int log;
};

/* Its messages go to self->log. */
static void start(FIXTURE_DATA(power) *self)
{
	int saved = dup(STDERR_FILENO);

	dup2(self->log, STDERR_FILENO);
	self->daemon = start_daemon();
	dup2(saved, STDERR_FILENO);
	close(saved);
	self->client = NULL;
}

/* What it has said since this was asked for last. */
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
	}
}

FIXTURE_SETUP(power)
{
	if (access("/dev/timewheel", F_OK))
		SKIP(return, "no device: is the module loaded?");
	if (access("/dev/loop-control", F_OK) || access("/dev/mapper/control", F_OK))
		SKIP(return, "no loop devices, or no device mapper");
	clean_up();
	mkdir(DIR, 0700);
	disk_make();
	write_config("");
	self->log = open(LOG, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	start_and_connect(self);
	SAYS("OK", self->client, "TW.CREATE q TRIES 0");
	disk_mark(0);
}

FIXTURE_TEARDOWN(power)
{
	close(self->log);
	clean_up();
	EXPECT_EQ(0, system("rm -rf " DISK " " LOG));
}

/* What TW.GET says is this version. */
static bool is_version(const redisReply *reply, const struct version *version)
{
	redisReply **field = reply->element;

	if (reply->type == REDIS_REPLY_NIL || version->gone)
		return reply->type == REDIS_REPLY_NIL && version->gone;
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 12 &&
	       field[11]->str && !strcmp(field[3]->str, "buried") == version->buried &&
	       (!version->due || field[5]->integer == version->due) &&
	       !strcmp(field[11]->str, body_of(version->body));
}

/* The job is as after the change @from, or one of those up to @to, under way then. */
static bool is_right(const struct job *job, const redisReply *reply, int from, int to)
{
	int i = job->count - 1;

	while (job->versions[i].change > to)
		i--;
	for (; job->versions[i].change > from; i--)
		if (is_version(reply, &job->versions[i]))
			return true;
	return is_version(reply, &job->versions[i]);
}

/* All jobs are as they were then, and there are no others. */
static void check_jobs(redisContext *client, int from, int to, const char *when)
{
	int there = 0;

	for (int i = 0; i < job_count; i++)
		redisAppendCommand(client, "TW.GET q %lld", jobs[i].id);
	for (int i = 0; i < job_count; i++) {
		redisReply *reply = NULL;

		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			break;
		if (!is_right(&jobs[i], reply, from, to))
			complain("%s: the job %lld is %s", when, jobs[i].id,
				 as_text(reply));
		there += reply->type == REDIS_REPLY_ARRAY;
		freeReplyObject(reply);
	}
	if (figure(client, "q", "jobs") != there)
		complain("%s: %d jobs, counted as %lld", when, there,
			 figure(client, "q", "jobs"));
	if (figure(client, NULL, "mended"))
		complain("%s: wheel and store differed", when);
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

/* A reboot with the disk in this state. @from is -1 before there was a queue. */
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
 * The power has been cut after each of some writes, from the mark @first up to the
 * last. A write after a mark is of the changes up to the next mark.
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
	/* The log has been written back into the store on the way. */
	EXPECT_EQ(0, stat(STORE, &after));
	EXPECT_GT(after.st_size, before.st_size);
	restart(self, SIGTERM);
	work(self, 8);
	restart(self, SIGKILL);
	work(self, 8);
	cut_power(_metadata, self, -1, cuts());
	EXPECT_EQ(0, wrong);
}

/* Whether the daemon has ended by itself, with an error and a line in its log. */
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
 * While the disk fails, a batch is sent, which is not answered. The log of the store
 * is nearly empty before, so that the batch is the first there to change most of its
 * pages. Returns the last change that was answered.
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

/* The disk is well again. What was not answered is repeated. */
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
 * After a failed sync the kernel takes what it has in memory for what is on the disk.
 * A daemon that took it so, too, would leave a broken store if the power was cut.
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

/* SQLite says of a commit that it is well also if it cannot write its log back. */
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

TEST_HARNESS_MAIN
