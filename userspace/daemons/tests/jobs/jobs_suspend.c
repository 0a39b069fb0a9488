// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine is suspended to RAM. Jobs that came due meanwhile are handed out when the machine
 * goes on, and so is a job whose lease has ended: each job comes once, and none early. The
 * machine's own clock wakes the machine. The test needs a guest of its own, because a second
 * sleep is not reliable on an emulated machine.
 */
#include "jobs.h"

#define WAKE	"/sys/class/rtc/rtc0/wakealarm"
#define STATE	"/sys/power/state"

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

static long long asleep_ms(void)
{
	return now_ms(CLOCK_BOOTTIME) - now_ms(CLOCK_MONOTONIC);
}

TEST(J2_machine_is_suspended)
{
	struct taken before, jobs[2] = { };
	redisContext *client, *waiter;
	redisReply *reply;
	long long slept;
	int count = 1;
	pid_t daemon;

	if (access("/dev/timewheel", F_OK) || access(STATE, W_OK) || access(WAKE, W_OK))
		SKIP(return, "no device, or this machine cannot be sent to sleep");
	daemon = start_fresh("", "LEASE 2");
	client = must_connect();
	waiter = must_connect();
	EXPECT_EQ(1, number_of(say(client, "TW.PUT q held")));
	ASSERT_TRUE(take(client, &before, "TW.TAKE q"));
	EXPECT_EQ(2, number_of(say(client, "TW.PUT q meanwhile IN 2")));
	EXPECT_EQ(3, number_of(say(client, "TW.PUT q later IN 3600")));
	redisAppendCommand(waiter, "TW.TAKE q BLOCK 60000");
	send_all(waiter);
	slept = asleep_ms();
	ASSERT_TRUE(write_file(WAKE, "+5") && write_file(STATE, "mem"));
	slept = asleep_ms() - slept;
	TH_LOG("slept for %lld ms", slept);
	EXPECT_LE(1000, slept);

	ASSERT_EQ(REDIS_OK, redisGetReply(waiter, (void **)&reply));
	ASSERT_EQ(1, reply->elements);
	read_taken(reply->element[0], &jobs[0]);
	count += take(client, &jobs[1], "TW.TAKE q BLOCK 30000");
	SAYS("STALE", client, "TW.ACK q %s", before.receipt);
	for (int i = 0; i < count; i++) {
		EXPECT_LE(jobs[i].due, now_ms(CLOCK_REALTIME));
		EXPECT_EQ(jobs[i].id == 1 ? 2 : 1, jobs[i].attempt);
		SAYS("1", client, "TW.ACK q %s", jobs[i].receipt);
	}
	EXPECT_EQ(3, jobs[0].id + jobs[1].id);
	SAYS("nil", client, "TW.TAKE q");
	EXPECT_EQ(1, figure(client, "q", "jobs"));
	EXPECT_EQ(1, figure(client, "q", "pending"));
	EXPECT_EQ(0, figure(client, NULL, "mended"));
	freeReplyObject(reply);
	redisFree(client);
	redisFree(waiter);
	EXPECT_EQ(0, end_daemon(daemon, SIGTERM));
	clean_up();
}

TEST_HARNESS_MAIN
