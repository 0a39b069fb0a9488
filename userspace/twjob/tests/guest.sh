#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twjob with a twjobd of its own: every verb, every way to fail, and what becomes of
# jobs whose command fails, hangs or loses its worker. Needs the module loaded, root,
# and beside itself: results.sh, twjob, twjobd, destroy, jq. Prints TAP.
# "make guest-tests" runs it in a guest.
set -u
tmp=/tmp/twjob
mkdir -p $tmp
socket=$tmp/socket
# A command that hangs is ended by timeout, and has failed.
twjob()
{
	verb=$1
	shift
	timeout 60 "$here/twjob" "$verb" --server $socket "$@"
}
here=$PWD
tool=twjob
jq=$here/jq
. ./results.sh
cat >$tmp/config <<-END
	listen = $socket
	listen = 127.0.0.1:7098
	password = secret
	store = $tmp/jobs
	wheel-prefix = tw-
END

# start_daemon CONFIG: starts a twjobd, and waits until it answers
start_daemon()
{
	"$here/twjobd" --config "$1" 2>>$tmp/daemon.log &
	daemon=$!
	tries=0
	until twjob queues >/dev/null 2>&1 || [ $((tries += 1)) = 300 ]; do
		usleep 50000
	done
}

# end_daemon SIGNAL
end_daemon()
{
	kill "-$1" $daemon
	wait $daemon 2>/dev/null
}

# soon COMMAND...: the command succeeds within half a minute
soon()
{
	tries=0
	until "$@" >/dev/null 2>&1; do
		[ $((tries += 1)) -lt 300 ] || return 1
		usleep 100000
	done
}

# jobs_of QUEUE: prints how many jobs are there
jobs_of()
{
	twjob list "$1" --no-headings | wc -l
}

empty()
{
	[ "$(jobs_of "$1")" = 0 ]
}

# put BODY ARGUMENT...: puts a job as a user does
put()
{
	body=$1
	shift
	printf '%s\n' "$body" | twjob put "$@" >$tmp/out 2>$tmp/err
	result $? "put $*: $body"
}

queues()
{
	gives 0 create sms --lease 30s --tries 3 -m 100
	json '.queues[] | [.name, .jobs, .state, .lease, .tries, ."max-jobs"]' \
		'["sms",0,"running",30000000000,3,100]' queues -J
	gives 0 create sms --tries 2
	json '.queues[] | [.lease, .tries]' '[30000000000,2]' queues -J
	gives 0 create sms --backoff 1s:1h --keep-buried 7d --keep-done 1d
	json '.queues[] | [.lease, .backoff, ."backoff-most", ."keep-buried", ."keep-done"]' \
		'[30000000000,1000000000,3600000000000,604800000000000,86400000000000]' queues -J
	gives 0 create sms --backoff 0s:0s --keep-buried 0s --keep-done 0s
	json '.queues[] | [.backoff, ."keep-buried", ."keep-done"]' '[0,0,0]' queues -J
	gives 0 create sms --limit 3 --rate 100:1m --group-limit 2 --group-rate 5:1s
	json '.queues[] | [.limit, .rate, ."rate-span", ."group-limit", ."group-rate",
		."group-rate-span", .waiting]' '[3,100,60000000000,2,5,1000000000,0]' queues -J
	gives 0 create sms --limit 0 --rate 0:0s --group-limit 0 --group-rate 0:0s
	json '.queues[] | [.limit, .rate, ."group-limit", ."group-rate"]' '[0,0,0,0]' queues -J
	refuses 2 "--rate '5': not a number of jobs and a span" create sms --rate 5
	refuses 2 "--group-rate 'x:1s': not a number of jobs" create sms --group-rate x:1s
	refuses 2 'a rate is 1 to 1000000 jobs' create sms --rate 0:1s
	refuses 2 "--backoff '1s': not two spans" create sms --backoff 1s
	refuses 2 'BACKOFF is more' create sms --backoff 2s:1s
	refuses 2 "--lease 'x': not a span" create sms --lease x
	refuses 2 'a lease is 0.001' create sms --lease 0
	refuses 2 "a queue's name has" create 'a b'
	json '.queues[] | [.lease, .tries]' '[30000000000,2]' queues -J
	gives 0 drain sms
	json '.queues[].state' '"draining"' queues -J
	refuses 11 "'twjob resume'" put sms --body x
	gives 0 pause sms
	json '.queues[].state' '"paused+draining"' queues -J
	gives 0 resume sms
	json '.queues[].state' '"running"' queues -J
	json '[.figures[] | select(.figure == "max_jobs")]' \
		'[{"queue":"sms","figure":"max_jobs","value":100}]' stats sms -J
	json '[.figures[] | select(.figure == "mended") | .value]' '[0]' stats -J
	refuses 3 "queue 'none': .*'twjob create'" pause none
	refuses 3 "queue 'none': .*'twjob create'" done none
}

