/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ledger of jobs: what twjobd's answers say about each of them, and what contradicts
 * that. A job's body is "ENTRY.VERSION", the number of its entry here and of the put that
 * gave it this body.
 *
 * What is known of a job is a set: in which states it may be, when it may be due, which
 * body it may have. A command that is sent adds to the set what it would make of the job.
 * An answer leaves only what it says, if no other command about this job was under way at
 * the same time. A command whose answer is lost may have been carried out or not, so that
 * the set stays as large as it is; later answers make it smaller. Each answer and each
 * delivery has to agree with what was known before it was asked for.
 */
#ifndef JOBS_LEDGER_H
#define JOBS_LEDGER_H

#include <limits.h>
#include <sys/param.h>

#include "jobs.h"

#define JOBS		200000
#define IDS		(1 << 25)
#define FOREVER		LLONG_MAX
/* What the rounding of times to milliseconds may make of a lease, us. */
#define ROUNDING	20000
/* Workers have so many jobs of a queue with a LIMIT at once. */
#define MAX_LIMIT	4
/* For so long are jobs kept that are done, s: longer than a test lasts. */
#define KEPT		"604800"
/* By how much TW.EXTEND makes a lease longer than the queue's, us. */
#define EXTENSION	1000000

/* States. A job that has not been put yet is gone, too. */
#define GONE		1U
#define LIVE		2U	/* waits for its time, or for its worker's answer */
#define BURIED		4U
#define DONE		8U	/* by a worker, and its key is still known */
#define ANY		15U

/* Of verbs. */
#define MAKES		1U	/* a job */
#define ENDS		2U	/* a job */
#define MOVES		4U	/* the job is due at another time */
#define TIMED		8U	/* which the command tells; otherwise it is due now */
#define FREES		16U	/* no worker is sure of the job any more */
#define HOLDS		32U	/* the lease begins again, and is a longer one */
#define ANEW		64U	/* attempts are counted anew */
#define FAILS		128U	/* and tells why, which stays until the job ends */

struct verb {
	const char *name;
	enum { BY_ID, BY_KEY, BY_RECEIPT, BY_BODY, BY_QUEUE } by;
	/* How often it is chosen among those of a producer, or of a worker. */
	int weight;
	unsigned int from, to, flags;
	const char *answers;
	const char *more;	/* of the command */
};

struct entry;

/*
 * Two queues, so that a take has a choice. In the second one jobs get buried, workers have few
 * at once, of which all are in @held that surely are, and what they have done is kept.
 */
static struct queue {
	const char *name;
	int tries, limit;
	const char *keep_done;
	const struct entry *held[MAX_LIMIT];
	/* Since when it has been certain, and until when it was possible. */
	long long paused, drained, was_drained;
} queues[] = { { "q" }, { "u", 3, MAX_LIMIT, KEPT } };

struct known {
	unsigned int states;
	long long earliest, latest;	/* due, ms of the wall clock */
	int oldest, newest;		/* versions */
};

static struct entry {
	struct queue *queue;
	bool keyed, awaited;		/* it was listed as ready, and not delivered since */
	bool options;			/* it is put with some */
	bool unique;			/* its key stays known when a worker has done it */
	bool failed;			/* it has told why, and has not ended since */
	long long id;			/* 0: not known */
	int versions;
	struct known known;
	/* Commands about it that have no answer yet; the last answer; the last sure one. */
	int under_way;
	long long answered, since;
	/* When TW.LIST listed it was sent; when a delivery was noted. */
	long long listed, delivered;
	/* Jobs that are certain, and those of commands whose answer was lost. */
	int made, maybe_made, ended, maybe_ended;
	/* ACKs among those; and of how many TW.DONE has told. */
	int acked, maybe_acked, told;
	/* The worker with this receipt is sure of it until then, if no kill comes before. */
	char receipt[128];
	long long held_until;
	int kills;
	/* Attempts that have been made; more of them by answers that were lost since a life. */
	int fewest, most, life;
} entries[JOBS];

