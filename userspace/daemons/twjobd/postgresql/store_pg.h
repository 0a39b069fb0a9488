/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that the store on PostgreSQL has for node.c besides the functions of a store.
 */
#ifndef TWJOBD_STORE_PG_H
#define TWJOBD_STORE_PG_H

#include "pg.h"

extern const struct store store_pg;

/* The bits of this column tell what else the store has of a job. */
#define PG_JOB_MORE	10
#define PG_JOB_COLUMNS	11
#define PG_MORE_RULE	1
#define PG_MORE_OPTIONS	2
#define PG_MORE_FAILURE	4
#define PG_MORE_DONE	8
#define PG_MORE_UNIQUE	16
/* Reads the row @i of @rows, which begins with a job's columns, see statements.c. */
void pg_read_job(const PGresult *rows, int i, struct job *job);
/* Reads a row of QUEUES. Returns the time in ms until which other nodes want jobs of the queue. */
uint64_t pg_read_queue(const PGresult *rows, int i, struct queue_row *row);
/* rules_pg.c: these functions are as in store.h. */
int pg_save_rule(int64_t job, const struct rule *rule);
int pg_get_rule(int64_t job, struct rule *rule);
int64_t pg_count_rules(void);
/* Reads at once the rules of all jobs in @jobs that have a rule. */
void pg_want_rules(const PGresult *jobs);
/* Makes the tables (init.c). */
void pg_init_database(const char *where);

/* node.c */
void node_start(void);
void node_refresh(void);

#endif /* TWJOBD_STORE_PG_H */
