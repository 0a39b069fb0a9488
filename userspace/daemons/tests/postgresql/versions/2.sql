-- SPDX-License-Identifier: GPL-2.0-only
--
-- The functions of version 2, as they were.

-- This change fences nodes of another version. They are refused when they join again.
update timewheel.node set epoch = epoch + 1;

-- The clock tells a ms only when it has begun, so that nothing is early by a part of a ms.
create or replace function timewheel.now() returns bigint language sql volatile as $$
	select floor(extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- A rule ends with its job, whichever statement deletes the job.
create or replace function timewheel.end_rule() returns trigger language plpgsql as $$
begin
	delete from timewheel.rule r where r.job = old.id;
	return null;
end
$$;
create or replace trigger end_rule after delete on timewheel.job for each row when (old.rule)
	execute function timewheel.end_rule();

-- Begins a turn, and returns the clock. A turn is refused unless the node has its epoch, and
-- unless commits wait for as many machines as they have to.
create or replace function timewheel.begin_turn(node int, epoch bigint, machines int)
	returns bigint language plpgsql as $$
begin
	perform from timewheel.node n
		where n.id = begin_turn.node and n.epoch = begin_turn.epoch
		for key share;
	if not found then
		raise exception 'another node has taken the jobs over'
			using errcode = 'TWF01';
	end if;
	if not timewheel.has_quorum(machines) then
		raise exception 'commits do not wait for the disks of % machines: see synchronous_standby_names and synchronous_commit', machines
			using errcode = 'TWQ01';
	end if;
	return timewheel.now();
end
$$;

-- Returns for how many standbys a commit waits by this value of synchronous_standby_names: "FIRST
-- number (names)", "ANY number (names)", "number (names)", or only names, which means 1. "*"
-- gives 0, because any program that reads the log then counts, also a subscriber or a backup.
create or replace function timewheel.standbys(list text) returns int immutable language sql as $$
	select case when list = '' or strpos(list, '*') > 0 then 0
		else coalesce(substring(list from
			'(?i)^\s*(?:(?:first|any)\s+)?(\d+)\s*\(')::int, 1) end
$$;

-- Tells whether a commit waits for the disks of this many machines, this machine included. A
-- commit does not wait with "local" or "off". With "remote_write" the data could be only in the
-- memory of the other machines.
create or replace function timewheel.has_quorum(machines int) returns boolean
	language sql volatile as $$
	select not pg_is_in_recovery() and (machines = 1 or
		timewheel.standbys(current_setting('synchronous_standby_names'))
			>= machines - 1 and
		current_setting('synchronous_commit') in ('on', 'remote_apply')) and
		current_setting('fsync') = 'on'
$$;

-- Ends the session of a node while the server waits for the node, which is dead, frozen or cut
-- off. A session that waits for standbys is left alone, because its commit would be seen before
-- other machines have it. Returns whether the session has ended. All nodes have to use one role
-- for this.
create or replace function timewheel.end_session(node int) returns boolean
	language sql volatile as $$
	select coalesce(bool_or(pg_terminate_backend(a.pid, 1000)), false)
		from timewheel.node n join pg_stat_activity a
		on a.pid = n.session and a.backend_start = n.session_start
		where n.id = node and a.pid <> pg_backend_pid() and
		a.wait_event_type = 'Client' and
		a.wait_event in ('ClientRead', 'ClientWrite')
$$;

-- Makes this session the session of the node.
create or replace function timewheel.begin_session(node int) returns void
	language plpgsql as $$
begin
	perform timewheel.end_session(node);
	update timewheel.node n set session = pg_backend_pid(), session_start =
		(select backend_start from pg_stat_get_activity(pg_backend_pid()))
		where n.id = node;
end
$$;

-- A node begins, or begins again: it gets the next epoch, which ends all its earlier work.
create or replace function timewheel.join_node(name text, lease bigint, version int,
	out node int, out epoch bigint) language plpgsql as $$
declare
	newest int := (select max(s.version) from timewheel.schema s);
begin
	if newest <> version then
		raise exception 'its tables have version %, this program %', newest, version
			using errcode = 'TWV01';
	end if;
	insert into timewheel.node as n (name, epoch) values (join_node.name, 1)
		on conflict on constraint node_name_key do nothing;
	select n.id into join_node.node from timewheel.node n
		where n.name = join_node.name;
	perform timewheel.begin_session(join_node.node);
	-- This statement waits for a turn that is under way.
	perform from timewheel.node n where n.id = join_node.node for update;
	update timewheel.node n set epoch = n.epoch + 1
		where n.id = join_node.node returning n.epoch into join_node.epoch;
	insert into timewheel.node_lease as l values
		(join_node.node, timewheel.now() + lease)
		on conflict on constraint node_lease_pkey
		do update set until = excluded.until;
	insert into timewheel.node_turn values (join_node.node, '')
		on conflict do nothing;
end
$$;

-- Fences another node that has jobs and whose lease ended before the given moment, if there is
-- such a node, and returns the node. The first row by the index is enough to see that the node
-- has jobs. If the server waits for the dead node, its session is ended. A node is passed over
-- while a transaction has locked its row, which may last for hours. Then the function returns the
-- number of this transaction, and tells which process has it.
create or replace function timewheel.fence_node(taker int, moment bigint, out dead int,
	out locker bigint, out holder text) language plpgsql as $$
begin
	for dead in select l.node from timewheel.node_lease l
		where l.node <> taker and l.until < moment and
		(select j.id from timewheel.job j where j.node between l.node and l.node
			order by j.node, j.id limit 1) is not null
		order by l.until
	loop
		perform from timewheel.node n where n.id = dead for update skip locked;
		if not found and timewheel.end_session(dead) then
			perform from timewheel.node n
				where n.id = dead for update skip locked;
		end if;
		if not found then
			select n.xmax::text::bigint, coalesce(
				(select format('process %s, "%s",', pid, a.application_name)
				from pg_locks l join pg_stat_activity a using (pid)
				where l.locktype = 'transactionid' and l.granted and
				l.transactionid = n.xmax limit 1),
				'a transaction, see pg_locks,')
				into locker, holder
				from timewheel.node n where n.id = dead;
			continue;
		end if;
		-- The node may have begun again meanwhile.
		perform from timewheel.node_lease l
			where l.node = dead and l.until < moment;
		if found then
			update timewheel.node n set epoch = n.epoch + 1 where n.id = dead;
			return;
		end if;
	end loop;
	dead := null;
end
$$;

-- Programs that put jobs with keys hold this lock until their transactions end.
create or replace function timewheel.key_lock() returns int stable language sql as $$
	select 'timewheel'::regnamespace::oid::int
$$;

-- Adds a node's new job with a key, and returns 1. It returns 0 if another job has the key, and
-- -1 if another transaction is adding such a job. The unique index makes an insert wait for the
-- end of that transaction. The turn of a node ends soon, but a program's transaction may last for
-- hours. So the wait is short while a program has key_lock(). A short wait needs a savepoint,
-- which costs the number of a transaction. So at other times there is no savepoint.
create or replace function timewheel.add_with_key(id bigint, queue bigint, node int, due bigint,
	size bigint, key bytea, body bytea, attempts bigint, buried boolean, rule boolean)
	returns bigint language plpgsql as $$
declare
	new timewheel.job := row(id, queue, node, 0, due, 0, attempts, size, buried, rule, key,
		body);
	patience text := current_setting('lock_timeout');
	added bigint;
begin
	if (case when pg_try_advisory_lock(timewheel.key_lock(), 0)
		then pg_advisory_unlock(timewheel.key_lock(), 0) end)
	then
		insert into timewheel.job values (new.*) on conflict do nothing;
		return found::int;
	end if;
	perform set_config('lock_timeout', '10ms', true);
	begin
		insert into timewheel.job values (new.*) on conflict do nothing;
		added := found::int;
	exception when lock_not_available then
		added := -1;
	end;
	perform set_config('lock_timeout', patience, true);
	return added;
end
$$;

-- These functions are for programs, which put, cancel and move jobs in transactions of their own.
-- The nodes hear of the jobs within a second of the commit.

create or replace function timewheel.queue_of(queue text, out id bigint, out draining boolean,
	out max_jobs bigint, out max_bytes bigint) stable language plpgsql as $$
begin
	select q.id, q.draining, q.max_jobs, q.max_bytes
		into queue_of.id, queue_of.draining, queue_of.max_jobs,
			queue_of.max_bytes
		from timewheel.queue q where q.name = queue and not q.dropped;
	if not found then
		raise exception 'NOQUEUE there is no such queue: %', queue
			using errcode = 'TWN01';
	end if;
end
$$;

-- Refuses a time that a wheel cannot have, and a body that no node hands out.
create or replace function timewheel.check_due(due bigint) returns bigint language plpgsql as $$
begin
	if due > 9000000000000 then
		raise exception 'ERR a job is due before the year 2255';
	end if;
	return due;
end
$$;

create or replace function timewheel.check_room(queue text, size bigint) returns bigint
	stable language plpgsql as $$
declare
	q record;
	has record;
begin
	q := timewheel.queue_of(queue);
	if size > 64 * 1024 * 1024 then
		raise exception 'TOOBIG a job has at most 64 MB' using errcode = 'TWT01';
	end if;
	if q.draining then
		raise exception 'DRAINING the queue takes no new jobs'
			using errcode = 'TWD01';
	end if;
	select coalesce(sum(n.jobs), 0) as jobs, coalesce(sum(n.bytes), 0) as bytes
		into has from timewheel.node_queue n where n.queue = q.id;
	if has.jobs >= q.max_jobs or has.bytes + size > q.max_bytes then
		raise exception 'FULL the queue has its jobs or bytes'
			using errcode = 'TWL01';
	end if;
	return q.id;
end
$$;

create or replace function timewheel.ms(due timestamptz) returns bigint language sql as $$
	select coalesce(ceil(greatest(extract(epoch from due), 0) * 1000)::bigint,
		timewheel.now())
$$;

create or replace function timewheel.refuse_held(held_until bigint) returns void
	language plpgsql as $$
begin
	if held_until > timewheel.now() then
		raise exception 'HELD the job is being worked on' using errcode = 'TWH01';
	end if;
end
$$;

-- Returns the job that has this key, or null.
create or replace function timewheel.put_again(q bigint, k bytea, new_body bytea, new_due bigint,
	new_size bigint, replace boolean) returns bigint language plpgsql as $$
declare
	j timewheel.job;
begin
	select * into j from timewheel.job where queue = q and key = k for update;
	if found and replace then
		if j.rule then
			raise exception 'ERR the key is that of a rule, see TW.EVERY';
		end if;
		perform timewheel.refuse_held(j.held_until);
		update timewheel.job set body = new_body, due = new_due, size = new_size,
			attempts = 0, buried = false, held_until = 0, node = null
			where id = j.id;
		insert into timewheel.delta values (q, 0, new_size - j.size);
	end if;
	return j.id;
end
$$;

-- Puts a job, and returns its number. If a job already has the key, the function returns that
-- job's number.
create or replace function timewheel.put(queue text, body bytea,
	due timestamptz default null, key text default null,
	replace boolean default false) returns bigint
	security definer set search_path = pg_catalog, pg_temp language plpgsql as $$
declare
	k bytea := convert_to(key, 'UTF8');
	new_size bigint := length(body) + coalesce(length(k), 0) + 64;
	q bigint := timewheel.check_room(queue, new_size);
	new_due bigint := timewheel.check_due(timewheel.ms(due));
	found_id bigint;
begin
	if length(k) not between 1 and 255 then
		raise exception 'ERR a key has 1 to 255 bytes';
	end if;
	if k is not null then
		perform pg_advisory_xact_lock_shared(timewheel.key_lock(), 0);
	end if;
	loop
		if k is not null then
			found_id := timewheel.put_again(q, k, body, new_due, new_size,
				replace);
			if found_id is not null then
				return found_id;
			end if;
		end if;
		insert into timewheel.job (id, queue, due, size, key, body)
			values (nextval('timewheel.job_id'), q, new_due, new_size, k,
				put.body)
			on conflict do nothing returning id into found_id;
		if found_id is not null then
			insert into timewheel.delta values (q, 1, new_size);
			return found_id;
		end if;
	end loop;
end
$$;

-- Puts a job whose body is a text. Backslashes in the text stay as they are, but put() would read
-- a text as the input of a bytea.
create or replace function timewheel.put_text(queue text, body text,
	due timestamptz default null, key text default null,
	replace boolean default false) returns bigint
	security definer set search_path = pg_catalog, pg_temp language sql as $$
	select timewheel.put(queue, convert_to(body, 'UTF8'), due, key, replace)
$$;

-- Locks the row of a job that is to be changed, by its number or its key, and returns it.
create or replace function timewheel.locked(queue text, id bigint, key text)
	returns timewheel.job language plpgsql as $$
declare
	q bigint := (timewheel.queue_of(queue)).id;
	j timewheel.job;
begin
	if locked.id is null then
		select * into j from timewheel.job r where r.queue = q and
			r.key = convert_to(locked.key, 'UTF8') for update;
	else
		select * into j from timewheel.job r where r.queue = q and
			r.id = locked.id for update;
	end if;
	perform timewheel.refuse_held(j.held_until);
	return j;
end
$$;

create or replace function timewheel.remove(j timewheel.job) returns boolean language plpgsql as $$
begin
	delete from timewheel.job r where r.id = j.id;
	if not found then
		return false;
	end if;
	insert into timewheel.delta values (j.queue, -1, -j.size);
	return true;
end
$$;

create or replace function timewheel.set_due(j timewheel.job, new_due timestamptz) returns boolean
	language plpgsql as $$
begin
	if j.buried then
		raise exception 'BURIED the job is buried' using errcode = 'TWB01';
	end if;
	update timewheel.job r set due = timewheel.check_due(timewheel.ms(new_due)),
		held_until = 0, node = null where r.id = j.id;
	return found;
end
$$;

-- Cancels a job. Returns true if the job is cancelled, false if there is no such job.
create or replace function timewheel.cancel(queue text, id bigint) returns boolean
	security definer set search_path = pg_catalog, pg_temp language sql as $$
	select timewheel.remove(timewheel.locked(queue, id, null))
$$;
create or replace function timewheel.cancel(queue text, key text) returns boolean
	security definer set search_path = pg_catalog, pg_temp language sql as $$
	select timewheel.remove(timewheel.locked(queue, null, key))
$$;
create or replace function timewheel.move(queue text, id bigint, due timestamptz) returns boolean
	security definer set search_path = pg_catalog, pg_temp language sql as $$
	select timewheel.set_due(timewheel.locked(queue, id, null), due)
$$;
create or replace function timewheel.move(queue text, key text, due timestamptz) returns boolean
	security definer set search_path = pg_catalog, pg_temp language sql as $$
	select timewheel.set_due(timewheel.locked(queue, null, key), due)
$$;

-- The programs' role may call these functions, and no others.
do $$
begin
	if not exists (select from pg_roles where rolname = 'timewheel_producer') then
		create role timewheel_producer nologin;
	end if;
end
$$;
revoke all on all functions in schema timewheel from public;
grant usage on schema timewheel to timewheel_producer;
grant execute on function
	timewheel.put(text, bytea, timestamptz, text, boolean),
	timewheel.put_text(text, text, timestamptz, text, boolean),
	timewheel.cancel(text, bigint), timewheel.cancel(text, text),
	timewheel.move(text, bigint, timestamptz),
	timewheel.move(text, text, timestamptz)
	to timewheel_producer;
