#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The units run under systemd in a guest: twidled as its own user in its sandbox, with the journal
# as its standard output, reloaded, killed and failing; twjobd with its socket; the metrics by
# their timers. systemd is the first process of a pid namespace, in a root of its own: root.tar,
# see systemd-root.
set -eu

root=/sysroot
test=0
failed=0

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

# attempt NAME COMMAND...
attempt()
{
	local name=$1 status=0

	shift
	"$@" || status=1
	result $status "$name"
}

# inside COMMAND...: runs a command beside systemd
inside()
{
	PATH=/bin:/usr/bin nsenter -t "$init" -m -p "$@"
}

# wait_for COMMAND...: repeats a command until it succeeds
wait_for()
{
	local left=60

	until "$@" >/dev/null 2>&1; do
		[ $left -gt 0 ] || return 1
		left=$((left - 1))
		sleep 1
	done
}

start_systemd()
{
	mkdir -p $root
	mount -t tmpfs tmpfs $root
	tar -C $root -xf root.tar
	mount --bind /dev $root/dev
	mount -t sysfs sysfs $root/sys
	mount -t cgroup2 cgroup2 $root/sys/fs/cgroup
	mount -t tmpfs tmpfs $root/run
	mount -t tmpfs tmpfs $root/tmp
	chroot $root systemd-sysusers 2>/dev/null
	cat >$root/init.sh <<-END
		mount -t proc proc proc
		mount --move . /
		exec chroot . /lib/systemd/systemd --log-target=null
	END
	(cd $root && container=other exec unshare -m -p -f sh init.sh) &
	wait_for pidof systemd
	init=$(pidof systemd)
	wait_for inside systemctl is-active basic.target
	inside systemctl start systemd-journald.socket systemd-journald
}

# Prints the lines of the service's standard output, which are in the journal.
lines()
{
	inside journalctl --sync
	inside journalctl -u twidled -o cat _TRANSPORT=stdout |
		grep -E '^(online|offline) ' || :
}

is_active() # UNIT
{
	[ "$(inside systemctl is-active "$1")" = active ]
}

has_lines() # WORD NUMBER
{
	[ "$(lines | grep -c "^$1 ")" -ge "$2" ]
}

show() # PROPERTY
{
	inside systemctl show -P "$1" twidled
}

same_lists() # NUMBER: of offline lines in the journal, and of lines in the ledger
{
	lines | awk '$1 == "offline" { print $2 }' | sort >/tmp/told
	[ "$(wc -l </tmp/told)" = "$1" ] || return 1
	awk '$1 == "silent" { print $2 }' $root/tmp/ledger | sort >/tmp/ledger
	cmp /tmp/told /tmp/ledger
}

load() # OPTION...
{
	inside load --ledger /tmp/ledger "$@" | sed 's/^/# /'
}

is_confined() # SERVICE CAPABILITIES FILES
{
	local process=/proc/$(pidof "$1")

	[ "$(awk '/^Uid/ { print $2 }' "$process/status")" != 0 ] &&
		grep -q "^CapEff:.$2$" "$process/status" &&
		grep -q '^Seccomp:.2$' "$process/status" &&
		grep -q '^NoNewPrivs:.1$' "$process/status" &&
		[ "$(awk '/open files/ { print $4 }' "$process/limits")" -ge "$3" ]
}

stopped() # UNIT
{
	! is_active "$1"
}

killed() # SERVICE
{
	local before

	before=$(pidof "$1")
	inside systemctl kill -s KILL "$1"
	wait_for restarted "$1" "$before"
}

restarted() # SERVICE PID
{
	is_active "$1" && [ "$(pidof "$1")" != "$2" ]
}

fails_for_good()
{
	echo "foo = 1" >$root/etc/twidled.conf
	inside systemctl stop twidled
	inside systemctl start twidled 2>/dev/null && return 1
	sleep 2
	[ "$(inside systemctl is-active twidled)" = failed ] &&
		[ "$(show ExecMainStatus)" = 2 ] &&
		inside journalctl -u twidled -o cat |
		grep -qx '/etc/twidled.conf:1: unknown key "foo"'
}

