// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deliveries of a connection: see client.h. This file knows no socket and no verb.
 */
#include <errno.h>
#include <stdlib.h>

#include "allow.h"
#include "client.h"
#include "holder.h"

/* A connection may remember this many deliveries that have ended. */
#define MANY	64

struct clients clients_all = LIST_HEAD_INITIALIZER(clients_all);

void client_init(struct client *client, void (*resume)(struct client *client))
{
	client->resume = resume;
	client->many = MANY;
	client->uid = NO_UID;
	client->since = now_ms();
	client->last = client->since;
	TAILQ_INIT(&client->deliveries);
	LIST_INSERT_HEAD(&clients_all, client, all);
}

void client_end(struct client *client)
{
	free(client->password);
	holder_end(client);
	LIST_REMOVE(client, all);
}

void client_forget(struct client *client, struct delivery *delivery)
{
	TAILQ_REMOVE(&client->deliveries, delivery, next);
	client->nr_deliveries--;
	free(delivery);
}

/* Forgets deliveries that any connection has answered, and deliveries whose lease has ended. */
static void forget_ended(struct client *client)
{
	struct delivery *delivery = TAILQ_FIRST(&client->deliveries), *next;

	for (; delivery; delivery = next) {
		struct queue *queue = queue_by_id(delivery->queue);
		struct timewheel_token token;

		next = TAILQ_NEXT(delivery, next);
		if (!queue || queue->row.epoch != delivery->epoch ||
		    !queue_holds(queue, delivery->handle, delivery->number, &token))
			client_forget(client, delivery);
	}
	client->many = 2 * client->nr_deliveries + MANY;
}

void client_delivered(struct client *client, struct queue *queue,
		      const struct timewheel_event *event, uint64_t version,
		      bool bound)
{
	struct delivery *delivery = calloc(1, sizeof(*delivery));

	if (!delivery)
		die(ENOMEM, "a delivery");
	if (client->nr_deliveries >= client->many)
		forget_ended(client);
	*delivery = (struct delivery) {
		.queue = queue->row.id,
		.job = event->cookie,
		.version = version,
		.epoch = queue->row.epoch,
		.handle = event->handle,
		.number = event->delivery,
		.end = UINT64_MAX,
		.bound = bound,
	};
	TAILQ_INSERT_TAIL(&client->deliveries, delivery, next);
	client->nr_deliveries++;
}

void client_answered(struct client *client, uint64_t end)
{
	struct delivery *delivery;

	TAILQ_FOREACH_REVERSE(delivery, &client->deliveries, deliveries, next) {
		if (delivery->end != UINT64_MAX)
			break;
		delivery->end = end;
	}
}

void client_sent(struct client *client, uint64_t end)
{
	struct delivery *delivery = TAILQ_FIRST(&client->deliveries), *next;

	for (; delivery && delivery->end <= end; delivery = next) {
		next = TAILQ_NEXT(delivery, next);
		delivery->sent = true;
		if (!delivery->bound)
			client_forget(client, delivery);
	}
}
