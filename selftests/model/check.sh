#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# check.sh [output directory]: runs every scenario below.
#
# A line has a verdict, a model, -D flags in brackets, and the result to be shown. "holds" demands a
# complete search without an error. "finds" demands an error, because a model that cannot see a bug
# proves nothing. "large" is "holds" with more of the same than any seeded bug needs: these lines
# are run by LARGE=1, and nothing else is.
set -eu

scenarios() {
	cat <<'END'
large token [TOUCHES=2 READERS=2 FAULTS=1] P1 P3 P4 P5, order: two touches, two readers, a fault
holds token [TOUCHES=1 MOVES=1 CANCELS=1] P1 P3 P4: touch, move and cancel against a reader
holds token [TOUCHES=1 CANCELS=1 ADDS=1] P3: a reused slot is safe from old handles
holds token [MOVES=1 CANCELS=1 ADDS=1] P3: a reused slot is safe from an old move and cancel
holds token [TOUCHES=1 MOVES=1 FAULTS=1 READERS=2] P1 P5, order: touch and move of what was put back
finds token [TOUCHES=1 BUG_TOUCH_STORE] touch by a plain store
finds token [TOUCHES=1 BUG_TAKE_STORE] take by a plain store
finds token [TOUCHES=1 CANCELS=1 ADDS=1 BUG_KEEP_GENERATION] the generation stays when a token ends
finds token [FAULTS=1 BUG_PUT_BACK_FORGETS] put back forgets one
finds token [FAULTS=1 TOUCHES=1 BUG_PUT_BACK_FRONT] put back in front of all lists
finds token [FAULTS=1 TOUCHES=1 BUG_PUT_BACK_GENERATION] put back changes the generation
finds token [TOUCHES=1 MOVES=1 BUG_MOVE_KEEPS_LIST] a token moved nearer stays in its list
holds ids [ADDS=3 CANCELS=1 READS=1] P4: touch by id, reuse, take and put back
holds ids [ADDS=3 CANCELS=2 READS=0] P4: touch by id, cancel and reuse
finds ids [ADDS=3 CANCELS=2 READS=0 BUG_NO_RECHECK] no second read when the due tick stays
finds ids [BUG_NO_ID_CHECK] the id is not checked again
finds ids [BUG_PUT_BACK_STEALS] put back takes the id from a newer registration
finds ids [BUG_LATE_ID] register stores the word before the id
holds alarm [READERS=1 POLLERS=1 OPS=2 HANG] P2 P7: a blocking reader and a polling program that may hang
holds alarm [READERS=2 OPS=2 SIGNALS=1] P2 P7: two blocking readers and a signal
holds alarm [READERS=0 POLLERS=1 OPS=3 EDGE] P2 P7: an edge-triggered poller
holds alarm [READERS=0 POLLERS=2 OPS=1 HANG] P2 P7: two pollers, programs may hang
large alarm [READERS=0 POLLERS=2 OPS=2 HANG] P2 P7: two pollers and two operations, programs may hang
holds alarm [READERS=2 OPS=1 FAULTS=1 SIGNALS=1] P5: two readers, a fault and a signal
holds alarm [READERS=1 OPS=2 FAULTS=1 TOUCHES=1 BACK=1] P5 P8: a fault, a touch and a step back of the clock
finds alarm [READERS=1 OPS=2 BUG_CHECK_FIRST] a reader looks at the alarm before it queues itself
finds alarm [READERS=1 OPS=2 BUG_KEEP_ARMED] a look clears the alarm but believes the timer still armed
finds alarm [READERS=2 OPS=2 BUG_WAKE_NOBODY] a reader that leaves due tokens wakes nobody
finds alarm [READERS=2 OPS=2 SIGNALS=1 BUG_NO_HAND_ON] an interrupted reader keeps its wake-up
finds alarm [READERS=2 OPS=2 FAULTS=1 BUG_PUT_BACK_QUIET] put back tells nobody
finds alarm [READERS=1 POLLERS=1 OPS=3 HANG BUG_POLL_TELLS_NOBODY] a poller sets the alarm and tells nobody
finds alarm [POLLERS=1 READERS=0 OPS=2 EDGE BUG_POLL_LATE] a poller looks before it queues itself
holds alarm [READERS=1 OPS=1 PAUSES=2] P2 P7: a reader, paused and resumed twice
holds alarm [READERS=1 OPS=1 SIGNALS=1 FAULTS=1 PAUSES=1] P5: a signal, a fault, paused and resumed
holds alarm [READERS=0 POLLERS=1 OPS=1 EDGE PAUSES=1] P2 P7: an edge-triggered poller, paused and resumed
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_PAUSE_KEEPS_TIMER] the timer runs on while paused
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_ARM_PAUSED] a change starts the timer while paused
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_SLEEP_BY_ALARM] a sleeper does not ask whether it is paused
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_RESUME_KEEPS_ALARM] an alarm that came late outlives the pause
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_RESUME_LATE] the alarm is cleared before the pause is over
finds alarm [READERS=1 OPS=1 PAUSES=1 BUG_RESUME_QUIET] resumed without a look at what is due
holds alarm [HELD=1 READERS=1 OPS=2 ANSWERS=1] P2 P7 P9: a reader, one may be out, and is answered
holds alarm [HELD=1 READERS=2 OPS=2] P5: two readers, of which one may hang with all that may be out
holds alarm [HELD=1 READERS=0 POLLERS=1 OPS=1 ANSWERS=1 EDGE] P2 P7: an edge-triggered poller, one may be out
large alarm [HELD=1 READERS=0 POLLERS=1 OPS=2 ANSWERS=1 EDGE] P2 P7: an edge-triggered poller, one of two may be out
holds alarm [HELD=1 READERS=2 OPS=1 FAULTS=1] P5: what is put back makes room
large alarm [HELD=1 READERS=2 OPS=2 FAULTS=1] P5: what is put back makes room for another one
holds alarm [HELD=2 READERS=1 OPS=2] P2 P7: two may be out
large alarm [HELD=2 READERS=1 OPS=2 ANSWERS=1 TOUCHES=1] P2 P7: two may be out, touched and answered
finds alarm [HELD=1 READERS=1 OPS=2 BUG_FULL_LOOKS] what is due keeps a reader awake while nothing can be taken
finds alarm [HELD=1 READERS=2 OPS=2 BUG_FULL_TAKES] more are taken than may be out
finds alarm [HELD=1 READERS=2 OPS=2 BUG_LEASE_FORGOTTEN] nobody is woken when a lease ends
finds alarm [HELD=1 READERS=2 OPS=2 BUG_HOLD_QUIET] the timer is not started for the end of a lease
finds alarm [HELD=1 READERS=1 OPS=2 ANSWERS=1 BUG_ANSWER_QUIET] an answer makes room and tells nobody
holds lease [TOUCHES=1 ANSWERS=1 LEAVES=1 FAULTS=1] P1 P3 P4 P5: a touch, an answer, put back, a file released
holds lease [TOUCHES=1 DELETES=1 ADDS=1] P3 P4: deleted and registered again
holds lease [ANSWERS=1 DELETES=1 ADDS=1] P3: no answer to an earlier life's delivery
holds lease [ANSWERS=2 LEAVES=1] P3: two answers at once
holds lease [ANSWERS=2 LEASE=2] P1: a lease is made longer, and no shorter
finds lease [ANSWERS=1 LEAVES=1 BUG_NO_NUMBER] the delivery's number is not asked for
finds lease [ANSWERS=1 FAULTS=1 BUG_NUMBER_STAYS] a delivery that was put back has had a number
finds lease [ANSWERS=1 LEAVES=1 BUG_LAPSE_HOLDS] a lease that is over leaves its holder
finds lease [LEAVES=1 BUG_RELEASE_EARLY] a file is released while it is read
finds lease [LEAVES=1 BUG_RELEASE_FORGETS] a released file leaves something held
finds lease [ANSWERS=1 LEASE=2 BUG_EXTEND_SHORTENS] a lease is made shorter
finds lease [DELETES=1 BUG_DELETE_TAKEN] deleted while it is copied
finds lease [TOUCHES=1 BUG_TAKE_STORE] take by a plain store
finds lease [ANSWERS=1 DELETES=1 ADDS=1 BY_ID] an answer by an id that was used again
holds words [CHECKED=2] P1 P4: two checked touches against a taker whose clock is behind
holds words [CHECKED=1 PLAIN=2] P1 P4: a checked and two plain touches of any handles
holds words [CHECKED=1 PLAIN=2 STILL] P1 P4: an older handle's touch is one of now
holds words [CHECKED=1 MOVES=1 CANCELS=1] P1 P4: moved and cancelled besides
large words [CHECKED=1 PLAIN=1 MOVES=1 CANCELS=1] P1 P4: moved and cancelled besides plain touches
holds words [CHECKED=1 PLAIN=1 FAULTS=1 LOOKS=1] P1 P5: put back, and looked at besides
holds words [CHECKED=2 LOOKS=1] P1 P4: two checked touches, looked at besides: a stamp that adds nothing is cleared
holds words [PLAIN=1 FUTURE=10 LOOKS=1 LAST=6] a stamp far ahead makes a token late once
finds words [CHECKED=2 BUG_TAKE_STORES] the taker does not compare the word
finds words [CHECKED=2 BUG_CHECKED_OLDER] a checked touch replaces a later one
finds words [CHECKED=1 PLAIN=1 STILL BUG_FOREIGN_IGNORED] a word of another generation is no touch
finds words [CHECKED=1 PLAIN=2 STILL BUG_FOREIGN_ONCE] one that comes while another is replaced is taken for its own
finds words [PLAIN=1 LAST=6 BUG_FOREIGN_STAYS] a word of another generation stays
finds words [PLAIN=1 FUTURE=10 LOOKS=1 LAST=6 BUG_FUTURE_STAYS] a stamp far ahead stays
finds words [CHECKED=1 BUG_NEAR_SETTLED] a stamp that is only ahead of a reading of the clock is replaced
finds words [CHECKED=2 LOOKS=1 BUG_CLEAR_STORES] clearing by a plain store loses a touch
finds words [CHECKED=2 LOOKS=1 BUG_CLEAR_ONCE] a touch that comes while another is cleared is taken unseen
finds words [CHECKED=1 LOOKS=1 BUG_CLEAR_AHEAD] a stamp that is ahead of a reading of the clock is cleared
finds words [CHECKED=1 CANCELS=1 BUG_CANCEL_KEEPS] cancel leaves the word
finds words [CHECKED=1 BUG_REGISTER_KEEPS] register leaves the word
finds words [CHECKED=1 FAULTS=1 BUG_PUT_BACK_KEEPS] put back leaves the word
holds jobs [CHANGES=2 TAKES=1 FAILS=1 KILLS=1] J1 J2 J4 J6: put, cancel, move and replace, a commit fails, killed
holds jobs [CHANGES=1 TAKES=2 ANSWERS=1 FAILS=1 KILLS=1] J1 J2 J4 J6: changed, taken and answered, a commit fails, killed
holds jobs [CHANGES=1 TAKES=1 ANSWERS=1 KILLS=2] J1 J2 J4: killed again at the next start
holds jobs [TAKES=2 ANSWERS=2 KILLS=1 REBOOTS=1] J1 J2 J4: the wheel is gone, and is loaded again
finds jobs [KILLS=1 BUG_ANSWER_EARLY] a put is answered before the commit
finds jobs [FAILS=1 TAKES=1 BUG_ANSWERS_STAND] a failed commit leaves its answers as they are
finds jobs [FAILS=1 TAKES=2 BUG_GIVE_BACK] a failed commit leaves a try that no worker had
finds jobs [CHANGES=1 KILLS=1 BUG_WHEEL_FIRST] the wheel is told before the commit
finds jobs [KILLS=1 BUG_REGISTER_LATE] a new token is registered after the commit
finds jobs [CHANGES=1 KILLS=1 BUG_NO_REPEAT] a start does not repeat the last turn's changes
finds jobs [CHANGES=1 KILLS=1 BUG_LIST_LATER] the list of changes is written after the commit
finds jobs [CHANGES=1 TAKES=2 KILLS=1 BUG_REPEAT_BY_ID] a change that is repeated names the id
finds jobs [FAILS=1 BUG_KEEP_REGISTERED] a failed commit leaves its token
finds jobs [CHANGES=1 TAKES=1 BUG_READ_UNSETTLED] a delivery is read while tokens are to be moved
finds jobs [TAKES=2 ANSWERS=1 BUG_NO_EXTEND] a lease may be over before its answer is committed
finds jobs [TAKES=1 ANSWERS=2 BUG_USED_TWICE] a receipt is used twice in a turn
finds jobs [TAKES=2 ANSWERS=1 BUG_NO_NUMBER] a receipt is good for any delivery of its token
finds jobs [CHANGES=1 TAKES=2 ANSWERS=1 BUG_NO_HANDLE] a receipt is good for a replaced job
finds jobs [TAKES=2 ANSWERS=1 REBOOTS=1 BUG_NO_EPOCH] a receipt is good for another wheel
finds jobs [KILLS=1 REBOOTS=1 BUG_LOADED_EARLY] a wheel is taken as loaded when its load begins
finds jobs [TAKES=1 KILLS=1 REBOOTS=1 BUG_STAMP_LATE] a wheel that is being loaded is made again
END
}

