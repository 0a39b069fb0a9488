// SPDX-License-Identifier: GPL-2.0-only
/*
 * The statements for the database: see statements.h.
 *
 * A statement that locks rows says "skip locked", because a program's transaction may keep a row
 * locked for minutes.
 *
 * Each statement is planned once, for tables of any size: see connect.c. So exactly one index
 * must fit each statement. With "coalesce(node, 0)" the index by node cannot be used for a few
 * ids. "order by node, id" with a range of nodes fits no other index. The planner expects few
 * rows from an array of ids, and a tenth of the table from a limit that it does not know.
 */
#include "statements.h"

/* These are a job's columns, in the order in which pg_read_job() reads them. */
#define JOB								\
	"id, queue, due, attempts, size, "				\
	"case when buried then 1::bigint else 0 end, key, "		\
	"version, held_until, coalesce(node, 0)::bigint, "		\
	"(rule::int + 2 * (coalesce(lease, tries, backoff, uniq) is not null)::int +\n" \
	" 4 * (failed is not null)::int + 8 * (done is not null)::int +\n" \
	" 16 * (uniq is not null)::int)::bigint"

/*
 * Looks at the oldest done jobs of the queue $1, and removes those jobs that ended before
 * @before.
 */
#define END_OLDEST(count, before)					\
	"delete from timewheel.done where queue = $1::bigint and n = any(array(\n" \
	" select n from timewheel.done where queue = $1::bigint and ended < " before " and\n" \
	"  n = any(array(select n from timewheel.done where queue = $1::bigint\n" \
	"   order by n limit " count ")) for update skip locked))"

