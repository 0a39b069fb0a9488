/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twjob: declarations for all its files. verbs.c has the table of verbs and options. Code that
 * it shares with twctl is in ../tool/tool.h.
 */
#ifndef TWJOB_H
#define TWJOB_H

#include <hiredis/hiredis.h>

#include "tool.h"

enum {
	OPT_SERVER = OPT_OWN,
	OPT_PASSWORD_FILE,
	OPT_KEY,
	OPT_REPLACE,
	OPT_BODY,
	OPT_LEASE,
	OPT_TRIES,
	OPT_MAX_JOBS,
	OPT_MAX_BYTES,
	OPT_STATE,
	OPT_BEFORE,
	OPT_RAW,
	OPT_BURIED,
	OPT_JOBS,
	OPT_TIMEOUT,
	OPT_STORE,
	OPT_FORCE,
	OPT_TZ,
	OPT_MISSED,
	OPT_OVERLAP,
	OPT_BACKOFF,
	OPT_KEEP_BURIED,
	OPT_KEEP_DONE,
	OPT_LISTEN,
	OPT_READ_ONLY,
	OPT_LIMIT,
	OPT_RATE,
	OPT_GROUP_LIMIT,
	OPT_GROUP_RATE,
	OPT_GROUP,
	OPT_URL,
	OPT_SECRET_FILE,
};

/* The texts of the options that 'twjob web' and 'twjob work' hand on to their programs. */
#define SERVER_OPTION_TEXTS						\
	[OPT_SERVER] = { 's', "server", "ADDRESS",			\
		"twjobd's socket, or HOST:PORT (/run/twjobd/socket)" },	\
	[OPT_PASSWORD_FILE] = { 0, "password-file", "FILE",		\
		"the password for HOST:PORT is the first line of this file" }
#define SERVER_OPTIONS	(1ULL << OPT_HELP | 1ULL << OPT_SERVER |	\
			 1ULL << OPT_PASSWORD_FILE)

#define WEB_OPTION_TEXTS						\
	[OPT_LISTEN] = { 0, "listen", "ADDRESS",			\
		"where browsers connect: a socket's path, or 127.0.0.1:PORT" },	\
	[OPT_READ_ONLY] = { 0, "read-only", NULL, "show no forms, and refuse all changes" }
#define WEB_OPTIONS	(SERVER_OPTIONS | 1ULL << OPT_LISTEN | 1ULL << OPT_READ_ONLY)
#define WEB_HELP	"show queues and jobs to a browser, and change them by it"

#define WORK_OPTION_TEXTS						\
	[OPT_JOBS] = { 'j', "jobs", "N", "run up to N commands or posts at a time (1)" }, \
	[OPT_TIMEOUT] = { 't', "timeout", "SPAN",			\
		"end one that runs so long, and try its job again" },	\
	[OPT_URL] = { 0, "url", "URL",				\
		"post to this address, http or https, instead of running a command" }, \
	[OPT_SECRET_FILE] = { 0, "secret-file", "FILE",			\
		"sign posts by the secret in the first line of this file" }
#define WORK_OPTIONS	(SERVER_OPTIONS | 1ULL << OPT_JOBS | 1ULL << OPT_TIMEOUT | \
			 1ULL << OPT_URL | 1ULL << OPT_SECRET_FILE)
#define WORK_HELP	"run a command for each job that is due, with the body as its input"

/* The states of jobs, in the order of a job's life. */
#define JOB_STATES	"delayed ready held waiting buried done"

/* Messages tell this form of times. */
#define POINT_FORM	"a span such as 30s or 'in 1h30m', 'at 15:22:35', " \
			"'tomorrow 8am', or '2026-12-01 08:00'"

#define STORE		"/var/lib/twjobd/jobs"
#define NSEC_PER_MSEC	1000000ULL
#define NEVER		UINT64_MAX

extern const struct column queue_columns[], figure_columns[], put_columns[],
	job_columns[], body_columns[], done_columns[], calendar_columns[],
	top_columns[];
extern const char * const job_states[];

enum status verb_queues(const struct args *args);
enum status verb_create(const struct args *args);
enum status verb_drop(const struct args *args);
enum status verb_stats(const struct args *args);
enum status verb_metrics(const struct args *args);
enum status verb_pause(const struct args *args);
enum status verb_resume(const struct args *args);
enum status verb_drain(const struct args *args);
enum status verb_put(const struct args *args);
enum status verb_cancel(const struct args *args);
enum status verb_move(const struct args *args);
enum status verb_list(const struct args *args);
enum status verb_done(const struct args *args);
enum status verb_get(const struct args *args);
enum status verb_kick(const struct args *args);
enum status verb_delete(const struct args *args);
enum status verb_every(const struct args *args);
enum status verb_calendar(const struct args *args);
enum status verb_work(const struct args *args);
enum status verb_top(const struct args *args);
enum status verb_web(const struct args *args);
enum status verb_backup(const struct args *args);

/* Requests to the server (server.c) */

#define MOST_WORDS	1100

/* A command to twjobd, as words of any bytes. */
struct request {
	int	count;
	char	*word[MOST_WORDS];
	size_t	length[MOST_WORDS];
};

void request_begin(struct request *request, const char *verb, const char *queue);
__printf(2, 3)
void request_add(struct request *request, const char *format, ...);
void request_add_bytes(struct request *request, const char *bytes, size_t length);
void request_add_span(struct request *request, uint64_t ns);
void request_add_when(struct request *request, const struct when *when);
void request_add_rate(struct request *request, const struct args *args, int option);
void request_add_settings(struct request *request, const struct args *args);

void server_settings(const struct args *args);
redisContext *server_try(unsigned int seconds, redisReply **refusal);
redisContext *server_connect(unsigned int seconds);
enum status server_trouble(void);
void server_open(const struct args *args);
bool server_append(redisContext *server, struct request *request);
redisReply *ask(struct request *request);
bool refused(const redisReply *reply, const char *queue, enum status *status);
const redisReply *field(const redisReply *map, const char *name);
long long number_field(const redisReply *map, const char *name);

/* Programs that are packages of their own (program.c) */

__noreturn void program_run(const char *program, const char *package,
			    const struct args *args);

/* Text in UTF-8 (text.c) */

size_t utf8_length(const char *text, size_t length);
bool utf8_all(const char *text, size_t length);

/* Parts of putting a job that several verbs share (jobs.c) */

void put_add_body(struct request *request, const struct args *args);
enum status put_answer(struct out *out, const struct args *args,
		       const redisReply *reply);

#endif /* TWJOB_H */
