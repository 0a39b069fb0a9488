#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl on a real device: every verb, every way to fail, and that no expiration
# is lost. Needs the module loaded, root, and beside itself: results.sh, twctl,
# skew.so. Prints TAP. "make guest-tests" runs it in a guest.
set -u
# A command that hangs is ended by timeout, and has failed.
twctl="timeout 60 $PWD/twctl"
tool=$twctl
later=/tmp/json
tmp=/tmp/twctl
mkdir -p $tmp
chmod 777 $tmp
. ./results.sh

# pending WHEEL: how many tokens are on it
pending()
{
	$twctl -o name,pending --no-headings | awk -v wheel="$1" '$1 == wheel { print $2 }'
}

# fill WHEEL COUNT: registers so many tokens, which are due one after the other, ids from 1
# on, and puts the hand of the manual wheel behind the last of them
fill()
{
	seq "$2" | sed 's/.*/add & &s/' | $twctl batch "$1" >/dev/null
	$twctl advance "$1" "+$2"
}

# begin COUNT VERB ARGUMENT...: runs twctl in the background as $pool, and waits until it has
# printed so many lines to $tmp/out; commands that wait for $tmp/go go on when that file is
# there
begin()
{
	lines=$1
	shift
	rm -f $tmp/go $tmp/out
	$PWD/twctl "$@" >$tmp/out 2>$tmp/err &
	pool=$!
	settle $tmp/out "$lines"
}

as_nobody()
{
	su nobody -s /bin/sh -c "$*" >$tmp/out 2>$tmp/err
}

until_go()
{
	until [ -e $tmp/go ]; do
		usleep 50000
	done
}

wheels()
{
	gives 0 wheels
	json '.wheels | length' 0 -J
	gives 0 create plain
	gives 0 create manual --clock manual --slots 3600 --start 1 --max-tokens 2
	gives 0 create boot -c boottime -t 100ms -s 31 -m 10
	gives 0 create real -c realtime
	gives 0
	prints '^NAME *OWNER MODE *CLOCK *TICK SLOTS PENDING *MAX NEXT STATE$'
	prints '^plain *root *rw------- monotonic *1s *3600 *0 10000 *- running$'
	prints '^boot *root *rw------- boottime *100ms *31 *0 *10 *- running$'
	json '[.wheels[].name]' '["boot","manual","plain","real"]' -J
	json '.wheels[0].tick, .wheels[0].next' '100000000
null' wheels -J
	gives 0 -o NAME,ids,cookies --no-headings
	prints '^plain *yes *yes$'
	is 'lines without headings' "$(wc -l <$tmp/out)" 4
	gives 0 -o +number
	prints 'STATE *NUMBER$'
	gives 0 -b -o name,tick
	prints '^plain *1000000000$'
	gives 0 -b -o bytes --no-headings
	is 'sizes that are not plain numbers' "$(grep -cv '^ *[0-9]*$' $tmp/out)" 0
	gives 0 -o name,bytes --no-headings
	prints '^plain *[0-9.]*K$'
	json '[.wheels[].bytes | type] | unique' '["number"]' -J -o bytes
	# A wheel with the same settings may be made again, a wheel with other settings may not.
	gives 0 create plain
	gives 0 create plain --slots 3600 --tick 1s
	refuses 5 "there is a wheel 'plain'" create plain --exclusive
	refuses 5 'other settings' create plain --slots 60
	# The message names the error and what would be right, and nothing is made.
	refuses 2 "WHEEL 'a b': not 1 to 63" create 'a b'
	refuses 2 "WHEEL '../x'" create ../x
	refuses 2 "WHEEL ''" create ''
	refuses 2 "--slots '0': not a number from 1 to 65536" create new --slots 0
	refuses 2 "--slots '3x'" create new --slots 3x
	refuses 2 "--slots '-3'" create new --slots -3
	refuses 2 "--slots '99999999999999999999'" create new --slots 99999999999999999999
	refuses 2 "--tick '1ns': not from 100000ns to 86400000000000ns" create new --tick 1ns
	refuses 2 "--tick '10us': not from 100us to 86400000000us" create new --tick 10us
	refuses 2 "--tick '48h': not from 100us to 24h" create new --tick 48h
	# A word that is nearly right gets a hint.
	refuses 2 "--tick 'soon': not a span such as 30s" create new --tick soon
	refuses 2 "--max-tokens '0'" create new --max-tokens 0
	refuses 2 "--clock 'sun': not monotonic, boottime, realtime or manual" create new --clock sun
	refuses 2 "--start '5': only with a manual clock" create new --start 5
	refuses 3 "no wheel 'new'" list new
	is 'wheels after all that' "$($twctl -o name --no-headings | wc -l)" 4
	refuses 3 "no wheel 'new'" destroy new
	gives 3 destroy boot new real
	is 'wheels left' "$($twctl -o name --no-headings | wc -l)" 2
}

# The test sets the clock, and deadlines, slots and laps are right to the digit.
tokens()
{
	gives 0 add manual 7 3610s --cookie 0x10
	prints '^ *7 *[0-9]* registered no'
	json '.tokens[0] | .id, .slot, .cycle, .cookie, .left, .state, .when, .timeout, .period, .base' '7
11
1
16
3610000000000
"pending"
null
3610000000000
null
null' get manual 7 -J
	json '.tokens[0] | .deadline, ."lease-end", .delivery, .attempts' '3611000000000
null
null
null' get manual 7 -J
	gives 0 add manual 18446744073709551615 clock 7220000000000
	# jq would round this number. As a text it has the right digits.
	json '.tokens[0].id' '"18446744073709551615"' get -J manual 18446744073709551615
	gives 0 get manual -H "$($twctl get manual 7 -o handle --no-headings | xargs)"
	prints '^ *7 '
	json '.tokens[0] | .id, .deadline | type' '"number"
"number"' get -J manual 7
	json '.tokens[0] | .slot, .cycle, .timeout' '20
2
null' get -J manual 18446744073709551615
	json '.tokens[] | length' '15
15' list manual -J
	gives 0 list manual
	prints '^ *ID COOKIE WHEN *LEFT TIMEOUT PERIOD SLOT CYCLE STATE$'
	prints '^ *7 *16 - *1h *1h *- *11 *1 pending$'
	refuses 6 'full' add manual 9 5s
	refuses 5 'id 7 is pending' add manual 7 5s
	refuses 3 'no token of id 9' get manual 9
	gives 3 get manual 9 7
	prints '^ *7 '
	gives 0 list manual
	is 'the next one due first' "$(awk '{ print $1 }' $tmp/out | xargs)" \
		'ID 7 18446744073709551615'
	gives 0 list manual --to 'in 3610s' --no-headings -o id
	is 'due by then' "$(cat $tmp/out | xargs)" 7
	gives 0 list manual --from 'in 3611s' --no-headings -o id
	is 'due from then on' "$(cat $tmp/out | xargs)" 18446744073709551615
	gives 0 list manual --from 'clock 3611000000000' --to 'clock 3611000000000' -o id,deadline
	prints '^ *7 *3611000000000$'
	refuses 2 'manual clock' list manual --from 'at 12:00'
	gives 0 list manual --to 'in 1s'
	is 'nothing to list' "$(wc -c <$tmp/out)" 0

	gives 0 touch manual 7
	prints '^ *7 *- touched *no'
	refuses 1 'no timeout' touch manual 18446744073709551615
	gives 0 move manual 7 10s
	prints 'moved *no'
	gives 0 advance manual +10
	json '.tokens[0] | .state, .left' '"due"
0' get manual 7 -J
	json '.tokens[0] | .result, ."was-due", .deadline' '"moved"
true
16000000000' move manual 7 in 5s -J -o +deadline
	gives 0 cancel manual 7
	prints '^ *7 *- cancelled no'
	refuses 3 'id 7' cancel manual 7
	refuses 3 'id 7' touch manual 7
	refuses 3 'id 7' move manual 7 5s
	gives 0 touch manual 8 --register 20s --cookie 3
	prints '^ *8 *[0-9]* registered no'
	gives 0 touch manual 8 --register 20s
	prints '^ *8 *- touched'
	json '.tokens[0] | .cookie, .left' '3
20000000000' get manual 8 -J
	handle=$($twctl get manual 8 -o handle --no-headings | xargs)
	gives 0 touch manual --handle "$handle"
	prints "^ *- *$handle touched"
	gives 0 move manual -H "$handle" 2s
	gives 0 get manual -H "$handle"
	prints '^ *8 '
	gives 0 cancel manual -H "$handle"
	refuses 3 "no token of handle $handle is pending" cancel manual -H "$handle"
	refuses 3 "no token of handle $handle is pending" get manual -H "$handle"

	refuses 2 "ID '-': not a number" add manual - 5s
	refuses 2 "--cookie 'x'" add manual 1 5s --cookie x
	refuses 2 'reach' add manual 1 clock 9223372036854775807
	gives 0 create fine --clock manual --tick 100us
	refuses 2 'reach' add fine 1 224y
	gives 0 destroy fine
	gives 0 create fine --clock manual --tick 100us --touch-words
	refuses 2 'reach: .*with touch words.*2^30 ticks' add fine 1 30h
	refuses 2 'reach: .*with touch words.*2^30 ticks' add fine 1 clock 108000000000000 --timeout 5s
	gives 0 add fine 1 clock 108000000000000
	gives 0 destroy fine
	# A token with a point of time and a timeout can be touched.
	gives 0 create both --clock manual --start 1
	gives 0 add both 1 clock 9000000000 --timeout 20s
	json '.tokens[0] | .deadline, .timeout' '9000000000
20000000000' get both 1 -J
	json '.tokens[0] | .result, .left' '"touched"
20000000000' touch both 1 -J
	gives 0 add both 2 5s -t 30s --jitter 0
	json '.tokens[0] | .left, .timeout' '5000000000
30000000000' get both 2 -J
	refuses 2 "--timeout 'x': not a span" add both 3 5s --timeout x
	gives 0 destroy both

	refuses 2 'not one with --clock manual' advance plain 5
	is 'tokens after all that' "$(pending manual)" 1
}

