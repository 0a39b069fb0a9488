// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs that come again by a rule.
 */
#include "jobs.h"

#define ZONES	DIR "/zones"
#define KILLS	4
/* The test takes fewer seconds. */
#define SECONDS_MOST	120

FIXTURE(rules) {
	pid_t daemon;
	redisContext *client;
};

static void start(FIXTURE_DATA(rules) *self)
{
	self->daemon = start_daemon();
	self->client = must_connect();
}

static void killed(FIXTURE_DATA(rules) *self)
{
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
}

FIXTURE_SETUP(rules)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	setenv("TZDIR", ZONES, 1);
	self->daemon = start_fresh("", "LEASE 60 TRIES 1");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(rules)
{
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Puts a rule. Returns how the answer tells about it. */
__attribute__((__format__(printf, 2, 3)))
static const char *every(redisContext *client, const char *format, ...)
{
	static char text[300];
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = redisvCommand(client, format, args);
	va_end(args);
	if (!reply)
		return "ended";
	snprintf(text, sizeof(text), "%s", reply->type == REDIS_REPLY_ARRAY ?
		 reply->element[1]->str : as_text(reply));
	freeReplyObject(reply);
	return text;
}

/* Returns the id or the due time of the queue's first job in TW.LIST, or 0 if there is no job. */
static long long listed(redisContext *client, int field)
{
	redisReply *reply = say(client, "TW.LIST q"), *jobs = reply->element[1];
	long long value = jobs->elements ?
			  jobs->element[0]->element[field]->integer : 0;

	freeReplyObject(reply);
	return value;
}

#define LISTED_ID	1
#define LISTED_DUE	5

/* Returns the point of time in ms that the key of a rule's job has, as "e@2026-11-23T12:34:56". */
static long long named(const struct taken *taken)
{
	struct tm tm = { };

	if (strncmp(taken->key, "e@", 2) ||
	    !strptime(taken->key + 2, "%Y-%m-%dT%H:%M:%S", &tm))
		return -1;
	return timegm(&tm) * 1000LL;
}

TEST_F_TIMEOUT(rules, put_replaced_and_ended, 60)
{
	redisContext *client = self->client;
	struct taken taken;
	long long id, due;

	EXPECT_STREQ("NEW", every(client, "TW.EVERY q e @hourly body"));
	EXPECT_STREQ("EXISTS", every(client, "TW.EVERY q e @hourly body"));
	id = listed(client, LISTED_ID);
	due = listed(client, LISTED_DUE);
	EXPECT_EQ(0, due % 3600000);
	EXPECT_STREQ("REPLACED", every(client, "TW.EVERY q e @hourly MISSED all body"));
	EXPECT_STREQ("REPLACED", every(client, "TW.EVERY q e %s TZ UTC OVERLAP more",
				       "0 12 * * *"));
	EXPECT_EQ(43200000, listed(client, LISTED_DUE) % 86400000);
	EXPECT_STREQ("REPLACED", every(client, "TW.EVERY q e @hourly body"));
	EXPECT_EQ(id, listed(client, LISTED_ID));
	EXPECT_EQ(1, figure(client, NULL, "rules"));
	SAYS("[22]", client, "TW.GET q %lld", id);
	SAYS("nil", client, "TW.TAKE q");
	/*
	 * The next occurrence comes earlier this time. After it the occurrence that follows it is
	 * next.
	 */
	SAYS("1", client, "TW.KICK q %lld", id);
	ASSERT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 20000"));
	EXPECT_EQ(due, named(&taken));
	EXPECT_STREQ("body", taken.body);
	EXPECT_STREQ("EXISTS", every(client, "TW.EVERY q e @hourly body"));
	EXPECT_STREQ("HELD", every(client, "TW.EVERY q e @daily body"));
	SAYS("HELD", client, "TW.CANCELKEY q e");
	SAYS("1", client, "TW.ACK q %s", taken.receipt);
	SAYS("STALE", client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(due + 3600000, listed(client, LISTED_DUE));
	SAYS("ERR", client, "TW.PUT q body KEY e REPLACE");
	SAYS("1", client, "TW.CANCELKEY q e");
	SAYS("0", client, "TW.CANCELKEY q e");
	EXPECT_EQ(0, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, "q", "bytes"));
	EXPECT_EQ(0, figure(client, NULL, "rules"));
}

TEST_F_TIMEOUT(rules, refused, 60)
{
	redisContext *client = self->client;
	char key[240] = { };

	SAYS("ERR", client, "TW.EVERY q e %s body", "0 0 31 2 *");
	SAYS("ERR", client, "TW.EVERY q e FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30 body");
	SAYS("ERR", client, "TW.EVERY q e FREQ=DAILY;UNTIL=20200101 body");
	SAYS("ERR", client, "TW.EVERY q e @hourly TZ Nowhere body");
	SAYS("ERR", client, "TW.EVERY q e @hourly TZ body");
	SAYS("ERR", client, "TW.EVERY q e @hourly MISSED some body");
	SAYS("ERR", client, "TW.EVERY q e @hourly other body");
	SAYS("ERR", client, "TW.EVERY q e @hourly");
	memset(key, 'k', sizeof(key) - 1);
	SAYS("ERR", client, "TW.EVERY q %s @hourly body", key);
	SAYS("NOQUEUE", client, "TW.EVERY none e @hourly body");
	SAYS("[2]", client, "TW.PUT q body KEY k IN 1000");
	SAYS("ERR", client, "TW.EVERY q k @hourly body");
	SAYS("OK", client, "TW.DRAIN q");
	SAYS("DRAINING", client, "TW.EVERY q e @hourly body");
	EXPECT_EQ(1, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, NULL, "rules"));
}

