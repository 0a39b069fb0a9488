/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twctl: declarations for all its files. verbs.c has the table of verbs and
 * options, which parsing, help and completion use. Each verb, or group of verbs,
 * has a file of its own.
 */
#ifndef TWCTL_H
#define TWCTL_H

#include <limits.h>
#include <sys/stat.h>
#include <timewheel.h>

#include "tool.h"

/* The table (verbs.c) */

enum {
	OPT_CLOCK = OPT_OWN,
	OPT_TICK,
	OPT_SLOTS,
	OPT_MAX_TOKENS,
	OPT_START,
	OPT_NO_IDS,
	OPT_NO_COOKIES,
	OPT_TOUCH_WORDS,
	OPT_LEASE,
	OPT_MAX_HELD,
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
	OPT_NACK_DELAY,
	OPT_EXTENSION,
	OPT_ACK,
	OPT_COUNT,
	OPT_IDLE_TIMEOUT,
	OPT_FORMAT,
	OPT_PROMETHEUS,
	OPT_OUTPUT_FILE,
	OPT_DELAY,
	OPT_ROUNDS,
	OPT_JOBS,
	OPT_TRIES,
	OPT_FAILED,
	OPT_BATCH,
	OPT_TIME_LIMIT,
	OPT_ROOT,
	OPT_DRY_RUN,
	OPT_WALL,
	OPT_FORCE,
	OPT_PID,
	OPT_CGROUP,
	OPT_IDLE,
	OPT_LISTEN,
	OPT_RECEIVED,
	OPT_GRACE,
};

/* Columns of the list of wheels (wheels.c) */
enum {
	WHEEL_NAME, WHEEL_OWNER, WHEEL_GROUP, WHEEL_MODE, WHEEL_NUMBER, WHEEL_CLOCK,
	WHEEL_TICK, WHEEL_SLOTS, WHEEL_IDS, WHEEL_COOKIES, WHEEL_PENDING, WHEEL_MAX,
	WHEEL_NEXT, WHEEL_STATE, WHEEL_HELD, WHEEL_BYTES, WHEEL_TOUCH_WORDS, WHEEL_LEASE,
	WHEEL_MAX_HELD, WHEEL_PERIODS, WHEEL_SLACK,
};

extern const struct column wheel_columns[], token_columns[], op_columns[],
	slot_columns[], stats_columns[], top_columns[],
	check_columns[], holder_columns[];

enum status verb_wheels(const struct args *args);
enum status verb_create(const struct args *args);
enum status verb_destroy(const struct args *args);
enum status verb_holders(const struct args *args);
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
enum status verb_delete(const struct args *args);
enum status verb_pause(const struct args *args);
enum status verb_resume(const struct args *args);
enum status verb_drain(const struct args *args);
enum status verb_advance(const struct args *args);
enum status verb_batch(const struct args *args);
enum status verb_watch(const struct args *args);
enum status verb_stats(const struct args *args);
enum status verb_top(const struct args *args);
enum status verb_exec(const struct args *args);
enum status verb_doctor(const struct args *args);
enum status verb_apply(const struct args *args);
enum status verb_save(const struct args *args);
enum status verb_restore(const struct args *args);
enum status verb_reap(const struct args *args);
enum status verb_upgrade(const struct args *args);

/* Lines (watch.c) */

bool write_line(const char *line, size_t length);
bool print_line(char *text);

/* Error messages (fail.c) */

bool can_be_name(const char *name);
enum status device_trouble(void);
enum status wheel_trouble(const char *wheel);
enum status key_trouble(const char *wheel, const char *key, bool handle);
enum status delivery_trouble(const char *wheel, const char *key,
			     const struct timewheel_op *op);

/* Processes that have wheels open (holders.c) */

/* @wheel: its name, "" for a private one. @cgroup: a line of /proc/PID/cgroup. */
struct holder {
	const char	*wheel;
	bool		destroyed;
	const char	*pid;
	char		command[64];
	char		cgroup[PATH_MAX];
};

typedef void (*holder_fn)(const struct holder *holder, void *data);

