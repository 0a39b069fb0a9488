#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Wheels that are declared, saved and restored, also across another load of the module,
# on a real device. Needs the module loaded, root, and beside itself: results.sh, twctl,
# skew.so, udevadm. Prints TAP. "make guest-tests" runs it in a guest.
set -u
# A command that hangs is ended by timeout, and has failed.
twctl="timeout 60 $PWD/twctl"
tool=$twctl
later=/tmp/json
tmp=/tmp/saved
etc=/etc/timewheel/wheels.d
saves=/var/lib/timewheel
mkdir -p $tmp $etc $saves
. ./results.sh

# tokens WHEEL: prints all that makes a token again, a line for each token
tokens()
{
	$twctl list "$1" -b --no-headings \
		-o id,cookie,deadline,timeout,period,base,state,attempts |
		sed 's/  */ /g; s/^ //' | sort
}

value() # WHEEL ID COLUMN: in plain numbers
{
	$twctl get "$1" "$2" -b -o "$3" --no-headings | xargs
}

wheel() # WHEEL COLUMNS
{
	$twctl -o name,"$2" -b --no-headings | awk -v wheel="$1" \
		'$1 == wheel { $1 = ""; print substr($0, 2) }'
}

# wrong PATTERN LINE...: a file with a name and these lines is refused for the last line
wrong()
{
	pattern=$1
	shift
	printf '%s\n' 'name = new' "$@" >$tmp/wrong.conf
	refuses 2 "wrong.conf:$(wc -l <$tmp/wrong.conf): $pattern" apply $tmp/wrong.conf
}

declared_wrongly()
{
	wrong "slots '0': not a number from 1 to 65536" 'slots = 0'
	wrong "tick 'soon': not a span such as" '# a comment' '' 'tick = soon'
	wrong "tick '1ns': not from" 'tick = 1ns'
	wrong "clock 'sun': not monotonic, boottime" 'clock=sun'
	wrong "lease '10ms': not as long as a tick" 'lease = 10ms'
	wrong "slack '1s': not with a manual clock" 'clock = manual' 'slack = 1s'
	wrong "start '5': only with a manual clock" 'start = 5'
	# With one error nothing is made.
	echo 'name = good' >$tmp/good.conf
	refuses 2 'start' apply $tmp/good.conf $tmp/wrong.conf
	is 'wheels after all that' "$($twctl -o name --no-headings | wc -l)" 0
}