TEST_F_TIMEOUT(rules, missed, 60)
{
	static const char * const missed[] = { "last", "all", "none" };
	redisContext *client = self->client;
	struct taken taken[3];
	long long begin, now;

	for (int i = 0; i < 3; i++) {
		SAYS("OK", client, "TW.CREATE %s", missed[i]);
		EXPECT_STREQ("NEW", every(client, "TW.EVERY %s e %s MISSED %s body",
					  missed[i], "FREQ=SECONDLY;INTERVAL=2",
					  missed[i]));
	}
	begin = now_ms(CLOCK_REALTIME);
	sleep_ms(4500);
	now = now_ms(CLOCK_REALTIME);
	for (int i = 0; i < 3; i++) {
		ASSERT_TRUE(take(client, &taken[i], "TW.TAKE %s BLOCK 20000", missed[i]));
		EXPECT_EQ(named(&taken[i]), taken[i].due);
		EXPECT_EQ(1, taken[i].attempt);
		SAYS("1", client, "TW.ACK %s %s", missed[i], taken[i].receipt);
	}
	EXPECT_GT(taken[0].due, now - 2000);
	EXPECT_LE(taken[0].due, now_ms(CLOCK_REALTIME));
	EXPECT_LE(taken[1].due, begin + 2000);
	EXPECT_GT(taken[2].due, now);
	ASSERT_TRUE(take(client, &taken[0], "TW.TAKE all"));
	EXPECT_EQ(taken[1].due + 2000, taken[0].due);
}

TEST_F_TIMEOUT(rules, overlap_is_a_choice, 60)
{
	redisContext *client = self->client;
	struct taken first, second;

	EXPECT_STREQ("NEW", every(client, "TW.EVERY q e FREQ=SECONDLY body"));
	ASSERT_TRUE(take(client, &first, "TW.TAKE q BLOCK 20000"));
	SAYS("nil", client, "TW.TAKE q BLOCK 1500");
	SAYS("1", client, "TW.ACK q %s", first.receipt);
	ASSERT_TRUE(take(client, &second, "TW.TAKE q BLOCK 20000"));
	EXPECT_GE(second.due, first.due + 1000);
	SAYS("1", client, "TW.ACK q %s", second.receipt);
	EXPECT_STREQ("REPLACED", every(client, "TW.EVERY q e FREQ=SECONDLY OVERLAP body"));
	ASSERT_TRUE(take(client, &first, "TW.TAKE q BLOCK 20000"));
	ASSERT_TRUE(take(client, &second, "TW.TAKE q BLOCK 20000"));
	EXPECT_GT(named(&second), named(&first));
	EXPECT_NE(second.id, first.id);
	EXPECT_EQ(3, figure(client, "q", "jobs"));
	SAYS("1", client, "TW.ACK q %s", first.receipt);
	SAYS("1", client, "TW.CANCELKEY q e");
	/* The occurrence that a worker has is a job of its own. */
	SAYS("1", client, "TW.ACK q %s", second.receipt);
	EXPECT_EQ(0, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, "q", "bytes"));
}

TEST_F_TIMEOUT(rules, goes_on_beside_a_buried_one, 60)
{
	redisContext *client = self->client;
	struct taken first, second, again;

	EXPECT_STREQ("NEW", every(client, "TW.EVERY q e FREQ=SECONDLY body"));
	ASSERT_TRUE(take(client, &first, "TW.TAKE q BLOCK 20000"));
	SAYS("BURIED", client, "TW.NACK q %s", first.receipt);
	ASSERT_TRUE(take(client, &second, "TW.TAKE q BLOCK 20000"));
	EXPECT_EQ(first.id, second.id);
	SAYS("OK", client, "TW.BURY q %s", second.receipt);
	EXPECT_EQ(2, figure(client, "q", "buried"));
	EXPECT_EQ(3, figure(client, "q", "jobs"));
	SAYS("1", client, "TW.CANCELKEY q e");
	SAYS("1", client, "TW.KICK q ALL 1");
	ASSERT_TRUE(take(client, &again, "TW.TAKE q BLOCK 20000"));
	EXPECT_STREQ(first.key, again.key);
	EXPECT_STREQ("body", again.body);
	SAYS("1", client, "TW.ACK q %s", again.receipt);
	EXPECT_EQ(1, figure(client, "q", "jobs"));
}

