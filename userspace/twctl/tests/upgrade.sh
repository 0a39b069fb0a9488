#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# upgrade: another build of the module in the place of the one that is loaded, without
# systemd. Needs the module loaded from /timewheel.ko, root, and beside itself:
# results.sh, twctl, skew.so, kmod, new.ko, another build, wrong.ko, which does not load,
# and other.ko, for another kernel. Prints TAP. "make guest-tests" runs it in a guest.
set -u
# A command that hangs is ended by timeout, and has failed.
twctl="timeout 120 $PWD/twctl"
tool=$twctl
tmp=/tmp/upgrade
saves=/var/lib/timewheel
kept=/run/timewheel
etc=/etc/timewheel/wheels.d
mkdir -p $tmp/bin $etc $saves
. ./results.sh

for name in modinfo insmod modprobe depmod; do
	ln -s "$PWD/kmod" $tmp/bin/$name
done
PATH=$tmp/bin:$PATH

# Prints the build of the module that is loaded.
build()
{
	od -An -tx1 /sys/module/timewheel/notes/.note.gnu.build-id | tr -d ' \n'
}

tokens() # WHEEL COLUMNS
{
	$twctl list "$1" -b --no-headings -o "$2" | sed 's/  */ /g; s/^ //' | sort
}

# Prints all that has to be the same before and after.
picture()
{
	$twctl wheels -b --no-headings -o name,owner,group,mode,clock,tick,slots,max,lease,state |
		sed 's/  */ /g'
	tokens dates id,cookie,deadline,timeout,period,base,state
	tokens manual id,deadline,timeout,state
	# A deadline of the monotonic clock may be a tick later after each restore, and is left out.
	tokens delays id,cookie,timeout
	cat /sys/module/timewheel/parameters/max_user_wheels
	ls $saves
}

# unchanged: wheels, tokens and settings are as before
unchanged()
{
	picture >$tmp/after
	cmp $tmp/before $tmp/after >/dev/null || diff $tmp/before $tmp/after >>$tmp/err
	result $? '  all wheels, tokens and settings are as before'
	is '  the module' "$(build)" "$1"
}

make_wheels()
{
	gives 0 create delays -t 100ms
	$twctl touch delays -r 1h 1 2 3 >/dev/null
	gives 0 create dates -c realtime --periods -l 10s
	$twctl add dates 4711 at @4000000000 -c 5 >/dev/null
	$twctl add dates 7 at @4000000000.5 -e 7s >/dev/null
	gives 0 create manual -c manual --start 10
	$twctl add manual 1 5s >/dev/null
	gives 0 pause manual
	gives 0 drain dates
	chown 65534:200 /dev/timewheels/dates
	chmod 640 /dev/timewheels/dates
	printf '%s\n' 'name = delays' 'tick = 100ms' 'saved = yes' >$etc/delays.conf
	gives 0 save
	echo 77 >/sys/module/timewheel/parameters/max_user_wheels
	picture >$tmp/before
}

