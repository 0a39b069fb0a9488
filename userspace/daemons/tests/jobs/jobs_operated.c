// SPDX-License-Identifier: GPL-2.0-only
/*
 * twjobd as an administrator sees it: metrics, a configuration that is read again, sockets at
 * which the service manager listens.
 */
#include "jobs.h"

#define LOG		DIR "/log"

FIXTURE(operated) {
	pid_t daemon;
	redisContext *client;
};

/* @socket is a socket that the service manager passes, or -1. */
static void start(FIXTURE_DATA(operated) *self, int socket)
{
	self->daemon = fork();
	if (!self->daemon) {
		char pid[16];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(open(LOG, O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
		if (socket >= 0) {
			sprintf(pid, "%d", getpid());
			setenv("LISTEN_PID", pid, 1);
			setenv("LISTEN_FDS", "1", 1);
			setenv("LISTEN_FDNAMES", "twjobd.socket", 1);
			if (socket == 3)
				fcntl(socket, F_SETFD, 0);
			else
				dup2(socket, 3);
		}
		execl("./twjobd", "twjobd", "--config", DIR "/config", NULL);
		_exit(127);
	}
	self->client = connect_daemon();
	if (!self->client)
		abort();
}

FIXTURE_SETUP(operated)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	clean_up();
	mkdir(DIR, 0700);
	write_config("password = first\nmax-body = 100\n");
}

FIXTURE_TEARDOWN(operated)
{
	if (!self->daemon)
		return;
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Tells whether a line of the text is @line. The text may be the daemon's messages. */
static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);
	const char *at = text;

	while (at && *at) {
		if (!strncmp(at, line, length) &&
		    (at[length] == '\n' || !at[length]))
			return true;
		at = strchr(at, '\n');
		at += !!at;
	}
	return false;
}

#define PROCESS_LINE \
	"twjobd: wheels = process: the wheels are in this process, and end with it"

static bool says_soon(const char *line)
{
	long long until = now_ms(CLOCK_MONOTONIC) + PATIENCE;
	char text[4096];

	do {
		int fd = open(LOG, O_RDONLY);
		ssize_t length = read(fd, text, sizeof(text) - 1);

		close(fd);
		text[length > 0 ? length : 0] = '\0';
		if (has_line(text, line))
			return true;
		sleep_ms(20);
	} while (now_ms(CLOCK_MONOTONIC) < until);
	fprintf(stderr, "# %s", text);
	return false;
}

/* TW.METRICS has all figures. If promtool is there, it accepts the text. */
TEST_F(operated, metrics)
{
	static const char * const lines[] = {
		"twjobd_jobs{queue=\"a\"} 4",
		"twjobd_jobs{queue=\"b\"} 0",
		"twjobd_pending_jobs{queue=\"a\"} 2",
		"twjobd_held_jobs{queue=\"a\"} 1",
		"twjobd_buried_jobs{queue=\"a\"} 1",
		"twjobd_due_jobs{queue=\"a\"} 1",
		"twjobd_due_jobs{queue=\"b\"} 0",
		"twjobd_oldest_due_seconds{queue=\"b\"} 0.000",
		"twjobd_delivered_total{queue=\"a\"} 3",
		"twjobd_lateness_seconds_count{queue=\"a\",} 3",
		"twjobd_lateness_seconds_bucket{queue=\"b\",le=\"+Inf\"} 0",
		"twjobd_paused{queue=\"a\"} 0",
		"twjobd_paused{queue=\"b\"} 1",
		"twjobd_mended_total 0",
		"twjobd_disk_full 0",
		"# TYPE twjobd_commit_seconds histogram",
		"# TYPE twjobd_delivered_total counter",
	};
	struct taken taken;
	redisReply *reply;
	const char *oldest;
	FILE *promtool;

	start(self, -1);
	SAYS("OK", self->client, "TW.CREATE a");
	SAYS("OK", self->client, "TW.CREATE b");
	SAYS("OK", self->client, "TW.PAUSE b");
	for (int i = 0; i < 4; i++)
		number_of(say(self->client, "TW.PUT a x"));
	number_of(say(self->client, "TW.PUT a x IN 3600"));
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE a BLOCK 5000"));
	SAYS("1", self->client, "TW.ACK a %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE a BLOCK 5000"));
	SAYS("OK", self->client, "TW.BURY a %s", taken.receipt);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE a BLOCK 5000"));
	sleep_ms(1100);

	reply = say(self->client, "TW.METRICS");
	ASSERT_EQ(REDIS_REPLY_STRING, reply->type);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		EXPECT_TRUE(has_line(reply->str, lines[i])) {
			TH_LOG("no line %s", lines[i]);
		}
	}
	oldest = strstr(reply->str, "twjobd_oldest_due_seconds{queue=\"a\"} ");
	ASSERT_NE(NULL, oldest);
	EXPECT_LE(1.1, atof(strchr(oldest, ' ')));
	EXPECT_GT(60, atof(strchr(oldest, ' ')));
	/* TW.STATS tells the same figures. */
	EXPECT_EQ(1, figure(self->client, "a", "due"));
	EXPECT_LE(1100, figure(self->client, "a", "oldest_ms"));
	EXPECT_EQ(0, figure(self->client, "b", "oldest_ms"));
	if (!access("./promtool", X_OK)) {
		promtool = popen("./promtool check metrics 2>&1", "w");
		ASSERT_NE(NULL, promtool);
		fwrite(reply->str, 1, reply->len, promtool);
		EXPECT_EQ(0, pclose(promtool));
	} else {
		TH_LOG("no promtool: the text is not checked by it");
	}
	freeReplyObject(reply);
}

