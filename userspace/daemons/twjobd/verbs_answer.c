// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs by which workers answer deliveries: the job is done, is to come again, is to be kept
 * aside, or takes longer. Any connection may answer until the lease is over.
 */
#include <errno.h>

#include "held.h"
#include "job.h"
#include "receipt.h"
#include "rule.h"
#include "take.h"
#include "verbs.h"

int answer_jobs(const struct command *command, int64_t *ids, int room)
{
	static const char * const names[] = { "TW.ACK", "TW.NACK", "TW.BURY", "TW.EXTEND" };
	struct receipt receipt;
	bool found = false;
	int n = 0;

	for (size_t i = 0; command->argc && i < ARRAY_SIZE(names); i++)
		found |= arg_is(command->argv[0], names[i]);
	for (int i = 2; found && i < command->argc && n < room; i++)
		if (receipt_read(command->argv[i], &receipt))
			ids[n++] = receipt.job;
	return n;
}

/*
 * With a shared store the row tells whether the delivery is out. No other program changes
 * the row until the turn ends.
 */
static int find_by_row(struct queue *queue, const struct receipt *receipt,
		       struct job *job, struct timewheel_token *token)
{
	int result = turn_begin() ?: store->get(receipt->job, true, job);

	if (result)
		return result;
	if (job->queue != queue->row.id || (uint64_t)job->queue != receipt->queue ||
	    job->version != receipt->version || job->held_until <= now_ms())
		return -ESTALE;
	return queue_find_job(queue, job, token);
}

/* Extends the lease of a delivery of a shared store. */
static int extend_row(struct queue *queue, const struct job *job, uint64_t lease)
{
	struct timewheel_token token;

	/*
	 * If the lease ends too early in the wheel, the row refuses the delivery that then comes.
	 */
	if (!queue_token(queue, job, &token))
		queue_extend(queue, token.handle, token.delivery, lease);
	return turn_result(store->extend(job->id, lease));
}

/* Finds the job and the token of a delivery. -ESTALE: the delivery has ended. */
static int find_delivery(struct queue *queue, struct bytes arg,
			 struct receipt *receipt, struct job *job,
			 struct timewheel_token *token)
{
	int result;

	if (!receipt_read(arg, receipt))
		return -ESTALE;
	/* Each change that a turn makes to a job ends the job's delivery. */
	if (turn_has(receipt->job))
		return -ESTALE;
	if (store->shared) {
		result = find_by_row(queue, receipt, job, token);
		return result == -ENOENT ? -ESTALE : result;
	}
	held_translate(receipt);
	if (receipt->epoch != queue->row.epoch)
		return -ESTALE;
	result = store->get(receipt->job, true, job);
	if (!result && (job->queue != queue->row.id || job->buried))
		result = -ENOENT;
	if (!result)
		result = queue_token_by_handle(queue, receipt->handle, token);
	if (!result && token->cookie != receipt->job)
		result = -ENOENT;
	return result == -ENOENT ? -ESTALE : result;
}

/* @lease is in ms, or 0 for the queue's lease. -ESTALE: the delivery has ended. */
static int extend_delivery(struct queue *queue, const struct receipt *receipt, uint64_t lease)
{
	int result = queue_extend(queue, receipt->handle, receipt->delivery, lease);

	return result == -ENOENT ? -ESTALE : result;
}

/*
 * Finds a delivery that is to end. Its lease begins again, so that the delivery stays out during
 * the commit.
 */
static int find_ending(struct queue *queue, struct bytes arg, struct receipt *receipt,
		       struct job *job, struct timewheel_token *token)
{
	int result = find_delivery(queue, arg, receipt, job, token);

	if (result || store->shared)
		return result;
	return extend_delivery(queue, receipt, 0);
}

static void refuse_answer(struct request *request, int result)
{
	if (result == -ESTALE)
		reply_error(request->reply,
			    "STALE the lease is over, or the delivery has been answered");
	else if (result == -ERANGE)
		reply_error(request->reply, "ERR too long a time");
	else
		answer_failure(request, result);
}

static int ack(struct request *request, struct bytes arg)
{
	struct timewheel_token token;
	struct receipt receipt;
	struct job job, done;
	int result = find_ending(request->queue, arg, &receipt, &job, &token);

	if (result)
		return result;
	done = job;
	result = job.rule ? rule_end(request->queue, &job, &token, receipt.delivery) : -ENOENT;
	if (result == -ENOENT)
		result = job_finish(request->queue, &job, &token, receipt.delivery);
	return result ?: job_note_done(request->queue, &done);
}

/* An array cannot contain an error of the store, so the turn fails with all its answers. */
static void answer_one(struct request *request, int result)
{
	if (result && result != -ESTALE)
		turn_result(result);
	reply_integer(request->reply, !result);
}

/* TW.ACK queue receipt ...: the answer is 1, or an array of 1 and 0 for several receipts. */
void verb_ack(struct request *request)
{
	int result;

	if (request->argc == 3) {
		result = ack(request, request->argv[2]);
		if (result)
			refuse_answer(request, result);
		else
			reply_integer(request->reply, 1);
		return;
	}
	reply_array(request->reply, request->argc - 2);
	for (int i = 2; i < request->argc; i++) {
		result = ack(request, request->argv[i]);
		answer_one(request, result);
	}
}

