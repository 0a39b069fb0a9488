// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the nodes do when another server takes the primary's place, where the ledger would
 * come to it only now and then. The script "bed" has to run.
 */
#include "bed.h"

#define MINUTE		60000
/* How long nodes may take to find the server that has become the primary, ms. */
#define FOUND		15000
#define ANSWER_S	20

FIXTURE(failover) {
	int old;
	redisContext *n1, *n2;
};

/* The database's clock is what a server's configuration tells. */
static int make_clock(void)
{
	return operate("sql d%d \"create or replace function timewheel.now()\n"
		       "returns bigint language sql as 'select\n"
		       "floor(extract(epoch from clock_timestamp()) * 1000)::bigint\n"
		       "+ current_setting(''bed.ahead'')::bigint'\"", primary());
}

FIXTURE_SETUP(failover)
{
	signal(SIGPIPE, SIG_IGN);
	self->n1 = connect_node(1, ANSWER_S);
	if (!self->n1) {
		ASSERT_EQ(0, operate("init") ?: make_clock() ?: operate("start n1 n2"));
		self->n1 = connect_node(1, ANSWER_S);
	}
	self->n2 = connect_node(2, ANSWER_S);
	self->old = primary();
	ASSERT_NE(NULL, self->n2);
	SAYS("OK", self->n1, "TW.CREATE q LEASE 20");
	/* The other node sees a new queue within a second. */
	sleep_ms(1500);
}

FIXTURE_TEARDOWN(failover)
{
	SAYS("OK", self->n2, "TW.DROP q");
	EXPECT_EQ(0, operate("kill d%d", self->old) ?: operate("mend d%d", self->old) ?:
		     operate("rejoin d%d", self->old));
	sleep_ms(1500);
	redisFree(self->n1);
	redisFree(self->n2);
}

/* The answer to a command that is repeated as long as the node has no database. */
__attribute__((__format__(printf, 2, 3)))
static redisReply *insist(redisContext *client, const char *format, ...)
{
	long long until = mono() + FOUND;
	redisReply *reply;
	char line[128];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (;;) {
		reply = redisCommand(client, line);
		if (!reply && !redisReconnect(client))
			continue;
		if (!reply || reply->type != REDIS_REPLY_ERROR || mono() > until)
			return reply;
		freeReplyObject(reply);
		sleep_ms(20);
	}
}

/* Whether a put by key made a job or found one, as it says; and the job's number. */
static bool put_says(redisReply *reply, const char *what, long long *id)
{
	bool says = reply && reply->type == REDIS_REPLY_ARRAY &&
		    !strcmp(reply->element[1]->str, what);

	if (says && id)
		*id = reply->element[0]->integer;
	if (!says)
		printf("# put: %s\n", as_text(reply));
	freeReplyObject(reply);
	return says;
}

/* Sends a put whose commit then waits for other machines. */
static bool put_waits(redisContext *client)
{
	redisAppendCommand(client, "TW.PUT q first KEY k");
	send_all(client);
	for (int tries = 0; tries < 50; tries++) {
		if (ask_primary("select count(*) from pg_stat_activity\n"
				"where wait_event = 'SyncRep'") > 0)
			return true;
		sleep_ms(50);
	}
	return false;
}

/* It comes once, and nothing else does. */
static void comes_once(struct __test_metadata *_metadata, redisContext *client,
		       const char *body)
{
	struct taken taken;

	EXPECT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 5000"));
	EXPECT_STREQ(body, taken.body);
	SAYS("1", client, "TW.ACK q %s", taken.receipt);
	EXPECT_FALSE(take(client, &taken, "TW.TAKE q BLOCK 2000"));
}

/* Its client is told nothing, and finds out by putting it again. */
TEST_F_TIMEOUT(failover, J1_in_doubt_and_only_the_old_primary_has_it, 90)
{
	int a = self->old % 3 + 1, b = a % 3 + 1;
	redisReply *reply;

	ASSERT_EQ(0, operate("cut d%d d%d", a, b));
	ASSERT_TRUE(put_waits(self->n1));
	ASSERT_EQ(0, operate("cut d%d", self->old) ?: operate("kill d%d", self->old) ?:
		     operate("mend d%d d%d", a, b) ?: operate("failover"));
	EXPECT_NE(REDIS_OK, redisGetReply(self->n1, (void **)&reply));
	ASSERT_EQ(REDIS_OK, redisReconnect(self->n1));
	EXPECT_TRUE(put_says(insist(self->n2, "TW.PUT q second KEY k"), "NEW", NULL));
	EXPECT_TRUE(put_says(insist(self->n1, "TW.PUT q third KEY k"), "EXISTS", NULL));
	comes_once(_metadata, self->n1, "second");
}

