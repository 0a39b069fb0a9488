// SPDX-License-Identifier: GPL-2.0-only
/*
 * exec: a command for each token that expires, some of them at a time. A token
 * is taken only when a worker is free for it, so that a token whose command does
 * not run yet is still on the wheel, for another reader or for later.
 *
 * On a wheel with leases each command runs under a lease, which is extended while
 * the command runs. When the command has ended, the delivery is answered. A delivery
 * that this process has not answered comes back to the wheel when the process ends.
 */
#include <ctype.h>
#include <sys/wait.h>

#include "twctl.h"

/* A process hardly ever ends faster, so looking more often is useless. */
#define LEAST_EXTENSION	TW_MS(1)

/*
 * A worker and the command that it runs. @pid: 0 when the worker is free. @tries:
 * attempts including this one; on a wheel with leases the number of deliveries.
 * @extend: when the lease has to be extended next. @lost: the lease is lost.
 */
struct worker {
	pid_t			pid;
	unsigned int		tries;
	uint64_t		extend;
	bool			lost;
	struct timewheel_event	event;
};

struct pool {
	struct wheel	wheel;
	char		**command;
	struct worker	*workers;
	unsigned int	jobs;
	unsigned int	running;
	unsigned int	retries;
	uint64_t	idle;
	uint64_t	left;
	bool		ending;		/* takes no more */
	bool		vanished;
	uint64_t	tasks;
	uint64_t	failed;
	uint64_t	retried;
	bool		lost;		/* a lease */
};

static void set_environment(const struct pool *pool, const struct worker *worker)
{
	char name[32], value[TIMEWHEEL_NAME_SIZE];
	size_t i, j;

	for (i = 0; event_fields[i]; i++) {
		snprintf(name, sizeof(name), "TIMEWHEEL_%s", event_fields[i]);
		for (j = 0; name[j]; j++)
			name[j] = toupper((unsigned char)name[j]);
		event_field(value, sizeof(value), event_fields[i],
			    pool->wheel.name, &worker->event);
		setenv(name, value, 1);
	}
	snprintf(value, sizeof(value), "%u", worker->tries);
	setenv("TIMEWHEEL_TRY", value, 1);
}

/* The child. It has no input, because commands would take it from each other. */
static __noreturn void run_command(const struct pool *pool,
				   const struct worker *worker)
{
	int i;

	set_environment(pool, worker);
	for (i = 0; pool->command[i]; i++)
		pool->command[i] = template_fill(pool->command[i],
						 pool->wheel.name,
						 &worker->event);
	command_exec(open("/dev/null", O_RDONLY), pool->command);
}

/* After a third of the lease: an extension may be late by two thirds of it. */
static uint64_t next_extension(const struct pool *pool)
{
	uint64_t span = pool->wheel.info.lease / 3;

	if (!span)
		return TIMEWHEEL_NEVER;
	return end_after(span < LEAST_EXTENSION ? LEAST_EXTENSION : span);
}

static bool start(struct pool *pool, struct worker *worker)
{
	pid_t pid = fork();

	if (!pid)
		run_command(pool, worker);
	if (pid < 0)
		return false;
	worker->pid = pid;
	worker->extend = next_extension(pool);
	worker->lost = false;
	pool->running++;
	return true;
}

/* A machine that cannot start a process now should not be loaded further. */
static void cannot_start(struct pool *pool, const struct timewheel_event *event)
{
	complain("cannot start a process: %s; ending", strerror(errno));
	put_back(&pool->wheel, event);
	pool->failed++;
	pool->ending = true;
	pool->retries = 0;
}

static struct worker *free_worker(struct pool *pool)
{
	struct worker *worker = pool->workers;

	while (worker->pid)
		worker++;
	return worker;
}

/* Takes at most one token for each free worker. */
static void start_due(struct pool *pool)
{
	size_t most = pool->jobs - pool->running, i;
	struct tw_events *events;

	if (most > pool->left)
		most = pool->left;
	events = take(&pool->wheel, most);
	if (!events) {
		pool->ending = true;
		pool->vanished = true;
		return;
	}
	pool->left -= tw_events_count(events);
	for (i = 0; i < tw_events_count(events); i++) {
		struct worker *worker = free_worker(pool);

		worker->event = *tw_events_at(events, i);
		worker->tries = worker->event.delivery ? worker->event.delivery : 1;
		if (pool->ending)
			put_back(&pool->wheel, &worker->event);
		else if (start(pool, worker))
			pool->tasks++;
		else
			cannot_start(pool, &worker->event);
	}
	tw_events_free(events);
}

/* @what: what happens next, printed after the number of the try. */
static void report_failure(const struct worker *worker, int status,
			   const char *what)
{
	char how[64];

	command_end_text(how, sizeof(how), status);
	complain("id %llu handle %llu: %s, try %u%s",
		 (unsigned long long)worker->event.id,
		 (unsigned long long)worker->event.handle, how, worker->tries,
		 what);
}

/*
 * Answers the delivery for which a command runs. Returns the result, or -1 if it
 * fails, with a message the first time.
 */
static int answer(struct pool *pool, struct worker *worker, uint32_t code,
		  uint64_t time)
{
	struct timewheel_op op;
	int result;

	if (worker->lost)
		return -1;
	tw_op_prepare(&op, code, worker->event.handle, TIMEWHEEL_OPF_BY_HANDLE);
	op.delivery = worker->event.delivery;
	op.time = time;
	result = tw_wheel_run(pool->wheel.wheel, &op);
	if (result >= 0)
		return result;
	worker->lost = errno != ERANGE;
	if (errno == ENODEV) {
		pool->ending = true;
		pool->vanished = true;
		return -1;
	}
	pool->lost = true;
	complain("id %llu handle %llu: %s; it may run again",
		 (unsigned long long)worker->event.id,
		 (unsigned long long)worker->event.handle,
		 errno == ERANGE ?
		 "it has been held for 1000 leases, which is the most (take longer ones)" :
		 errno == ESTALE ?
		 "its lease was over (take a longer one), or another process answered" :
		 tw_strerror(errno));
	return -1;
}

