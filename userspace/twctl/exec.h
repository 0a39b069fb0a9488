/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands for expired tokens. exec.c has the verb, its workers and their processes,
 * exec_tokens.c the tokens of a worker and the answers to their deliveries.
 */
#ifndef TWCTL_EXEC_H
#define TWCTL_EXEC_H

#include <sys/types.h>

#include "twctl.h"

/*
 * The work that a worker has to do with a token: to run CMD for it, to hand it to --failed or
 * print it, or none.
 */
enum task_state {
	TASK_RUNS,
	TASK_GIVEN_UP,
	TASK_OVER,
};

/* A token of a worker. @attempts: counted by the wheel, or by this worker. */
struct task {
	enum task_state	state;
	unsigned int	attempts;
};

/*
 * A worker and the command that it runs. @pid: 0 when the worker is free. @turn: the
 * state of those of its tokens that the command is for. @extend: when the leases have to
 * be extended next. @limit: when the command is ended, or killed if it is @overdue
 * already. @task: one for each of @events.
 */
struct worker {
	pid_t			pid;
	enum task_state		turn;
	uint64_t		extend;
	uint64_t		limit;
	bool			overdue;
	struct task		*task;
	struct tw_events	*events;
};

/*
 * @tries: the tries of a token until it is given up, 0 if no token is. @for_failed: the
 * command for such a token, NULL to print it. @batch: the most tokens of a command, 0 if it
 * gets one, and not on its input.
 */
struct pool {
	struct wheel	wheel;
	char		**command;
	char		**for_failed;
	struct worker	*workers;
	unsigned int	jobs;
	unsigned int	running;
	unsigned int	tries;
	size_t		batch;
	uint64_t	timeout;
	uint64_t	idle;
	uint64_t	left;
	bool		ending;		/* exec takes no more tokens */
	bool		stuck;		/* exec cannot start a process */
	bool		vanished;
	uint64_t	commands;
	uint64_t	failed;
	uint64_t	retried;
	bool		lost;		/* exec has lost a lease */
};

const struct timewheel_event *tasks_first(const struct worker *worker);
size_t tasks_in(const struct worker *worker, enum task_state state);
void tasks_begin(const struct pool *pool, struct worker *worker);
void tasks_end(struct worker *worker);
void tasks_environment(const struct pool *pool, const struct worker *worker);
int tasks_keys(const struct pool *pool, const struct worker *worker);
bool tasks_extend(struct pool *pool, struct worker *worker);
void tasks_succeeded(struct pool *pool, struct worker *worker);
void tasks_failed(struct pool *pool, struct worker *worker, int status);
void tasks_put_back(const struct pool *pool, struct worker *worker);
void tasks_print(struct pool *pool, struct worker *worker);

#endif /* TWCTL_EXEC_H */