TEST_F_TIMEOUT(rules, ends_and_limits, 60)
{
	redisContext *client = self->client;
	struct taken first, second;

	SAYS("OK", client, "TW.CREATE q MAXJOBS 1");
	/*
	 * There is no room for a job of the occurrence that a worker has, so the next occurrence
	 * waits for its end. The first of the three occurrences is the present second.
	 */
	EXPECT_STREQ("NEW", every(client, "TW.EVERY q e %s MISSED all OVERLAP body",
				  "FREQ=SECONDLY;COUNT=3"));
	SAYS("FULL", client, "TW.EVERY q f @hourly body");
	ASSERT_TRUE(take(client, &first, "TW.TAKE q BLOCK 20000"));
	SAYS("nil", client, "TW.TAKE q BLOCK 1500");
	SAYS("FULL", client, "TW.BURY q %s", first.receipt);
	SAYS("1", client, "TW.ACK q %s", first.receipt);
	ASSERT_TRUE(take(client, &second, "TW.TAKE q BLOCK 20000"));
	EXPECT_GT(second.due, first.due);
	SAYS("1", client, "TW.ACK q %s", second.receipt);
	EXPECT_EQ(0, figure(client, "q", "jobs"));
	EXPECT_EQ(0, figure(client, NULL, "rules"));
	EXPECT_STREQ("NEW", every(client, "TW.EVERY q e FREQ=SECONDLY body"));
	SAYS("OK", client, "TW.PAUSE q");
	SAYS("nil", client, "TW.TAKE q BLOCK 1500");
	SAYS("OK", client, "TW.RESUME q");
	ASSERT_TRUE(take(client, &first, "TW.TAKE q BLOCK 20000"));
	SAYS("OK", client, "TW.DROP q");
	EXPECT_TRUE(comes_to(client, NULL, "rules", 0));
}

/*
 * Each second has an occurrence, however often the daemon is killed, and no occurrence comes
 * again after its ACK.
 */
TEST_F_TIMEOUT(rules, none_lost_or_doubled_by_kills, 120)
{
	bool seen[SECONDS_MOST] = { }, acked[SECONDS_MOST] = { };
	int kills = 0, at, last = 0;
	long long first = 0;
	struct taken taken;

	SAYS("OK", self->client, "TW.CREATE q LEASE 1 TRIES 0");
	EXPECT_STREQ("NEW", every(self->client, "TW.EVERY q e %s MISSED all OVERLAP body",
				  "FREQ=SECONDLY"));
	while (kills < KILLS) {
		if (!take(self->client, &taken, "TW.TAKE q BLOCK 3000"))
			continue;
		first = first ? first : taken.due;
		at = (taken.due - first) / 1000;
		ASSERT_LT(at, SECONDS_MOST);
		EXPECT_EQ(taken.due, named(&taken));
		EXPECT_FALSE(acked[at]);
		seen[at] = true;
		last = at > last ? at : last;
		if (rand() % 2) {
			SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
			acked[at] = true;
			continue;
		}
		redisAppendCommand(self->client, "TW.ACK q %s", taken.receipt);
		send_all(self->client);
		usleep(rand() % 10000);
		killed(self);
		start(self);
		kills++;
	}
	for (at = 0; at <= last; at++)
		EXPECT_TRUE(seen[at]);
	EXPECT_EQ(1, figure(self->client, NULL, "rules"));
}

/* Writes a file of a time zone that is always @hours hours east of Greenwich. */
static void write_zone(const char *name, int hours)
{
	const char block[] = {
		'T', 'Z', 'i', 'f', '2', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4,
		0, 0, hours * 3600 >> 8, hours * 3600 & 0xff, 0, 0, 'X', 'X', 'X', 0,
	};
	FILE *file = fopen(ZONES "/new", "w");

	if (!file)
		abort();
	fwrite(block, sizeof(block), 1, file);
	fwrite(block, sizeof(block), 1, file);
	fprintf(file, "\nXXX-%d\n", hours);
	fclose(file);
	if (rename(ZONES "/new", name))
		abort();
}

TEST_F_TIMEOUT(rules, zone_changes, 60)
{
	long long due;

	mkdir(ZONES, 0700);
	write_zone(ZONES "/Town", 1);
	EXPECT_STREQ("NEW", every(self->client, "TW.EVERY q e %s TZ Town body",
				  "30 12 * * *"));
	due = listed(self->client, LISTED_DUE);
	EXPECT_EQ(41400000, due % 86400000);
	write_zone(ZONES "/Town", 2);
	for (int i = 0; i < PATIENCE / 50 && listed(self->client, LISTED_DUE) == due; i++)
		sleep_ms(50);
	EXPECT_EQ(due - 3600000, listed(self->client, LISTED_DUE));
}

TEST_HARNESS_MAIN
