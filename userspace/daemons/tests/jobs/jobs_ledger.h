/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger notes what twjobd's answers say about each job, and finds answers that contradict
 * others. A job's body is "ENTRY.VERSION", the number of its entry here and of the put that gave
 * it this body.
 *
 * The knowledge of a job is a set: the states in which it may be, the times at which it may be
 * due, and the bodies that it may have. A command that is sent adds to the set what the command
 * would make of the job. If no other command about this job was under way, the answer leaves only
 * what it says. A command whose answer is lost may have been carried out or not, so the set stays
 * as large as it is. Later answers make the set smaller. Each answer and each delivery has to
 * agree with the knowledge from before the command was sent.
 */
#ifndef JOBS_LEDGER_H
#define JOBS_LEDGER_H

#include <limits.h>
#include <sys/param.h>

#include "jobs.h"

#define JOBS		200000
#define IDS		(1 << 25)
#define FOREVER		LLONG_MAX
/* The rounding of times to milliseconds may change a lease by this many us. */
#define ROUNDING	20000
/* Workers may have this many jobs of a queue with a LIMIT at once, and this many of a group. */
#define MAX_LIMIT	4
/* A queue with a RATE hands out so many jobs for each worker in this many s. */
#define RATE		2
#define RATE_SPAN	1
#define GROUP_LIMIT	2
#define GROUPS		3
/* Done jobs are kept for this many s, which is longer than a test lasts. */
#define KEPT		"604800"
/* TW.EXTEND makes a lease this many us longer than the queue's lease. */
#define EXTENSION	1000000

/* A job has these states. A job that has not been put yet is gone, too. */
#define GONE		1U
#define LIVE		2U	/* waits for its time, or for its worker's answer */
#define BURIED		4U
#define DONE		8U	/* a worker has done it, and its key is still known */
#define ANY		15U

/* A verb has these flags. */
#define MAKES		1U	/* it makes a job */
#define ENDS		2U	/* it ends a job */
#define MOVES		4U	/* it changes the time at which the job is due */
#define TIMED		8U	/* the command tells this time, otherwise the job is due now */
#define FREES		16U	/* no worker is sure of the job any more */
#define HOLDS		32U	/* the lease begins again, and is a longer one */
#define ANEW		64U	/* it starts the count of attempts anew */
#define FAILS		128U	/* it tells a reason, which stays until the job ends */
#define UNTRIES		256U	/* its delivery counts no attempt */

struct verb {
	const char *name;
	enum { BY_ID, BY_KEY, BY_RECEIPT, BY_BODY, BY_QUEUE } by;
	/*
	 * The weight says how often the verb is chosen among the verbs of a producer, or of a
	 * worker.
	 */
	int weight;
	unsigned int from, to, flags;
	const char *answers;
	const char *more;	/* the end of the command */
};

struct entry;

/* Workers have few of these jobs at once. All jobs that they surely have are in @held. */
struct limited {
	int limit;
	const struct entry *held[MAX_LIMIT];
};

/*
 * There are two queues, so that a take has a choice. In the first queue some jobs have groups. In
 * the second queue jobs get buried, workers have few jobs at once, which are handed out at a
 * rate, and done jobs are kept.
 */
static struct queue {
	const char *name;
	int tries;
	struct limited all;
	const char *keep_done;
	int rate;
	/* In the life @counted of the daemon so many jobs have been @handed out at least. */
	int counted, handed;
	/*
	 * @paused and @drained: since when this has been certain. @was_drained: until when it was
	 * possible.
	 */
	long long paused, drained, was_drained;
} queues[] = { { "q" }, { "u", 3, { MAX_LIMIT }, KEPT, RATE } };

static struct limited groups[GROUPS] = { { GROUP_LIMIT }, { GROUP_LIMIT }, { GROUP_LIMIT } };

struct known {
	unsigned int states;
	long long earliest, latest;	/* ms of the wall clock: when it may be due */
	int oldest, newest;		/* the versions that it may have */
};

