// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connections that hold jobs: see holder.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holder.h"

#define BUCKETS		4096
/* This many deliveries that have ended may be remembered. */
#define MANY		1024

/* A holder is a client as it was when it took jobs. @refs counts its deliveries and the client. */
struct holder {
	size_t refs;
	uint64_t number;
	char address[CLIENT_WORD], name[CLIENT_WORD];
};

struct held_job {
	LIST_ENTRY(held_job) next;
	int64_t queue, job;
	uint64_t handle, version;
	uint32_t delivery;
	struct holder *holder;
};

static struct {
	LIST_HEAD(, held_job) buckets[BUCKETS];
	/* When there are so @many it is time to forget deliveries that have ended. */
	size_t count, many;
} all = { .many = MANY };

static void release(struct holder *holder)
{
	if (holder && !--holder->refs)
		free(holder);
}

void holder_end(struct client *client)
{
	release(client->holder);
	client->holder = NULL;
}

/* Returns the client's holder with the name that the client has now. */
static struct holder *holder_now(struct client *client)
{
	struct holder *holder = client->holder;

	if (holder && !strcmp(holder->name, client->name))
		return holder;
	holder_end(client);
	holder = calloc(1, sizeof(*holder));
	if (!holder)
		die(ENOMEM, "a client");
	holder->refs = 1;
	holder->number = client->number;
	memcpy(holder->address, client->address, sizeof(holder->address));
	memcpy(holder->name, client->name, sizeof(holder->name));
	client->holder = holder;
	return holder;
}

static struct held_job *find(int64_t job)
{
	struct held_job *held;

	LIST_FOREACH(held, &all.buckets[job % BUCKETS], next)
		if (held->job == job)
			break;
	return held;
}

static void forget(struct held_job *held)
{
	LIST_REMOVE(held, next);
	release(held->holder);
	free(held);
	all.count--;
}

void holder_forget(int64_t job)
{
	struct held_job *held = find(job);

	if (held)
		forget(held);
}

static bool is_out(const struct held_job *held)
{
	struct queue *queue = queue_by_id(held->queue);
	struct timewheel_token token;

	return queue && queue_holds(queue, held->handle, held->delivery, &token);
}

/* Most deliveries are forgotten when their jobs are changed. The end of a lease changes no job. */
static void forget_ended(void)
{
	struct held_job *held, *next;

	for (size_t i = 0; i < BUCKETS; i++) {
		for (held = LIST_FIRST(&all.buckets[i]); held; held = next) {
			next = LIST_NEXT(held, next);
			if (!is_out(held))
				forget(held);
		}
	}
	all.many = 2 * all.count + MANY;
}

void holder_note(struct client *client, const struct queue *queue,
		 const struct timewheel_event *event, uint64_t version)
{
	struct held_job *held;

	holder_forget(event->cookie);
	if (all.count >= all.many)
		forget_ended();
	held = calloc(1, sizeof(*held));
	if (!held)
		die(ENOMEM, "a delivery");
	*held = (struct held_job) {
		.queue = queue->row.id,
		.job = event->cookie,
		.handle = event->handle,
		.version = version,
		.delivery = event->delivery,
		.holder = holder_now(client),
	};
	held->holder->refs++;
	LIST_INSERT_HEAD(&all.buckets[held->job % BUCKETS], held, next);
	all.count++;
}

bool holder_of(const struct job *job, const struct timewheel_token *token,
	       char text[HOLDER_TEXT])
{
	const struct held_job *held = find(job->id);

	if (!held || (store->shared ? held->version != job->version :
		      held->handle != token->handle || held->delivery != token->delivery))
		return false;
	snprintf(text, HOLDER_TEXT, "id=%llu addr=%s name=%s",
		 (unsigned long long)held->holder->number, held->holder->address,
		 held->holder->name);
	return true;
}
