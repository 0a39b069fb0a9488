// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd, verb by verb, as its clients see it.
 */
#include "jobs.h"

FIXTURE(jobs) {
	pid_t daemon;
	redisContext *client;
};

/* All verbs are the same with each store. */
FIXTURE_VARIANT(jobs) {
	const char *store;
};

FIXTURE_VARIANT_ADD(jobs, sqlite) { .store = STORE };
FIXTURE_VARIANT_ADD(jobs, memory) { .store = "memory" };

FIXTURE_SETUP(jobs)
{
	test_store = variant->store;
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("", "LEASE 60 TRIES 3");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(jobs)
{
	/* Nothing has to be mended after any test. */
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Sends bytes as they are, and compares the bytes that come with the answer. */
static bool raw(const char *question, const char *answer)
{
	redisContext *client = connect_daemon();
	size_t got = 0, length = strlen(answer);
	char text[1024];

	if (write(client->fd, question, strlen(question)) < 0)
		return false;
	while (got < length) {
		ssize_t bytes = read(client->fd, text + got, length - got);

		if (bytes <= 0)
			break;
		got += bytes;
	}
	redisFree(client);
	text[got] = '\0';
	if (!strcmp(text, answer))
		return true;
	printf("# %s\n", text);
	return false;
}

TEST_F(jobs, protocol)
{
	redisReply *info = say(self->client, "INFO");

	EXPECT_NE(NULL, strstr(info->str, "server:twjobd"));
	/* Some clients would wait until "loading" is 0. */
	EXPECT_EQ(NULL, strstr(info->str, "loading"));
	freeReplyObject(info);
	SAYS("PONG", self->client, "PING");
	SAYS("hello", self->client, "PING hello");
	SAYS("[12]", self->client, "HELLO 2");
	SAYS("NOPROTO", self->client, "HELLO 4");
	SAYS("OK", self->client, "CLIENT SETINFO LIB-NAME test");
	SAYS("OK", self->client, "CLIENT SETNAME test");
	SAYS("[0]", self->client, "COMMAND DOCS");
	SAYS("ERR", self->client, "GET key");
	SAYS("ERR", self->client, "TW.PUT q");
	SAYS("NOQUEUE", self->client, "TW.PUT none body");
	EXPECT_TRUE(raw("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
			"%6\r\n$6\r\nserver\r\n$6\r\ntwjobd\r\n"));
	EXPECT_TRUE(raw("*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$7\r\nTW.TAKE\r\n"
			"$1\r\nq\r\n*1\r\n$4\r\nPING\r\n",
			"%6\r\n$6\r\nserver\r\n$6\r\ntwjobd\r\n$7\r\nversion\r\n"
			"$5\r\n1.0.0\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:4\r\n"
			"$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n"
			"$6\r\nmaster\r\n_\r\n+PONG\r\n"));
	/* A complete command is followed by bytes that are no command. */
	EXPECT_TRUE(raw("*1\r\n$4\r\nPING\r\n*x", "+PONG\r\n-ERR Protocol error"));
	EXPECT_TRUE(raw("*1\r\n$600000000\r\n", "-ERR Protocol error"));
	EXPECT_TRUE(raw("*\r\n", "-ERR Protocol error"));
	EXPECT_TRUE(raw("*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n", "+OK\r\n"));
}

TEST_F(jobs, put_take_ack)
{
	struct taken taken;
	long long id = number_of(say(self->client, "TW.PUT q %s", "the body"));

	ASSERT_GT(id, 0);
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_STREQ("q", taken.queue);
	EXPECT_STREQ("the body", taken.body);
	EXPECT_STREQ("", taken.key);
	EXPECT_EQ(id, taken.id);
	EXPECT_EQ(1, taken.attempt);
	SAYS("nil", self->client, "TW.TAKE q");
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.ACK q %s", "nonsense");
	SAYS("nil", self->client, "TW.GET q %lld", id);
	EXPECT_EQ(0, figure(self->client, "q", "jobs"));
	EXPECT_EQ(0, figure(self->client, "q", "bytes"));
	EXPECT_EQ(0, figure(self->client, "q", "pending"));
	EXPECT_EQ(0, figure(self->client, "q", "held"));
}

TEST_F(jobs, J2_never_early)
{
	long long due = now_ms(CLOCK_REALTIME) + 900;
	struct taken taken;
	char date[64];
	time_t seconds = due / 1000 + 1;

	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S+02:00",
		 gmtime(&(time_t){ seconds + 7200 }));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q third AT %s", date)), 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q second AT %lld", due)), 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q first IN 0.4")), 0);
	SAYS("nil", self->client, "TW.TAKE q");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("first", taken.body);
	EXPECT_GE(now_ms(CLOCK_REALTIME), taken.due);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("second", taken.body);
	EXPECT_EQ(due, taken.due);
	EXPECT_GE(now_ms(CLOCK_REALTIME), taken.due);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_STREQ("third", taken.body);
	EXPECT_EQ(seconds * 1000, taken.due);
	EXPECT_GE(now_ms(CLOCK_REALTIME), taken.due);
	SAYS("nil", self->client, "TW.TAKE q BLOCK 50");
	SAYS("ERR", self->client, "TW.PUT q body AT tomorrow");
	SAYS("ERR", self->client, "TW.PUT q body IN -1");
	SAYS("ERR", self->client, "TW.PUT q body IN 1e9");
	SAYS("ERR", self->client, "TW.PUT q body AT 99999999999999999");
	SAYS("ERR", self->client, "TW.PUT q body SOON now");
}

