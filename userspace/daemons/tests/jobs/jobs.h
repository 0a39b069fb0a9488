/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * This file has what the tests of twjobd share: a daemon of their own, and what clients say to
 * it, by hiredis. Each test has a store of its own. The wheels are destroyed with their queues.
 */
#ifndef JOBS_H
#define JOBS_H

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <timewheel.h>

#include "kselftest_harness.h"

#define DIR		"/tmp/twjobd-test"
#define SOCKET		DIR "/socket"
#define STORE		DIR "/jobs"
#define PREFIX		"tj-"
#define PORT		7099
#define PATIENCE	30000	/* ms, for a slow machine */

/* The daemon keeps the wheels itself, and no other process sees them. */
static inline bool in_process(void)
{
	const char *kind = getenv("TIMEWHEEL");

	return kind && !strcmp(kind, "process");
}

static inline bool has_wheels(void)
{
	return in_process() || !access("/dev/timewheel", F_OK);
}

/*
 * A test begins with this macro if it cannot run with wheels of the daemon's process. @why says
 * what is missing.
 */
#define NEEDS_KERNEL(why) do {						\
	if (in_process())						\
		SKIP(return, "needs a kernel: " why);			\
} while (0)

static inline long long now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static inline void sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

/* Connects as soon as a daemon listens. Returns NULL if this takes too long. */
static inline redisContext *connect_daemon(void)
{
	long long until = now_ms(CLOCK_MONOTONIC) + PATIENCE;

	while (now_ms(CLOCK_MONOTONIC) < until) {
		redisContext *client = redisConnectUnix(SOCKET);

		if (client && !client->err) {
			const struct timeval patience = { PATIENCE / 1000, 0 };

			redisSetTimeout(client, patience);
			return client;
		}
		if (client)
			redisFree(client);
		sleep_ms(5);
	}
	return NULL;
}

static inline void write_config(const char *more)
{
	FILE *file = fopen(DIR "/config", "w");

	if (!file)
		abort();
	fprintf(file, "listen = %s\nlisten = 127.0.0.1:%d\nstore = %s\n"
		"wheel-prefix = %s\n%s%s", SOCKET, PORT, STORE, PREFIX, more,
		strstr(more, "password") ? "" : "password = none\n");
	fclose(file);
}

static inline pid_t start_daemon(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* The daemon must not outlive its test, however the test ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl("./twjobd", "twjobd", "--config", DIR "/config", NULL);
	_exit(127);
}

static inline redisContext *must_connect(void)
{
	redisContext *client = connect_daemon();

	if (!client)
		abort();
	return client;
}

static inline int end_daemon(pid_t pid, int signal)
{
	int status = -1;

	kill(pid, signal);
	waitpid(pid, &status, 0);
	return status;
}

/* Destroys the wheel of a test's queue. */
static inline void destroy_wheel(const char *queue)
{
	char name[TIMEWHEEL_NAME_SIZE];

	snprintf(name, sizeof(name), PREFIX "%s", queue);
	tw_wheel_destroy(name);
}

static inline void clean_up(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (system("rm -rf " DIR "; for wheel in /dev/timewheels/" PREFIX "*; do\n"
		   "[ ! -e $wheel ] || ./destroy ${wheel##*/}; done"))
		abort();
}

/* Sends a command, and returns the answer, or NULL if the connection ends. */
__attribute__((__format__(printf, 2, 3)))
static inline redisReply *say(redisContext *client, const char *format, ...)
{
	va_list args;
	redisReply *reply;

	va_start(args, format);
	reply = redisvCommand(client, format, args);
	va_end(args);
	return reply;
}

/* Starts a daemon with a store of its own, in which there is a queue "q". */
static inline pid_t start_fresh(const char *config, const char *settings)
{
	redisContext *client;
	redisReply *reply;
	char line[128];
	pid_t pid;

	clean_up();
	mkdir(DIR, 0700);
	write_config(config);
	pid = start_daemon();
	client = must_connect();
	snprintf(line, sizeof(line), "TW.CREATE q %s", settings);
	reply = redisCommand(client, line);
	if (!reply || reply->type != REDIS_REPLY_STATUS)
		abort();
	freeReplyObject(reply);
	redisFree(client);
	return pid;
}

