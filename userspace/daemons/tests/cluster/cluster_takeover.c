// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes die while many clients use them, and other nodes have their jobs within 12 seconds,
 * whatever the dead nodes were about to send to the database. The servers have no timeouts that
 * end connections. The test needs the script "bed" with five nodes or more.
 *
 * TW_TAKEOVERS is the number of deaths. Three nodes die at once.
 */
#include "cluster.h"

#define DEATHS		3
#define MAX_CLIENTS	64
/* From a node's death until other nodes have all of its jobs, at most this many ms may pass. */
#define TAKEOVER_MS	12000
/* Each node that dies has this many jobs besides the jobs of its clients. */
#define SOME		20

static const char * const deaths[DEATHS] = { "kill", "stop", "cut" };
static atomic_bool stop_load;
static atomic_int answered[MAX_NODES + 1];

FIXTURE(takeover) {
	redisContext *survivor;
};

FIXTURE_SETUP(takeover)
{
	signal(SIGPIPE, SIG_IGN);
	ASSERT_LE(5, nr_nodes());
	self->survivor = connect_node(1, ANSWER_S * 3);
	if (!self->survivor) {
		ASSERT_EQ(0, operate("init") ?: operate("start $(bed nodes)"));
		self->survivor = connect_node(1, ANSWER_S * 3);
	}
	ASSERT_NE(NULL, self->survivor);
	SAYS("OK", self->survivor, "TW.CREATE load LEASE 60 TRIES 0");
	SAYS("OK", self->survivor, "TW.CREATE q LEASE 60 TRIES 0");
	/* The other nodes see a new queue within a second. */
	sleep_ms(2000);
}

FIXTURE_TEARDOWN(takeover)
{
	redisFree(self->survivor);
}

/* A client of one node, which puts, takes and acknowledges as fast as it can. */
static void *use_node(void *number)
{
	int node = (long)number;
	redisContext *client = NULL;
	struct taken taken;

	while (!stop_load) {
		if (client && client->err) {
			redisFree(client);
			client = NULL;
		}
		if (!client)
			client = connect_node(node, 1);
		if (!client) {
			sleep_ms(50);
			continue;
		}
		freeReplyObject(tell(client, "TW.PUT load %0*d", 200 + rand() % 400, 0));
		if (take(client, &taken, "TW.TAKE load"))
			freeReplyObject(tell(client, "TW.ACK load %s", taken.receipt));
		answered[node] += !client->err;
	}
	if (client)
		redisFree(client);
	return NULL;
}

/* Puts jobs that this node owns. Returns how many puts were answered. */
static int put_some(int node)
{
	redisContext *client = connect_node(node, ANSWER_S * 3);
	int count = 0;

	for (int i = 0; client && i < SOME; i++) {
		redisReply *reply = tell(client, "TW.PUT q n%d IN 5", node);

		count += reply && reply->type == REDIS_REPLY_INTEGER;
		freeReplyObject(reply);
	}
	if (client)
		redisFree(client);
	return count;
}

static long long jobs_of(int node)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "select count(*) from timewheel.job j join timewheel.node n\n"
		 "on n.id = j.node where n.name = 'n%d'", node);
	return ask_primary(sql);
}

/*
 * Waits until each of the nodes from @first on has no jobs any more. Checks how long after @begin
 * this is.
 */
static void wait_for_takeovers(struct __test_metadata *_metadata, long long begin, int first)
{
	long long after[DEATHS] = { };
	int left = DEATHS;

	while (left && mono() - begin < 3 * TAKEOVER_MS) {
		for (int i = 0; i < DEATHS; i++) {
			if (after[i] || jobs_of(first + i))
				continue;
			after[i] = mono() - begin;
			left--;
		}
		sleep_ms(200);
	}
	for (int i = 0; i < DEATHS; i++) {
		printf("# %s: %lld ms\n", deaths[i], after[i]);
		EXPECT_GT(after[i], 0);
		EXPECT_LT(after[i], TAKEOVER_MS);
	}
	fflush(stdout);
}

/* Brings the machines back to their state before. */
static void revive(struct __test_metadata *_metadata, int first)
{
	ASSERT_EQ(0, operate("mend n%d", first + 2) ?: operate("go n%d", first + 1) ?:
		     operate("start n%d", first));
	for (int i = 0; i < DEATHS; i++) {
		long long until = mono() + 20000;
		int puts = 0;

		while (puts < SOME && mono() < until)
			puts = put_some(first + i);
		EXPECT_EQ(SOME, puts);
	}
}

static void die_under_load(struct __test_metadata *_metadata, int first, int clients)
{
	pthread_t threads[DEATHS][MAX_CLIENTS];
	long long begin;

	stop_load = false;
	for (int i = 0; i < DEATHS; i++)
		ASSERT_EQ(SOME, put_some(first + i));
	for (int i = 0; i < DEATHS; i++)
		for (int j = 0; j < clients; j++)
			pthread_create(&threads[i][j], NULL, use_node, (void *)(long)(first + i));
	/* The nodes die when all of them are busy. */
	for (int i = 0; i < DEATHS; i++) {
		answered[first + i] = 0;
		while (answered[first + i] < 5 * clients)
			sleep_ms(50);
	}
	sleep_ms(rand() % 500);
	begin = mono();
	for (int i = 0; i < DEATHS; i++)
		EXPECT_EQ(0, operate("%s n%d", deaths[i], first + i));
	stop_load = true;
	wait_for_takeovers(_metadata, begin, first);
	for (int i = 0; i < DEATHS; i++)
		for (int j = 0; j < clients; j++)
			pthread_join(threads[i][j], NULL);
	revive(_metadata, first);
}

TEST_F_TIMEOUT(takeover, J3_of_a_node_that_dies_under_load, 36000)
{
	const char *wanted = getenv("TW_TAKEOVERS");
	int rounds = (wanted ? atoi(wanted) : 9) / DEATHS;

	srand(time(NULL));
	for (int i = 0; i < rounds; i++) {
		printf("# round %d, %d clients of each node\n", i + 1, i % 2 ? 64 : 16);
		die_under_load(_metadata, 2 + i % (nr_nodes() - DEATHS), i % 2 ? 64 : 16);
	}
}

TEST_HARNESS_MAIN
