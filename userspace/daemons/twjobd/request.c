// SPDX-License-Identifier: GPL-2.0-only
/*
 * This part has what verbs have in common: what a client may ask, the queue that it names, and
 * the answers that many verbs give. See verbs.h.
 */
#include <errno.h>

#include "allow.h"
#include "keep.h"
#include "verbs.h"

void answer_failure(struct request *request, int error)
{
	switch (-error) {
	case ENOSPC:
		reply_error(request->reply, "FULL there is no room for a job");
		break;
	case ENOMEM:
		reply_error(request->reply, "FULL the kernel has no memory for a job");
		break;
	case EAGAIN:
		reply_error(request->reply, "LOADING the queue is being loaded: try again");
		break;
	case EBUSY:
		reply_error(request->reply, "HELD the job is being worked on");
		break;
	case EALREADY:
		reply_error(request->reply, "BUSY another program is changing it: try again");
		break;
	case ENODEV:
		reply_error(request->reply, "UNAVAILABLE the queue has no wheel now: try again");
		/* This error may be the first sign that the wheel has been destroyed. */
		keep_lost(request->queue);
		break;
	default:
		reply_error(request->reply, "UNAVAILABLE the store cannot tell: see the log");
	}
}

void answer_no_queue(struct reply *reply)
{
	reply_error(reply, "NOQUEUE there is no such queue");
}

void reply_key(struct reply *reply, const struct job *job)
{
	if (job->key_length)
		reply_bytes(reply, job_key(job));
	else
		reply_null(reply);
}

struct queue *request_queue(struct bytes name)
{
	struct queue *queue = queue_find(name);

	/* A transaction has looked for its queues before its mark, see look_for_queues(). */
	if (queue || !store->shared || turn_is_marked())
		return queue;
	store->refresh();
	return queue_find(name);
}

bool request_may(struct request *request, unsigned int classes, const struct bytes *queue)
{
	unsigned int missing = classes & ~allow_classes(request->client, queue);

	if (missing && queue)
		reply_error(request->reply,
			    "NOPERM \"%s\" is not allowed for the queue %.*s: see allow in twjobd.conf(5)",
			    allow_word(missing), queue->length < NAME_SIZE ?
			    (int)queue->length : NAME_SIZE, queue->data);
	else if (missing)
		reply_error(request->reply,
			    "NOPERM \"%s\" is not allowed for any queue: see allow in twjobd.conf(5)",
			    allow_word(missing));
	return !missing;
}
