#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# reboot.sh before|after: declared wheels and their tokens come back after a reboot, as
# the service saves and restores them. "before" writes the disk's part of it, as a tar
# file, to the guest's $TW_VM_DATA, and besides what other tests have left in /tmp/json;
# "after" finds it beside itself, as data. Needs the
# module loaded, root, and beside itself: results.sh, twctl. Prints TAP.
set -u
twctl="timeout 60 $PWD/twctl"
tool=$twctl
tmp=/tmp/reboot
etc=/etc/timewheel/wheels.d
saves=/var/lib/timewheel
mkdir -p $tmp $etc $saves
. ./results.sh

tokens() # WHEEL COLUMNS
{
	$twctl list "$1" -b --no-headings -o "$2" | sed 's/  */ /g; s/^ //' | sort
}

before()
{
	printf '%s\n' 'name = delays' 'tick = 100ms' 'saved = yes' >$etc/delays.conf
	printf '%s\n' 'name = dates' 'clock = realtime' 'periods = yes' 'lease = 10s' \
		'saved = yes' 'mode = 0660' >$etc/dates.conf
	gives 0 apply
	for hour in 1 2 3 4 5; do
		# shellcheck disable=SC2046 # one word each
		$twctl touch delays -r ${hour}h $(seq $hour 5 1000) >/dev/null
	done
	for id in 1 2 3 4 5; do
		$twctl add dates $id at @400000000$id -c $id >/dev/null
		$twctl add dates 1$id 1000s -e ${id}h >/dev/null
	done
	tokens delays id,left,timeout,period,base,state >$saves/delays
	tokens dates id,cookie,deadline,timeout,period,base,state >$saves/dates
	gives 0 save
	prints "^wheel 'delays': 1000 tokens saved"
	prints "^wheel 'dates': 10 tokens saved"
	tar -C / -cf "$TW_VM_DATA" etc/timewheel var/lib/timewheel tmp/json
	gives 0 destroy delays dates
}

after()
{
	tar -C / -xf data
	gives 0 apply
	gives 0 restore
	prints "^wheel 'delays': 1000 tokens restored"
	tokens delays id,left,timeout,period,base,state >$tmp/delays
	tokens dates id,cookie,deadline,timeout,period,base,state >$tmp/dates
	cmp $saves/dates $tmp/dates
	result $? 'wall time stays as it was'
	# The tokens were saved and later restored and listed: some seconds went by meanwhile.
	awk 'NR == FNR { left[$1] = $2; $2 = ""; rest[$1] = $0; next }
		$2 > left[$1] + 1e8 || $2 < left[$1] - 60e9 { moved++ }
		{ $2 = ""; other += $0 != rest[$1] }
		END { print FNR, moved + 0, other + 0 }' $saves/delays $tmp/delays >$tmp/out
	is 'tokens, those with another delay, others that differ' "$(cat $tmp/out)" '1000 0 0'
	is 'the node' "$(stat -c %a /dev/timewheels/dates)" 660
	# A power cut and another boot follow: the tokens do not come again.
	gives 0 destroy delays dates
	gives 0 apply
	gives 11 restore
	is 'saves that are told to be restored before' "$(grep -c 'was restored' $tmp/err)" 2
	is 'pending' "$($twctl -o pending --no-headings | xargs)" '0 0'
	gives 0 destroy delays dates
}

"$1"
finish
