/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store keeps jobs and queues, which survive a power cut. The store is the truth: a row is a
 * job that was accepted and has not ended. The store knows no connection and no wheel.
 *
 * Functions return 0, or -ENOENT: there is no such row; -ENOSPC: the disk is full;
 * -EIO: the store cannot tell now; -EALREADY: another user of the store is changing the
 * row. After a change has failed the turn cannot be committed any more.
 *
 * Several daemons can use a shared store. There a job's row tells which daemon owns the job. The
 * owner has a token for the job. The row, and not the token, tells whether a worker has the job.
 */
#ifndef TWJOBD_STORE_H
#define TWJOBD_STORE_H

#include "../../calendar/calendar.h"
#include "twjobd.h"

#define NAME_SIZE	32
/* This many bytes of a failure's reason are kept. */
#define MAX_REASON	1024

struct figures;

/* A rate permits at most @jobs jobs in @per ms. There is no limit if @jobs is 0. */
struct rate {
	uint64_t jobs, per;
};

/*
 * @epoch names the wheel that has been loaded for the queue. @jobs, @bytes, @buried, @done and
 * @waiting count what the queue has at present.
 */
struct queue_row {
	int64_t id;
	char name[NAME_SIZE];
	uint64_t lease;		/* ms */
	uint64_t tries;		/* 0: without limit */
	uint64_t max_jobs;
	uint64_t max_bytes;
	uint64_t backoff;	/* ms, see struct options */
	uint64_t backoff_most;
	uint64_t keep_buried;	/* ms; 0: for ever */
	int64_t keep_done;	/* ms; 0: no done jobs; KEEP_NO_MORE */
	uint64_t limit;		/* jobs that workers may have at once; 0: no limit */
	struct rate rate;	/* the rate of jobs that are handed out */
	struct rate group_rate;	/* the rate of jobs of one group */
	uint64_t group_limit;	/* jobs of one group that workers may have at once */
	uint64_t epoch;
	uint64_t jobs;
	uint64_t bytes;
	uint64_t buried;	/* buried jobs that are not done */
	uint64_t done;		/* done jobs */
	uint64_t waiting;	/* jobs that wait for their group */
	bool paused;
	bool draining;
	bool dropped;
};

/* No done job is kept any more, but rows of some done jobs may be left. */
#define KEEP_NO_MORE	(-1)

/*
 * A job without its body. @attempts counts deliveries, but stays 0 during the first delivery.
 * @done: a worker has done the job, which is buried without its body until @due, so that its key
 * stays known. @waiting: the job was due, and waits for its group. @rule: the job comes again by
 * a rule. @options, @failure: the store has options or a failure of the job. @unique: an option
 * asks for a unique key.
 *
 * The last three fields are for a shared store, which counts the first delivery, too. Receipts
 * have @version. A worker has the job until @held_until. @foreign: another daemon owns the job.
 */
struct job {
	int64_t id;
	int64_t queue;
	uint64_t due;		/* ms */
	uint64_t attempts;
	uint64_t size;		/* bytes of body and key */
	bool buried, done, waiting;
	bool rule, options, failure, unique;
	size_t key_length;	/* 0: no key */
	char key[MAX_KEY];
	uint64_t version;
	uint64_t held_until;	/* ms */
	bool foreign;
};

/* Returns the job's key, which is empty if the job has no key. */
static inline struct bytes job_key(const struct job *job)
{
	return (struct bytes) { job->key, job->key_length };
}

/*
 * A rule by which a job comes again. The rule began at @start, in seconds since 1970. The job is
 * the occurrence @at.
 */
struct rule {
	char text[CALENDAR_TEXT], zone[CALENDAR_ZONE];
	int64_t start;
	enum missed {
		MISSED_LAST, MISSED_ALL, MISSED_NONE
	} missed;
	bool overlap;
	struct occurrence at;
};

/*
 * A job may have these options instead of its queue's settings. A try that fails makes the job
 * due after @backoff, which doubles with each further failure up to @backoff_most. Once the job
 * is done, its key stays known for @unique. The limits of groups of the queue count the job for
 * @group.
 */
struct options {
	uint64_t lease;		/* ms; 0: the queue's lease */
	int64_t tries;		/* 0: without limit; TRIES_OF_QUEUE */
	uint64_t backoff;	/* ms; 0: the queue's backoff */
	uint64_t backoff_most;
	uint64_t unique;	/* ms */
	uint8_t group_length;	/* 0: no group */
	char group[MAX_KEY];
};

#define TRIES_OF_QUEUE	(-1)
#define NO_OPTIONS	((struct options) { .tries = TRIES_OF_QUEUE })

