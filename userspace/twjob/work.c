// SPDX-License-Identifier: GPL-2.0-only
/*
 * work: runs a command for each job that is due, several at a time. Each worker has a
 * connection of its own, by which it waits for a job, extends the job's lease while the
 * command runs, and answers.
 *
 * A connection that ends is made again. The receipt of a job is good by any
 * connection, so a command that ran meanwhile goes on, and its job with it as long as
 * the lease lasts.
 */
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "twjob.h"

#define MOST_WORKERS	1000
/* The time between attempts to connect. */
#define RETRY		(NSEC_PER_SEC / 2)
/* The time from SIGTERM to SIGKILL for a command that was told to end. */
#define GRACE		(5 * NSEC_PER_SEC)
/* The seconds that a daemon that works may take to answer, when workers connect and end. */
#define PATIENCE	10

enum {
	QUEUE, ID, RECEIPT, ATTEMPT, DUE, KEY, BODY, NR_FIELDS
};

/* What becomes of a job: done, can never be done, failed, or not tried by anybody. */
enum outcome {
	DONE, HOPELESS, FAILED, UNTRIED
};

/*
 * @server: NULL when there is no connection. @extending, @asking (what is left of the lease),
 * @questions, @answering: the answers that twjobd owes, in this order; if all are 0, it owes
 * the answer to a take. @leaving: the connection takes no further job, and ends. @taken: the
 * answer with the job, NULL if there is none. @pid: 0 when no command runs. @outcome and @how,
 * its reason, are known when the command has ended. @backoff: the job or its queue has a
 * BACKOFF. @again: the outcome has been told by a connection that ended before the answer.
 * @next: when to connect, to extend the lease, or to tell the outcome. @end: when the command
 * has to end, or when to give up. @ended: the command was told to end. @lost: another worker
 * has the job.
 */
struct worker {
	redisContext	*server;
	bool		extending, asking;
	unsigned int	questions;
	bool		answering;
	bool		leaving;
	redisReply	*taken;
	pid_t		pid;
	enum outcome	outcome;
	char		how[64];
	bool		backoff;
	bool		again;
	uint64_t	next;
	uint64_t	end;
	bool		ended;
	bool		lost;
};

struct pool {
	char			**queues;
	int			nr_queues;
	char			**command;
	struct worker		*workers;
	struct pollfd		*fds;
	int			jobs;		/* workers */
	uint64_t		timeout;
	bool			ending;
	bool			unconnected;	/* the loss of the connection has been told */
	bool			refused;	/* the refusal has been told */
	unsigned long long	commands, failed, lost;
	enum status		status;
};

static const redisReply *job_field(const struct worker *worker, int which)
{
	return worker->taken->element[0]->element[which];
}

__printf(2, 3)
static void say_job(const struct worker *worker, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("queue '%s' id %lld: %s", job_field(worker, QUEUE)->str,
		 job_field(worker, ID)->integer, text);
}

static void forget_job(struct worker *worker)
{
	if (worker->taken)
		freeReplyObject(worker->taken);
	worker->taken = NULL;
	worker->end = NEVER;
}

static void lose_job(struct pool *pool, struct worker *worker, const char *why)
{
	if (!worker->lost)
		say_job(worker, "%s: it may be worked on again", why);
	pool->lost += !worker->lost;
	worker->lost = true;
}

/* Ends a connection that has ended, or is of no use. */
static void disconnect(struct worker *worker)
{
	redisFree(worker->server);
	worker->server = NULL;
	worker->again |= worker->answering;
	worker->answering = false;
	worker->leaving = false;
	worker->extending = false;
	worker->asking = false;
	worker->questions = 0;
	worker->next = end_after(RETRY);
}

static void end_pool(struct pool *pool, enum status status)
{
	pool->ending = true;
	if (!pool->status)
		pool->status = status;
}

/* Deals with an error of twjobd that is not about a job. */
static void fail(struct pool *pool, struct worker *worker,
		 const redisReply *reply, const char *queue)
{
	enum status status = STATUS_FAILED;

	if (!pool->refused)
		refused(reply, queue, &status);
	pool->refused = true;
	/* Another try would not help with these errors. */
	if (!strncmp(reply->str, "NOQUEUE", 7) || !strncmp(reply->str, "NOAUTH", 6) ||
	    !strncmp(reply->str, "NOPERM", 6) || !strncmp(reply->str, "ERR", 3))
		end_pool(pool, status);
	disconnect(worker);
}