# The processes that have a wheel open are listed, also after the wheel was destroyed.
holders()
{
	gives 0 create held
	gives 0 create other
	sleep 1000 <>/dev/timewheels/held 8<>/dev/timewheels/held 9<>/dev/timewheel &
	holder=$!
	settle_holder
	gives 0 holders
	prints '^WHEEL *PID USER COMMAND UNIT$'
	prints "^held *$holder root *sleep "
	prints "^- *$holder root *sleep "
	is 'lines, a wheel once' "$(grep -c sleep $tmp/out)" 2
	json '.holders[] | .wheel, .pid, .destroyed' "\"held\"
$holder
false" holders -J held
	gives 0 holders other
	is 'nobody has that one' "$(wc -l <$tmp/out)" 0
	as_nobody $twctl holders held
	is 'status for one who does not see all' $? 4
	is 'it is told' "$(grep -c 'processes of other users are not seen: sudo' $tmp/err)" 1
	gives 0 destroy held
	json '.holders[] | .wheel, .destroyed' '"held"
true' holders -J held
	kill $holder
	wait $holder
	gives 0 holders held
	is 'nobody any more' "$(wc -l <$tmp/out)" 0
	gives 0 destroy other
}

# Waits until the shell has opened its files and become sleep.
settle_holder()
{
	until [ "$(cat /proc/$holder/comm)" = sleep ]; do
		usleep 10000
	done
}

# More tokens are printed than are kept at a time to be printed.
many()
{
	gives 0 create many --clock manual
	# shellcheck disable=SC2046 # one word each
	gives 0 touch many --register 5s -o id --no-headings $(seq 5000)
	is 'registered' "$(wc -l <$tmp/out)" 5000
	gives 0 list many
	is 'listed, below one line of headings' "$(grep -c ID $tmp/out)/$(wc -l <$tmp/out)" 1/5001
	json '.tokens | length' 5000 list many -J -o id
	gives 0 destroy many
}

without_ids()
{
	gives 0 create bare --no-ids --no-cookies --clock manual
	gives 0 add bare - 5s
	prints '^ *- *[0-9]* registered'
	handle=$($twctl list bare -o handle --no-headings | xargs)
	gives 0 list bare
	prints '^ *- *- '
	gives 0 touch bare -H "$handle"
	refuses 2 'has no ids' touch bare "$handle"
	refuses 2 'has no ids' get bare "$handle"
	refuses 2 "ID '5': not -" add bare 5 5s
	refuses 2 'has no cookies' add bare - 5s --cookie 5
	gives 0 advance bare 5
	gives 0 watch bare -n 1 --format '{handle} {late}'
	prints "^$handle 0$"
	gives 0 destroy bare
}

# Wall time is the time of a realtime wheel, and a delay on other wheels.
wall_time()
{
	gives 0 create real -c realtime
	export TZ=CET-1CEST,M3.5.0,M10.5.0/3
	gives 0 add real 1 at 2100-12-01 08:00
	json '.tokens[0] | .deadline, .when' '"4131327600000000000"
"2100-12-01T08:00:00.000000+01:00"' get real 1 -J -o deadline,when
	gives 0 move real 1 at 2100-07-01 08:00 UTC
	json '.tokens[0].when' '"2100-07-01T10:00:00.000000+02:00"' get real 1 -J
	gives 0 get real 1
	prints '2100-07-01 10:00:00'
	is 'lines of more than 80 characters' "$(grep -c '.\{81\}' $tmp/out)" 0
	gives 0 list real --from 'at 2100-01-01' --to 'at 2101-01-01' -o id --no-headings
	is 'due in 2100' "$(xargs <$tmp/out)" 1
	gives 0 list real --to 'at 2100-01-01'
	is 'due before 2100' "$(wc -c <$tmp/out)" 0
	refuses 1 'no timeout' touch real 1
	refuses 3 'id 2' get real 2
	gives 0 add real 2 --past at 1999-01-01
	gives 0 watch real -n 1 -f '{id}'
	prints '^2$'
	# On a busy machine some seconds may pass between two reads of the clock.
	now=$(date +%s)
	gives 0 add plain 1 at "@$((now + 1000))"
	left=$($twctl get plain 1 -b -o left --no-headings)
	[ "$left" -gt 900000000000 ] && [ "$left" -le 1001000000000 ]
	result $? "a delay of $left"
	gives 0 touch plain 1
	gives 0 move plain 1 at 1999-01-01 --past
	json '.tokens[0].state' '"due"' get plain 1 -J
	gives 0 cancel plain 1
	unset TZ
	gives 0 destroy real
}

# Events by plain reads, as timewheel-language(7) tells.
plain_reads()
{
	gives 0 create orders --tick 10ms
	gives 0 add orders 4711 100ms --cookie 5
	gives 0 add orders 4712 200ms --cookie 6
	for want in '4711 5' '4712 6'; do
		dd if=/dev/timewheels/orders bs=56 count=1 2>$tmp/err | od -A n -t u8 -v >$tmp/out
		is 'id and cookie of an event' "$(xargs <$tmp/out | cut -d' ' -f1,3)" "$want"
	done
	gives 0 destroy orders
}

