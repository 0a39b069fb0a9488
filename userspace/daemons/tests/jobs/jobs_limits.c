// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of twjobd: connections, and what the kernel gives. A command or a connection beyond a
 * limit is refused by name, and all others go on. Other limits are in ../sockets.
 */
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "jobs.h"

#define CONNECTIONS	10000
#define PARAMETERS	"/sys/module/timewheel/parameters/"
#define TRACING		"/sys/kernel/tracing/"

FIXTURE(limits) {
	pid_t daemon;
	redisContext *client;
};

/* Allows open files for the connections of the daemon, and for their other ends. */
static void allow_files(void)
{
	const struct rlimit files = { 2 * CONNECTIONS, 2 * CONNECTIONS };

	if (setrlimit(RLIMIT_NOFILE, &files))
		abort();
}

FIXTURE_SETUP(limits)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	allow_files();
	self->daemon = start_fresh("", "");
	self->client = must_connect();
}

FIXTURE_TEARDOWN(limits)
{
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

static void restart(FIXTURE_DATA(limits) *self)
{
	redisFree(self->client);
	end_daemon(self->daemon, SIGTERM);
	self->daemon = start_daemon();
	self->client = must_connect();
}

/* Lets each client take one job. Returns how many different jobs these are. */
static int take_each(redisContext **clients, int count)
{
	bool *seen = calloc(count, sizeof(*seen));
	int got = 0;

	for (int i = 0; i < count; i++) {
		redisAppendCommand(clients[i], "TW.TAKE q");
		send_all(clients[i]);
	}
	for (int i = 0; i < count; i++) {
		redisReply *reply = NULL;
		int body = -1;

		redisGetReply(clients[i], (void **)&reply);
		if (reply && reply->elements == 1)
			body = atoi(reply->element[0]->element[6]->str);
		if (body >= 0 && body < count && !seen[body]) {
			seen[body] = true;
			got++;
		}
		if (reply)
			freeReplyObject(reply);
	}
	free(seen);
	return got;
}

/* Returns how many connections put and take: with TW_SCALE=10 all connections. */
static int active(void)
{
	const char *scale = getenv("TW_SCALE");
	int n = CONNECTIONS / 10 * (scale ? atof(scale) : 1);

	return n < 1000 ? 1000 : n > CONNECTIONS ? CONNECTIONS : n;
}

/* The tests run as root, for whom 16 further places are kept free. */
#define ALL		(CONNECTIONS + 16)

/*
 * All connections are idle at first, and then put and take. One more connection is refused, and
 * no other connection suffers.
 */
TEST_F_TIMEOUT(limits, J5_ten_thousand_connections, 120)
{
	redisContext **clients = calloc(ALL, sizeof(*clients)), *more;
	int put = 0, jobs = active();
	redisReply *reply = NULL;

	clients[0] = self->client;
	for (int i = 1; i < ALL; i++)
		clients[i] = must_connect();
	more = must_connect();
	/* This client has sent nothing, because its connection may already be closed. */
	EXPECT_EQ(REDIS_OK, redisGetReply(more, (void **)&reply));
	EXPECT_STREQ("FULL", as_text(reply));
	freeReplyObject(reply);
	redisFree(more);
	for (int i = 0; i < jobs; i++) {
		redisAppendCommand(clients[i], "TW.PUT q %d", i);
		send_all(clients[i]);
	}
	for (int i = 0; i < jobs; i++) {
		reply = NULL;
		redisGetReply(clients[i], (void **)&reply);
		put += number_of(reply) > 0;
	}
	EXPECT_EQ(jobs, put);
	EXPECT_EQ(jobs, take_each(clients, jobs));
	for (int i = 1; i < ALL; i++)
		redisFree(clients[i]);
	free(clients);
	more = must_connect();
	SAYS("PONG", more, "PING");
	redisFree(more);
	EXPECT_EQ(jobs, figure(self->client, "q", "held"));
}

/* Sets a parameter of the module. Returns its old value. */
static long set_parameter(const char *name, long value)
{
	char path[128];
	long before = -1;
	FILE *file;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	file = fopen(path, "r+");
	if (!file || fscanf(file, "%ld", &before) != 1)
		abort();
	rewind(file);
	fprintf(file, "%ld\n", value);
	fclose(file);
	return before;
}

/* Checks that a refused TW.CREATE has left the queue "q" as it was. */
static void is_untouched(struct __test_metadata *_metadata,
			 redisContext *client)
{
	struct taken taken;

	EXPECT_EQ(100000, figure(client, "q", "max_jobs"));
	SAYS("[1]", client, "TW.QUEUES");
	EXPECT_GT(number_of(say(client, "TW.PUT q now")), 0);
	ASSERT_TRUE(take(client, &taken, "TW.TAKE q BLOCK 30000"));
	SAYS("1", client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(1, figure(client, "q", "jobs"));
}

#define GROUP		"/sys/fs/cgroup/twjobd-test"

__attribute__((__format__(printf, 2, 3)))
static bool write_text(const char *path, const char *format, ...)
{
	FILE *file = fopen(path, "w");
	va_list args;

	if (!file)
		return false;
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	return !fclose(file);
}

/* The daemon's control group has too little memory for the wheel of such a queue. */
TEST_F_TIMEOUT(limits, J5_memory_of_the_kernel, 60)
{
	NEEDS_KERNEL("nobody is charged for the wheel");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q later IN 1000")), 0);
	/* After these commands the daemon has the memory of its own that a queue needs. */
	for (int i = 0; i < 2; i++) {
		SAYS("OK", self->client, "TW.CREATE more");
		SAYS("OK", self->client, "TW.DROP more");
		is_untouched(_metadata, self->client);
	}
	if (mkdir(GROUP, 0755) ||
	    !write_text(GROUP "/memory.max", "250000"))
		SKIP(return, "no cgroup with a memory controller");
	ASSERT_TRUE(write_text(GROUP "/cgroup.procs", "%d", self->daemon));
	SAYS("FULL", self->client, "TW.CREATE more MAXJOBS 16000000");
	/* With this limit any other command would make the kernel kill the daemon. */
	ASSERT_TRUE(write_text(GROUP "/memory.max", "max"));
	is_untouched(_metadata, self->client);
	SAYS("OK", self->client, "TW.CREATE more MAXJOBS 16000000");
	SAYS("OK", self->client, "TW.DROP more");
	write_text("/sys/fs/cgroup/cgroup.procs", "%d", self->daemon);
	rmdir(GROUP);
}

/* The kernel counts tokens by user, unless the daemon has CAP_SYS_RESOURCE. */
TEST_F_TIMEOUT(limits, J5_tokens_of_a_user, 60)
{
	long before;

	NEEDS_KERNEL("there is no such limit");
	before = set_parameter("max_user_tokens", 150000);
	ASSERT_EQ(0, prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0));
	EXPECT_GT(number_of(say(self->client, "TW.PUT q later IN 1000")), 0);
	restart(self);
	SAYS("FULL", self->client, "TW.CREATE more");
	is_untouched(_metadata, self->client);
	SAYS("FULL", self->client, "TW.CREATE q MAXJOBS 200000");
	is_untouched(_metadata, self->client);
	set_parameter("max_user_tokens", before);
	SAYS("OK", self->client, "TW.CREATE more");
	SAYS("OK", self->client, "TW.DROP more");
}

/* The limit is for the whole machine. Even an existing queue can then be without a wheel. */
TEST_F_TIMEOUT(limits, J5_tokens_of_all, 60)
{
	char log[512] = "";
	int pipes[2];
	long before;

	NEEDS_KERNEL("there is no such limit");
	before = set_parameter("max_all_tokens", 150000);
	EXPECT_GT(number_of(say(self->client, "TW.PUT q later IN 1000")), 0);
	SAYS("FULL", self->client, "TW.CREATE more");
	is_untouched(_metadata, self->client);
	SAYS("FULL", self->client, "TW.CREATE q MAXJOBS 200000");
	is_untouched(_metadata, self->client);

	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	destroy_wheel("q");
	set_parameter("max_all_tokens", 1000);
	ASSERT_EQ(0, pipe(pipes));
	daemon_log = pipes[1];
	self->daemon = start_daemon();
	self->client = must_connect();
	SAYS("UNAVAILABLE", self->client, "TW.PUT q body");
	SAYS("UNAVAILABLE", self->client, "TW.TAKE q");
	EXPECT_EQ(1, figure(self->client, "q", "jobs"));
	sleep_ms(1500);
	EXPECT_GT(read(pipes[0], log, sizeof(log) - 1), 0);
	EXPECT_NE(NULL, strstr(log, "raise the module's limits")) {
		TH_LOG("%s", log);
	}
	/* The log has one line, although the daemon tries again and again. */
	EXPECT_EQ('\n', *strchrnul(log, '\n'));
	EXPECT_EQ('\0', strchrnul(log, '\n')[1]);
	set_parameter("max_all_tokens", before);
	EXPECT_TRUE(comes_to(self->client, "q", "loading", 0));
	is_untouched(_metadata, self->client);
}

/* Returns how often the daemon lists tokens between reading TW.STATS and answering it. */
static int lists_for_stats(FIXTURE_DATA(limits) *self)
{
	char line[512], list[16];
	int lists = 0;
	FILE *file;

	snprintf(line, sizeof(line), "common_pid == %d && (id == %d || id == %d || id == %d)",
		 self->daemon, SYS_ioctl, SYS_recvfrom, SYS_sendto);
	write_text(TRACING "events/raw_syscalls/sys_enter/filter", "%s", line);
	write_text(TRACING "trace", "%s", "");
	write_text(TRACING "events/raw_syscalls/sys_enter/enable", "1");
	figure(self->client, "q", "due");
	write_text(TRACING "events/raw_syscalls/sys_enter/enable", "0");
	snprintf(list, sizeof(list), ", %x, ", TIMEWHEEL_IOC_LIST);
	file = fopen(TRACING "trace", "r");
	while (file && fgets(line, sizeof(line), file) && !strstr(line, ": NR 44 ")) {
		if (strstr(line, ": NR 45 "))
			lists = 0;
		else if (strstr(line, list))
			lists++;
		else if (lists && strstr(line, ": NR 16 "))
			break;	/* The daemon does something else before it answers. */
	}
	if (file)
		fclose(file);
	return lists;
}

/* Due jobs are counted in slices, and in the end their number is right. */
TEST_F_TIMEOUT(limits, figures_of_a_large_queue, 120)
{
	int lists;

	ASSERT_GT(put_many(self->client, 12000, "IN 10000"), 0);
	EXPECT_EQ(0, figure(self->client, "q", "due"));
	ASSERT_GT(put_many(self->client, 3, "AT 1000"), 0);
	if (!in_process()) {
		lists = lists_for_stats(self);
		TH_LOG("%d lists for one answer", lists);
		EXPECT_GT(lists, 10);
		EXPECT_LT(lists, 60);
	}
	EXPECT_TRUE(comes_to(self->client, "q", "due", 3));
	sleep_ms(300);
	EXPECT_GE(figure(self->client, "q", "oldest_ms"), 300);
	ASSERT_GT(put_many(self->client, 5, "IN 0"), 0);
	EXPECT_TRUE(comes_to(self->client, "q", "due", 8));
	EXPECT_EQ(5, take_all(self->client, 5));
	EXPECT_EQ(0, figure(self->client, "q", "due"));
	EXPECT_EQ(0, figure(self->client, "q", "oldest_ms"));
}

TEST_HARNESS_MAIN