static void flush(struct worker *worker)
{
	int done = 0;

	while (!done) {
		if (redisBufferWrite(worker->server, &done) != REDIS_OK) {
			disconnect(worker);
			return;
		}
	}
}

static void append_take(struct pool *pool, struct worker *worker)
{
	struct request request;
	int i;

	request_begin(&request, "TW.TAKE", NULL);
	for (i = 0; i < pool->nr_queues; i++)
		request_add(&request, "%s", pool->queues[i]);
	request_add(&request, "BLOCK");
	request_add(&request, "0");
	server_append(worker->server, &request);
	worker->next = NEVER;
	flush(worker);
}

/*
 * A half-closed connection ends a take that waits, and then the connection. If a job comes
 * before, it is read and given back.
 */
static void leave(struct worker *worker)
{
	shutdown(worker->server->fd, SHUT_WR);
	worker->leaving = true;
}

/* The other workers do not try to connect now either, as it would fail for them, too. */
static void not_connected(struct pool *pool)
{
	int i;

	if (!pool->unconnected) {
		server_trouble();
		complain("trying again until there is a connection");
	}
	pool->unconnected = true;
	for (i = 0; i < pool->jobs; i++) {
		if (!pool->workers[i].server)
			pool->workers[i].next = end_after(RETRY);
	}
}

static bool append_get(struct worker *worker)
{
	struct request request;

	request_begin(&request, "TW.GET", job_field(worker, QUEUE)->str);
	request_add(&request, "%lld", job_field(worker, ID)->integer);
	return server_append(worker->server, &request);
}

static void begin_answer(struct request *request, const struct worker *worker,
			 const char *verb)
{
	request_begin(request, verb, job_field(worker, QUEUE)->str);
	request_add(request, "%s", job_field(worker, RECEIPT)->str);
}

/*
 * Asks what is left of the lease, which can be the job's own. @extend: the lease begins again
 * first.
 */
static void ask_lease(struct worker *worker, bool extend)
{
	struct request request;

	if (extend) {
		begin_answer(&request, worker, "TW.EXTEND");
		worker->extending = server_append(worker->server, &request);
	}
	worker->asking = append_get(worker);
	worker->next = NEVER;
	flush(worker);
}

