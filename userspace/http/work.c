// SPDX-License-Identifier: GPL-2.0-only
/*
 * work --url: makes a post for each job that is due, several at a time. One connection to twjobd
 * takes jobs, and waits for them; a second connection asks about jobs, and tells what became of
 * them. A job is taken only when a post is free for it. This file does not know what a post
 * sends, and what its answer means.
 *
 * A connection that ends is made again. The receipt of a job is good by any connection. All
 * that a connection has asked or told without an answer is asked or told again by the next
 * one.
 */
#include <stdarg.h>
#include <sys/socket.h>

#include "http.h"

#define MOST_POSTS	1000
/* The time between attempts to connect, and to tell what twjobd could not take. */
#define RETRY		(NSEC_PER_SEC / 2)
/* The seconds that a daemon that works may take to answer, when connecting and when ending. */
#define PATIENCE	10
/* The most questions without an answer: all of them have to fit into the socket. */
#define MOST_ASKED	64

enum {
	QUEUE, ID, RECEIPT, ATTEMPT, DUE, KEY, BODY, NR_FIELDS
};

/*
 * The steps of a job: none; twjobd is asked about it before its post; its post runs; twjobd is
 * asked whether its queue has a BACKOFF; twjobd is told what became of it.
 */
enum step {
	FREE, LOOKS, POSTS, ASKS, TELLS
};

/*
 * @taken: the answer of TW.TAKE. @asked: twjobd owes an answer. @next: the earliest time to
 * ask. @backoff: the job or its queue has a BACKOFF. @again: the verdict has been told by a
 * connection that ended before the answer.
 */
struct job {
	enum step	step;
	redisReply	*taken;
	bool		asked;
	uint64_t	next;
	bool		backoff;
	bool		again;
	struct message	message;
	struct verdict	verdict;
	struct post	*post;
};

/* @server: NULL when there is no connection. @next: the time to connect. */
struct link {
	redisContext	*server;
	uint64_t	next;
};

/*
 * @taking: the first connection waits for jobs. @leaving: it takes no further jobs, and ends.
 * @asked: the jobs about which the second connection owes answers, from @first, in this order.
 * @end: the time when all else is given up.
 */
static struct pool {
	char			**queues;
	int			nr_queues;
	struct job		*jobs;
	int			nr_jobs;
	uint64_t		timeout;
	struct link		taker, teller;
	bool			taking, leaving;
	struct job		*asked[MOST_ASKED];
	unsigned int		first, nr_asked;
	bool			ending;
	uint64_t		end;
	bool			unconnected;	/* the loss of the connection has been told */
	bool			refused;	/* the refusal has been told */
	unsigned long long	posts, failed, lost;
	enum status		status;
} pool;

static const redisReply *job_field(const struct job *job, int which)
{
	return job->taken->element[which];
}

