/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The store: jobs and queues, as they survive a power cut. It is the truth: a row
 * is a job that was accepted and has not ended. The store knows no connection and
 * no wheel.
 *
 * Functions return 0, or -ENOENT: there is no such row; -ENOSPC: the disk is full;
 * -EIO: the store cannot tell now. After a change has failed the turn cannot be
 * committed any more.
 */
#ifndef TWJOBD_STORE_H
#define TWJOBD_STORE_H

#include "twjobd.h"

#define NAME_SIZE	32

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

/* A job, without its body. @attempts counts deliveries, but not a first one. */
struct job {
	int64_t id;
	int64_t queue;
	uint64_t due;		/* ms */
	uint64_t attempts;
	uint64_t size;		/* bytes of body and key */
	bool buried;
	size_t key_length;	/* 0: no key */
	char key[MAX_KEY];
};

/*
 * A kind of store. @name: what the configuration says for it, NULL for the one that
 * a path means.
 */
struct store {
	const char *name;
	/* Opens the store, or makes a new one. Exits when it cannot be trusted. */
	void (*open)(const char *path);
	void (*close)(void);

	int (*each_queue)(void (*each)(const struct queue_row *row));

	/*
	 * A turn. Everything that changes something comes between these. The last
	 * turn's list is what @commit was given last.
	 */
	int (*begin)(void);
	int (*commit)(struct bytes list);
	void (*roll_back)(void);
	int (*last_turn)(void (*use)(void *arg, struct bytes list), void *arg);

	/* A new queue has an id of 0, and gets one. */
	int (*save_queue)(struct queue_row *row);
	int (*remove_queue)(int64_t id);

	/* The number of a new job. None is given twice, not even after a crash. */
	int64_t (*new_id)(void);
	int (*add)(const struct job *job, struct bytes body);
	/* All but its queue and key. A body without data leaves the body as it is. */
	int (*change)(const struct job *job, struct bytes body);
	int (*remove)(int64_t id);

	int (*get)(int64_t id, struct job *job);
	/* Hands the body to @use. */
	int (*body)(int64_t id, void (*use)(void *arg, struct bytes body),
		    void *arg);
	/*
	 * The next jobs after the row @after, at most @count, of all queues; with
	 * @buried the buried ones of that queue. Returns their number.
	 */
	int (*next)(int64_t after, int64_t buried, struct job *jobs, int count);

	/*
	 * By how much the wall clock was ahead of one that is never set, ns: as it
	 * was saved last; false if it never was.
	 */
	bool (*clock)(int64_t *offset);
	/* Outside of a turn. */
	void (*save_clock)(int64_t offset);

	/* The disk was full, and there is no room yet to accept jobs again. */
	bool (*is_full)(void);
	/* A bit of housekeeping, outside of a turn. */
	void (*tidy)(void);
};

extern const struct store store_sqlite, store_memory;

/* The one that is used (store.c). */
extern const struct store *store;
/* Random, the same as long as the store exists. */
extern unsigned char store_secret[16];

/* Chooses the store by the configuration, and opens it. */
void store_start(void);

#endif /* TWJOBD_STORE_H */