struct call {
	const struct verb *verb;
	struct entry *entry;
	const char *receipt;
	long long sent, sent_ms, held_until, id;
	int ms, version, kills, life;
	bool own;			/* the receipt is that of the last delivery */
	struct known before;
};

enum wrong {
	LOST, TWICE, NOT_THERE, OTHER_BODY, OTHER_TIME, EARLY, STUCK, SHARED, ROBBED, CHANGED,
	TRIED, MISCOUNTED, FORGOTTEN,
	PAUSED, DRAINED, CROWDED, KEPT_WRONGLY, LIES, STRANGE, WRONGS
};

static const char * const wrongs[] = {
	"lost", "ended twice", "handed out though gone or buried", "with another body",
	"due at another time", "early", "ready and not handed out",
	"handed out while another has it",
	"lease ended too soon", "changed while a worker has it", "tried too often",
	"attempts miscounted", "its reason or options forgotten, or another's",
	"handed out while paused", "put while drained",
	"handed out while workers have as many as they may",
	"told of as done though it is not, or not told of", "answers that contradict others",
	"strange"
};

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static int entry_of_id[IDS];	/* plus 1 */
static int next_entry, kills, lives, kicks_under_way, deliveries, in_doubt, stale;
static long long kicks_answered, lease;
static int wrong[WRONGS];

/* Of one clock for all threads, us. */
static inline long long mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* The first ones say which job it is. */
static inline void is_wrong(enum wrong what, const struct entry *entry, const char *verb,
			    const char *answer)
{
	const struct known *known = &entry->known;

	if (wrong[what]++ < 3)
		printf("# %s: entry %td in %s, job %lld: %s %s, states %x, due %lld to %lld,\n"
		       "# versions %d to %d, made %d + %d, ended %d + %d\n", wrongs[what],
		       entry - entries, entry->queue ? entry->queue->name : "?", entry->id,
		       verb, answer, known->states, known->earliest, known->latest,
		       known->oldest, known->newest, entry->made, entry->maybe_made,
		       entry->ended, entry->maybe_ended);
}

static inline struct entry *new_entry(unsigned int queue, bool keyed)
{
	struct entry *entry = NULL;

	pthread_mutex_lock(&ledger);
	if (next_entry < JOBS) {
		entry = &entries[next_entry++];
		entry->queue = &queues[queue];
		entry->keyed = keyed;
		entry->options = next_entry % 3 == 0;
		entry->unique = keyed && next_entry % 5 == 0;
		entry->known = (struct known) { GONE, FOREVER, 0, INT_MAX, 0 };
	}
	pthread_mutex_unlock(&ledger);
	return entry;
}

/* The number belongs to this entry, and to no other one ever. */
static inline void note_id(struct entry *entry, long long id)
{
	int number = entry - entries + 1;

	if (id <= 0 || id >= IDS || (entry_of_id[id] && entry_of_id[id] != number)) {
		is_wrong(STRANGE, entry, "number", "");
		return;
	}
	entry_of_id[id] = number;
	entry->id = id;
}

/* No command about this job was under way since, but @own ones. */
static inline bool is_quiet(const struct entry *entry, long long sent, int own)
{
	return entry->under_way == own && entry->answered < sent && !kicks_under_way &&
	       kicks_answered < sent;
}

/* Where tries are counted, a job gets buried by itself. */
static inline unsigned int and_later(const struct entry *entry, unsigned int states)
{
	return states & LIVE && entry->queue->tries ? states | BURIED : states;
}

/* These states are left. */
static inline void settle(struct entry *entry, unsigned int states)
{
	entry->known.states = and_later(entry, states);
	entry->since = mono();
}

/* There is a job now, so that all but one of those that were made have ended. */
static inline void note_exists(struct entry *entry)
{
	if (entry->made == entry->ended && entry->maybe_made) {
		entry->made++;
		entry->maybe_made--;
	}
	if (!entry->maybe_made)
		entry->maybe_ended = MAX(entry->made - 1 - entry->ended, 0);
}

/* A worker has had the job since before the command was sent, and has it still. */
static inline bool is_held(const struct call *call)
{
	return call->held_until > mono() && call->kills == kills;
}

