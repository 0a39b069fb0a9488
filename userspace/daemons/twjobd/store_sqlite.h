/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The SQL of store_sqlite.c, which no other file uses.
 */
#ifndef TWJOBD_STORE_SQLITE_H
#define TWJOBD_STORE_SQLITE_H

/* The tables of a store. */
static const char schema[] =
	"pragma auto_vacuum = incremental;"
	"pragma journal_mode = wal;"
	"begin immediate;"
	"create table meta (name text primary key, value) without rowid;"
	"create table queue (id integer primary key, name text not null,\n"
	" lease int, tries int, max_jobs int, max_bytes int, epoch int,\n"
	" jobs int, bytes int, buried int, paused int, draining int, dropped int,\n"
	" backoff int, backoff_most int, keep_buried int, done int, keep_done int,\n"
	" lim int, rate int, per int, group_rate int, group_per int, group_limit int,\n"
	" waiting int);"
	"create table job (id integer primary key, queue int not null,\n"
	" due int not null, attempts int not null, size int not null,\n"
	" buried int not null, key blob, more int not null default 0, body blob);"
	"create index buried on job (queue, id) where buried;"
	"create table body (id integer primary key, body blob not null);"
	"create table rule (id integer primary key, rule text not null,\n"
	" zone text not null, start int not null, missed int not null,\n"
	" overlap int not null, local int not null, utc int not null,\n"
	" again int not null, number int not null);"
	"create table option (id integer primary key, lease int not null,\n"
	" tries int not null, backoff int not null, backoff_most int not null,\n"
	" uniq int not null, grp blob);"
	"create table failure (id integer primary key, at int not null,\n"
	" reason blob not null);"
	"create table done (queue int not null, n int not null, id int not null,\n"
	" due int not null, ended int not null, attempts int not null, key blob,\n"
	" primary key (queue, n)) without rowid;"
	"create table waiting (queue int not null, grp blob not null, due int not null,\n"
	" id int not null, primary key (queue, grp, due, id)) without rowid;"
	"create table held (id integer primary key, epoch int not null,\n"
	" handle int not null, delivery int not null, lease_end int not null);"
	"insert into meta values ('next', 1), ('turn', x''),\n"
	" ('secret', randomblob(16));"
	"pragma application_id = 1953983074;"
	"pragma user_version = 1;"
	"commit;";

/*
 * The bits of a job's column "more". With MORE_RULE, MORE_OPTIONS, MORE_FAILURE, MORE_WAITING or
 * MORE_BODY the table of that name has a row of the job, too.
 */
#define MORE_RULE	1
#define MORE_OPTIONS	2
#define MORE_FAILURE	4
#define MORE_DONE	8
#define MORE_UNIQUE	16
#define MORE_WAITING	32
#define MORE_BODY	64

#define QUEUE_COLUMNS	"name, lease, tries, max_jobs, max_bytes, epoch, " \
			"jobs, bytes, buried, paused, draining, dropped, " \
			"backoff, backoff_most, keep_buried, done, keep_done, " \
			"lim, rate, per, group_rate, group_per, group_limit, waiting"
#define QUEUE_VALUES	"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " \
			"?, ?, ?, ?, ?)"
#define RULE_COLUMNS	"rule, zone, start, missed, overlap, local, utc, again, number"
#define JOB_COLUMNS	"id, queue, due, attempts, size, buried, key, more"

enum statement {
	READ, BEGIN, COMMIT, ROLL_BACK, MARK, BACK, KEEP,
	SET_NEXT, SET_LIST, GET_LIST, SET_CLOCK,
	QUEUES, ADD_QUEUE, SAVE_QUEUE, REMOVE_QUEUE,
	ADD, CHANGE, CHANGE_BODY, SAVE_BODY,
	REMOVE_PLAIN, REMOVE, REMOVE_BODY, REMOVE_WAITING, REMOVE_RULE, REMOVE_FAILURE,
	GET, GET_BODY, NEXT, NEXT_BURIED, NEXT_RULES,
	SAVE_RULE, GET_RULE,
	SAVE_OPTIONS, GET_OPTIONS, REMOVE_OPTIONS, SAVE_FAILURE, GET_FAILURE,
	ADD_DONE, END_DONE, NEXT_DONE,
	ADD_WAITING, END_WAITING, FIRST_WAITING,
	SAVE_HELD, GET_HELD, REMOVE_HELD,
	STATEMENTS
};

