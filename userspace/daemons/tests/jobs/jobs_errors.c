// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each error of each verb of twjobd is provoked by a command that is right in all other parts. No
 * error changes anything.
 */
#include "jobs.h"

#define KEY_256	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" \
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

FIXTURE(errors) {
	pid_t daemon;
	redisContext *client;
};

FIXTURE_SETUP(errors)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("max-body = 4096\npassword = secret\n",
				   "LEASE 60 MAXJOBS 4 MAXBYTES 9000");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(errors)
{
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* The queue is empty, so these errors depend on nothing. */
static const struct {
	const char *command, *answer;
} simple[] = {
	{ "TW.NONE q", "ERR" },

	{ "TW.CREATE", "ERR" },
	{ "TW.CREATE no/name", "ERR" },
	{ "TW.CREATE count", "ERR" },
	{ "TW.CREATE a2345678901234567890123456789012", "ERR" },
	{ "TW.CREATE new LEASE", "ERR" },
	{ "TW.CREATE new LEASE 0", "ERR" },
	{ "TW.CREATE new LEASE 604801", "ERR" },
	{ "TW.CREATE new LEASE long", "ERR" },
	{ "TW.CREATE new TRIES 1000001", "ERR" },
	{ "TW.CREATE new MAXJOBS 0", "ERR" },
	{ "TW.CREATE new MAXJOBS 268435457", "ERR" },
	{ "TW.CREATE new MAXBYTES 0", "ERR" },
	{ "TW.CREATE new MAXAGE 1", "ERR" },
	{ "TW.CREATE new MAXJOBS 300000000", "ERR" },
	{ "TW.CREATE q MAXJOBS 300000000", "ERR" },

	{ "TW.DROP none", "NOQUEUE" },
	{ "TW.STATS none", "NOQUEUE" },
	{ "TW.PAUSE none", "NOQUEUE" },
	{ "TW.RESUME none", "NOQUEUE" },
	{ "TW.DRAIN none", "NOQUEUE" },
	{ "TW.DROP", "ERR" },
	{ "TW.QUEUES q", "ERR" },
	{ "TW.STATS q q", "ERR" },
	{ "TW.PAUSE", "ERR" },
	{ "TW.RESUME", "ERR" },
	{ "TW.DRAIN", "ERR" },

	{ "TW.PUT q", "ERR" },
	{ "TW.PUT none body", "NOQUEUE" },
	{ "TW.PUT q body IN", "ERR" },
	{ "TW.PUT q body IN soon", "ERR" },
	{ "TW.PUT q body IN 9000000000", "ERR" },
	{ "TW.PUT q body AT", "ERR" },
	{ "TW.PUT q body AT 9000000000001", "ERR" },
	{ "TW.PUT q body AT 2026-13-01T00:00:00Z", "ERR" },
	{ "TW.PUT q body AT 2026-12-01T00:00:00", "ERR" },
	{ "TW.PUT q body AT 2026-12-01", "ERR" },
	{ "TW.PUT q body AT 1969-12-31T23:59:59Z", "ERR" },
	{ "TW.PUT q body ON monday", "ERR" },
	{ "TW.PUT q body KEY", "ERR" },
	{ "TW.PUT q body KEY " KEY_256, "ERR" },
	{ "TW.PUT q body REPLACE", "ERR" },

	{ "TW.CANCEL q", "ERR" },
	{ "TW.CANCEL none 1", "NOQUEUE" },
	{ "TW.CANCEL q first", "ERR" },
	{ "TW.CANCEL q 0", "ERR" },
	{ "TW.CANCELKEY q", "ERR" },
	{ "TW.CANCELKEY none key", "NOQUEUE" },
	{ "TW.CANCELKEY q " KEY_256, "ERR" },
	{ "TW.MOVE q 1", "ERR" },
	{ "TW.MOVE none 1 IN 1", "NOQUEUE" },
	{ "TW.MOVE q first IN 1", "ERR" },
	{ "TW.MOVE q 1 IN soon", "ERR" },
	{ "TW.MOVE q 1 ON monday", "ERR" },
	{ "TW.MOVEKEY q key", "ERR" },
	{ "TW.MOVEKEY none key IN 1", "NOQUEUE" },
	{ "TW.MOVEKEY q " KEY_256 " IN 1", "ERR" },
	{ "TW.MOVEKEY q key IN soon", "ERR" },
	{ "TW.KICK q", "ERR" },
	{ "TW.KICK none 1", "NOQUEUE" },
	{ "TW.KICK q first", "ERR" },
	{ "TW.KICK q ALL", "ERR" },
	{ "TW.KICK q ALL 0", "ERR" },
	{ "TW.KICK q ALL 10001", "ERR" },
	{ "TW.DELETE q", "ERR" },
	{ "TW.DELETE none 1", "NOQUEUE" },
	{ "TW.DELETE q first", "ERR" },

	{ "TW.GET q", "ERR" },
	{ "TW.GET none 1", "NOQUEUE" },
	{ "TW.GET q first", "ERR" },
	{ "TW.LIST", "ERR" },
	{ "TW.LIST none", "NOQUEUE" },
	{ "TW.LIST q COUNT", "ERR" },
	{ "TW.LIST q COUNT 0", "ERR" },
	{ "TW.LIST q COUNT 1001", "ERR" },
	{ "TW.LIST q CURSOR first", "ERR" },
	{ "TW.LIST q STATE odd", "ERR" },
	{ "TW.LIST q BEFORE noon", "ERR" },
	{ "TW.LIST q AFTER 1", "ERR" },

	{ "TW.TAKE", "ERR" },
	{ "TW.TAKE COUNT 1", "ERR" },
	{ "TW.TAKE BOUND", "ERR" },
	{ "TW.TAKE none", "NOQUEUE" },
	{ "TW.TAKE q none", "NOQUEUE" },
	{ "TW.TAKE q COUNT", "ERR" },
	{ "TW.TAKE q COUNT 0", "ERR" },
	{ "TW.TAKE q COUNT 1001", "ERR" },
	{ "TW.TAKE q BLOCK", "ERR" },
	{ "TW.TAKE q BLOCK long", "ERR" },
	{ "TW.TAKE q BLOCK 86400001", "ERR" },
	{ "TW.TAKE q BOUND q", "ERR" },
	{ "TW.ACK q", "ERR" },
	{ "TW.ACK none receipt", "NOQUEUE" },
	{ "TW.ACK q receipt", "STALE" },
	{ "TW.NACK q", "ERR" },
	{ "TW.NACK none receipt", "NOQUEUE" },
	{ "TW.NACK q receipt", "STALE" },
	{ "TW.EXTEND q", "ERR" },
	{ "TW.EXTEND none receipt", "NOQUEUE" },
	{ "TW.EXTEND q receipt", "STALE" },
	{ "TW.BURY q", "ERR" },
	{ "TW.BURY none receipt", "NOQUEUE" },
	{ "TW.BURY q receipt", "STALE" },

	{ "HELLO 4", "NOPROTO" },
	{ "HELLO 2 SETNAME", "ERR" },
	{ "HELLO 2 AUTH default", "ERR" },
	{ "HELLO 2 AUTH default wrong", "WRONGPASS" },
	{ "AUTH", "ERR" },
	{ "AUTH wrong", "WRONGPASS" },
	{ "AUTH default wrong", "WRONGPASS" },
	{ "CLIENT", "ERR" },
	{ "CLIENT KILL", "ERR" },
	{ "PING a b", "ERR" },
	{ "QUIT now", "ERR" },
};

TEST_F(errors, that_depend_on_nothing)
{
	for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++) {
		redisReply *reply = redisCommand(self->client, simple[i].command);

		EXPECT_STREQ(simple[i].answer, as_text(reply)) {
			TH_LOG("%s", simple[i].command);
		}
		freeReplyObject(reply);
	}
	SAYS("[1]", self->client, "TW.QUEUES");
	EXPECT_EQ(4, figure(self->client, "q", "max_jobs"));
	SAYS("ERR", self->client, "TW.PUT q body KEY %s", "");
	SAYS("ERR", self->client, "TW.CANCELKEY q %s", "");
	EXPECT_EQ(0, figure(self->client, "q", "jobs"));
}

