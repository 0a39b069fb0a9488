// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unchanged clients of Redis with twjobd: every verb of ../clients/verbs.txt, their
 * pools, pipelines and takes that wait, and connections that end after the daemon has
 * committed and before its answer comes. With the settings of twjob-protocol(7) no
 * job is put twice then.
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

/* A line of verbs.txt has these words. */
struct line {
	int count;
	char *words[16];
	char *wanted;
	char text[256];
};

/* Commands refer to these values as $id and $receipt. */
struct known {
	char id[24], receipt[128];
};

static bool read_line(FILE *file, struct known *known, struct line *line)
{
	char *at;

	line->count = 0;
	if (!fgets(line->text, sizeof(line->text), file))
		return false;
	line->text[strcspn(line->text, "\n")] = '\0';
	line->wanted = strstr(line->text, " => ");
	*line->wanted = '\0';
	line->wanted += 4;
	for (at = strtok(line->text, " "); at; at = strtok(NULL, " ")) {
		if (!strcmp(at, "$id"))
			at = known->id;
		else if (!strcmp(at, "$receipt"))
			at = known->receipt;
		line->words[line->count++] = at;
	}
	return true;
}

static bool is_answer(const char *answer, const char *wanted)
{
	if (!strcmp(wanted, "#"))
		return *answer && strspn(answer, "0123456789") == strlen(answer);
	if (!strcmp(wanted, "[]"))
		return answer[0] == '[';
	if (!strcmp(wanted, "..."))
		return strlen(answer) > 100;
	return !strcmp(answer, wanted);
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

TEST_F_TIMEOUT(clients, hiredis_every_verb, 60)
{
	redisContext *client = connect_password(PORT);
	FILE *file = fopen("verbs.txt", "r");
	struct known known = { };
	struct line line;

	ASSERT_NE(NULL, file);
	while (read_line(file, &known, &line)) {
		redisReply *reply = redisCommandArgv(client, line.count,
						     (const char **)line.words, NULL);

		EXPECT_TRUE(is_answer(as_text(reply), line.wanted)) {
			TH_LOG("%s: %s, not %s", line.words[0], as_text(reply),
			       line.wanted);
		}
		if (!strcmp(line.words[0], "TW.PUT") && line.wanted[0] == '#')
			snprintf(known.id, sizeof(known.id), "%lld", reply->integer);
		if (!strcmp(line.words[0], "TW.TAKE") && reply->elements == 1)
			snprintf(known.receipt, sizeof(known.receipt), "%s",
				 reply->element[0]->element[2]->str);
		freeReplyObject(reply);
	}
	fclose(file);
	redisFree(client);
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

/* redis-cli is run with pipes. Its answers are lines of values with commas between them. */
struct cli {
	FILE *to, *from;
	pid_t pid;
	char line[65536];
};

static void start_cli(struct cli *cli, int port)
{
	char command[128];
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		abort();
	snprintf(command, sizeof(command), "exec " REDIS_CLI " %d", port);
	cli->pid = fork();
	if (!cli->pid) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	cli->to = fdopen(to[1], "w");
	cli->from = fdopen(from[0], "r");
}

static void end_cli(struct cli *cli)
{
	fclose(cli->to);
	fclose(cli->from);
	waitpid(cli->pid, NULL, 0);
}

static const char *ask_cli(struct cli *cli, const struct line *line)
{
	for (int i = 0; i < line->count; i++)
		fprintf(cli->to, "%s ", line->words[i]);
	fprintf(cli->to, "\n");
	fflush(cli->to);
	if (!fgets(cli->line, sizeof(cli->line), cli->from))
		return "ended";
	cli->line[strcspn(cli->line, "\n")] = '\0';
	return cli->line;
}

/* Tells whether a line is what verbs.txt wants, as far as redis-cli shows it. */
static bool is_line(const char *text, const char *wanted)
{
	if (wanted[0] == '[')
		return !strncmp(text, "\"", 1) || (*text && strchr(text, ','));
	if (!strcmp(wanted, "nil"))
		return !strcmp(text, "NULL") || !strcmp(text, "NIL");
	if (!strncmp(text, "ERROR,\"", 7))
		return !strncmp(text + 7, wanted, strlen(wanted));
	if (text[0] == '"' && wanted[0] != '.')
		return !strncmp(text + 1, wanted, strlen(wanted));
	return is_answer(text, wanted);
}

TEST_F_TIMEOUT(clients, redis_cli_every_verb, 60)
{
	FILE *file = fopen("verbs.txt", "r");
	struct known known = { };
	struct line line;
	struct cli cli;

	ASSERT_NE(NULL, file);
	start_cli(&cli, PORT);
	while (read_line(file, &known, &line)) {
		const char *answer = ask_cli(&cli, &line);

		EXPECT_TRUE(is_line(answer, line.wanted)) {
			TH_LOG("%s: %s, not %s", line.words[0], answer, line.wanted);
		}
		if (!strcmp(line.words[0], "TW.PUT") && line.wanted[0] == '#')
			snprintf(known.id, sizeof(known.id), "%.20s", answer);
		if (!strcmp(line.words[0], "TW.TAKE") && line.wanted[0] == '[')
			sscanf(answer, "\"v\",%*d,\"%127[^\"]", known.receipt);
	}
	fclose(file);
	end_cli(&cli);
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