static struct entry {
	struct queue *queue;
	bool keyed, awaited;		/* it was listed as ready, and not delivered since */
	bool options;			/* it is put with options */
	struct limited *group;		/* NULL: it has none */
	bool unique;			/* its key stays known when a worker has done it */
	bool failed;			/* a worker has told a reason since the last end */
	long long id;			/* 0: the id is not known */
	int versions;
	struct known known;
	/*
	 * @under_way: commands about it without an answer yet. @answered: when the last answer
	 * came. @since: when the last certain answer came.
	 */
	int under_way;
	long long answered, since;
	/*
	 * @listed: when the TW.LIST that listed it was sent. @delivered: when a delivery was
	 * noted.
	 */
	long long listed, delivered;
	/* The numbers of certain jobs, and of jobs of commands whose answer was lost. */
	int made, maybe_made, ended, maybe_ended;
	/*
	 * The numbers of certain ACKs, of ACKs whose answer was lost, and of jobs that TW.DONE
	 * has told.
	 */
	int acked, maybe_acked, told;
	/*
	 * The worker with this receipt surely has the job until @held_until, if no kill comes
	 * before.
	 */
	char receipt[128];
	long long held_until;
	int kills;
	/*
	 * @fewest, @most: how many attempts there may have been. Each start since @life may have
	 * added one whose answer was lost. @lowered: when an answer told that there were fewer.
	 */
	int fewest, most, life;
	long long lowered;
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
	PAUSED, DRAINED, CROWDED, HURRIED, KEPT_WRONGLY, LIES, STRANGE, WRONGS
};

static const char * const wrongs[] = {
	"lost", "ended twice", "handed out though gone or buried", "with another body",
	"due at another time", "early", "ready and not handed out",
	"handed out while another has it",
	"lease ended too soon", "changed while a worker has it", "tried too often",
	"attempts miscounted", "its reason or options forgotten, or another's",
	"handed out while paused", "put while drained",
	"handed out while workers have as many as they may",
	"handed out before the rate permits",
	"told of as done though it is not, or not told of", "answers that contradict others",
	"strange"
};

static pthread_mutex_t ledger = PTHREAD_MUTEX_INITIALIZER;
static int entry_of_id[IDS];	/* the number of the entry plus 1 */
static int next_entry, kills, lives, kicks_under_way, deliveries, in_doubt, stale;
static long long kicks_answered, lease, life_begun;
static int wrong[WRONGS];

/* Returns the time in us of one clock for all threads. */
static inline long long mono(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

/* Counts what is wrong. The first few messages of a kind also tell the job. */
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
		if (!queue && next_entry % 4 == 0)
			entry->group = &groups[next_entry / 4 % GROUPS];
		entry->known = (struct known) { GONE, FOREVER, 0, INT_MAX, 0 };
	}
	pthread_mutex_unlock(&ledger);
	return entry;
}

/* Notes the entry's number, which no other entry may ever have. */
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

/* Tells whether no other command about this job but @own has been under way since @sent. */
static inline bool is_quiet(const struct entry *entry, long long sent, int own)
{
	return entry->under_way == own && entry->answered < sent && !kicks_under_way &&
	       kicks_answered < sent;
}

/* Adds a state: where tries are counted, a job may get buried without a command. */
static inline unsigned int and_later(const struct entry *entry, unsigned int states)
{
	return states & LIVE && entry->queue->tries ? states | BURIED : states;
}

/* Notes that only these states are left. */
static inline void settle(struct entry *entry, unsigned int states)
{
	entry->known.states = and_later(entry, states);
	entry->since = mono();
}

/* Notes that there is a job now: of all jobs that were made, all but one have ended. */
static inline void note_exists(struct entry *entry)
{
	if (entry->made == entry->ended && entry->maybe_made) {
		entry->made++;
		entry->maybe_made--;
	}
	if (!entry->maybe_made)
		entry->maybe_ended = MAX(entry->made - 1 - entry->ended, 0);
}