# Operations come from a pipe, and each gets its answer, in order.
batch()
{
	gives 0 create piped --clock manual --max-tokens 30000 --lease 10s --periods
	cat >$tmp/in <<-'END'
		add 1 5s --cookie 7
		# no answer

		  add 2 in 1h 30m --timeout=20s
		add 1 5s
		touch 1
		{"verb": "add", "key": 3, "time": "clock 9000000000", "cookie": 9007199254740991}
		{"verb": "move", "key": "3", "time": "2s"}
		move 3 7s
		add 4 --every 3s
		touch 99
		touch 5 -r 4s
		cancel 5
		{"verb": "cancel", "key": 5}
	END
	$twctl batch piped <$tmp/in >$tmp/answers 2>$tmp/err
	is 'status with errors among the answers' $? 1
	is 'messages' "$(wc -c <$tmp/err)" 0
	# The numbers must not be taken for results of this test.
	sed 's/"*[0-9]\{9,\}"*/N/g; s/^/| /' $tmp/answers | cut -d' ' -f1-5 >$tmp/out
	is 'answers' "$(cat $tmp/out)" '| ok registered N N
| ok registered N N
| error EEXIST there is
| ok touched - N
| {"result":"registered","handle":N,"deadline":N,"was-due":false}
| {"result":"moved","deadline":N,"was-due":false}
| ok moved - N
| ok registered N N
| error ENOENT there is
| ok registered N N
| ok cancelled - N
| {"error":"ENOENT","message":"there is no such'
	json '.tokens[0] | .cookie, .left' '9007199254740991
7000000000' get piped 3 -J
	json '.tokens[0].period' '3000000000' get piped 4 -J
	# The reader holds the delivery as long as it waits for more.
	$PWD/twctl watch piped -f '{id}:{delivery}' >$tmp/seen &
	holder=$!
	gives 0 advance piped +3
	until grep -q '^4:1$' $tmp/seen; do
		sleep 0.1
	done
	printf 'ack 4:1\nack 4:1\ndelete 2' | $twctl batch piped >$tmp/out 2>$tmp/err
	prints '^ok acked '
	prints '^error ESTALE '
	is 'an answer to a line without end' "$(sed -n '$s/ok deleted.*/deleted/p' $tmp/out)" deleted
	release

	# An error in a line is told, and the next line is carried out.
	printf '%s\n' 'get 1' 'frob 1' 'add' 'add 9' 'add x 5s' 'add 9 soon' 'ack 1' \
		'ack 1:x' 'add 9 5s --cookie' 'add 9 5s --json' 'add 9 25:00' 'cancel 1 2' \
		'add 9 5s --timeout 5parsecs' '{"key": 1}' '{broken' '{"verb": "add"}' \
		'touch 1 --jitter' 'kick 1' 'add 9 noon' 'cancel 1' >$tmp/in
	$twctl batch piped <$tmp/in >$tmp/out 2>$tmp/err
	is 'wrong lines' "$(grep -c EINVAL $tmp/out)" 19
	prints 'error EINVAL get is no operation on a token'
	prints 'error EINVAL no verb frob'
	prints "error EINVAL option --cookie needs an argument: N"
	prints "error EINVAL TIME '25:00': hours go from 0 to 23"
	prints '{"error":"EINVAL","message":"no \\"verb\\" in the object"}'
	is 'the line after them' "$(sed -n '$s/ .*//p' $tmp/out)" ok
	refuses 3 "no wheel 'none'" batch none

	# The lines are more than a read brings. Later each answer comes before the next line is
	# written.
	seq 100 8099 | sed 's/.*/add & 1h/' | $twctl batch piped >$tmp/out
	is 'registered through the pipe' "$(grep -c '^ok registered' $tmp/out)" 8000
	mkfifo $tmp/to $tmp/from
	$twctl batch piped <$tmp/to >$tmp/from &
	exec 8>$tmp/to 9<$tmp/from
	echo 'cancel 100' >&8
	read -r answer <&9
	is 'an answer while the pipe is open' "${answer%% [-0-9]*}" 'ok cancelled'
	# Each line has its answer, also when the wheel has gone.
	gives 0 destroy piped
	echo 'cancel 101' >&8
	read -r answer <&9
	is 'an answer without a wheel' "${answer%% [a-z]*}" 'error ENODEV'
	exec 8>&- 9<&-
	wait $!
	is 'status without a wheel' $? 8
}

drawing()
{
	gives 0 create ring --clock manual --slots 31 --start 3
	for token in '4 100s' '1 1s' '2 1s' '3 32s'; do
		$twctl add ring $token >/dev/null
	done
	gives 0 list ring --from 'in 2s' -o id --no-headings
	is 'the next one due first' "$(xargs <$tmp/out)" '3 4'
	gives 0 show ring
	prints '>3<'
	prints '\[4\]'
	prints '31 slots of 1s'
	prints 'slot 3 of lap 0'
	prints 'pending 4 of'
	prints 'laps to go:  0: 2  1: 1  3: 1$'
	json '[.slots[] | .slot, .hand, .tokens, .lap, .later]' \
		'[4,false,3,2,1,10,false,1,0,1]' show ring -J
	gives 0 show ring -o slot,left -b --no-headings
	prints '^ *4 *1000000000$'
	gives 0 create one --slots 1 --clock manual
	gives 0 show one
	prints '>0<'
	gives 0 create large --slots 65536
	gives 0 show large
	prints '\[n\]: slots n to n+2047'
	refuses 3 'no wheel' show none
	gives 0 destroy ring one large
}

watching()
{
	gives 0 create watched --clock manual
	fill watched 5
	gives 0 watch watched -n 2
	is 'a line each, for people' "$(cat $tmp/out)" '1 0 1s late 4s
2 0 2s late 3s'
	is 'not one more is taken' "$(pending watched)" 3
	gives 0 watch watched -n 1 -f 'id={id} c={cookie} of {wheel} {not one} {}'
	prints '^id=3 c=0 of watched {not one} {}$'
	json .id,.late '4
1000000000' watch watched -n 1 -J
	gives 9 watch watched --idle-timeout 50ms
	is 'until nothing comes' "$(wc -l <$tmp/out)" 1
	$twctl add watched 18446744073709551615 0 -c 9007199254740992 >/dev/null
	json .id,.cookie '"18446744073709551615"
9007199254740992' watch watched -n 1 -J
	gives 0 create walls
	$twctl add walls 7 0 -c 5 >/dev/null
	gives 0 watch walls -n 1
	prints "^7 5 $(date +%F) [0-9:]* late [0-9.]*[a-z]*$"
	gives 0 destroy walls
	gives 0 watch watched -n 0
	refuses 3 'no wheel' watch none

	# The reader goes, and the events that it did not get are still on the wheel.
	$twctl add watched 1 0 >/dev/null
	$twctl add watched 2 10s >/dev/null
	: >$tmp/err
	$twctl watch watched | head -n 1 >$tmp/out
	is 'head gets a line' "$(cut -d' ' -f1 $tmp/out)" 1
	$twctl advance watched +10
	is 'the next is still there' "$(pending watched)" 1
	gives 0 cancel watched 2

	# Nothing can be written, and the taken tokens are put back as they were.
	fill watched 5
	$twctl move watched 3 0 >/dev/null
	$twctl watch watched >/dev/full 2>$tmp/err
	is 'status on a full disk' $? 1
	is 'it says so in one line' "$(grep -c 'No space left' $tmp/err)/$(wc -l <$tmp/err)" 1/1
	is 'all are still there' "$(pending watched)" 5
	gives 0 watch watched -n 5
	is 'and come again' "$(awk '{ print $1 }' $tmp/out | sort | xargs)" '1 2 3 4 5'

	# The reader is slow and a signal comes: each token is printed or still there.
	fill watched 40
	long=$(printf '%03000d' 0)
	mkfifo $tmp/fifo
	rm -f $tmp/go
	{ until_go; grep -c "$long" >$tmp/lines; } <$tmp/fifo &
	reader=$!
	$PWD/twctl watch watched -f "{id} $long" >$tmp/fifo 2>$tmp/err &
	watcher=$!
	sleep 1
	kill -TERM $watcher
	wait $watcher
	is 'it ends by the signal' $? 143
	: >$tmp/go
	wait $reader
	left=$(pending watched)
	is "printed $(cat $tmp/lines) + $left left" $(($(cat $tmp/lines) + left)) 40
	[ "$left" -gt 0 ]
	result $? 'the pipe was full'
	gives 9 watch watched -i 10ms

	# A slow reader gets all lines, although a pipe holds few.
	fill watched 40
	$twctl watch watched -n 40 -f "{id} $long" | { sleep 1; grep -c "$long" >$tmp/out; }
	is 'a slow reader gets all' "$(cat $tmp/out)" 40

	# A reader without the right to register says which token it could not put back.
	chmod 644 /dev/timewheels/watched
	$twctl add watched 77 0 -c 5 >/dev/null
	as_nobody "$twctl watch watched >/dev/full"
	is 'a message names a token that cannot be put back' \
		"$(grep -c 'not put back.*id 77 cookie 5 deadline' $tmp/err)" 1
	$twctl add watched 78 0 >/dev/null
	as_nobody "$twctl watch watched -n 1"
	is 'reading is enough to watch' "$(cut -d' ' -f1 $tmp/out)" 78
	as_nobody "$twctl cancel watched 78"
	is 'but not to change it' $? 4

	# A signal, or the end of the wheel, comes while watch waits.
	for end in 143 8; do
		$twctl add watched 79 0 >/dev/null
		: >$tmp/lines
		rm -f $tmp/lines
		$PWD/twctl watch watched >$tmp/lines 2>$tmp/err &
		watcher=$!
		settle $tmp/lines 1
		case $end in
		143) kill -TERM $watcher ;;
		8) $twctl destroy watched ;;
		esac
		wait $watcher
		is 'it ends' $? $end
	done
	is 'it says why' "$(grep -c "'watched' has been destroyed" $tmp/err)" 1
}

