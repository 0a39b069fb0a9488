#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl and tokens that watch connections: wheels for them, what list, watch, stats and
# save tell. Needs the module loaded, root, and beside itself: results.sh, twctl, jq,
# promtool, and watched, which has such a connection. Prints TAP.
set -u
# What hangs has failed.
twctl="timeout 60 $PWD/twctl"
tool=$twctl
jq=$PWD/jq
tmp=/tmp/watched
mkdir -p $tmp
. ./results.sh

# hold WHEEL ID MS: a connection that is watched; $local, $remote and $cookie name it
hold()
{
	mkfifo "$tmp/hold$2"
	./watched "$@" <"$tmp/hold$2" >"$tmp/held$2" &
	case $2 in
	1) exec 5>"$tmp/hold$2" ;;
	*) exec 6>"$tmp/hold$2" ;;
	esac
	settle "$tmp/held$2" 1
	read -r local remote cookie <"$tmp/held$2"
}

wheels()
{
	refuses 2 '--tell-ended: only for a wheel that watches' create bad --tell-ended
	refuses 2 '--watch: only with the monotonic clock' create bad --watch -c realtime
	refuses 2 '--watch: not with a lease' create bad --watch --lease 5s
	refuses 2 '--watch: not with a lease' create bad --watch --periods
	refuses 2 '--watch: not with a lease' create bad --watch --touch-words
	gives 0 create silent --watch --tick 10ms
	gives 0 create told --watch --tell-ended --tick 10ms
	gives 0 create plain
	json '[.wheels[] | [.name, .watch, ."tell-ended"]]' \
		'[["plain",false,false],["silent",true,false],["told",true,true]]' \
		-J -o name,watch,tell-ended
}

listing()
{
	hold silent 1 60000
	gives 0 add silent 2 1h
	json '[.tokens[] | [.id, .timeout, .socket, .local, .remote, .interface]]' \
		"[[1,60000000000,$cookie,\"127.0.0.1:$local\",\"127.0.0.1:$remote\",null],[2,3600000000000,null,null,null,null]]" \
		list silent -J
	gives 0 get silent 1 -o +local
	prints "127.0.0.1:$local\$"
	refuses 1 'id 1 watches a connection and cannot be moved' move silent 1 in 5s
	gives 0 touch silent 1
	# Answers of a batch are as ever.
	printf '%s\n' 'touch 1' 'move 1 5s' >$tmp/lines
	gives 1 batch silent <$tmp/lines
	prints '^ok'
	prints '^error EINVAL'
}

# What watches a connection is left out, and told of; the rest comes back.
saving()
{
	gives 0 save silent $tmp/save
	prints "^wheel 'silent': 1 tokens saved"
	prints "^wheel 'silent': 1 tokens watch connections.*not saved"
	gives 0 destroy silent
	gives 0 restore silent $tmp/save
	json '[.tokens[].id]' '[2]' list silent -J
	json '.wheels[1].watch' true -J -o name,watch
	# A save of a twctl that knew nothing of it.
	sed 's/,"watch":[a-z]*,"tell-ended":[a-z]*//' $tmp/save >$tmp/old
	gives 0 destroy silent
	gives 0 restore silent $tmp/old --force
	json '.wheels[1].watch' false -J -o name,watch
}

events()
{
	hold told 7 200
	gives 0 watch told -n 1 -f '{id} {missed} {error}'
	is 'an idle one' "$(cat $tmp/out)" '7 0 0'
	exec 6>&-
	rm $tmp/hold7 $tmp/held7
	hold told 8 200
	exec 6>&-
	json '[.id, .missed, .error]' '[8,0,107]' watch told -n 1 -J
	gives 0 add told 9 0s
	# shellcheck disable=SC2016 # for the command
	gives 0 exec told -n 1 -- sh -c 'echo $TIMEWHEEL_ID $TIMEWHEEL_ERROR {error}'
	is 'in the environment' "$(cat $tmp/out)" '9 0 0'
}

figures()
{
	json '.stats[0] | [.asked > 0, .refused]' '[true,0]' stats told -J
	gives 0 stats told --prometheus
	prints '^timewheel_asked_total{wheel="told"} [1-9]'
	prints '^timewheel_refused_total{wheel="told"} 0'
	./promtool check metrics <$tmp/out >$tmp/err 2>&1
	result $? 'promtool takes it'
}

: >$tmp/out
: >$tmp/err
wheels
listing
saving
events
figures
exec 5>&-
$twctl destroy silent told plain
echo "1..$n"
exit $failed
