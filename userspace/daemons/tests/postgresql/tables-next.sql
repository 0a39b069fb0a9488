-- SPDX-License-Identifier: GPL-2.0-only
--
-- The step to a version of the tables that only the tests know.

-- This lock comes first, because each turn of a node first locks a row of this table.
lock table timewheel.node in access exclusive mode;

insert into timewheel.schema values (2);

alter table timewheel.job add later int not null default 0;
