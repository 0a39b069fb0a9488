// SPDX-License-Identifier: GPL-2.0-only
/*
 * exec: a command for each token that expires, or with --batch for many of them, some
 * commands at a time. Tokens are taken only when a worker is free for them, so that
 * a token whose command does not run yet is still on the wheel, for another reader or
 * for later.
 *
 * On a wheel with leases each command runs under the leases of its tokens, which are
 * extended while the command runs. When the command has ended, the deliveries are
 * answered. A delivery that this process has not answered comes back to the wheel when
 * the process ends.
 */
#include <ctype.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "twctl.h"

/* A process hardly ever ends faster, so looking more often is useless. */
#define LEAST_EXTENSION	TW_MS(1)

/* From SIGTERM to SIGKILL, for a command that runs for too long. The man page tells. */
#define GRACE		(5 * NSEC_PER_SEC)

/*
 * A worker and the command that it runs, for the tokens of @events. @pid: 0 when the
 * worker is free. @tries: runs of the command including this one. @extend: when the
 * leases have to be extended next. @limit: when the command is ended, or killed if
 * it is @overdue already. @lost: of each token, whether its lease is lost.
 */
struct worker {
	pid_t			pid;
	unsigned int		tries;
	uint64_t		extend;
	uint64_t		limit;
	bool			overdue;
	bool			*lost;
	struct tw_events	*events;
};

/* @batch: the most tokens of a command, 0 if it gets one, and not on its input. */
struct pool {
	struct wheel	wheel;
	char		**command;
	struct worker	*workers;
	unsigned int	jobs;
	unsigned int	running;
	unsigned int	retries;
	size_t		batch;
	uint64_t	timeout;
	uint64_t	idle;
	uint64_t	left;
	bool		ending;		/* takes no more */
	bool		vanished;
	uint64_t	tasks;
	uint64_t	failed;
	uint64_t	retried;
	bool		lost;		/* a lease */
};

static const struct timewheel_event *first(const struct worker *worker)
{
	return tw_events_at(worker->events, 0);
}

static void set_field(const struct pool *pool, const struct worker *worker,
		      const char *field)
{
	char name[32], value[TIMEWHEEL_NAME_SIZE];
	size_t i;

	snprintf(name, sizeof(name), "TIMEWHEEL_%s", field);
	for (i = 0; name[i]; i++)
		name[i] = toupper((unsigned char)name[i]);
	event_field(value, sizeof(value), field, &pool->wheel, first(worker));
	setenv(name, value, 1);
}

static void set_number(const char *name, size_t number)
{
	char value[32];

	snprintf(value, sizeof(value), "%zu", number);
	setenv(name, value, 1);
}

static void set_environment(const struct pool *pool, const struct worker *worker)
{
	unsigned int delivery = first(worker)->delivery;
	size_t i;

	set_field(pool, worker, "wheel");
	if (pool->batch) {
		set_number("TIMEWHEEL_COUNT", tw_events_count(worker->events));
		return;
	}
	for (i = 0; event_fields[i]; i++)
		set_field(pool, worker, event_fields[i]);
	set_number("TIMEWHEEL_TRY", delivery ? delivery : worker->tries);
}

/*
 * A file with the ids of a batch, or the handles on a wheel without ids. A command
 * that does not read it holds up nothing, as it might with a pipe.
 */
static int list_of_keys(const struct pool *pool, const struct worker *worker)
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

		fprintf(file, "%llu\n", (unsigned long long)(handles ?
							     event->handle :
							     event->id));
	}
	if (fclose(file))
		die(STATUS_FAILED, "no memory for ids");
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/*
 * The child. Without --batch it has no input, because commands would take it from each
 * other.
 */
static __noreturn void run_command(const struct pool *pool,
				   const struct worker *worker)
{
	int i;

	set_environment(pool, worker);
	for (i = 0; pool->command[i]; i++)
		pool->command[i] = template_fill(pool->command[i], &pool->wheel,
						 first(worker));
	command_exec(pool->batch ? list_of_keys(pool, worker) :
				   open("/dev/null", O_RDONLY), pool->command);
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
	/* The child does so, too: the first of both. */
	setpgid(pid, pid);
	worker->pid = pid;
	worker->extend = next_extension(pool);
	worker->limit = end_after(pool->timeout);
	worker->overdue = false;
	pool->running++;
	return true;
}

static void free_events(struct worker *worker)
{
	tw_events_free(worker->events);
	free(worker->lost);
	worker->events = NULL;
	worker->lost = NULL;
}

