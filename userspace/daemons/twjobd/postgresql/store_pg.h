/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the store on PostgreSQL has besides the functions of a store, for node.c.
 */
#ifndef TWJOBD_STORE_PG_H
#define TWJOBD_STORE_PG_H

#include "pg.h"

extern const struct store store_pg;

/* The column of a job whose bits tell what else the job has. */
#define PG_JOB_MORE	10
#define PG_JOB_COLUMNS	11
#define PG_MORE_RULE	1
#define PG_MORE_OPTIONS	2
#define PG_MORE_FAILURE	4
#define PG_MORE_DONE	8
#define PG_MORE_UNIQUE	16
/* A row that begins with a job's columns, see statements.c, as @i of @rows. */
void pg_read_job(const PGresult *rows, int i, struct job *job);
/* A row of QUEUES. Returns until when other nodes want jobs of it, ms. */
uint64_t pg_read_queue(const PGresult *rows, int i, struct queue_row *row);
/* rules_pg.c: as those of a store. */
int pg_save_rule(int64_t job, const struct rule *rule);
int pg_get_rule(int64_t job, struct rule *rule);
int64_t pg_count_rules(void);
/* Reads at once the rules of those of these jobs that have one. */
void pg_want_rules(const PGresult *jobs);
/* Makes the tables (init.c). */
void pg_init_database(const char *where);

/* node.c */
void node_start(void);
void node_refresh(void);

#endif /* TWJOBD_STORE_PG_H */
