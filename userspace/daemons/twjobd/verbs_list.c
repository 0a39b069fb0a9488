// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs that tell of jobs: TW.GET of one, TW.LIST and TW.RULES of many. They change nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "holder.h"
#include "job.h"
#include "verbs.h"

#define LIST_COUNT	100
#define MAX_LIST	1000
/* One command looks at this many rows, rows of other queues included. */
#define MAX_LOOKED_AT	10000
/* A step looks at this many rows. */
#define SLICE		100

enum state {
	DELAYED, READY, HELD, WAITING, BURIED, DONE, STATES
};

static const char * const state_names[STATES] = {
	"delayed", "ready", "held", "waiting", "buried", "done",
};

static enum state state_of(const struct job *job,
			   const struct timewheel_token *token)
{
	if (job->buried)
		return job->done ? DONE : BURIED;
	if (job->waiting)
		return WAITING;
	if (token->state == TIMEWHEEL_STATE_HELD)
		return HELD;
	return job->due <= now_ms() ? READY : DELAYED;
}

/* The store has this of a job besides its row. */
struct more {
	struct rule rule;
	struct options options;
	struct failure failure;
};

static int get_more(const struct job *job, struct more *more)
{
	int result = 0;

	more->options = NO_OPTIONS;
	if (job->rule)
		result = store->get_rule(job->id, &more->rule);
	if (!result && job->options)
		result = store->get_options(job->id, &more->options);
	if (!result && job->failure)
		result = store->get_failure(job->id, &more->failure);
	/* Another program may have changed the job since its row was read. */
	return result == -ENOENT ? -EALREADY : result;
}

static size_t count_more(const struct job *job, const struct more *more)
{
	const struct options *options = &more->options;

	return (job->rule ? 5 : 0) + (options->lease ? 1 : 0) + (options->tries != TRIES_OF_QUEUE) +
	       (options->backoff ? 2 : 0) + (options->unique ? 1 : 0) +
	       (options->group_length ? 1 : 0) +
	       (job->failure ? 2 : 0);
}

static void add_number(struct reply *reply, const char *name, int64_t number)
{
	reply_text(reply, name);
	reply_integer(reply, number);
}

/* The answers tell this of a worker that has the job. */
struct worker {
	bool held, known;
	uint64_t left;		/* ms: what is left of the lease */
	char holder[HOLDER_TEXT];
};

static void get_worker(const struct job *job, enum state state,
		       const struct timewheel_token *token, struct worker *worker)
{
	worker->held = state == HELD;
	worker->known = worker->held && holder_of(job, token, worker->holder);
	worker->left = token->left / NSEC_PER_MSEC;
}

static void add_worker(struct reply *reply, const struct worker *worker)
{
	if (worker->held)
		add_number(reply, "lease_left_ms", worker->left);
	if (!worker->known)
		return;
	reply_text(reply, "holder");
	reply_text(reply, worker->holder);
}

static void add_rule(struct reply *reply, const struct rule *rule)
{
	static const char * const missed[] = { "last", "all", "none" };
	char name[CALENDAR_NAME];

	calendar_name(&rule->at, name);
	reply_text(reply, "rule");
	reply_text(reply, rule->text);
	reply_text(reply, "zone");
	reply_text(reply, rule->zone);
	reply_text(reply, "missed");
	reply_text(reply, missed[rule->missed]);
	reply_text(reply, "overlap");
	reply_integer(reply, rule->overlap);
	reply_text(reply, "occurrence");
	reply_text(reply, name);
}

static void add_more(struct reply *reply, const struct job *job, const struct more *more)
{
	const struct bytes reason = { more->failure.reason, more->failure.length };
	const struct options *options = &more->options;

	if (job->rule)
		add_rule(reply, &more->rule);
	if (options->lease)
		add_number(reply, "lease_ms", options->lease);
	if (options->tries != TRIES_OF_QUEUE)
		add_number(reply, "tries", options->tries);
	if (options->backoff) {
		add_number(reply, "backoff_ms", options->backoff);
		add_number(reply, "backoff_most_ms", options->backoff_most);
	}
	if (options->unique)
		add_number(reply, "unique_ms", options->unique);
	if (options->group_length) {
		reply_text(reply, "group");
		reply_bytes(reply, (struct bytes) { options->group, options->group_length });
	}
	if (job->failure) {
		add_number(reply, "failed", more->failure.at);
		reply_text(reply, "reason");
		reply_bytes(reply, reason);
	}
}

