// SPDX-License-Identifier: GPL-2.0-only
/*
 * One job, in the store and in its wheel: see job.h.
 */
#include <errno.h>
#include <string.h>

#include "job.h"
#include "keep.h"
#include "rule.h"
#include "turn.h"

/*
 * Registers a token for a job that has none: the queue is being loaded, or the token has
 * been lost.
 */
static int load_token(struct queue *queue, const struct job *job,
		      struct timewheel_token *token)
{
	uint64_t handle;
	int result;

	if (queue->loaded)
		keep_count_mended();
	result = queue_register(queue, job, &handle);
	return result ?: queue_token_by_handle(queue, handle, token);
}

int job_find(struct queue *queue, int64_t id, bool change, struct job *job,
	     struct timewheel_token *token)
{
	int result = 0;

	if (turn_has(id))
		turn_end();
	if (change && store->shared)
		result = turn_begin();
	if (!result)
		result = store->get(id, change, job);
	if (!result && job->queue != queue->row.id)
		result = -ENOENT;
	if (result)
		return result;
	result = queue_find_job(queue, job, token);
	return result == -ENOENT ? load_token(queue, job, token) : result;
}

/* Finds the key by the tokens at its places. @busy: the turn has changed one of their jobs. */
static int find_by_places(struct queue *queue, struct bytes key, struct job *job,
			  struct timewheel_token *token, bool *busy)
{
	struct timewheel_token tokens[PLACES];
	uint64_t ids[PLACES];
	int result = queue->loaded ?
		     queue_places(queue, key, ids, tokens) : -EAGAIN;

	*busy = false;
	for (int i = 0; !result && i < PLACES; i++) {
		if (!tokens[i].state)
			continue;
		*busy |= turn_has(tokens[i].cookie);
		result = store->get(tokens[i].cookie, true, job);
		if (!result && job->queue == queue->row.id &&
		    job->key_length == key.length &&
		    !memcmp(job->key, key.data, key.length)) {
			*token = tokens[i];
			return 0;
		}
		if (result == -ENOENT)
			result = 0;
	}
	return result ?: -ENOENT;
}

/* A shared store finds the key's row by itself. */
static int find_by_store(struct queue *queue, struct bytes key, struct job *job,
			 struct timewheel_token *token, bool *busy)
{
	int result = turn_begin() ?: store->find_key(queue->row.id, key, job);

	*busy = !result && turn_has(job->id);
	return result ?: queue_find_job(queue, job, token);
}

int job_find_key(struct queue *queue, struct bytes key, struct job *job,
		 struct timewheel_token *token)
{
	int (*find)(struct queue *queue, struct bytes key, struct job *job,
		    struct timewheel_token *token, bool *busy) =
		store->shared ? find_by_store : find_by_places;
	bool busy;
	int result = find(queue, key, job, token, &busy);

	if (!busy)
		return result;
	turn_end();
	return find(queue, key, job, token, &busy);
}

int job_change(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery, enum change_to to)
{
	int result = turn_begin() ?: turn_result(store->change(job, SAME_BODY));

	if (!result)
		turn_changed(queue, job, token, delivery, to);
	return result;
}

int job_remove(struct queue *queue, const struct job *job,
	       const struct timewheel_token *token, uint32_t delivery)
{
	int result = turn_begin() ?: turn_result(store->remove(job->id));

	if (result)
		return result;
	queue->row.jobs--;
	queue->row.bytes -= job->size;
	queue->row.buried -= job->buried;
	turn_changed(queue, job, token, delivery, CHANGE_TO_GONE);
	return 0;
}

int job_end_delivery(struct queue *queue, struct job *job,
		     const struct timewheel_token *token, uint32_t delivery)
{
	int result = -ENOENT;

	job->held_until = 0;
	if (job->rule && job->buried)
		result = rule_end(queue, job, token, delivery);
	if (result != -ENOENT)
		return result;
	queue->row.buried += job->buried;
	return job_change(queue, job, token, delivery, CHANGE_TO_PENDING);
}
