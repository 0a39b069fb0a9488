/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues, each a row of the store and a named wheel. The wheel has a token for
 * each job, and is the clock, the index by key, and the keeper of leases. Nobody
 * but queue.c and queue_due.c speaks to wheels. These know no connection.
 *
 * A token's cookie is the job's number. Its id is the same for a job without a
 * key, else one of a few numbers that a hash of the key gives. The token with the
 * id 0 is the stamp. Its cookie says for which epoch of the row the wheel was made, and
 * its time whether the wheel has all jobs of the store.
 *
 * Functions that return int give 0, or -ENOENT: the wheel has no such token;
 * -ENOSPC or -ENOMEM: it can have no further one; -ENODEV: the queue has no wheel at
 * present.
 */
#ifndef TWJOBD_QUEUE_H
#define TWJOBD_QUEUE_H

#include <sys/queue.h>

#include <timewheel.h>

#include "histogram.h"
#include "resp.h"
#include "store.h"

/* A limit for the open files: each queue has two. */
#define MAX_QUEUES	256
/* Places where the token of a key may be. */
#define PLACES		4

/* Jobs that are due, and that no worker has taken. @oldest: when the first was due, ns. */
struct due {
	uint64_t count, oldest;
};

/*
 * A walk through the buried jobs, to end those that have been kept for long enough. @at: when
 * the next one is to begin, and not before @earliest. @began: when this one did. @after: behind
 * which job it goes on. @next: when the first one ends of the jobs that it has left.
 */
struct burials {
	uint64_t at, earliest, began, next;	/* ms */
	int64_t after;
};

/* See group.h. */
struct groups {
	bool knows;		/* which jobs of groups workers have */
	/* Waiting jobs are looked at, from this group on, of which so many have been opened. */
	bool looks;
	uint64_t opened;
	size_t length;
	char from[MAX_KEY + 1];
};

/* See limit.h. */
struct limits {
	bool shut;		/* the queue, until @timer reopens it */
	sd_event_source *timer;
	uint64_t full;		/* when the bucket of the rate is full, ns */
	/* Deliveries, at least those that are out, if this part @knows all. */
	struct buffer out;
	bool knows;
	size_t many;		/* with so many it is time to forget those that have ended */
	uint64_t first;		/* no lease ends before: ns */
};

/*
 * @plain and @bound are two open files of the wheel. The service manager keeps the
 * first, so that what it holds outlives this process; what the second holds is
 * given back as soon as this process ends.
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
	struct due counting, counted;	/* by the present survey, and by the last one */
	struct histogram lateness;	/* from when jobs were due until workers got them */
	struct burials burials;
	struct limits limits;
	struct groups groups;
	uint64_t trim_at;		/* when done jobs are looked at next, see keep.c: ms */
	uint64_t asked;			/* when a worker asked last, ms */
	bool loaded;			/* the wheel has all jobs */
	bool made;			/* this process has made the wheel */
	bool complained;		/* see keep_complain() */
	bool unsettled;			/* this turn moves or ends pending tokens */
};

LIST_HEAD(queues, queue);
extern struct queues queues;

/* A buried job is kept until then. */
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
 * Opens the wheel, by the file that the service manager has kept if there is one,
 * or makes one. It is @loaded if its stamp says so. A wheel with the stamp of another
 * epoch, or none, is destroyed, and the row gets a new epoch. After an error
 * a wheel that was there still is. -EBUSY: it is another daemon's. Other errors are those of
 * tw_wheel_create(3) and tw_wheel_open_named(3).
 */
int queue_open_wheel(struct queue *queue);
/* The limit of a queue's jobs may not be higher: a wheel has no more tokens. */
uint64_t queue_most_jobs(void);
void queue_close_wheel(struct queue *queue);
void queue_destroy_wheel(struct queue *queue);
/* At a start, for a dropped queue: its wheel is there if the daemon was killed in the drop. */
void queue_destroy_left(struct queue *queue);
/* The row's epoch is durable: the wheel gets its stamp. */
int queue_begin_load(struct queue *queue);
/* All jobs have been registered. */
void queue_end_load(struct queue *queue);

/* The token of a job, as its row has it with a shared store, else as the wheel has it. */
int queue_find_job(struct queue *queue, const struct job *job,
		   struct timewheel_token *token);
/* A token as the wheel has it: by its job, or by its handle. */
int queue_token(struct queue *queue, const struct job *job,
		struct timewheel_token *token);
int queue_token_by_handle(struct queue *queue, uint64_t handle,
			  struct timewheel_token *token);
/* The tokens at the places of a key. */
int queue_places(struct queue *queue, struct bytes key, uint64_t ids[PLACES],
		 struct timewheel_token tokens[PLACES]);

/*
 * Registers a token for a job, at a place of its key that is free. -EEXIST: it has one.
 * That of a buried job is parked, so that its key stays known; a shared store knows keys by
 * itself, and there is none.
 */
int queue_register(struct queue *queue, const struct job *job, uint64_t *handle);

