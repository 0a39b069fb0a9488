// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deliveries: see take.h.
 */
#include <errno.h>
#include <string.h>

#include "group.h"
#include "holder.h"
#include "job.h"
#include "keep.h"
#include "limit.h"
#include "receipt.h"
#include "rule.h"
#include "take.h"

#define READ_AT_ONCE	16
/* An answer that has this many bytes gets no further job. */
#define MAX_ANSWER	(1 << 20)
/* A job whose row cannot be read now comes again after this many ms. */
#define LATER		1000
/* A take that has put off this many jobs of groups ends as if no further job were due. */
#define MAX_PUT_OFF	500

/* The jobs of an answer are put together before their number is known. */
struct taken {
	const struct waiter *waiter;
	struct reply jobs;
	struct buffer buffer;
	uint64_t count;
	uint64_t put_off;	/* jobs of groups that are at their limits */
	bool in_turn;		/* the answer has to wait for the turn's commit */
};

/* The receipt distinguishes this delivery from all others. */
static void add_receipt(struct reply *reply, struct queue *queue,
			const struct timewheel_event *event, const struct job *job)
{
	const struct receipt receipt = {
		.job = event->cookie,
		.epoch = store->shared ? job->version : queue->row.epoch,
		.handle = store->shared ? (uint64_t)job->queue : event->handle,
		.delivery = event->delivery,
	};
	char room[RECEIPT_TEXT];

	reply_bytes(reply, receipt_write(&receipt, room));
}

static void add_body(void *reply, struct bytes body)
{
	reply_bytes(reply, body);
}

/* Adds to the answer: queue, id, receipt, attempt, due, key, body. */
static int add_job(struct taken *taken, struct queue *queue,
		   const struct timewheel_event *event, const struct job *job,
		   uint64_t attempt)
{
	size_t length = taken->buffer.length;
	int result;

	reply_array(&taken->jobs, 7);
	reply_text(&taken->jobs, queue->row.name);
	reply_integer(&taken->jobs, job->id);
	add_receipt(&taken->jobs, queue, event, job);
	reply_integer(&taken->jobs, attempt);
	reply_integer(&taken->jobs, job->due);
	reply_key(&taken->jobs, job);
	result = store->body(job->id, add_body, &taken->jobs);
	if (result)
		taken->buffer.length = length;
	return result;
}

/* Returns the part of the token that changes of its job need. */
static struct timewheel_token token_of(const struct timewheel_event *event)
{
	return (struct timewheel_token) { .id = event->id, .handle = event->handle };
}

/*
 * The store does not count a first delivery. So this may be the second try although the store has
 * counted none. A worker has got the token's first delivery, see queue_take_back(), and the store
 * would have counted a second one.
 */
static uint64_t next_attempt(const struct job *job,
			     const struct timewheel_event *event)
{
	return job->attempts ? job->attempts + 1 : event->delivery > 1 ? 2 : 1;
}

int take_end_delivery(struct queue *queue, struct job *job,
		      const struct timewheel_token *token, uint32_t delivery,
		      struct bytes reason)
{
	int result = job_note_failure(job, reason);

	if (result)
		return result;
	result = -ENOENT;
	job->held_until = 0;
	if (job->rule && job->buried)
		result = rule_end(queue, job, token, delivery);
	if (result != -ENOENT)
		return result;
	queue->row.buried += job->buried;
	return job_change(queue, job, token, delivery, CHANGE_TO_PENDING);
}

static void bury_job(struct queue *queue, struct job *job,
		     const struct timewheel_event *event)
{
	static const char reason[] = "the lease was over";
	const struct timewheel_token token = token_of(event);

	job->buried = true;
	take_end_delivery(queue, job, &token, event->delivery,
			  (struct bytes) { reason, strlen(reason) });
}

static bool was_last_try(const struct options *settings, uint64_t attempt)
{
	return settings->tries && attempt > (uint64_t)settings->tries;
}

/*
 * Reads the job's row and settings. Returns an error if the job is not for the client. The token
 * has then been told.
 */
static int check_job(struct queue *queue, struct job *job, struct options *settings,
		     const struct timewheel_event *event)
{
	int result = store->get(event->cookie, true, job);

	if (!result && job->queue != queue->row.id)
		result = -ENOENT;
	if (!result)
		result = job_settings(queue, job, settings);
	if (result == -ENOENT) {
		queue_mended++;
		queue_unregister(queue, event->handle);
	} else if (result) {
		queue_take_back(queue, event->handle, event->delivery,
				now_ms() + LATER);
	} else if (job_next_due(job) > now_ms()) {
		queue_take_back(queue, event->handle, event->delivery, job_next_due(job));
		result = -EAGAIN;
	} else if (was_last_try(settings, next_attempt(job, event))) {
		bury_job(queue, job, event);
		result = -EAGAIN;
	} else if (settings->group_length) {
		result = group_check(queue, job, settings, event);
	}
	return result;
}