const char * const statement_texts[STATEMENTS] = {
	[BEGIN] = "begin",
	[COMMIT] = "commit",
	[ROLL_BACK] = "rollback",
	[BEGIN_TURN] =
		"select timewheel.begin_turn($1::bigint::int, $2::bigint,\n"
		" $3::bigint::int)",
	[HAS_QUORUM] =
		"select case when timewheel.has_quorum($1::bigint::int)\n"
		" then 1::bigint else 0 end",
	[NOW] = "select timewheel.now(), timewheel.max_body()::bigint",
	[JOIN] =
		"select node::bigint, epoch\n"
		" from timewheel.join_node($1::text, $2::bigint, $3::bigint::int)",
	[BEGIN_SESSION] = "select timewheel.begin_session($1::bigint::int)",
	[RENEW] =
		"update timewheel.node_lease set until = timewheel.now() + $2::bigint\n"
		" where node = $1::bigint returning timewheel.now(),\n"
		" (select count(*) from timewheel.node_lease\n"
		"  where node <> $1::bigint and until < timewheel.now()),\n"
		" timewheel.max_body()::bigint",
	[LEAVE] =
		"update timewheel.node_lease set until = 0 where node = $1::bigint",
	/* A node that has ended its lease itself has 0 as the end of its lease. */
	[FENCE_NODE] =
		"select coalesce(dead, 0)::bigint, coalesce(locker, 0), holder\n"
		" from timewheel.fence_node($1::bigint::int,\n"
		" case when $2::bigint <> 0 then timewheel.now() else 1 end)",
	/*
	 * Nothing is moved if the node has begun again. The statement looks at jobs after the
	 * number $2, and moves jobs that are due soon. There is no index by due, because it would
	 * have to change with each put.
	 */
	[EMPTY_SOON] =
		"with slice as materialized (select id, due from timewheel.job\n"
		"  where (node, id) > ($1::bigint, $2::bigint) and node <= $1::bigint\n"
		"  order by node, id limit $3::bigint),\n"
		" moved as (update timewheel.job set node = null where id = any(array(\n"
		"  select id from timewheel.job where id = any(array(\n"
		"   select id from slice where due < timewheel.now() + $4::bigint))\n"
		"   order by id for update skip locked)) and\n"
		"  exists (select from timewheel.node_lease\n"
		"   where node = $1::bigint and until < timewheel.now())\n"
		"  returning id)\n"
		"select coalesce(max(id), 0), (select count(*) from moved), count(*),\n"
		" (select until from timewheel.node_lease where node = $1::bigint) from slice",
	[EMPTY_NODE] =
		"update timewheel.job set node = null where id = any(array(\n"
		" select id from timewheel.job where node between $1::bigint and $1::bigint\n"
		"  order by node, id limit $2::bigint for update skip locked)) and\n"
		" exists (select from timewheel.node_lease\n"
		"  where node = $1::bigint and until < timewheel.now())\n"
		" returning (select until from timewheel.node_lease\n"
		"  where node = $1::bigint)",
	[SET_LIST] =
		"update timewheel.node_turn set list = $2::bytea\n"
		" where node = $1::bigint",
	[GET_LIST] =
		"select list from timewheel.node_turn where node = $1::bigint",
	[QUEUES] =
		"select q.id, q.name, q.lease, q.tries, q.max_jobs, q.max_bytes,\n"
		" coalesce(max(n.epoch) filter (where n.node = $1::bigint), 0),\n"
		" greatest(coalesce(sum(n.jobs), 0), 0)::bigint,\n"
		" greatest(coalesce(sum(n.bytes), 0), 0)::bigint,\n"
		" greatest(coalesce(sum(n.buried), 0), 0)::bigint,\n"
		" case when q.paused then 1::bigint else 0 end,\n"
		" case when q.draining then 1::bigint else 0 end,\n"
		" case when q.dropped then 1::bigint else 0 end,\n"
		" q.backoff, q.backoff_most, q.keep_buried,\n"
		" greatest(coalesce(sum(n.done), 0), 0)::bigint, q.keep_done,\n"
		" coalesce(max(n.wanted) filter (where n.node <> $1::bigint), 0)\n"
		" from timewheel.queue q left join timewheel.node_queue n\n"
		" on n.queue = q.id group by q.id order by q.id",
	[ADD_QUEUE] =
		"insert into timewheel.queue (name, lease, tries, max_jobs, max_bytes,\n"
		" paused, draining, dropped, backoff, backoff_most, keep_buried,\n"
		" keep_done) values ($1::text, $2::bigint,\n"
		" $3::bigint, $4::bigint, $5::bigint, $6::bigint <> 0,\n"
		" $7::bigint <> 0, $8::bigint <> 0, $9::bigint, $10::bigint,\n"
		" $11::bigint, $12::bigint)\n"
		" on conflict do nothing returning id",
	[SAVE_QUEUE] =
		"update timewheel.queue set name = $1::text, lease = $2::bigint,\n"
		" tries = $3::bigint, max_jobs = $4::bigint, max_bytes = $5::bigint,\n"
		" paused = $6::bigint <> 0, draining = $7::bigint <> 0,\n"
		" dropped = $8::bigint <> 0, backoff = $9::bigint,\n"
		" backoff_most = $10::bigint, keep_buried = $11::bigint,\n"
		" keep_done = $12::bigint where id = $13::bigint",
	[COUNT_QUEUE] =
		"insert into timewheel.node_queue as n\n"
		" (node, queue, epoch, jobs, bytes, buried, done) values ($1::bigint,\n"
		" $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint)\n"
		" on conflict (node, queue) do update set epoch = excluded.epoch,\n"
		" jobs = n.jobs + excluded.jobs, bytes = n.bytes + excluded.bytes,\n"
		" buried = n.buried + excluded.buried, done = n.done + excluded.done",
	[DROP_QUEUE] = "update timewheel.queue set dropped = true where id = $1::bigint",
	[REMOVE_QUEUES] =
		"with gone as (delete from timewheel.queue where id = any(array(\n"
		" select q.id from timewheel.queue q where q.dropped and\n"
		"  not exists (select from timewheel.node_queue n\n"
		"   where n.queue = q.id having sum(n.jobs) > 0) and\n"
		"  not exists (select from timewheel.done d where d.queue = q.id)\n"
		"  order by q.id for update skip locked)) returning id)\n"
		"delete from timewheel.node_queue where queue in (select id from gone)",
	[WANT_QUEUES] =
		"insert into timewheel.node_queue as n (node, queue, wanted)\n"
		" select $1::bigint, queue, timewheel.now() + $3::bigint\n"
		" from unnest($2::bigint[]) as wanted (queue)\n"
		" on conflict (node, queue) do update set wanted = excluded.wanted",
	[FOLD] =
		"with d as (delete from timewheel.delta where ctid in\n"
		" (select ctid from timewheel.delta limit 10000\n"
		"  for update skip locked) returning queue, jobs, bytes, buried, done)\n"
		"insert into timewheel.node_queue as n (node, queue, jobs, bytes, buried, done)\n"
		" select $1::bigint, queue, sum(jobs), sum(bytes), sum(buried), sum(done)\n"
		"  from d group by queue on conflict (node, queue) do update set\n"
		" jobs = n.jobs + excluded.jobs, bytes = n.bytes + excluded.bytes,\n"
		" buried = n.buried + excluded.buried, done = n.done + excluded.done",
	[NEXT_IDS] = "select nextval('timewheel.job_id')",
	[ADD] =
		"insert into timewheel.job (id, queue, node, due, size, key, body,\n"
		" attempts, buried, rule) values ($1::bigint, $2::bigint, $3::bigint,\n"
		" $4::bigint, $5::bigint, $6::bytea, $7::bytea, $8::bigint,\n"
		" $9::bigint <> 0, $10::bigint <> 0)",
	[ADD_WITH_KEY] =
		"select timewheel.add_with_key($1::bigint, $2::bigint, $3::bigint::int,\n"
		" $4::bigint, $5::bigint, $6::bytea, $7::bytea, $8::bigint,\n"
		" $9::bigint <> 0, $10::bigint <> 0)",
	[CHANGE] =
		"update timewheel.job set node = $2::bigint, due = $3::bigint,\n"
		" attempts = $4::bigint, size = $5::bigint,\n"
		" buried = $6::bigint <> 0, held_until = 0 where id = $1::bigint",
	[CHANGE_BODY] =
		"update timewheel.job set node = $2::bigint, due = $3::bigint,\n"
		" attempts = $4::bigint, size = $5::bigint, buried = $6::bigint <> 0,\n"
		" done = nullif($6::bigint = 2, false), held_until = 0, body = $7::bytea\n"
		" where id = $1::bigint",
	[EXTEND] =
		"update timewheel.job set held_until = greatest(held_until, timewheel.now() + $2::bigint)\n"
		" where id = $1::bigint",
	[RELEASE] =
		"update timewheel.job set held_until = 0, node = $3::bigint,\n"
		" attempts = attempts - $4::bigint\n"
		" where id = (select id from timewheel.job where id = $1::bigint and\n"
		"  version = $2::bigint and held_until > 0 for update skip locked)",
	[REMOVE] = "delete from timewheel.job where id = $1::bigint",
	[SAVE_RULE] =
		"insert into timewheel.rule as r (job, rule, zone, start, missed, overlap,\n"
		" local, utc, again, number) values ($1::bigint, $2::bytea, $3::bytea,\n"
		" $4::bigint, $5::bigint, $6::bigint <> 0, $7::bigint, $8::bigint,\n"
		" $9::bigint <> 0, $10::bigint)\n"
		" on conflict (job) do update set rule = excluded.rule,\n"
		" zone = excluded.zone, start = excluded.start, missed = excluded.missed,\n"
		" overlap = excluded.overlap, local = excluded.local,\n"
		" utc = excluded.utc, again = excluded.again, number = excluded.number",
	[RULES] =
		"select job, rule, zone, start, missed::bigint,\n"
		" case when overlap then 1::bigint else 0 end, local, utc,\n"
		" case when again then 1::bigint else 0 end, number\n"
		" from timewheel.rule where job = any($1::bigint[])",
	[SAVE_OPTIONS] =
		"update timewheel.job set lease = nullif($2::bigint, 0),\n"
		" tries = nullif($3::bigint, -1), backoff = nullif($4::bigint, 0),\n"
		" backoff_most = nullif($5::bigint, 0), uniq = nullif($6::bigint, 0)\n"
		" where id = $1::bigint",
	[GET_OPTIONS] =
		"select coalesce(lease, 0), coalesce(tries, -1), coalesce(backoff, 0),\n"
		" coalesce(backoff_most, 0), coalesce(uniq, 0) from timewheel.job\n"
		" where id = $1::bigint and coalesce(lease, tries, backoff, uniq) is not null",
	[SAVE_FAILURE] =
		"update timewheel.job set failed = $2::bigint, reason = $3::bytea\n"
		" where id = $1::bigint",
	[GET_FAILURE] =
		"select failed, reason from timewheel.job\n"
		" where id = $1::bigint and failed is not null",
	[ADD_DONE] =
		"with gone as (" END_OLDEST("2", "$7::bigint") ")\n"
		"insert into timewheel.done (queue, id, due, ended, attempts, key)\n"
		" values ($1::bigint, $2::bigint, $3::bigint, $4::bigint, $5::bigint, $6::bytea)",
	[END_DONE] = END_OLDEST("$3::bigint", "$2::bigint") " returning n",
	[NEXT_DONE] =
		"select id, queue, due, attempts, 0::bigint, 0::bigint, key, 0::bigint,\n"
		" 0::bigint, 0::bigint, 0::bigint, n, ended from timewheel.done\n"
		" where queue = $1::bigint and n < $2::bigint order by n desc limit $3::bigint",
	/* If there are many rules, the number is autovacuum's last count. */
	[COUNT_RULES] =
		"select case when n < 10000 then n else greatest(n,\n"
		" (select reltuples::bigint from pg_class\n"
		"  where oid = 'timewheel.rule'::regclass)) end\n"
		" from (select count(*) as n from\n"
		"  (select from timewheel.rule limit 10000) r) c",
	[GET] =
		"select " JOB ", 0::bigint from timewheel.job\n"
		" where id = any($1::bigint[])",
	/*
	 * The last column is not null for rows that are now locked. Their columns are those of
	 * the locked row, which may be newer than the row that the statement sees otherwise.
	 */
	[LOCK] =
		"with l as materialized (select * from timewheel.job\n"
		" where id = any($1::bigint[]) order by id for update skip locked)\n"
		"select " JOB ", 0::bigint from l union all\n"
		" select " JOB ", null from timewheel.job\n"
		" where id = any($1::bigint[]) and id not in (select id from l)",
	[LOCK_KEY] =
		"with l as materialized (select * from timewheel.job\n"
		" where queue = $1::bigint and key = $2::bytea for update skip locked)\n"
		"select " JOB ", 0::bigint from l union all\n"
		" select " JOB ", null from timewheel.job where queue = $1::bigint and\n"
		" key = $2::bytea and id not in (select id from l)",
	[GET_BODY] = "select body from timewheel.job where id = $1::bigint",
	[NEXT] =
		"select " JOB ", 0::bigint from timewheel.job\n"
		" where id > $1::bigint order by id limit $2::bigint",
	[NEXT_BURIED] =
		"select " JOB ", 0::bigint from timewheel.job where buried and\n"
		" queue = $3::bigint and id > $1::bigint order by id limit $2::bigint",
	[NEXT_RULES] =
		"select " JOB ", 0::bigint from timewheel.job where id = any(array(\n"
		" select job from timewheel.rule where job > $1::bigint order by job\n"
		" limit $2::bigint)) order by id",
	[OWN] =
		"select " JOB ", 0::bigint from timewheel.job\n"
		" where (node, id) > ($3::bigint, $1::bigint) and node <= $3::bigint\n"
		" order by node, id limit $2::bigint",
	[FIND_OWN] =
		"select case when exists (select from timewheel.job j where j.id = u.id and\n"
		"  coalesce(j.node, 0) = $2::bigint) then 1::bigint else 0 end\n"
		" from unnest($1::bigint[]) with ordinality u (id, nth) order by nth",
	/* A long inbox is counted only up to a limit. */
	[FIGURES] =
		"select (select count(*) from\n"
		" (select from timewheel.job where node is null limit 10000) i),\n"
		" greatest((select max(age(backend_xmin)) from pg_stat_activity),\n"
		"  (select max(age(xmin)) from pg_replication_slots),\n"
		"  (select max(age(transaction)) from pg_prepared_xacts), 0)::bigint",
	/*
	 * The last column is not null for jobs that are claimed. The claim takes jobs until they
	 * have $5 bytes, and one more job. The bodies of the jobs $6 are not read.
	 */
	[CLAIM] =
		"with t as materialized (select timewheel.now() as now),\n"
		" r as materialized (select id, octet_length(body)::bigint as size\n"
		"  from timewheel.job\n"
		"  where id = any($1::bigint[]) order by id for update skip locked),\n"
		" l as materialized (select id from (select id,\n"
		"  sum(size) over (order by id) - size as before from r) b\n"
		"  where before < $5::bigint),\n"
		" c as (update timewheel.job j set version = version + 1,\n"
		"  attempts = attempts + 1,\n"
		"  held_until = t.now + coalesce(j.lease, $4::bigint)\n"
		"  from t, l where j.id = l.id and coalesce(j.node, 0) = $2::bigint and\n"
		"  j.queue = $3::bigint and not j.buried and j.due <= t.now and\n"
		"  j.held_until <= t.now returning j.*)\n"
		"select " JOB ", case when id <> all($6::bigint[]) then body end, 0::bigint\n"
		" from c union all select " JOB ", null, null from timewheel.job\n"
		" where id = any($1::bigint[]) and id not in (select id from c)",
	/* The statement takes all jobs but due jobs of queues that only other nodes want. */
	[TAKE_IN] =
		"update timewheel.job set node = $1::bigint where id = any(array(\n"
		" select id from timewheel.job where node is null and\n"
		"  queue = any($2::bigint[]) and\n"
		"  not (due <= timewheel.now() and queue = any($3::bigint[]))\n"
		"  order by id limit $4::bigint for update skip locked))\n"
		" returning " JOB ", 0::bigint",
	[GIVE_OUT] =
		"update timewheel.job set node = null where id in\n"
		" (select id from timewheel.job where id = any($1::bigint[]) and\n"
		"  coalesce(node, 0) = $2::bigint and held_until <= timewheel.now() and not buried\n"
		"  for update skip locked) returning id",
	/* Jobs in the inbox end if their queues have been dropped. */
	[CLEAR_INBOX] =
		"with gone as (delete from timewheel.job where id in\n"
		" (select j.id from timewheel.job j join timewheel.queue q\n"
		"  on q.id = j.queue where j.node is null and q.dropped and\n"
		"  exists (select from timewheel.queue where dropped)\n"
		"  limit 1000 for update of j skip locked) returning queue, size)\n"
		"insert into timewheel.delta\n"
		" select queue, -count(*), -sum(size) from gone group by queue",
};