TEST_F(errors, before_the_password)
{
	redisContext *client = redisConnect("127.0.0.1", PORT);

	ASSERT_EQ(0, client->err);
	SAYS("NOAUTH", client, "HELLO 2");
	for (size_t i = 0; i < sizeof(simple) / sizeof(*simple); i++) {
		redisReply *reply;

		/* A command with a wrong number of arguments gets this error instead. */
		if (strcmp(simple[i].answer, "NOQUEUE"))
			continue;
		reply = redisCommand(client, simple[i].command);
		EXPECT_STREQ("NOAUTH", as_text(reply)) {
			TH_LOG("%s", simple[i].command);
		}
		freeReplyObject(reply);
	}
	SAYS("NOAUTH", client, "PING");
	SAYS("NOAUTH", client, "INFO");
	SAYS("NOAUTH", client, "COMMAND");
	SAYS("WRONGPASS", client, "HELLO 2 AUTH default secre");
	SAYS("NOAUTH", client, "TW.QUEUES");
	SAYS("OK", client, "AUTH secret");
	SAYS("[1]", client, "TW.QUEUES");
	redisFree(client);
	client = redisConnect("127.0.0.1", PORT);
	ASSERT_EQ(0, client->err);
	SAYS("[12]", client, "HELLO 2 AUTH default secret SETNAME me");
	SAYS("[1]", client, "TW.QUEUES");
	redisFree(client);
}