static void count_taken(struct taken *taken, struct queue *queue,
			const struct timewheel_event *event, const struct job *job,
			const struct options *settings)
{
	/* The lease changes before the client can know of the delivery. */
	if (settings->lease != queue->row.lease)
		queue_set_lease(queue, event, settings->lease);
	taken->count++;
	limit_count(queue, event, settings->lease);
	if (settings->group_length)
		group_count(queue, job, settings, event);
	histogram_add(&queue->lateness, event->taken - event->deadline);
	holder_note(taken->waiter->client, queue, event, job->version);
	client_delivered(taken->waiter->client, queue, event, job->version,
			 taken->waiter->bound);
}

/* Adds the job of this delivery to the answer, if its row permits. */
static void take_event(struct taken *taken, struct queue *queue,
		       const struct timewheel_event *event)
{
	const struct timewheel_token token = token_of(event);
	size_t length = taken->buffer.length;
	struct options settings = { };
	uint64_t attempt;
	struct job job;
	int result = check_job(queue, &job, &settings, event);

	taken->put_off += result == -EAGAIN && settings.group_length;
	if (result)
		return;
	attempt = next_attempt(&job, event);
	if (job.rule)
		result = rule_take(queue, &job, &token, event->delivery, attempt == 1);
	if (result == -EAGAIN)
		return;
	if (!result)
		result = add_job(taken, queue, event, &job, attempt);
	if (!result && attempt > 1) {
		job.attempts = attempt;
		result = turn_begin() ?:
			 turn_result(store->change(&job, SAME_BODY));
	}
	if (result) {
		taken->buffer.length = length;
		queue_take_back(queue, event->handle, event->delivery,
				now_ms() + LATER);
		return;
	}
	taken->in_turn |= job.rule || attempt > 1 ||
			  turn_has_added(queue, event->handle);
	count_taken(taken, queue, event, &job, &settings);
}

/*
 * Buries a job whose body cannot be read. If the job has a rule, the whole job is buried, because
 * the rule would copy the body. The claim has counted a delivery that is not made.
 */
static void bury_unread(struct queue *queue, struct job *job,
			const struct timewheel_event *event)
{
	static const char reason[] = "its body could not be read";
	const struct timewheel_token token = token_of(event);

	say("job %lld of the queue \"%s\" is buried: %s", (long long)job->id, queue->row.name,
	    reason);
	job->buried = true;
	job->attempts--;
	job->held_until = 0;
	if (job_note_failure(job, (struct bytes) { reason, strlen(reason) }))
		return;
	queue->row.buried++;
	job_change(queue, job, &token, event->delivery, CHANGE_TO_PENDING);
}

/*
 * Does the work of take_event() for a job of a shared store. The @result of a claim tells by the
 * job's row whether the client gets the job.
 */
static void take_claimed(struct taken *taken, struct queue *queue,
			 const struct timewheel_event *event, struct job *job,
			 int result)
{
	const struct timewheel_token token = token_of(event);
	uint64_t later = now_ms() + LATER;
	struct options settings;

	/* The job has ended, or is buried, or another daemon owns it. */
	if (result == -ENOENT || (result == -EAGAIN && job->buried)) {
		queue_unregister(queue, event->handle);
		return;
	}
	if (result == -EBADMSG) {
		bury_unread(queue, job, event);
		return;
	}
	if (result == -EAGAIN)
		later = job_next_due(job);
	if (!result)
		result = job_settings(queue, job, &settings);
	if (!result && was_last_try(&settings, job->attempts)) {
		/* The claim has counted a delivery that is not made. */
		job->attempts--;
		bury_job(queue, job, event);
		return;
	}
	if (!result && job->rule) {
		result = rule_take(queue, job, &token, event->delivery, job->attempts == 1);
		if (result == -EAGAIN)
			return;
		/* The claim has counted a delivery that is not made. */
		if (result) {
			job->attempts--;
			turn_result(store->change(job, SAME_BODY));
		}
	}
	if (!result)
		result = add_job(taken, queue, event, job, job->attempts);
	if (result)
		queue_give_back(queue, event->handle, event->delivery, later);
	else
		count_taken(taken, queue, event, job, &settings);
}

/* Asks the rows of a shared store which of these jobs the clients get. */
static int claim(struct queue *queue, const struct timewheel_event *events, int count,
		 struct job *jobs, int *results)
{
	int64_t ids[MAX_CLAIM];

	for (int i = 0; i < count; i++)
		ids[i] = events[i].cookie;
	return turn_begin() ?:
	       turn_result(store->claim(&queue->row, ids, count, jobs, results));
}

static int claim_all(struct taken *taken, struct queue *queue,
		     const struct timewheel_event *events, int count)
{
	static struct job jobs[READ_AT_ONCE];
	int results[READ_AT_ONCE];
	int error = claim(queue, events, count, jobs, results);

	taken->in_turn = true;
	for (int i = 0; i < count; i++)
		take_claimed(taken, queue, &events[i], &jobs[i],
			     error ?: results[i]);
	return error;
}

