/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store: jobs and queues, as they survive a power cut. It is the truth: a row
 * is a job that was accepted and has not ended. The store knows no connection and
 * no wheel.
 *
 * Functions return 0, or -ENOENT: there is no such row; -ENOSPC: the disk is full;
 * -EIO: the store cannot tell now; -EALREADY: another user of the store is changing the
 * row. After a change has failed the turn cannot be committed any more.
 *
 * Several daemons can use a shared store. There a job's row tells which of them owns it,
 * that is, has a token for it; and it is the row, not the token, that tells whether a
 * worker has the job.
 */
#ifndef TWJOBD_STORE_H
#define TWJOBD_STORE_H

#include "../../calendar/calendar.h"
#include "twjobd.h"

#define NAME_SIZE	32
/* Bytes of a failure's reason that are kept. */
#define MAX_REASON	1024

struct figures;

/* At most so many @jobs in the time @per, ms. No jobs: no limit. */
struct rate {
	uint64_t jobs, per;
};

/*
 * A queue. @epoch names the wheel that has been loaded for it. @jobs, @bytes, @buried, @done
 * and @waiting count what the queue has at present.
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
	int64_t keep_done;	/* ms; 0: not at all; KEEP_NO_MORE */
	uint64_t limit;		/* jobs that workers may have at once; 0: no limit */
	struct rate rate;	/* of jobs that are handed out */
	struct rate group_rate;	/* of those of one group */
	uint64_t group_limit;	/* jobs of one group at once */
	uint64_t epoch;
	uint64_t jobs;
	uint64_t bytes;
	uint64_t buried;	/* jobs that are not done */
	uint64_t done;		/* jobs */
	uint64_t waiting;	/* jobs */
	bool paused;
	bool draining;
	bool dropped;
};

/* No job that is done is kept any more, but rows of some may be left. */
#define KEEP_NO_MORE	(-1)

/*
 * A job, without its body. @attempts counts deliveries, but stays 0 during a first one.
 * @done: a worker has done it, and it is buried without its body until @due, so that its key
 * stays known. @waiting: it was due, and waits for its group. @rule: it comes again by a rule.
 * @options, @failure: the store has these of the job. @unique: an option says so.
 *
 * The last three are those of a shared store, which counts a first delivery as well: the
 * version is that of receipts; a worker has the job until @held_until; @foreign: another
 * daemon owns it.
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

/* The key is empty for a job that has none. */
static inline struct bytes job_key(const struct job *job)
{
	return (struct bytes) { job->key, job->key_length };
}

/*
 * A rule by which a job comes again. It began at @start, in seconds since 1970; the job is
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
 * What a job has in place of its queue's settings. A try that fails makes the job due after
 * @backoff, which is doubled with each further one, but after @backoff_most at the latest.
 * Once the job is done, its key stays known for @unique. The group is what the queue's limits of
 * groups count the job for.
 */
struct options {
	uint64_t lease;		/* ms; 0: the queue's */
	int64_t tries;		/* 0: without limit; TRIES_OF_QUEUE */
	uint64_t backoff;	/* ms; 0: the queue's */
	uint64_t backoff_most;
	uint64_t unique;	/* ms */
	uint8_t group_length;	/* 0: no group */
	char group[MAX_KEY];
};

#define TRIES_OF_QUEUE	(-1)
#define NO_OPTIONS	((struct options) { .tries = TRIES_OF_QUEUE })

/* The last failure of a job: when it was, and what the worker said of it. */
struct failure {
	uint64_t at;		/* ms */
	size_t length;
	char reason[MAX_REASON];
};

/*
 * What is kept of a job that a worker has done: its number, queue and key, and when it was
 * due, ended, and how many deliveries it took. @n: later ones of a queue have higher ones.
 */
struct done {
	int64_t n;
	uint64_t ended;		/* ms */
	struct job job;
};

