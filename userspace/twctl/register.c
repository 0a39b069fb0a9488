// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers all tokens of a save, or none of them. Each is registered on a private
 * wheel of the same settings first, so that the kernel says what does not fit before
 * the wheel itself gets its first token.
 */
#include <inttypes.h>

#include "twctl.h"

/* The number of operations in one call. */
#define BATCH	4096

/* @known: the ids that are on the wheel, sorted. @handle: the handle of each token registered. */
struct work {
	const struct wheel	*wheel;
	const struct saved	*saved;
	int64_t			origin;
	struct tw_batch		*batch;
	uint64_t		*known;
	size_t			known_count;
	uint64_t		*handle;
	struct tally		tally;
};

static uint64_t time_of(const struct saved_token *token, int64_t origin)
{
	int64_t time;

	if (__builtin_add_overflow(origin, token->left, &time))
		return TIMEWHEEL_NEVER;
	return time > 0 ? time : 0;
}

/* Returns what the token has and the wheel cannot hold, NULL if the wheel can hold it. */
static const char *lack(const struct timewheel_info *info,
			const struct saved_token *token)
{
	if (token->id && info->setup_flags & TIMEWHEEL_SETUP_NO_IDS)
		return "an id";
	if (token->cookie && info->setup_flags & TIMEWHEEL_SETUP_NO_COOKIES)
		return "a cookie";
	if (token->period && !(info->setup_flags & TIMEWHEEL_SETUP_PERIODS))
		return "a period";
	if (token->period && token->period < info->tick)
		return "a period shorter than the wheel's tick";
	return NULL;
}

#define NOTHING	"nothing has been restored; "
#define ANEW	"make the wheel anew by 'twctl destroy' and 'twctl apply'"
#define DECLARE	NOTHING "declare the wheel with what the token needs, and " ANEW