TEST_F(errors, of_a_job_that_is_held)
{
	struct taken taken;

	SAYS("[2]", self->client, "TW.PUT q body KEY k");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	SAYS("HELD", self->client, "TW.PUT q body KEY k");
	SAYS("HELD", self->client, "TW.PUT q body KEY k REPLACE");
	SAYS("HELD", self->client, "TW.CANCEL q %lld", taken.id);
	SAYS("HELD", self->client, "TW.CANCELKEY q k");
	SAYS("HELD", self->client, "TW.MOVE q %lld IN 1", taken.id);
	SAYS("HELD", self->client, "TW.MOVEKEY q k IN 1");
	SAYS("HELD", self->client, "TW.KICK q %lld", taken.id);
	SAYS("ERR", self->client, "TW.NACK q %s IN soon", taken.receipt);
	SAYS("ERR", self->client, "TW.NACK q %s ON monday", taken.receipt);
	SAYS("ERR", self->client, "TW.EXTEND q %s long", taken.receipt);
	SAYS("ERR", self->client, "TW.EXTEND q %s 604801", taken.receipt);
	/* None of the commands above has changed anything. */
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.NACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.EXTEND q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.BURY q %s", taken.receipt);
}

TEST_F(errors, of_a_job_that_is_buried)
{
	struct taken taken;

	SAYS("[2]", self->client, "TW.PUT q body KEY k");
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	SAYS("OK", self->client, "TW.BURY q %s", taken.receipt);
	SAYS("BURIED", self->client, "TW.MOVE q %lld IN 1", taken.id);
	SAYS("BURIED", self->client, "TW.MOVEKEY q k IN 1");
	SAYS("STALE", self->client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.NACK q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.EXTEND q %s", taken.receipt);
	SAYS("STALE", self->client, "TW.BURY q %s", taken.receipt);
	SAYS("1", self->client, "TW.CANCELKEY q k");
}

TEST_F(errors, of_a_queue_that_is_full_or_drains)
{
	char body[4098] = "";

	memset(body, 'x', 4097);
	SAYS("TOOBIG", self->client, "TW.PUT q %s", body);
	body[4096] = '\0';
	SAYS("[2]", self->client, "TW.PUT q %s KEY k IN 100", body);
	SAYS("[2]", self->client, "TW.PUT q small KEY l IN 100");
	SAYS("[2]", self->client, "TW.PUT q small KEY m IN 100");
	/*
	 * These commands reach the limit of bytes. A replacement counts without the body that it
	 * replaces.
	 */
	body[4000] = '\0';
	SAYS("[2]", self->client, "TW.PUT q %s KEY k REPLACE IN 100", body);
	SAYS("[2]", self->client, "TW.PUT q %s KEY l REPLACE IN 100", body);
	SAYS("FULL", self->client, "TW.PUT q %s KEY m REPLACE IN 100", body);
	SAYS("FULL", self->client, "TW.PUT q %s", body);
	/* These commands reach the limit of jobs. */
	SAYS("[2]", self->client, "TW.PUT q small KEY n IN 100");
	SAYS("FULL", self->client, "TW.PUT q body");
	SAYS("FULL", self->client, "TW.PUT q body KEY o");
	SAYS("[2]", self->client, "TW.PUT q body KEY n");
	SAYS("FULL", self->client, "TW.CREATE q MAXJOBS 3");
	EXPECT_EQ(4, figure(self->client, "q", "max_jobs"));

	SAYS("1", self->client, "TW.CANCELKEY q k");
	SAYS("OK", self->client, "TW.DRAIN q");
	SAYS("DRAINING", self->client, "TW.PUT q body");
	SAYS("DRAINING", self->client, "TW.PUT q body KEY k");
	SAYS("DRAINING", self->client, "TW.PUT q body KEY l REPLACE");
	EXPECT_EQ(3, figure(self->client, "q", "jobs"));
	EXPECT_EQ(3, figure(self->client, "q", "pending"));
}

/*
 * The wheel has been destroyed, and the first of these commands finds out. All commands are
 * carried out before there is another wheel.
 */
TEST_F(errors, without_a_wheel)
{
	static const char * const answers[] = {
		"UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE",
		"UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE",
		"UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE",
		"LOADING", "LOADING", "LOADING", "LOADING",
		/* The store alone can answer these commands. */
		"[2]", "0", "OK", "OK",
	};
	redisContext *client = self->client;
	long long id = number_of(say(client, "TW.PUT q body IN 0.1"));
	struct taken taken;
	redisReply *reply;

	NEEDS_KERNEL("other processes do not see the wheel");
	SAYS("[2]", client, "TW.PUT q body KEY k");
	ASSERT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 30000"));
	destroy_wheel("q");
	redisAppendCommand(client, "TW.PUT q body");
	redisAppendCommand(client, "TW.TAKE q");
	redisAppendCommand(client, "TW.CANCEL q %lld", id);
	redisAppendCommand(client, "TW.MOVE q %lld IN 1", id);
	redisAppendCommand(client, "TW.KICK q %lld", id);
	redisAppendCommand(client, "TW.DELETE q %lld", id);
	redisAppendCommand(client, "TW.GET q %lld", id);
	redisAppendCommand(client, "TW.ACK q %s", taken.receipt);
	redisAppendCommand(client, "TW.NACK q %s", taken.receipt);
	redisAppendCommand(client, "TW.EXTEND q %s", taken.receipt);
	redisAppendCommand(client, "TW.BURY q %s", taken.receipt);
	redisAppendCommand(client, "TW.PUT q body KEY k");
	redisAppendCommand(client, "TW.PUT q body KEY k REPLACE");
	redisAppendCommand(client, "TW.CANCELKEY q k");
	redisAppendCommand(client, "TW.MOVEKEY q k IN 1");
	redisAppendCommand(client, "TW.LIST q");
	redisAppendCommand(client, "TW.KICK q ALL 10");
	redisAppendCommand(client, "TW.PAUSE q");
	redisAppendCommand(client, "TW.RESUME q");
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		ASSERT_EQ(REDIS_OK, redisGetReply(client, (void **)&reply));
		EXPECT_STREQ(answers[i], as_text(reply)) {
			TH_LOG("answer %zu", i);
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

TEST_HARNESS_MAIN
