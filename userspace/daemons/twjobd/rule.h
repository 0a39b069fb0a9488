/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules by which jobs come again. A job with a rule is one occurrence after another:
 * as one ends, the same row and the same token become the next one, by one change of
 * the store. So none is lost or doubled, and no queue is too full for the next one.
 * What outlives its occurrence is split off as a job of its own: one that is buried,
 * and one that is worked on while the rule goes on. This knows no connection.
 *
 * A worker sees an occurrence's key as that of the rule, "@", and the occurrence's name.
 */
#ifndef TWJOBD_RULE_H
#define TWJOBD_RULE_H

#include "queue.h"

/* The key of a rule is so short that the key of an occurrence fits MAX_KEY. */
#define MAX_RULE_KEY	(MAX_KEY - CALENDAR_NAME)

/* So many bytes are counted for a rule beside those of its job. */
uint64_t rule_size(const struct rule *rule);
/*
 * Sets @at to the first occurrence after now, and @zone, which may be empty, to the zone
 * that is meant. False, and a reason in @why: there is no occurrence.
 */
bool rule_begin(struct rule *rule, char why[CALENDAR_WHY]);

/*
 * A job with a rule is about to be delivered. 0: the worker gets it, and its key is that of
 * the occurrence. -EAGAIN: the job is not due any more. Or an error of the store or the
 * wheel.
 */
int rule_take(struct queue *queue, struct job *job, const struct timewheel_token *token,
	      uint32_t delivery, bool first);
/*
 * A delivery ends, and with it the occurrence: @job becomes the next one. An occurrence
 * that is to be buried is split off before. -ENOENT: there is no next one, and nothing has
 * been done.
 */
int rule_end(struct queue *queue, struct job *job, const struct timewheel_token *token,
	     uint32_t delivery);
/* Moves the job to where the time zone's present file has its occurrence. */
void rule_compare(struct queue *queue, struct job *job, const struct timewheel_token *token);

#endif /* TWJOBD_RULE_H */
