// SPDX-License-Identifier: GPL-2.0-only
/*
 * exec: a command for each token that expires, or with --batch for many of them, several
 * commands at a time. Tokens are taken only when a worker is free for them, so that a token
 * whose command does not run yet is still on the wheel, for another reader or for later.
 *
 * On a wheel with leases each command runs under the leases of its tokens, which are
 * extended while the command runs. When the command has ended, the deliveries are
 * answered. A delivery that this process has not answered comes back to the wheel when
 * the process ends.
 */
#include <sys/wait.h>

#include "exec.h"

/* A process hardly ever ends faster, so looking more often is useless. */
#define LEAST_EXTENSION	TW_MS(1)

/* The time between SIGTERM and SIGKILL for a command that runs for too long, as in the man page. */
#define GRACE		(5 * NSEC_PER_SEC)

/*
 * This is the child. Without --batch it has no input, because commands would take it from each
 * other.
 */
static __noreturn void run_command(const struct pool *pool,
				   const struct worker *worker)
{
	char **command = worker->turn == TASK_GIVEN_UP ? pool->for_failed : pool->command;
	int i;

	tasks_environment(pool, worker);
	for (i = 0; command[i]; i++)
		command[i] = template_fill(command[i], &pool->wheel,
					   tasks_first(worker));
	command_exec(pool->batch ? tasks_keys(pool, worker) :
				   open("/dev/null", O_RDONLY), command);
}

/*
 * The leases are extended after a third of a lease: an extension may be late by two thirds of
 * it.
 */
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
	/* Both parent and child set the group, as either of them may run first. */
	setpgid(pid, pid);
	worker->pid = pid;
	worker->extend = next_extension(pool);
	worker->limit = end_after(pool->timeout);
	worker->overdue = false;
	pool->running++;
	return true;
}

/* A machine that cannot start a process now should not be loaded further, and exec ends. */
static void cannot_start(struct pool *pool, struct worker *worker)
{
	complain("cannot start a process: %s; ending", strerror(errno));
	tasks_put_back(pool, worker);
	tasks_end(worker);
	pool->failed++;
	pool->ending = true;
	pool->stuck = true;
}

/* Starts the next command for the worker's tokens. Without one, the worker becomes free. */
static void go_on(struct pool *pool, struct worker *worker)
{
	bool runs = tasks_in(worker, TASK_RUNS);

	if (runs || (pool->for_failed && tasks_in(worker, TASK_GIVEN_UP))) {
		pool->commands += !runs;
		worker->turn = runs ? TASK_RUNS : TASK_GIVEN_UP;
		if (!start(pool, worker))
			cannot_start(pool, worker);
		return;
	}
	tasks_print(pool, worker);
	tasks_end(worker);
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
	worker->task = calloc(most, sizeof(*worker->task));
	if (!worker->task)
		die(STATUS_FAILED, "no memory for tokens");
	worker->events = take(&pool->wheel, most);
	if (!worker->events) {
		tasks_end(worker);
		pool->ending = true;
		pool->vanished = true;
		return false;
	}
	count = tw_events_count(worker->events);
	if (!count) {
		tasks_end(worker);
		return false;
	}
	pool->left -= count;
	tasks_begin(pool, worker);
	pool->commands += tasks_in(worker, TASK_RUNS) > 0;
	go_on(pool, worker);
	return true;
}

static void start_due(struct pool *pool)
{
	while (!pool->ending && pool->left && pool->running < pool->jobs)
		if (!start_next(pool))
			return;
}

/* Ends a command that runs for too long, with its process group. */
static void end_overdue(struct worker *worker)
{
	kill(-worker->pid, worker->overdue ? SIGKILL : SIGTERM);
	worker->limit = worker->overdue ? TIMEWHEEL_NEVER : end_after(GRACE);
	worker->overdue = true;
}

