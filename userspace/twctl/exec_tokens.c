// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tokens of a worker of exec: what the worker's command is told of them, and what becomes
 * of them when the command has ended.
 */
#include <ctype.h>
#include <sys/mman.h>

#include "exec.h"

/* Returns the first token that the command is for. All their leases may be lost: then it is 0. */
static size_t first_number(const struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		if (worker->task[i].state == worker->turn)
			return i;
	return 0;
}

const struct timewheel_event *tasks_first(const struct worker *worker)
{
	return tw_events_at(worker->events, first_number(worker));
}

size_t tasks_in(const struct worker *worker, enum task_state state)
{
	size_t count = 0, i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		count += worker->task[i].state == state;
	return count;
}

/*
 * A token that was delivered more often than it may be tried was given up before, and its end
 * failed then.
 */
void tasks_begin(const struct pool *pool, struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++) {
		struct task *task = &worker->task[i];

		task->attempts = tw_events_at(worker->events, i)->attempts ?: 1;
		if (pool->tries && task->attempts > pool->tries)
			task->state = TASK_GIVEN_UP;
	}
}

void tasks_end(struct worker *worker)
{
	tw_events_free(worker->events);
	free(worker->task);
	worker->events = NULL;
	worker->task = NULL;
}

static void set_field(const struct pool *pool, const struct worker *worker,
		      const char *field)
{
	char name[32], value[TIMEWHEEL_NAME_SIZE];
	size_t i;

	snprintf(name, sizeof(name), "TIMEWHEEL_%s", field);
	for (i = 0; name[i]; i++)
		name[i] = toupper((unsigned char)name[i]);
	event_field(value, sizeof(value), field, &pool->wheel, tasks_first(worker));
	setenv(name, value, 1);
}

static void set_number(const char *name, size_t number)
{
	char value[32];

	snprintf(value, sizeof(value), "%zu", number);
	setenv(name, value, 1);
}

void tasks_environment(const struct pool *pool, const struct worker *worker)
{
	size_t i;

	set_field(pool, worker, "wheel");
	if (pool->batch) {
		set_number("TIMEWHEEL_COUNT", tasks_in(worker, worker->turn));
		return;
	}
	for (i = 0; event_fields[i]; i++)
		set_field(pool, worker, event_fields[i]);
	set_number("TIMEWHEEL_TRY", worker->task[first_number(worker)].attempts);
}

/*
 * A file with the ids of a batch, or the handles on a wheel without ids. A command
 * that does not read it holds up nothing, as it might with a pipe.
 */