/* The last failure of a job has the time of the failure, and the reason that the worker gave. */
struct failure {
	uint64_t at;		/* ms */
	size_t length;
	char reason[MAX_REASON];
};

/*
 * The store keeps this of a job that a worker has done: its number, queue and key, when it was
 * due, when it ended, and how many deliveries it took. Later jobs of a queue have a higher @n.
 */
struct done {
	int64_t n;
	uint64_t ended;		/* ms */
	struct job job;
};

/*
 * A receipt names a delivery. In a shared store it has the version of the job's row instead of
 * the wheel's epoch, and the queue instead of the token's handle.
 */
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

/* A delivery that is out, and the end of its lease in ns by the wheel's clock. */
struct held {
	struct receipt receipt;
	uint64_t lease_end;
};

/* With this body store->change() leaves the body as it is. */
#define SAME_BODY	((struct bytes) { })

/*
 * Returns when the job can be handed out: it must be due, no worker may have it, and it must be
 * neither buried nor waiting.
 */
static inline uint64_t job_next_due(const struct job *job)
{
	if (job->buried || job->waiting)
		return PARKED;
	return job->due > job->held_until ? job->due : job->held_until;
}

/*
 * A kind of store. @name is the word for it in the configuration, or NULL for the kind that a
 * path means.
 */
struct store {
	const char *name;
	bool shared;
	/* Makes the tables. NULL: @open makes them. */
	void (*init)(const char *path);
	/* Opens the store, or makes a new one. Exits if the store cannot be trusted. */
	void (*open)(const char *path);
	/* The daemon calls this function when the wheels are open. NULL: there is nothing to do. */
	void (*start)(void);
	/* A shared store only: applies changes of queues that other daemons have made. */
	void (*refresh)(void);
	void (*close)(void);

	int (*each_queue)(void (*each)(const struct queue_row *row));

	/*
	 * Changes are made between the begin and the end of a turn, which is @commit or
	 * @roll_back. A commit that ends with -EINPROGRESS is in doubt: it may have been carried
	 * out. @last_turn gives the list of the last commit, also of an earlier process.
	 */
	int (*begin)(void);
	int (*commit)(struct bytes list);
	void (*roll_back)(void);
	/* Ends what @get and @body have begun since the last turn. May be NULL. */
	void (*end_reading)(void);
	/*
	 * Within a turn @back undoes all changes since @mark, and @keep keeps them. Both end the
	 * mark. NULL: the store can undo only whole turns.
	 */
	int (*mark)(void);
	int (*back)(void);
	int (*keep)(void);
	int (*last_turn)(void (*use)(void *arg, struct bytes list), void *arg);

	/* Saves a queue. A new queue has the id 0, and gets an id. */
	int (*save_queue)(struct queue_row *row);
	/* Saves the epoch, and adds to the counts what they have grown since they were @saved. */
	int (*save_counts)(struct queue_row *row, const struct queue_row *saved);
	int (*remove_queue)(int64_t id);

	/*
	 * Returns the number of a new job, or 0 if the store cannot tell now. No number is given
	 * twice, not even after a crash.
	 */
	int64_t (*new_id)(void);
	/*
	 * -EEXIST: another user of the store has added a job with this key. -EALREADY: another
	 * user is adding a job with this key.
	 */
	int (*add)(const struct job *job, struct bytes body);
	/*
	 * Saves the whole job but its queue, key and rule. SAME_BODY leaves the body as it is.
	 * After this no worker has the job, and this daemon owns it.
	 */
	int (*change)(const struct job *job, struct bytes body);
	/* Removes a job, with all that the store has of it. */
	int (*remove)(int64_t id);
	int (*save_rule)(int64_t job, const struct rule *rule);
	int (*get_rule)(int64_t job, struct rule *rule);
	int64_t (*count_rules)(void);
	/*
	 * Adds a done job, and gives it @n. The queue's two oldest done jobs are removed if they
	 * ended before @before.
	 */
	int (*add_done)(const struct done *done, uint64_t before);
	/*
	 * Looks at the queue's @count oldest done jobs, and removes those jobs that ended before
	 * @before. Returns how many jobs are removed.
	 */
	int (*end_done)(int64_t queue, uint64_t before, int count);
	/*
	 * Gets the newest done jobs of the queue below the number @n, at most @count jobs.
	 * Returns their number.
	 */
	int (*next_done)(int64_t queue, int64_t n, struct done *done, int count);
	/*
	 * The job's row says whether the job has options. NO_OPTIONS removes the options of the
	 * job.
	 */
	int (*save_options)(int64_t job, const struct options *options);
	int (*get_options)(int64_t job, struct options *options);
	/*
	 * Jobs that wait for their groups are in the order of groups, and within a group as they
	 * are due. @first_waiting gets the first job of the first group that is not before @from.
	 * NULL for a shared store.
	 */
	int (*add_waiting)(const struct job *job, const struct options *group);
	int (*end_waiting)(const struct job *job, const struct options *group);
	int (*first_waiting)(int64_t queue, struct bytes from, struct options *group,
			     int64_t *id);
	int (*save_failure)(int64_t job, const struct failure *failure);
	int (*get_failure)(int64_t job, struct failure *failure);