static const char *put_mark(redisContext *client, long long *id,
			    const char *rest)
{
	static char mark[256];
	char line[128];
	redisReply *reply;

	snprintf(line, sizeof(line), "TW.PUT q %s", rest);
	reply = redisCommand(client, line);
	snprintf(mark, sizeof(mark), "%s", as_text(reply));
	if (reply && reply->type == REDIS_REPLY_ARRAY) {
		*id = reply->element[0]->integer;
		snprintf(mark, sizeof(mark), "%s", reply->element[1]->str);
	}
	freeReplyObject(reply);
	return mark;
}

TEST_F(jobs, keys)
{
	long long first, id;
	struct taken taken;

	EXPECT_STREQ("NEW", put_mark(self->client, &first, "one KEY k IN 100"));
	EXPECT_STREQ("EXISTS", put_mark(self->client, &id, "two KEY k"));
	EXPECT_EQ(first, id);
	EXPECT_STREQ("NEW", put_mark(self->client, &id, "other KEY l IN 100"));
	EXPECT_NE(first, id);
	SAYS("nil", self->client, "TW.TAKE q");
	EXPECT_STREQ("REPLACED", put_mark(self->client, &id, "three KEY k REPLACE"));
	EXPECT_EQ(first, id);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_STREQ("three", taken.body);
	EXPECT_STREQ("k", taken.key);
	EXPECT_EQ(first, taken.id);
	EXPECT_EQ(1, taken.attempt);
	EXPECT_STREQ("HELD", put_mark(self->client, &id, "four KEY k REPLACE"));
	EXPECT_STREQ("HELD", put_mark(self->client, &id, "four KEY k"));
	SAYS("HELD", self->client, "TW.CANCELKEY q k");
	SAYS("HELD", self->client, "TW.MOVEKEY q k IN 1");
	SAYS("OK", self->client, "TW.BURY q %s", taken.receipt);
	EXPECT_STREQ("BURIED", put_mark(self->client, &id, "five KEY k"));
	EXPECT_STREQ("REPLACED", put_mark(self->client, &id, "six KEY k REPLACE"));
	EXPECT_EQ(first, id);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_STREQ("six", taken.body);
	EXPECT_EQ(1, taken.attempt);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("1", self->client, "TW.MOVEKEY q l IN 0");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_STREQ("other", taken.body);
	SAYS("OK", self->client, "TW.NACK q %s", taken.receipt);
	SAYS("1", self->client, "TW.CANCELKEY q l");
	SAYS("0", self->client, "TW.CANCELKEY q l");
	EXPECT_STREQ("NEW", put_mark(self->client, &id, "seven KEY k IN 100"));
	EXPECT_NE(first, id);
	SAYS("ERR", self->client, "TW.PUT q body REPLACE");
}

