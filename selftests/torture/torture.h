/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Torture: processes of several threads do everything that can be done to wheels,
 * while they are killed, stopped, interrupted and short of memory. Then each
 * registration is accounted for.
 *
 * The ledger is in memory that outlives its writers. A thread that is about to
 * register or to end a token notes this first, and notes the result afterwards. If
 * the thread was killed in between, the ledger cannot know the result, and the
 * wheel's state at the end decides. Events are read straight into the ledger. An
 * event that the kernel has copied is there, also if its reader was killed.
 *
 * The files are ledger.c with the ledger, wheels.c with the wheels, work.c with the
 * actions of the threads, world.c with the evils that happen to them, audit.c with
 * the audit, and torture.c with the rounds.
 */
#ifndef TORTURE_H
#define TORTURE_H

#define TW_NO_HARNESS
#include "../tw_delivery.h"
#include "../tw_named.h"
#include "../tw_process.h"

#define PROCESSES	4
#define THREADS		3
#define VICTIM		(PROCESSES * THREADS)	/* slot of the process that runs out of memory */
#define SLOTS		(VICTIM + 1)
#define ENTRIES		(1U << 18)
#define EVENTS		(1U << 15)	/* events that a slot may read */
#define TOKENS		4000		/* tokens of a wheel, fewer than TW_LISTED */
#define NONE		(~0U)
#define CODES		(TIMEWHEEL_OP_DELETE + 1)
#define MOST_ACTIONS	32
#define MOST_FAULTS	20
#define SHARED_IDS	256		/* ids that all threads use */
#define OWN_ID		(1ULL << 32)	/* ids from here on have one registration */
#define USER		1000		/* first user of the workers */

#define ARRAY_SIZE(x)	(sizeof(x) / sizeof((x)[0]))
#define EVENT_SIZE	sizeof(struct timewheel_event)

enum phase {
	UNUSED,
	TRIED,		/* about to be registered */
	REFUSED,
	REGISTERED,
};

/**
 * struct entry - an attempt to register; its index is the token's cookie
 * @handle: its handle; 0 unless REGISTERED
 * @id: its id, 0 on wheels without ids
 * @wheel: number of the wheel
 * @acked: number of the delivery whose ACK ended it, or 0
 * @phase: progress of the attempt
 * @ends: number of results that say that the token was ended
 * @ending: number of operations that are about to end it
 * @periodic: it is pending again after each delivery
 * @leased: a read does not end it
 */
struct entry {
	_Atomic __aligned_u64	handle;
	__u64			id;
	__u32			wheel;
	__u32			acked;
	_Atomic __u8		phase;
	_Atomic __u8		ends;
	_Atomic __u8		ending;
	__u8			periodic;
	__u8			leased;
};

/**
 * struct slot - the events that one thread has read
 * @tid: the thread
 * @used: events that the thread has counted; further events that are not UNREAD were read
 * @events: the events
 */
struct slot {
	_Atomic pid_t		tid;
	_Atomic __u32		used;
	struct timewheel_event	events[EVENTS];
};

/* The last bytes of an event that has not been read. */
#define UNREAD	(~0U)

struct shared {
	_Atomic __u32		faults;		/* number of faults */
	__u32			told;		/* faults that were printed */
	char			fault[MOST_FAULTS][320];
	_Atomic __u32		next;		/* next entry to use */
	_Atomic __u32		done[CODES], refused[CODES];
	_Atomic __u32		periodic;	/* registrations with a period */
	_Atomic __u32		acted[MOST_ACTIONS];
	_Atomic __u32		read;
	struct slot		slot[SLOTS];
	struct entry		entry[ENTRIES];
};

extern struct shared *shared;

/* The kinds of wheels. */
enum {
	PLAIN, LEASED, MAPPED, BOOT, WALL, PERIODIC, JOBS, MANUAL, LATE, HANDLES,
	MORTAL, PRIVATE, KINDS
};

struct kind {
	const char		*name;
	struct timewheel_setup	setup;
};

extern const struct kind kinds[KINDS];

/* A wheel that a thread has open. @fd is -1 while there is none. */
struct wheel {
	const struct kind	*kind;
	int			fd;
	__u32			number;
	__u32			tokens;		/* most tokens */
	__u64			*words;
};

/* A delivery that a thread may answer. */
struct delivery {
	__u32	wheel;
	__u32	entry;
	__u32	number;
};

#define DELIVERIES	32

struct worker {
	int		slot;
	__u64		random;
	struct wheel	wheel[KINDS];
	struct delivery	delivery[DELIVERIES];
	unsigned int	delivered;
};

static inline __u32 below(struct worker *w, __u32 n)
{
	return tw_random(&w->random) % n;
}

static inline bool once(struct worker *w, __u32 n)
{
	return !below(w, n);
}

/* These functions are in ledger.c. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tell_faults(void);
void ledger_open(void);
void ledger_clear(void);
__u32 book_try(const struct wheel *wheel, __u64 id, bool periodic);
void book_tried(__u32 entry, const struct timewheel_op *op, bool registered);
void book_ending(__u32 entry);
void book_ended(__u32 entry, const struct timewheel_op *op);
__u32 pick(struct worker *w, const struct wheel *wheel);
bool check_event(const struct timewheel_event *event);
__u32 slot_count(struct slot *slot);
void slot_clear(struct slot *slot, __u32 from, __u32 n);

/* These functions are in wheels.c. */
extern int device, private;
bool is_named(const struct kind *kind);
bool create_wheel(const struct kind *kind);
bool create_wheels(void);
bool destroy_wheels(void);
bool destroy_wheel(const struct kind *kind);
void open_wheel(struct wheel *wheel, const struct kind *kind, int fd);
void close_wheel(struct wheel *wheel);

/* These functions are in work.c. */
extern int sockets[2];
void work(int slot, __u64 seed) __attribute__((noreturn));
void work_briefly(struct worker *w, int slot, __u64 seed, int actions);
bool worked(void);

/* These functions are in world.c. */
bool world_start(__u64 seed);
void world_turn(double seconds);
bool world_end(void);
bool world_was_bad(void);
bool group_gives_back(void);
bool become(int user, const char *group);
long long value_of(const char *path, const char *key);

/* This function is in torture.c. */
int unload(void);

/* These functions are in audit.c. */
bool audit_events(void);
bool audit_wheels(void);
bool audit_left(void);
bool audit_generations(void);
bool audit_deliveries(void);
bool audit_limits(void);

#endif /* TORTURE_H */