int tasks_keys(const struct pool *pool, const struct worker *worker)
{
	bool handles = pool->wheel.info.setup_flags & TIMEWHEEL_SETUP_NO_IDS;
	int fd = memfd_create("ids", MFD_CLOEXEC), copy = dup(fd);
	FILE *file = fdopen(copy, "w");
	size_t i;

	if (!file)
		die(STATUS_FAILED, "no file for ids: %s", strerror(errno));
	for (i = 0; i < tw_events_count(worker->events); i++) {
		const struct timewheel_event *event =
			tw_events_at(worker->events, i);

		if (worker->task[i].state == worker->turn)
			fprintf(file, "%llu\n", (unsigned long long)
				(handles ? event->handle : event->id));
	}
	if (fclose(file))
		die(STATUS_FAILED, "no memory for ids");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/*
 * Answers a delivery of a worker. Returns false if that fails, with a message the first
 * time.
 */
static bool answer(struct pool *pool, struct worker *worker, size_t number,
		   uint32_t code, uint64_t time)
{
	const struct timewheel_event *event = tw_events_at(worker->events, number);
	struct timewheel_op op;

	if (worker->task[number].state == TASK_OVER)
		return false;
	tw_op_prepare(&op, code, event->handle, TIMEWHEEL_OPF_BY_HANDLE);
	op.delivery = event->delivery;
	op.time = time;
	if (tw_wheel_run(pool->wheel.wheel, &op) >= 0)
		return true;
	if (errno != ERANGE)
		worker->task[number].state = TASK_OVER;
	if (errno == ENODEV) {
		pool->ending = true;
		pool->vanished = true;
		return false;
	}
	pool->lost = true;
	complain("id %llu handle %llu: %s; it may run again",
		 (unsigned long long)event->id, (unsigned long long)event->handle,
		 errno == ESTALE ?
		 "its lease was over (take a longer one), or another process answered" :
		 tw_strerror(errno));
	return false;
}

/* Extends the leases of a worker's tokens. Returns false if the wheel refuses them all. */
bool tasks_extend(struct pool *pool, struct worker *worker)
{
	bool extended = false;
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		extended |= answer(pool, worker, i, TIMEWHEEL_OP_EXTEND, 0);
	return extended;
}

/* A token whose command has succeeded, or that has been printed, ends. */
static void finish(struct pool *pool, struct worker *worker, size_t number)
{
	if (tw_events_at(worker->events, number)->delivery)
		answer(pool, worker, number, TIMEWHEEL_OP_ACK, 0);
	worker->task[number].state = TASK_OVER;
}

void tasks_succeeded(struct pool *pool, struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		if (worker->task[i].state == worker->turn)
			finish(pool, worker, i);
}

/* The outcome for tokens whose command has failed. @span: the time until a token comes again. */
struct outcome {
	size_t		again;
	size_t		given_up;
	uint64_t	span;
};

/* Without leases a command is run again at once, or not at all. */
static bool was_last(const struct pool *pool, const struct task *task, bool leased)
{
	if (leased)
		return pool->tries && task->attempts >= pool->tries;
	return stop_signal || pool->stuck || task->attempts >= (pool->tries ?: 1);
}

static void fail(struct pool *pool, struct worker *worker, size_t number,
		 struct outcome *outcome)
{
	bool leased = tw_events_at(worker->events, number)->delivery;
	struct task *task = &worker->task[number];

	if (worker->turn == TASK_RUNS && was_last(pool, task, leased)) {
		bool tried = pool->tries && task->attempts >= pool->tries;

		task->state = tried ? TASK_GIVEN_UP : TASK_OVER;
		outcome->given_up += tried;
	} else if (leased) {
		outcome->span = back_off(task->attempts);
		outcome->again += answer(pool, worker, number, TIMEWHEEL_OP_NACK,
					 outcome->span);
		task->state = TASK_OVER;
	} else if (worker->turn == TASK_RUNS) {
		task->attempts++;
		outcome->again++;
	} else {
		task->state = TASK_OVER;
	}
}

/* The text after the number of the try, or after how a batch has ended. */
static void outcome_text(char *text, size_t size, const struct pool *pool,
			 const struct outcome *outcome)
{
	char span[TIME_TEXT], again[32] = "", given_up[32] = "";

	if (pool->batch && outcome->again)
		snprintf(again, sizeof(again), ", %zu again", outcome->again);
	if (pool->batch && outcome->given_up)
		snprintf(given_up, sizeof(given_up), ", %zu given up", outcome->given_up);
	span_text(span, sizeof(span), outcome->span);
	if (pool->batch)
		snprintf(text, size, "%s%s", again, given_up);
	else if (outcome->given_up)
		snprintf(text, size, ", given up");
	else if (outcome->again)
		snprintf(text, size, ", again%s%s", outcome->span ? " in " : "",
			 outcome->span ? span : "");
	else
		*text = '\0';
}

/* Makes the text ", try 2 of 3", or ", try 2" if the most tries are not known. */
static void try_text(char *text, size_t size, const struct pool *pool,
		     unsigned int attempts)
{
	unsigned int most = pool->tries ?: !pool->wheel.info.lease;

	if (most)
		snprintf(text, size, ", try %u of %u", attempts, most);
	else
		snprintf(text, size, ", try %u", attempts);
}

/*
 * The tokens that a command was for come again from the wheel, or the command runs again
 * for them, or they are given up. A message tells it.
 */
void tasks_failed(struct pool *pool, struct worker *worker, int status)
{
	const struct timewheel_event *event = tasks_first(worker);
	size_t count = tasks_in(worker, worker->turn) ?:
		       tw_events_count(worker->events), i;
	char how[64], whose[96], try[48] = "", what[TIME_TEXT + 64];
	struct outcome outcome = { };

	command_end_text(how, sizeof(how), status);
	snprintf(whose, sizeof(whose), "%sid %llu handle %llu%s",
		 pool->batch ? "the first with " : "", (unsigned long long)event->id,
		 (unsigned long long)event->handle,
		 worker->turn == TASK_GIVEN_UP ? ": --failed" : "");
	if (worker->turn == TASK_RUNS && !pool->batch)
		try_text(try, sizeof(try), pool,
			 worker->task[first_number(worker)].attempts);
	for (i = 0; i < tw_events_count(worker->events); i++)
		if (worker->task[i].state == worker->turn)
			fail(pool, worker, i, &outcome);
	outcome_text(what, sizeof(what), pool, &outcome);
	if (pool->batch)
		complain("%zu tokens, %s: %s%s%s", count, whose, how,
			 worker->overdue ? " after --timeout" : "", what);
	else
		complain("%s: %s%s%s%s", whose, how,
			 worker->overdue ? " after --timeout" : "", try, what);
}

/* Gives all tokens that a worker still has back to the wheel. */
void tasks_put_back(const struct pool *pool, struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		if (worker->task[i].state != TASK_OVER)
			put_back(&pool->wheel, tw_events_at(worker->events, i));
}

/*
 * A token ends when its line is written. If that fails, the token and the tokens behind it go
 * back to the wheel, and no more are taken.
 */
void tasks_print(struct pool *pool, struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++) {
		if (worker->task[i].state != TASK_GIVEN_UP)
			continue;
		if (!print_line(event_json(&pool->wheel,
					   tw_events_at(worker->events, i)))) {
			if (errno != EINTR)
				complain("cannot write what it prints: %s; ending",
					 strerror(errno));
			tasks_put_back(pool, worker);
			pool->ending = true;
			pool->failed++;
			return;
		}
		finish(pool, worker, i);
	}
}