/* Tells whether a worker has had the job since before the command was sent. */
static inline bool is_held(const struct call *call)
{
	return call->held_until > mono() && call->kills == kills;
}

/* Notes that the job may also be due at any time from @due on. */
static inline void add_due(struct known *known, long long due)
{
	known->earliest = MIN(known->earliest, due);
	known->latest = FOREVER;
}

static inline bool is_ack(const struct verb *verb)
{
	return verb->by == BY_RECEIPT && verb->flags & ENDS;
}

/* Returns the state that the command gives the job. */
static inline unsigned int state_after(const struct call *call)
{
	return is_ack(call->verb) && call->entry->unique ? DONE : call->verb->to;
}

/* Notes that from now on the job may be as the command makes it, and as a kick may then make it. */
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
	else if (flags & UNTRIES)
		call->entry->fewest = MAX(call->entry->fewest - 1, 0);
}

/* Notes a command that is about to be sent. Returns false if the command does not fit this job. */
static inline bool begin(struct call *call)
{
	struct entry *entry = call->entry;
	bool can;

	pthread_mutex_lock(&ledger);
	can = call->verb->by == BY_ID ? entry->id :
	      call->verb->by == BY_KEY ? entry->keyed : true;
	/* A DELETE would end a known key, and no job. */
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

/* Returns an answer's first word, or a job's state. */
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

/* Returns what an answer that is no success says about the job's state. */
static inline unsigned int states_of(const char *word)
{
	static const struct {
		unsigned int states;
		const char *words;
	} table[] = {
		{ GONE | DONE, "0" },
		{ GONE, "nil" },
		{ DONE, "DONE done" },
		{ LIVE, "HELD EXISTS held ready delayed waiting" },
		{ BURIED, "BURIED buried" },
		{ ANY, "STALE DRAINING" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (is_one_of(word, table[i].words))
			return table[i].states;
	return 0;
}

/* Notes that the command has lowered the count of attempts. No delivery was noted meanwhile. */
static inline void note_fewer(struct call *call)
{
	unsigned int flags = call->verb->flags;
	struct entry *entry = call->entry;

	if (flags & ANEW) {
		entry->most = 0;
		entry->life = call->life;
	} else if (flags & UNTRIES && call->own) {
		entry->most--;
	} else {
		return;
	}
	entry->lowered = mono();
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
		/* A part of a ms counts as a whole ms. */
		entry->known.latest = now_ms(CLOCK_REALTIME) + call->ms + 1;
	}
	if (flags & MAKES)
		entry->known.oldest = call->version;
	if (entry->delivered < call->sent)
		note_fewer(call);
	if (flags & HOLDS && call->own && call->held_until)
		entry->held_until = call->sent + lease + EXTENSION - ROUNDING;
}

/* Notes that the command has changed nothing. The answer tells in which state the job is. */
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

/* Notes the job's number, if the answer tells it. */
static inline void note_number(struct call *call, const redisReply *reply)
{
	if (reply->type == REDIS_REPLY_INTEGER)
		note_id(call->entry, reply->integer);
	else if (reply->type == REDIS_REPLY_ARRAY)
		note_id(call->entry, reply->element[0]->integer);
}

/* Checks the time that TW.GET and TW.LIST tell of a job that waits. */
static inline void note_due(const struct entry *entry, const struct known *known,
			    const char *verb, long long due)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", due);
	if (due < known->earliest || due > known->latest)
		is_wrong(OTHER_TIME, entry, verb, text);
}

/* Returns the value of a name in a map of TW.GET, or NULL if the map does not have the name. */
static inline const redisReply *value_of(const redisReply *reply, const char *name)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (!strcmp(reply->element[i]->str, name))
			return reply->element[i + 1];
	return NULL;
}

/* Checks the reason. It begins with the number of the entry, unless the daemon has given it. */
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
	/*
	 * With wheels of the process a start loads the wheels, and does not know all keys until
	 * then.
	 */
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

/*
 * Notes the end of a command, with its answer or without one. Returns whether there was an
 * answer.
 */
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