static const char * const texts[STATEMENTS] = {
	[READ] = "begin",
	[BEGIN] = "begin immediate",
	[COMMIT] = "commit",
	[ROLL_BACK] = "rollback",
	[MARK] = "savepoint mark",
	[BACK] = "rollback to mark",
	[KEEP] = "release mark",
	[SET_NEXT] = "update meta set value = ? where name = 'next'",
	[SET_LIST] = "update meta set value = ? where name = 'turn'",
	[GET_LIST] = "select value from meta where name = 'turn'",
	[SET_CLOCK] = "replace into meta values ('clock', ?)",
	[QUEUES] = "select id, " QUEUE_COLUMNS " from queue order by id",
	[ADD_QUEUE] = "insert into queue (id, " QUEUE_COLUMNS ")\n"
		      "values " QUEUE_VALUES,
	[SAVE_QUEUE] = "replace into queue (id, " QUEUE_COLUMNS ")\n"
		       "values " QUEUE_VALUES,
	[REMOVE_QUEUE] = "delete from queue where id = ?",
	[ADD] = "insert into job (" JOB_COLUMNS ", body) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[CHANGE] = "update job set due = ?2, attempts = ?3, size = ?4,\n"
		   "buried = ?5, more = ?6 | (more & 64) where id = ?1",
	[CHANGE_BODY] = "update job set body = ?2, more = (more & ~64) | ?3 where id = ?1",
	[SAVE_BODY] = "replace into body values (?, ?)",
	[REMOVE_PLAIN] = "delete from job where id = ? and not more",
	[REMOVE] = "delete from job where id = ?",
	[REMOVE_BODY] = "delete from body where id = ?",
	[REMOVE_WAITING] = "delete from waiting where (queue, grp, due, id) =\n"
			   "(select queue, grp, due, id from job join option using (id)\n"
			   "where id = ? and more & 32)",
	[REMOVE_RULE] = "delete from rule where id = ?",
	[REMOVE_FAILURE] = "delete from failure where id = ?",
	[GET] = "select " JOB_COLUMNS ", body from job where id = ?",
	[GET_BODY] = "select body from body where id = ?",
	[NEXT] = "select " JOB_COLUMNS " from job where id > ?1\n"
		 "order by id limit ?2",
	[NEXT_BURIED] = "select " JOB_COLUMNS " from job where buried and\n"
			"queue = ?3 and id > ?1 order by id limit ?2",
	[NEXT_RULES] = "select " JOB_COLUMNS " from job where id in\n"
		       "(select id from rule where id > ?1 order by id limit ?2) order by id",
	[SAVE_RULE] = "replace into rule (id, " RULE_COLUMNS ")\n"
		      "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
	[GET_RULE] = "select " RULE_COLUMNS " from rule where id = ?",
	[SAVE_OPTIONS] = "replace into option values (?, ?, ?, ?, ?, ?, ?)",
	[GET_OPTIONS] = "select lease, tries, backoff, backoff_most, uniq, grp\n"
			"from option where id = ?",
	[REMOVE_OPTIONS] = "delete from option where id = ?",
	[SAVE_FAILURE] = "replace into failure values (?, ?, ?)",
	[GET_FAILURE] = "select at, reason from failure where id = ?",
	[ADD_DONE] = "insert into done select ?1, coalesce(max(n), 0) + 1, ?2, ?3, ?4, ?5, ?6\n"
		     "from done where queue = ?1",
	[END_DONE] = "delete from done where queue = ?1 and ended < ?2 and n in\n"
		     "(select n from done where queue = ?1 order by n limit ?3)",
	[NEXT_DONE] = "select id, queue, due, attempts, 0, 0, key, 0, n, ended from done\n"
		      "where queue = ?1 and n < ?2 order by n desc limit ?3",
	[ADD_WAITING] = "insert into waiting (queue, due, id, grp) values (?, ?, ?, ?)",
	[END_WAITING] = "delete from waiting where queue = ? and due = ? and id = ? and grp = ?",
	[FIRST_WAITING] = "select grp, id from waiting where queue = ? and grp >= ?\n"
			  "order by grp, due, id limit 1",
	[SAVE_HELD] = "insert into held values (?, ?, ?, ?, ?)",
	[GET_HELD] = "select * from held order by id",
	[REMOVE_HELD] = "delete from held",
};

#endif /* TWJOBD_STORE_SQLITE_H */