/* Extends the leases that need it now. Returns when the next one needs it. */
static uint64_t extend_leases(struct pool *pool)
{
	uint64_t now = end_after(0), next = TIMEWHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < pool->jobs; i++) {
		struct worker *worker = &pool->workers[i];

		if (!worker->pid)
			continue;
		if (worker->extend <= now) {
			worker->extend = next_extension(pool);
			if (answer(pool, worker, TIMEWHEEL_OP_EXTEND, 0) < 0)
				worker->extend = TIMEWHEEL_NEVER;
		}
		if (worker->extend < next)
			next = worker->extend;
	}
	return next;
}

/* A failed token comes again from the wheel, until the wheel buries it. */
static void answer_finished(struct pool *pool, struct worker *worker, int status)
{
	uint64_t span = back_off(worker->tries);
	char text[TIME_TEXT + 16] = "";
	int result;

	if (!status) {
		answer(pool, worker, TIMEWHEEL_OP_ACK, 0);
		return;
	}
	pool->failed++;
	result = answer(pool, worker, TIMEWHEEL_OP_NACK, span);
	if (result >= 0 && result & TIMEWHEEL_RES_BURIED) {
		strcpy(text, ", buried");
	} else if (result >= 0) {
		strcpy(text, ", again in ");
		span_text(text + strlen(text), TIME_TEXT, span);
	}
	report_failure(worker, status, text);
}

/* A failed command is tried again at once, by the same worker. */
static void finished(struct pool *pool, struct worker *worker, int status)
{
	bool again = status && worker->tries <= pool->retries && !stop_signal;
	char text[32];

	worker->pid = 0;
	pool->running--;
	if (worker->event.delivery) {
		answer_finished(pool, worker, status);
		return;
	}
	if (!status)
		return;
	snprintf(text, sizeof(text), " of %u%s", pool->retries + 1,
		 again ? ", again" : "");
	report_failure(worker, status, text);
	if (!again) {
		pool->failed++;
		return;
	}
	worker->tries++;
	pool->retried++;
	if (!start(pool, worker))
		cannot_start(pool, &worker->event);
}

static void reap(struct pool *pool)
{
	unsigned int i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < pool->jobs; i++) {
			if (pool->workers[i].pid == pid) {
				finished(pool, &pool->workers[i], status);
				break;
			}
		}
	}
}

/* Runs until told to end and no command runs. True: nothing came for long. */
static bool run(struct pool *pool)
{
	uint64_t end = end_after(pool->idle), extension;
	struct pollfd fd = { .events = POLLIN };
	bool idle = false, look;

	for (;;) {
		reap(pool);
		extension = extend_leases(pool);
		if (stop_signal || !pool->left)
			pool->ending = true;
		if (pool->ending && !pool->running)
			return idle;
		look = !pool->ending && pool->running < pool->jobs;
		/* poll() ignores a negative fd, also its hang-up. */
		fd.fd = look ? tw_wheel_fd(pool->wheel.wheel) : -1;
		fd.revents = 0;
		switch (wait_for(&fd, 1, pool->running ? extension : end)) {
		case 0:
			if (pool->running)
				break;
			idle = true;
			pool->ending = true;
			break;
		case 1:
			start_due(pool);
			end = end_after(pool->idle);
		}
		if (pool->running)
			end = end_after(pool->idle);
	}
}

static enum status result(const struct pool *pool, bool idle)
{
	complain("%llu commands, %llu failed, %llu retries",
		 (unsigned long long)pool->tasks,
		 (unsigned long long)pool->failed,
		 (unsigned long long)pool->retried);
	if (pool->vanished) {
		errno = ENODEV;
		return wheel_trouble(pool->wheel.name);
	}
	if (pool->failed)
		return STATUS_TASK_FAILED;
	if (pool->lost)
		return STATUS_FAILED;
	return idle ? STATUS_IDLE : STATUS_OK;
}

enum status verb_exec(const struct args *args)
{
	struct pool pool = {
		.command = args->arg + 1,
		.jobs = option_number(args, OPT_JOBS, 1, 65536, 1),
		.retries = option_number(args, OPT_RETRIES, 0, 1000000, 0),
		.idle = option_span(args, OPT_IDLE_TIMEOUT, TIMEWHEEL_NEVER),
		.left = option_number(args, OPT_COUNT, 0, UINT64_MAX - 1,
				      UINT64_MAX),
	};
	bool idle;
	int i;

	for (i = 1; i < args->count; i++)
		template_check("CMD", args->arg[i]);
	if (!strchr(pool.command[0], '{'))
		command_check(pool.command[0]);
	pool.workers = calloc(pool.jobs, sizeof(*pool.workers));
	if (!pool.workers)
		die(STATUS_FAILED, "no memory for workers");
	signals_begin();
	wheel_open_to_read(&pool.wheel, args->arg[0]);
	if (pool.wheel.info.lease)
		wheel_open_to_answer(&pool.wheel, args->arg[0]);
	if (pool.wheel.info.lease && pool.retries)
		die(STATUS_USAGE,
		    "--retries '%s': not on wheel '%s', which has leases: failed tokens come again, as often as --max-attempts of 'twctl create' says",
		    args->option[OPT_RETRIES], pool.wheel.name);
	idle = run(&pool);
	wheel_close(&pool.wheel);
	free(pool.workers);
	return result(&pool, idle);
}