# chosen: prints the scenarios to run
chosen() {
	if [ -n "${LARGE-}" ]; then
		scenarios | grep '^large'
	else
		scenarios | grep -v '^large'
	fi
}

models=$(cd "$(dirname "$0")" && pwd)
if [ $# -gt 0 ]; then
	mkdir -p "$1"
	output=$(cd "$1" && pwd)
else
	output=$(mktemp -d)
	trap 'rm -rf "$output"' EXIT
	trap 'exit 1' HUP INT TERM
fi

CC=${CC:-gcc}
for tool in spin "$CC"; do
	command -v "$tool" >/dev/null || { echo "Bail out! $tool is not installed"; exit 1; }
done

# search <model> <optimization> <bits> <flags>: builds and runs the verifier here, with a table of
# 2^<bits> states. Its output goes to ./out.
search() {
	model=$1 opt=$2 table=$3
	shift 3
	# spin looks for an included file, and writes its trail, by the name of the
	# model. The model is therefore copied.
	cp "$models/$model.pml" . &&
	spin -a "$@" "$model.pml" &&
	# MEMLIM is in MB. COLLAPSE would halve the memory, and take a quarter more time.
	"$CC" "$opt" -w -DSAFETY -DMEMLIM=1800 -o pan pan.c &&
	./pan -m100000 "-w$table"
}

search_held() {
	grep -q 'errors: 0$' out &&
	! grep -Eq 'search depth too small|out of memory|reached -DMEMLIM|not completed' out
}

search_found() {
	grep -Eq '^pan:1: (assertion violated|invalid end state)' out && grep -q 'errors: 1$' out
}

# there <function>: whether the code that the models describe defines the function
there() {
	grep -qE "^[^/[:space:]].*\b$1\(|^$1\(" "$models"/../../kmod/*.[ch] \
		"$models"/../../userspace/daemons/twjobd/*.[ch]
}

# gone: prints the functions that the models' head comments name and neither the
# models nor the code have.
gone() {
	for model in "$models"/*.pml; do
		for name in $(sed -n '2,/\*\//p' "$model" | grep -oE '\b[a-z_]+\(\)' | tr -d '()' | sort -u); do
			grep -qE "^inline $name\b" "$model" || there "$name" || echo "# gone: ${model##*/}: $name()"
		done
	done
}