/*
 * What a receipt says of a delivery. That of a shared store has the version of the job's
 * row in place of the wheel's epoch, and the queue in place of the token's handle.
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

/* A delivery that is out, and the end of its lease: ns, by the wheel's clock. */
struct held {
	struct receipt receipt;
	uint64_t lease_end;
};

/* For store->change(). */
#define SAME_BODY	((struct bytes) { })

/* When a job is to be handed out: when it is due, not kept aside, and no worker has it. */
static inline uint64_t job_next_due(const struct job *job)
{
	if (job->buried || job->waiting)
		return PARKED;
	return job->due > job->held_until ? job->due : job->held_until;
}

/*
 * A kind of store. @name: what the configuration says for it, NULL for the one that
 * a path means.
 */
struct store {
	const char *name;
	bool shared;
	/* Makes the tables. NULL: @open does. */
	void (*init)(const char *path);
	/* Opens the store, or makes a new one. Exits when it cannot be trusted. */
	void (*open)(const char *path);
	/* The wheels have been opened. NULL: nothing is to be done. */
	void (*start)(void);
	/* Of a shared store only: applies what other daemons have changed of queues. */
	void (*refresh)(void);
	void (*close)(void);

	int (*each_queue)(void (*each)(const struct queue_row *row));

	/*
	 * A turn. All changes are made between its begin and its end, which is @commit or
	 * @roll_back. A commit that ends with -EINPROGRESS is in doubt: it may have been
	 * carried out. @last_turn gives the list of the last commit, also that of a process
	 * before.
	 */
	int (*begin)(void);
	int (*commit)(struct bytes list);
	void (*roll_back)(void);
	/*
	 * Within a turn: changes from @mark on are undone by @back, or stay by @keep, which
	 * both end the mark. NULL: the store can undo whole turns only.
	 */
	int (*mark)(void);
	int (*back)(void);
	int (*keep)(void);
	int (*last_turn)(void (*use)(void *arg, struct bytes list), void *arg);

	/* A new queue has an id of 0, and gets one. */
	int (*save_queue)(struct queue_row *row);
	/* Saves the epoch, and what has been added to the counts since they were @saved. */
	int (*save_counts)(struct queue_row *row, const struct queue_row *saved);
	int (*remove_queue)(int64_t id);

	/*
	 * The number of a new job. None is given twice, not even after a crash. 0: the
	 * store cannot tell now.
	 */
	int64_t (*new_id)(void);
	/*
	 * -EEXIST: another user of the store has added one with this key;
	 * -EALREADY: one is doing so.
	 */
	int (*add)(const struct job *job, struct bytes body);
	/*
	 * Saves all of a job but its queue, key and rule. SAME_BODY leaves the body as it is.
	 * Afterwards no worker has the job, and this daemon owns it.
	 */
	int (*change)(const struct job *job, struct bytes body);
	/* Removes a job, with all that the store has of it. */
	int (*remove)(int64_t id);
	int (*save_rule)(int64_t job, const struct rule *rule);
	int (*get_rule)(int64_t job, struct rule *rule);
	int64_t (*count_rules)(void);
	/* Gives @n. The queue's two oldest ones are removed if they ended before @before. */
	int (*add_done)(const struct done *done, uint64_t before);
	/*
	 * Removes those of the queue's @count oldest ones that ended before @before. Returns the
	 * number of them.
	 */
	int (*end_done)(int64_t queue, uint64_t before, int count);
	/*
	 * Gets the newest ones of the queue below the number @n, at most @count of them. Returns
	 * the number of them.
	 */
	int (*next_done)(int64_t queue, int64_t n, struct done *done, int count);
	/* The job's row says whether it has these. NO_OPTIONS removes those that it had. */
	int (*save_options)(int64_t job, const struct options *options);
	int (*get_options)(int64_t job, struct options *options);
	/*
	 * Jobs that wait for their groups, by groups, and then as they are due. @first_waiting
	 * gets the first one of the first group that is not before @from. NULL for a shared store.
	 */
	int (*add_waiting)(const struct job *job, const struct options *group);
	int (*end_waiting)(const struct job *job, const struct options *group);
	int (*first_waiting)(int64_t queue, struct bytes from, struct options *group,
			     int64_t *id);
	int (*save_failure)(int64_t job, const struct failure *failure);
	int (*get_failure)(int64_t job, struct failure *failure);

