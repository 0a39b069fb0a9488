#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# reap ends idle connections of programs that know nothing of reap, on a real device. Needs
# the modules timewheel and tcp_diag loaded, root, and beside itself: results.sh, twctl, echo,
# strace. Prints TAP. Arguments are names of tests: by default all but crowd. "make
# guest-tests" runs it in guests in which nothing is late, however busy the machine is.
set -u
twctl="$PWD/twctl"
tool="timeout 60 $twctl"
echo="$PWD/echo"
tmp=/tmp/reap
mkdir -p $tmp
chmod 777 $tmp
. ./results.sh
# Each test has a port of its own.
port=7000

# serve ARGUMENT...: starts an echo server, $server, on the next port; its errors go to
# $tmp/errors
serve()
{
	port=$((port + 1))
	$echo serve $port "$@" >$tmp/errors &
	server=$!
}

# clients IDLE BUSY: starts $clients, which opens connections to the server
clients()
{
	rm -f $tmp/clients
	$echo hold $port "$@" >$tmp/clients &
	clients=$!
}

# reap ARGUMENT...: starts reap in the background, as $reap; it prints to $tmp/out and err
reap()
{
	rm -f $tmp/out
	$twctl reap "$@" >$tmp/out 2>$tmp/err &
	reap=$!
}