/* The job may also be due at any time from this one on. */
static inline void add_due(struct known *known, long long due)
{
	known->earliest = MIN(known->earliest, due);
	known->latest = FOREVER;
}

static inline bool is_ack(const struct verb *verb)
{
	return verb->by == BY_RECEIPT && verb->flags & ENDS;
}

/* The state that the command gives the job. */
static inline unsigned int state_after(const struct call *call)
{
	return is_ack(call->verb) && call->entry->unique ? DONE : call->verb->to;
}

/* The job may be as the command makes it, from now on; and as a kick then makes it. */
static inline void add_to_known(struct call *call, struct known *known)
{
	unsigned int flags = call->verb->flags;

	known->states |= and_later(call->entry, state_after(call));
	if (flags & MOVES)
		add_due(known, call->sent_ms + call->ms);
	if (kicks_under_way)
		add_due(known, call->sent_ms);
	if (flags & MAKES) {
		call->version = ++call->entry->versions;
		known->oldest = MIN(known->oldest, call->version);
		known->newest = call->version;
	}
	if (flags & ANEW || kicks_under_way)
		call->entry->fewest = 0;
}

/* Before a command is sent. False: it cannot be said of this job. */
static inline bool begin(struct call *call)
{
	struct entry *entry = call->entry;
	bool can;

	pthread_mutex_lock(&ledger);
	can = call->verb->by == BY_ID ? entry->id :
	      call->verb->by == BY_KEY ? entry->keyed : true;
	/* A DELETE would end a key that stays known, and no job. */
	if (entry->unique && !strcmp(call->verb->name, "DELETE"))
		can = false;
	call->own = call->receipt && !strcmp(call->receipt, entry->receipt);
	call->id = entry->id;
	call->before = entry->known;
	call->held_until = entry->held_until;
	call->kills = entry->kills;
	call->life = lives;
	call->sent = mono();
	call->sent_ms = now_ms(CLOCK_REALTIME);
	if (can) {
		entry->under_way++;
		add_to_known(call, &entry->known);
		if (call->verb->flags & FREES && (call->own || !call->receipt))
			entry->held_until = 0;
	}
	pthread_mutex_unlock(&ledger);
	return can;
}

/* An answer's first word, or a job's state. */
static inline const char *word_of(const struct verb *verb, const redisReply *reply,
				  char *text, size_t size)
{
	const redisReply *word = reply;

	if (reply->type == REDIS_REPLY_NIL)
		return "nil";
	if (reply->type == REDIS_REPLY_INTEGER) {
		snprintf(text, size, "%lld", reply->integer);
		return verb->flags & MAKES ? "NEW" : text;
	}
	if (reply->type == REDIS_REPLY_ARRAY)
		word = reply->element[reply->elements >= 12 ? 3 : 1];
	snprintf(text, size, "%.*s", (int)strcspn(word->str, " "), word->str);
	return text;
}

static inline bool is_one_of(const char *word, const char *words)
{
	size_t length = strlen(word);

	for (; *words; words += strcspn(words, " "), words += strspn(words, " "))
		if (!strncmp(word, words, length) && strchr(" ", words[length]))
			return true;
	return false;
}

