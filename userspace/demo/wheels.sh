#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The scenes with wheels, for a guest: users who fall silent, orders of 48 hours, and texts at
# a time of the wall clock. The commands are those of the README. The script compares what
# each wheel tells with a list that the wheel does not know.
set -u

dir=/tmp/demo
mkdir $dir && . ./tap.sh
claims=$dir/claims
users=2000 silent=50 timeout=10
orders=10000
texts=1000

# claim STATUS NAME: keeps a result, which is told at the end
claim()
{
	result "$@" >>$claims
}

# figure NAME VALUE
figure()
{
	printf '  %-38s %s\n' "$1" "$2" >>$dir/figures
}

# type COMMAND...: prints the command, and runs it
type()
{
	echo "  # $*"
	"$@" | sed 's/^/  /'
}

# Draws in how many seconds how many users are due, as the wheel tells when it is asked.
draw_second()
{
	twctl show -b --no-headings -o left,tokens users >$dir/slots
	awk -v second="$1" -v online="$(grep -c ^online $dir/out)" \
		-v offline="$(grep -c ^offline $dir/out)" '
		{ due[int($1 / 1e9) + 1] += $2 }
		END {
			printf "%4d s ", second
			for (i = 1; i <= 11; i++)
				printf " %5s", due[i] ? due[i] : "."
			printf "   %6d %7d\n", online - offline, offline
		}' $dir/slots
}

# Lines of the generator's ledger: silent USER LAST-PACKET CLOSED, and gap USER LONGEST of a
# user that paused, as on a busy machine, who may be told. Those of twidled: offline USER
# DEADLINE. The tick is a second.
compare_silent()
{
	awk -v timeout=$timeout '
		FILENAME ~ /ledger$/ && $1 == "silent" {
			last[$2] = $3
			users++
			if (!($4 > 0))
				next
			silence = $4 - $3
			shortest = !closed++ || silence < shortest ? silence : shortest
			longest = silence > longest ? silence : longest
		}
		FILENAME ~ /ledger$/ && $1 == "gap" { paused[$2] }
		FILENAME ~ /ledger$/ || $1 != "offline" || $2 in paused { next }
		!($2 in last) { others++; next }
		told[$2]++ { again++ }
		{ early += $3 < last[$2] + timeout }
		END {
			for (user in last)
				missing += !(user in told) && !(user in paused)
			for (user in paused)
				pauses++
			print users + 0, missing + again + 0, others + 0, early + 0,
				closed + 0, pauses + 0
			printf "%.1f to %.1f s\n", shortest, longest
		}' $dir/ledger $dir/out >$dir/compared
	{
		read -r fell wrong others early closed pauses
		read -r silence
	} <$dir/compared
	claim $((fell != silent || wrong)) "the $fell users who fell silent were told, each once"
	claim "$others" "nobody else was told"
	claim "$early" "nobody was told before $timeout s without a packet were over"
	claim $((closed != silent || !pauses && $(grep -c ended $dir/reaped) != silent)) \
		"twctl reap, which knows no user, ended their $closed connections and no other"
	claim $((!pauses && (registered != users || delivered != silent))) \
		"$registered registrations, $delivered events"
	figure "users that paused: the machine was busy" "$pauses"
	figure "silence until the connection was ended" "$silence"
}

all_ended()
{
	[ "$(grep -c ^offline $dir/out)" -ge $silent ] &&
		[ "$(grep -c ended $dir/reaped)" -ge $silent ]
}

silent_users()
{
	echo "1. Users who fall silent"
	echo
	echo "$users users send packets to twidled. $timeout s without a packet mean offline."
	echo "$silent users will fall silent. Beside it twctl looks for idle connections:"
	echo
	printf '%s\n' "wheel = users" "timeout = ${timeout}s" "watch = no" "close = no" \
		"events = $dir/events" "state = $dir/state" >$dir/twidled.conf
	: >$dir/out
	twidled --config $dir/twidled.conf >$dir/out 2>$dir/log &
	service=$!
	begun=$(cut -d. -f1 /proc/uptime)
	until [ -S $dir/events ]; do
		usleep 100000
	done
	load --users $users --rate $((users / 2)) --connect-rate 400 --reconnect \
		--silent $silent --until 20 --timeout $((timeout - 2)) \
		--ledger $dir/ledger >$dir/report &
	load=$!
	echo "  # twctl reap --listen 7075 --idle ${timeout}s"
	twctl reap --listen 7075 --idle ${timeout}s >$dir/reaped 2>>$dir/log &
	reap=$!
	echo
	echo "In how many seconds how many users are due; each packet takes one back to the end:"
	echo
	printf '%7s%s   %6s %7s\n' "" "$(printf ' %5d' 1 2 3 4 5 6 7 8 9 10 11)" online offline
	second=0
	until [ $((second += 1)) -gt 30 ] && all_ended || [ $second -gt 120 ]; do
		draw_second $second
		sleep 1
	done
	kill $load
	wait $load
	claim $? "all users logged in"
	# The packets that the remaining users have sent keep them online for some seconds more.
	twctl stats -b --no-headings -o registered,touched,delivered,callbacks,max users \
		>$dir/stats
	kill $service $reap
	wait $service $reap
	cat $dir/log
	read -r registered touched delivered callbacks late <$dir/stats
	ticks=$(($(cut -d. -f1 /proc/uptime) - begun + 1))
	figure "packets" "$(sed -n 's/.*packets \([0-9]*\).*/\1/p' $dir/report)"
	figure "touches" "$touched"
	figure "callbacks of the wheel's timer" "$callbacks in $ticks s"
	figure "latest, after the deadline" "$((late / 1000000)) ms"
	compare_silent
	claim $((callbacks > ticks + 1)) "at most one callback per tick, for all users together"
	twctl destroy users
	echo
	echo "The first users who were told, and the first connections that were ended:"
	echo
	grep ^offline $dir/out | sed 's/^/  /;3q'
	sed 's/^/  /;3q' $dir/reaped
}