/* The primary waits for a standby that is not there, while both have all. */
TEST_F_TIMEOUT(failover, J1_in_doubt_and_the_new_primary_has_it, 90)
{
	int a = self->old % 3 + 1, b = a % 3 + 1;
	redisReply *reply;

	ASSERT_EQ(0, operate("standbys d%d 'ANY 1 (nobody)'", self->old));
	ASSERT_TRUE(put_waits(self->n1));
	sleep_ms(500);
	ASSERT_EQ(0, operate("kill d%d", self->old) ?: operate("failover"));
	EXPECT_NE(REDIS_OK, redisGetReply(self->n1, (void **)&reply));
	ASSERT_EQ(REDIS_OK, redisReconnect(self->n1));
	EXPECT_TRUE(put_says(insist(self->n2, "TW.PUT q second KEY k"), "EXISTS", NULL));
	comes_once(_metadata, self->n2, "first");
	ASSERT_EQ(0, operate("rejoin d%d", self->old) ?:
		     operate("standbys d%d 'ANY 1 (d%d,d%d)'", self->old, a, b));
}

/*
 * The old primary is there as before, but it does not carry anything out: the nodes have
 * to leave it, though it answers.
 */
static void is_left(struct __test_metadata *_metadata, FIXTURE_DATA(failover) *self)
{
	long long start;

	ASSERT_EQ(0, operate("failover"));
	start = mono();
	EXPECT_TRUE(put_says(insist(self->n1, "TW.PUT q n1 KEY 1"), "NEW", NULL));
	EXPECT_TRUE(put_says(insist(self->n2, "TW.PUT q n2 KEY 2"), "NEW", NULL));
	TH_LOG("served again after %lld ms", mono() - start);
}

TEST_F_TIMEOUT(failover, a_primary_that_was_made_read_only_is_left, 90)
{
	ASSERT_EQ(0, operate("setting d%d default_transaction_read_only on", self->old));
	is_left(_metadata, self);
	EXPECT_EQ(0, operate("setting d%d default_transaction_read_only off", self->old));
}

TEST_F_TIMEOUT(failover, a_primary_whose_standbys_have_gone_is_left, 90)
{
	is_left(_metadata, self);
}

/* The kernel of its machine still takes connections. */
TEST_F_TIMEOUT(failover, a_primary_that_is_stopped_is_left, 90)
{
	ASSERT_EQ(0, operate("stop d%d", self->old));
	is_left(_metadata, self);
}

/* The nodes have lost their connections, and new ones wait for its standbys. */
TEST_F_TIMEOUT(failover, a_primary_whose_standbys_have_gone_is_not_taken, 90)
{
	int a = self->old % 3 + 1, b = a % 3 + 1;

	ASSERT_EQ(0, operate("cut d%d d%d", a, b));
	ASSERT_LT(0, ask_primary("select count(pg_terminate_backend(pid))\n"
				 "from pg_stat_activity where application_name = 'twjobd'"));
	/* Their commits wait by now. */
	sleep_ms(3000);
	ASSERT_EQ(0, operate("mend d%d d%d", a, b));
	is_left(_metadata, self);
}

TEST_F_TIMEOUT(failover, a_primary_without_a_quorum_is_left, 90)
{
	int a = self->old % 3 + 1, b = a % 3 + 1;

	ASSERT_EQ(0, operate("standbys d%d ''", self->old));
	is_left(_metadata, self);
	EXPECT_EQ(0, operate("standbys d%d 'ANY 1 (d%d,d%d)'", self->old, a, b));
}

