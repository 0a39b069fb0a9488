/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twjob-http: declarations for all its files. 'twjob work --url' runs it. It is an ordinary
 * client of twjobd; what it shares with twjob is in ../twjob/twjob.h.
 *
 * work.c knows jobs and twjobd, post.c the address and libcurl, and answer.c what a
 * server's answer means; secret.c signs. An answer may have been written by anybody, and is
 * escaped before it is told.
 */
#ifndef TWJOB_HTTP_H
#define TWJOB_HTTP_H

#include <curl/curl.h>

#include "twjob.h"

/* What REASON and messages have of an answer or an error, escaped, and all of a reason. */
#define ANSWER_SIZE	200
#define REASON_SIZE	(4 * ANSWER_SIZE + 64)
/* An answer that is longer is cut off: its status has come. */
#define MOST_ANSWER	65536
/* "queue-id", and for an occurrence of a rule its name. */
#define MESSAGE_ID_SIZE	160

/* What becomes of a job: the work is done; it can never be; it has failed; nobody has tried. */
enum outcome {
	DONE, HOPELESS, FAILED, UNTRIED
};

/*
 * What a post sends. @key: NULL if the job has none. @id: for the receiver, and the same at each
 * try. @timeout: in milliseconds.
 */
struct message {
	const char	*queue;
	long long	job;
	long long	try;
	const char	*key;
	size_t		key_length;
	const char	*body;
	size_t		body_length;
	char		id[MESSAGE_ID_SIZE];
	long		timeout;
};

/*
 * How a post ended. @status: of HTTP, 0 if none came. @answer: its first bytes, or why there is
 * none. @retry_after: NULL if the server did not say.
 */
struct answer {
	long		status;
	const char	*text;
	size_t		length;
	const char	*retry_after;
};

/* What it means. @span: until the next try, 0 if the job's BACKOFF tells. */
struct verdict {
	enum outcome	outcome;
	uint64_t	span;
	char		reason[REASON_SIZE];
};

struct post;

void secret_read(const char *path);
char *secret_sign(const char *id, const char *timestamp, const void *body, size_t length);

void posts_begin(const char *url, long most);
int posts_fd(void);
uint64_t posts_next(void);
void posts_run(void (*ended)(void *job, const struct answer *answer));
struct post *post_new(void *job);
void post_start(struct post *post, const struct message *message);

void answer_judge(const struct answer *answer, struct verdict *verdict);

enum status verb_post(const struct args *args);

#endif /* TWJOB_HTTP_H */