/* Returns an answer as text: "1", "OK", "STALE", "nil", "[3]" for three elements. */
static inline const char *as_text(const redisReply *reply)
{
	static char text[256];

	if (!reply)
		return "ended";
	switch (reply->type) {
	case REDIS_REPLY_INTEGER:
		snprintf(text, sizeof(text), "%lld", reply->integer);
		break;
	case REDIS_REPLY_ARRAY:
		snprintf(text, sizeof(text), "[%zu]", reply->elements);
		break;
	case REDIS_REPLY_NIL:
		return "nil";
	case REDIS_REPLY_ERROR:
		snprintf(text, sizeof(text), "%.*s",
			 (int)strcspn(reply->str, " "), reply->str);
		break;
	default:
		snprintf(text, sizeof(text), "%s", reply->str);
	}
	return text;
}

/* Expects this text as the answer to a command, see as_text(). */
#define SAYS(text, client, ...) do {					\
	redisReply *says_ = say(client, __VA_ARGS__);			\
									\
	EXPECT_STREQ(text, as_text(says_)) {				\
		TH_LOG("%s", says_ && says_->str ? says_->str : "");	\
	}								\
	if (says_)							\
		freeReplyObject(says_);					\
} while (0)

static inline long long number_of(redisReply *reply)
{
	long long number = reply && reply->type == REDIS_REPLY_INTEGER ?
			   reply->integer : -1;

	if (reply)
		freeReplyObject(reply);
	return number;
}

/* Returns a figure of TW.STATS, or -1 if there is no such figure. */
static inline long long figure(redisContext *client, const char *queue,
			       const char *name)
{
	redisReply *reply = queue ? say(client, "TW.STATS %s", queue) :
				    say(client, "TW.STATS");
	long long value = -1;

	for (size_t i = 0; reply && i + 1 < reply->elements; i += 2)
		if (!strcmp(reply->element[i]->str, name))
			value = reply->element[i + 1]->integer;
	if (reply)
		freeReplyObject(reply);
	return value;
}

/* These are the fields of a job that TW.TAKE gives. */
struct taken {
	char queue[64], receipt[128], key[64], body[128];
	long long id, attempt, due;
};

static inline void read_taken(const redisReply *job, struct taken *taken)
{
	redisReply **field = job->element;

	snprintf(taken->queue, sizeof(taken->queue), "%s", field[0]->str);
	taken->id = field[1]->integer;
	snprintf(taken->receipt, sizeof(taken->receipt), "%s", field[2]->str);
	taken->attempt = field[3]->integer;
	taken->due = field[4]->integer;
	snprintf(taken->key, sizeof(taken->key), "%s",
		 field[5]->str ? field[5]->str : "");
	snprintf(taken->body, sizeof(taken->body), "%s", field[6]->str);
}

/* Takes one job. Returns false if there was no job. */
__attribute__((__format__(printf, 3, 4)))
static inline bool take(redisContext *client, struct taken *taken,
			const char *format, ...)
{
	redisReply *reply;
	va_list args;
	bool got;

	va_start(args, format);
	reply = redisvCommand(client, format, args);
	va_end(args);
	got = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
	      reply->element[0]->elements == 7;
	*taken = (struct taken) { };
	if (got)
		read_taken(reply->element[0], taken);
	if (reply)
		freeReplyObject(reply);
	return got;
}

/* Sends the commands that have been appended. */
static inline void send_all(redisContext *client)
{
	int done = 0;

	while (!done)
		if (redisBufferWrite(client, &done) != REDIS_OK)
			abort();
}

/* Puts jobs with the bodies 0, 1, .... Returns the first job's id. */
static inline long long put_many(redisContext *client, int count,
				 const char *options)
{
	long long first = -1;
	char line[128];

	snprintf(line, sizeof(line), "TW.PUT q %%d %s", options);
	for (int i = 0; i < count; i++)
		redisAppendCommand(client, line, i, i);
	for (int i = 0; i < count; i++) {
		redisReply *reply;
		long long id;

		if (redisGetReply(client, (void **)&reply) != REDIS_OK)
			return -1;
		if (reply->type == REDIS_REPLY_ARRAY)
			id = reply->element[0]->integer;
		else
			id = reply->type == REDIS_REPLY_INTEGER ?
			     reply->integer : -1;
		freeReplyObject(reply);
		if (id < 0)
			return -1;
		first = i ? first : id;
	}
	return first;
}

/* Waits until a figure of a queue, or of all queues, has this value. */
static inline bool comes_to(redisContext *client, const char *queue,
			    const char *name, long long value)
{
	for (int tries = 0; tries < PATIENCE / 50; tries++) {
		if (figure(client, queue, name) == value)
			return true;
		sleep_ms(50);
	}
	printf("# %s is %lld\n", name, figure(client, queue, name));
	return false;
}

#endif /* JOBS_H */
