/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each queue is a row of the store and a named wheel. The wheel has a token for each job, and is
 * the clock, the index by key, and the keeper of leases. Only queue.c and queue_due.c speak to
 * wheels. These two files know no connection.
 *
 * A token's cookie is the job's number. Its id is the job's number, too, if the job has no key.
 * Otherwise the id is one of a few numbers that come from a hash of the key. The token with the
 * id 0 is the stamp. Its cookie says for which epoch of the row the wheel was made, and its time
 * whether the wheel has all jobs of the store.
 *
 * Functions that return int return 0 or an error. -ENOENT: the wheel has no such token. -ENOSPC
 * or -ENOMEM: the wheel can have no further token. -ENODEV: the queue has no wheel at present.
 */
#ifndef TWJOBD_QUEUE_H
#define TWJOBD_QUEUE_H

#include <sys/queue.h>

#include <timewheel.h>

#include "histogram.h"
#include "resp.h"
#include "store.h"

/* There is a limit because of the open files: each queue has two. */
#define MAX_QUEUES	256
/* The token of a key may be at one of this many places, which are ids. */
#define PLACES		4

/*
 * These jobs are due, and no worker has taken them. @oldest is when the first job was due, in ns.
 */
struct due {
	uint64_t count, oldest;
};

/*
 * A walk through the buried jobs ends jobs that have been kept for long enough. The next walk
 * begins at @at, but not before @earliest. The present walk began at @began, and goes on behind
 * the job @after. @next is when the first of the jobs that the walk has left ends.
 */
struct burials {
	uint64_t at, earliest, began, next;	/* ms */
	int64_t after;
};

/* See group.h. */
struct groups {
	bool knows;		/* the jobs of groups that workers have are known */
	/*
	 * While @looks, waiting jobs are looked at from the group @from on, of which @opened have
	 * been opened.
	 */
	bool looks;
	uint64_t opened;
	size_t length;
	char from[MAX_KEY + 1];
};

/* See limit.h. */
struct limits {
	bool shut;		/* the queue is shut until @timer reopens it */
	sd_event_source *timer;
	uint64_t full;		/* ns: when the bucket of the rate is full */
	/*
	 * The buffer has all deliveries that are out, and maybe some that have ended, if this
	 * part @knows.
	 */
	struct buffer out;
	bool knows;
	size_t many;		/* with this many deliveries it is time to forget ended ones */
	uint64_t first;		/* ns: no lease ends before this time */
};

/*
 * @plain and @bound are two open files of the wheel. The service manager keeps @plain, so that
 * its deliveries outlive this process. The deliveries of @bound are given back as soon as this
 * process ends.
 */
struct queue {
	LIST_ENTRY(queue) next;
	struct queue_row row;
	struct queue_row saved;		/* as the store has it */
	struct queue_row marked;	/* see turn_mark() */
	struct tw_wheel *plain, *bound;
	sd_event_source *due;		/* the wheel has something to read */
	struct tw_cursor *walk;		/* see queue_walk() */
	struct tw_cursor *survey;	/* see queue_due() */
	sd_event_source *surveys;
	struct due counting, counted;	/* counts of the present survey, and of the last one */
	struct histogram lateness;	/* times from when jobs were due until workers got them */
	struct burials burials;
	struct limits limits;
	struct groups groups;
	uint64_t trim_at;		/* ms: when done jobs are looked at next, see keep.c */
	uint64_t asked;			/* ms: when a worker last asked */
	bool loaded;			/* the wheel has all jobs */
	bool made;			/* this process has made the wheel */
	bool complained;		/* see keep_complain() */
	bool unsettled;			/* this turn moves or ends pending tokens */
};

LIST_HEAD(queues, queue);
extern struct queues queues;

/* Plans a look at the buried jobs for @end, the time until which a buried job is kept. */
static inline void queue_plan_burials(struct queue *queue, uint64_t end)
{
	struct burials *burials = &queue->burials;

	if (end < burials->at)
		burials->at = end;
	if (end < burials->next)
		burials->next = end;
}

struct queue *queue_find(struct bytes name);
struct queue *queue_by_id(int64_t id);
struct queue *queue_new(const struct queue_row *row);
/* Closes the wheel, and frees the queue. */
void queue_free(struct queue *queue);

/*
 * Opens the wheel by the file that the service manager has kept, opens it by its name, or makes
 * it. The queue is @loaded if the wheel's stamp says this. A wheel that has another epoch's
 * stamp, or no stamp, is destroyed, and the row gets a new epoch. After an error a wheel that
 * existed still exists. -EBUSY: the wheel is another daemon's. Other errors are errors of
 * tw_wheel_create(3) and tw_wheel_open_named(3).
 */
int queue_open_wheel(struct queue *queue);
/* Returns the highest limit of a queue's jobs: a wheel can have no more tokens. */
uint64_t queue_most_jobs(void);
void queue_close_wheel(struct queue *queue);
void queue_destroy_wheel(struct queue *queue);
/*
 * Destroys the wheel of a dropped queue at a start: it is left if the daemon was killed during
 * the drop.
 */
void queue_destroy_left(struct queue *queue);
/* Gives the wheel its stamp. The caller has made the row's epoch durable. */
int queue_begin_load(struct queue *queue);
/* Marks the wheel as loaded. The caller has registered all jobs. */
void queue_end_load(struct queue *queue);

/*
 * Gets the token of a job: with a shared store as the job's row says, otherwise as the wheel has
 * it.
 */
int queue_find_job(struct queue *queue, const struct job *job,
		   struct timewheel_token *token);
/* The two functions get a token as the wheel has it, by its job or by its handle. */
int queue_token(struct queue *queue, const struct job *job,
		struct timewheel_token *token);