	/* With @change the job stays as it is until the present turn ends. */
	int (*get)(int64_t id, bool change, struct job *job);
	/* Of a shared store only: gets the job of a key, as @get does with @change. */
	int (*find_key)(int64_t queue, struct bytes key, struct job *job);
	/*
	 * Of a shared store only. Workers get those of these jobs that are due and that this
	 * daemon owns. The result of each is 0; -EAGAIN: it is held, buried, or not due; -EBADMSG:
	 * it is a worker's, but its body cannot be read; or an error.
	 */
	int (*claim)(const struct queue_row *queue, const int64_t *ids, int count,
		     struct job *jobs, int *results);
	/* Of a shared store only: a worker has the job for so many ms from now. */
	int (*extend)(int64_t id, uint64_t ms);
	/*
	 * Ends a delivery of a shared store, which counts as a try or does not. A delivery
	 * that has ended before is no error.
	 */
	int (*release)(int64_t id, uint64_t version, bool counts);
	/* Of a shared store only: reads these jobs at once, before @get is asked for each. */
	int (*want)(const int64_t *ids, int count, bool change);

	/*
	 * Deliveries for the next start, see held.h. @take_held, outside of a turn, gives all,
	 * by the numbers of their jobs, and has removed them durably when it returns. NULL: jobs
	 * do not outlive the process, or a job's row tells which worker has the job.
	 */
	int (*save_held)(const struct held *held);
	int (*take_held)(void (*each)(const struct held *held));

	/* Hands the body to @use. */
	int (*body)(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg);
	/*
	 * Gets the next jobs behind the row @after, at most @count of them. @buried: 0 for
	 * those of all queues, or a queue, for its buried ones, those that are done among
	 * them. Returns their number.
	 */
	int (*next)(int64_t after, int64_t buried, struct job *jobs, int count);
	/* Reads the jobs of all queues that have a rule. */
	int (*next_rules)(int64_t after, struct job *jobs, int count);
	/* Reads the jobs that this daemon owns. NULL: it owns all. */
	int (*next_own)(int64_t after, struct job *jobs, int count);
	/* A shared store only: which of these jobs there are that this daemon owns. */
	int (*find_own)(const int64_t *ids, int count, bool *own);

	/*
	 * By how much the wall clock was ahead of a clock that is never set, in ns, as it
	 * was saved last. False: it never was. NULL: the store does not keep it.
	 */
	bool (*clock)(int64_t *offset);
	/* Outside of a turn. NULL: as with @clock. */
	void (*save_clock)(int64_t offset);

	/* The disk was full, and there is no room yet to accept jobs again. */
	bool (*is_full)(void);
	/* A bit of housekeeping, outside of a turn. NULL: there is none. */
	void (*tidy)(void);
	/* Adds figures of its own, outside of a turn. NULL: it has none. */
	void (*figures)(struct figures *figures);
};

/* One claim has at most so many jobs. */
#define MAX_CLAIM	64

extern const struct store store_sqlite, store_memory;

/* The store that is used (store.c). */
extern const struct store *store;
/* The longest body that is accepted. */
uint64_t store_longest_body(void);

/* All kinds of stores (kinds.c). The first one is the kind that a path means. */
extern const struct store * const store_kinds[];
extern const size_t store_nr_kinds;

/* The kind that a value of the configuration means. */
const struct store *store_find(const char *value);
/* Makes the tables of the store that the configuration names. */
void store_init(void);
/* Whether there is a kind of store for which store_init() does something. */
bool store_may_init(void);
/* Chooses the store by the configuration, and opens it. */
void store_start(void);

#endif /* TWJOBD_STORE_H */