metrics() # UNIT FILE LINE
{
	inside systemctl start "$1.timer"
	wait_for grep -q "^$3" "$root/var/lib/prometheus/node-exporter/$2"
}

jobs() # WORD...: prints twjobd's answer
{
	inside redis-cli -e -s /run/twjobd/socket "$@"
}

# Takes a job of the queue, and prints a line of it: line 3 is the receipt, line 7 the body.
taken() # LINE
{
	jobs TW.TAKE sms BLOCK 20000 | sed -n "$1p"
}

# A worker keeps its job when the service is killed: the job is not handed out again, and the
# worker's answer is accepted.
keeps_what_is_held()
{
	local receipt

	jobs TW.PUT sms held >/dev/null
	receipt=$(taken 3)
	[ "$receipt" ] && killed twjobd && [ "$(jobs TW.TAKE sms)" = "" ] &&
		[ "$(jobs TW.ACK sms "$receipt")" = 1 ]
}

starts_for_a_client()
{
	inside systemctl stop twjobd.service 2>/dev/null
	! is_active twjobd.service && [ "$(jobs TW.QUEUES)" = sms ] &&
		is_active twjobd.service
}

has_ended() # ADDRESS
{
	inside journalctl --sync
	inside journalctl -u twreap@twjobd -o cat | grep -q " ended $1 "
}

# An administrator's setting makes the socket listen at a port.
says_that_tcp_needs_a_password()
{
	mkdir -p $root/etc/systemd/system/twjobd.socket.d
	printf '%s\n' '[Socket]' 'ListenStream=127.0.0.1:7076' \
		>$root/etc/systemd/system/twjobd.socket.d/tcp.conf
	inside systemctl daemon-reload
	inside systemctl stop twjobd.service 2>/dev/null
	inside systemctl restart twjobd.socket
	inside systemctl start twjobd.service 2>/dev/null && return 1
	inside journalctl --sync
	inside journalctl -u twjobd -o cat | grep -q 'TCP without a password' || return 1
	echo 'password = secret' >>$root/etc/twjobd.conf
	inside systemctl reset-failed twjobd.service twjobd.socket
	inside systemctl restart twjobd.socket
	inside systemctl start twjobd.service
}

reaps()
{
	mkdir -p $root/etc/timewheel/reap
	echo 'OPTIONS=--idle 2s --listen 7076' >$root/etc/timewheel/reap/twjobd.conf
	inside systemctl start twreap@twjobd
	mkfifo /tmp/silence
	nc 127.0.0.1 7076 <>/tmp/silence &
	wait_for has_ended 127.0.0.1:7076
}

# The service stops as at shutdown, and starts as at the next boot.
wheel_comes_back()
{
	mkdir -p $root/etc/timewheel/wheels.d
	printf '%s\n' 'name = orders' 'group = timewheel' 'mode = 0660' 'saved = yes' \
		>$root/etc/timewheel/wheels.d/orders.conf
	inside systemctl start timewheel-wheels &&
		inside twctl touch orders -r 1h 1 2 3 >/dev/null &&
		inside systemctl stop timewheel-wheels &&
		inside twctl destroy orders &&
		inside systemctl start timewheel-wheels &&
		[ "$(stat -c '%g %a' /dev/timewheels/orders)" = '200 660' ] &&
		[ "$(inside twctl list orders -o id --no-headings | wc -l)" = 3 ]
}

# The wheel is still saved, and the save that could not be restored is kept.
bad_save_is_kept()
{
	local saves=$root/var/lib/timewheel

	inside systemctl stop timewheel-wheels
	inside twctl destroy orders
	sed -i '$d' $saves/orders.save
	inside systemctl start timewheel-wheels || return
	inside twctl touch orders -r 1h 7 >/dev/null
	inside systemctl stop timewheel-wheels
	[ "$(wc -l <$saves/orders.save.unrestored)" = 4 ] &&
		[ "$(wc -l <$saves/orders.save)" = 3 ]
}

