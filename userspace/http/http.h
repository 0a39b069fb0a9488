/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * twjob-http: declarations for all its files. 'twjob work --url' runs it. It is an ordinary
 * client of twjobd; code that it shares with twjob is in ../twjob/twjob.h.
 *
 * work.c knows jobs and twjobd, post.c the address and libcurl, and answer.c what a
 * server's answer means; secret.c signs. An answer may have been written by anybody, and is
 * escaped before it is told.
 */
#ifndef TWJOB_HTTP_H
#define TWJOB_HTTP_H

#include <curl/curl.h>

#include "twjob.h"

/* The length of an answer or an error in REASON and messages, escaped, and of a whole reason. */
#define ANSWER_SIZE	200
#define REASON_SIZE	(4 * ANSWER_SIZE + 64)
/* A longer answer is cut off: its status has come already. */
#define MOST_ANSWER	65536
/* The id is "queue-id", and an occurrence of a rule also has its name. */
#define MESSAGE_ID_SIZE	160

/* What becomes of a job: done, can never be done, failed, or not tried by anybody. */
enum outcome {
	DONE, HOPELESS, FAILED, UNTRIED
};

/*
 * The message that a post sends. @key: NULL if the job has none. @id: the receiver's id of it,
 * which is the same at each try. @timeout: in milliseconds.
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
 * The end of a post. @status: the status of HTTP, 0 if none came. @text: the first bytes of
 * the answer, or why there is none. @retry_after: NULL if the server did not tell.
 */
struct answer {
	long		status;
	const char	*text;
	size_t		length;
	const char	*retry_after;
};

/* The meaning of an answer. @span: the time until the next try, 0 if the job's BACKOFF tells it. */
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
