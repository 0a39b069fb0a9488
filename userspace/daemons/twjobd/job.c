// SPDX-License-Identifier: GPL-2.0-only
/*
 * One job, in the store and in its wheel: see job.h.
 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "job.h"
#include "turn.h"

/*
 * Registers a token for a job that has no token, because the queue is being loaded or the token
 * has been lost.
 */
static int load_token(struct queue *queue, const struct job *job,
		      struct timewheel_token *token)
{
	uint64_t handle;
	int result;

	if (queue->loaded)
		queue_mended++;
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

/* Finds the key by the tokens at its places. @busy: the turn has changed a job of these tokens. */
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

/* Finds the key by the store: a shared store finds the key's row by itself. */
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
	queue->row.buried -= job->buried && !job->done;
	queue->row.done -= job->done;
	queue->row.waiting -= job->waiting;
	turn_changed(queue, job, token, delivery, CHANGE_TO_GONE);
	return 0;
}

/* Keeps the job as done, without its body. */
static int make_done(struct queue *queue, struct job *job,
		     const struct timewheel_token *token, uint32_t delivery)
{
	uint64_t size = job->key_length + JOB_OVERHEAD, old = job->size;
	int result;

	job->buried = true;
	job->done = true;
	job->held_until = 0;
	job->size = size;
	result = turn_begin() ?: turn_result(store->change(job, (struct bytes) { "", 0 }));
	if (result)
		return result;
	queue->row.bytes -= old - size;
	queue->row.done++;
	queue_plan_burials(queue, job->due);
	turn_changed(queue, job, token, delivery, CHANGE_TO_PENDING);
	return 0;
}

int job_finish(struct queue *queue, struct job *job, const struct timewheel_token *token,
	       uint32_t delivery)
{
	struct options options;
	int result = job->unique ? store->get_options(job->id, &options) : -ENOENT;

	/* The job is removed, too, if its options are missing: see job_settings(). */
	if (result == -ENOENT)
		return job_remove(queue, job, token, delivery);
	if (result)
		return result;
	job->due = now_ms() + options.unique;
	return make_done(queue, job, token, delivery);
}

/* While the disk is full nothing is noted, because the end of the job matters more. */
int job_note_done(struct queue *queue, const struct job *job)
{
	struct done done;

	if (queue->row.keep_done <= 0 || store->is_full())
		return 0;
	done = (struct done) { .ended = now_ms(), .job = *job };
	/* The store does not count a first delivery. */
	done.job.attempts = job->attempts ?: 1;
	return turn_begin() ?:
	       turn_result(store->add_done(&done, job_done_since(queue)));
}

uint64_t job_done_since(const struct queue *queue)
{
	int64_t now = now_ms(), keep = queue->row.keep_done;

	if (keep <= 0 || queue->row.dropped)
		return MAX_DUE;
	return now > keep ? now - keep : 0;
}

int job_settings(const struct queue *queue, const struct job *job, struct options *settings)
{
	int result = 0;

	*settings = NO_OPTIONS;
	if (job->options)
		result = store->get_options(job->id, settings);
	/* Options are missing only in a store that another program has changed. */
	if (result == -ENOENT)
		result = 0;
	settings->lease = settings->lease ?: queue->row.lease;
	if (settings->tries == TRIES_OF_QUEUE)
		settings->tries = queue->row.tries;
	if (!settings->backoff) {
		settings->backoff = queue->row.backoff;
		settings->backoff_most = queue->row.backoff_most;
	}
	return result;
}

/* The time grows by up to a tenth, so that jobs that failed together do not return together. */
uint64_t job_backoff(const struct job *job, const struct options *settings)
{
	uint64_t ms = settings->backoff, seed[2] = { job->id, job->attempts }, chance;

	for (uint64_t i = 1; i < job->attempts && ms < settings->backoff_most; i++)
		ms *= 2;
	if (ms > settings->backoff_most)
		ms = settings->backoff_most;
	crypto_shorthash_siphash24((unsigned char *)&chance, (unsigned char *)seed,
				   sizeof(seed), store_secret);
	return ms + chance % (ms / 10 + 1);
}

int job_wait(struct queue *queue, struct job *job, const struct options *group)
{
	int result;

	job->waiting = true;
	result = turn_begin() ?: turn_result(store->change(job, SAME_BODY)) ?:
		 turn_result(store->add_waiting(job, group));
	if (!result)
		queue->row.waiting++;
	return result;
}

int job_end_wait(struct queue *queue, struct job *job)
{
	struct options group;
	int result;

	if (!job->waiting)
		return 0;
	result = store->get_options(job->id, &group) ?: turn_begin() ?:
		 turn_result(store->end_waiting(job, &group));
	if (result)
		return result;
	queue->row.waiting--;
	job->waiting = false;
	return 0;
}

int job_copy_more(const struct job *from, const struct job *to)
{
	struct options options;
	struct failure failure;
	int result = 0;

	if (from->options)
		result = store->get_options(from->id, &options) ?:
			 turn_result(store->save_options(to->id, &options));
	if (!result && from->failure)
		result = store->get_failure(from->id, &failure) ?:
			 turn_result(store->save_failure(to->id, &failure));
	return result;
}

/* While the disk is full nothing is noted, because the end of the delivery matters more. */
int job_note_failure(struct job *job, struct bytes reason)
{
	struct failure failure = { };
	int result = 0;

	if ((!reason.data && !job->buried) || store->is_full())
		return 0;
	if (!reason.data && job->failure)
		result = store->get_failure(job->id, &failure);
	if (result)
		return result;
	if (reason.data) {
		failure.length = reason.length < MAX_REASON ? reason.length : MAX_REASON;
		memcpy(failure.reason, reason.data, failure.length);
	}
	failure.at = now_ms();
	job->failure = true;
	return turn_begin() ?: turn_result(store->save_failure(job->id, &failure));
}
