-- SPDX-License-Identifier: GPL-2.0-only
--
-- The store on PostgreSQL: its tables, version 1. Each later version is a step from the one
-- before it, in a file of its own, which is never changed again once it is in use.
-- "twjobd-postgresql --init-database" carries out the steps that the database does not have
-- yet, and then functions.sql, in one transaction.
--
-- A job is one row. Times are ms since 1970 by the database's clock.
--
-- Locks are taken in this order, so that nobody waits in a circle:
--	node		a node's turn has its own row; that of a dead node by skip locked
--	queue		the row of a queue that is changed; those that are gone by skip locked
--	key_lock	by programs; nodes only look
--	job		by nodes with skip locked: they wait for no program. A node waits 10 ms
--			for a key that somebody is adding
--	rule, done	by the transaction that has locked the job, or with skip locked
--	delta		with skip locked
--	node_queue, node_turn, node_lease	the node's own rows
-- A program locks jobs in the order in which it names them, and should name them in one order,
-- as with rows of its own.

create schema timewheel;

create table timewheel.schema (version int not null);
insert into timewheel.schema values (1);

-- A daemon that uses the store. Each turn of it locks its row for key share and compares
-- the epoch. Another node that takes its jobs over locks the row for update, and so waits
-- for the turn that is under way, and raises the epoch: no later turn is committed.
create table timewheel.node (
	id		int generated always as identity primary key,
	name		text not null unique,
	epoch		bigint not null
);

-- Renewed each second: in a table of its own, so that this never waits for a turn.
create table timewheel.node_lease (
	node		int primary key,
	until		bigint not null
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_scale_factor = 0);

-- What the last turn of a node has changed, to be told to its wheels again after a crash.
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
	dropped		boolean not null default false
);
create unique index queue_name on timewheel.queue (name) where not dropped;

-- What a node has of a queue: the epoch of its wheel; what its turns have added to the
-- queue and taken from it, so that the queue's sizes are the sums over all nodes, while
-- one of them can be below 0; and until when a worker there wants jobs.
create table timewheel.node_queue (
	node		int not null,
	queue		bigint not null,
	epoch		bigint not null default 0,
	jobs		bigint not null default 0,
	bytes		bigint not null default 0,
	wanted		bigint not null default 0,
	primary key (node, queue)
) with (fillfactor = 10, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_scale_factor = 0);

-- What the functions below have added and taken, until a node counts it as its own.
create table timewheel.delta (
	queue		bigint not null,
	jobs		bigint not null,
	bytes		bigint not null
) with (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Numbers of jobs. A node uses those from one value to the next one.
create sequence timewheel.job_id increment by 1000;

-- node: the owner, which has a token for the job; null: the job is in the inbox, and any
-- node takes it. held_until: a worker has the job until then, with a receipt that tells
-- the version. size: bytes of body, key and rule, and 64. rule: there is a row of it.
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
	body		bytea not null
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
alter table timewheel.job alter column body set storage external;
create unique index job_key on timewheel.job (queue, key) where key is not null;
create index job_inbox on timewheel.job (id) where node is null;
create index job_node on timewheel.job (node, id) where node is not null;
create index job_buried on timewheel.job (queue, id) where buried;

-- The rule by which a job comes again. It began at start, in s; the job is the occurrence
-- at local, which is utc by the file of the zone that its node had. It is changed only by
-- the transaction that has locked the job.
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
