// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes with wheels of the kernel, which outlive a node that is killed. The test needs the module
 * and the script "bed". Here one kernel stands for the kernels of all machines, and each node's
 * wheels have a prefix of their own.
 *
 * J2	a job that was put at one node is handed out by another one, once and not early
 * J3	a node that does not come back: another one hands its jobs out
 * J4	a node that is started again goes on with its wheel, which has never stopped
 */
#include "bed.h"

/*
 * The test has SOON jobs that come due, and FAR jobs that do not. FAR is so large that a load of
 * them would be seen.
 */
#define SOON		20
#define FAR		3000
/* A node's look at its wheel compares this many tokens within two seconds. */
#define FEW		500
/*
 * The time has room for a node's lease, the look of other nodes, and as much for a guest on a
 * busy machine.
 */
#define TAKEOVER_MS	20000
/* A worker waits LOOK_MS for the next job, and then NOTHING_MS for a job that must not come. */
#define LOOK_MS		500
#define NOTHING_MS	2000
#define ANSWER_S	30

FIXTURE(wheels) {
	redisContext *n1, *n2;
};

/* The ledger notes which jobs came, by the numbers that are their bodies. */
struct ledger {
	int seen[SOON], count, early, twice;
	long long first, last;	/* ms of the wall clock: when the jobs came */
};

FIXTURE_SETUP(wheels)
{
	signal(SIGPIPE, SIG_IGN);
	self->n1 = connect_node(1, ANSWER_S);
	if (!self->n1) {
		ASSERT_EQ(0, operate("init") ?: operate("start n1 n2"));
		self->n1 = connect_node(1, ANSWER_S);
	}
	self->n2 = connect_node(2, ANSWER_S);
	ASSERT_NE(NULL, self->n1);
	ASSERT_NE(NULL, self->n2);
	SAYS("OK", self->n1, "TW.CREATE q LEASE 60");
	/* The other node sees a new queue within a second. */
	ASSERT_TRUE(comes_to(self->n2, "q", "loading", 0));
}

FIXTURE_TEARDOWN(wheels)
{
	SAYS("OK", self->n2, "TW.DROP q");
	redisFree(self->n1);
	redisFree(self->n2);
	/* The other node sees that the queue has gone within a second. */
	sleep_ms(1500);
}

/* Returns the number of tokens that a node has of the queue, or -1 if the node has no wheel. */
static long long tokens_of(int node)
{
	struct timewheel_info info = { .size = sizeof(info) };
	char name[TIMEWHEEL_NAME_SIZE];
	struct tw_wheel *wheel;
	long long count = -1;

	snprintf(name, sizeof(name), "n%d-q", node);
	wheel = tw_wheel_open_named(name, O_RDONLY);
	if (wheel && !tw_wheel_info(wheel, &info))
		count = info.pending + info.held;
	tw_wheel_close(wheel);
	/* One of the tokens is twjobd's stamp. */
	return count - (count > 0);
}

static bool has_tokens(int node, long long count)
{
	for (int tries = 0; tries < PATIENCE / 50; tries++) {
		if (tokens_of(node) == count)
			return true;
		sleep_ms(50);
	}
	printf("# n%d has %lld tokens\n", node, tokens_of(node));
	return false;
}

static void note(struct ledger *ledger, const struct taken *taken)
{
	long long now = now_ms(CLOCK_REALTIME);
	int number = atoi(taken->body);

	ledger->early += now < taken->due;
	ledger->twice += ledger->seen[number]++;
	ledger->count++;
	ledger->first = ledger->first ?: now;
	ledger->last = now;
}

/* Takes all jobs that come at this node, and waits to see that no more jobs come. */
static void take_soon(struct __test_metadata *_metadata, redisContext *client,
		      struct ledger *ledger)
{
	long long until = mono() + PATIENCE;
	struct taken taken;

	while (mono() < until) {
		if (!take(client, &taken, "TW.TAKE q BLOCK %d", LOOK_MS))
			continue;
		note(ledger, &taken);
		SAYS("1", client, "TW.ACK q %s", taken.receipt);
		until = mono() + (ledger->count < SOON ? PATIENCE : NOTHING_MS);
	}
}