/* What an answer that is not about success says about the job's state. */
static inline unsigned int states_of(const char *word)
{
	static const struct {
		unsigned int states;
		const char *words;
	} table[] = {
		{ GONE | DONE, "0" },
		{ GONE, "nil" },
		{ DONE, "DONE done" },
		{ LIVE, "HELD EXISTS held ready delayed" },
		{ BURIED, "BURIED buried" },
		{ ANY, "STALE DRAINING" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (is_one_of(word, table[i].words))
			return table[i].states;
	return 0;
}

static inline void note_done(struct call *call, bool quiet, unsigned int from)
{
	struct entry *entry = call->entry;
	unsigned int flags = call->verb->flags;

	entry->ended += !!(flags & ENDS);
	entry->acked += is_ack(call->verb);
	entry->made += flags & MAKES && from == GONE;
	if (flags & ENDS || (flags & MAKES && from == GONE))
		entry->failed = false;
	if (!quiet)
		return;
	if (!call->own && (call->receipt || !(flags & FREES)) && is_held(call))
		is_wrong(CHANGED, entry, call->verb->name, "done");
	settle(entry, state_after(call));
	if (flags & MOVES) {
		entry->known.earliest = call->sent_ms + call->ms;
		/* A part of a ms has begun. */
		entry->known.latest = now_ms(CLOCK_REALTIME) + call->ms + 1;
	}
	if (flags & MAKES)
		entry->known.oldest = call->version;
	if (flags & ANEW && entry->delivered < call->sent) {
		entry->most = 0;
		entry->life = call->life;
	}
	if (flags & HOLDS && call->own && call->held_until)
		entry->held_until = call->sent + lease + EXTENSION - ROUNDING;
}

/* It has not been done: all is as before, and the answer says in which state. */
static inline void note_not_done(struct call *call, bool quiet, unsigned int states,
				 const char *word)
{
	struct entry *entry = call->entry;

	if (!quiet)
		return;
	entry->known = call->before;
	settle(entry, call->before.states & states);
	if (states & (LIVE | BURIED) && states != ANY)
		note_exists(entry);
	if (strcmp(word, "STALE"))
		return;
	stale++;
	if (call->own && is_held(call))
		is_wrong(ROBBED, entry, call->verb->name, word);
}

/* The answer tells the job's number. */
static inline void note_number(struct call *call, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		note_id(call->entry, reply->integer);
	else if (reply->type == REDIS_REPLY_ARRAY)
		note_id(call->entry, reply->element[0]->integer);
}

/* What TW.GET and TW.LIST tell of a job that waits. */
static inline void note_due(const struct entry *entry, const struct known *known,
			    const char *verb, long long due)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", due);
	if (due < known->earliest || due > known->latest)
		is_wrong(OTHER_TIME, entry, verb, text);
}

/* The value of a name in a map that TW.GET gives; NULL if it is not there. */
static inline const redisReply *value_of(const redisReply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (!strcmp(reply->element[i]->str, name))
			return reply->element[i + 1];
	return NULL;
}

/* The reason begins with the number of the entry, if it is not the daemon's. */
static inline void note_more(const struct entry *entry, const redisReply *reply)
{
	const redisReply *reason = value_of(reply, "reason");
	int index = entry - entries;

	if ((entry->failed && !reason) || entry->options != !!value_of(reply, "lease_ms") ||
	    (reason && sscanf(reason->str, "%d", &index) == 1 && index != entry - entries))
		is_wrong(FORGOTTEN, entry, "GET", reason ? reason->str : "");
}

static inline void note_map(const struct entry *entry, const struct known *known,
			    const redisReply *reply)
{
	redisReply **map = reply->element;
	int index = -1, version = 0;

	if (strcmp(map[3]->str, "buried"))
		note_due(entry, known, "GET", map[5]->integer);
	if (sscanf(map[11]->str, "%d.%d", &index, &version) != 2 ||
	    index != entry - entries || version < known->oldest || version > known->newest)
		is_wrong(OTHER_BODY, entry, "GET", map[11]->str);
	note_more(entry, reply);
}

static inline void note_answer(struct call *call, const redisReply *reply, bool quiet)
{
	struct entry *entry = call->entry;
	const struct queue *queue = entry->queue;
	char text[64];
	const char *word = word_of(call->verb, reply, text, sizeof(text));
	/* A start loads the wheels of the process, and does not know all keys until then. */
	bool loading = in_process() && !strcmp(word, "LOADING");
	unsigned int is = loading ? ANY : states_of(word);
	unsigned int from = call->verb->from, possible = is;

	if (!is && call->verb->flags & MAKES)
		possible = !strcmp(word, "NEW") ? GONE : LIVE | BURIED;
	else if (!is)
		possible = from;
	if ((!loading && !is_one_of(word, call->verb->answers)) ||
	    (!strcmp(word, "DRAINING") && queue->was_drained < call->sent) ||
	    (quiet && !(call->before.states & possible))) {
		is_wrong(LIES, entry, call->verb->name, word);
		return;
	}
	if (call->verb->flags & MAKES)
		note_number(call, reply);
	if (!is && possible == GONE && queue->drained && queue->drained < call->sent)
		is_wrong(DRAINED, entry, call->verb->name, word);
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements >= 12 && quiet && is != DONE)
		note_map(entry, &call->before, reply);
	if (call->verb->flags & FAILS && quiet && strcmp(word, "STALE"))
		entry->failed = true;
	if (is)
		note_not_done(call, quiet, is, word);
	else
		note_done(call, quiet, possible);
}

