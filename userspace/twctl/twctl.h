/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twctl: declarations for all its files. verbs.c has the table of verbs and
 * options, which parsing, help and completion use. Each verb, or group of verbs,
 * has a file of its own.
 */
#ifndef TWCTL_H
#define TWCTL_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <timewheel.h>
#include <unistd.h>

#include "times.h"

#define __noreturn		__attribute__((__noreturn__))
#define __printf(a, b)		__attribute__((__format__(printf, a, b)))

/* How twctl ends. The man page tells users. */
enum status {
	STATUS_OK		= 0,
	STATUS_FAILED		= 1,
	STATUS_USAGE		= 2,
	STATUS_NOT_THERE	= 3,
	STATUS_NOT_ALLOWED	= 4,
	STATUS_EXISTS		= 5,
	STATUS_FULL		= 6,
	STATUS_NO_DEVICE	= 7,
	STATUS_DESTROYED	= 8,
	STATUS_IDLE		= 9,
	STATUS_TASK_FAILED	= 10,
	STATUS_NOT_NOW		= 11,
};

/* The table (verbs.c) */

enum opt {
	OPT_HELP,
	OPT_VERSION,
	OPT_JSON,
	OPT_OUTPUT,
	OPT_NO_HEADINGS,
	OPT_BYTES,
	OPT_CLOCK,
	OPT_TICK,
	OPT_SLOTS,
	OPT_MAX_TOKENS,
	OPT_START,
	OPT_NO_IDS,
	OPT_NO_COOKIES,
	OPT_TOUCH_WORDS,
	OPT_LEASE,
	OPT_MAX_ATTEMPTS,
	OPT_PERIODS,
	OPT_SLACK,
	OPT_EXCLUSIVE,
	OPT_UNDO,
	OPT_FROM,
	OPT_TO,
	OPT_STATE,
	OPT_HANDLE,
	OPT_COOKIE,
	OPT_EVERY,
	OPT_TIMEOUT,
	OPT_JITTER,
	OPT_REGISTER,
	OPT_ACK_DELAY,
	OPT_NACK_DELAY,
	OPT_EXTENSION,
	OPT_BURIED,
	OPT_ACK,
	OPT_COUNT,
	OPT_IDLE_TIMEOUT,
	OPT_FORMAT,
	OPT_HISTOGRAM,
	OPT_PROMETHEUS,
	OPT_OUTPUT_FILE,
	OPT_DELAY,
	OPT_ROUNDS,
	OPT_JOBS,
	OPT_RETRIES,
	OPT_ROOT,
	NR_OPTIONS,
};

/* @letter: 0 for none. @arg: name of the argument, NULL for none. */
struct option_text {
	char		letter;
	const char	*name;
	const char	*arg;
	const char	*help;
};

extern const struct option_text option_texts[NR_OPTIONS];

enum column_flags {
	COL_NUMBER	= 1 << 0,
	COL_BOOL	= 1 << 1,
	COL_HIDDEN	= 1 << 2,	/* only shown when asked for */
};

/* A column of a verb's table. An array ends with a column without a name. */
struct column {
	const char		*name;
	enum column_flags	flags;
	const char		*help;
};

struct args;
struct out;

/* @options: a bit for each enum opt. @most: the most arguments it takes. */
struct verb {
	const char		*name;
	const char		*args;
	const char		*help;
	uint64_t		options;
	const struct column	*columns;
	int			least;
	int			most;
	enum status		(*run)(const struct args *args);
};

/* Ends with a verb without a name. Without a verb the first one runs. */
extern const struct verb verbs[];

extern const struct column wheel_columns[], token_columns[], op_columns[],
	slot_columns[], stats_columns[], bucket_columns[], top_columns[],
	check_columns[];

const struct verb *verb_find(const char *name);

enum status verb_wheels(const struct args *args);
enum status verb_create(const struct args *args);
enum status verb_destroy(const struct args *args);
enum status verb_list(const struct args *args);
enum status verb_show(const struct args *args);
enum status verb_add(const struct args *args);
enum status verb_touch(const struct args *args);
enum status verb_move(const struct args *args);
enum status verb_cancel(const struct args *args);
enum status verb_get(const struct args *args);
enum status verb_ack(const struct args *args);
enum status verb_nack(const struct args *args);
enum status verb_extend(const struct args *args);
enum status verb_bury(const struct args *args);
enum status verb_kick(const struct args *args);
enum status verb_delete(const struct args *args);
enum status verb_pause(const struct args *args);
enum status verb_resume(const struct args *args);
enum status verb_drain(const struct args *args);
enum status verb_advance(const struct args *args);
enum status verb_watch(const struct args *args);
enum status verb_stats(const struct args *args);
enum status verb_top(const struct args *args);
enum status verb_exec(const struct args *args);
enum status verb_doctor(const struct args *args);
enum status verb_help(const struct args *args);
enum status verb_completion(const struct args *args);

/* A command line, parsed (args.c) */

/* @option: the argument, "" if the option takes none, NULL if it is not given. */
struct args {
	const struct verb	*verb;
	const char		*option[NR_OPTIONS];
	char			**arg;
	int			count;
};

void args_parse(struct args *args, const struct verb *verb, int argc,
		char **argv);