putting()
{
	put hello sms in 1h --key order-4711
	json '.jobs[] | [.state, .key, .attempts, (.left > 3.5e12), (.left <= 3.6e12)]' \
		'["delayed","order-4711",0,true,true]' list sms -J
	id=$(twjob list sms -o id --no-headings | tr -d ' ')
	json '[.jobs[].result, .jobs[].id == '"$id"']' '["exists",true]' \
		put sms --body x --key order-4711 -J
	json '.jobs[] | [.body, .size]' '["hello\n",6]' get sms "$id" -J
	json '.jobs[].result' '"replaced"' put sms at 15:22:35 --body new --replace \
		--key order-4711 -J
	json '.jobs[0].due[10:19]' '"T15:22:35"' list sms -J
	gives 0 get sms "$id" --raw
	is 'the body as it is' "$(cat $tmp/out)" new
	gives 0 move sms "$id" in 3h
	gives 0 move sms --key order-4711 in 2h
	json '.jobs[0].left / 6e11 | round' 12 list sms -J
	json '.jobs | length' 0 list sms -J --before 1h
	json '.jobs | length' 1 list sms -J --before 3h --state delayed
	twjob put sms at 2099-01-01T00:00:00.0001Z --body x -o id --no-headings >$tmp/id
	json '.jobs[].due' '"2099-01-01T00:00:00.001000+00:00"' \
		get sms "$(tr -d ' ' <$tmp/id)" -J
	gives 0 delete sms "$(tr -d ' ' <$tmp/id)"
	printf 'a\0b\377' | twjob put sms in 1h -o id --no-headings >$tmp/id
	json '.jobs[] | [.body, .size]' '[null,4]' get sms "$(tr -d ' ' <$tmp/id)" -J
	gives 0 get sms "$(tr -d ' ' <$tmp/id)" --raw
	is 'any bytes' "$(od -An -tx1 $tmp/out)" ' 61 00 62 ff'
	gives 0 delete sms "$(tr -d ' ' <$tmp/id)"
	# Text of two to four bytes a character; half of a character, and two that are too long.
	for text in '\303\244\342\202\254\360\237\230\200' '\303' '\340\200\200' '\360\200\200\200'; do
		# shellcheck disable=SC2059 # the text has escapes
		printf "$text" | twjob put sms in 1h -o id --no-headings >$tmp/id
		[ "$text" != "${text#*244}" ] && text='"ä€😀"' || text=null
		json '.jobs[].body' "$text" get sms "$(tr -d ' ' <$tmp/id)" -J
		gives 0 delete sms "$(tr -d ' ' <$tmp/id)"
	done
	twjob put sms in 1h --body x --group customer-17 -o id --no-headings >$tmp/id
	json '.jobs[].group' '"customer-17"' get sms "$(tr -d ' ' <$tmp/id)" -J
	gives 0 delete sms "$(tr -d ' ' <$tmp/id)"
	twjob put sms in 1h --body x --lease 2m --tries 0 --backoff 1s:2s -o id \
		--no-headings >$tmp/id
	json '.jobs[] | [.lease, .tries, .backoff, ."backoff-most", .reason]' \
		'[120000000000,0,1000000000,2000000000,null]' get sms "$(tr -d ' ' <$tmp/id)" -J
	gives 0 delete sms "$(tr -d ' ' <$tmp/id)"
}