/* Writes the body to a file, so that the command may leave it unread. */
static int body_file(const redisReply *body)
{
	int fd = memfd_create("body", MFD_CLOEXEC);
	size_t done = 0;

	while (fd >= 0 && done < body->len) {
		ssize_t length = write(fd, body->str + done, body->len - done);

		if (length < 0) {
			close(fd);
			return -1;
		}
		done += length;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static void set_number(const char *name, long long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", number);
	setenv(name, text, 1);
}

static __noreturn void run_command(const struct pool *pool,
				   const struct worker *worker, int body)
{
	const redisReply *key = job_field(worker, KEY);

	setenv("TWJOB_QUEUE", job_field(worker, QUEUE)->str, 1);
	set_number("TWJOB_ID", job_field(worker, ID)->integer);
	set_number("TWJOB_ATTEMPT", job_field(worker, ATTEMPT)->integer);
	set_number("TWJOB_DUE", job_field(worker, DUE)->integer);
	setenv("TWJOB_KEY", key->str ? key->str : "", 1);
	command_exec(body, pool->command);
}

static void send_answer(struct worker *worker, struct request *request)
{
	worker->answering = server_append(worker->server, request);
	worker->next = NEVER;
	flush(worker);
}

/* Tells a failure. Without a BACKOFF the job would come again at once, and gets a delay. */
static void tell_failure(struct worker *worker)
{
	unsigned int attempt = job_field(worker, ATTEMPT)->integer;
	const struct when when = { .kind = WHEN_SPAN, .ns = back_off(attempt) };
	char then[TIME_TEXT + 8] = "after its backoff";
	struct request request;

	if (!worker->backoff) {
		strcpy(then, "in ");
		span_text(then + 3, TIME_TEXT, when.ns);
	}
	if (!worker->again)
		say_job(worker, "%s, try %u, again %s", worker->how, attempt, then);
	begin_answer(&request, worker, "TW.NACK");
	if (!worker->backoff)
		request_add_when(&request, &when);
	request_add(&request, "REASON");
	request_add(&request, "%s", worker->how);
	send_answer(worker, &request);
}

/* Asks whether the job or its queue has a BACKOFF, which either may have got by now. */
static void ask_backoff(struct worker *worker)
{
	struct request request;

	worker->backoff = false;
	request_begin(&request, "TW.STATS", job_field(worker, QUEUE)->str);
	worker->questions += server_append(worker->server, &request);
	worker->questions += append_get(worker);
	worker->next = NEVER;
	flush(worker);
}

/* Tells what has become of the job. */
static void settle(struct worker *worker)
{
	struct request request;

	if (worker->outcome == FAILED) {
		ask_backoff(worker);
		return;
	}
	begin_answer(&request, worker, worker->outcome == DONE ? "TW.ACK" :
		     worker->outcome == HOPELESS ? "TW.BURY" : "TW.NACK");
	if (worker->outcome == HOPELESS) {
		request_add(&request, "REASON");
		request_add(&request, "%s", worker->how);
	} else if (worker->outcome == UNTRIED) {
		request_add(&request, "UNTRIED");
	}
	send_answer(worker, &request);
}

static void connect_worker(struct pool *pool, struct worker *worker)
{
	worker->server = server_connect(PATIENCE);
	if (!worker->server) {
		not_connected(pool);
		return;
	}
	if (pool->unconnected)
		complain("connected");
	pool->unconnected = false;
	if (worker->pid)
		ask_lease(worker, true);
	else if (worker->taken)
		settle(worker);
	else
		append_take(pool, worker);
}

/* A machine that cannot start a process now should not be loaded further, and the tool ends. */
static void cannot_start(struct pool *pool, struct worker *worker)
{
	complain("cannot start a process: %s; ending", strerror(errno));
	end_pool(pool, STATUS_FAILED);
	worker->outcome = UNTRIED;
	settle(worker);
}

static void start(struct pool *pool, struct worker *worker)
{
	int body = body_file(job_field(worker, BODY));
	pid_t pid = body < 0 ? -1 : fork();

	if (!pid)
		run_command(pool, worker, body);
	if (body >= 0)
		close(body);
	worker->lost = false;
	worker->ended = false;
	worker->again = false;
	pool->refused = false;
	if (pid < 0) {
		cannot_start(pool, worker);
		return;
	}
	worker->pid = pid;
	worker->end = end_after(pool->timeout);
	pool->commands++;
	ask_lease(worker, false);
}

/* Whether an answer that is an error tells that another try is of no use. */
static bool is_final(const redisReply *reply)
{
	return !strncmp(reply->str, "STALE", 5) || !strncmp(reply->str, "NOQUEUE", 7) ||
	       !strncmp(reply->str, "ERR", 3);
}

static void take_extension(struct pool *pool, struct worker *worker,
			   const redisReply *reply)
{
	worker->extending = false;
	if (worker->pid && reply->type == REDIS_REPLY_ERROR && is_final(reply))
		lose_job(pool, worker, reply->str);
}

/* The lease is extended after a third of it: an extension may be late by two thirds. */
static void take_lease(struct pool *pool, struct worker *worker, const redisReply *reply)
{
	uint64_t third = number_field(reply, "lease_left_ms") * NSEC_PER_MSEC / 3;

	worker->asking = false;
	if (!worker->pid)
		return;
	if (reply->type != REDIS_REPLY_ERROR)
		worker->next = end_after(third < NSEC_PER_MSEC ? NSEC_PER_MSEC : third);
	else if (!strncmp(reply->str, "NOPERM", 6))
		fail(pool, worker, reply, NULL);
	else
		worker->next = end_after(RETRY);
}

/* An answer that is an error tells nothing about a BACKOFF. */
static void take_settings(struct worker *worker,
			  const redisReply *reply)
{
	worker->backoff |= number_field(reply, "backoff_ms") != 0;
	if (!--worker->questions)
		tell_failure(worker);
}

static void take_answer(struct pool *pool, struct worker *worker,
			const redisReply *reply)
{
	enum status status;

	worker->answering = false;
	if (reply->type == REDIS_REPLY_ERROR && !is_final(reply)) {
		if (!pool->refused)
			refused(reply, job_field(worker, QUEUE)->str, &status);
		pool->refused = true;
		worker->again = true;
		worker->next = end_after(RETRY);
		return;
	}
	if (reply->type == REDIS_REPLY_ERROR && worker->again)
		say_job(worker,
			"the connection ended before the answer: it was taken, or may be worked on again");
	else if (reply->type == REDIS_REPLY_ERROR)
		lose_job(pool, worker, reply->str);
	else if (reply->str && !strcmp(reply->str, "BURIED"))
		say_job(worker, "buried, as that was its last try: see 'twjob kick'");
	forget_job(worker);
	if (!pool->ending)
		append_take(pool, worker);
}

static bool is_job(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
	       reply->element[0]->elements == NR_FIELDS;
}

/* A job that comes on a connection that is leaving is given back. */
static void take_job(struct pool *pool, struct worker *worker, redisReply *reply)
{
	worker->taken = reply;
	if (!worker->leaving) {
		start(pool, worker);
		return;
	}
	worker->outcome = UNTRIED;
	worker->again = false;
	worker->lost = false;
	disconnect(worker);
	worker->next = end_after(0);
}

/* Deals with the next answer, and frees or keeps it. */
static void hear(struct pool *pool, struct worker *worker, redisReply *reply)
{
	if (worker->extending)
		take_extension(pool, worker, reply);
	else if (worker->asking)
		take_lease(pool, worker, reply);
	else if (worker->questions)
		take_settings(worker, reply);
	else if (worker->answering)
		take_answer(pool, worker, reply);
	else if (reply->type == REDIS_REPLY_ERROR)
		fail(pool, worker, reply, pool->nr_queues > 1 ? NULL : pool->queues[0]);
	else if (is_job(reply))
		take_job(pool, worker, reply);
	else
		append_take(pool, worker);
	if (reply != worker->taken)
		freeReplyObject(reply);
}

static void read_answers(struct pool *pool, struct worker *worker)
{
	redisReply *reply;

	if (redisBufferRead(worker->server) != REDIS_OK) {
		disconnect(worker);
		return;
	}
	while (worker->server) {
		if (redisGetReplyFromReader(worker->server, (void **)&reply)) {
			disconnect(worker);
			return;
		}
		if (!reply)
			return;
		hear(pool, worker, reply);
	}
}

/* Finds what the end of a command means for its job. */
static void judge(struct pool *pool, struct worker *worker, int status)
{
	char how[48];

	worker->outcome = DONE;
	if (!status && !worker->ended)
		return;
	pool->failed++;
	command_end_text(how, sizeof(how), status);
	snprintf(worker->how, sizeof(worker->how), "%s%s", how,
		 worker->ended ? " after --timeout" : "");
	worker->outcome = FAILED;
	if (worker->ended || !WIFEXITED(status) || WEXITSTATUS(status) != EX_DATAERR)
		return;
	worker->outcome = HOPELESS;
	say_job(worker, "%s, try %lld, buried: see 'twjob kick'", worker->how,
		job_field(worker, ATTEMPT)->integer);
}

static void finished(struct pool *pool, struct worker *worker, int status)
{
	worker->pid = 0;
	worker->end = NEVER;
	if (worker->lost) {
		forget_job(worker);
		if (worker->server)
			disconnect(worker);
		return;
	}
	judge(pool, worker, status);
	if (worker->server)
		settle(worker);
}

/* The process group of a command that was told to end is killed with what is left in it. */
static void reap(struct pool *pool)
{
	siginfo_t info = { };
	int i, status;

	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) &&
	       info.si_pid) {
		for (i = 0; i < pool->jobs; i++) {
			if (pool->workers[i].pid == info.si_pid)
				break;
		}
		if (i < pool->jobs && pool->workers[i].ended)
			kill(-info.si_pid, SIGKILL);
		waitpid(info.si_pid, &status, 0);
		if (i < pool->jobs)
			finished(pool, &pool->workers[i], status);
		info.si_pid = 0;
	}
}