# mark_of VERDICT MODEL [FLAG...]: prints the name of the mark of a scenario, which depends on all
# that its result depends on
mark_of() {
	echo "$cache/searched/$({ spin -V && "$CC" --version && echo "$@" && cat "$models/check.sh" \
		"$models/$2.pml"; } | sha256sum | cut -d' ' -f1)"
}

if [ -n "${MARKS-}" ]; then
	. "$models/../vm/lib.sh"
	mkdir -p "$cache/searched"
	find "$cache/searched" -type f -mtime +60 -delete
fi
chosen | awk 'END { print "1.." NR + 1 }'
number=1
gone=$(gone)
if [ -z "$gone" ]; then
	failed=0
	echo "ok 1 - the functions that are modelled are there"
else
	failed=1
	printf '%s\n' "$gone"
	echo "not ok 1 - the functions that are modelled are there"
fi
list=$(chosen)
while read -r verdict model rest; do
	number=$((number + 1))
	text=${rest#*] }
	flags=${rest%%]*}
	flags=${flags#[}
	mkdir -p "$output/$number"
	cd "$output/$number"
	set --
	for flag in $flags; do
		set -- "$@" "-D$flag"
	done
	# A search that stops at a bug is short and needs no large table, and an optimizing
	# compiler would take longer than the search. With -O2 the compiler takes twice as long as with
	# -O1, and complete searches are no faster.
	case $verdict in
	holds | large) opt=-O1 table=24 name="$model: $text" ;;
	finds) opt=-O0 table=16 name="$model: bug found: $text" ;;
	esac
	mark=
	if [ -n "${MARKS-}" ]; then
		mark=$(mark_of "$verdict" "$model" "$@")
		[ ! -e "$mark" ] || { echo "ok $number - $name, as searched before"; continue; }
	fi
	# pan's output says more than its exit status.
	search "$model" "$opt" "$table" "$@" >out 2>&1 || :
	if { [ "$verdict" != finds ] && search_held; } || { [ "$verdict" = finds ] && search_found; }; then
		echo "ok $number - $name"
		[ -z "$mark" ] || touch "$mark"
	else
		echo "not ok $number - $name"
		sed 's/^/# /' out
		failed=1
	fi
	cd "$output"
done <<END
$list
END
exit $failed