declared()
{
	gives 0 apply
	cat >$etc/jobs.conf <<-END
		# the jobs
		name = jobs
		owner = nobody
		group = 200
		mode = 0640
		clock = realtime
		tick = 100ms
		slots = 60
		max-tokens = 1000
		lease = 10s
		slack = 20ms
		no-ids = no
		touch-words = yes
		periods = yes
		saved = yes
	END
	printf '%s\n' 'name = plain' >$etc/plain.conf
	gives 0 apply --dry-run
	prints "^wheel 'jobs' would be made$"
	is 'and nothing is' "$($twctl -o name --no-headings | wc -l)" 0
	gives 0 apply
	prints "^wheel 'jobs' has been made$"
	is 'its settings' "$(wheel jobs clock,tick,slots,max,lease,slack,ids,cookies,touch-words,periods)" \
		'realtime 100000000 60 1000 10000000000 20000000 yes yes yes yes'
	is 'its node' "$(stat -c '%U %g %a' /dev/timewheels/jobs)" 'nobody 200 640'
	is 'the other is as create makes it' "$(wheel plain owner,mode,clock,tick,slots,max)" \
		'root rw------- monotonic 1000000000 3600 10000'
	gives 0 create plain
	chmod 666 /dev/timewheels/jobs
	gives 0 apply --dry-run
	prints "^wheel 'jobs' is there$"
	gives 0 apply
	prints "^wheel 'plain' is there$"
	is 'its node is so again' "$(stat -c '%U %g %a' /dev/timewheels/jobs)" 'nobody 200 640'
	# A wheel with other settings is told and left alone, and the other wheels are made.
	sed -i 's/slots = 60/slots = 61/; s/0640/0600/' $etc/jobs.conf
	printf '%s\n' 'name = z' 'clock = manual' 'start = 7' >$etc/z.conf
	gives 5 apply --dry-run
	gives 5 apply
	is 'it says so' "$(grep -c "there is a wheel 'jobs', with other settings" $tmp/err)" 1
	is 'it is as it was' "$(wheel jobs slots,mode)" '60 rw-r-----'
	prints "^wheel 'z' has been made$"
	gives 0 destroy jobs plain z
	rm $etc/*
}

# One token of each kind is there, at 10 s of a clock that stands.
all_kinds()
{
	gives 0 create kinds --clock manual --start 10 --slots 60 --lease 10s --periods
	for token in '6 0' '1 5s -c 7' '2 clock 30000000000' '3 clock 40000000000 -t 20s' \
		'4 clock 12500000000 -e 7s' '7 20s -c 5' '8 clock 20500000000 -e 7s' \
		'9 clock 3000000000 --past -e 4s' '18446744073709551615 8s -c 0xffffffffffffffff'; do
		$twctl add kinds $token >/dev/null
	done
	: >$tmp/held
	rm -f $tmp/held
	$PWD/twctl watch kinds -f '{id} {missed}' >$tmp/held 2>/dev/null &
	holder=$!
	settle $tmp/held 2
	gives 0 pause kinds
	$twctl add kinds 5 0 >/dev/null
}

# lacks WHEEL PATTERN: nothing is restored, and one line says why
lacks()
{
	refuses "$1" "wheel '$2': $3: nothing has been restored; $4" restore "$2" $tmp/kinds
	is 'tokens' "$(wheel "$2" pending,held)" '0 0'
	is 'it runs' "$(wheel "$2" state)" running
	gives 0 destroy "$2"
}

# All tokens come or none: the wheel that exists was made without something that a token has.
none_at_all()
{
	remedy='declare the wheel with what the token needs'
	$twctl save kinds $tmp/kinds 2>/dev/null
	sed -i 's/"restored": *[0-9]*/"restored":           0/' $tmp/kinds
	gives 0 create bare --no-ids --clock manual
	lacks 1 bare 'id [0-9]* has an id, which the wheel was made without' "$remedy"
	gives 0 create plain --no-cookies --clock manual --lease 10s --periods
	lacks 1 plain 'id [17][0-9]* has a cookie, .* made without' "$remedy"
	gives 0 create still --clock manual --lease 10s
	lacks 1 still 'id [489] has a period, .* made without' "$remedy"
	gives 0 create long --clock manual --lease 10s --periods --tick 8s
	lacks 1 long "id [489] has a period shorter than the wheel's tick, .*" "$remedy"
	gives 0 create words --clock manual --lease 1h --touch-words --periods --tick 1ms
	sed 's/"left":30000000000,/"left":2000000000000000,/' $tmp/kinds >$tmp/far
	refuses 1 'id 3 is due later than the wheel can reach' restore words $tmp/far
	is 'tokens' "$(wheel words pending,held)" '0 0'
	gives 0 destroy words
	# Tokens that are on the wheel already count, too.
	gives 0 create small --clock manual --max-tokens 11 --lease 10s --periods
	$twctl touch small -r 5s 100 101 >/dev/null
	refuses 6 "'small' is full at its max-tokens, 11, before id [0-9]*: nothing.* max-tokens = 12 or more" \
		restore small $tmp/kinds
	is 'tokens' "$($twctl list small -o id --no-headings | sort | xargs)" '100 101'
	gives 0 drain small
	refuses 11 'draining.*: nothing has been restored; .*twctl drain --undo small' \
		restore small $tmp/kinds
	gives 0 destroy small
	# The check cannot foresee this error: the third registration on the wheel itself fails.
	gives 0 create race --clock manual --lease 10s --periods
	LD_PRELOAD=$PWD/skew.so TWCTL_SKEW=register TWCTL_SKEW_AT=13 \
		$twctl restore race $tmp/kinds >$tmp/out 2>$tmp/err
	is 'status' $? 1
	is 'it is told' "$(grep -c "nothing has been restored" $tmp/err)/$(wc -l <$tmp/err)" 1/1
	is 'tokens, and those that were there for a moment' \
		"$(wheel race pending,held,state)" '0 0 running'
	[ "$($twctl stats race -o registered --no-headings)" -ge 9 ]
	result $? 'there were some'
	gives 0 restore race $tmp/kinds
	gives 0 destroy race
	# A wheel that restore has made is removed again.
	sed 's/"tick":1000000000/"tick":8000000000/; s/"lease":[0-9]*/"lease":10000000000/' \
		$tmp/kinds >$tmp/odd
	sed -i 's/"restored": *[0-9]*/"restored":           0/' $tmp/odd
	refuses 1 'nothing has been restored' restore odd $tmp/odd
	refuses 3 "no wheel 'odd'" list odd
	# The tokens have no ids, and the wheel needs ids.
	gives 0 create bare --no-ids --no-cookies --clock manual
	$twctl add bare - 5s >/dev/null
	gives 0 save bare $tmp/bare
	gives 0 destroy bare
	gives 0 create bare --clock manual
	refuses 1 'made with ids, and the tokens of the save have none' restore bare $tmp/bare
	gives 0 destroy bare
}