/* It says so soon, whether it is connected or tries to be. */
TEST_F_TIMEOUT(failover, a_node_that_is_cut_off_refuses, 90)
{
	long long start, end = mono() + 12000, longest = 0, later = 0;
	redisReply *reply;

	ASSERT_EQ(0, operate("cut n1"));
	while (mono() < end) {
		start = mono();
		reply = say(self->n1, "TW.PUT q x");
		EXPECT_TRUE(!reply || !strcmp("UNAVAILABLE", as_text(reply)));
		EXPECT_TRUE(reply || redisReconnect(self->n1) == REDIS_OK);
		freeReplyObject(reply);
		if (mono() - start > longest)
			longest = mono() - start;
		else if (mono() - start > later)
			later = mono() - start;
		sleep_ms(100);
	}
	TH_LOG("after %lld ms, and then after at most %lld", longest, later);
	EXPECT_LT(longest, 6500);
	EXPECT_LT(later, 1500);
	ASSERT_EQ(0, operate("mend n1"));
	EXPECT_TRUE(put_says(insist(self->n1, "TW.PUT q n1 KEY 1"), "NEW", NULL));
	ASSERT_EQ(0, operate("failover"));
}

/* Another server's clock, from now on the database's: by how much it is ahead, ms. */
static int fail_over_to_clock(int old, int ahead)
{
	int a = old % 3 + 1, b = a % 3 + 1;

	return operate("setting d%d bed.ahead %d", a, ahead) ?:
	       operate("setting d%d bed.ahead %d", b, ahead) ?:
	       operate("kill d%d", old) ?: operate("failover");
}

static int right_clocks(int old)
{
	int a = old % 3 + 1, b = a % 3 + 1;

	return operate("setting d%d bed.ahead 0", a) ?:
	       operate("setting d%d bed.ahead 0", b);
}

/* What is put at once is due by the new clock, though the node knew the old one. */
static void is_due_in(struct __test_metadata *_metadata, redisContext *client,
		      const char *key)
{
	long long id = 0, left;
	char sql[128];

	EXPECT_TRUE(put_says(insist(client, "TW.PUT q %s IN 10 KEY %s", key, key), "NEW",
			     &id));
	snprintf(sql, sizeof(sql), "select due - timewheel.now() from timewheel.job\n"
		 "where id = %lld", id);
	left = ask_primary(sql);
	EXPECT_GT(left, 8000);
	EXPECT_LE(left, 10000 + 20);
	SAYS("1", client, "TW.CANCEL q %lld", id);
}

/* All leases end early, and what is put for the next minute is due. */
TEST_F_TIMEOUT(failover, to_a_clock_that_is_ahead, 90)
{
	struct taken held, again;

	SAYS("[2]", self->n1, "TW.PUT q held KEY held");
	ASSERT_TRUE(take(self->n1, &held, "TW.TAKE q BLOCK 5000"));
	SAYS("[2]", self->n2, "TW.PUT q soon KEY soon IN 50");
	ASSERT_EQ(0, fail_over_to_clock(self->old, MINUTE));
	is_due_in(_metadata, self->n1, "a");
	is_due_in(_metadata, self->n2, "b");
	for (int i = 0; i < 2; i++) {
		EXPECT_TRUE(take(self->n1, &again, "TW.TAKE q BLOCK 5000"));
		SAYS("1", self->n2, "TW.ACK q %s", again.receipt);
	}
	SAYS("STALE", self->n2, "TW.ACK q %s", held.receipt);
	ASSERT_EQ(0, right_clocks(self->old));
}

/* All waits longer, as it does when a clock is set back. What is put now does not. */
TEST_F_TIMEOUT(failover, to_a_clock_that_is_behind, 90)
{
	struct taken held, soon;

	SAYS("[2]", self->n1, "TW.PUT q held KEY held");
	ASSERT_TRUE(take(self->n1, &held, "TW.TAKE q BLOCK 5000"));
	SAYS("[2]", self->n2, "TW.PUT q soon KEY soon IN 3");
	ASSERT_EQ(0, fail_over_to_clock(self->old, -MINUTE));
	is_due_in(_metadata, self->n1, "a");
	is_due_in(_metadata, self->n2, "b");
	EXPECT_TRUE(put_says(insist(self->n2, "TW.PUT q now KEY now"), "NEW", NULL));
	comes_once(_metadata, self->n2, "now");
	SAYS("1", self->n2, "TW.ACK q %s", held.receipt);
	/* Somebody sees it. */
	ASSERT_EQ(0, right_clocks(self->old));
	EXPECT_TRUE(take(self->n1, &soon, "TW.TAKE q BLOCK 5000"));
	EXPECT_STREQ("soon", soon.body);
}

TEST_HARNESS_MAIN