/* A machine that cannot start a process now should not be loaded further. */
static void cannot_start(struct pool *pool, struct worker *worker)
{
	size_t i;

	complain("cannot start a process: %s; ending", strerror(errno));
	for (i = 0; i < tw_events_count(worker->events); i++)
		put_back(&pool->wheel, tw_events_at(worker->events, i));
	free_events(worker);
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

/* Takes tokens for a free worker. Returns false if there are no more. */
static bool start_next(struct pool *pool)
{
	struct worker *worker = free_worker(pool);
	size_t most = pool->batch ? pool->batch : 1, count;

	if (most > pool->left)
		most = pool->left;
	worker->events = take(&pool->wheel, most);
	if (!worker->events) {
		pool->ending = true;
		pool->vanished = true;
		return false;
	}
	count = tw_events_count(worker->events);
	if (!count) {
		free_events(worker);
		return false;
	}
	pool->left -= count;
	worker->tries = 1;
	worker->lost = calloc(count, sizeof(*worker->lost));
	if (worker->lost && start(pool, worker))
		pool->tasks++;
	else
		cannot_start(pool, worker);
	return true;
}

static void start_due(struct pool *pool)
{
	while (!pool->ending && pool->left && pool->running < pool->jobs)
		if (!start_next(pool))
			return;
}

/* @what: what happens next, printed after the number of the try. */
static void report_failure(const struct pool *pool, const struct worker *worker,
			   int status, const char *what)
{
	const struct timewheel_event *event = first(worker);
	unsigned int try = event->delivery ? event->delivery : worker->tries;
	char how[64], whose[64];

	command_end_text(how, sizeof(how), status);
	snprintf(whose, sizeof(whose), "id %llu handle %llu",
		 (unsigned long long)event->id, (unsigned long long)event->handle);
	if (pool->batch)
		complain("%zu tokens, the first with %s: %s%s%s",
			 tw_events_count(worker->events), whose, how,
			 worker->overdue ? " after --timeout" : "", what);
	else
		complain("%s: %s%s, try %u%s", whose, how,
			 worker->overdue ? " after --timeout" : "", try, what);
}

/*
 * Answers a delivery of a worker. Returns the result, or -1 if it fails, with a
 * message the first time.
 */
static int answer(struct pool *pool, struct worker *worker, size_t number,
		  uint32_t code, uint64_t time)
{
	const struct timewheel_event *event = tw_events_at(worker->events, number);
	struct timewheel_op op;
	int result;

	if (worker->lost[number])
		return -1;
	tw_op_prepare(&op, code, event->handle, TIMEWHEEL_OPF_BY_HANDLE);
	op.delivery = event->delivery;
	op.time = time;
	result = tw_wheel_run(pool->wheel.wheel, &op);
	if (result >= 0)
		return result;
	worker->lost[number] = errno != ERANGE;
	if (errno == ENODEV) {
		pool->ending = true;
		pool->vanished = true;
		return -1;
	}
	pool->lost = true;
	complain("id %llu handle %llu: %s; it may run again",
		 (unsigned long long)event->id, (unsigned long long)event->handle,
		 errno == ERANGE ?
		 "it has been held for 1000 leases, which is the most (take longer ones)" :
		 errno == ESTALE ?
		 "its lease was over (take a longer one), or another process answered" :
		 tw_strerror(errno));
	return -1;
}

/* Extends the leases of a worker's tokens, until the wheel refuses all of them. */
static void extend(struct pool *pool, struct worker *worker)
{
	size_t i;

	worker->extend = TIMEWHEEL_NEVER;
	for (i = 0; i < tw_events_count(worker->events); i++)
		if (answer(pool, worker, i, TIMEWHEEL_OP_EXTEND, 0) >= 0)
			worker->extend = next_extension(pool);
}

/* Ends a command that runs for too long, with its process group. */
static void end_overdue(struct worker *worker)
{
	kill(-worker->pid, worker->overdue ? SIGKILL : SIGTERM);
	worker->limit = worker->overdue ? TIMEWHEEL_NEVER : end_after(GRACE);
	worker->overdue = true;
}

/* Does what is to be done for commands that run. Returns when there is more to do. */
static uint64_t look_after(struct pool *pool)
{
	uint64_t now = end_after(0), next = TIMEWHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < pool->jobs; i++) {
		struct worker *worker = &pool->workers[i];

		if (!worker->pid)
			continue;
		if (worker->extend <= now)
			extend(pool, worker);
		if (worker->limit <= now)
			end_overdue(worker);
		if (worker->extend < next)
			next = worker->extend;
		if (worker->limit < next)
			next = worker->limit;
	}
	return next;
}