commands()
{
	gives 0 create work --clock manual
	fill work 3
	gives 0 exec work -n 3 -j 2 -- sh -c \
		'echo $TIMEWHEEL_ID,{id},$TIMEWHEEL_COOKIE,$TIMEWHEEL_WHEEL,$TIMEWHEEL_LATE,{late},$TIMEWHEEL_TRY'
	is 'environment and arguments' "$(sort $tmp/out | xargs)" \
		'1,1,0,work,2000000000,2000000000,1 2,2,0,work,1000000000,1000000000,1 3,3,0,work,0,0,1'
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 3 commands, 0 failed, 0 retries'

	# A slow command delays no other command.
	fill work 4
	rm -f $tmp/go
	gives 0 exec work -n 4 -j 2 -- sh -c 'case {id} in
		1) until [ -e /tmp/twctl/go ]; do usleep 50000; done ;;
		4) : >/tmp/twctl/go ;;
	esac; [ {id} = 4 ] || echo {id}'
	is 'the slow one is the last' "$(xargs <$tmp/out)" '2 3 1'

	# A command that fails is tried again, and delays no other command.
	fill work 3
	gives 10 exec work -n 3 --tries 3 -- sh -c 'echo {id}.$TIMEWHEEL_TRY; [ {id} != 2 ]'
	is 'tries' "$(grep -v '^{' $tmp/out | xargs)" '1.1 2.1 2.2 2.3 3.1'
	grep '^{' $tmp/out |
		tells 'the one that failed is printed' '[.wheel, .id, .late]' '["work",2,1000000000]'
	is 'each failure has a message' "$(grep -c 'id 2 handle [0-9]*: exit status 1, try [123] of 3' $tmp/err)" 3
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 3 commands, 1 failed, 2 retries'
	fill work 1
	gives 0 exec work -n 1 --tries 6 -- sh -c '[ $TIMEWHEEL_TRY = 3 ]'
	fill work 1
	gives 10 exec work -n 1 -- sh -c 'kill -9 $$'
	is 'a killed one' "$(grep -c 'killed by signal 9' $tmp/err)" 1
	fill work 1
	gives 9 exec work -i 50ms -- true

	# A command that hangs is ended, and has failed whatever its status is; then it is killed.
	fill work 3
	gives 10 exec work -n 3 -j 3 -t 1s -- sh -c 'case {id} in
		1) exit ;;
		2) trap "exit 0" TERM ;;
		3) trap "" TERM ;;
	esac; while :; do sleep 1; done'
	is 'one that ends by SIGTERM' "$(grep -c 'id 2 .*: exit status 0 after --timeout, try 1 of 1' $tmp/err)" 1
	is 'one that does not' "$(grep -c 'id 3 .*: killed by signal 9 after --timeout' $tmp/err)" 1
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 3 commands, 2 failed, 0 retries'
	fill work 1
	gives 10 exec work -n 1 -t 300ms --tries 2 -- sleep 100
	is 'it is tried again' "$(grep -c 'killed by signal 15 after --timeout' $tmp/err)" 2

	# One command gets many tokens.
	$twctl touch work -r 1s $(seq 1500) >/dev/null
	$twctl advance work +1
	gives 0 exec work -n 1500 -b 1000 -- sh -c \
		'echo $TIMEWHEEL_WHEEL {wheel} $TIMEWHEEL_COUNT ${TIMEWHEEL_ID-none}; cat'
	is 'two commands' "$(grep -v '^[0-9]' $tmp/out | xargs)" \
		'work work 1000 none work work 500 none'
	is 'each id once, one a line' "$(grep '^[0-9]*$' $tmp/out | sort -n | xargs)" "$(seq 1500 | xargs)"
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 2 commands, 0 failed, 0 retries'
	fill work 5
	gives 10 exec work -n 5 -b 3 --tries 2 -- sh -c 'grep -q 5 || exit 3'
	is 'it gets the same again' "$(grep -c '3 tokens, the first with id 1 handle [0-9]*: exit status 3, 3 again' $tmp/err)" 1
	tells 'what has failed is printed' .id '1
2
3' <$tmp/out
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 2 commands, 1 failed, 1 retries'
	fill work 1
	gives 9 exec work -b 10 -i 50ms -- true

	# A signal comes: commands that run may finish, and the other tokens are left alone.
	fill work 5
	slow='echo start {id}; until [ -e /tmp/twctl/go ]; do usleep 50000; done; echo end {id}'
	begin 2 exec work -j 2 -- sh -c "$slow"
	kill -TERM $pool
	: >$tmp/go
	wait $pool
	is 'a signal is no failure' $? 0
	is 'what ran has ended' "$(sort $tmp/out | xargs)" 'end 1 end 2 start 1 start 2'
	is 'the others are still there' "$(pending work)" 3
	begin 1 exec work -n 1 --tries 6 -- sh -c "$slow; exit 1"
	kill -INT $pool 2>/dev/null
	kill -HUP $pool
	: >$tmp/go
	wait $pool
	is 'one that fails then' $? 10
	is 'is not run again' "$(grep -c start $tmp/out)" 1

	# The wheel is destroyed: commands that run may finish.
	begin 2 exec work -j 4 -- sh -c "$slow"
	$twctl destroy work
	: >$tmp/go
	wait $pool
	is 'status when the wheel is destroyed' $? 8
	is 'what ran has ended' "$(cut -d' ' -f1 $tmp/out | sort | uniq -c | xargs)" '2 end 2 start'
	is 'it says so' "$(grep -c 'has been destroyed' $tmp/err)" 1

	# No process can be started: the tokens taken for commands are put back.
	gives 0 create work --clock manual
	chmod 666 /dev/timewheels/work
	fill work 2
	su nobody -s /bin/sh -c "ulimit -u 1; exec $PWD/twctl exec work -i 5s -- true" >$tmp/out 2>$tmp/err
	is 'status without processes' $? 10
	is 'it says so' "$(grep -c 'cannot start a process' $tmp/err)" 1
	is 'the tokens are still there' "$(pending work)" 2
	gives 0 watch work -n 1
	refuses 3 'no wheel' exec none -- true
	is 'tokens after all that' "$(pending work)" 1
	gives 0 destroy work
}

# A wheel can be set up with these settings, and tells them.
settings()
{
	gives 0 create set --clock realtime --lease 30s --max-held 7 --periods --slack 20ms \
		--touch-words
	json '.wheels[-1] | .lease, ."max-held", .periods, .slack, ."touch-words", .state, .held' '30000000000
7
true
20000000
true
"running"
0' wheels -J -o name,lease,max-held,periods,slack,touch-words,state,held
	gives 0 create set -c realtime -l 30s --max-held 7 --periods --slack 20ms --touch-words
	refuses 5 'other settings' create set -c realtime -l 30s --periods --slack 20ms --touch-words
	gives 0 destroy set
	gives 0 create set -l 30s --max-tokens 70000
	json '.wheels[-1] | ."max-held"' 65536 wheels -J -o max-held
	gives 0 destroy set
	gives 0 create set
	json '.wheels[-1] | .lease, .periods, .slack, ."touch-words"' 'null
false
0
false' wheels -J -o lease,periods,slack,touch-words
	gives 0 destroy set

	refuses 2 "--lease '10ms': not as long as a tick" create new --lease 10ms
	refuses 2 "--lease '300y': longer than 292 years" create new --lease 300y
	refuses 2 "--lease 'x': not a span" create new --lease x
	refuses 2 "--max-held '1': only with a lease" create new --max-held 1
	refuses 2 "--max-held '0': not a number from 1 to 10000" create new -l 30s --max-held 0
	refuses 2 "--max-held '6': not a number from 1 to 5" create new -l 30s --max-tokens 5 --max-held 6
	refuses 2 "--slack '1s': not with a manual clock" create new -c manual --slack 1s
	refuses 2 "--slack '300y': longer than 292 years" create new --slack 300y
	refuses 3 "no wheel 'new'" list new
}

# hold WHEEL COUNT: registers so many tokens that are due, and the reader $holder takes them
# and holds them as long as it lives
hold()
{
	fill "$1" "$2"
	: >$tmp/held
	rm -f $tmp/held
	$PWD/twctl watch "$1" -f '{id}:{delivery}' >$tmp/held 2>/dev/null &
	holder=$!
	settle $tmp/held "$2"
}

release()
{
	kill $holder
	wait $holder 2>/dev/null
}

