# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034,SC2154
#
# Results of the tests of a tool, as TAP. The script that reads this sets $tool, the
# command, $tmp, a folder, and $jq, or in a guest, where jq is slow, $later: a file with what
# the script "json" asks jq later.
n=0 failed=0
: >$tmp/out
: >$tmp/err

# finish: ends the test
finish()
{
	echo "1..$n"
	exit $failed
}

# result STATUS WHAT: a result of the test
result()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n $2"
		return
	fi
	echo "not ok $n $2"
	sed 's/^/# out: /' $tmp/out
	sed 's/^/# err: /' $tmp/err
	failed=1
}

# gives STATUS ARGUMENT...: the tool ends with STATUS; it prints into $tmp/out and err
gives()
{
	want=$1
	shift
	$tool "$@" >$tmp/out 2>$tmp/err
	got=$?
	[ $got = "$want" ]
	result $? "status $want${got:+ ($got)}: ${tool##*/} $*"
}

# refuses STATUS PATTERN ARGUMENT...: the tool says why in one line, and prints nothing else
refuses()
{
	want=$1 pattern=$2
	shift 2
	$tool "$@" >$tmp/out 2>$tmp/err
	got=$?
	[ $got = "$want" ] && [ "$(wc -l <$tmp/err)" = 1 ] &&
		grep -q -- "$pattern" $tmp/err && [ ! -s $tmp/out ]
	result $? "refused, status $want ($got): ${tool##*/} $*"
}

# prints PATTERN: a line that was printed last matches
prints()
{
	grep -q -- "$1" $tmp/out
	result $? "  prints $1"
}

# is WHAT VALUE WANTED
is()
{
	[ "$2" = "$3" ]
	result $? "$1: $2${3:+ = $3}"
}

# json FILTER VALUE ARGUMENT...: the tool's JSON is well-formed, and the filter gives VALUE
json()
{
	filter=$1 value=$2
	shift 2
	$tool "$@" >$tmp/out 2>$tmp/err
	if [ "${later-}" ]; then
		tells "$filter of ${tool##*/} $*" "$filter" "$value" <$tmp/out
	else
		is "$filter of ${tool##*/} $*" "$($jq -c "$filter" <$tmp/out 2>>$tmp/err)" "$value"
	fi
}

# tells WHAT FILTER VALUE: the filter gives VALUE of the JSON from standard input
tells()
{
	printf '%s\0' "$@" >>$later
	cat >>$later
	printf '\0' >>$later
}

# settle FILE LINES: waits until the file has so many lines, for a minute at most. The caller
# removes an older file before, as its writer begins some time after the start.
settle()
{
	tries=0
	# A writer in the background may not have made the file yet.
	while { [ ! -e "$1" ] || [ "$(wc -l <"$1")" -lt "$2" ]; } &&
	      [ $tries -lt 600 ]; do
		tries=$((tries + 1))
		usleep 100000
	done
}
