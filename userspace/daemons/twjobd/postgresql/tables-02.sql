-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 2 of the tables.

-- This lock comes first, because each turn of a node first locks a row of this table.
lock table timewheel.node in access exclusive mode;

alter table timewheel.schema add primary key (version),
	add since timestamptz not null default now();
insert into timewheel.schema values (2);

-- The process of the server that carries out the node's turns, and the time when the process
-- started. By these two another node ends the process. Null: the node has not told them.
alter table timewheel.node add session int, add session_start timestamptz;

drop function if exists timewheel.join_node(text, bigint);