static void add_job(struct reply *reply, const struct job *job, enum state state,
		    size_t pairs)
{
	reply_map(reply, pairs);
	reply_text(reply, "id");
	reply_integer(reply, job->id);
	reply_text(reply, "state");
	reply_text(reply, state_names[state]);
	reply_text(reply, "due");
	reply_integer(reply, job->due);
	reply_text(reply, "attempts");
	reply_integer(reply, job->attempts);
	reply_text(reply, "key");
	reply_key(reply, job);
}

static void add_body(void *reply, struct bytes body)
{
	reply_text(reply, "body");
	reply_bytes(reply, body);
}

static int find(struct request *request, struct job *job, struct timewheel_token *token)
{
	struct bytes key;
	uint64_t id;

	if (!request->by_key)
		return !arg_number(request, request->argv[2], 1, MAX_ID, &id) ? -EINVAL :
		       job_find(request->queue, id, false, job, token);
	return !arg_key(request, request->argv[2], &key) ? -EINVAL :
	       job_find_key(request->queue, key, job, token);
}

/* TW.GET queue id, TW.GETKEY queue key */
void verb_get(struct request *request)
{
	struct timewheel_token token = { };
	struct worker worker;
	enum state state;
	struct more more;
	struct job job;
	int result = find(request, &job, &token);

	if (!result)
		result = get_more(&job, &more);
	if (result == -ENOENT)
		reply_null(request->reply);
	else if (result && result != -EINVAL)
		answer_failure(request, result);
	if (result)
		return;
	state = state_of(&job, &token);
	get_worker(&job, state, &token, &worker);
	add_job(request->reply, &job, state,
		6 + worker.held + worker.known + count_more(&job, &more));
	store->body(job.id, add_body, request->reply);
	add_worker(request->reply, &worker);
	add_more(request->reply, &job, &more);
}

struct listing {
	int64_t queue;
	int looked_at;
	uint64_t after, count, before;
	enum state state;	/* STATES for all states */
	bool rules;		/* only jobs that have a rule */
	uint64_t found;
	struct buffer buffer;
	struct reply jobs;
};

static bool parse_state(struct request *request, struct bytes arg,
			enum state *state)
{
	for (*state = 0; *state < STATES; (*state)++)
		if (arg_is(arg, state_names[*state]))
			return true;
	reply_error(request->reply,
		    "ERR a state is delayed, ready, held, waiting, buried or done");
	return false;
}

static bool parse_option(struct request *request, int i, struct listing *listing)
{
	struct bytes option = request->argv[i], value = request->argv[i + 1];
	bool rules = listing->rules;

	if (arg_is(option, "CURSOR"))
		return arg_number(request, value, 0, MAX_ID, &listing->after);
	if (arg_is(option, "COUNT"))
		return arg_number(request, value, 1, MAX_LIST, &listing->count);
	if (!rules && arg_is(option, "STATE"))
		return parse_state(request, value, &listing->state);
	if (!rules && arg_is(option, "BEFORE"))
		return arg_number(request, value, 0, MAX_DUE, &listing->before);
	reply_error(request->reply, rules ? "ERR expected CURSOR or COUNT" :
					    "ERR expected CURSOR, COUNT, STATE or BEFORE");
	return false;
}

static bool parse_list(struct request *request, struct listing *listing)
{
	for (int i = 2; i < request->argc; i += 2) {
		if (i + 1 == request->argc) {
			reply_error(request->reply, "ERR an option has no value");
			return false;
		}
		if (!parse_option(request, i, listing))
			return false;
	}
	return true;
}

