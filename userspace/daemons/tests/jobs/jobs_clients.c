// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unchanged clients of Redis with twjobd: their pools, pipelines and takes that wait, and
 * connections that end after the daemon has committed and before its answer comes. With the
 * settings of twjob-protocol(7) no job is put twice then. Their verbs are in ../clients/verbs.
 */
#include <netinet/in.h>

#include "jobs.h"

#define PROXY		7098
#define PORTS		"7099 7098"
#define REDIS_CLI	"./redis-cli --no-auth-warning -a secret --csv -p"
#define PHP		"./php -n -d default_socket_timeout=4" \
			" -d display_startup_errors=0 -d log_errors=0" \
			" -d extension=/test/igbinary.so -d extension=/test/redis.so"

/*
 * The proxy is between a client and the daemon. When a command has a word "cut-a", or one with
 * another letter, for the first time, the proxy waits for the answer, and ends the connection
 * instead of passing the answer on. After "kill-a" the daemon is killed, too, and the test starts
 * it again.
 */
static struct {
	int listener;
	atomic_bool seen[256];
	atomic_bool kill;
} proxy;

static struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static int connect_tcp(void)
{
	struct sockaddr_in address = loopback(PORT);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Tells whether these bytes have a word that has not come before. */
static bool is_new(const char *bytes, size_t length, const char *word)
{
	const char *at = memmem(bytes, length, word, strlen(word));
	unsigned char letter;

	if (!at || at + strlen(word) >= bytes + length)
		return false;
	letter = at[strlen(word)];
	return !atomic_exchange(&proxy.seen[letter], true);
}

/* Waits until the daemon has answered, because its answer says that the change is durable. */
static void drop_answer(int daemon, bool kill)
{
	struct pollfd answer = { .fd = daemon, .events = POLLIN };

	if (poll(&answer, 1, PATIENCE) != 1)
		abort();
	proxy.kill = kill;
	while (proxy.kill)
		sleep_ms(5);
}

/* Passes on the bytes that have come. Returns whether both sides are still connected. */
static bool pass(int from, int to, bool is_command)
{
	char bytes[16384];
	ssize_t length = read(from, bytes, sizeof(bytes));
	bool cut, kill;

	if (length <= 0)
		return false;
	cut = is_command && is_new(bytes, length, "cut-");
	kill = is_command && is_new(bytes, length, "kill-");
	if (write(to, bytes, length) != length)
		return false;
	if (cut || kill)
		drop_answer(to, kill);
	return !cut && !kill;
}

static void *pass_all(void *argument)
{
	int client = (long)argument, daemon = connect_tcp();
	struct pollfd fds[] = {
		{ .fd = client, .events = POLLIN },
		{ .fd = daemon, .events = POLLIN },
	};
	bool go_on = daemon >= 0;

	while (go_on && poll(fds, 2, -1) > 0) {
		if (fds[0].revents)
			go_on = pass(client, daemon, true);
		if (go_on && fds[1].revents)
			go_on = pass(daemon, client, false);
	}
	close(client);
	if (daemon >= 0)
		close(daemon);
	return NULL;
}

static void *accept_all(void *unused)
{
	long client;

	(void)unused;
	while ((client = accept4(proxy.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, pass_all, (void *)client);
		pthread_detach(thread);
	}
	return NULL;
}

/* Node and the clients for it are in an archive. */
static void unpack_node(void)
{
	if (access("node_modules", F_OK) && system("tar xf node.tar -C /"))
		abort();
}

static void start_proxy(void)
{
	struct sockaddr_in address = loopback(PROXY);
	const int on = 1;
	pthread_t thread;

	proxy.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(proxy.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(proxy.listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(proxy.listener, 16))
		abort();
	pthread_create(&thread, NULL, accept_all, NULL);
}

FIXTURE(clients) {
	pid_t daemon;
	redisContext *client;
};

static const char * const queues[] = {
	"pipe", "waited", "unkeyed", "keyed", "set", "unended",
};

FIXTURE_SETUP(clients)
{
	if (!has_wheels())
		SKIP(return, "no device: is the module loaded?");
	self->daemon = start_fresh("password = secret\n", "");
	self->client = must_connect();
	for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++)
		SAYS("OK", self->client, "TW.CREATE %s", queues[i]);
	start_proxy();
}

FIXTURE_TEARDOWN(clients)
{
	redisFree(self->client);
	EXPECT_EQ(0, end_daemon(self->daemon, SIGTERM));
	clean_up();
}

/* Kills the daemon if the proxy asks for this. */
static void kill_daemon(FIXTURE_DATA(clients) *self)
{
	int fd;

	if (!proxy.kill)
		return;
	redisFree(self->client);
	end_daemon(self->daemon, SIGKILL);
	self->daemon = start_daemon();
	self->client = must_connect();
	while ((fd = connect_tcp()) < 0)
		sleep_ms(5);
	close(fd);
	proxy.kill = false;
}

/* Runs a program that ends by itself. Returns its status. */
static int run(FIXTURE_DATA(clients) *self, const char *command)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		kill_daemon(self);
		sleep_ms(5);
	}
	return status;
}

