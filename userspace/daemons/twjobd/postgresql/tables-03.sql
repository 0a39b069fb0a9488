-- SPDX-License-Identifier: GPL-2.0-only
--
-- Version 3 of the tables, which counts buried jobs.

-- First, as each turn of a node locks a row there before anything else.
lock table timewheel.node in access exclusive mode;

insert into timewheel.schema values (3);

alter table timewheel.node_queue add buried bigint not null default 0;

-- This waits for programs whose changes would be missed by the count.
alter table timewheel.delta add buried bigint not null default 0;
insert into timewheel.delta
	select queue, 0, 0, count(*) from timewheel.job where buried group by queue;