/* Adds the job if the client asked for such jobs. Returns whether the job is added. */
static bool list_job(struct listing *listing, struct queue *queue,
		     const struct job *job)
{
	struct timewheel_token token = { };
	struct worker worker;
	enum state state;
	struct more more;
	bool known;

	if (job->queue != queue->row.id || job->due >= listing->before)
		return false;
	if (!job->buried)
		queue_find_job(queue, job, &token);
	state = state_of(job, &token);
	if (listing->state != STATES && listing->state != state)
		return false;
	get_worker(job, state, &token, &worker);
	/* Another program may be changing the job, which is then listed without these parts. */
	known = !get_more(job, &more);
	add_job(&listing->jobs, job, state,
		5 + worker.held + worker.known + (known ? count_more(job, &more) : 0));
	add_worker(&listing->jobs, &worker);
	if (known)
		add_more(&listing->jobs, job, &more);
	return true;
}

/*
 * Lists jobs behind the row @after. Returns 1 if there are no more jobs, 0 if there may be more,
 * or an error.
 */
static int list_some(struct listing *listing, struct queue *queue)
{
	static struct job jobs[SLICE];
	bool is_aside = listing->state == BURIED || listing->state == DONE;
	int64_t buried = is_aside ? queue->row.id : 0;
	int n = listing->rules ? store->next_rules(listing->after, jobs, SLICE) :
				 store->next(listing->after, buried, jobs, SLICE);

	for (int i = 0; i < n && listing->found < listing->count; i++) {
		listing->after = jobs[i].id;
		listing->found += list_job(listing, queue, &jobs[i]);
	}
	listing->looked_at += SLICE;
	return n < 0 ? n : n < SLICE && listing->found < listing->count;
}

static void end_list(struct client *client)
{
	struct listing *listing = client->steps;

	buffer_free(&listing->buffer);
	free(listing);
	client->steps = NULL;
	client->step = NULL;
}

static void answer_list(struct request *request, const struct listing *listing, int ended)
{
	if (ended < 0) {
		answer_failure(request, ended);
		return;
	}
	reply_array(request->reply, 2);
	reply_integer(request->reply, ended ? 0 : listing->after);
	reply_array(request->reply, listing->found);
	buffer_add(request->reply->out, listing->buffer.data, listing->buffer.length);
}

static void step_list(struct client *client, bool end)
{
	struct listing *listing = client->steps;
	struct request request = {
		.client = client,
		.reply = &client->reply,
		.queue = queue_by_id(listing->queue),
	};
	int ended;

	if (end) {
		end_list(client);
		return;
	}
	if (!request.queue || request.queue->row.dropped) {
		answer_no_queue(request.reply);
		end_list(client);
		return;
	}
	ended = list_some(listing, request.queue);
	if (!ended && listing->found < listing->count &&
	    listing->looked_at < MAX_LOOKED_AT)
		return;
	answer_list(&request, listing, ended);
	end_list(client);
}

static void begin_list(struct request *request, bool rules)
{
	struct listing *listing = calloc(1, sizeof(*listing));

	if (!listing)
		die(ENOMEM, "a list");
	*listing = (struct listing) {
		.queue = request->queue->row.id,
		.count = LIST_COUNT,
		.before = MAX_DUE + 1,
		.state = STATES,
		.rules = rules,
	};
	if (!parse_list(request, listing)) {
		free(listing);
		return;
	}
	/* The wheel does not know the changes of this turn yet. */
	turn_end();
	listing->jobs = (struct reply) { &listing->buffer, request->reply->version };
	request->client->steps = listing;
	request->client->step = step_list;
	step_list(request->client, false);
}

/*
 * TW.LIST queue [CURSOR c] [COUNT n] [STATE s] [BEFORE unix-ms]: the answer has the cursor of the
 * next command, which is 0 at the end, and jobs in the order of their numbers. An answer may have
 * no jobs although more jobs follow.
 */
void verb_list(struct request *request)
{
	begin_list(request, false);
}

/*
 * TW.RULES queue [CURSOR c] [COUNT n]: the answer is like that of TW.LIST, with jobs that have a
 * rule.
 */
void verb_rules(struct request *request)
{
	begin_list(request, true);
}