/* Tells by errno which token cannot be registered, and what mends that. */
static enum status token_trouble(const struct work *work,
				 const struct saved_token *token)
{
	const struct wheel *wheel = work->wheel;
	const char *lacks = lack(&wheel->info, token);
	char label[64];

	snprintf(label, sizeof(label), token->id ? "id %" PRIu64 : "token %" PRIu64,
		 token->id ? token->id : (uint64_t)(token - work->saved->token) + 1);
	if (errno == EINVAL && lacks)
		return trouble(STATUS_FAILED,
			       "wheel '%s': %s has %s, which the wheel was made without: "
			       DECLARE,
			       wheel->name, label, lacks);
	switch (errno) {
	case ERANGE:
		return trouble(STATUS_FAILED,
			       "wheel '%s': %s is due later than the wheel can reach with its tick: "
			       DECLARE,
			       wheel->name, label);
	case ENOSPC:
		return trouble(STATUS_FULL,
			       "wheel '%s' is full at its max-tokens, %llu, before %s: "
			       NOTHING "declare the wheel with max-tokens = %zu or more, and " ANEW,
			       wheel->name, (unsigned long long)wheel->info.max_tokens, label,
			       work->known_count + work->saved->count);
	default:
		return trouble(STATUS_FAILED, "wheel '%s': %s: %s: nothing has been restored",
			       wheel->name, label, tw_strerror(errno));
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

/* Reads which ids there are. Returns false and sets errno if the wheel does not answer. */
static bool read_known(struct work *work)
{
	struct tw_cursor *cursor = tw_cursor_open(work->wheel->wheel, 0, TIMEWHEEL_NEVER);
	const struct timewheel_token *token;
	size_t room = 0;
	int more = -1;

	while (cursor && (more = tw_cursor_next(cursor, &token)) > 0) {
		if (work->known_count == room) {
			room = room ? 2 * room : 1024;
			work->known = reallocarray(work->known, room,
						   sizeof(*work->known));
			if (!work->known)
				die(STATUS_FAILED, "no memory for so many tokens");
		}
		work->known[work->known_count++] = token->id;
	}
	tw_cursor_close(cursor);
	if (work->known_count)
		qsort(work->known, work->known_count, sizeof(*work->known), compare);
	return !more;
}

static bool is_known(const struct work *work, const struct saved_token *token)
{
	return !(work->wheel->info.setup_flags & TIMEWHEEL_SETUP_NO_IDS) &&
	       work->known_count &&
	       bsearch(&token->id, work->known, work->known_count,
		       sizeof(*work->known), compare);
}

static enum status check_room(const struct work *work)
{
	const struct timewheel_info *info = &work->wheel->info;
	uint64_t count = work->known_count;
	size_t i;

	for (i = 0; i < work->saved->count; i++) {
		count += !is_known(work, &work->saved->token[i]);
		if (count > info->max_tokens) {
			errno = ENOSPC;
			return token_trouble(work, &work->saved->token[i]);
		}
	}
	return STATUS_OK;
}

/* Checks what concerns the whole wheel, and no single token. */
static enum status check_wheel(const struct work *work)
{
	const struct timewheel_info *info = &work->wheel->info;
	const char *name = work->wheel->name;

	if (info->state & TIMEWHEEL_CONTROL_DRAINING)
		return trouble(STATUS_NOT_NOW,
			       "wheel '%s' is draining and takes no more tokens: "
			       NOTHING "to end that: twctl drain --undo %s",
			       name, name);
	if (work->saved->count && work->saved->setup.flags & TIMEWHEEL_SETUP_NO_IDS &&
	    !(info->setup_flags & TIMEWHEEL_SETUP_NO_IDS))
		return trouble(STATUS_FAILED,
			       "wheel '%s' was made with ids, and the tokens of the save have none: "
			       DECLARE,
			       name);
	return STATUS_OK;
}

static void prepare(const struct work *work, const struct saved_token *token, size_t count)
{
	size_t i;

	tw_batch_clear(work->batch);
	for (i = 0; i < count; i++, token++) {
		struct timewheel_op *op = tw_batch_next(work->batch);

		tw_op_register_periodic(op, token->id, time_of(token, work->origin),
					token->period, token->cookie,
					TIMEWHEEL_OPF_ABSOLUTE);
		op->timeout = token->timeout;
	}
}

/* Registers some tokens. The handle of a token that could not be registered stays 0. */
static enum status register_some(struct work *work, struct tw_wheel *wheel, size_t first,
				 size_t count)
{
	const struct saved_token *token = &work->saved->token[first];
	uint64_t *handle = &work->handle[first];
	int done;
	size_t i;

	prepare(work, token, count);
	do
		done = tw_batch_run(work->batch, wheel);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return wheel_trouble(work->wheel->name);
	for (i = 0; i < count; i++)
		handle[i] = tw_batch_result(work->batch, i) < 0 ? 0 :
			    tw_batch_op(work->batch, i)->handle;
	for (i = 0; i < count; i++) {
		if (tw_batch_result(work->batch, i) >= 0)
			work->tally.restored++;
		else if (errno == EEXIST)
			work->tally.existed++;
		else
			return token_trouble(work, &token[i]);
	}
	return STATUS_OK;
}

static struct tw_wheel *open_like(const struct timewheel_info *info)
{
	struct timewheel_setup setup = setup_like(info);

	setup.max_tokens = BATCH;
	setup.max_held = info->lease ? 1 : 0;
	setup.start = info->clock == TIMEWHEEL_CLOCK_MANUAL ? info->hand : 0;
	return tw_wheel_open(&setup);
}

/* Registers the tokens on a private wheel, which is closed afterwards and ends with its tokens. */
static enum status rehearse(struct work *work, size_t first, size_t count)
{
	struct tw_wheel *wheel = open_like(&work->wheel->info);
	enum status status;

	if (!wheel)
		return device_trouble();
	status = register_some(work, wheel, first, count);
	tw_wheel_close(wheel);
	return status;
}

static enum status perform(struct work *work, size_t first, size_t count)
{
	return register_some(work, work->wheel->wheel, first, count);
}

static enum status each_batch(struct work *work,
			      enum status (*what)(struct work *work, size_t first, size_t count))
{
	enum status status = STATUS_OK;
	size_t i, count;

	memset(work->handle, 0, work->saved->count * sizeof(*work->handle));
	work->tally = (struct tally) { };
	for (i = 0; i < work->saved->count && !status; i += count) {
		count = work->saved->count - i < BATCH ? work->saved->count - i : BATCH;
		status = what(work, i, count);
	}
	return status;
}

/* Cancels what has been registered, by handle, as a wheel may have no ids. */
static void take_back(const struct work *work)
{
	struct timewheel_op op;
	size_t i;

	for (i = 0; i < work->saved->count; i++) {
		if (!work->handle[i])
			continue;
		tw_op_cancel(&op, work->handle[i], TIMEWHEEL_OPF_BY_HANDLE);
		tw_wheel_run(work->wheel->wheel, &op);
	}
}

static enum status register_checked(struct work *work)
{
	enum status status = check_wheel(work);

	if (!status && !read_known(work))
		status = wheel_trouble(work->wheel->name);
	if (!status)
		status = check_room(work);
	if (!status)
		status = each_batch(work, rehearse);
	if (status)
		return status;
	status = each_batch(work, perform);
	if (status)
		take_back(work);
	return status;
}

/*
 * Registers the tokens, on a wheel that delivers nothing meanwhile. @origin: the point
 * of time of the wheel's clock that the moment of the save stands for.
 */
enum status tokens_register(const struct wheel *wheel, const struct saved *saved,
			    int64_t origin, struct tally *tally)
{
	struct work work = {
		.wheel = wheel,
		.saved = saved,
		.origin = origin,
		.batch = tw_batch_new(BATCH),
		.handle = calloc(saved->count + 1, sizeof(*work.handle)),
	};
	enum status status;

	if (!work.batch || !work.handle)
		die(STATUS_FAILED, "no memory for so many tokens");
	status = register_checked(&work);
	*tally = work.tally;
	tw_batch_free(work.batch);
	free(work.known);
	free(work.handle);
	return status;
}