static void answer(struct request *request, int result, const char *text)
{
	if (result)
		refuse_answer(request, result);
	else
		reply_simple(request->reply, text);
}

/* The store does not count a first delivery. */
static void count_try(struct job *job)
{
	if (!job->attempts)
		job->attempts = 1;
}

/*
 * A delivery ends like this. If @timed, the job is due at @due. Otherwise @untried and the job's
 * settings tell when it is due.
 */
struct nack {
	bool timed, untried;
	uint64_t due;
	struct bytes reason;
};

static bool parse_nack(struct request *request, struct nack *nack)
{
	for (int i = 3; i < request->argc; i++) {
		if (arg_is(request->argv[i], "UNTRIED")) {
			nack->untried = true;
			continue;
		}
		if (arg_is(request->argv[i], "REASON") && i + 1 < request->argc) {
			nack->reason = request->argv[++i];
			continue;
		}
		if (!arg_due(request, i++, &nack->due))
			return false;
		nack->timed = true;
	}
	return true;
}

/*
 * Ends a delivery that the worker has not worked on, and that counts as no try. The job is due as
 * before. Where the store does not count a first delivery, the wheel's count begins again with a
 * new token.
 */
static int untry(struct queue *queue, struct job *job, const struct timewheel_token *token,
		 uint32_t delivery, const struct nack *nack)
{
	bool first = job->attempts < 2 && !store->shared;

	if (nack->timed)
		job->due = nack->due;
	if (job->attempts && !first)
		job->attempts--;
	job->held_until = 0;
	return job_note_failure(job, nack->reason) ?:
	       job_change(queue, job, token, delivery,
			  first ? CHANGE_TO_NEW : CHANGE_TO_PENDING);
}

/*
 * @buried tells whether this try was the last one. After the last try @job may be a rule's next
 * occurrence.
 */
static int fail_try(struct queue *queue, struct job *job, const struct timewheel_token *token,
		    uint32_t delivery, const struct nack *nack, bool *buried)
{
	struct options settings;
	int result = job_settings(queue, job, &settings);

	if (result)
		return result;
	count_try(job);
	job->due = nack->due + (nack->timed ? 0 : job_backoff(job, &settings));
	*buried = settings.tries && job->attempts >= (uint64_t)settings.tries;
	job->buried = *buried;
	return take_end_delivery(queue, job, token, delivery, nack->reason);
}

/*
 * TW.NACK queue receipt [IN seconds | AT time] [REASON text] [UNTRIED]: the answer is OK, or
 * BURIED after the last try.
 */
void verb_nack(struct request *request)
{
	struct timewheel_token token;
	struct receipt receipt;
	struct nack nack = { .due = now_ms() };
	bool buried = false;
	struct job job;
	int result;

	if (!parse_nack(request, &nack))
		return;
	result = find_ending(request->queue, request->argv[2], &receipt, &job, &token);
	if (!result && nack.untried)
		result = untry(request->queue, &job, &token, receipt.delivery, &nack);
	else if (!result)
		result = fail_try(request->queue, &job, &token, receipt.delivery, &nack,
				  &buried);
	answer(request, result, buried ? "BURIED" : "OK");
}

/* TW.BURY queue receipt [REASON text] */
void verb_bury(struct request *request)
{
	struct timewheel_token token;
	struct bytes reason = { };
	struct receipt receipt;
	struct job job;
	int result;

	if (request->argc > 3) {
		if (request->argc < 5 || !arg_is(request->argv[3], "REASON")) {
			reply_error(request->reply, "ERR expected REASON and a text");
			return;
		}
		reason = request->argv[4];
	}
	result = find_ending(request->queue, request->argv[2], &receipt, &job, &token);
	if (!result) {
		count_try(&job);
		job.buried = true;
		result = take_end_delivery(request->queue, &job, &token,
					   receipt.delivery, reason);
	}
	answer(request, result, "OK");
}

/* @lease is in ms, or 0 for the job's own lease. */
static int extend(struct request *request, struct bytes arg, uint64_t lease)
{
	struct timewheel_token token;
	struct options settings;
	struct receipt receipt;
	struct job job;
	int result = find_delivery(request->queue, arg, &receipt, &job, &token);

	if (!result && !lease) {
		result = job_settings(request->queue, &job, &settings);
		lease = settings.lease;
	}
	if (result)
		return result;
	return store->shared ? extend_row(request->queue, &job, lease) :
			       extend_delivery(request->queue, &receipt, lease);
}

/*
 * TW.EXTEND queue receipt ... [seconds]: the leases end this many seconds from now. The answer is
 * OK, or an array of 1 and 0 for several receipts.
 */
void verb_extend(struct request *request)
{
	int end = request->argc, result;
	struct receipt receipt;
	uint64_t lease = 0;

	if (end > 3 && !receipt_read(request->argv[end - 1], &receipt) &&
	    !arg_seconds(request, request->argv[--end], &lease))
		return;
	if (lease > MAX_SPAN || end == 3) {
		result = lease > MAX_SPAN ? -ERANGE : extend(request, request->argv[2], lease);
		answer(request, result, "OK");
		return;
	}
	reply_array(request->reply, end - 2);
	for (int i = 2; i < end; i++) {
		result = extend(request, request->argv[i], lease);
		answer_one(request, result);
	}
}