__printf(2, 3)
static void say_job(const struct job *job, const char *format, ...)
{
	char text[REASON_SIZE + 128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	complain("queue '%s' id %lld: %s", job_field(job, QUEUE)->str,
		 job_field(job, ID)->integer, text);
}

static void forget_job(struct job *job)
{
	freeReplyObject(job->taken);
	job->taken = NULL;
	job->step = FREE;
	job->asked = false;
}

static void lose_job(struct job *job, const char *why)
{
	say_job(job, "%s: it may be worked on again", why);
	pool.lost++;
	forget_job(job);
}

static void step_to(struct job *job, enum step step)
{
	job->step = step;
	job->asked = false;
	job->next = 0;
}

static void end_pool(enum status status)
{
	pool.ending = true;
	if (!pool.status)
		pool.status = status;
}

static void disconnect(struct link *link)
{
	redisFree(link->server);
	link->server = NULL;
	link->next = end_after(RETRY);
}

static void lose_taker(void)
{
	disconnect(&pool.taker);
	pool.taking = false;
}

/* Ends the connection. All that it was asked is asked again by the next one. */
static void lose_teller(void)
{
	int i;

	disconnect(&pool.teller);
	pool.nr_asked = 0;
	for (i = 0; i < pool.nr_jobs; i++) {
		pool.jobs[i].again |= pool.jobs[i].asked && pool.jobs[i].step == TELLS;
		pool.jobs[i].asked = false;
	}
}

static bool flush(struct link *link)
{
	int done = 0;

	while (!done) {
		if (redisBufferWrite(link->server, &done) != REDIS_OK)
			return false;
	}
	return true;
}

/* Deals with an error that is not about a job. After some errors another try would not help. */
static void fail(const redisReply *reply, const char *queue)
{
	enum status status = STATUS_FAILED;

	if (!pool.refused)
		refused(reply, queue, &status);
	pool.refused = true;
	if (!strncmp(reply->str, "NOQUEUE", 7) || !strncmp(reply->str, "NOAUTH", 6) ||
	    !strncmp(reply->str, "NOPERM", 6) || !strncmp(reply->str, "ERR", 3))
		end_pool(status);
}

static void connect_link(struct link *link)
{
	link->server = server_connect(PATIENCE);
	if (!link->server) {
		if (!pool.unconnected) {
			server_trouble();
			complain("trying again until there is a connection");
		}
		pool.taker.next = end_after(RETRY);
		pool.teller.next = pool.taker.next;
	} else if (pool.unconnected) {
		complain("connected");
	}
	pool.unconnected = !link->server;
}

static int count_free(void)
{
	int i, count = 0;

	for (i = 0; i < pool.nr_jobs; i++)
		count += pool.jobs[i].step == FREE;
	return count;
}

static void take(int count)
{
	struct request request;
	int i;

	request_begin(&request, "TW.TAKE", NULL);
	for (i = 0; i < pool.nr_queues; i++)
		request_add(&request, "%s", pool.queues[i]);
	request_add(&request, "COUNT");
	request_add(&request, "%d", count);
	request_add(&request, "BLOCK");
	request_add(&request, "0");
	pool.taking = server_append(pool.taker.server, &request);
	if (!flush(&pool.taker))
		lose_taker();
}

/* Keeps a job that was taken. A job that comes on a connection that is leaving is given back. */
static void keep_job(redisReply *taken)
{
	struct job *job = pool.jobs;

	while (job->step != FREE)
		job++;
	job->taken = taken;
	job->again = false;
	step_to(job, LOOKS);
	if (!pool.leaving)
		return;
	job->verdict.outcome = UNTRIED;
	step_to(job, TELLS);
}

static void hear_jobs(redisReply *reply)
{
	size_t i;

	pool.taking = false;
	if (reply->type == REDIS_REPLY_ERROR) {
		fail(reply, pool.nr_queues > 1 ? NULL : pool.queues[0]);
		lose_taker();
	}
	for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		keep_job(reply->element[i]);
		reply->element[i] = NULL;
	}
}

static void begin_answer(struct request *request, const struct job *job, const char *verb)
{
	request_begin(request, verb, job_field(job, QUEUE)->str);
	request_add(request, "%s", job_field(job, RECEIPT)->str);
}

/* Makes a nack. Without a BACKOFF the job would come again at once, and gets a delay. */
static void request_nack(struct request *request, struct job *job)
{
	const struct verdict *verdict = &job->verdict;
	struct when when = { .kind = WHEN_SPAN, .ns = verdict->span };
	char then[TIME_TEXT + 8] = "after its backoff";

	if (!when.ns && !job->backoff)
		when.ns = back_off(job->message.try);
	if (when.ns) {
		strcpy(then, "in ");
		span_text(then + 3, TIME_TEXT, when.ns);
	}
	if (!job->again)
		say_job(job, "%s, try %lld, again %s", verdict->reason, job->message.try, then);
	begin_answer(request, job, "TW.NACK");
	if (when.ns)
		request_add_when(request, &when);
	request_add(request, "REASON");
	request_add(request, "%s", verdict->reason);
}

static void request_answer(struct request *request, struct job *job)
{
	switch (job->verdict.outcome) {
	case DONE:
		begin_answer(request, job, "TW.ACK");
		break;
	case HOPELESS:
		if (!job->again)
			say_job(job, "%s, try %lld, buried: see 'twjob kick'",
				job->verdict.reason, job->message.try);
		begin_answer(request, job, "TW.BURY");
		request_add(request, "REASON");
		request_add(request, "%s", job->verdict.reason);
		break;
	case FAILED:
		request_nack(request, job);
		break;
	case UNTRIED:
		begin_answer(request, job, "TW.NACK");
		request_add(request, "UNTRIED");
	}
}

/* Sends the request of the job's step. */
static void ask_about(struct job *job)
{
	struct request request;

	if (job->step == LOOKS) {
		request_begin(&request, "TW.GET", job_field(job, QUEUE)->str);
		request_add(&request, "%lld", job_field(job, ID)->integer);
	} else if (job->step == ASKS) {
		request_begin(&request, "TW.STATS", job_field(job, QUEUE)->str);
	} else {
		request_answer(&request, job);
	}
	job->asked = server_append(pool.teller.server, &request);
	pool.asked[(pool.first + pool.nr_asked++) % MOST_ASKED] = job;
}