# sockets PROCESS: how many sockets the process has open
sockets()
{
	for file in /proc/"$1"/fd/*; do
		readlink "$file"
	done | grep -c '^socket:'
}

# ends STATUS PROCESS WHAT: tells the process to end, and checks its status
ends()
{
	kill $2
	wait $2
	is "$3" $? "$1"
}

# some_time: waits so long that idle connections would have been ended
some_time()
{
	usleep 3500000
}

# left IDLE BUSY: the clients still have so many connections
left()
{
	kill $clients
	wait $clients
	is 'left of the connections' "$(cat $tmp/clients)" "idle $1 busy $2"
}

# ended COUNT [WORD]: reap has ended so many connections, all of the server's port
ended()
{
	if [ "$1" = 0 ]; then
		some_time
	else
		settle $tmp/out "$1"
	fi
	is 'lines of connections' "$(grep -c " ${2:-ended} 127.0.0.1:$port 127.0.0.1:[0-9]* idle [0-9.]*s$" $tmp/out)" "$1"
	is 'all lines' "$(wc -l <$tmp/out)" "$1"
}

stop_all()
{
	ends 143 $reap 'status of reap'
	kill -9 $server
	wait $server
}

idle_ones()
{
	serve
	database=$server
	$echo serve $((port + 1)) 0 $port >$tmp/errors &
	server=$!
	port=$((port + 1))
	reap --pid $server --idle 2s
	clients 20 10
	ended 20
	some_time
	ended 20
	left 0 10
	is 'what the server has read' "$(sort $tmp/errors | uniq -c | xargs)" '20 ECONNABORTED'
	grep -q ":$((port - 1)) " $tmp/out
	is 'its own connection' $? 1
	is 'messages' "$(cat $tmp/err)" ''
	# reap has the socket of sock_diag open, and no connection.
	is 'sockets of reap' "$(sockets $reap)" 1
	# The clients have gone, and nothing of them is left on the wheel.
	stop_all
	kill -9 $database
	wait $database
	is 'users of the module' "$(awk '$1 == "timewheel" { print $3 }' /proc/modules)" 0
}

# reap ends the silent ones of thousands of connections, each once, neither early nor much
# later.
crowd()
{
	serve
	reap --pid $server --idle 3s
	clients 4000 250
	ended 4000
	some_time
	ended 4000
	is 'ended early, or more than a second late' \
		"$(sed 's/.* idle \(.*\)s$/\1/' $tmp/out | awk '$1 < 2.99 || $1 > 4' | wc -l)" 0
	is 'ended twice' "$(awk '{ print $4 }' $tmp/out | sort | uniq -d | wc -l)" 0
	left 0 250
	is 'messages' "$(cat $tmp/err)" ''
	echo "# CPU time of reap: $(awk '{ print 10 * ($14 + $15) }' /proc/$reap/stat) ms"
	stop_all
}

# A server that hangs is not asked, and connections that it has not accepted are found, too.
hung()
{
	serve
	clients 6 0
	until [ "$(sockets $server)" = 7 ]; do
		usleep 100000
	done
	kill -STOP $server
	reap --pid $server --idle 2s --received
	ended 6
	left 0 0
	ends 143 $reap 'status of reap'
	reap --pid $server --idle 2s --received
	clients 4 0
	ended 4
	left 0 0
	kill -CONT $server
	stop_all
}

# The port is enough, also for a user who may not look into any process.
port_only()
{
	serve
	clients 5 2
	until [ "$(sockets $server)" = 8 ]; do
		usleep 100000
	done
	kill -STOP $server
	reap --listen $port --idle 2s --dry-run
	ended 7 due
	ends 143 $reap 'status of reap'
	chmod 666 /dev/timewheel
	su nobody -s /bin/sh -c "exec $twctl reap --listen $port --idle 2s --dry-run" \
		>$tmp/out 2>$tmp/err &
	reap=$!
	ended 7 due
	is 'messages' "$(cat $tmp/err)" ''
	chmod 660 /dev/timewheel
	ends 143 $reap 'status without a right'
	kill -CONT $server
	kill -9 $clients
	wait $clients
	clients 3 2
	reap --listen $port --idle 2s
	ended 3
	left 0 2
	stop_all
}

dry_run()
{
	serve
	reap --pid $server --idle 2s --dry-run
	clients 5 2
	ended 5 due
	left 5 2
	is 'errors of the server' "$(cat $tmp/errors)" ''
	stop_all
}

# reap finds connections that children of the process have accepted, and only on the port that
# --listen names.
children()
{
	serve 3
	reap --pid $server --idle 2s --listen $port
	clients 9 3
	ended 9
	left 0 3
	ends 143 $reap 'status of reap'
	reap --pid $server --idle 2s --listen $((port + 1))
	clients 3 0
	ended 0
	left 3 0
	stop_all
	# The children have no parent now.
	killall -9 echo
}

group()
{
	mkdir -p /sys/fs/cgroup/service/below
	serve
	echo $server >/sys/fs/cgroup/service/below/cgroup.procs
	reap --cgroup /service --idle 2s
	clients 4 2
	ended 4
	left 0 2
	kill -9 $server
	wait $server
	rmdir /sys/fs/cgroup/service/below /sys/fs/cgroup/service
	wait $reap
	is 'status when the group has gone' $? 0
	is 'it says so' "$(cat $tmp/err)" 'twctl: reap: the control group has gone'
}

# A connection is left alone for a while after it was found.
grace()
{
	serve
	clients 3 1
	reap --pid $server --idle 2s --grace 1h
	ended 0
	left 3 1
	ends 143 $reap 'status of reap'
	reap --pid $server --idle 2s --grace 3s
	clients 3 1
	ended 3
	left 0 1
	kill -9 $server
	wait $server $reap
	is 'status when the process has ended' $? 0
	is 'it says so' "$(cat $tmp/err)" 'twctl: reap: the process has ended'
}

namespace()
{
	port=$((port + 1))
	cat >$tmp/inside <<-END
		ip link set lo up
		$echo serve $port >$tmp/errors &
		echo \$! >$tmp/server
		exec $echo hold $port 4 2 >$tmp/clients
	END
	: >$tmp/server
	unshare -n sh $tmp/inside &
	clients=$!
	settle $tmp/server 1
	server=$(cat $tmp/server)
	reap --pid $server --idle 2s
	ended 4
	left 0 2
	ends 143 $reap 'status of reap'
	kill -9 $server
}

multipath()
{
	echo 1 >/proc/sys/net/mptcp/enabled
	export ECHO_PROTOCOL=262
	serve
	reap --pid $server --idle 2s
	clients 3 1
	ended 0
	left 3 1
	is 'told once' "$(cat $tmp/err)" 'twctl: reap: connections by MPTCP are passed over'
	stop_all
	unset ECHO_PROTOCOL
}

# calls FILE with|without: counts the system calls of a server under strace
calls()
{
	serve_traced "$1"
	[ "$2" = without ] || reap --pid "$traced" --idle 2s
	: >$tmp/clients
	rm -f $tmp/clients
	$echo ping $port 20 >$tmp/clients &
	clients=$!
	settle $tmp/clients 1
	kill "$traced"
	wait $server
	kill -9 $clients
	wait $clients
	[ "$2" = without ] || wait $reap
	awk '$4 ~ /^[0-9]+$/ && $NF != "total" { print $NF, $4 }' "$1" | sort
}

serve_traced()
{
	traced=none
	port=$((port + 1))
	./strace -c -o "$1" $echo serve $port >$tmp/errors &
	server=$!
	# strace has other children before the server, to try ptrace.
	until [ "$(readlink "/proc/$traced/exe")" = "$echo" ]; do
		usleep 100000
		traced=$(cat /proc/$server/task/$server/children)
		traced=${traced%% *}
	done
}

no_call_more()
{
	without=$(calls $tmp/without without)
	with=$(calls $tmp/with with)
	is 'system calls of a server' "$(echo "$with" | xargs)" "$(echo "$without" | xargs)"
	echo "$with" | grep -q '^read 2[0-9]$'
	is 'reads are among them' $? 0
}

as_nobody()
{
	timeout 60 su nobody -s /bin/sh -c "$*" >$tmp/out 2>$tmp/err
}

rights()
{
	serve
	sleep 1
	chmod 666 /dev/timewheel
	as_nobody $twctl reap --pid $server --idle 2s --dry-run
	is 'status for the process of another' $? 4
	grep -q "process $server: its connections cannot be found.*CAP_SYS_PTRACE is missing" $tmp/err
	is 'CAP_SYS_PTRACE is named' $? 0
	as_nobody $twctl reap --pid $server --idle 2s
	grep -q 'cannot be ended: CAP_NET_ADMIN is missing' $tmp/err
	is 'CAP_NET_ADMIN is named' $? 0
	kill -9 $server
	wait $server
	port=$((port + 1))
	su nobody -s /bin/sh -c "exec $echo serve $port" &
	server=$!
	sleep 1
	# Files of another process are looked at, and never taken, which Yama allows.
	scope=/proc/sys/kernel/yama/ptrace_scope
	[ ! -e $scope ] || echo 1 >$scope
	as_nobody $twctl reap --pid $server --idle 2s
	is 'status for the own process' $? 4
	is 'what is missing' "$(cat $tmp/err)" 'twctl: reap: connections cannot be ended: CAP_NET_ADMIN is missing'
	[ ! -e $scope ] || echo 0 >$scope
	chmod 660 /dev/timewheel
	kill -9 $server
	wait $server
}

# Nothing in this guest would load the module tcp_diag.
no_tcp_diag()
{
	rmmod tcp_diag
	refuses 1 'the kernel lacks the module tcp_diag' reap --pid $$ --idle 3s
}

for test in ${*:-idle_ones hung port_only dry_run children group grace \
	namespace multipath no_call_more rights no_tcp_diag}; do
	$test
done
finish