/* INFO and the figures tell where the wheels are, and a line of the log says so. */
static void tells_kind(struct __test_metadata *_metadata, FIXTURE_DATA(operated) *self,
		       const char *kind, int figure_is)
{
	char line[64];
	redisReply *reply;

	snprintf(line, sizeof(line), "password = none\nwheels = %s\n", kind);
	write_config(line);
	start(self, -1);
	reply = say(self->client, "INFO");
	snprintf(line, sizeof(line), "wheels:%s\r\n", kind);
	EXPECT_NE(NULL, strstr(reply->str, line));
	freeReplyObject(reply);
	reply = say(self->client, "TW.METRICS");
	snprintf(line, sizeof(line), "twjobd_process_wheels %d", figure_is);
	EXPECT_TRUE(has_line(reply->str, line));
	freeReplyObject(reply);
	EXPECT_EQ(figure_is, figure(self->client, NULL, "process_wheels"));
}

TEST_F(operated, kinds_of_wheels)
{
	if (!in_process()) {
		tells_kind(_metadata, self, "kernel", 0);
		redisFree(self->client);
		EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	}
	/* The configuration counts, not the environment. */
	tells_kind(_metadata, self, "process", 1);
	EXPECT_TRUE(says_soon(PROCESS_LINE));
	SAYS("OK", self->client, "TW.CREATE a");
	EXPECT_NE(0, access("/dev/timewheels/" PREFIX "a", F_OK));
}

/* SIGHUP changes password and max-body. Other changes need a restart. */
TEST_F(operated, reload)
{
	char body[151] = "";
	redisContext *tcp;

	memset(body, 'x', sizeof(body) - 1);
	start(self, -1);
	SAYS("OK", self->client, "TW.CREATE a");
	SAYS("TOOBIG", self->client, "TW.PUT a %s", body);
	write_config("password = second\nmax-body = 200\nmax-connections = 7\n");
	kill(self->daemon, SIGHUP);
	EXPECT_TRUE(says_soon("twjobd: " DIR "/config: another max-connections needs a restart"));
	SAYS("1", self->client, "TW.PUT a %s", body);
	tcp = redisConnect("127.0.0.1", PORT);
	ASSERT_FALSE(tcp->err);
	SAYS("NOAUTH", tcp, "PING");
	SAYS("WRONGPASS", tcp, "AUTH first");
	SAYS("OK", tcp, "AUTH second");
	SAYS("PONG", tcp, "PING");
	redisFree(tcp);

	/* An error in the file changes nothing. */
	write_config("max-body = 100\nfoo = 1\n");
	kill(self->daemon, SIGHUP);
	EXPECT_TRUE(says_soon(DIR "/config:6: unknown key \"foo\""));
	EXPECT_TRUE(says_soon("twjobd: " DIR "/config has an error: nothing is changed"));
	SAYS("2", self->client, "TW.PUT a %s", body);
}

/*
 * A socket that the service manager has opened is used instead of the sockets of the
 * configuration. The next daemon hears clients that have connected while no daemon ran.
 */
TEST_F(operated, passed_socket)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { AF_UNIX, SOCKET };
	redisContext *waiting, *tcp;

	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
	ASSERT_EQ(0, listen(fd, 10));
	waiting = redisConnectUnix(SOCKET);
	ASSERT_FALSE(waiting->err);
	start(self, fd);
	SAYS("PONG", waiting, "PING");
	tcp = redisConnect("127.0.0.1", PORT);
	EXPECT_EQ(REDIS_ERR_IO, tcp->err);
	redisFree(tcp);
	redisFree(waiting);

	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	waiting = redisConnectUnix(SOCKET);
	ASSERT_FALSE(waiting->err);
	start(self, fd);
	SAYS("PONG", waiting, "PING");
	redisFree(waiting);
	close(fd);
}

/* Starts a second daemon that has to end by itself. Returns its exit status. */
static int second_ends(void)
{
	int status = -1;
	pid_t pid = start_daemon();

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Two daemons have a queue "q" each, and each says that the queue's wheel belongs to it. */
TEST_F(operated, second_daemon_with_the_same_prefix)
{
	struct taken taken;

	NEEDS_KERNEL("other processes do not see the wheel");
	test_store = DIR "/other";
	write_config("");
	start(self, -1);
	SAYS("OK", self->client, "TW.CREATE q");
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));

	test_store = STORE;
	write_config("");
	start(self, -1);
	SAYS("OK", self->client, "TW.CREATE q");
	EXPECT_GT(number_of(say(self->client, "TW.PUT q body")), 0);
	ASSERT_TRUE(take(self->client, &taken, "TW.TAKE q"));
	test_store = DIR "/other";
	write_config("");
	daemon_log = open(LOG, O_WRONLY | O_CREAT | O_APPEND, 0600);
	EXPECT_EQ(1, second_ends());
	close(daemon_log);
	daemon_log = 0;
	test_store = STORE;
	EXPECT_TRUE(says_soon("twjobd: the wheel \"tj-q\" is another twjobd's: set wheel-prefix"));
	/* The worker still has its job. */
	SAYS("1", self->client, "TW.ACK q %s", taken.receipt);
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_HARNESS_MAIN