coming_again()
{
	json '.jobs[].result' '"new"' every sms report '30 2 * * *' --body x -J
	json '.jobs[].result' '"exists"' every sms report '30 2 * * *' --body x -J
	json '.jobs[].result' '"replaced"' every sms report '30 2 * * *' --body x --overlap -J
	json '.jobs[].result' '"replaced"' every sms report '40 2 * * *' --body x \
		--tz UTC --missed none --overlap -J
	rule=$(twjob every sms report '40 2 * * *' --body x --tz UTC --missed none \
		--overlap -o id --no-headings | tr -d ' ')
	json '.jobs[] | [.rule, .zone, .due[13:19]]' '["40 2 * * *","UTC",":40:00"]' \
		get sms "$rule" -J -o rule,zone,due
	gives 0 cancel sms --key report
	refuses 2 'the rule is refused: no time would come by it' \
		every sms report '0 0 31 2 *' --body x
	refuses 2 'last, all or none' every sms report @daily --missed x --body x
}

refusing()
{
	refuses 2 "TIME 'at 25:00'" put sms at 25:00 --body x
	refuses 2 "TIME 'clock': a wheel's" put sms clock 5 --body x
	refuses 2 '--past' put sms at 1999-01-01 --body x
	refuses 2 '--replace needs --key' put sms --replace --body x
	refuses 2 'a key has 1 to 255' put sms --body x -k "$(printf '%0300d' 0)"
	refuses 3 "queue 'none': there is no such queue" put none --body x
	head -c 1100000 /dev/zero | twjob put sms >$tmp/out 2>$tmp/err
	is 'a body that is too long' "$?$(grep -o max-body $tmp/err)" 2max-body
	refuses 2 "ID 'x'" cancel sms "$id" x
	refuses 2 'an ID or --key' cancel sms
	refuses 2 'not both' cancel sms "$id" --key order-4711
	refuses 2 'usage' move sms "$id"
	refuses 2 "--state 'layed': not delayed" list sms --state layed
	refuses 3 "no job of id '999999'" cancel sms 999999
	refuses 3 "no job of key 'x'" move sms --key x in 1h
	refuses 3 "no job of id '999999'" get sms 999999
	json '.jobs[] | [.id == '"$id"', (.left / 6e11 | round)]' '[true,12]' list sms -J
	gives 0 cancel sms --key order-4711
	is 'jobs after all that' "$(jobs_of sms)" 0
}

# A connection by TCP needs the password, which is never an argument.
passwords()
{
	socket=127.0.0.1:7098
	refuses 4 '--password-file' queues
	echo wrong >$tmp/password
	refuses 4 "'password' in" queues --password-file $tmp/password
	echo secret >$tmp/password
	gives 0 queues --password-file $tmp/password
	export TWJOB_PASSWORD=secret
	gives 0 queues
	unset TWJOB_PASSWORD
	socket=$tmp/socket
}

# The command does what the body of its job says.
cat >$tmp/command <<-'END'
	#!/bin/sh
	read -r what
	echo "$what $TWJOB_QUEUE $TWJOB_ATTEMPT ${TWJOB_KEY:--}" >>/tmp/twjob/log
	case $what in
	data)	exit 65 ;;
	again)	exit 75 ;;
	hang)	trap '' TERM
		sleep 987 &
		sleep 987 ;;
	slow)	sleep 3 ;;
	held)	until [ -e /tmp/twjob/goes_on ]; do usleep 100000; done ;;
	long)	[ "$TWJOB_ATTEMPT" = 2 ] || sleep 986 ;;
	esac
	[ "$TWJOB_ID" -gt 0 ] && [ "$TWJOB_DUE" -gt 1600000000000 ] &&
		[ ! "${TWJOB_PASSWORD-}" ]
END
chmod +x $tmp/command

# works ARGUMENT...: starts a worker
works()
{
	: >$tmp/log
	TWJOB_PASSWORD=secret "$here/twjob" work --server $socket "$@" \
		-- $tmp/command 2>$tmp/worker &
	worker=$!
}

# ends: the worker is told to end, and ends well
ends()
{
	kill $worker
	wait $worker
	is 'the worker ends with status' $? 0
	cp $tmp/worker $tmp/out
}