unsigned int holders_each(holder_fn tell, void *data);

/* The wheels there are (wheels.c) */

char **all_names(void);
char **wheel_names(const struct args *args);
void wheel_names_free(char **names);

/* A wheel (wheel.c) */

/* @info and @real, the wall time, were read when the wheel was opened. */
struct wheel {
	const char		*name;
	struct tw_wheel		*wheel;
	struct timewheel_info	info;
	uint64_t		real;
};

enum status wheel_try_open(struct wheel *wheel, const char *name, int access);
void wheel_open(struct wheel *wheel, const char *name, int access);
void wheel_close(struct wheel *wheel);
const char *clock_name(unsigned int clock);
int clock_of_name(const char *name);
const char *state_name(unsigned int state);

/* The meaning of a given time for a wheel. @absolute: the time is a point of time, no delay. */
struct wheel_time {
	uint64_t	ns;
	bool		absolute;
};

struct wheel_time wheel_time_of(const struct wheel *wheel,
				const struct when *when);
uint64_t wheel_deadline_of(const struct wheel *wheel, const struct when *when);
void out_local(struct out *out, int column, const struct wheel *wheel,
	       uint64_t time);

/*
 * The point of time that a token's state is about: its deadline, or the end of its lease. The
 * other field is 0.
 */
static inline uint64_t token_time(const struct timewheel_token *token)
{
	return token->deadline | token->lease_end;
}

/* Settings (settings.c) */

enum setting_kind {
	SETTING_CLOCK,
	SETTING_SPAN,
	SETTING_NUMBER,
	SETTING_FLAG,
};

enum setting_shown {
	SHOWN,
	SHOWN_IF_SET,	/* an empty cell stands for 0 */
	SHOWN_INVERSE,	/* the column says the opposite of the flag */
};

/**
 * struct setting - a setting of wheels
 * @kind: the kind of its value; a flag is 0 or 1
 * @option: the option of create, whose name it has everywhere
 * @column: the column in the list of wheels
 * @shown: how the column shows it
 * @bits: the width of its field, 32 or 64
 * @in_setup: where struct timewheel_setup has it
 * @in_info: where struct timewheel_info has it
 * @flag: its bit, if it is a flag
 */
struct setting {
	enum setting_kind	kind;
	int			option;
	int			column;
	enum setting_shown	shown;
	int			bits;
	size_t			in_setup;
	size_t			in_info;
	uint32_t		flag;
};

extern const struct setting settings[];
extern const size_t settings_count;

const char *setting_name(const struct setting *setting);
uint64_t setting_of_info(const struct setting *setting, const struct timewheel_info *info);
void setting_set(const struct setting *setting, struct timewheel_setup *setup,
		 uint64_t value);
uint64_t setting_most(const struct setting *setting);
struct timewheel_setup setup_like(const struct timewheel_info *info);
bool has_settings(const struct timewheel_info *info, const struct timewheel_setup *setup);

/* New wheels (create.c), and whose their nodes are (node.c) */

struct owner {
	uid_t	uid;
	gid_t	gid;
	mode_t	mode;
};

enum status setup_of(const struct args *args, struct timewheel_setup *setup);
enum status wheel_make(const char *name, const struct timewheel_setup *setup,
		       unsigned int flags, bool *made);
bool node_stat(const char *name, struct stat *stat);
void node_settle(void);
enum status node_set(const char *name, const struct owner *owner);

/* Declared wheels (declared.c) */

#define DECLARED_FILES	"/etc/timewheel/wheels.d/*.conf"

/*
 * @settings: options of create, by the keys of the file. @saved: the verbs save and restore
 * without a WHEEL save and restore the wheel. apply fills in @setup.
 */
struct declared {
	struct args		settings;
	char			*path;
	char			*name;
	struct owner		owner;
	bool			saved;
	struct timewheel_setup	setup;
};

struct declarations {
	struct declared	*wheel;
	size_t		count;
};

enum status declared_read(struct declarations *all, char **paths, int count);
char **declared_saved(enum status *status);

/* Saved wheels: their files (saved.c) */