answers()
{
	gives 0 create leased --clock manual --lease 10s
	refuses 3 'there is no token of id 1; see' ack leased 1
	$twctl add leased 1 1s >/dev/null
	refuses 3 'no delivery of id 1 is out: it is pending' ack leased 1
	$twctl cancel leased 1 >/dev/null
	hold leased 5
	is 'what is out' "$(xargs <$tmp/held)" '1:1 2:1 3:1 4:1 5:1'
	gives 0 list leased --state held -o id,state,delivery,attempts,left --no-headings
	is 'is listed so' "$(sed 's/  */ /g; s/^ //' $tmp/out | head -n 1)" '1 held 1 1 10s'
	is 'all of them' "$(wc -l <$tmp/out)" 5
	json '.tokens[0] | .state, .delivery, .attempts, .left' '"held"
1
1
10000000000' get leased 1 -J -o state,delivery,attempts,left
	json '.tokens[0] | .deadline, ."lease-end", .timeout' 'null
15000000000
1000000000' get leased 1 -J
	json '.wheels[0] | .held, .pending' '5
0' wheels -J -o held,pending
	refuses 3 'no token of id 1 is pending' touch leased 1
	refuses 5 'id 1 is pending or held; see .twctl get leased 1' add leased 1 5s

	# The answer names the delivery by its number, or means the one that is out.
	gives 0 ack leased 1:1
	prints '^ *1 *- acked'
	json '.tokens[0] | .id, .result, .deadline' '2
"acked"
null' ack leased 2 -J -o id,result,deadline
	refuses 3 'delivery 2 of id 3 is not out any more' ack leased 3:2
	refuses 3 'there is no token of id 2; see' ack leased 2:1
	json '.tokens[0] | .result, .left' '"extended"
25000000000' extend leased 3 --lease 25s -J -o result,left
	json '.tokens[0].left' 25000000000 get leased 3 -J
	gives 0 extend leased 3
	json '.tokens[0].left' 25000000000 get leased 3 -J
	refuses 2 '--lease of id 3: not one that .* can reach' extend leased 3 -l 9223372036s
	gives 0 nack leased 3:1 --delay 5s
	prints '^ *3 *- nacked'
	json '.tokens[0] | .state, .left' '"pending"
5000000000' get leased 3 -J
	handle=$($twctl get leased 4 -o handle --no-headings | xargs)
	gives 0 nack leased -H "$handle:1"
	settle $tmp/held 6
	is 'that is delivered again' "$(sed 1,5d $tmp/held | xargs)" '4:2'
	gives 0 nack leased 5
	prints '^ *5 *- nacked'
	settle $tmp/held 7
	gives 0 delete leased 5
	prints '^ *5 *- deleted'
	refuses 3 'no token of id 5; see' delete leased 5
	gives 0 delete leased 4
	release
	json '.stats[0] | .held, .acked, .nacked, .lapsed, .returned, .deleted' '0
2
3
0
0
2' stats leased -J -o held,acked,nacked,lapsed,returned,deleted
	is 'what is left' "$($twctl list leased -o id,state --no-headings | xargs)" '3 pending'

	refuses 3 'no wheel' ack none 1
	refuses 3 'no wheel' delete none 1
	for verb in ack nack extend; do
		refuses 2 "'plain' has no leases.*--lease" $verb plain 1
	done
	refuses 2 "'plain' has no leases: .*twctl" delete plain 1
	chmod 444 /dev/timewheels/leased
	for verb in ack nack extend delete; do
		as_nobody "$twctl $verb leased 3"
		is "$verb needs the right to write" $? 4
	done
	gives 0 delete leased 3
	gives 0 destroy leased

	gives 0 create bare --no-ids --clock manual --lease 10s
	refuses 2 'has no ids' ack bare 1
	refuses 2 'has no ids' delete bare 1
	gives 0 destroy bare
}

# A delivery without an answer comes again, and is counted.
lapsing()
{
	gives 0 create leased --clock manual --lease 10s
	fill leased 2
	gives 0 watch leased -n 2 -f '{id}:{delivery}'
	is 'what was printed comes again, as nobody acked it' \
		"$($twctl list leased -o id,state,attempts --no-headings | xargs)" '1 due 1 2 due 1'
	gives 0 watch leased -n 2 -f '{id}:{delivery}'
	is 'its number' "$(sort $tmp/out | xargs)" '1:2 2:2'
	gives 0 show leased
	prints ' held 0 '
	gives 0 delete leased 1
	# The lease is over, and the next reader gets the token.
	: >$tmp/held
	rm -f $tmp/held
	$PWD/twctl exec leased -- sh -c 'echo; until [ -e /tmp/twctl/go ]; do usleep 50000; done' >$tmp/held 2>$tmp/err &
	holder=$!
	rm -f $tmp/go
	settle $tmp/held 1
	kill -STOP $holder
	$twctl advance leased +10
	is 'is told of' "$($twctl list leased -o id,state --no-headings | xargs)" '2 lapsed'
	gives 0 watch leased -n 1 --ack -f '{id}:{delivery}'
	is 'delivered to another' "$(cat $tmp/out)" 2:4
	kill -CONT $holder
	kill -TERM $holder
	: >$tmp/go
	wait $holder
	is 'a late answer gets a message' "$?, $(grep -c 'id 2 .*: its lease was over (.*; it may run again$' $tmp/err)" '1, 1'
	gives 0 destroy leased
}

acking()
{
	gives 0 create leased --clock manual --lease 10s
	fill leased 3
	gives 0 watch leased -n 2 --ack
	is 'two lines' "$(awk '{ print $1 }' $tmp/out | xargs)" '1 2'
	is 'and both are done' "$($twctl list leased -o id,delivery --no-headings | xargs)" '3 0'
	json '.id, .delivery, .missed' '3
1
0' watch leased -a -J -n 1
	fill leased 2
	$twctl watch leased -a >/dev/full 2>$tmp/err
	is 'status on a full disk' $? 1
	is 'nothing is done that was not printed' \
		"$($twctl list leased -o id,state --no-headings | sort | xargs)" '1 due 2 due'
	gives 9 watch leased -a -i 50ms
	is 'both come again' "$(awk '{ print $1 }' $tmp/out | sort | xargs)" '1 2'
	# The token comes again if another reader got it while its line was on the way.
	long=$(printf '%070000d' 0)
	$twctl add leased 3 0 >/dev/null
	rm -f $tmp/go $tmp/fifo
	mkfifo $tmp/fifo
	{ until_go; cat; } <$tmp/fifo >/dev/null &
	$PWD/twctl watch leased -a -n 1 -f "{id} $long" >$tmp/fifo 2>$tmp/err &
	watcher=$!
	tries=0
	until [ "$($twctl list leased -o state --no-headings)" = held ] || [ $tries = 600 ]; do
		tries=$((tries + 1))
		usleep 50000
	done
	$twctl advance leased +10
	gives 0 watch leased -a -n 1 -f '{id}:{delivery}'
	is 'another gets it' "$(cat $tmp/out)" 3:2
	: >$tmp/go
	wait $watcher
	is 'a late ack gets a message' \
		"$?, $(grep -c 'id 3 handle [0-9]*: printed, not acked: its lease was over .*; it may come again$' $tmp/err)" '1, 1'
	refuses 2 "--ack: wheel 'plain' has no leases: leave it out" watch plain --ack
	chmod 444 /dev/timewheels/leased
	as_nobody "$twctl watch leased --ack -i 10ms"
	is 'an ack needs the right to write' $? 4
	as_nobody "$twctl exec leased -i 10ms -- true"
	is 'exec as well' $? 4
	$twctl add leased 7 0 >/dev/null
	as_nobody "$twctl watch leased -n 1"
	is 'without acks reading is enough' "$?, $(cut -d' ' -f1 $tmp/out)" '0, 7'
	is 'but it comes again' "$($twctl list leased -o id,state --no-headings | xargs)" '7 due'
	gives 0 destroy leased
}