uint64_t number_of(const char *name, const char *text, uint64_t least,
		   uint64_t most);
uint64_t option_number(const struct args *args, enum opt option,
		       uint64_t least, uint64_t most, uint64_t otherwise);
uint64_t option_span(const struct args *args, enum opt option,
		     uint64_t otherwise);
struct when words_when(const char *name, char **words, int count);

/* Error messages (fail.c) */

extern const char *program_verb;

__printf(1, 2)
void complain(const char *format, ...);
__printf(2, 3)
enum status trouble(enum status status, const char *format, ...);
__noreturn __printf(2, 3)
void die(enum status status, const char *format, ...);
__noreturn void die_usage(const char *name, const char *text,
			  const char *accepted);
enum status device_trouble(void);
enum status wheel_trouble(const char *wheel);
enum status key_trouble(const char *wheel, const char *key, bool handle);
enum status delivery_trouble(const char *wheel, const char *key,
			     const struct timewheel_op *op);

/* The wheels there are (wheels.c) */

char **wheel_names(const struct args *args);
void wheel_names_free(char **names);

/* A wheel (wheel.c) */

/* @info and @real, the wall time, were read when it was opened. */
struct wheel {
	const char		*name;
	struct tw_wheel		*wheel;
	struct timewheel_info	info;
	uint64_t		real;
};

void wheel_open(struct wheel *wheel, const char *name, int access);
void wheel_close(struct wheel *wheel);
const char *clock_name(unsigned int clock);
const char *state_name(unsigned int state);
uint64_t real_now(void);

/* What a given time means for a wheel. @absolute: it is a point of time, no delay. */
struct wheel_time {
	uint64_t	ns;
	bool		absolute;
};

struct wheel_time wheel_time_of(const struct wheel *wheel,
				const struct when *when);
uint64_t wheel_deadline_of(const struct wheel *wheel, const struct when *when);

/*
 * The point of time that a token's state is about: its deadline, the end of its
 * lease, or when it was buried. The other two are 0.
 */
static inline uint64_t token_time(const struct timewheel_token *token)
{
	return token->deadline | token->lease_end | token->buried_at;
}

/* Operations on tokens (ops.c) */

void check_keys(char **keys, int count);
void need_ids(const struct wheel *wheel, bool handle);
enum status op_run(struct out *out, const struct wheel *wheel,
		   struct timewheel_op *op, const char *key);
enum status op_run_each(const struct args *args, struct out *out,
			const struct wheel *wheel,
			const struct timewheel_op *model);
void op_put(struct out *out, const struct wheel *wheel,
	    const struct timewheel_op *op, bool has_id);

/* Tables (out.c) */

struct out *out_begin(const struct args *args, const struct column *columns,
		      const char *name);
void out_row(struct out *out);
bool out_wants(const struct out *out, int column);
__printf(3, 4)
void out_text(struct out *out, int column, const char *format, ...);
void out_number(struct out *out, int column, uint64_t number);
void out_bool(struct out *out, int column, bool yes);
void out_size(struct out *out, int column, uint64_t bytes);
void out_span(struct out *out, int column, int64_t ns);
void out_local(struct out *out, int column, const struct wheel *wheel,
	       uint64_t time);
void out_end(struct out *out);
bool colors_wanted(void);

/* Figures (figures.c), and in Prometheus' format (prometheus.c) */

/* @info.slots: 0 when there are none. */
struct stats {
	struct timewheel_info	info;
	uint64_t		lateness[TIMEWHEEL_BUCKETS];
	uint64_t		wake[TIMEWHEEL_BUCKETS];
};

enum status stats_take(struct stats *stats, const char *name, bool asked);
void put_percentile(struct out *out, int column, const uint64_t *buckets,
		    double percent);
enum status prometheus(const struct args *args);

/* Slots (ring.c) */

/* Tokens in a slot. @lap: those due before the hand has made a whole lap. */
struct slot {
	uint64_t	tokens;
	uint64_t	lap;
	uint64_t	earliest;
};

struct ring {
	struct slot	*slots;
	uint64_t	tokens;
	uint64_t	due;
	uint64_t	laps[8];	/* by Cycle-Num; the last entry counts all higher ones */
};

int ring_count(struct ring *ring, const struct wheel *wheel);
void ring_free(struct ring *ring);

/* Expirations (events.c), and their fields in text (template.c) */

enum wake {
	WAKE_EVENTS,
	WAKE_IDLE,
	WAKE_SIGNAL,
	WAKE_READER_GONE,
};

extern atomic_int stop_signal;

void signals_begin(void);
__noreturn void signal_end(void);
int wait_for(struct pollfd *fds, int count, uint64_t end);
uint64_t end_after(uint64_t span);
void wheel_open_to_read(struct wheel *wheel, const char *name);
void wheel_open_to_answer(struct wheel *wheel, const char *name);
struct tw_events *take(const struct wheel *wheel, size_t most);
void put_back(const struct wheel *wheel, const struct timewheel_event *event);

void template_check(const char *name, const char *template);
char *template_fill(const char *template, const char *wheel,
		    const struct timewheel_event *event);
extern const char * const event_fields[];
void event_field(char *text, size_t size, const char *field, const char *wheel,
		 const struct timewheel_event *event);

#endif /* TWCTL_H */