static void nothing_comes(struct __test_metadata *_metadata, redisContext *client)
{
	struct taken taken;

	EXPECT_FALSE(take(client, &taken, "TW.TAKE q BLOCK %d", NOTHING_MS));
}

static void check(struct __test_metadata *_metadata, const struct ledger *ledger)
{
	EXPECT_EQ(SOON, ledger->count);
	EXPECT_EQ(0, ledger->early);
	EXPECT_EQ(0, ledger->twice);
}

/* Only the other node has a worker, so this node has to give away due jobs. */
TEST_F_TIMEOUT(wheels, J2_put_at_one_node_and_taken_at_another, 120)
{
	long long due = now_ms(CLOCK_REALTIME) + 3000;
	struct ledger ledger = { };

	ASSERT_LT(0, put_many(self->n1, SOON, "IN 3"));
	EXPECT_EQ(SOON, tokens_of(1));
	take_soon(_metadata, self->n2, &ledger);
	check(_metadata, &ledger);
	TH_LOG("the last one came %lld ms after its time", ledger.last - due);
	EXPECT_TRUE(has_tokens(1, 0));
	EXPECT_TRUE(has_tokens(2, 0));
	EXPECT_EQ(0, figure(self->n1, NULL, "mended"));
	EXPECT_EQ(0, figure(self->n2, NULL, "mended"));
}

static void restart(struct __test_metadata *_metadata, FIXTURE_DATA(wheels) *self)
{
	redisFree(self->n1);
	ASSERT_EQ(0, operate("start n1"));
	self->n1 = connect_node(1, ANSWER_S);
	ASSERT_NE(NULL, self->n1);
}

/* The node's wheel goes on without the node, and is not filled again from the database. */
TEST_F_TIMEOUT(wheels, J4_killed_and_started_again, 120)
{
	struct ledger ledger = { };
	struct taken taken;
	long long start;

	ASSERT_LT(0, put_many(self->n1, FAR, "IN 3600"));
	ASSERT_LT(0, put_many(self->n1, SOON, "IN 1"));
	ASSERT_EQ(0, operate("kill n1"));
	EXPECT_EQ(FAR + SOON, tokens_of(1));
	start = mono();
	restart(_metadata, self);
	EXPECT_EQ(0, figure(self->n1, NULL, "loading"));
	ASSERT_TRUE(take(self->n1, &taken, "TW.TAKE q BLOCK 10000"));
	note(&ledger, &taken);
	TH_LOG("the first job came %lld ms after the start", mono() - start);
	SAYS("1", self->n1, "TW.ACK q %s", taken.receipt);
	take_soon(_metadata, self->n1, &ledger);
	check(_metadata, &ledger);
	EXPECT_EQ(FAR, tokens_of(1));
	EXPECT_EQ(0, figure(self->n1, NULL, "mended"));
}

/* The tokens that the node finds in its wheel after the takeover belong to another node. */
TEST_F_TIMEOUT(wheels, J3_killed_and_taken_over, 180)
{
	struct ledger ledger = { };
	long long killed;

	ASSERT_LT(0, put_many(self->n1, FEW, "IN 3600"));
	ASSERT_LT(0, put_many(self->n1, SOON, "IN 1"));
	killed = now_ms(CLOCK_REALTIME);
	ASSERT_EQ(0, operate("kill n1"));
	take_soon(_metadata, self->n2, &ledger);
	check(_metadata, &ledger);
	TH_LOG("taken over within %lld to %lld ms", ledger.first - killed,
	       ledger.last - killed);
	EXPECT_LE(ledger.first - killed, TAKEOVER_MS);
	EXPECT_TRUE(has_tokens(2, FEW));
	EXPECT_EQ(FEW + SOON, tokens_of(1));
	restart(_metadata, self);
	nothing_comes(_metadata, self->n1);
	EXPECT_TRUE(has_tokens(1, 0));
	EXPECT_EQ(FEW, tokens_of(2));
	EXPECT_EQ(FEW, ask_primary("select count(*) from timewheel.job"));
}

TEST_HARNESS_MAIN