leased_commands()
{
	gives 0 create jobs --clock manual --lease 1h
	fill jobs 3
	gives 10 exec jobs -n 3 -- sh -c 'echo {id}.{delivery}.$TIMEWHEEL_DELIVERY.$TIMEWHEEL_TRY.$TIMEWHEEL_MISSED; [ {id} != 2 ]'
	is 'each is run once' "$(xargs <$tmp/out)" '1.1.1.1.0 2.1.1.1.0 3.1.1.1.0'
	is 'the failed one has a message' "$(grep -c 'id 2 handle [0-9]*: exit status 1, try 1, again in 1s$' $tmp/err)" 1
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 3 commands, 1 failed, 0 retries'
	is 'the others are done' "$($twctl list jobs -b -o id,state,left --no-headings | xargs)" '2 pending 1000000000'
	$twctl advance jobs +1
	gives 10 exec jobs -n 1 -- sh -c 'kill -9 $$'
	is 'it stays away for longer' "$(grep -c 'killed by signal 9, try 2, again in 2s$' $tmp/err)" 1
	$twctl advance jobs +2
	gives 10 exec jobs -n 1 -- false
	is 'and longer' "$(grep -c 'id 2 .*, try 3, again in 4s$' $tmp/err)" 1
	$twctl advance jobs +4
	gives 0 exec jobs -n 1 -- true
	is 'nothing is left' "$($twctl list jobs | wc -l)" 0
	gives 0 create batch --clock manual --lease 1h
	fill batch 4
	gives 10 exec batch -n 4 -b 3 -- grep -q 4
	is 'a batch fails as a whole' \
		"$(grep -c '3 tokens, the first with id 1 handle [0-9]*: exit status 1, 3 again$' $tmp/err)" 1
	is 'another is done' "$($twctl list batch -o id,state --no-headings | sort | xargs)" \
		'1 pending 2 pending 3 pending'
	gives 0 destroy batch

	# The time that a token stays away has an upper bound.
	gives 0 create often --clock manual --lease 1h
	$twctl add often 1 0 >/dev/null
	for left in 1 2 4 8 16 32 64 128 256 300 300; do
		$twctl exec often -n 1 -- false 2>/dev/null
		is 'back-off' "$($twctl get often 1 -b -o left --no-headings | xargs)" ${left}000000000
		$twctl advance often +$left
	done
	gives 0 destroy often

	# A signal comes: commands that run may finish and are answered, and no other token was
	# taken.
	fill jobs 5
	slow='echo start {id}; until [ -e /tmp/twctl/go ]; do usleep 50000; done; [ {id} = 1 ]'
	begin 2 exec jobs -j 2 -- sh -c "$slow"
	kill -TERM $pool
	: >$tmp/go
	wait $pool
	is 'status' $? 10
	is 'the one that failed waits, the others are untouched' \
		"$($twctl list jobs -o id,state,attempts --no-headings | sort -n | xargs)" \
		'2 pending 1 3 due 0 4 due 0 5 due 0'
	# exec is killed and answers nothing: the tokens that it had are back at once.
	begin 2 exec jobs -j 2 -- sh -c "$slow"
	kill -KILL $pool
	wait $pool 2>/dev/null
	: >$tmp/go
	is 'is back' "$($twctl list jobs -o id,state,attempts --no-headings | sort -n | xargs)" \
		'2 pending 1 3 due 1 4 due 1 5 due 0'
	# The wheel is destroyed: commands that run may finish.
	gives 0 create gone --clock manual --lease 1h
	fill gone 2
	begin 2 exec gone -j 2 -- sh -c "$slow; echo end"
	$twctl destroy gone
	: >$tmp/go
	wait $pool
	is 'the wheel was destroyed' "$?, $(grep -c end $tmp/out), $(grep -c 'has been destroyed' $tmp/err)" '8, 2, 1'
	chmod 666 /dev/timewheels/jobs
	su nobody -s /bin/sh -c "ulimit -u 1; exec $PWD/twctl exec jobs -i 5s -- true" >$tmp/out 2>$tmp/err
	is 'status without processes' $? 10
	json '.stats[0] | .nacked, .returned' '5
2' stats jobs -J -o nacked,returned
	is 'what was taken is given back' "$($twctl list jobs -o id,state --no-headings | sort -n | xargs)" \
		'2 pending 3 due 4 due 5 due'
	gives 0 destroy jobs

	# A periodic token is pending again.
	gives 0 create jobs --clock manual --lease 1h --periods
	$twctl add jobs 1 0 --every 10s >/dev/null
	gives 0 exec jobs -n 1 -- true
	is 'and again' "$($twctl list jobs -b -o id,state,left --no-headings | xargs)" '1 pending 10000000000'
	gives 0 destroy jobs

	# The lease is much shorter than the job, and still nobody else gets the token.
	gives 0 create jobs --tick 100ms --lease 3s
	$twctl add jobs 1 0 >/dev/null
	begin 1 exec jobs -n 1 -- sh -c 'echo; until [ -e /tmp/twctl/go ]; do usleep 50000; done'
	gives 9 watch jobs -i 8s
	is 'it is still held' "$($twctl list jobs -o id,state,delivery --no-headings | xargs)" '1 held 1'
	: >$tmp/go
	wait $pool
	is 'and done' "$?, $($twctl list jobs | wc -l)" '0, 0'
	gives 0 destroy jobs
}

# A token that failed too often is handed to another command, or printed, and ends.
giving_up()
{
	gives 0 create work --clock manual
	fill work 2
	gives 10 exec work -n 2 --tries 2 --failed 'echo failed {id} $TIMEWHEEL_TRY $TIMEWHEEL_WHEEL' -- \
		sh -c 'echo {id}.$TIMEWHEEL_TRY; [ {id} = 2 ]'
	is 'without leases' "$(xargs <$tmp/out)" '1.1 1.2 failed 1 2 work 2.1'
	is 'it is told' "$(grep -c 'id 1 .*, try 2 of 2, given up$' $tmp/err)" 1
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 3 commands, 1 failed, 1 retries'
	fill work 1
	gives 10 exec work -n 1 --tries 1 --failed 'exit 3' -- false
	is 'what fails there' "$(grep -c 'id 1 handle [0-9]*: --failed: exit status 3$' $tmp/err)" 1
	is 'has ended all the same' "$(pending work)" 0
	gives 0 destroy work

	gives 0 create jobs --clock manual --lease 1h --periods
	fill jobs 1
	$twctl add jobs 9 0 --every 1000s >/dev/null
	for try in 1 2; do
		gives 10 exec jobs -n 2 --tries 3 -- false
		is 'each comes again' "$(grep -c "id [19] .*, try $try of 3, again in ${try}s$" $tmp/err)" 2
		is 'and nothing is printed' "$(wc -c <$tmp/out)" 0
		$twctl advance jobs +$try
	done
	gives 10 exec jobs -n 2 --tries 3 -- false
	is 'both are given up' "$(grep -c 'id [19] .*, try 3 of 3, given up$' $tmp/err)" 2
	sort $tmp/out | tells 'and printed' '[.wheel, .id, .delivery]' '["jobs",1,3]
["jobs",9,3]'
	is 'one ends, one begins its next period' \
		"$($twctl list jobs -o id,state,attempts --no-headings | xargs)" '9 pending 0'
	$twctl advance jobs +1000
	gives 10 exec jobs -n 1 --tries 3 -- false
	is 'with its tries' "$(grep -c 'id 9 .*, try 1 of 3, again in 1s$' $tmp/err)" 1
	gives 0 delete jobs 9

	# Another command deals with the token, and a failure of that command is a nack.
	fill jobs 1
	gives 10 exec jobs -n 1 --tries 1 --failed 'cat; exit 4' -- sh -c 'echo cmd; exit 1'
	is 'it comes again' "$($twctl list jobs -b -o state,attempts,left --no-headings | xargs)" \
		'pending 1 1000000000'
	is 'and is told of' "$(grep -c 'id 1 handle [0-9]*: --failed: exit status 4, again in 1s$' $tmp/err)" 1
	is 'the sum' "$(tail -n 1 $tmp/err)" 'twctl: exec: 2 commands, 2 failed, 0 retries'
	$twctl advance jobs +1
	gives 0 exec jobs -n 1 --tries 1 --failed 'echo "$TIMEWHEEL_ID {delivery} $TIMEWHEEL_TRY"' -- echo cmd
	is 'then only this command runs' "$(cat $tmp/out)" '1 2 2'
	is 'and the token has ended' "$($twctl list jobs | wc -l)" 0

	# A reader that takes the token and dies counts as a failure, too.
	fill jobs 1
	gives 0 watch jobs -n 1
	gives 0 exec jobs -n 1 --tries 1 -- echo cmd
	tells 'it is printed' .id 1 <$tmp/out
	is 'and has ended' "$($twctl list jobs | wc -l)" 0

	# A line cannot be written: the token is not lost, and no more tokens are taken.
	fill jobs 2
	$twctl exec jobs --tries 1 -- false >/dev/full 2>$tmp/err
	is 'status on a full disk' $? 10
	is 'it is told' "$(grep -c 'cannot write what it prints: No space left on device; ending$' $tmp/err)" 1
	is 'both are there' "$($twctl list jobs -o id,state,attempts --no-headings | sort | xargs)" '1 due 1 2 due 0'
	gives 0 delete jobs 1 2

	# In a batch each token has a count of its own.
	fill jobs 3
	gives 0 watch jobs -n 1 -f '{id}'
	gives 10 exec jobs -n 3 -b 10 --tries 2 --failed 'echo $TIMEWHEEL_COUNT up; cat' -- \
		sh -c 'echo $TIMEWHEEL_COUNT; cat; exit 1'
	is 'what each command got' "$(xargs <$tmp/out)" '3 2 1 3 1 up 1'
	is 'it is told' \
		"$(grep -c '3 tokens, the first with id 2 handle [0-9]*: exit status 1, 2 again, 1 given up$' $tmp/err)" 1
	is 'the others come again' "$($twctl list jobs -o id,attempts --no-headings | sort | xargs)" '2 1 3 1'
	$twctl advance jobs +1
	$twctl add jobs 4 0 >/dev/null
	gives 10 exec jobs -n 3 -b 10 --tries 1 --failed 'echo $TIMEWHEEL_COUNT up; cat' -- \
		sh -c 'echo $TIMEWHEEL_COUNT; cat; exit 1'
	is 'what had failed before does not run' "$(sed 's/ up/+/' $tmp/out | sort | xargs)" '1 2 3 3+ 4 4'
	is 'nothing is left' "$($twctl list jobs | wc -l)" 0
	gives 0 destroy jobs
}