static void ack_all(struct pool *pool, struct worker *worker)
{
	size_t i;

	for (i = 0; i < tw_events_count(worker->events); i++)
		answer(pool, worker, i, TIMEWHEEL_OP_ACK, 0);
}

/* A failed token comes again from the wheel, until the wheel buries it. */
static void nack_all(struct pool *pool, struct worker *worker, int status)
{
	size_t count = tw_events_count(worker->events), again = 0, buried = 0, i;
	char text[TIME_TEXT + 48] = "";
	uint64_t span = 0;

	for (i = 0; i < count; i++) {
		int result;

		span = back_off(tw_events_at(worker->events, i)->delivery);
		result = answer(pool, worker, i, TIMEWHEEL_OP_NACK, span);
		if (result >= 0 && result & TIMEWHEEL_RES_BURIED)
			buried++;
		else if (result >= 0)
			again++;
	}
	if (pool->batch) {
		snprintf(text, sizeof(text), ", %zu come again, %zu buried", again,
			 buried);
	} else if (buried) {
		strcpy(text, ", buried");
	} else if (again) {
		strcpy(text, ", again in ");
		span_text(text + strlen(text), TIME_TEXT, span);
	}
	report_failure(pool, worker, status, text);
}

/* A command that fails on a wheel without leases is run again at once, if at all. */
static bool runs_again(struct pool *pool, struct worker *worker, int status)
{
	bool again = worker->tries <= pool->retries && !stop_signal;
	char text[32];

	snprintf(text, sizeof(text), " of %u%s", pool->retries + 1,
		 again ? ", again" : "");
	report_failure(pool, worker, status, pool->batch ?
		       again ? ", again" : "" : text);
	return again;
}

static void finished(struct pool *pool, struct worker *worker, int status)
{
	bool failed = status || worker->overdue;

	worker->pid = 0;
	pool->running--;
	if (failed && !first(worker)->delivery && runs_again(pool, worker, status)) {
		worker->tries++;
		pool->retried++;
		if (!start(pool, worker))
			cannot_start(pool, worker);
		return;
	}
	pool->failed += failed;
	if (first(worker)->delivery && failed)
		nack_all(pool, worker, status);
	else if (first(worker)->delivery)
		ack_all(pool, worker);
	free_events(worker);
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
	uint64_t end = end_after(pool->idle), next;
	struct pollfd fd = { .events = POLLIN };
	bool idle = false, look;

	for (;;) {
		reap(pool);
		next = look_after(pool);
		if (stop_signal || !pool->left)
			pool->ending = true;
		if (pool->ending && !pool->running)
			return idle;
		look = !pool->ending && pool->running < pool->jobs;
		/* poll() ignores a negative fd, also its hang-up. */
		fd.fd = look ? tw_wheel_fd(pool->wheel.wheel) : -1;
		fd.revents = 0;
		switch (wait_for(&fd, 1, pool->running ? next : end)) {
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

/* A batch has no field of one token. */
static void check_command(const struct pool *pool, char **words)
{
	char field[32];
	size_t i;

	for (; *words; words++) {
		template_check("CMD", *words);
		for (i = 0; pool->batch && event_fields[i]; i++) {
			snprintf(field, sizeof(field), "{%s}", event_fields[i]);
			if (strcmp(event_fields[i], "wheel") &&
			    strstr(*words, field))
				die(STATUS_USAGE,
				    "CMD '%s': not with --batch, by which CMD has many tokens: their ids are on its standard input",
				    field);
		}
	}
	if (!strchr(pool->command[0], '{'))
		command_check(pool->command[0]);
}

enum status verb_exec(const struct args *args)
{
	struct pool pool = {
		.command = args->arg + 1,
		.jobs = option_number(args, OPT_JOBS, 1, 65536, 1),
		.retries = option_number(args, OPT_RETRIES, 0, 1000000, 0),
		.batch = option_number(args, OPT_BATCH, 1, 65536, 0),
		.timeout = option_span(args, OPT_TIME_LIMIT, TIMEWHEEL_NEVER),
		.idle = option_span(args, OPT_IDLE_TIMEOUT, TIMEWHEEL_NEVER),
		.left = option_number(args, OPT_COUNT, 0, UINT64_MAX - 1,
				      UINT64_MAX),
	};
	bool idle;

	check_command(&pool, pool.command);
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