# Each command has written its user into a file.
commands_ran() # NUMBER
{
	[ "$(sort -u $root/run/twidled/ran | wc -l)" = "$1" ] &&
		[ "$(wc -l <$root/run/twidled/ran)" = "$1" ]
}

echo "1..29"
start_systemd
printf '%s\n' '#!/bin/sh' 'echo "$TWIDLED_USER" >>/run/twidled/ran' >$root/etc/offline
chmod 755 $root/etc/offline
printf '%s\n' "timeout = 4s" "exec = /etc/offline" >$root/etc/twidled.conf
attempt "the service starts" inside systemctl start twidled
attempt "it is active" is_active twidled
attempt "without privilege, confined, with its files" \
	is_confined twidled 0000000000000000 101152
load --users 300 --rate 300 --silent 60 --vanish 10 --from 1 --until 3 --time 10 \
	--timeout 3
attempt "the journal tells the silent users, each once" same_lists 60
# The other users are silent now.
attempt "and then the others" wait_for has_lines offline 300
attempt "a command has run for each" wait_for commands_ran 300

echo "timeout = 10s" >$root/etc/twidled.conf
inside systemctl kill -s HUP twidled
load --users 300 --first 1001 --rate 300 --silent 300 --vanish 50 --from 1 \
	--until 8 --time 9
# The users go offline now, and in the next seconds.
attempt "killed, it is started again" killed twidled
killed twidled
sleep 1
killed twidled
wait_for has_lines offline 600 || :
lines | awk '$1 == "offline" { seen[$2]++ }
	END { for (u in seen) { n++; twice += seen[u] > 1 }
	print "# told", n, "twice", twice + 0; exit n != 600 || twice }' &&
	status=0 || status=1
result $status "nobody is lost in that, nobody is told twice"

attempt "it is reloaded" inside systemctl reload twidled
attempt "it stops" inside systemctl stop twidled
attempt "stopped, its wheel is there" test -c /dev/timewheels/twidled
inside systemctl start twidled
attempt "the metrics' timer writes them" metrics timewheel-metrics timewheel.prom \
	'timewheel_delivered_total{wheel="twidled"}'
attempt "an error in the configuration: failed, and not tried again" fails_for_good

attempt "twjobd starts" inside systemctl start twjobd
# twjobd may raise its limits, so that it has all the tokens that its queues need.
attempt "it is confined, with its files" is_confined twjobd 0000000001000000 10576
attempt "root makes a queue by the socket" [ "$(jobs TW.CREATE sms)" = OK ]
jobs TW.PUT sms hello IN 2 >/dev/null
attempt "a job is handed out when it is due" [ "$(taken 7)" = hello ]
attempt "killed, it leaves to workers what they hold" keeps_what_is_held
attempt "it is reloaded" inside systemctl reload twjobd
attempt "stopped, it is started by the next client" starts_for_a_client
attempt "its metrics' timer writes them" metrics timewheel-jobs-metrics \
	timewheel-jobs.prom 'twjobd_jobs{queue="sms"} 1'
attempt "a socket of TCP without a password is an error" says_that_tcp_needs_a_password
attempt "twreap@ ends an idle connection of it" reaps
# The rights are CAP_SYS_PTRACE, CAP_NET_ADMIN and CAP_DAC_READ_SEARCH.
attempt "it has these rights only" \
	grep -q '^CapEff:.0000000000081004$' "/proc/$(pidof twctl)/status"
attempt "the sockets' end is its own" inside systemctl stop twjobd.socket
attempt "twjobd has stopped" wait_for stopped twjobd
attempt "twreap@ has stopped with it" wait_for stopped twreap@twjobd

attempt "a declared wheel comes back with its tokens" wheel_comes_back
attempt "a save that was cut off is refused, and kept" bad_save_is_kept

inside journalctl -u twidled -u twjobd -o cat _TRANSPORT=stdout |
	grep '^tw' | sed 's/^/# /' || :
kill -9 "$init"
wait
./destroy twidled
./destroy jobs-sms
./destroy orders
for mount in tmp run sys/fs/cgroup sys dev .; do
	umount $root/$mount
done
exit $failed
