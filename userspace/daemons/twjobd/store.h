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

struct figures;

/*
 * A queue. @epoch names the wheel that has been loaded for it; @jobs and @bytes
 * count what the queue holds.
 */
struct queue_row {
	int64_t id;
	char name[NAME_SIZE];
	uint64_t lease;		/* ms */
	uint64_t tries;		/* 0: without limit */
	uint64_t max_jobs;
	uint64_t max_bytes;
	uint64_t epoch;
	uint64_t jobs;
	uint64_t bytes;
	bool paused;
	bool draining;
	bool dropped;
};

/*
 * A job, without its body. @attempts counts deliveries, but not a first one. @rule: it
 * comes again by a rule. The last
 * three are those of a shared store, which counts all deliveries: a receipt tells the
 * version; a worker has the job until @held_until; @foreign: this daemon is not its owner.
 */
struct job {
	int64_t id;
	int64_t queue;
	uint64_t due;		/* ms */
	uint64_t attempts;
	uint64_t size;		/* bytes of body and key */
	bool buried;
	bool rule;
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

/* For store->change(). */
#define SAME_BODY	((struct bytes) { })

/* When a job is to be read: when it is due, and no worker has it. */
static inline uint64_t job_next_due(const struct job *job)
{
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
	/* The wheels are there. NULL: nothing is to be done. */
	void (*start)(void);
	/* Of a shared store only: others may have added or changed queues. */
	void (*refresh)(void);
	void (*close)(void);

	int (*each_queue)(void (*each)(const struct queue_row *row));

	/*
	 * A turn. Everything that changes something comes between these. The last
	 * turn's list is what @commit was given last. A commit that ends with
	 * -EINPROGRESS is in doubt: it may have been carried out.
	 */
	int (*begin)(void);
	int (*commit)(struct bytes list);
	void (*roll_back)(void);
	int (*last_turn)(void (*use)(void *arg, struct bytes list), void *arg);

	/* A new queue has an id of 0, and gets one. */
	int (*save_queue)(struct queue_row *row);
	/* Its epoch, and what has been added to its sizes since they were @saved. */
	int (*save_counts)(struct queue_row *row, const struct queue_row *saved);
	int (*remove_queue)(int64_t id);

	/*
	 * The number of a new job. None is given twice, not even after a crash. 0: the
	 * store cannot tell now.
	 */
	int64_t (*new_id)(void);
	/* -EEXIST: another user of the store has added one with this key. */
	int (*add)(const struct job *job, struct bytes body);
	/*
	 * All but its queue, key and rule. A body without data leaves the body as it is. No
	 * worker has the job any more, and this daemon owns it.
	 */
	int (*change)(const struct job *job, struct bytes body);
	/* Its rule ends with it. */
	int (*remove)(int64_t id);
	int (*save_rule)(int64_t job, const struct rule *rule);
	int (*get_rule)(int64_t job, struct rule *rule);
	int64_t (*count_rules)(void);

	/* With @change it stays as it is until the turn ends, which has begun. */
	int (*get)(int64_t id, bool change, struct job *job);
	/*
	 * Of a shared store only. The job of a key, which stays as it is until the turn
	 * ends.
	 */
	int (*find_key)(int64_t queue, struct bytes key, struct job *job);
	/*
	 * A worker gets what is due of these jobs that this daemon owns. Their results
	 * are 0, -EAGAIN: this one is held or not due; or errors.
	 */
	int (*claim)(const struct queue_row *queue, const int64_t *ids, int count,
		     struct job *jobs, int *results);
	/* A worker has it for so many ms from now. */
	int (*extend)(int64_t id, uint64_t ms);
	/* Ends a delivery. Not an error: it has ended. */
	int (*release)(int64_t id, uint64_t version);
	/*
	 * Of a shared store only. These will be asked for: reads them at once; with
	 * @change as @get does.
	 */
	int (*want)(const int64_t *ids, int count, bool change);

	/* Hands the body to @use. */
	int (*body)(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg);
	/*
	 * The next jobs after the row @after, at most @count, of all queues; with
	 * @buried the buried ones of that queue. Returns their number.
	 */
	int (*next)(int64_t after, int64_t buried, struct job *jobs, int count);
	/* The same for jobs that this daemon owns. NULL: it owns all. */
	int (*next_own)(int64_t after, struct job *jobs, int count);

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

extern const struct store store_sqlite, store_memory;

/* The one that is used (store.c). */
extern const struct store *store;
/* Random, the same as long as the store exists. */
extern unsigned char store_secret[16];
/* By how much the store's clock is ahead of this machine's, ms. */
extern int64_t store_ahead;

/* All kinds, of which the first one is that which a path means (kinds.c). */
extern const struct store * const store_kinds[];
extern const size_t store_nr_kinds;

/* The kind that a value of the configuration means. */
const struct store *store_find(const char *value);
/* Makes the tables of the store that the configuration names. */
void store_init(void);
/* Whether this is so of any kind. */
bool store_may_init(void);
/* Chooses the store by the configuration, and opens it. */
void store_start(void);

#endif /* TWJOBD_STORE_H */