TEST_F(jobs, cancel_move_kick_delete)
{
	long long id = number_of(say(self->client, "TW.PUT q a IN 1000"));
	struct taken taken;

	SAYS("1", self->client, "TW.MOVE q %lld IN 2000", id);
	SAYS("nil", self->client, "TW.TAKE q");
	SAYS("1", self->client, "TW.MOVE q %lld IN 0", id);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_EQ(id, taken.id);
	SAYS("HELD", self->client, "TW.CANCEL q %lld", id);
	SAYS("HELD", self->client, "TW.MOVE q %lld IN 1", id);
	SAYS("HELD", self->client, "TW.KICK q %lld", id);
	SAYS("1", self->client, "TW.DELETE q %lld", id);
	SAYS("0", self->client, "TW.DELETE q %lld", id);
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);

	id = number_of(say(self->client, "TW.PUT q b IN 1000"));
	SAYS("1", self->client, "TW.KICK q %lld", id);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_EQ(id, taken.id);
	SAYS("OK", self->client, "TW.BURY q %s", taken.receipt);
	SAYS("BURIED", self->client, "TW.MOVE q %lld IN 1", id);
	SAYS("1", self->client, "TW.CANCEL q %lld", id);
	SAYS("0", self->client, "TW.CANCEL q %lld", id);
	SAYS("0", self->client, "TW.MOVE q %lld IN 1", id);
	SAYS("0", self->client, "TW.KICK q %lld", id);
	SAYS("ERR", self->client, "TW.CANCEL q x");
	SAYS("OK", self->client, "TW.CREATE other");
	id = number_of(say(self->client, "TW.PUT q c IN 1000"));
	SAYS("0", self->client, "TW.CANCEL other %lld", id);
	SAYS("1", self->client, "TW.CANCEL q %lld", id);
	EXPECT_EQ(0, figure(self->client, "q", "jobs"));
	SAYS("OK", self->client, "TW.DROP other");
}

TEST_F(jobs, J3_tries)
{
	struct taken taken;
	long long id = number_of(say(self->client, "TW.PUT q body"));

	for (int attempt = 1; attempt <= 2; attempt++) {
		ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
		EXPECT_EQ(attempt, taken.attempt);
		SAYS("OK", self->client, "TW.NACK q %s IN 0.05", taken.receipt);
		SAYS("STALE", self->client, "TW.NACK q %s", taken.receipt);
	}
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q BLOCK 30000"));
	EXPECT_EQ(3, taken.attempt);
	SAYS("BURIED", self->client, "TW.NACK q %s", taken.receipt);
	SAYS("nil", self->client, "TW.TAKE q BLOCK 100");
	EXPECT_EQ(1, figure(self->client, "q", "buried"));
	SAYS("1", self->client, "TW.KICK q ALL 100");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_EQ(id, taken.id);
	EXPECT_EQ(1, taken.attempt);
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("0", self->client, "TW.KICK q ALL 100");
}