/* Sets a time of a queue for all threads. */
static inline void note_time(long long *time, long long value)
{
	pthread_mutex_lock(&ledger);
	*time = value;
	pthread_mutex_unlock(&ledger);
}

/* Notes that TW.KICK q ALL may bring back each buried job. */
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

/* This is noted of a take when it is sent. */
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

/* Compares the job with what was known before the take was sent. */
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

/* A job that is surely held has been held at each moment since its delivery. */
static inline void count_held(struct limited *limited, const struct entry *entry,
			      const struct taken *taken)
{
	const struct entry **place = NULL;

	if (!limited || !limited->limit || !is_surely_held(entry))
		return;
	for (const struct entry **held = limited->held; held < limited->held + limited->limit;
	     held++) {
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
	/*
	 * A daemon that ends gives back bound deliveries. After another command under way the job
	 * may have been deleted.
	 */
	entry->held_until = asked->bound || !is_quiet(entry, asked->sent, 0) ? 0 : until;
	entry->kills = asked->kills;
	snprintf(entry->receipt, sizeof(entry->receipt), "%s", taken->receipt);
	count_held(&entry->queue->all, entry, taken);
	count_held(entry->group, entry, taken);
}

/*
 * A life of the daemon begins as after a rest. A take that was sent and answered in the same life
 * has its jobs from this life.
 */
static inline void count_handed(struct queue *queue, const struct entry *entry,
				const struct taken *taken, const struct asked *asked)
{
	if (!queue->rate || asked->life != lives)
		return;
	if (queue->counted != lives)
		queue->handed = 0;
	queue->counted = lives;
	if (++queue->handed > queue->rate + (mono() - life_begun) * queue->rate /
	    (RATE_SPAN * 1000000))
		is_wrong(HURRIED, entry, "TAKE", taken->body);
}

/*
 * Each delivery is one attempt. Each life of the daemon may have ended with one more attempt
 * whose answer was lost. Only the wheel counts a first attempt, so a wheel of the process forgets
 * this attempt when the process is killed. A take that was sent before the count was lowered may
 * have got its job before this, too.
 */
static inline void count_attempt(struct entry *entry, const struct taken *taken,
				 const struct asked *asked)
{
	bool later = MAX(entry->delivered, entry->lowered) < asked->sent;
	bool sure = later && is_quiet(entry, asked->sent, 0);
	bool first = in_process() && taken->attempt == 1 && entry->fewest == 1 &&
		     lives > entry->life;

	if (later && ((taken->attempt <= entry->fewest && !first) ||
		      taken->attempt > entry->most + 1 + lives - entry->life)) {
		is_wrong(MISCOUNTED, entry, "TAKE", taken->body);
		printf("# attempt %d after %d to %d of life %d, in life %d, %lld ms after due,\n"
		       "# %lld us after the last answer, %lld us after the last delivery\n",
		       (int)taken->attempt, entry->fewest, entry->most, entry->life, lives,
		       now_ms(CLOCK_REALTIME) - taken->due, mono() - entry->since,
		       mono() - entry->delivered);
	}
	entry->fewest = sure ? taken->attempt : 0;
	entry->most = sure ? taken->attempt : MAX(entry->most, taken->attempt);
	if (sure)
		entry->life = asked->life;
	entry->delivered = mono();
	entry->awaited = false;
}

/* Notes that a worker has got this job. Returns the job's entry, or NULL if there is none. */
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
		count_handed(entry->queue, entry, taken, asked);
		note_id(entry, taken->id);
		if (is_quiet(entry, asked->sent, 0)) {
			note_exists(entry);
			settle(entry, LIVE);
		}
	}
	pthread_mutex_unlock(&ledger);
	return entry;
}

/* Notes that TW.DONE tells of a job with this number. */
static inline void note_told(long long id)
{
	if (id > 0 && id < IDS && entry_of_id[id])
		entries[entry_of_id[id] - 1].told++;
	else
		wrong[STRANGE]++;
}

/* Checks the whole ledger when no job is left, and prints a summary. */
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