	/* Gets a job. With @change the job stays as it is until the present turn ends. */
	int (*get)(int64_t id, bool change, struct job *job);
	/* A shared store only: gets the job of a key, as @get does with @change. */
	int (*find_key)(int64_t queue, struct bytes key, struct job *job);
	/*
	 * A shared store only: workers get the jobs of @ids that are due and that this daemon
	 * owns. The result for each job is 0 or an error. -EAGAIN: the job is held, buried, or
	 * not due. -EBADMSG: the job is a worker's, but its body cannot be read.
	 */
	int (*claim)(const struct queue_row *queue, const int64_t *ids, int count,
		     struct job *jobs, int *results);
	/* A shared store only: a worker has the job for @ms from now. */
	int (*extend)(int64_t id, uint64_t ms);
	/*
	 * Ends a delivery of a shared store. @counts tells whether it counts as a try. It is no
	 * error if the delivery has ended before.
	 */
	int (*release)(int64_t id, uint64_t version, bool counts);
	/* A shared store only: reads these jobs at once, before @get is called for each of them. */
	int (*want)(const int64_t *ids, int count, bool change);

	/*
	 * The two functions keep deliveries for the next start, see held.h. @take_held, which is
	 * called outside of a turn, gives all deliveries in the order of their jobs' numbers, and
	 * has removed them durably when it returns. NULL: jobs do not outlive the process, or a
	 * job's row tells which worker has the job.
	 */
	int (*save_held)(const struct held *held);
	int (*take_held)(void (*each)(const struct held *held));

	/* Hands the body to @use. */
	int (*body)(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg);
	/*
	 * Gets the next jobs behind the row @after, at most @count jobs. @buried is 0 for jobs of
	 * all queues, or a queue whose buried jobs, done jobs included, are wanted. Returns the
	 * number of jobs.
	 */
	int (*next)(int64_t after, int64_t buried, struct job *jobs, int count);
	/* Reads the jobs of all queues that have a rule. */
	int (*next_rules)(int64_t after, struct job *jobs, int count);
	/* Reads the jobs that this daemon owns. NULL: this daemon owns all jobs. */
	int (*next_own)(int64_t after, struct job *jobs, int count);
	/*
	 * A shared store only: tells for each of these jobs whether it exists and this daemon
	 * owns it.
	 */
	int (*find_own)(const int64_t *ids, int count, bool *own);

	/*
	 * Gets by how many ns the wall clock was ahead of a clock that is never set, as it was
	 * last saved. Returns false if it was never saved. NULL: the store does not keep this
	 * offset.
	 */
	bool (*clock)(int64_t *offset);
	/* Saves the offset, outside of a turn. NULL: the store does not keep it. */
	void (*save_clock)(int64_t offset);

	/* Tells whether the disk was full, and has no room yet for new jobs. */
	bool (*is_full)(void);
	/* Does a part of the housekeeping, outside of a turn. NULL: there is no housekeeping. */
	void (*tidy)(void);
	/* Adds figures of the store, outside of a turn. NULL: the store has no figures. */
	void (*figures)(struct figures *figures);
};

/* One claim has at most this many jobs. */
#define MAX_CLAIM	64

extern const struct store store_sqlite, store_memory;

/* The store that is used (store.c). */
extern const struct store *store;
/* Returns the length of the longest body that is accepted. */
uint64_t store_longest_body(void);

/* These are all kinds of stores (kinds.c). A path means the first kind. */
extern const struct store * const store_kinds[];
extern const size_t store_nr_kinds;

/* Returns the kind of store that a value of the configuration means. */
const struct store *store_find(const char *value);
/* Makes the tables of the store that the configuration names. */
void store_init(void);
/* Tells whether there is a kind of store for which store_init() does something. */
bool store_may_init(void);
/* Chooses the store by the configuration, and opens it. */
void store_start(void);

#endif /* TWJOBD_STORE_H */
