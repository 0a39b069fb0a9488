// SPDX-License-Identifier: GPL-2.0-only
/*
 * Machines of a cluster are killed, stopped, and cut off, while producers and workers use it; see
 * cluster.h for the ledger that they keep, and the script "bed" for the machines. The test needs
 * the bed.
 *
 * J1	an answered change is kept, also when two machines die at once, as long as one of the
 *	disks comes back that had it
 * J2	no job is handed out early, or while another worker has it
 * J3	other nodes hand out the jobs of a node that dies, at most 12 s later
 *
 * TW_EVENTS is the number of events in a long run, which shows at its end that the ledger finds
 * losses if there are some. TW_SEED chooses the events, and TW_EVENT names an event that is
 * repeated instead.
 */
#include "cluster_events.h"

FIXTURE(cluster) {
	struct clients clients;
};

static void create_queue(struct __test_metadata *_metadata, struct clients *clients)
{
	redisContext *client = any_client(clients);

	ASSERT_NE(NULL, client);
	SAYS("OK", client, "TW.CREATE q LEASE %d TRIES 0", LEASE);
	/* The other nodes see a new queue within a second. */
	sleep_ms(2000);
}

/* Each test has a queue of its own. The first test starts the nodes. */
FIXTURE_SETUP(cluster)
{
	begin_ledger();
	if (!client_of(&self->clients, 1))
		ASSERT_EQ(0, operate("init") ?: operate("start $(bed nodes)"));
	create_queue(_metadata, &self->clients);
}

FIXTURE_TEARDOWN(cluster)
{
	SAYS("OK", any_client(&self->clients), "TW.DROP q");
	sleep_ms(2000);
	end_clients(&self->clients);
}

static void check_ledger(struct __test_metadata *_metadata)
{
	int twice, lost = sum_up(&twice);

	EXPECT_GT(accepted, 50);
	EXPECT_GT(done, 50);
	EXPECT_EQ(0, lost);
	EXPECT_EQ(0, twice);
	EXPECT_EQ(0, shared);
	EXPECT_EQ(0, robbed);
	EXPECT_EQ(0, early);
	EXPECT_EQ(0, back_again);
	EXPECT_EQ(0, ghosts);
	EXPECT_EQ(0, strange);
	EXPECT_EQ(0, bad_answers);
	EXPECT_EQ(0, ask_primary("select count(*) from timewheel.job"));
	/* The clock by which a job is early must never be ahead by a part of a ms. */
	EXPECT_EQ(0, ask_primary("select count(*) from generate_series(1, 1000)\n"
		  "where timewheel.now() > extract(epoch from clock_timestamp()) * 1000"));
}

/*
 * Checks that the ledger sees losses. The nodes are told that one machine is enough, the
 * primary's commits wait for no standby, and its disk is lost.
 */
static void check_control(struct __test_metadata *_metadata)
{
	FILE *more = fopen(BED "/more", "w");
	int twice;

	ASSERT_NE(NULL, more);
	fprintf(more, "machines = 1\n");
	fclose(more);
	setenv("TW_BED_CONFIG", BED "/more", 1);
	for (int server = 1; server <= 3; server++)
		ASSERT_EQ(0, operate("standbys d%d ''", server));
	ASSERT_EQ(0, operate("end $(bed nodes)") ?: operate("start $(bed nodes)"));
	start_load(seed);
	sleep_ms(2000);
	EXPECT_EQ(0, happen(find_event("primary_lost")));
	end_load(10000);
	EXPECT_GT(sum_up(&twice), 0);
}

TEST_F_TIMEOUT(cluster, J1_J2_J3_machines_fail_under_load, 36000)
{
	const char *wanted = getenv("TW_EVENTS");
	int count = wanted ? atoi(wanted) : SHORT;

	start_load(seed);
	for (int i = 0; i < count; i++)
		EXPECT_EQ(0, run_event(i));
	end_load(30000);
	check_ledger(_metadata);
	if (wanted)
		check_control(_metadata);
}

TEST_HARNESS_MAIN