/* With its answer, or none. Returns whether there was one. */
static inline bool end(struct call *call, const redisReply *reply)
{
	struct entry *entry = call->entry;
	bool quiet;

	pthread_mutex_lock(&ledger);
	quiet = is_quiet(entry, call->sent, 1);
	if (reply) {
		note_answer(call, reply, quiet);
	} else {
		in_doubt++;
		entry->maybe_ended += !!(call->verb->flags & ENDS);
		entry->maybe_acked += is_ack(call->verb);
		if (call->verb->flags & MAKES) {
			entry->maybe_made++;
			entry->id = 0;
		}
		if (call->verb->flags & (ENDS | MAKES))
			entry->failed = false;
	}
	entry->under_way--;
	entry->answered = mono();
	pthread_mutex_unlock(&ledger);
	return reply;
}

/* Of a queue, for all threads. */
static inline void note_time(long long *time, long long value)
{
	pthread_mutex_lock(&ledger);
	*time = value;
	pthread_mutex_unlock(&ledger);
}

/* TW.KICK q ALL may bring back each buried job. */
static inline void begin_kicks(const struct queue *queue)
{
	pthread_mutex_lock(&ledger);
	kicks_under_way++;
	for (struct entry *entry = entries; entry < entries + next_entry; entry++) {
		if (entry->queue != queue || !(entry->known.states & BURIED))
			continue;
		entry->known.states |= LIVE;
		entry->fewest = 0;
		add_due(&entry->known, now_ms(CLOCK_REALTIME));
	}
	pthread_mutex_unlock(&ledger);
}

static inline void end_kicks(void)
{
	pthread_mutex_lock(&ledger);
	kicks_under_way--;
	kicks_answered = mono();
	pthread_mutex_unlock(&ledger);
}

/* A take, when it is sent. */
struct asked {
	long long sent;
	int kills, life;
	bool bound;
};

static inline struct asked ask(bool bound)
{
	struct asked asked = { .bound = bound };

	pthread_mutex_lock(&ledger);
	asked.kills = kills;
	asked.life = lives;
	asked.sent = mono();
	pthread_mutex_unlock(&ledger);
	return asked;
}

/* What was known before the job was asked for. */
static inline void compare(const struct entry *entry, const struct taken *taken,
			   const struct asked *asked)
{
	const struct known *known = &entry->known;
	const struct queue *queue = entry->queue;
	int version = atoi(strchr(taken->body, '.') + 1);

	if (queue->paused && queue->paused < asked->sent)
		is_wrong(PAUSED, entry, "TAKE", taken->body);
	if (entry->since >= asked->sent)
		return;
	if (!(known->states & LIVE))
		is_wrong(NOT_THERE, entry, "TAKE", taken->body);
	if (version < known->oldest || version > known->newest)
		is_wrong(OTHER_BODY, entry, "TAKE", taken->body);
	note_due(entry, known, "TAKE", taken->due);
}

static inline bool is_surely_held(const struct entry *entry)
{
	return entry && entry->held_until > mono() && entry->kills == kills;
}

/* The queue has a LIMIT. A job that is surely held has been so at each moment since then. */
static inline void count_held(const struct entry *entry, const struct taken *taken)
{
	struct queue *queue = entry->queue;
	const struct entry **place = NULL;

	if (!queue->limit || !is_surely_held(entry))
		return;
	for (const struct entry **held = queue->held; held < queue->held + queue->limit; held++) {
		if (*held == entry)
			return;
		if (!is_surely_held(*held))
			place = held;
	}
	if (place)
		*place = entry;
	else
		is_wrong(CROWDED, entry, "TAKE", taken->body);
}