static void end_command(struct worker *worker)
{
	kill(-worker->pid, worker->ended ? SIGKILL : SIGTERM);
	worker->end = worker->ended ? NEVER : end_after(GRACE);
	worker->ended = true;
}

/* Gives up the job: the program is to end, and twjobd does not answer. */
static void give_up(struct pool *pool, struct worker *worker)
{
	if (worker->taken)
		lose_job(pool, worker, "there is no answer");
	forget_job(worker);
	if (worker->server)
		disconnect(worker);
}

/* Does what is due for a worker. */
static void tick(struct pool *pool, struct worker *worker)
{
	uint64_t now = end_after(0);

	if (worker->end <= now && worker->pid)
		end_command(worker);
	else if (worker->end <= now)
		give_up(pool, worker);
	if (worker->pid && worker->lost)
		worker->next = NEVER;
	if (worker->next > now)
		return;
	if (!worker->server)
		connect_worker(pool, worker);
	else if (worker->pid)
		ask_lease(worker, true);
	else if (worker->taken)
		settle(worker);
}

/* Whether the worker has something to end before the program can end. */
static bool is_busy(struct worker *worker)
{
	if (!worker->taken && worker->server && !worker->leaving)
		leave(worker);
	if (!worker->taken && !worker->server) {
		worker->next = NEVER;
		return false;
	}
	if (!worker->pid && worker->end == NEVER)
		worker->end = end_after(PATIENCE * NSEC_PER_SEC);
	return true;
}