periods()
{
	gives 0 create cron --clock manual --periods
	gives 0 add cron 1 5s --every 10s --cookie 3
	prints '^ *1 *[0-9]* registered no'
	gives 0 add cron 2 --every 1m
	is 'when they are due first' "$($twctl list cron -b -o id,left --no-headings | xargs)" \
		'1 5000000000 2 60000000000'
	$twctl advance cron +5
	gives 0 watch cron -n 1 -f '{id} {cookie} {missed}'
	is 'it comes' "$(cat $tmp/out)" '1 3 0'
	json '.tokens[0] | .left, .period, .base, .timeout' '10000000000
10000000000
15000000000
null' get cron 1 -J
	$twctl advance cron +30
	gives 0 watch cron -n 1 -f '{deadline} {missed}'
	is 'for the last period, and those missed are counted' "$(cat $tmp/out)" '35000000000 2'
	json '.stats[0].missed' 2 stats cron -J -o missed
	json '.tokens[0].left' 10000000000 get cron 1 -J
	# A periodic token taken in vain is not put back, as it is pending again.
	$twctl advance cron +10
	$twctl watch cron >/dev/full 2>$tmp/err
	is 'is told of' "$?, $(grep -c 'not put back.*id 1 cookie 3 deadline 45000000000' $tmp/err)" '1, 1'
	gives 0 cancel cron 1
	$twctl advance cron +22
	gives 0 watch cron -n 1 -f '{id}'
	is 'a period from the deadline before' \
		"$($twctl list cron -b -o id,left --no-headings | xargs)" '2 53000000000'
	refuses 1 'no timeout' touch cron 2
	refuses 2 "--every '5s': wheel 'plain' has no periodic tokens.*--periods" add plain 1 --every 5s
	refuses 2 "--every '1ms': shorter than a tick of wheel 'cron': take 1000ms or more" add cron 3 --every 1ms
	gives 0 destroy cron
}

# lefts WHEEL FROM TO: the tokens have FROM to TO seconds left, and not all of them the same
# time
lefts()
{
	$twctl list "$1" -b -o left --no-headings >$tmp/out 2>$tmp/err
	awk -v from="$2" -v to="$3" '
		$1 < from * 1e9 || $1 > to * 1e9 { bad = 1 }
		!seen[$1]++ { different++ }
		END { exit bad || different < 2 }' $tmp/out
	result $? "from $2 s to $3 s are left"
}

spreading()
{
	gives 0 create spread --clock manual --periods
	for id in 1 2 3 4 5 6 7 8 9; do
		$twctl add spread $id 10s --jitter 1h >/dev/null
	done
	lefts spread 10 3610
	gives 0 cancel spread 1 2 3 4 5 6 7 8 9
	for id in 1 2 3 4 5 6 7 8 9; do
		$twctl add spread $id clock 100000000000 --jitter 1h >/dev/null
	done
	lefts spread 100 3700
	gives 0 cancel spread 1 2 3 4 5 6 7 8 9
	for id in 1 2 3 4 5 6 7 8 9; do
		$twctl add spread $id --every 1m --jitter 1h >/dev/null
	done
	lefts spread 60 3660
	json '.tokens[0].left' 5000000000 add spread 10 5s --jitter 0 -J -o left
	is 'tokens after all that' "$(pending spread)" 10
	gives 0 destroy spread
}

stopping()
{
	gives 0 create gate --clock manual
	$twctl add gate 1 0 >/dev/null
	gives 0 pause gate
	gives 0 -o name,state --no-headings
	prints '^gate *paused$'
	gives 9 watch gate -i 50ms
	is 'nothing comes' "$(wc -c <$tmp/out)" 0
	gives 0 show gate
	prints ' paused '
	gives 0 drain gate
	gives 0 -o name,state --no-headings
	prints '^gate *paused+draining$'
	gives 0 top gate -n 1 -d 20ms -o state,held,acked,nacked,lapsed --no-headings
	prints 'paused+draining *0 *0 *0 *0$'
	gives 0 stats -p gate
	prints '^timewheel_paused{wheel="gate"} 1$'
	prints '^timewheel_draining{wheel="gate"} 1$'
	prints '^timewheel_held_tokens{wheel="gate"} 0$'
	prints '^timewheel_acked_total{wheel="gate"} 0$'
	refuses 11 "'gate' is draining.*twctl drain --undo gate" add gate 2 5s
	refuses 11 "'gate' is draining" touch gate 2 --register 5s
	refuses 5 'id 1 is pending' add gate 1 5s
	gives 0 resume gate
	gives 0 -o name,state --no-headings
	prints '^gate *draining$'
	gives 0 watch gate -n 1
	is 'what was there comes' "$(cut -d' ' -f1 $tmp/out)" 1
	gives 0 drain --undo gate
	gives 0 add gate 2 5s
	gives 0 -o name,state --no-headings
	prints '^gate *running$'
	gives 3 pause none gate
	is 'each is tried' "$($twctl -o name,state --no-headings | xargs)" 'gate paused manual running plain running'
	for verb in pause resume drain; do
		refuses 3 "no wheel 'none'" $verb none
		as_nobody "$twctl $verb gate"
		is "$verb needs the right to write" $? 4
	done
	gives 0 destroy gate
}