saving()
{
	all_kinds
	is 'what is out' "$(sort $tmp/held | xargs)" '6 0 9 1'
	tokens kinds >$tmp/before
	gives 0 save kinds $tmp/kinds
	prints "^wheel 'kinds': 10 tokens saved to $tmp/kinds$"
	is 'only its owner may read it' "$(stat -c %a $tmp/kinds)" 600
	is 'nothing is beside it' "$(ls $tmp/kinds*)" $tmp/kinds
	tells 'its lines are JSON' '[., inputs] | map([."timewheel-save", .end]) | unique' \
		'[[null,null],[null,true],[1,null]]' <$tmp/kinds
	head -n 1 $tmp/kinds | tells 'the head' \
		'[.wheel, .clock, .now, .tick, .slots, .lease, .periods, .paused]' \
		'["kinds","manual",10000000000,1000000000,60,10000000000,true,true]'
	is 'a token' "$(grep '"id":3,' $tmp/kinds)" \
		'{"state":"pending","id":3,"cookie":0,"left":30000000000,"timeout":20000000000,"period":0,"base":0}'
	grep '"id":6,' $tmp/kinds | tells 'the held one' '[.state, .left]' '["held",10000000000]'
	chown 65534:200 /dev/timewheels/kinds
	chmod 660 /dev/timewheels/kinds
	gives 0 save kinds $tmp/kinds
	wheel kinds slots,max,lease,periods,state,owner,mode >$tmp/settings
	gives 0 destroy kinds
	wait $holder

	gives 0 restore kinds $tmp/kinds
	prints "^wheel 'kinds': 10 tokens restored from $tmp/kinds"
	prints "^wheel 'kinds' is paused until 'twctl resume kinds'$"
	is 'the wheel is as it was' \
		"$(wheel kinds slots,max,lease,periods,state,owner,mode)" \
		"$(cat $tmp/settings)"
	tokens kinds >$tmp/after
	# Held tokens are pending: due at once, or for the same period.
	sed -e 's/^6 0 - 0 - - held 1$/6 0 10000000000 - - - due 0/' \
		-e 's/^6 0 - - - - held 1$/6 0 10000000000 - - - due 0/' \
		-e 's/^9 0 - - 4000000000 7000000000 held 1$/9 0 10000000000 - 4000000000 7000000000 due 0/' \
		$tmp/before >$tmp/wanted
	cmp $tmp/wanted $tmp/after >$tmp/out || diff $tmp/wanted $tmp/after >$tmp/err
	result $? 'all tokens are as they were, and the held ones are due'
	gives 0 resume kinds
	gives 0 watch kinds -n 3 -f '{id} {missed}'
	is 'what comes' "$(sort $tmp/out | xargs)" '5 0 6 0 9 0'
	refuses 11 "kinds: the save was restored .* ago, .*--force" restore kinds $tmp/kinds
	gives 5 restore kinds $tmp/kinds --force
	is 'those that exist are counted' \
		"$(grep -c "10 ids exist: their tokens stay as they are" $tmp/err)" 1
	is 'a wheel in use is not paused' "$(wheel kinds state)" running
	gives 0 destroy kinds

	none_at_all
	# Tokens without ids come back, too.
	gives 0 create bare --no-ids --no-cookies --clock manual --lease 10s
	$twctl add bare - 0 >/dev/null
	gives 0 save bare $tmp/bare
	gives 0 destroy bare
	gives 0 restore bare $tmp/bare
	is 'it is there' "$($twctl list bare -o state --no-headings | xargs)" due
	gives 0 destroy bare
}

