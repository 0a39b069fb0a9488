#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The units under systemd, in a guest: twidled as its own user in its sandbox, with
# the journal as its standard output, reloaded, killed and failing; the metrics by
# their timer. systemd is the first process of a pid namespace, in a root of its
# own: root.tar, see systemd-root.
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

# inside COMMAND...: beside systemd
inside()
{
	PATH=/bin:/usr/bin nsenter -t "$init" -m -p "$@"
}

# wait_for COMMAND...: until it succeeds
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

# The lines of the service's standard output, in the journal.
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

same_lists() # NUMBER: of offline lines in the journal, and of the ledger
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

is_confined()
{
	local status=/proc/$(pidof twidled)/status

	[ "$(awk '/^Uid/ { print $2 }' "$status")" != 0 ] &&
		grep -q '^CapEff:.0000000000000000$' "$status" &&
		grep -q '^Seccomp:.2$' "$status" &&
		grep -q '^NoNewPrivs:.1$' "$status" &&
		[ "$(awk '/open files/ { print $4 }' "/proc/$(pidof twidled)/limits")" -ge 101152 ]
}

killed()
{
	local before

	before=$(pidof twidled)
	inside systemctl kill -s KILL twidled
	wait_for restarted "$before"
}

restarted() # PID
{
	is_active twidled && [ "$(pidof twidled)" != "$1" ]
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

metrics()
{
	inside systemctl start timewheel-metrics.timer
	wait_for grep -q '^timewheel_delivered_total{wheel="twidled"}' \
		$root/var/lib/prometheus/node-exporter/timewheel.prom
}

echo "1..12"
start_systemd
echo "timeout = 4s" >$root/etc/twidled.conf
attempt "the service starts" inside systemctl start twidled
attempt "it is active" is_active twidled
attempt "without privilege, confined, with its files" is_confined
load --users 300 --rate 300 --silent 60 --vanish 10 --from 1 --until 3 --time 10 \
	--timeout 3
attempt "the journal tells the silent users, each once" same_lists 60
# The others are silent now.
attempt "and then the others" wait_for has_lines offline 300

echo "timeout = 10s" >$root/etc/twidled.conf
inside systemctl kill -s HUP twidled
load --users 300 --first 1001 --rate 300 --silent 300 --vanish 50 --from 1 \
	--until 8 --time 9
# They go offline now, and in the next seconds.
attempt "killed, it is started again" killed
killed
sleep 1
killed
wait_for has_lines offline 600 || :
lines | awk '$1 == "offline" { seen[$2]++ }
	END { for (u in seen) { n++; twice += seen[u] > 1 }
	print "# told", n, "twice", twice + 0; exit n != 600 || twice }' &&
	status=0 || status=1
result $status "nobody is lost in that, nobody is told twice"

attempt "it is reloaded" inside systemctl reload twidled
attempt "it stops" inside systemctl stop twidled
attempt "stopped, its wheel is there" test -c /dev/timewheels/twidled
if [ -e $root/usr/bin/twctl ]; then
	inside systemctl start twidled
	attempt "the metrics' timer writes them" metrics
else
	echo "ok $((test = test + 1)) the metrics' timer writes them # SKIP no twctl"
fi
attempt "an error in the configuration: failed, and not tried again" fails_for_good

inside journalctl -u twidled -o cat _TRANSPORT=stdout | grep '^twidled' |
	sed 's/^/# /' || :
kill -9 "$init"
wait
./destroy twidled
for mount in tmp run sys/fs/cgroup sys dev .; do
	umount $root/$mount
done
exit $failed
