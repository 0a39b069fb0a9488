-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 4 of the tables, which tells which queues a role may use.

-- This lock comes first, because each turn of a node first locks a row of this table.
lock table timewheel.node in access exclusive mode;

insert into timewheel.schema values (4);

-- A row names a queue, which need not exist.
create table timewheel.allowed (
	queue		text,
	role		regrole,
	primary key (queue, role)
);
