/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules by which jobs come again. A job with a rule is one occurrence after another. When an
 * occurrence ends, the job's row and token become the next occurrence, by one change of the
 * store. So no occurrence is lost or doubled, and no queue is too full for the next one. An
 * occurrence is split off as a job of its own if it is buried, or if a worker has it while the
 * rule goes on. This part knows no connection.
 *
 * A worker sees as an occurrence's key the rule's key, "@", and the occurrence's name.
 */
#ifndef TWJOBD_RULE_H
#define TWJOBD_RULE_H

#include "queue.h"

/* The key of a rule is so short that the key of an occurrence fits MAX_KEY. */
#define MAX_RULE_KEY	(MAX_KEY - CALENDAR_NAME)

/* Returns how many bytes are counted for a rule besides the bytes of its job. */
uint64_t rule_size(const struct rule *rule);
/*
 * Sets @at to the first occurrence after now, and @zone, which may be empty, to the zone that is
 * meant. Returns false, and a reason in @why, if there is no occurrence.
 */
bool rule_begin(struct rule *rule, char why[CALENDAR_WHY]);

/*
 * Looks at a job with a rule that is about to be delivered. Returns 0 if the worker gets the job,
 * which then has the occurrence's key. -EAGAIN: the job is not due any more. Other errors are
 * errors of the store or the wheel.
 */
int rule_take(struct queue *queue, struct job *job, const struct timewheel_token *token,
	      uint32_t delivery, bool first);
/*
 * Ends a delivery, and with it the occurrence: @job becomes the next occurrence. An occurrence
 * that is to be buried is split off first. -ENOENT: there is no next occurrence, and nothing has
 * been done.
 */
int rule_end(struct queue *queue, struct job *job, const struct timewheel_token *token,
	     uint32_t delivery);
/* Moves the job to the time that its occurrence has by the time zone's present file. */
void rule_compare(struct queue *queue, struct job *job, const struct timewheel_token *token);

#endif /* TWJOBD_RULE_H */