TEST_F(jobs, J3_leases_end)
{
	struct taken first, second;
	long long begin;

	SAYS("OK", self->client, "TW.CREATE short LEASE 0.4 TRIES 2");
	EXPECT_GT(number_of(say(self->client, "TW.PUT short body")), 0);
	begin = now_ms(CLOCK_MONOTONIC);
	ASSERT_TRUE(take(self->client, &first, "TW.TAKE short"));
	SAYS("OK", self->client, "TW.EXTEND short %s 0.8", first.receipt);
	ASSERT_TRUE(take(self->client, &second, "TW.TAKE short BLOCK 30000"));
	EXPECT_GE(now_ms(CLOCK_MONOTONIC) - begin, 800);
	EXPECT_EQ(2, second.attempt);
	SAYS("STALE", self->client, "TW.ACK short %s", first.receipt);
	SAYS("STALE", self->client, "TW.EXTEND short %s", first.receipt);
	/* This was the last try: when its lease has ended, too, the job is buried. */
	SAYS("nil", self->client, "TW.TAKE short BLOCK 1000");
	EXPECT_EQ(1, figure(self->client, "short", "buried"));
	SAYS("STALE", self->client, "TW.ACK short %s", second.receipt);
	SAYS("OK", self->client, "TW.DROP short");
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
TEST_F(jobs, J3_buried)
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

TEST_F(jobs, J3_bound)
{
	redisContext *other = connect_daemon();
	struct taken taken, again;

	EXPECT_GT(number_of(say(self->client, "TW.PUT q bound")), 0);
	ASSERT_TRUE(take(other, &taken, "TW.TAKE q BOUND"));
	SAYS("nil", self->client, "TW.TAKE q");
	redisFree(other);
	/* The job comes at once, although its lease was a minute. */
	ASSERT_TRUE(take(self->client, &again, "TW.TAKE q BLOCK 20000"));
	EXPECT_EQ(taken.id, again.id);
	EXPECT_EQ(2, again.attempt);
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("OK", self->client, "TW.NACK q %s", again.receipt);

	/* A job that is not bound stays taken, and any client may answer. */
	other = connect_daemon();
	ASSERT_TRUE(take(other, &taken, "TW.TAKE q"));
	redisFree(other);
	SAYS("nil", self->client, "TW.TAKE q BLOCK 300");
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
}

TEST_F(jobs, J3_dead_before_the_answer)
{
	redisContext *other = connect_daemon();
	struct taken taken;

	/* This client waits, and has gone before there is a job. */
	redisAppendCommand(other, "TW.TAKE q BLOCK 0");
	redisAppendCommand(other, "PING");
	redisBufferWrite(other, NULL);
	sleep_ms(200);
	redisFree(other);
	sleep_ms(200);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
}

TEST_F(jobs, pause_drain)
{
	redisContext *other = connect_daemon();
	struct taken taken;
	redisReply *reply;

	SAYS("OK", self->client, "TW.PAUSE q");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	SAYS("nil", self->client, "TW.TAKE q BLOCK 100");
	redisAppendCommand(other, "TW.TAKE q BLOCK 30000");
	redisBufferWrite(other, NULL);
	sleep_ms(100);
	SAYS("OK", self->client, "TW.RESUME q");
	ASSERT_EQ(REDIS_OK, redisGetReply(other, (void **)&reply));
	ASSERT_EQ(1, reply->elements);
	read_taken(reply->element[0], &taken);
	freeReplyObject(reply);
	SAYS("OK", self->client, "TW.DRAIN q");
	SAYS("DRAINING", self->client, "TW.PUT q body");
	SAYS("OK", self->client, "TW.NACK q %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("OK", self->client, "TW.RESUME q");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	redisFree(other);
}

/* Counts the jobs that TW.LIST lists, and its commands. */
static int list(redisContext *client, const char *options, int *commands)
{
	long long cursor = 0;
	int count = 0;

	*commands = 0;
	do {
		char line[128];
		redisReply *reply;

		snprintf(line, sizeof(line), "TW.LIST q CURSOR %lld %s", cursor,
			 options);
		reply = redisCommand(client, line);
		if (!reply || reply->type != REDIS_REPLY_ARRAY)
			return -1;
		cursor = reply->element[0]->integer;
		count += reply->element[1]->elements;
		++*commands;
		freeReplyObject(reply);
	} while (cursor);
	return count;
}

TEST_F(jobs, list_get)
{
	struct taken taken;
	redisReply *reply;
	int commands;
	char options[64];

	for (int i = 0; i < 10; i++)
		EXPECT_GT(number_of(say(self->client, "TW.PUT q body IN %d",
					i < 6 ? 0 : 1000)), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	SAYS("OK", self->client, "TW.BURY q %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_EQ(10, list(self->client, "", &commands));
	EXPECT_EQ(1, commands);
	EXPECT_EQ(10, list(self->client, "COUNT 3", &commands));
	EXPECT_EQ(4, commands);
	EXPECT_EQ(1, list(self->client, "STATE buried", &commands));
	EXPECT_EQ(1, list(self->client, "STATE held", &commands));
	EXPECT_EQ(4, list(self->client, "STATE ready", &commands));
	EXPECT_EQ(4, list(self->client, "STATE delayed", &commands));
	snprintf(options, sizeof(options), "BEFORE %lld",
		 now_ms(CLOCK_REALTIME) + 500000);
	EXPECT_EQ(6, list(self->client, options, &commands));
	reply = say(self->client, "TW.GET q %lld", taken.id);
	ASSERT_EQ(16, reply->elements);
	EXPECT_STREQ("held", reply->element[3]->str);
	EXPECT_STREQ("body", reply->element[11]->str);
	EXPECT_STREQ("lease_left_ms", reply->element[12]->str);
	EXPECT_STREQ("holder", reply->element[14]->str);
	freeReplyObject(reply);
}

/* The queue has more jobs than the daemon looks at in one step. */
TEST_F(jobs, list_many)
{
	enum { JOBS = 600 };
	struct taken taken;
	int commands;

	ASSERT_GT(put_many(self->client, JOBS, "IN 1000"), 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	EXPECT_EQ(JOBS + 1, list(self->client, "COUNT 1000", &commands));
	EXPECT_EQ(1, commands);
	EXPECT_EQ(JOBS + 1, list(self->client, "COUNT 70", &commands));
	EXPECT_EQ(JOBS, list(self->client, "STATE delayed COUNT 1000", &commands));
	EXPECT_EQ(1, list(self->client, "STATE held", &commands));
}

/*
 * Commands that come at once are carried out in order. Each command sees the changes of earlier
 * commands, although one commit makes all changes durable.
 */
TEST_F(jobs, J1_many_at_once)
{
	enum { PUTS = 1000 };
	long long first = 0;
	redisReply *reply;

	for (int i = 0; i < PUTS; i++)
		redisAppendCommand(self->client, "TW.PUT q %d IN 1000", i);
	for (int i = 0; i < PUTS; i++) {
		ASSERT_EQ(REDIS_OK, redisGetReply(self->client, (void **)&reply));
		if (!i)
			first = reply->integer;
		EXPECT_EQ(first + i, reply->integer);
		freeReplyObject(reply);
	}
	EXPECT_EQ(PUTS, figure(self->client, "q", "jobs"));
	EXPECT_EQ(PUTS, figure(self->client, "q", "pending"));
}

/* Compares the answers to commands that have been appended, and keeps the job of a take. */
static bool answered(redisContext *client, const char * const *answers,
		     struct taken *taken)
{
	for (int i = 0; answers[i]; i++) {
		redisReply *reply = NULL;

		redisGetReply(client, (void **)&reply);
		if (strcmp(answers[i], as_text(reply))) {
			printf("# answer %d: %s\n", i, as_text(reply));
			return false;
		}
		if (!strcmp(answers[i], "[1]"))
			read_taken(reply->element[0], taken);
		freeReplyObject(reply);
	}
	return true;
}

TEST_F(jobs, J1_each_sees_those_before)
{
	static const char * const changes[] = {
		"1", "1", "nil", "1", "1", "0", "1", "[1]", "HELD", NULL,
	};
	static const char * const keys[] = { "[2]", "1", "[2]", "[2]", NULL };
	static const char * const answers[] = {
		"OK", "STALE", "[1]", "1", "STALE", NULL,
	};
	long long a = number_of(say(self->client, "TW.PUT q a IN 1000"));
	long long b = number_of(say(self->client, "TW.PUT q b IN 1000"));
	struct taken taken;

	redisAppendCommand(self->client, "TW.MOVE q %lld IN 0", a);
	redisAppendCommand(self->client, "TW.MOVE q %lld IN 1000", a);
	redisAppendCommand(self->client, "TW.TAKE q");
	redisAppendCommand(self->client, "TW.MOVE q %lld IN 0", a);
	redisAppendCommand(self->client, "TW.CANCEL q %lld", a);
	redisAppendCommand(self->client, "TW.CANCEL q %lld", a);
	redisAppendCommand(self->client, "TW.MOVE q %lld IN 0", b);
	redisAppendCommand(self->client, "TW.TAKE q");
	redisAppendCommand(self->client, "TW.CANCEL q %lld", b);
	ASSERT_TRUE(answered(self->client, changes, &taken));

	redisAppendCommand(self->client, "TW.PUT q x KEY k IN 100");
	redisAppendCommand(self->client, "TW.CANCELKEY q k");
	redisAppendCommand(self->client, "TW.PUT q y KEY k IN 100");
	redisAppendCommand(self->client, "TW.PUT q z KEY k IN 100");
	ASSERT_TRUE(answered(self->client, keys, NULL));
	EXPECT_EQ(2, figure(self->client, "q", "jobs"));

	/* The commands after an answer see its effect. */
	redisAppendCommand(self->client, "TW.NACK q %s", taken.receipt);
	redisAppendCommand(self->client, "TW.ACK q %s", taken.receipt);
	redisAppendCommand(self->client, "TW.TAKE q");
	redisAppendCommand(self->client, "TW.DELETE q %lld", b);
	redisAppendCommand(self->client, "TW.ACK q %s", taken.receipt);
	ASSERT_TRUE(answered(self->client, answers, &taken));
	EXPECT_EQ(2, taken.attempt);
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
}

TEST_F(jobs, J1_many_acks)
{
	redisReply *jobs, *reply;

	for (int i = 0; i < 3; i++)
		EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	jobs = say(self->client, "TW.TAKE q COUNT 10");
	ASSERT_EQ(3, jobs->elements);
	reply = say(self->client, "TW.ACK q %s %s nonsense %s",
		    jobs->element[0]->element[2]->str,
		    jobs->element[1]->element[2]->str,
		    jobs->element[1]->element[2]->str);
	ASSERT_EQ(4, reply->elements);
	EXPECT_EQ(1, reply->element[0]->integer);
	EXPECT_EQ(1, reply->element[1]->integer);
	EXPECT_EQ(0, reply->element[2]->integer);
	EXPECT_EQ(0, reply->element[3]->integer);
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	freeReplyObject(jobs);
	freeReplyObject(reply);
}

/* Commands behind a take that waits are answered after the take. */
TEST_F(jobs, blocked)
{
	redisContext *other = connect_daemon();
	redisReply *reply;

	redisAppendCommand(other, "TW.TAKE q BLOCK 30000");
	redisAppendCommand(other, "TW.STATS q");
	redisAppendCommand(other, "PING");
	redisBufferWrite(other, NULL);
	sleep_ms(100);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body IN 0.1")), 0);
	ASSERT_EQ(REDIS_OK, redisGetReply(other, (void **)&reply));
	EXPECT_STREQ("[1]", as_text(reply));
	freeReplyObject(reply);
	ASSERT_EQ(REDIS_OK, redisGetReply(other, (void **)&reply));
	EXPECT_EQ(REDIS_REPLY_ARRAY, reply->type);
	freeReplyObject(reply);
	ASSERT_EQ(REDIS_OK, redisGetReply(other, (void **)&reply));
	EXPECT_STREQ("PONG", as_text(reply));
	freeReplyObject(reply);
	redisFree(other);
}

/* A span is never shorter than asked for: a part of a ms counts as a whole ms. */
TEST_F(jobs, spans)
{
	SAYS("OK", self->client, "TW.CREATE q LEASE 1.0001");
	EXPECT_EQ(1001, figure(self->client, "q", "lease_ms"));
	SAYS("OK", self->client, "TW.CREATE q LEASE 0.0010000");
	EXPECT_EQ(1, figure(self->client, "q", "lease_ms"));
	/* The first value of BACKOFF may be as long as the last one. */
	SAYS("OK", self->client, "TW.CREATE q BACKOFF 5 5");
}

TEST_F(jobs, queues)
{
	struct taken taken;
	redisContext *other = connect_daemon();
	redisReply *reply;

	SAYS("OK", self->client, "TW.CREATE urgent");
	SAYS("[2]", self->client, "TW.QUEUES");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q later")), 0);
	EXPECT_GT(number_of(say(self->client, "TW.PUT urgent soon")), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE urgent q"));
	EXPECT_STREQ("urgent", taken.queue);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE urgent q"));
	EXPECT_STREQ("q", taken.queue);
	redisAppendCommand(other, "TW.TAKE urgent BLOCK 0");
	redisBufferWrite(other, NULL);
	sleep_ms(100);
	SAYS("OK", self->client, "TW.DROP urgent");
	ASSERT_EQ(REDIS_OK, redisGetReply(other, (void **)&reply));
	EXPECT_STREQ("NOQUEUE", as_text(reply));
	freeReplyObject(reply);
	redisFree(other);
	SAYS("NOQUEUE", self->client, "TW.PUT urgent body");
	SAYS("OK", self->client, "TW.CREATE urgent");
	EXPECT_EQ(0, figure(self->client, "urgent", "jobs"));
	SAYS("nil", self->client, "TW.TAKE urgent");
	/* Another lease makes another wheel with the same jobs. */
	SAYS("[2]", self->client, "TW.PUT urgent body KEY k");
	EXPECT_GT(number_of(say(self->client, "TW.PUT urgent later IN 1")), 0);
	SAYS("OK", self->client, "TW.CREATE urgent LEASE 7");
	EXPECT_EQ(7000, figure(self->client, "urgent", "lease_ms"));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE urgent BLOCK 30000"));
	EXPECT_STREQ("body", taken.body);
	SAYS("1", self->client, "TW.ACK urgent %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE urgent BLOCK 30000"));
	SAYS("1", self->client, "TW.ACK urgent %s", taken.receipt);
	SAYS("OK", self->client, "TW.DROP urgent");
}

TEST_HARNESS_MAIN