/* Looks after the commands that run. Returns the time of the next look. */
static uint64_t look_after(struct pool *pool)
{
	uint64_t now = end_after(0), next = TIMEWHEEL_NEVER;
	unsigned int i;

	for (i = 0; i < pool->jobs; i++) {
		struct worker *worker = &pool->workers[i];

		if (!worker->pid)
			continue;
		if (worker->extend <= now)
			worker->extend = tasks_extend(pool, worker) ?
					 next_extension(pool) : TIMEWHEEL_NEVER;
		if (worker->limit <= now)
			end_overdue(worker);
		if (worker->extend < next)
			next = worker->extend;
		if (worker->limit < next)
			next = worker->limit;
	}
	return next;
}

static void finished(struct pool *pool, struct worker *worker, int status)
{
	bool failed = status || worker->overdue;

	worker->pid = 0;
	pool->running--;
	if (failed)
		tasks_failed(pool, worker, status);
	else
		tasks_succeeded(pool, worker);
	if (tasks_in(worker, TASK_RUNS))
		pool->retried++;
	else
		pool->failed += failed;
	go_on(pool, worker);
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

/* Runs until it is told to end and no command runs. Returns true if no token came for long. */
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
		 (unsigned long long)pool->commands,
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

/* A command with --batch has many tokens, and fields of a single token make no sense in it. */
static void check_words(const struct pool *pool, const char *name, const char *words)
{
	char field[32];
	size_t i;

	template_check(name, words);
	for (i = 0; pool->batch && event_fields[i]; i++) {
		snprintf(field, sizeof(field), "{%s}", event_fields[i]);
		if (strcmp(event_fields[i], "wheel") && strstr(words, field))
			die(STATUS_USAGE,
			    "%s '%s': not with --batch, by which it has many tokens: their ids are on its standard input",
			    name, field);
	}
}

static void check_command(const struct pool *pool)
{
	char **word;

	for (word = pool->command; *word; word++)
		check_words(pool, "CMD", *word);
	if (!strchr(pool->command[0], '{'))
		command_check(pool->command[0]);
}

/* A shell runs @line: its words make it the command for tokens that are given up. */
static void set_for_failed(struct pool *pool, const char *line)
{
	if (!line)
		return;
	if (!pool->tries)
		die(STATUS_USAGE, "--failed: only with --tries, which tells after how many");
	check_words(pool, "--failed", line);
	pool->for_failed = calloc(4, sizeof(*pool->for_failed));
	if (!pool->for_failed)
		die(STATUS_FAILED, "no memory for a command");
	pool->for_failed[0] = "sh";
	pool->for_failed[1] = "-c";
	pool->for_failed[2] = (char *)line;
}

enum status verb_exec(const struct args *args)
{
	struct pool pool = {
		.command = args->arg + 1,
		.jobs = option_number(args, OPT_JOBS, 1, 65536, 1),
		.tries = option_number(args, OPT_TRIES, 1, 1000000, 0),
		.batch = option_number(args, OPT_BATCH, 1, 65536, 0),
		.timeout = option_span(args, OPT_TIME_LIMIT, TIMEWHEEL_NEVER),
		.idle = option_span(args, OPT_IDLE_TIMEOUT, TIMEWHEEL_NEVER),
		.left = option_number(args, OPT_COUNT, 0, UINT64_MAX - 1,
				      UINT64_MAX),
	};
	bool idle;

	check_command(&pool);
	set_for_failed(&pool, args->option[OPT_FAILED]);
	pool.workers = calloc(pool.jobs, sizeof(*pool.workers));
	if (!pool.workers)
		die(STATUS_FAILED, "no memory for workers");
	signals_begin();
	wheel_open_to_read(&pool.wheel, args->arg[0]);
	if (pool.wheel.info.lease)
		wheel_open_to_answer(&pool.wheel, args->arg[0]);
	idle = run(&pool);
	wheel_close(&pool.wheel);
	free(pool.workers);
	free(pool.for_failed);
	return result(&pool, idle);
}