has_line()
{
	grep -q "$1" $tmp/log
}

# are QUEUE STATE NUMBER: the queue has so many jobs in this state
are()
{
	[ "$(twjob list "$1" --state "$2" --no-headings | wc -l)" = "$3" ]
}

statuses()
{
	gives 0 create a --tries 2 --lease 30s
	gives 0 create b --keep-done 1h
	works b a -j 2
	put fine b -k key-1
	put data b
	put again a
	soon are a buried 1
	result $? 'a command that fails twice is buried'
	soon are b buried 1
	result $? 'a job that can never be done is buried at once'
	put fine a
	soon has_line '^fine a'
	ends
	prints "queue 'a' id [0-9]*: exit status 75, try 1, again in 1s"
	prints "queue 'a' id [0-9]*: buried, as that was its last try"
	prints "queue 'b' id [0-9]*: exit status 65, try 1, buried"
	json '[.jobs[].reason]' '["exit status 75"]' list a -J
	json '[.jobs[].reason]' '["exit status 65"]' list b -J
	json '.jobs[] | [.key, .attempts, .due <= .ended]' '["key-1",1,true]' done b -J
	json '.jobs' '[]' done a -J
	is 'what ran' "$(sort $tmp/log | tr '\n' ,)" \
		'again a 1 -,again a 2 -,data b 1 -,fine a 1 -,fine b 1 key-1,'
	is 'jobs that are left' "$(jobs_of a) $(jobs_of b)" '1 1'
	gives 0 kick b --buried
	json '.jobs[] | [.state, .attempts]' '["ready",0]' list b -J
	json '.jobs | length' 1 list a --state buried -J
	gives 0 kick a "$(twjob list a -o id --no-headings | tr -d ' ')"
	gives 0 drop a b
}

# is_due_in FIRST: the job is due so many seconds after it failed, or up to a tenth later
is_due_in()
{
	json "[.jobs[] | .state, .reason, (.left > ($1 - 5) * 1e9), (.left < ($1 * 1.1 + 5) * 1e9)]" \
		'["delayed","exit status 75",true,true]' get c "$id" -J
}

# The backoff is the queue's, or a job's own. The queue gets and loses one while work runs.
backoffs()
{
	gives 0 create c --backoff 100s:1h
	works c
	for first in 100 1000; do
		own=
		[ $first = 100 ] || own="--backoff ${first}s:1h"
		id=$(twjob put c --body again -k "$first" $own -o id --no-headings | tr -d ' ')
		soon are c delayed 1
		is_due_in $first
		gives 0 cancel c "$id"
	done
	gives 0 create c --backoff 0s:0s
	put again c --key none
	soon has_line '^again c 2 none'
	result $? 'without a backoff the second try comes soon'
	soon has_line '^again c 3 none'
	sleep 1
	is 'and those behind it do not come at once' "$(grep -c '^again c . none' $tmp/log)" 3
	ends
	prints "queue 'c' id [0-9]*: exit status 75, try 1, again after its backoff"
	prints "queue 'c' id [0-9]*: exit status 75, try 2, again in 2s"
	gives 0 drop c
}

# A command that hangs is ended with all that it has started, and its worker goes on.
hanging()
{
	gives 0 create h
	works h --timeout 1s
	put hang h
	soon has_line '^hang h 1'
	put fine h
	soon has_line '^fine h'
	result $? 'the worker goes on after a command that hangs'
	ends
	prints 'killed by signal 9 after --timeout, try 1, again in 1s'
	json '[.jobs[].reason]' '["killed by signal 9 after --timeout"]' list h -J
	is 'processes of it' "$(ps | grep -c '[s]leep 987')" 0
	gives 0 drop h
}