#define SAVED_VERSION	1
#define SAVED_FILE	"/var/lib/timewheel/%s.save"

/* The head of a save has so many characters for the time of a restore. */
#define SAVED_MARK	12

#define BOOT_TEXT	40

/* @boot: the boot's id, "" if it is not known. @uptime: since boot, suspend included. */
struct moment {
	char		boot[BOOT_TEXT];
	uint64_t	uptime;
	uint64_t	wall;
};

/*
 * @left: the time from the moment of the save until the token is due; of a periodic token,
 * until the deadline of its period.
 */
struct saved_token {
	uint64_t	id, cookie, timeout, period;
	int64_t		left;
};

/*
 * @now: the moment of the save by the wheel's clock. @made: that moment by other clocks.
 * @restored: when the save was restored, in seconds since 1970, 0 for never. @mark: where the
 * file has this time.
 * @stale: the save has been refused for its age.
 */
struct saved {
	struct timewheel_setup	setup;
	struct owner		owner;
	bool			paused;
	bool			stale;
	uint64_t		now;
	struct moment		made;
	uint64_t		restored;
	off_t			mark;
	struct saved_token	*token;
	size_t			count;
};

bool saved_read(struct saved *saved, const char *path);
char *saved_path(const char *name);

/* Saving and restoring them (save.c, restore.c) */

enum status save(const char *name, const char *path);
enum status save_all(void);
enum status restore(const char *name, const char *path, const struct args *args);

/* How old they are (age.c) */

struct moment moment_now(void);
enum status stamp_write(const struct moment *moment);
enum status age_check(struct saved *saved, const char *path);
void age_mark(const struct saved *saved, const char *path);
void age_keep(const char *name, const char *path);

/* Registering their tokens (register.c) */

struct tally {
	uint64_t	restored;
	uint64_t	existed;
};

enum status tokens_register(const struct wheel *wheel, const struct saved *saved,
			    int64_t origin, struct tally *tally);

/* Operations on tokens (ops.c) */

void check_keys(char **keys, int count);
void need_ids(const struct wheel *wheel, bool handle);
const char *op_result(const struct timewheel_op *op);
enum status op_run(struct out *out, const struct wheel *wheel,
		   struct timewheel_op *op, const char *key);
void op_put(struct out *out, const struct wheel *wheel,
	    const struct timewheel_op *op, bool has_id);

/* Operations from lines of input (request.c) */

bool request_is_json(const char *line);

/* Changes @line, which has a word. Returns false if it is wrong: see times_wrong(). */
bool request_parse(struct timewheel_op *op, struct wheel *wheel, char *line);

/* Figures (figures.c), also in Prometheus' format (prometheus.c) */

/* @info.slots: 0 when there are no figures. */
struct stats {
	struct timewheel_info	info;
	uint64_t		lateness[TIMEWHEEL_BUCKETS];
};

/* @oldest: for how long the first of the tokens has been due. */
struct due {
	uint64_t	tokens;
	uint64_t	oldest;
};

enum status stats_take(struct stats *stats, const char *name, bool asked);
struct due due_count(const char *name, const struct timewheel_info *info);
void put_percentile(struct out *out, int column, const uint64_t *buckets,
		    double percent);
enum status prometheus(const struct args *args);

/* Slots (ring.c) */

/* Tokens in a slot. @lap: tokens that are due before the hand has made a whole lap. */
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

void wheel_open_to_read(struct wheel *wheel, const char *name);
void wheel_open_to_answer(struct wheel *wheel, const char *name);
struct tw_events *take(const struct wheel *wheel, size_t most);
void put_back(const struct wheel *wheel, const struct timewheel_event *event);

void template_check(const char *name, const char *template);
char *template_fill(const char *template, const struct wheel *wheel,
		    const struct timewheel_event *event);
char *event_json(const struct wheel *wheel, const struct timewheel_event *event);
extern const char * const event_fields[];
void event_field(char *text, size_t size, const char *field,
		 const struct wheel *wheel, const struct timewheel_event *event);

#endif /* TWCTL_H */
