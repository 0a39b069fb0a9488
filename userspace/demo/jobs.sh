#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The scene with twjobd, for a guest with a disk: redis-cli puts orders with their texts, and
# two workers print each text when it is due. Meanwhile twjobd is killed, and then the machine
# is reset, which begins this script again. The script checks all that it claims.
set -u

socket=/tmp/twjobd
printed=/tmp/printed	# order, try, due, time of printing (both in ms), text
begun=${EPOCHREALTIME%.*}
workers=()
failed=0

# tw COMMAND...: sends a command to twjobd; without arguments, the commands of standard input
tw()
{
	redis-cli -s $socket "$@" 2>/dev/null
}

# wall MS: prints a point of time, as a clock on the wall shows it
wall()
{
	printf '%(%T)T.%03d' $(($1 / 1000)) $(($1 % 1000))
}

# put ORDER DUE: prints the command for an order that is due at that second
put()
{
	printf 'TW.PUT stars "It is %(%T)T, please rate order %d." AT %d KEY %d\n' \
		"$2" "$1" $(($2 * 1000)) "$1"
}

start_daemon()
{
	printf '%s\n' "listen = $socket" "store = /tmp/disk/jobs" >/tmp/twjobd.conf
	./twjobd --config /tmp/twjobd.conf &
	daemon=$!
	until [ "$(tw PING)" = PONG ]; do
		sleep 0.1
	done
}

# print_job WORKER: prints the text of the job that TW.TAKE has written, and says that this
# is done; fails if there is none
print_job()
{
	local receipt try due order text at note=

	read -r _ && read -r _ && read -r receipt && read -r try && read -r due &&
		read -r order && read -r text || return
	at=$((${EPOCHREALTIME/./} / 1000))
	[ "$due" -ge $((begun * 1000)) ] || note=" (The machine was off.)"
	[ "$try" = 1 ] || note+=" (Again, this is try $try.)"
	printf '  %s  %s %7d ms     %d    %s%s\n' "$(wall "$due")" "$(wall "$at")" \
		$((at - due)) "$1" "$text" "$note"
	tw TW.ACK stars "$receipt" >/dev/null
	echo "$order $try $due $at $text" >>$printed
}

# worker NUMBER: prints one job after the other; while there is no twjobd, it waits
worker()
{
	while true; do
		redis-cli -s $socket TW.TAKE stars BLOCK 0 2>/dev/null |
			print_job "$1" || sleep 0.1
	done
}

start_workers()
{
	: >$printed
	worker 1 &
	workers=($!)
	worker 2 &
	workers+=($!)
}

stop_workers()
{
	kill "${workers[@]}"
	killall redis-cli
	wait "${workers[@]}"
} 2>/dev/null

# await COUNT: waits until so many orders have been printed, or a minute has passed
await()
{
	local end=$((SECONDS + 60))

	until [ "$(wc -l <$printed)" -ge "$1" ] || [ $SECONDS -gt $end ]; do
		sleep 0.1
	done
}

# Each order was printed, and an order that came twice came with a word about it.
all_printed()
{
	[ "$(awk '!seen[$1]++ || $2 == 1 { print $1 }' $printed | sort -n)" = \
		"$(seq "$1" "$2")" ]
}

none_early()
{
	local order try due at text

	while read -r order try due at text; do
		[ "$at" -ge "$due" ] &&
			[ "$text" = "It is $(wall "$due" | cut -d. -f1), please rate order $order." ] ||
			return
	done <$printed
}

# claim TEXT COMMAND...: prints a line of the result, by whether COMMAND is true
claim()
{
	local result=ok

	"${@:2}" || result="not ok" failed=1
	echo "$result - $1"
}

# Claims what holds for the orders that were printed since the machine has begun.
claims()
{
	claim "orders $1 to $2 were printed, none twice without a word about it" \
		all_printed "$1" "$2"
	claim "none of them before the time in its text" none_early
}

before_reset()
{
	local order time

	echo "4. Jobs that outlive a kill and a reset"
	echo
	echo "A job is a text that is due at a time. twjobd keeps jobs on the disk."
	echo
	start_daemon
	tw TW.CREATE stars >/dev/null
	time=$((${EPOCHREALTIME%.*} + 3))
	echo "  redis-cli> $(put 1 $time)"
	for order in 1 2 3 4 5 6; do
		put $order $((time + order - 1 + (order > 3) * 3))
	done | tw >/dev/null
	echo "  ... and so on, for orders 2 to 6. Two workers wait, each in TW.TAKE:"
	echo
	echo "  due           printed            late  worker  text"
	start_workers
	await 3
	echo "  ------------- kill -9: twjobd ends at once, and is started again"
	kill -9 $daemon
	{ wait $daemon; } 2>/dev/null
	start_daemon
	await 6
	stop_workers
	# Orders 8 to 10 are due some seconds after a start that is as slow as this one.
	time=${EPOCHREALTIME%.*}
	{
		put 7 $((time + 1))
		for order in 8 9 10; do
			put $order $((time + order + uptime))
		done
	} | tw >/dev/null
	echo "  ------------- orders 7 to 10 are put, and the machine is reset"
	echo
	echo "1..4"
	claims 1 6
	# The reset waits until a person has read all of this.
	sleep 1
	echo b >/proc/sysrq-trigger
	sleep 60
}

after_reset()
{
	echo
	echo "The machine has begun again. It has lost all but its disk."
	echo
	echo "  due           printed            late  worker  text"
	start_daemon
	start_workers
	await 4
	# An order that comes again would come now.
	sleep 1
	stop_workers
	echo
	claims 7 10
	tw TW.DROP stars >/dev/null
	kill $daemon
	wait
	umount /tmp/disk
}

if [ ! -b "$TW_VM_DISK" ]; then
	echo "1..0 # SKIP this kernel has no driver for the guest's disk"
	exit 4
fi
read -r uptime _ </proc/uptime
uptime=${uptime%.*}
mkdir -p /tmp/disk
mount "$TW_VM_DISK" /tmp/disk
if mkdir /tmp/disk/begun 2>/dev/null; then
	sync
	before_reset
else
	after_reset
fi
exit $failed