/* Reads deliveries. Returns their number. */
int queue_read(struct queue *queue, bool bound, struct timewheel_event *events,
	       int count);
/* -ESTALE: the delivery is not out any more. @ms: 0 for the queue's lease. */
int queue_extend(struct queue *queue, uint64_t handle, uint32_t delivery,
		 uint64_t ms);
/* The lease lasts so many ms from when the delivery was taken, not that of the queue. */
void queue_set_lease(struct queue *queue, const struct timewheel_event *event, uint64_t ms);
/* Whether the delivery is out. Gets its token. */
bool queue_holds(struct queue *queue, uint64_t handle, uint32_t delivery,
		 struct timewheel_token *token);
/*
 * A job that a worker has already gets a token, which is delivered here, and whose lease
 * lasts until @lease_end, ns. -EAGAIN: the wheel does not deliver it.
 */
int queue_hold(struct queue *queue, const struct job *job, uint64_t lease_end,
	       struct timewheel_event *event);
/*
 * The clock has been set back by so many ns. Leases, which end by this clock, are
 * shortened to what was left of them.
 */
void queue_set_back(struct queue *queue, uint64_t back);
/* Ends a delivery: the job is due again at @due ms. -ESTALE: it is not out any more. */
int queue_give_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		    uint64_t due);
/*
 * Ends a delivery of a job whose group has its turn at @due ms. The token that is due then
 * tells it by its cookie, and queue_read() by @missed of the event, which these wheels do not
 * use. A job that comes for another reason has not been granted: a lease that is over, an
 * answer, a move.
 */
void queue_grant(struct queue *queue, const struct timewheel_event *event, uint64_t due);
bool queue_is_granted(const struct timewheel_event *event, const struct job *job);
/*
 * Ends a delivery that no worker has got, so that it counts no try. Each token's first
 * delivery counts one: instead of such a token there is a new one then.
 */
void queue_take_back(struct queue *queue, uint64_t handle, uint32_t delivery,
		     uint64_t due);
/* Tells of all tokens. */
void queue_each_token(struct queue *queue,
		      void (*each)(struct queue *queue, const struct timewheel_token *token,
				   void *arg), void *arg);
/*
 * The next tokens of a walk through all but the stamp. Returns their number, 0 at
 * its end.
 */
int queue_walk(struct queue *queue, struct timewheel_token *tokens, int count);

/*
 * What parts above do, as main.c says. @queue_opened: the queue has a wheel now, or it was shut
 * and may have jobs to hand out. @queue_changed: a committed change of the job ends the delivery
 * that a worker has, if a worker has one.
 */
extern void (*queue_opened)(struct queue *queue);
extern void (*queue_changed)(int64_t job);

/* How many tokens were not as the store has their jobs. */
extern uint64_t queue_mended;

/*
 * queue_due.c: the queue is at its limit, and is shut until @at, ns of CLOCK_REALTIME, or until
 * queue_reopen(). UINT64_MAX: no time is known.
 */
void queue_shut(struct queue *queue, uint64_t at);
/* Also there: a delivery has ended, or a setting has changed. */
void queue_reopen(struct queue *queue);
/* Leases do not end when they were to: see limit.h. */
void queue_forget_leases(struct queue *queue);

/* What a committed change makes of a token. */
enum change_to {
	CHANGE_TO_GONE		= 0,
	CHANGE_TO_PENDING	= 1,
	/* One that has never been delivered. */
	CHANGE_TO_NEW		= 2,
};

/*
 * A change that the store has committed, and the wheel is to be told. The store
 * keeps these of the last turn: applying one again changes nothing.
 */
struct change {
	int64_t queue;
	int64_t job;
	uint64_t epoch;
	uint64_t id;		/* of the token */
	uint64_t handle;
	uint64_t due;		/* ms */
	uint32_t delivery;	/* the one that it ends, 0: none */
	uint32_t to;		/* enum change_to */
};

struct change queue_change(const struct queue *queue, const struct job *job,
			   const struct timewheel_token *token,
			   uint32_t delivery, enum change_to to);
void queue_apply(struct queue *queue, const struct change *change);
/* Removes a token for which the store has no job. */
void queue_unregister(struct queue *queue, uint64_t handle);

/* queue_due.c: what the queue's wheel counts. False: there is no wheel. */
bool queue_counts(struct queue *queue, struct timewheel_info *info);
/*
 * Also there: what is due. If @info says that a job may be due, a survey counts by a look
 * at every token. It looks at SURVEY tokens now, and at the rest in later turns of the
 * loop; until it ends, the answer is that of the survey before.
 */
#define SURVEY		5000
void queue_end_survey(struct queue *queue);
struct due queue_due(struct queue *queue, const struct timewheel_info *info);
/* The deadline that the token of a job has which is due at @due ms: ns. */
static inline uint64_t queue_deadline(uint64_t due)
{
	return (due - store_ahead) * NSEC_PER_MSEC;
}

#endif /* TWJOBD_QUEUE_H */
