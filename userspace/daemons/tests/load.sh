#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twidled runs under the load generator, in a guest. Its lines are compared with the generator's
# ledger: each user that fell silent is reported offline, exactly once and not early, and no other
# user. First come 20,000 users, and then 5,000 users and a service that is killed in the middle.
# TW_USERS=100000 takes 8 GB and a quarter of an hour. TW_SCALE scales the number. If it is less
# than 1, no service is killed, which systemd.sh does with a load, too.
set -eu

dir=/tmp/twidled-load
test=0
failed=0

scaled() # NUMBER
{
	awk -v n="$1" -v s="${TW_SCALE:-1}" \
		'BEGIN { n = int(n * s); print n < 200 ? 200 : n }'
}

result() # STATUS NAME
{
	test=$((test + 1))
	if [ "$1" = 0 ]; then
		echo "ok $test $2"
	else
		echo "not ok $test $2"
		failed=1
	fi
}

# lines WORD NUMBER SECONDS: waits until the service has printed this many lines of a kind.
lines()
{
	local left=$3

	while [ "$(grep -c "^$1" $dir/out)" -lt "$2" ]; do
		[ "$left" -gt 0 ] || return 1
		left=$((left - 1))
		sleep 1
	done
}

start_service()
{
	./twidled --config $dir/config >>$dir/out 2>>$dir/log &
	service=$!
}

# compare NAME USERS TIMEOUT: compares the lines with the ledger. A user that paused
# for as long as the timeout, as on a slow machine, may be reported or not.
compare()
{
	awk -v name="$1" -v users="$2" -v timeout="$3" '
		function result(bad, what) {
			print (bad ? "not ok " : "ok ") name ": " what
		}
		FILENAME ~ /ledger$/ {
			if ($1 == "silent") {
				last[$2] = $3
				silent++
			} else {
				paused[$2] = $3
				pauses++
			}
			next
		}
		$1 == "online" { online[$2]++; next }
		$1 == "offline" {
			if ($2 in paused)
				next
			if (!($2 in last))
				others++
			else if (offline[$2]++)
				again++
			else
				told++
			if (name == "load" && $3 < last[$2] + timeout)
				early++
			next
		}
		$1 == "anew" && !came_anew++ { next }
		{ strange++ }
		END {
			for (user in online) {
				came++
				twice += online[user] > 1 && !(user in paused)
			}
			for (user in last)
				missing += !(user in offline) && !(user in paused)
			printf "# %s: users %d, online %d, silent %d, told offline %d; " \
				"missing %d, again %d, others %d, early %d; " \
				"online again %d; paused too long %d\n", name, users,
				came, silent, told, missing, again, others, early,
				twice, pauses
			result(came != users || strange, "all users came online")
			result(twice, "nobody came online twice")
			result(missing, "all silent users were reported")
			result(again, "each of them once")
			result(others, "nobody else")
			result(early, "nobody early")
			result(pauses > users / 100, "the load was as planned")
		}' $dir/ledger $dir/out >$dir/results
	while read -r ok rest; do
		case $ok in
		ok)	result 0 "$rest" ;;
		not)	result 1 "${rest#ok }" ;;
		*)	echo "$ok $rest" ;;
		esac
	done <$dir/results
}

# run NAME USERS TIMEOUT INTERVAL: runs one life of the service, or two lives for "restart".
run()
{
	local name=$1 users=$2 timeout=$3 interval=$4 load status
	local silent=$((users / 10))

	rm -rf $dir
	mkdir $dir
	cat >$dir/config <<-END
		wheel = twidled-$name
		events = $dir/events
		state = $dir/state
		timeout = ${timeout}s
		listen = 127.0.0.1:7075
	END
	start_service
	sleep 1
	./load --users "$users" --rate $((users / interval)) \
		--silent $silent --vanish $((silent / 4)) --from 1 --until 12 \
		--timeout $((timeout - 3)) --reconnect --ledger $dir/ledger >$dir/report &
	load=$!
	lines online "$users" 600 || echo "# not all came online"
	if [ "$name" = restart ]; then
		# Some users have fallen silent, and more users will while no service runs.
		sleep 7
		kill -9 $service
		wait $service || :
		sleep 4
		start_service
	fi
	lines offline $silent $((timeout + 60)) || echo "# not all went offline"
	# Lines that must not come would come now.
	sleep 3
	sed -n 's/^VmRSS:/# memory of the service:/p' /proc/$service/status
	kill $load
	wait $load && status=0 || status=$?
	result $status "$name: the load generator's users all logged in"
	kill $service
	wait $service && status=0 || status=$?
	result $status "$name: the service stops"
	sed "s/^/# load: /" $dir/report
	sed "s/^/# /" $dir/log
	compare "$name" "$users" "$timeout"
	./destroy twidled-"$name"
}

users=$(scaled "${TW_USERS:-20000}")
timeout=$((20 + users / 500))
kills=$(awk -v scale="${TW_SCALE:-1}" 'BEGIN { print (scale >= 1) }')
echo "1..$((9 + 9 * kills))"
run load "$users" $timeout $((timeout / 2))
if [ "$kills" = 1 ]; then
	# The users need as long to come back as they needed to come, and the timeout has to leave
	# time for this.
	seconds=$(sed -n 's/.*logged in after \([0-9]*\).*/\1/p' $dir/report)
	run restart $((users / 4)) $((30 + seconds)) 10
fi
rm -rf $dir
exit $failed