# The deadlines that are expected of the orders: lines ID DEADLINE, in seconds, without
# cancelled orders. They are closed one after the other, within an hour. One in ten is
# cancelled then, and one in twenty moved by half a day, back or forth.
change_minds()
{
	awk -v orders=$orders -v asked=$dir/asked -v due=$dir/due 'BEGIN {
		for (id = 1; id <= orders; id++) {
			at = 48 * 3600 + int((id - 1) * 3600 / orders)
			print "add", id, "clock", at "000000000" >asked
			if (id % 10 == 3) {
				print "cancel", id >asked
				continue
			}
			if (id % 20 == 7) {
				at += (id % 40 == 7 ? 12 : -12) * 3600
				print "move", id, "clock", at "000000000" >asked
			}
			print id, at >due
		}
		print "add", 4711000, "in 48h" >asked
		print 4711000, 48 * 3600 >due
	}'
}

# Prints the slot and the Cycle-Num of each pending order: the whole laps that the hand makes
# before.
slots_right()
{
	twctl list -b --no-headings -o slot,cycle,deadline orders | awk -v hand="$1" '
		{ tick = $3 / 1e9 }
		$1 != tick % 3600 || $2 != int((tick - hand - 1) / 3600) { exit wrong = 1 }
		END { exit wrong }'
}

delayed_orders()
{
	echo
	echo "2. Orders: two days later, \"rate it five stars\""
	echo
	echo "$orders orders, of which some are cancelled or moved. The ring has 3600 slots of"
	echo "a second, and a token has a Cycle-Num: whole laps that the hand makes first."
	echo
	change_minds
	type twctl create orders --clock manual --slots 3600
	echo "  # twctl batch orders                (add 4711000 in 48h; and so on)"
	twctl batch orders <$dir/asked >$dir/answers
	claim $? "every operation of the batch succeeded"
	wrong=0 came_wrong=0
	for hour in 1 12 24 36 47 48 49 60 61; do
		hand=$((hour * 3600))
		echo "  # twctl advance orders $hand"
		twctl advance orders $hand
		twctl watch -i 1s -f '{id} {deadline}' orders >>$dir/came
		slots_right $hand || wrong=1
		[ "$(wc -l <$dir/came)" = "$(awk -v hand=$hand '$2 <= hand' $dir/due |
			wc -l)" ] || came_wrong=1
		[ $hour -gt 47 ] || type twctl get orders 4711000
	done
	echo "  $(wc -l <$dir/came) orders came due."
	claim $came_wrong "at each of these hours those had come due whose time it was, no others"
	sed 's/000000000$//' $dir/came | sort -n | cmp -s - $dir/due
	claim $? "all that were not cancelled came once, moved ones at their new time"
	claim $wrong "slot and Cycle-Num were right at each of these hours"
	twctl destroy orders
}

text_messages()
{
	echo
	echo "3. Text messages at a time of the wall clock"
	echo
	type twctl create texts --clock realtime --slots 60
	now=$(date +%s)
	time=$(date -d "@$((now + 8))" +%T)
	echo "  # twctl batch texts                 ($texts times: add ID at $time)"
	seq $texts | sed "s/.*/add & at $time/" | twctl batch texts >$dir/answers
	type twctl show texts
	twctl watch -n $texts -i 30s -f '{deadline} {taken}' texts >$dir/came
	# Numbers of 19 digits are more than awk can count.
	sed 's/\(.*\)\(.\{9\}\) \(.*\)\(.\{9\}\)$/\1 \2 \3 \4/' $dir/came | awk -v at=$((now + 8)) '
		{ late = ($3 - $1) * 1e9 + $4 - $2 }
		$1 != at || $2 != 0 { wrong++ }
		late < 0 { early++ }
		NR == 1 || late < first { first = late }
		late > last { last = late }
		END { print NR, wrong + 0, early + 0, int(first / 1e6), int(last / 1e6) }
	' >$dir/compared
	read -r came wrong early first last <$dir/compared
	claim $((came != texts || wrong)) "all $came texts were due at $time"
	claim "$early" "none of them came before"
	figure "texts: first and last after" "$first and $last ms"
	twctl destroy texts
}

echo "Timing wheels at their jobs. This takes about a minute."
echo
silent_users
delayed_orders
text_messages
echo
echo "Figures"
echo
cat $dir/figures
echo
echo "Claims"
echo
cat $claims
finish