clocks()
{
	gives 0 create real -c realtime -t 100ms --periods
	$twctl add real 1 at @4000000000.123456789 >/dev/null
	$twctl add real 2 1000s >/dev/null
	$twctl add real 3 at @4000000000.123456789 -e 7s >/dev/null
	tokens real >$tmp/before
	gives 0 save real
	tells 'its wall time' 'select(.id == 1) | .wall' '"4000000000200000000"' <$saves/real.save
	gives 0 create mono -t 100ms
	$twctl add mono 1 1000s >/dev/null
	was=$(value mono 1 deadline)
	gives 0 save mono $tmp/mono
	sleep 1
	gives 0 destroy real
	gives 0 restore real
	tokens real >$tmp/after
	cmp $tmp/before $tmp/after
	result $? 'wall time stays as it is'
	gives 0 restore wall $tmp/mono --wall
	moved=$(($(value wall 1 deadline) - was))
	[ $moved -ge 0 ] && [ $moved -le 100000000 ]
	result $? "by wall time the deadline stays, or is in the next tick: $moved ns"
	gives 0 restore left $tmp/mono --force
	prints 'as its clock is monotonic, what was left of each delay counts from now on'
	moved=$(($(value left 1 deadline) - was))
	[ $moved -ge 1000000000 ] && [ $moved -lt 60000000000 ]
	result $? "by what was left it is later by the time between: $moved ns"
	is 'its timeout' "$(value left 1 timeout)" 1000000000000
	gives 0 create still --clock manual
	refuses 2 '--wall: not with a manual clock' restore still $tmp/mono --wall --force
	gives 0 save still $tmp/still
	refuses 2 '--wall: not with a manual clock' restore left $tmp/still --wall
	is 'it runs' "$(wheel left state)" running
	gives 0 destroy real mono wall left still
}

broken()
{
	gives 0 create some --clock manual --max-tokens 100000
	$twctl touch some -r 5s 1 2 3 >/dev/null
	refuses 3 "no wheel 'new'" save new
	refuses 1 '/none/file: No such file' save some /none/file
	# The disk is full, and the save from before is kept.
	mkdir $tmp/disk
	mount -t tmpfs -o size=8k tmpfs $tmp/disk
	gives 0 save some $tmp/disk/some
	sum=$(md5sum <$tmp/disk/some)
	# shellcheck disable=SC2046 # one word each
	$twctl touch some -r 5s $(seq 100) >/dev/null
	refuses 1 'disk/some: No space left' save some $tmp/disk/some
	is 'the file is as it was' "$(md5sum <$tmp/disk/some)" "$sum"
	is 'and nothing is beside it' "$(ls $tmp/disk)" some
	umount $tmp/disk
	gives 0 destroy some
}

