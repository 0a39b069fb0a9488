// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nodes go on when another server takes the primary's place, in cases which the ledger would
 * meet only now and then. The script "bed" has to run.
 */
#include "bed.h"

#define MINUTE		60000
/* Nodes may need this many ms to find the server that has become the primary. */
#define FOUND		15000
#define ANSWER_S	20

FIXTURE(failover) {
	int old;
	redisContext *n1, *n2;
};

/* Makes the database's clock depend on a setting of the server. */
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

/* Repeats a command until the node has a database. Returns the answer. */
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

/* Tells whether a put by key made a job or found one, as @what says. Gets the job's number. */
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

/* Sends a put whose commit then waits for other machines. Returns whether the commit waits. */
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

/* Checks that the job comes once, and that no other job comes. */
static void comes_once(struct __test_metadata *_metadata, redisContext *client,
		       const char *body)
{
	struct taken taken;

	EXPECT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 5000"));
	EXPECT_STREQ(body, taken.body);
	SAYS("1", client, "TW.ACK q %s", taken.receipt);
	EXPECT_FALSE(take(client, &taken, "TW.TAKE q BLOCK 2000"));
}

/* The client of the put gets no answer, and finds out when it puts the job again. */
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

/* The primary waits for a standby that does not exist, while both standbys have all data. */
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

/* Checks that the nodes leave the old primary, which still answers but commits nothing. */
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

/* The kernel of the stopped primary's machine still takes connections. */
TEST_F_TIMEOUT(failover, a_primary_that_is_stopped_is_left, 90)
{
	ASSERT_EQ(0, operate("stop d%d", self->old));
	is_left(_metadata, self);
}

/* The nodes have lost their connections, and new connections wait for the primary's standbys. */
TEST_F_TIMEOUT(failover, a_primary_whose_standbys_have_gone_is_not_taken, 90)
{
	int a = self->old % 3 + 1, b = a % 3 + 1;

	ASSERT_EQ(0, operate("cut d%d d%d", a, b));
	ASSERT_LT(0, ask_primary("select count(pg_terminate_backend(pid))\n"
				 "from pg_stat_activity where application_name = 'twjobd'"));
	/* The commits of the new connections wait by now. */
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

/* A node that is cut off soon refuses commands, whether it is connected or tries to connect. */
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

/* Lets another server take the primary's place, whose clock is @ahead ms ahead. */
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

/*
 * Checks that a job that is put at once is due by the new clock, though the node knew the old
 * one.
 */
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

/* All leases end early, and jobs for the next minute become due. */
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

/* All jobs wait longer, as after a clock was set back, but a job that is put now does not. */
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
	/* A node sees that the clocks are right again. */
	ASSERT_EQ(0, right_clocks(self->old));
	EXPECT_TRUE(take(self->n1, &soon, "TW.TAKE q BLOCK 5000"));
	EXPECT_STREQ("soon", soon.body);
}

TEST_HARNESS_MAIN