# The lease is a second, by the queue or by the job; the test lets the command end.
leases()
{
	gives 0 create l --lease 1s
	gives 0 create m --lease 1h
	works l m -j 2
	put held l
	put held m --lease 1s
	for queue in l m; do
		soon has_line "^held $queue"
		json '.jobs[] | [.state, ."lease-left" > 0, ."lease-left" <= 1e9, .holder[:3]]' \
			'["held",true,true,"id="]' list $queue -J
	done
	# An extension is as long as the lease.
	usleep 1500000
	json '.jobs[] | [.state, ."lease-left" <= 1e9]' '["held",true]' list m -J
	usleep 1500000
	: >$tmp/goes_on
	soon empty l
	soon empty m
	result $? 'acked after three leases'
	ends
	is 'what ran' "$(sort $tmp/log | tr '\n' ,)" 'held l 1 -,held m 1 -,'
	json '[.figures[] | select(.figure == "lapsed") | .value]' '[0]' stats m -J
	json '[.figures[] | select(.figure == "lapsed") | .value]' '[0]' stats l -J
	gives 0 drop l m
}

# The command of the dead worker still runs.
dead_workers()
{
	gives 0 create d --lease 4s
	works d
	put long d
	soon has_line '^long d 1'
	kill -9 $worker
	wait $worker 2>/dev/null
	works d
	soon has_line '^long d 2'
	result $? 'the job of a dead worker is handed out when its lease is over'
	put slow d
	soon has_line '^slow d 1'
	kill $worker
	wait $worker
	is 'status of a worker that was told to end while its command ran' $? 0
	is 'jobs after it' "$(jobs_of d)" 0
}

restarts()
{
	works d
	put fine d
	soon empty d
	put slow d
	soon has_line '^slow d'
	end_daemon 9
	start_daemon $tmp/config
	put fine d -k second
	soon has_line '^fine d 1 second'
	result $? 'works on after a restart of twjobd'
	soon empty d
	ends
	prints 'STALE the lease is over.*: it may be worked on again'
	refuses 3 "queue 'none'" work none -- true
	refuses 2 "CMD 'nosuch'" work d -- nosuch
	refuses 2 "--timeout '0'" work d --timeout 0 -- true
}

# The backup is of a store in use; a twjobd that begins with the backup has the same jobs.
backups()
{
	put hello sms in 5h -k saved
	gives 0 drop d
	# backup takes no option of the server.
	tool="timeout 60 $here/twjob"
	gives 0 backup $tmp/saved --store $tmp/jobs
	is 'its mode' "$(stat -c %a $tmp/saved)" 600
	sum=$(md5sum <$tmp/saved)
	refuses 5 '--force' backup $tmp/saved --store $tmp/jobs
	is 'the old one' "$(md5sum <$tmp/saved)" "$sum"
	gives 0 backup $tmp/saved --store $tmp/jobs --force
	refuses 2 "--store '/none'" backup $tmp/other --store /none
	refuses 1 'file is not a database' backup $tmp/other --store $here/twjob
	refuses 2 "FILE '/none/x" backup /none/x --store $tmp/jobs
	is 'nothing else is left' "$(echo $tmp/saved* $tmp/other*)" "$tmp/saved $tmp/other*"
	tool=twjob
}

# These are the steps in twjob(1) back to a backup. Jobs put since are not there, and jobs
# ended since are there again.
goes_back()
{
	for i in 1 2 3; do
		put fine sms in 5h -k more-$i
	done
	timeout 60 "$here/twjob" backup --force $tmp/saved --store $tmp/jobs
	result $? 'a second backup'
	put since sms in 5h -k since
	twjob cancel sms -k more-2 >/dev/null
	end_daemon KILL
	rm $tmp/jobs $tmp/jobs-wal
	cp $tmp/saved $tmp/jobs
	for wheel in /dev/timewheels/tw-*; do
		./destroy "${wheel##*/}"
	done
	start_daemon $tmp/config
	json '.jobs | map(.key)' '["saved","more-1","more-2","more-3"]' list sms -J
	gives 0 move sms -k more-2 now
	works sms
	soon has_line '^fine sms 1 more-2'
	result $? 'a job of the backup is worked on'
	ends
	gives 0 drop sms
}

refuses 1 "'systemctl start twjobd'" queues
start_daemon $tmp/config
queues
putting
coming_again
refusing
passwords
statuses
backoffs
hanging
leases
dead_workers
restarts
backups
goes_back
end_daemon TERM
for wheel in /dev/timewheels/t[ws]-*; do
	[ ! -e "$wheel" ] || ./destroy "${wheel##*/}"
done
cat $tmp/daemon.log
finish