# These upgrades are refused before anything is changed.
refused()
{
	old=$(build)
	su nobody -s /bin/sh -c "$twctl upgrade $PWD/new.ko" >$tmp/out 2>$tmp/err
	is 'status for others than root' $? 4
	refuses 3 'not known, .* no way back: copy it into the folder /run/timewheel$' \
		upgrade new.ko
	mkdir -p $kept
	cp new.ko $kept/a.ko
	cp /timewheel.ko $kept/b.ko
	refuses 3 'modprobe knows no module timewheel for this kernel: name the file' upgrade
	refuses 2 "FILE '/none': not the file of a module" upgrade /none
	head -c 100000 new.ko >$tmp/cut.ko
	refuses 2 "FILE '$tmp/cut.ko': not the file of a module" upgrade $tmp/cut.ko
	refuses 2 "FILE 'other.ko': for the kernel 5[^ ]*, and this one is $(uname -r)" \
		upgrade other.ko
	gives 0 upgrade $kept/b.ko
	prints '^this module is loaded already: nothing to do$'
	unchanged "$old"

	# A process of no service has a wheel open.
	sleep 1000 8<>/dev/timewheels/dates 9<>/dev/timewheel &
	holder=$!
	until [ "$(cat /proc/$holder/comm)" = sleep ]; do
		usleep 10000
	done
	gives 11 upgrade new.ko
	prints "^wheel 'dates' is open in 'sleep', process $holder$"
	prints "^a private wheel is open in 'sleep', process $holder$"
	is 'it is told' "$(grep -c "process $holder, 'sleep', is no service: end it, .*; nothing has been changed$" $tmp/err)" 2
	kill $holder
	wait $holder
	unchanged "$old"

	# A declaration has an error.
	echo 'slot = 60' >$etc/bad.conf
	refuses 2 "bad.conf:1: unknown key 'slot'" upgrade new.ko
	rm $etc/bad.conf

	# Saves of an earlier upgrade are there, which somebody may still want.
	mkdir $saves/upgrade
	: >$saves/upgrade/lost.save
	refuses 5 'saves of an upgrade that did not come to its end: .*; nothing has been changed' \
		upgrade new.ko
	rm -r $saves/upgrade
	unchanged "$old"
}

# fails STEP COMMAND...: the step cannot be done, and all is as before
fails()
{
	step=$1
	shift
	"$@" >$tmp/out 2>$tmp/err
	is "status of $*" $? 1
	is '  it is told' "$(tail -n 1 $tmp/err)" \
		"twctl: upgrade: could not $step; everything is as before"
}

undone()
{
	old=$(build)
	fails 'load the new module' $twctl upgrade wrong.ko
	unchanged "$old"
	fails 'restore the wheels' env LD_PRELOAD=$PWD/skew.so TWCTL_SKEW=register \
		TWCTL_SKEW_AT=3 $twctl upgrade new.ko
	unchanged "$old"
	# The disk is full: the wheel has too many tokens for it.
	gives 0 create large
	# shellcheck disable=SC2046 # one word each
	$twctl touch large -r 1h $(seq 200) >/dev/null
	mv $saves $saves.before
	mkdir $saves
	mount -t tmpfs -o size=16k tmpfs $saves
	fails 'save the wheels' $twctl upgrade new.ko
	is 'tokens' "$($twctl wheels -o name,pending --no-headings | awk '$1 == "large" { print $2 }')" 200
	umount $saves
	rmdir $saves
	mv $saves.before $saves
	gives 0 destroy large
	unchanged "$old"
}

upgraded()
{
	old=$(build)
	gives 0 upgrade new.ko
	prints '^the new module is loaded, with 3 wheels$'
	new=$(build)
	[ "$new" != "$old" ]
	result $? 'it is another build'
	unchanged "$new"
	is 'the wheel that stands still is paused' \
		"$($twctl wheels -o name,state --no-headings | awk '$1 == "manual" { print $2 }')" paused
	is 'the one that takes no more tokens still does so' \
		"$($twctl wheels -o name,state --no-headings | awk '$1 == "dates" { print $2 }')" draining
	# The old module comes back, by the name that modprobe knows.
	mkdir -p "/lib/modules/$(uname -r)/updates"
	cp /timewheel.ko "/lib/modules/$(uname -r)/updates"
	$tmp/bin/depmod 2>/dev/null
	gives 0 upgrade
	unchanged "$old"
	gives 0 upgrade
	prints '^this module is loaded already: nothing to do$'
	gives 0 destroy delays dates manual
	gives 0 upgrade new.ko
	prints '^the new module is loaded, with 0 wheels$'
	gives 0 upgrade
	rmmod timewheel
	refuses 7 'the module is not loaded: modprobe timewheel, or insmod FILE' upgrade new.ko
	modprobe timewheel
	result $? 'modprobe loads it'
}

make_wheels
refused
undone
upgraded
rm -r $etc $saves $kept
finish
