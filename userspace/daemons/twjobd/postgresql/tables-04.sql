-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 4 of the tables, which has what queues single roles may use.

-- First, as each turn of a node locks a row there before anything else.
lock table timewheel.node in access exclusive mode;

insert into timewheel.schema values (4);

-- By the queue's name, whether there is one or not.
create table timewheel.allowed (
	queue		text,
	role		regrole,
	primary key (queue, role)
);
