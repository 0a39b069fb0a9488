-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 3 of the tables, which counts buried jobs, and has options of a job that replace its
-- queue's settings, the last failure of a job, and done jobs.

-- This lock comes first, because each turn of a node first locks a row of this table.
lock table timewheel.node in access exclusive mode;

insert into timewheel.schema values (3);

alter table timewheel.node_queue add buried bigint not null default 0,
	add done bigint not null default 0;

-- This statement waits for programs, because the count would miss their changes.
alter table timewheel.delta add buried bigint not null default 0,
	add done bigint not null default 0;
insert into timewheel.delta
	select queue, 0, 0, count(*) from timewheel.job where buried group by queue;

-- The rows of a transaction have the numbers 1, 2, 3 ... for each queue. Each row tells the sizes
-- of the queue as the transaction knows them: the sizes before its first row, and its own
-- changes.
alter table timewheel.delta add txn xid8 not null default pg_current_xact_id(),
	add nth bigint not null default 0,
	add all_jobs bigint not null default 0, add all_bytes bigint not null default 0;
create index delta_queue on timewheel.delta (queue, txn, nth);

-- Null: the queue's setting counts.
alter table timewheel.job add lease bigint, add tries bigint, add backoff bigint,
	add backoff_most bigint, add uniq bigint;
-- True: a worker has done the job, which is buried until it is due, so that its key stays known.
alter table timewheel.job add done boolean;
-- The time of the job's last failure, and the reason that the worker gave.
alter table timewheel.job add failed bigint, add reason bytea;

alter table timewheel.queue add backoff bigint not null default 0,
	add backoff_most bigint not null default 0, add keep_buried bigint not null default 0,
	add keep_done bigint not null default 0;

-- The table has jobs that workers have done, while their queue keeps them.
create table timewheel.done (
	queue		bigint not null,
	n		bigint generated always as identity,
	id		bigint not null,
	due		bigint not null,
	ended		bigint not null,
	attempts	bigint not null,
	key		bytea,
	primary key (queue, n)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1,
	autovacuum_vacuum_cost_delay = 0);

drop function if exists timewheel.check_room(text, bigint);
drop function if exists timewheel.put_again(bigint, bytea, bytea, bigint, bigint, boolean);
drop function if exists timewheel.key_lock();
-- Programs that put jobs with keys lock this table until their transactions end.
create table timewheel.key_lock ();
