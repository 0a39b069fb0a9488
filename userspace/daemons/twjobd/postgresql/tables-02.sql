-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 2 of the tables.

-- First, as each turn of a node locks a row there before anything else.
lock table timewheel.node in access exclusive mode;

alter table timewheel.schema add primary key (version),
	add since timestamptz not null default now();
insert into timewheel.schema values (2);

-- The process of the server that carries the node's turns out, and when it was started: by
-- these another node ends it. Null: the node has not told.
alter table timewheel.node add session int, add session_start timestamptz;

drop function if exists timewheel.join_node(text, bigint);
