/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Torture: processes of several threads do everything that can be done to wheels,
 * while the world about them is at its worst, and are killed in the middle of it.
 * Then each registration is accounted for.
 *
 * The ledger is in memory that outlives its writers. A thread that is about to
 * register or to end a token writes so first, and writes afterwards what came of it.
 * If it was killed in between, the ledger cannot know: what the wheel has in the end
 * decides. Events are read straight into the ledger: an event that the kernel has
 * copied is there, also if its reader was killed.
 *
 * ledger.c books; wheels.c has the wheels; work.c is what the threads do; world.c
 * what is done to them; audit.c the reckoning; torture.c the rounds.
 */
#ifndef TORTURE_H
#define TORTURE_H

#define TW_NO_HARNESS
#include "../tw_delivery.h"
#include "../tw_named.h"
#include "../tw_process.h"

#define PROCESSES	4
#define THREADS		3
#define VICTIM		(PROCESSES * THREADS)	/* slot of who runs out of memory */
#define SLOTS		(VICTIM + 1)
#define ENTRIES		(1U << 18)
#define EVENTS		(1U << 15)	/* that a slot may read */
#define TOKENS		4000		/* of a wheel; fewer than TW_LISTED */
#define NONE		(~0U)
#define CODES		(TIMEWHEEL_OP_DELETE + 1)
#define MOST_ACTIONS	32
#define MOST_FAULTS	20
#define SHARED_IDS	256		/* for which all fight */
#define OWN_ID		(1ULL << 32)	/* and more: each for one registration */
#define USER		1000		/* first user of those who work */

#define ARRAY_SIZE(x)	(sizeof(x) / sizeof((x)[0]))
#define EVENT_SIZE	sizeof(struct timewheel_event)

enum phase {
	UNUSED,
	TRIED,		/* about to be registered */
	REFUSED,
	REGISTERED,
};

/**
 * struct entry - one try to register; its number is the token's cookie
 * @handle: its handle; 0 unless REGISTERED
 * @id: its id, 0 on wheels without
 * @wheel: number of the wheel
 * @acked: number of the delivery whose ACK ended it, or 0
 * @phase: how far it came
 * @ends: how often somebody was told that he ended it
 * @ending: how many ask for its end
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
 * struct slot - what one thread reads
 * @tid: the thread
 * @used: events that it knows it has; behind those, what is not UNREAD as well
 * @events: the events
 */
struct slot {
	_Atomic pid_t		tid;
	_Atomic __u32		used;
	struct timewheel_event	events[EVENTS];
};

/* In an event's last bytes, until it has been read. */
#define UNREAD	(~0U)

struct shared {
	_Atomic __u32		faults;		/* what must not be */
	__u32			told;		/* of them */
	char			fault[MOST_FAULTS][320];
	_Atomic __u32		next;		/* entry to use */
	_Atomic __u32		done[CODES], refused[CODES];
	_Atomic __u32		periodic;	/* registrations with a period */
	_Atomic __u32		acted[MOST_ACTIONS];
	_Atomic __u32		read;
	struct slot		slot[SLOTS];
	struct entry		entry[ENTRIES];
};

extern struct shared *shared;

/* Wheels, and what they are called. */
enum {
	PLAIN, LEASED, MAPPED, BOOT, WALL, PERIODIC, JOBS, MANUAL, LATE, HANDLES,
	MORTAL, PRIVATE, KINDS
};

struct kind {
	const char		*name;
	struct timewheel_setup	setup;
};

extern const struct kind kinds[KINDS];

/* A wheel as somebody has it open; @fd is -1 while there is none. */
struct wheel {
	const struct kind	*kind;
	int			fd;
	__u32			number;
	__u32			tokens;		/* at most */
	__u64			*words;
};

/* A delivery that may be answered. */
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

/* ledger.c */
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

/* wheels.c */
extern int device, private;
bool is_named(const struct kind *kind);
bool create_wheel(const struct kind *kind);
bool create_wheels(void);
bool destroy_wheels(void);
bool destroy_wheel(const struct kind *kind);
void open_wheel(struct wheel *wheel, const struct kind *kind, int fd);
void close_wheel(struct wheel *wheel);

/* work.c */
extern int sockets[2];
void work(int slot, __u64 seed) __attribute__((noreturn));
void work_briefly(struct worker *w, int slot, __u64 seed, int actions);
bool worked(void);

/* world.c */
bool world_start(__u64 seed);
void world_turn(double seconds);
bool world_end(void);
bool world_was_bad(void);
bool group_gives_back(void);
bool become(int user, const char *group);
long long value_of(const char *path, const char *key);

/* torture.c */
int unload(void);

/* audit.c */
bool audit_events(void);
bool audit_wheels(void);
bool audit_left(void);
bool audit_generations(void);
bool audit_deliveries(void);
bool audit_limits(void);

#endif /* TORTURE_H */