int queue_token_by_handle(struct queue *queue, uint64_t handle,
			  struct timewheel_token *token);
/* Gets the tokens at the places of a key. */
int queue_places(struct queue *queue, struct bytes key, uint64_t ids[PLACES],
		 struct timewheel_token tokens[PLACES]);

/*
 * Registers a token for a job, at a free place of its key. -EEXIST: the job has a token. The
 * token of a buried job is parked, so that its key stays known. A shared store knows keys by
 * itself, and a buried job gets no token there.
 */
int queue_register(struct queue *queue, const struct job *job, uint64_t *handle);

/* Reads deliveries. Returns their number. */
int queue_read(struct queue *queue, bool bound, struct timewheel_event *events,
	       int count);
/*
 * Lets the lease end @ms from now, or in the queue's lease if @ms is 0. -ESTALE: the delivery has
 * ended.
 */
int queue_extend(struct queue *queue, uint64_t handle, uint32_t delivery,
		 uint64_t ms);
/* Lets the lease of a delivery last @ms from when it was taken, instead of the queue's lease. */
void queue_set_lease(struct queue *queue, const struct timewheel_event *event, uint64_t ms);
/* Tells whether the delivery is out, and gets its token. */
bool queue_holds(struct queue *queue, uint64_t handle, uint32_t delivery,
		 struct timewheel_token *token);
/*
 * Registers a token for a job that a worker already has, and takes its delivery. The lease lasts
 * until @lease_end, in ns. -EAGAIN: the wheel does not deliver the token.
 */
int queue_hold(struct queue *queue, const struct job *job, uint64_t lease_end,
	       struct timewheel_event *event);
/*
 * Shortens leases to what was left of them after the clock has been set back by @back ns, because
 * leases end by this clock.
 */
void queue_set_back(struct queue *queue, uint64_t back);
/* Ends a delivery: the job is due again at @due ms. -ESTALE: the delivery has ended already. */
int queue_give_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		    uint64_t due);
/*
 * Ends a delivery of a job whose group permits it at @due ms. The token that is due at that time
 * is marked in its cookie. queue_read() tells this mark in the field @missed of the event, which
 * has no other use in these wheels. A job that comes for another reason is not granted: because
 * of the end of a lease, an answer, or a move.
 */
void queue_grant(struct queue *queue, const struct timewheel_event *event, uint64_t due);
bool queue_is_granted(const struct timewheel_event *event, const struct job *job);
/*
 * Ends a delivery that no worker has got, so that the delivery counts as no try. The first
 * delivery of each token counts as one, so a token that had only this delivery is replaced by a
 * new token.
 */
void queue_take_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		     uint64_t due);
/* Calls @each for all tokens. */
void queue_each_token(struct queue *queue,
		      void (*each)(struct queue *queue, const struct timewheel_token *token,
				   void *arg), void *arg);
/*
 * Reads the next tokens of a walk through all tokens but the stamp. Returns their number, or 0 at
 * the end of the walk.
 */
int queue_walk(struct queue *queue, struct timewheel_token *tokens, int count);

/*
 * Parts above this one set these functions, as main.c says. queue_opened() is called when the
 * queue has a wheel now, or when it was shut and may have jobs to hand out. queue_changed() is
 * called when a committed change of the job ends the delivery that a worker may have.
 */
extern void (*queue_opened)(struct queue *queue);
extern void (*queue_changed)(int64_t job);

/* This figure counts tokens that were not as the store has their jobs. */
extern uint64_t queue_mended;

/*
 * queue_due.c: shuts a queue at its limit until @at, in ns of CLOCK_REALTIME, or until
 * queue_reopen(). @at is UINT64_MAX if no time is known.
 */
void queue_shut(struct queue *queue, uint64_t at);
/* queue_due.c: reopens a queue after the end of a delivery or a change of a setting. */
void queue_reopen(struct queue *queue);
/* Forgets the known ends of leases, which have changed: see limit.h. */
void queue_forget_leases(struct queue *queue);

/* These are the effects of a committed change on a token. */
enum change_to {
	CHANGE_TO_GONE		= 0,
	CHANGE_TO_PENDING	= 1,
	/* The token is a new one that has never been delivered. */
	CHANGE_TO_NEW		= 2,
};

/*
 * A change that the store has committed, and that the wheel still has to be told. The store keeps
 * the changes of the last turn: to apply a change again changes nothing.
 */
struct change {
	int64_t queue;
	int64_t job;
	uint64_t epoch;
	uint64_t id;		/* the token's id */
	uint64_t handle;
	uint64_t due;		/* ms */
	uint32_t delivery;	/* the delivery that the change ends, or 0 */
	uint32_t to;		/* enum change_to */
};

struct change queue_change(const struct queue *queue, const struct job *job,
			   const struct timewheel_token *token,
			   uint32_t delivery, enum change_to to);
void queue_apply(struct queue *queue, const struct change *change);
/* Removes a token for which the store has no job. */
void queue_unregister(struct queue *queue, uint64_t handle);

/* queue_due.c: gets the counts of the queue's wheel. Returns false if there is no wheel. */
bool queue_counts(struct queue *queue, struct timewheel_info *info);
/*
 * queue_due.c: counts the jobs that are due. If @info says that a job may be due, a survey looks
 * at every token: at SURVEY tokens now, and at the rest in later turns of the loop. Until the
 * survey ends, the answer comes from the last survey.
 */
#define SURVEY		5000
void queue_end_survey(struct queue *queue);
struct due queue_due(struct queue *queue, const struct timewheel_info *info);
/* Returns the deadline, in ns, of the token of a job that is due at @due ms. */
static inline uint64_t queue_deadline(uint64_t due)
{
	return (due - store_ahead) * NSEC_PER_MSEC;
}

#endif /* TWJOBD_QUEUE_H */