/* Returns how many jobs of a queue have this body. */
static int count_bodies(redisContext *client, const char *queue, const char *body)
{
	redisReply *list = say(client, "TW.LIST %s COUNT 1000", queue);
	redisReply *jobs = list && list->elements ? list->element[1] : NULL;
	int count = 0;

	for (size_t i = 0; jobs && i < jobs->elements; i++) {
		redisReply *job = say(client, "TW.GET %s %lld", queue,
				      jobs->element[i]->element[1]->integer);

		if (job && job->elements == 12)
			count += !strcmp(job->element[11]->str, body);
		if (job)
			freeReplyObject(job);
	}
	if (list)
		freeReplyObject(list);
	return count;
}

#define EXPECT_JOBS(count, queue, body)					\
	EXPECT_EQ(count, count_bodies(self->client, queue, body)) {	\
		TH_LOG("jobs \"%s\" of %s", body, queue);		\
	}

static redisContext *connect_password(int port)
{
	redisContext *client = redisConnect("127.0.0.1", port);
	redisReply *reply = client->err ? NULL : say(client, "AUTH secret");

	if (!reply || strcmp(reply->str, "OK"))
		abort();
	freeReplyObject(reply);
	return client;
}

/* hiredis says that the connection has ended, and does nothing by itself. */
TEST_F_TIMEOUT(clients, hiredis_is_cut, 60)
{
	redisContext *client = connect_password(PROXY);

	SAYS("ended", client, "TW.PUT unkeyed cut-a");
	EXPECT_EQ(REDIS_ERR_EOF, client->err);
	SAYS("ended", client, "TW.PUT unkeyed more");
	ASSERT_EQ(REDIS_OK, redisReconnect(client));
	SAYS("OK", client, "AUTH secret");
	SAYS("ended", client, "TW.PUT keyed cut-b KEY b");
	ASSERT_EQ(REDIS_OK, redisReconnect(client));
	SAYS("OK", client, "AUTH secret");
	SAYS("[2]", client, "TW.PUT keyed cut-b KEY b");
	redisFree(client);
	EXPECT_JOBS(1, "unkeyed", "cut-a");
	EXPECT_JOBS(0, "unkeyed", "more");
	EXPECT_JOBS(1, "keyed", "cut-b");
}

/* redis-cli sends nothing twice, neither a command of the shell nor a typed command. */
TEST_F_TIMEOUT(clients, redis_cli_is_cut, 60)
{
	EXPECT_NE(0, run(self, REDIS_CLI " 7098 TW.PUT set cut-a"));
	EXPECT_EQ(0, run(self, "echo TW.PUT unkeyed cut-b | " REDIS_CLI " 7098"));
	EXPECT_EQ(0, run(self, "echo TW.PUT keyed kill-c KEY c | " REDIS_CLI " 7098"));
	EXPECT_JOBS(1, "set", "cut-a");
	EXPECT_JOBS(1, "unkeyed", "cut-b");
	EXPECT_JOBS(1, "keyed", "kill-c");
}

TEST_F_TIMEOUT(clients, phpredis, 120)
{
	EXPECT_EQ(0, run(self, PHP " phpredis.php " PORTS));
	EXPECT_EQ(100, figure(self->client, "pipe", "jobs"));
	EXPECT_JOBS(1, "unkeyed", "cut-a");
	EXPECT_JOBS(1, "unkeyed", "cut-b");
	EXPECT_JOBS(1, "keyed", "kill-c");
	EXPECT_JOBS(1, "set", "cut-d");
	EXPECT_JOBS(1, "set", "kill-e");
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_F_TIMEOUT(clients, ioredis, 120)
{
	unpack_node();
	EXPECT_EQ(0, run(self, "/usr/bin/node ioredis.js " PORTS));
	EXPECT_EQ(100, figure(self->client, "pipe", "jobs"));
	EXPECT_JOBS(2, "unkeyed", "cut-a");
	EXPECT_JOBS(1, "keyed", "cut-b");
	EXPECT_JOBS(1, "keyed", "kill-c");
	EXPECT_JOBS(1, "set", "cut-d");
	EXPECT_JOBS(1, "set", "second");
	EXPECT_JOBS(1, "unended", "cut-e");
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_F_TIMEOUT(clients, node_redis, 120)
{
	unpack_node();
	EXPECT_EQ(0, run(self, "/usr/bin/node node-redis.js " PORTS));
	EXPECT_EQ(100, figure(self->client, "pipe", "jobs"));
	EXPECT_JOBS(1, "unkeyed", "cut-a");
	EXPECT_JOBS(1, "keyed", "cut-b");
	EXPECT_JOBS(1, "keyed", "kill-c");
	EXPECT_JOBS(1, "set", "cut-d");
	EXPECT_JOBS(1, "set", "cut-e");
	EXPECT_JOBS(0, "set", "unsent");
	EXPECT_EQ(0, figure(self->client, NULL, "mended"));
}

TEST_HARNESS_MAIN