figures()
{
	gives 0 create counted --clock manual
	for id in 1 2 3 4; do
		$twctl add counted $id 0 >/dev/null
	done
	$twctl touch counted 9 --register 5s >/dev/null
	$twctl touch counted 9 >/dev/null
	$twctl move counted 9 6s >/dev/null
	$twctl cancel counted 4 >/dev/null
	$twctl advance counted +10
	$twctl watch counted -n 3 >/dev/null
	json '.stats[0] | .pending, .registered, .touched, .moved, .cancelled, .delivered, .max' '1
5
1
1
1
3
10737418239' stats counted -J
	gives 0 stats
	prints '^counted *1 *5 '
	gives 0 stats --prometheus
	prints '^timewheel_registered_total{wheel="counted"} 5$'
	prints '^timewheel_lateness_seconds_bucket{wheel="counted",le="8.589934591"} 0$'
	prints '^timewheel_lateness_seconds_bucket{wheel="counted",le="17.179869183"} 3$'
	prints '^timewheel_lateness_seconds_bucket{wheel="counted",le="+Inf"} 3$'
	prints '^timewheel_lateness_seconds_count{wheel="counted"} 3$'
	prints '^timewheel_info{wheel="counted",clock="manual",slots="3600",tick="1",lease="0"} 1$'
	prints '^timewheel_slack_seconds{wheel="counted"} 0.000000000$'
	prints '^timewheel_due_tokens{wheel="counted"} 1$'
	prints '^timewheel_oldest_due_seconds{wheel="counted"} 4.000000000$'
	is 'lines of another form' "$(grep -cvE \
		'^(# (HELP|TYPE) timewheel_[a-z_]+ .+|timewheel_[a-z_]+\{wheel="[^"]+"(,[a-z]+="[^"]+")*\} [0-9.]+)$' \
		$tmp/out)" 0
	echo before >$tmp/metrics
	refuses 3 'no wheel' stats -p --output-file $tmp/metrics none
	is 'the file is as it was' "$(cat $tmp/metrics)" before
	gives 0 stats -p --output-file $tmp/metrics
	is 'the file has all' "$(grep -c '^timewheel_delivered_total{wheel="counted"} 3$' $tmp/metrics)" 1
	is 'and nothing is beside it' "$(ls $tmp/metrics*)" $tmp/metrics
	is 'others may read it' "$(stat -c %a $tmp/metrics)" 644
	refuses 1 "'/none/metrics': No such file" stats -p --output-file /none/metrics
	refuses 3 'no wheel' stats none

	# A token is due if it was never read, or if a reader has held it for too long.
	gives 0 create unread --clock manual --lease 5s --tick 100ms
	for id in 1 2 3 4; do
		$twctl add unread $id ${id}00ms >/dev/null
	done
	$twctl advance unread +1
	exec 3<>/dev/timewheels/unread
	dd count=1 bs=56 <&3 >/dev/null 2>&1
	$twctl advance unread +2
	gives 0 stats -p unread
	prints '^timewheel_info{wheel="unread",clock="manual",slots="3600",tick="0.1",lease="5"} 1$'
	prints '^timewheel_held_tokens{wheel="unread"} 1$'
	prints '^timewheel_due_tokens{wheel="unread"} 2$'
	prints '^timewheel_oldest_due_seconds{wheel="unread"} 0.100000000$'
	$twctl advance unread +60
	gives 0 stats -p unread
	prints '^timewheel_due_tokens{wheel="unread"} 4$'
	prints '^timewheel_oldest_due_seconds{wheel="unread"} 6.100000000$'
	exec 3>&-
	$twctl delete unread 2 >/dev/null
	gives 0 stats -p unread
	prints '^timewheel_due_tokens{wheel="unread"} 3$'
	gives 0 destroy unread

	gives 0 top -n 2 -d 20ms
	is 'two looks' "$(grep -c '^counted ' $tmp/out)" 2
	json '.wheels[0] | .name, .pending, .registered' '"counted"
1
0' top counted -J -n 1 -d 20ms
	: >$tmp/out
	rm -f $tmp/out
	$PWD/twctl top counted -d 100ms -o registered,touched --no-headings >$tmp/out 2>$tmp/err &
	top=$!
	settle $tmp/out 1
	$twctl touch counted 9 9 9 9 9 9 9 9 9 9 >/dev/null
	settle $tmp/out $(($(wc -l <$tmp/out) + 3))
	kill -TERM $top
	wait $top
	is 'a signal ends it' $? 143
	awk '$1 { bad = 1 } $2 { seen = 1 } END { exit bad || !seen }' $tmp/out
	result $? 'touches a second, and no registrations'
	refuses 3 'no wheel' top none -n 1
	gives 0 destroy counted
}

# The disk is full.
output()
{
	$twctl -J >/dev/full 2>$tmp/err
	is 'a full disk' $? 1
	is 'one message' "$(wc -l <$tmp/err)" 1
}

permissions()
{
	as_nobody $twctl
	is 'anybody may list' $? 0
	prints '^plain *root *rw------- - *- *- *- *- *- *-$'
	as_nobody $twctl -J
	tells 'and in JSON' '.wheels[] | select(.name == "plain") | .clock' null <$tmp/out
	as_nobody $twctl list plain
	is 'a wheel that is not open to all' $? 4
	as_nobody $twctl stats plain
	is 'nor its figures' $? 4
	as_nobody $twctl create theirs
	is 'a device that is not open to all' $? 4
	is 'one line' "$(wc -l <$tmp/err)" 1
	chmod 666 /dev/timewheel
	as_nobody $twctl destroy plain
	is "another's wheel" $? 4
	as_nobody $twctl create theirs
	is 'a wheel of theirs' $? 0
	gives 0 -o name,owner
	prints '^theirs nobody$'
	# These are the limits of a user, and of all users.
	parameters=/sys/module/timewheel/parameters
	wheels=$(cat $parameters/max_user_wheels) all=$(cat $parameters/max_all_wheels)
	echo 1 >$parameters/max_user_wheels
	as_nobody $twctl create more
	is 'too many for a user' $? 6
	is 'says which limit' "$(grep -c "max_user_wheels is 1," $tmp/err)" 1
	echo "$wheels" >$parameters/max_user_wheels
	echo 1 >$parameters/max_all_wheels
	refuses 6 "max_all_wheels is 1" create more
	echo "$all" >$parameters/max_all_wheels
	chmod 660 /dev/timewheel
	gives 0 destroy theirs
}

doctor()
{
	gives 0 doctor
	prints '^ok *version'
	json '[.checks[] | .result] | unique' '["ok"]' doctor -J
	# A container of podman, whose root is this folder.
	mkdir -p $tmp/root/sys/module/timewheel $tmp/root/dev $tmp/root/run
	: >$tmp/root/run/.containerenv
	: >$tmp/root/dev/timewheel
	chgrp 12345 $tmp/root/dev/timewheel
	chmod 660 $tmp/root/dev/timewheel
	as_nobody $twctl doctor --root $tmp/root
	prints 'is not open to you in this container'
	prints '--group-add 12345$'
	# The group of "nobody" stands for all groups that are not mapped.
	chgrp 65534 $tmp/root/dev/timewheel
	chmod 600 $tmp/root/dev/timewheel
	as_nobody $twctl doctor --root $tmp/root
	prints '--group-add keep-groups$'

	as_nobody $twctl doctor
	is 'doctor for nobody' $? 1
	prints 'permission *'/dev/timewheel' is not open to you'
	prints 'sudo usermod -aG timewheel nobody'
	chgrp 0 /dev/timewheel
	as_nobody $twctl doctor
	prints 'is open to no group'
	prints 'sudo chgrp timewheel /dev/timewheel'
	chgrp timewheel /dev/timewheel
	# A process that began before the change is still without the group.
	cp /etc/group $tmp/group
	rm -f $tmp/go
	: >$tmp/out
	as_nobody "echo; until [ -e $tmp/go ]; do usleep 50000; done; $twctl doctor" &
	settle $tmp/out 1
	sed -i 's/^timewheel:.*/&nobody/' /etc/group
	: >$tmp/go
	wait
	prints 'have not logged in since you joined it'
	prints 'newgrp timewheel'
	cp $tmp/group /etc/group

	# skew.so changes the module's answers to what another version would say.
	for skew in op_size token_size event_size codes settings clocks names caps; do
		TWCTL_SKEW=$skew LD_PRELOAD=$PWD/skew.so $twctl doctor >$tmp/out 2>$tmp/err
		is "doctor of a module with other $skew" $? 1
		prints '^bad *version *the module does not go with twctl'
	done
	TWCTL_SKEW=names LD_PRELOAD=$PWD/skew.so $twctl create new >$tmp/out 2>$tmp/err
	is 'a module without named wheels' "$?, $(grep -c 'of another version' $tmp/err)" '1, 1'
}

# mend COMMAND: carries out the command that doctor printed, which begins with COMMAND
mend()
{
	prints "^  sudo $1"
	sh -c "sudo() { \"\$@\"; }
		# busybox has none
		usermod() { sed -i \"s/^\$2:.*/&\$3/\" /etc/group; }
		log() { :; }
		$(sed -n 's/^  sudo/sudo/p' $tmp/out)" 2>&1 | sed 's/^/# /'
}

no_device()
{
	rmmod timewheel || { result 1 'the module is not in use'; return; }
	refuses 7 'no device' wheels
	refuses 7 'no device' create new
	refuses 7 'no device' destroy new
	refuses 7 'no device' list new
	refuses 7 'no device' add new 1 5s
	refuses 7 'no device' watch new
	refuses 7 'no device' exec new -- true
	refuses 7 'no device' stats
	refuses 7 'no device' top -n 1
	gives 1 doctor
	prints '^bad *module'
	# The command that doctor prints mends this state.
	mkdir -p "/lib/modules/$(uname -r)/updates"
	cp /timewheel.ko "/lib/modules/$(uname -r)/updates"
	depmod
	gives 1 doctor
	mend 'modprobe timewheel'
	gives 0 doctor
	rm /dev/timewheel
	gives 1 doctor
	mend 'mknod -m 660 /dev/timewheel c'
	gives 0 doctor
	chgrp timewheel /dev/timewheel
	as_nobody $twctl doctor
	mend 'usermod -aG timewheel nobody'
	as_nobody $twctl doctor
	prints '^ok *version'
}

wheels
holders
tokens
many
without_ids
wall_time
plain_reads
batch
drawing
watching
commands
settings
answers
lapsing
acking
leased_commands
giving_up
periods
spreading
stopping
figures
output
permissions
doctor
$twctl destroy plain manual
no_device
finish