static inline void hold(struct entry *entry, const struct taken *taken,
			const struct asked *asked)
{
	long long now = mono(), until = asked->sent + lease - ROUNDING;

	if (now_ms(CLOCK_REALTIME) < taken->due)
		is_wrong(EARLY, entry, "TAKE", taken->body);
	if (entry->queue->tries && taken->attempt > entry->queue->tries)
		is_wrong(TRIED, entry, "TAKE", taken->body);
	if (entry->held_until > now && entry->kills == kills)
		is_wrong(SHARED, entry, "TAKE", taken->body);
	/* A daemon that ends gives back what is bound; and the job may have been deleted. */
	entry->held_until = asked->bound || !is_quiet(entry, asked->sent, 0) ? 0 : until;
	entry->kills = asked->kills;
	snprintf(entry->receipt, sizeof(entry->receipt), "%s", taken->receipt);
	count_held(entry, taken);
}

/*
 * Each delivery is one attempt. Each life of the daemon may have ended with one more, the
 * answer to which was lost. A first attempt is counted by the wheel only, so that a wheel of
 * the process forgets it when it is killed.
 */
static inline void count_attempt(struct entry *entry, const struct taken *taken,
				 const struct asked *asked)
{
	bool later = entry->delivered < asked->sent;
	bool sure = later && is_quiet(entry, asked->sent, 0);
	bool first = in_process() && taken->attempt == 1 && entry->fewest == 1 &&
		     lives > entry->life;

	if (later && ((taken->attempt <= entry->fewest && !first) ||
		      taken->attempt > entry->most + 1 + lives - entry->life))
		is_wrong(MISCOUNTED, entry, "TAKE", taken->body);
	entry->fewest = sure ? taken->attempt : 0;
	entry->most = sure ? taken->attempt : MAX(entry->most, taken->attempt);
	if (sure)
		entry->life = asked->life;
	entry->delivered = mono();
	entry->awaited = false;
}

/* A worker has got this job. Returns its entry, or NULL if it has none. */
static inline struct entry *note_delivery(const struct taken *taken,
					  const struct asked *asked)
{
	int index = atoi(taken->body);
	struct entry *entry = &entries[index];

	pthread_mutex_lock(&ledger);
	if (index < 0 || index >= next_entry || !strchr(taken->body, '.') ||
	    strcmp(taken->queue, entry->queue->name)) {
		printf("# nobody has put this job of %s: %s\n", taken->queue, taken->body);
		wrong[STRANGE]++;
		entry = NULL;
	} else {
		deliveries++;
		compare(entry, taken, asked);
		count_attempt(entry, taken, asked);
		hold(entry, taken, asked);
		note_id(entry, taken->id);
		if (is_quiet(entry, asked->sent, 0)) {
			note_exists(entry);
			settle(entry, LIVE);
		}
	}
	pthread_mutex_unlock(&ledger);
	return entry;
}

/* TW.DONE tells of a job with this number. */
static inline void note_told(long long id)
{
	if (id > 0 && id < IDS && entry_of_id[id])
		entries[entry_of_id[id] - 1].told++;
	else
		wrong[STRANGE]++;
}

/* When no job is left. Prints what is in the ledger. */
static inline void sum_up(void)
{
	int made = 0, ended = 0, beyond;

	for (struct entry *entry = entries; entry < entries + next_entry; entry++) {
		made += entry->made;
		ended += entry->ended;
		if (entry->made > entry->ended + entry->maybe_ended)
			is_wrong(LOST, entry, "", "");
		if (entry->ended > entry->made + entry->maybe_made)
			is_wrong(TWICE, entry, "", "");
		beyond = entry->told - entry->acked;
		if (entry->queue->keep_done && (beyond < 0 || beyond > entry->maybe_acked))
			is_wrong(KEPT_WRONGLY, entry, "DONE", "");
	}
	printf("# jobs made %d, ended %d, deliveries %d, stale %d, in doubt %d\n",
	       made, ended, deliveries, stale, in_doubt);
}

#endif /* JOBS_LEDGER_H */