/* A rule's job keeps its number, but each of its occurrences is a message of its own. */
static void set_id(struct message *message, bool occurrence)
{
	const char *name = occurrence ? memrchr(message->key, '@', message->key_length) : NULL;

	snprintf(message->id, sizeof(message->id), "%s-%lld%s%s", message->queue, message->job,
		 name ? "-" : "", name ? name + 1 : "");
}

/* Starts the post. It gets two thirds of the lease: the rest is for telling its end. */
static void start_post(struct job *job, const redisReply *told)
{
	const redisReply *key = job_field(job, KEY);
	uint64_t ms = number_field(told, "lease_left_ms") * 2 / 3;

	if (pool.timeout / NSEC_PER_MSEC < ms)
		ms = pool.timeout / NSEC_PER_MSEC;
	job->backoff = number_field(told, "backoff_ms");
	job->message = (struct message) {
		.queue = job_field(job, QUEUE)->str,
		.job = job_field(job, ID)->integer,
		.try = job_field(job, ATTEMPT)->integer,
		.key = key->str,
		.key_length = key->len,
		.body = job_field(job, BODY)->str,
		.body_length = job_field(job, BODY)->len,
		.timeout = ms ? ms : 1,
	};
	set_id(&job->message, field(told, "rule"));
	if (!job->post)
		job->post = post_new(job);
	pool.refused = false;
	pool.posts++;
	step_to(job, POSTS);
	post_start(job->post, &job->message);
}

/* A job about which twjobd cannot tell anything now is not posted. */
static void hear_look(struct job *job, const redisReply *reply)
{
	bool known = reply->type != REDIS_REPLY_ERROR;

	if (!known)
		fail(reply, NULL);
	if (known && !field(reply, "lease_left_ms")) {
		lose_job(job, "it is held no more");
	} else if (known && !pool.ending) {
		start_post(job, reply);
	} else {
		job->verdict.outcome = UNTRIED;
		step_to(job, TELLS);
	}
}

/* Whether an answer that is an error tells that another try is of no use. */
static bool is_final(const redisReply *reply)
{
	return !strncmp(reply->str, "STALE", 5) || !strncmp(reply->str, "NOQUEUE", 7) ||
	       !strncmp(reply->str, "ERR", 3);
}

static void hear_answer(struct job *job, const redisReply *reply)
{
	enum status status;

	job->asked = false;
	if (reply->type == REDIS_REPLY_ERROR && !is_final(reply)) {
		if (!pool.refused)
			refused(reply, job_field(job, QUEUE)->str, &status);
		pool.refused = true;
		job->again = true;
		job->next = end_after(RETRY);
		return;
	}
	if (reply->type == REDIS_REPLY_ERROR && !job->again) {
		lose_job(job, reply->str);
		return;
	}
	if (reply->type == REDIS_REPLY_ERROR)
		say_job(job,
			"the connection ended before the answer: it was taken, or may be worked on again");
	else if (reply->str && !strcmp(reply->str, "BURIED"))
		say_job(job, "buried, as that was its last try: see 'twjob kick'");
	forget_job(job);
}

static void hear_about(const redisReply *reply)
{
	struct job *job;

	if (!pool.nr_asked) {
		fail(reply, NULL);
		lose_teller();
		return;
	}
	job = pool.asked[pool.first];
	pool.first = (pool.first + 1) % MOST_ASKED;
	pool.nr_asked--;
	if (job->step == LOOKS) {
		hear_look(job, reply);
	} else if (job->step == ASKS) {
		job->backoff = number_field(reply, "backoff_ms");
		step_to(job, TELLS);
	} else {
		hear_answer(job, reply);
	}
}

/* Reads all answers that have come. */
static void read_link(struct link *link, void (*lost)(void))
{
	redisReply *reply;

	if (redisBufferRead(link->server) != REDIS_OK) {
		lost();
		return;
	}
	while (link->server) {
		if (redisGetReplyFromReader(link->server, (void **)&reply)) {
			lost();
			return;
		}
		if (!reply)
			return;
		if (link == &pool.taker)
			hear_jobs(reply);
		else
			hear_about(reply);
		freeReplyObject(reply);
	}
}

static void ended(void *of, const struct answer *answer)
{
	struct job *job = of;

	answer_judge(answer, &job->verdict);
	pool.failed += job->verdict.outcome != DONE;
	step_to(job, job->verdict.outcome == FAILED && !job->verdict.span && !job->backoff ?
		ASKS : TELLS);
}

