#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Counts the instructions that list and save take for a token, in a guest whose clock counts
# instructions: an instruction is a ns. A machine takes 2 to 4 us for 10,000 instructions.
# Needs the module loaded, root, and beside itself: results.sh, twctl. Prints TAP.
set -u
tool=$PWD/twctl
tmp=/tmp/counts
mkdir -p $tmp
. ./results.sh

tokens=20000

# costs MOST ARGUMENT...: a token costs at most so many instructions, the kernel's included
costs()
{
	most=$1
	shift
	began=$(cut -d' ' -f1 /proc/uptime)
	$tool "$@" >$tmp/out 2>$tmp/err
	status=$?
	ended=$(cut -d' ' -f1 /proc/uptime)
	each=$(awk "BEGIN { print int(($ended - $began) * 1e9 / $tokens) }")
	printed=$(wc -l <$tmp/out)
	: >$tmp/out
	[ $status = 0 ] && [ "$printed" -ge $lines ] && [ "$each" -le "$most" ]
	result $? "twctl $*: $each instructions a token, at most $most"
}

seq $tokens | sed 's/.*/add & &s --cookie 9007199254740993/' >$tmp/in
$tool create counted --max-tokens $tokens
$tool batch counted <$tmp/in >$tmp/out
is 'registered' "$(grep -c '^ok registered' $tmp/out)" $tokens
lines=$tokens
costs 20000 list counted
costs 20000 list counted -J
costs 20000 list counted -b -o +handle,deadline
lines=1
costs 20000 save counted $tmp/save
$tool destroy counted
finish
