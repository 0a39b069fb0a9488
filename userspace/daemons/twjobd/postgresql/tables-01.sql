-- SPDX-License-Identifier: GPL-2.0-only
--
-- The store on PostgreSQL: its tables, version 1. Each later version is a step from the one
-- before it, in a file of its own, which is never changed again once it is in use.
-- "twjobd-postgresql --init-database" carries out the steps that the database does not have
-- yet, and then functions.sql, in one transaction.
--
-- A job is one row. Times are ms since 1970 by the database's clock.
--
-- Locks are taken in this order, so that no transactions wait in a circle:
--	node		a node's turn locks its own row, and a dead node's row by skip locked
--	queue		the row of a queue that is changed; rows of dropped queues by skip locked
--	key_lock	programs lock it; nodes only look whether it is locked
--	job		nodes lock jobs by skip locked, and wait for no program. A node waits 10 ms
--			for a key that another transaction is adding
--	rule, done	by the transaction that has locked the job, or by skip locked
--	delta		by skip locked
--	node_queue, node_turn, node_lease	the node's own rows
-- A program locks jobs in the order in which it names them, and should name them in one order,
-- as with rows of its own.

create schema timewheel;

create table timewheel.schema (
	version		int primary key,
	since		timestamptz not null default now()
);
insert into timewheel.schema values (1);

-- A node is a daemon that uses the store. Each turn of a node locks the node's row for key share,
-- and compares the epoch. Another node that takes its jobs over locks the row for update. So it
-- waits for the turn that is under way, and then raises the epoch: no later turn is committed.
-- The process of the server that carries out the node's turns is session, and it started at
-- session_start. By these two another node ends the process. Null: the node has not told them.
create table timewheel.node (
	id		int generated always as identity primary key,
	name		text not null unique,
	epoch		bigint not null,
	session		int,
	session_start	timestamptz
);

-- A node renews its lease each second. The lease has a table of its own, so that a renewal never
-- waits for a turn.
create table timewheel.node_lease (
	node		int primary key,
	until		bigint not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_scale_factor = 0);

-- The list has the changes of a node's last turn. After a crash the node tells them to its wheels
-- again.
create table timewheel.node_turn (
	node		int primary key,
	list		bytea not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_scale_factor = 0);

create table timewheel.queue (
	id		bigint generated always as identity primary key,
	name		text not null,
	lease		bigint not null,
	tries		bigint not null,
	max_jobs	bigint not null,
	max_bytes	bigint not null,
	paused		boolean not null default false,
	draining	boolean not null default false,
	dropped		boolean not null default false,
	backoff		bigint not null default 0,
	backoff_most	bigint not null default 0,
	keep_buried	bigint not null default 0,
	keep_done	bigint not null default 0
);
create unique index queue_name on timewheel.queue (name) where not dropped;

-- This row is a node's part of a queue: the epoch of its wheel; the jobs and bytes that its turns
-- have added or taken; and the time until which a worker there wants jobs. The queue's sizes are
-- the sums over all nodes, and the part of one node can be below 0.
create table timewheel.node_queue (
	node		int not null,
	queue		bigint not null,
	epoch		bigint not null default 0,
	jobs		bigint not null default 0,
	bytes		bigint not null default 0,
	wanted		bigint not null default 0,
	buried		bigint not null default 0,
	done		bigint not null default 0,
	primary key (node, queue)
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_scale_factor = 0);

-- The functions in functions.sql note here what they have added or taken, until a node counts it
-- as its own. The rows of a transaction have the numbers 1, 2, 3 ... for each queue. Each row
-- tells the sizes of the queue as the transaction knows them: the sizes before its first row, and
-- its own changes.
create table timewheel.delta (
	queue		bigint not null,
	jobs		bigint not null,
	bytes		bigint not null,
	buried		bigint not null default 0,
	done		bigint not null default 0,
	txn		xid8 not null default pg_current_xact_id(),
	nth		bigint not null default 0,
	all_jobs	bigint not null default 0,
	all_bytes	bigint not null default 0
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
create index delta_queue on timewheel.delta (queue, txn, nth);

-- Programs that put jobs with keys lock this table until their transactions end.
create table timewheel.key_lock ();

-- A value of the sequence stands for the numbers of jobs up to the next value.
create sequence timewheel.job_id increment by 1000;

-- node: the owner, which has a token for the job. If node is null, the job is in the inbox, and
-- any node takes it. held_until: a worker has the job until then, with a receipt that tells the
-- version. size: the bytes of body, key and rule, and 64. rule: the job has a row in the table
-- rule. lease to backoff_most: null stands for the queue's setting. done: a worker has done the
-- job, which is buried until it is due, so that its key stays known. failed and reason: the time
-- of the job's last failure, and the reason that the worker gave.
create table timewheel.job (
	id		bigint primary key,
	queue		bigint not null,
	node		int,
	version		bigint not null default 0,
	due		bigint not null,
	held_until	bigint not null default 0,
	attempts	bigint not null default 0,
	size		bigint not null,
	buried		boolean not null default false,
	rule		boolean not null default false,
	key		bytea,
	body		bytea not null,
	lease		bigint,
	tries		bigint,
	backoff		bigint,
	backoff_most	bigint,
	uniq		bigint,
	done		boolean,
	failed		bigint,
	reason		bytea
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
alter table timewheel.job alter column body set storage external;
create unique index job_key on timewheel.job (queue, key) where key is not null;
create index job_inbox on timewheel.job (id) where node is null;
create index job_node on timewheel.job (node, id) where node is not null;
create index job_buried on timewheel.job (queue, id) where buried;

-- The rule by which a job comes again. The rule began at start, in s. The job is the occurrence
-- at the local time local, which is utc by the file of the time zone that the job's node had.
-- Only the transaction that has locked the job changes the rule.
create table timewheel.rule (
	job		bigint primary key,
	rule		bytea not null,
	zone		bytea not null,
	start		bigint not null,
	missed		int not null,
	overlap		boolean not null,
	local		bigint not null,
	utc		bigint not null,
	again		boolean not null,
	number		bigint not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_cost_delay = 0);

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

-- A row tells that a role may use a queue, which need not exist.
create table timewheel.allowed (
	queue		text,
	role		regrole,
	primary key (queue, role)
);