# A save that cannot be restored is kept under another name, and the wheel is saved from then
# on.
unrestored()
{
	gives 0 destroy kept
	gives 0 create kept --clock manual --max-tokens 2
	gives 0 save
	gives 0 destroy kept
	gives 0 create kept --clock manual --max-tokens 2
	sed -i 's/^{"end".*//; /^$/d' $saves/kept.save
	gives 1 restore
	is 'why, and where it is' "$(sed 's/.*is saved: //' $tmp/err | tail -n 1)" \
		"twctl restore kept $saves/kept.save.unrestored"
	is 'it is there' "$(wc -l <$saves/kept.save.unrestored)" 1
	for id in 1 2 3; do
		echo "{\"state\":\"pending\",\"id\":$id,\"cookie\":0,\"left\":5,\"timeout\":0,\"period\":0,\"base\":0}"
	done >$tmp/three
	gives 0 save
	sed -e "1r $tmp/three" -e 's/"tokens":0/"tokens":3/' $saves/kept.save >$tmp/full
	cp $tmp/full $saves/kept.save
	gives 6 restore
	prints_error "'kept' is full at its max-tokens, 2, before id 3: nothing has been restored"
	is 'the one before is, too' "$(ls $saves | xargs)" \
		'all-saved kept.save.unrestored kept.save.unrestored2'
	gives 0 restore
	prints "^wheel 'kept' has no save$"
	$twctl touch kept -r 5s 7 >/dev/null
	gives 0 save
	prints "^wheel 'kept': 1 tokens saved"
	rm $saves/*.unrestored*
	gives 0 destroy kept
	gives 0 apply
	gives 0 restore
	is 'it has' "$($twctl list kept -o id --no-headings | xargs)" 7
	$twctl touch kept -r 5s 1 2 3 >/dev/null
	gives 0 cancel kept 7
}

prints_error()
{
	grep -q -- "$1" $tmp/err
	result $? "  says $1"
}

# Old saves do not make tokens come again.
aged()
{
	gives 0 save
	gives 0 destroy kept
	gives 0 apply
	gives 0 restore
	# As after a power cut, the wheel is gone and was not saved since.
	gives 0 destroy kept
	gives 0 apply
	refuses 11 'kept.save: the save was restored .* ago, .*: --force' restore
	is 'tokens' "$(wheel kept pending)" 0
	is 'the file is as it was' "$(ls $saves | xargs)" 'all-saved kept.save'
	gives 0 restore --force
	is 'tokens' "$(wheel kept pending)" 3
	# The wheel is destroyed by hand before all wheels are saved.
	gives 0 save kept
	gives 0 destroy kept
	gives 0 save
	prints "^wheel 'kept' is gone: nothing to save$"
	gives 0 apply
	refuses 11 'kept.save: the save is older than the last time that all wheels were saved, .*: --force' \
		restore
	is 'tokens' "$(wheel kept pending)" 0
	refuses 11 'older than' restore kept
	gives 0 restore kept --force
	is 'tokens' "$(wheel kept pending)" 3
	# A save that cannot be marked could be restored again and again.
	gives 0 save kept $tmp/marked
	mkdir -p $tmp/cd
	mount -t tmpfs tmpfs $tmp/cd
	cp $tmp/marked $tmp/cd
	mount -o remount,ro $tmp/cd
	refuses 1 'marked: Read-only file system, .* is marked: --force' restore other $tmp/cd/marked
	refuses 3 'no wheel' list other
	gives 0 restore other $tmp/cd/marked --force
	umount $tmp/cd
	gives 0 destroy other
	gives 0 save
}

# The service saves and restores in this way at shutdown and at boot.
all_declared()
{
	rm -f $saves/*
	gives 0 restore
	printf '%s\n' 'name = kept' 'clock = manual' 'saved = yes' >$etc/kept.conf
	printf '%s\n' 'name = lost' 'clock = manual' 'saved = no' >$etc/lost.conf
	gives 0 apply
	gives 0 restore
	prints "^wheel 'kept' has no save$"
	for wheel in kept lost; do
		$twctl touch $wheel -r 5s 1 2 3 >/dev/null
	done
	gives 0 save
	is 'only that is saved' "$(ls $saves | xargs)" 'all-saved kept.save'
	$twctl cancel kept 1 >/dev/null
	gives 0 restore
	prints "^wheel 'kept' has been in use: it stays as it is$"
	is 'it has' "$($twctl list kept -o id --no-headings | xargs)" '2 3'
	gives 0 destroy kept lost
	gives 0 apply
	gives 0 restore
	is 'it has' "$($twctl list kept -o id --no-headings | sort | xargs)" '1 2 3'
	unrestored
	aged
	# A file with an error is told, and the wheels of other files are saved.
	echo 'slots' >$etc/bad.conf
	rm $saves/kept.save
	gives 2 save
	is 'one is saved' "$(ls $saves | xargs)" 'all-saved kept.save'
	rm $etc/*
	gives 0 destroy kept lost
}

# load FILE: registers tokens, 20 at a time, until it is told to end
load()
{
	while [ ! -e $tmp/stop ]; do
		next=$(cat $tmp/next)
		echo $((next + 20)) >$tmp/next
		# shellcheck disable=SC2046 # one word each
		$twctl touch up -r $((next / 20 % 40 + 1))00ms -b -o id,deadline --no-headings \
			$(seq $next $((next + 19))) >>$tmp/registered 2>>$tmp/load.err
	done
}

# reader: reads all events that come, from each wheel of the name "up"
reader()
{
	while [ ! -e $tmp/end ]; do
		$PWD/twctl watch up -f '{id} {deadline} {taken}' >>$tmp/read 2>/dev/null
		echo $? >>$tmp/statuses
		usleep 50000
	done
}

# These are the steps of the manual.
upgraded()
{
	rm -f $tmp/stop $tmp/end
	: >$tmp/load.err
	: >$tmp/registered
	: >$tmp/read
	: >$tmp/statuses
	echo 1 >$tmp/next
	gives 0 create up -t 10ms --max-tokens 100000
	reader &
	reader=$!
	load &
	load=$!
	settle $tmp/registered 200
	gives 0 pause up
	: >$tmp/stop
	wait $load
	gives 0 save up
	gives 0 destroy up
	# The reader may not have closed the wheel yet.
	tries=0
	until rmmod timewheel 2>$tmp/err || [ $((tries = tries + 1)) -gt 100 ]; do
		usleep 50000
	done
	[ $tries -le 100 ]
	result $? 'the module is removed'
	insmod /timewheel.ko
	result $? 'the module is loaded'
	gives 0 restore up --wall
	restored=$(cut -d' ' -f1 /proc/uptime)
	before=$(wc -l <$tmp/read)
	rm $tmp/stop
	load &
	load=$!
	usleep 500000
	is 'nothing comes before it is resumed' "$(wc -l <$tmp/read)" "$before"
	gives 0 resume up
	settle $tmp/registered 400
	: >$tmp/stop
	wait $load
	settle $tmp/read "$(wc -l <$tmp/registered)"
	: >$tmp/end
	gives 0 destroy up
	wait $reader
	is 'errors of the load' "$(wc -l <$tmp/load.err)" 0
	awk '{ print $1 }' $tmp/registered | sort >$tmp/ids
	awk '{ print $1 }' $tmp/read | sort >$tmp/ids.read
	cmp $tmp/ids $tmp/ids.read
	result $? "each of $(wc -l <$tmp/ids) tokens comes, and comes once"
	# busybox's awk counts in doubles, and the last digits of ns are left out. A token that was
	# past its deadline is due at the moment of the restore.
	awk -v restored="$restored" 'function short(ns) { return substr(ns, 1, length(ns) - 3) + 0 }
		NR == FNR { due[$1] = short($2); next }
		short($3) < due[$1] { early++ }
		short($2) > due[$1] + 20000 && due[$1] > restored * 1e6 { late++ }
		END { print early + 0, late + 0 }' $tmp/registered $tmp/read >$tmp/out
	is 'early, and moved by more than two ticks' "$(cat $tmp/out)" '0 0'
	is 'the reader is told of the end of both wheels' "$(grep -c '^8$' $tmp/statuses)" 2
	is 'and else only that there is no wheel, or no device' \
		"$(grep -vc '^[378]$' $tmp/statuses)" 0
}

modes() # WHEEL...
{
	for wheel; do
		stat -c %a "/dev/timewheels/$wheel"
	done | sort -u | xargs
}

# udev changes the mode of a new node a moment after the wheel was made.
under_udev()
{
	mkdir -p /run/udev /lib/udev/rules.d
	cp udevadm /bin
	ln -s udevadm /bin/systemd-udevd
	systemd-udevd >/dev/null 2>&1 &
	udev=$!
	tries=0
	until [ -e /run/udev/control ] || [ $((tries = tries + 1)) -gt 100 ]; do
		usleep 100000
	done
	for wheel in a b c d e; do
		$twctl create $wheel
		chmod 666 /dev/timewheels/$wheel
		printf '%s\n' "name = $wheel$wheel" 'mode = 0640' >$etc/$wheel.conf
	done
	gives 0 apply
	udevadm settle
	result $? 'udev has dealt with all'
	is 'wheels that were made' "$(modes a b c d e)" 666
	is 'wheels that were declared' "$(modes aa bb cc dd ee)" 640
	gives 0 destroy a b c d e aa bb cc dd ee
	udevadm settle
	kill $udev
	wait $udev
	rm -r /run/udev
	rm $etc/*
}

# The tokens are more than one batch.
many()
{
	gives 0 create many --max-tokens 10000
	gives 0 save many $tmp/many
	awk 'NR == 1 { print }
		END { for (i = 1; i <= 10000; i++)
			printf "{\"state\":\"pending\",\"id\":%d,\"cookie\":0,\"left\":3600000000000,\"timeout\":0,\"period\":0,\"base\":0}\n", i
		print "{\"end\":true,\"tokens\":10000}" }' $tmp/many >$tmp/many.all
	gives 0 restore many $tmp/many.all
	prints "^wheel 'many': 10000 tokens restored"
	is 'pending' "$(wheel many pending)" 10000
	gives 0 save many $tmp/many
	is 'lines' "$(wc -l <$tmp/many)" 10002
	gives 0 destroy many
}

declared_wrongly
declared
saving
clocks
broken
all_declared
upgraded
under_udev
many
printf 'end\0' >>$later
finish