/* Sends all requests that are due. Returns when the next one is due. */
static uint64_t tell(void)
{
	uint64_t now = end_after(0), next = NEVER;
	int i;

	if (!pool.teller.server)
		return pool.teller.next;
	for (i = 0; i < pool.nr_jobs && pool.nr_asked < MOST_ASKED; i++) {
		struct job *job = &pool.jobs[i];

		if (job->step == FREE || job->step == POSTS || job->asked)
			continue;
		if (job->next <= now)
			ask_about(job);
		else if (job->next < next)
			next = job->next;
	}
	if (!flush(&pool.teller)) {
		lose_teller();
		return pool.teller.next;
	}
	return next;
}

/* Does what is due. Returns when there is more to do, also without an event. */
static uint64_t tick(void)
{
	uint64_t now = end_after(0), next;
	int count = pool.ending ? 0 : count_free();

	if (!pool.teller.server && pool.teller.next <= now)
		connect_link(&pool.teller);
	if (!pool.taker.server && pool.taker.next <= now && count && pool.teller.server)
		connect_link(&pool.taker);
	if (pool.taker.server && !pool.taking && count)
		take(count);
	next = tell();
	if (!pool.taker.server && count && pool.teller.server && pool.taker.next < next)
		next = pool.taker.next;
	if (posts_next() < next)
		next = posts_next();
	return pool.end < next ? pool.end : next;
}

/*
 * A half-closed connection ends a take that waits, and then the connection. Jobs that come
 * before are given back.
 */
static void leave(void)
{
	if (pool.taker.server && !pool.leaving) {
		shutdown(pool.taker.server->fd, SHUT_WR);
		pool.leaving = true;
	}
	if (pool.taker.server && !pool.taking)
		lose_taker();
}

/*
 * Whether there is something to end before the program can end. Jobs of which twjobd takes no
 * news in time are given up.
 */
static bool is_busy(void)
{
	bool posting = false, busy;
	int i;

	leave();
	busy = pool.taker.server;
	for (i = 0; i < pool.nr_jobs; i++) {
		posting |= pool.jobs[i].step == POSTS;
		busy |= pool.jobs[i].step != FREE;
	}
	if (posting || pool.end == NEVER)
		pool.end = posting ? NEVER : end_after(PATIENCE * NSEC_PER_SEC);
	if (pool.end > end_after(0))
		return busy;
	for (i = 0; i < pool.nr_jobs; i++) {
		if (pool.jobs[i].step != FREE)
			lose_job(&pool.jobs[i], "there is no answer");
	}
	if (pool.taker.server)
		complain("there is no answer: jobs that came last may be worked on again");
	return false;
}

static void wait_for_all(uint64_t next)
{
	struct pollfd fds[] = {
		{ .fd = pool.taker.server ? pool.taker.server->fd : -1, .events = POLLIN },
		{ .fd = pool.teller.server ? pool.teller.server->fd : -1, .events = POLLIN },
		{ .fd = posts_fd(), .events = POLLIN },
	};

	if (wait_for(fds, ARRAY_SIZE(fds), next) > 0) {
		if (fds[0].revents)
			read_link(&pool.taker, lose_taker);
		if (fds[1].revents)
			read_link(&pool.teller, lose_teller);
	}
	posts_run(ended);
}

/* Runs until it is told to end and no post runs. */
static void run(void)
{
	for (;;) {
		pool.ending |= stop_signal != 0;
		if (pool.ending && !is_busy())
			return;
		wait_for_all(tick());
	}
}

enum status verb_post(const struct args *args)
{
	const char *secret = args->option[OPT_SECRET_FILE];

	if (!args->option[OPT_URL] || args->behind)
		die(STATUS_USAGE, "usage: twjob work [OPTION]... --url URL QUEUE...");
	pool.queues = args->arg;
	pool.nr_queues = args->count;
	pool.nr_jobs = option_number(args, OPT_JOBS, 1, MOST_POSTS, 1);
	pool.timeout = option_span(args, OPT_TIMEOUT, NEVER);
	pool.end = NEVER;
	if (pool.timeout < NSEC_PER_MSEC)
		die_usage("--timeout", args->option[OPT_TIMEOUT], "a millisecond or longer");
	if (secret)
		secret_read(secret);
	posts_begin(args->option[OPT_URL], pool.nr_jobs);
	pool.jobs = calloc(pool.nr_jobs, sizeof(*pool.jobs));
	if (!pool.jobs)
		die(STATUS_FAILED, "no memory for jobs");
	server_settings(args);
	signals_begin();
	run();
	if (pool.posts)
		complain("%llu posts, %llu failed, %llu lost", pool.posts, pool.failed, pool.lost);
	return pool.status;
}