static void release_row(struct queue *queue, const struct delivery *delivery)
{
	const struct job job = { .id = delivery->job, .due = now_ms() };
	const struct timewheel_token token = { .id = job.id };

	if (!turn_begin() &&
	    !turn_result(store->release(job.id, delivery->version, delivery->sent)))
		turn_changed(queue, &job, &token, 0, CHANGE_TO_PENDING);
}

/*
 * Gives a delivery back, because the worker's connection has ended. A delivery that the worker
 * has not got counts as no try.
 */
static void release(struct queue *queue, const struct delivery *delivery)
{
	struct timewheel_token token;
	struct job job;

	if (!queue_holds(queue, delivery->handle, delivery->number, &token))
		return;
	if (store->shared) {
		release_row(queue, delivery);
	} else if (delivery->sent || store->get(delivery->job, true, &job)) {
		queue_give_back(queue, delivery->handle, delivery->number, now_ms());
	} else if (job.attempts < 2) {
		queue_take_back(queue, delivery->handle, delivery->number, now_ms());
	} else {
		job.attempts--;
		job_change(queue, &job, &token, delivery->number, CHANGE_TO_PENDING);
	}
}

void take_give_back(struct client *client, uint64_t end, bool undone)
{
	struct delivery *delivery = TAILQ_FIRST(&client->deliveries), *next;

	for (; delivery; delivery = next) {
		struct queue *queue = queue_by_id(delivery->queue);

		next = TAILQ_NEXT(delivery, next);
		if (delivery->end <= end)
			continue;
		if (queue && queue->row.epoch == delivery->epoch) {
			if (undone)
				queue_take_back(queue, delivery->handle,
						delivery->number, now_ms());
			else
				release(queue, delivery);
		}
		client_forget(client, delivery);
	}
}

/* Returns whether the answer gets no further job. */
static bool is_enough(const struct taken *taken)
{
	return taken->count == taken->waiter->count ||
	       taken->put_off >= MAX_PUT_OFF ||
	       taken->buffer.length > MAX_ANSWER;
}

/* Reads deliveries of due jobs for a worker who asks. Returns the number of deliveries. */
static int read_due(struct queue *queue, bool bound, struct timewheel_event *events,
		    int count)
{
	int n;

	queue->asked = now_ms();
	if (queue->row.paused)
		return 0;
	count = limit_room(queue, count);
	if (!count)
		return 0;
	group_learn(queue);
	n = queue_read(queue, bound, events, count);
	if (n == -ENODEV)
		keep_lost(queue);
	return n;
}

static void take_from(struct taken *taken, struct queue *queue)
{
	struct timewheel_event events[READ_AT_ONCE];
	int n;

	do {
		uint64_t want = taken->waiter->count - taken->count;

		/*
		 * All deliveries that are read are handed out, because a delivery counts as a
		 * try.
		 */
		if (want > READ_AT_ONCE)
			want = READ_AT_ONCE;
		n = read_due(queue, taken->waiter->bound, events, want);
		/* After an error of the store the next claim would fail, too. */
		if (n > 0 && store->shared && claim_all(taken, queue, events, n))
			break;
		for (int i = 0; i < n && !store->shared; i++)
			take_event(taken, queue, &events[i]);
	} while (n > 0 && !is_enough(taken));
}

static void begin_answer(struct taken *taken, const struct waiter *waiter)
{
	*taken = (struct taken) {
		.waiter = waiter,
		.jobs = { &taken->buffer, waiter->client->reply.version },
	};
}

/* Answers if there is a job. Returns whether there is a job. */
static bool end_answer(struct taken *taken)
{
	struct reply *reply = &taken->waiter->client->reply;

	if (taken->count) {
		reply_array(reply, taken->count);
		buffer_add(reply->out, taken->buffer.data, taken->buffer.length);
		taken->waiter->client->final = !taken->in_turn;
	}
	buffer_free(&taken->buffer);
	return taken->count;
}

bool take_for(struct waiter *waiter)
{
	struct taken taken;

	begin_answer(&taken, waiter);
	/* A token that this turn moves or ends would be read at its old time. */
	for (int i = 0; i < waiter->nr_queues; i++) {
		if (waiter->queues[i]->unsettled) {
			turn_end();
			break;
		}
	}
	for (int i = 0; i < waiter->nr_queues && !is_enough(&taken); i++)
		take_from(&taken, waiter->queues[i]);
	return end_answer(&taken);
}

int take_for_each(struct queue *queue, struct waiter **takers, int count)
{
	static struct job jobs[MAX_CLAIM];
	struct timewheel_event events[MAX_CLAIM];
	int results[MAX_CLAIM], served = 0, error = 0;
	int n = read_due(queue, false, events, count);

	if (n > 0 && store->shared)
		error = claim(queue, events, n, jobs, results);
	for (int i = 0; i < n; i++) {
		struct taken taken;

		begin_answer(&taken, takers[served]);
		taken.in_turn = store->shared;
		if (store->shared)
			take_claimed(&taken, queue, &events[i], &jobs[i],
				     error ?: results[i]);
		else
			take_event(&taken, queue, &events[i]);
		served += end_answer(&taken);
	}
	return served;
}

void take_ended(int64_t job)
{
	holder_forget(job);
	group_release(job);
}