/* Waits for answers, the ends of commands and what is due. */
static void wait_for_all(struct pool *pool)
{
	uint64_t next = NEVER;
	int i;

	for (i = 0; i < pool->jobs; i++) {
		struct worker *worker = &pool->workers[i];

		pool->fds[i].fd = worker->server ? worker->server->fd : -1;
		pool->fds[i].events = POLLIN;
		pool->fds[i].revents = 0;
		if (worker->next < next)
			next = worker->next;
		if (worker->end < next)
			next = worker->end;
	}
	if (wait_for(pool->fds, pool->jobs, next) <= 0)
		return;
	for (i = 0; i < pool->jobs; i++) {
		if (pool->fds[i].revents)
			read_answers(pool, &pool->workers[i]);
	}
}

/* Runs until it is told to end and no command runs. */
static void run(struct pool *pool)
{
	for (;;) {
		bool busy = false;
		int i;

		reap(pool);
		for (i = 0; i < pool->jobs; i++)
			tick(pool, &pool->workers[i]);
		pool->ending |= stop_signal != 0;
		for (i = 0; pool->ending && i < pool->jobs; i++)
			busy |= is_busy(&pool->workers[i]);
		if (pool->ending && !busy)
			return;
		wait_for_all(pool);
	}
}

enum status verb_work(const struct args *args)
{
	int command = args->count - args->behind;
	struct pool pool = {
		.queues = args->arg,
		.nr_queues = command,
		.command = args->arg + command,
		.jobs = option_number(args, OPT_JOBS, 1, MOST_WORKERS, 1),
		.timeout = option_span(args, OPT_TIMEOUT, NEVER),
	};
	int i;

	if (!command || !args->behind == !args->option[OPT_URL])
		die(STATUS_USAGE,
		    "usage: twjob work [OPTION]... QUEUE... -- CMD..., or --url URL QUEUE...");
	if (args->option[OPT_URL])
		program_run("twjob-http", "timewheel-http", args);
	if (args->option[OPT_SECRET_FILE])
		die(STATUS_USAGE, "--secret-file needs --url, which tells where to post");
	if (!pool.timeout)
		die_usage("--timeout", args->option[OPT_TIMEOUT], "longer than 0");
	command_check(pool.command[0]);
	pool.workers = calloc(pool.jobs, sizeof(*pool.workers));
	pool.fds = calloc(pool.jobs, sizeof(*pool.fds));
	if (!pool.workers || !pool.fds)
		die(STATUS_FAILED, "no memory for workers");
	for (i = 0; i < pool.jobs; i++)
		pool.workers[i].end = NEVER;
	server_settings(args);
	signals_begin();
	run(&pool);
	if (pool.commands)
		complain("%llu commands, %llu failed, %llu lost", pool.commands,
			 pool.failed, pool.lost);
	free(pool.workers);
	free(pool.fds);
	return pool.status;
}
