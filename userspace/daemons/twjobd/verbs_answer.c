// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers to deliveries: the job is done, is to come again, is to be kept aside, or
 * takes longer. They are good from any connection until the lease is over.
 */
#include <errno.h>
#include <stdio.h>

#include "job.h"
#include "rule.h"
#include "verbs.h"

/* With a shared store: the job's version, its queue, and the attempt. */
struct receipt {
	uint64_t job;
	union {
		uint64_t epoch, version;
	};
	union {
		uint64_t handle, queue;
	};
	uint32_t delivery;
};

/* As verbs_take.c writes it, to the letter. */
static bool parse_receipt(struct bytes arg, struct receipt *receipt)
{
	unsigned long long job, epoch, handle;
	char text[96];
	int end = 0;

	if (!arg_text(arg, text, sizeof(text)) ||
	    sscanf(text, "%16llx-%16llx-%16llx-%8x%n", &job, &epoch, &handle,
		   &receipt->delivery, &end) != 4 || text[end])
		return false;
	receipt->job = job;
	receipt->epoch = epoch;
	receipt->handle = handle;
	return receipt->delivery;
}

int answer_jobs(const struct command *command, int64_t *ids, int room)
{
	static const char * const names[] = { "TW.ACK", "TW.NACK", "TW.BURY", "TW.EXTEND" };
	struct receipt receipt;
	bool found = false;
	int n = 0;

	for (size_t i = 0; command->argc && i < ARRAY_SIZE(names); i++)
		found |= arg_is(command->argv[0], names[i]);
	for (int i = 2; found && i < command->argc && n < room; i++)
		if (parse_receipt(command->argv[i], &receipt))
			ids[n++] = receipt.job;
	return n;
}

/*
 * With a shared store: the row tells whether the delivery is out. Nobody changes it until
 * the turn ends.
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

/* The same for a lease that begins again. 0 is the queue's. */
static int extend_row(struct queue *queue, const struct job *job, uint64_t lease)
{
	struct timewheel_token token;

	lease = lease ?: queue->row.lease;
	if (lease > MAX_LEASE)
		return -ERANGE;
	/* What the wheel cannot do ends as a delivery that the row refuses. */
	if (!queue_token(queue, job, &token))
		queue_extend(queue, token.handle, token.delivery, lease);
	return turn_result(store->extend(job->id, lease));
}

/*
 * The job and token of a delivery that is out, and stays so during the commit: its
 * lease begins again. -ESTALE: it is not.
 */
static int find_delivery(struct queue *queue, struct bytes arg,
			 struct receipt *receipt, struct job *job,
			 struct timewheel_token *token, uint64_t lease)
{
	int result;

	if (!parse_receipt(arg, receipt))
		return -ESTALE;
	/* Whatever has been changed in this turn ended the delivery. */
	if (turn_has(receipt->job))
		return -ESTALE;
	if (store->shared) {
		result = find_by_row(queue, receipt, job, token);
		return result == -ENOENT ? -ESTALE : result;
	}
	if (receipt->epoch != queue->row.epoch)
		return -ESTALE;
	result = store->get(receipt->job, true, job);
	if (!result && (job->queue != queue->row.id || job->buried))
		result = -ENOENT;
	if (!result)
		result = queue_token_by_handle(queue, receipt->handle, token);
	if (!result && token->cookie != receipt->job)
		result = -ENOENT;
	if (!result)
		result = queue_extend(queue, receipt->handle, receipt->delivery,
				      lease);
	return result == -ENOENT ? -ESTALE : result;
}

/* The same for an answer that ends the delivery. */
static int find_last(struct queue *queue, struct bytes arg,
		     struct receipt *receipt, struct job *job,
		     struct timewheel_token *token)
{
	int result = find_delivery(queue, arg, receipt, job, token, 0);

	/* It is out, and has been extended as far as the wheel permits. */
	return result == -ERANGE ? 0 : result;
}

static void answer_stale(struct request *request, int result)
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
	struct job job;
	int result = find_last(request->queue, arg, &receipt, &job, &token);

	if (!result && job.rule) {
		result = rule_end(request->queue, &job, &token, receipt.delivery);
		if (result != -ENOENT)
			return result;
		result = 0;
	}
	return result ?: job_remove(request->queue, &job, &token, receipt.delivery);
}

/* TW.ACK queue receipt ...: 1, or for several a 1 or 0 each */
void verb_ack(struct request *request)
{
	int result;

	if (request->argc == 3) {
		result = ack(request, request->argv[2]);
		if (result)
			answer_stale(request, result);
		else
			reply_integer(request->reply, 1);
		return;
	}
	reply_array(request->reply, request->argc - 2);
	for (int i = 2; i < request->argc; i++) {
		result = ack(request, request->argv[i]);
		/* Then all answers of the turn tell that. */
		if (result && result != -ESTALE)
			turn_result(result);
		reply_integer(request->reply, !result);
	}
}

static void answer(struct request *request, int result, const char *text)
{
	if (result)
		answer_stale(request, result);
	else
		reply_simple(request->reply, text);
}

/* TW.NACK queue receipt [IN seconds | AT time]: OK, or BURIED after the last try */
void verb_nack(struct request *request)
{
	struct timewheel_token token;
	struct receipt receipt;
	struct job job = { };
	uint64_t due = now_ms();
	bool buried = false;
	int result;

	if (request->argc > 3 && !arg_due(request, 3, &due))
		return;
	result = find_last(request->queue, request->argv[2], &receipt, &job,
			   &token);
	if (!result) {
		if (!job.attempts)
			job.attempts = receipt.delivery;
		job.due = due;
		buried = request->queue->row.tries &&
			 job.attempts >= request->queue->row.tries;
		job.buried = buried;
		result = job_end_delivery(request->queue, &job, &token,
					  receipt.delivery);
	}
	answer(request, result, buried ? "BURIED" : "OK");
}

/* TW.BURY queue receipt */
void verb_bury(struct request *request)
{
	struct timewheel_token token;
	struct receipt receipt;
	struct job job;
	int result = find_last(request->queue, request->argv[2], &receipt, &job,
			       &token);

	if (!result) {
		job.buried = true;
		result = job_end_delivery(request->queue, &job, &token,
					  receipt.delivery);
	}
	answer(request, result, "OK");
}

/* TW.EXTEND queue receipt [seconds]: the lease ends so much from now */
void verb_extend(struct request *request)
{
	struct timewheel_token token;
	struct receipt receipt;
	uint64_t lease = 0;
	struct job job;
	int result;

	if (request->argc > 3 && !arg_seconds(request, request->argv[3], &lease))
		return;
	result = find_delivery(request->queue, request->argv[2], &receipt, &job,
			       &token, lease);
	if (!result && store->shared)
		result = extend_row(request->queue, &job, lease);
	answer(request, result, "OK");
}
