# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the services, and the tools and pages for jobs.

lane_daemons()
{
	local build=$out/daemons/build

	daemons()
	{
		make -s -C userspace/daemons OUTPUT="$build" "$@"
	}
	attempt "the daemons build without a warning" \
		daemons CFLAGS="-O2 -g -Werror" tests
	# These tests sleep most of the time, on the host, and can run beside a guest.
	planned daemons check-twidled >"$out/daemons/host" &
	# The lane "long" has four times the users.
	TW_SCALE=0.25 daemons check
	wait
	cat "$out/daemons/host"
}

lane_jobs()
{
	local build=$out/jobs/build host

	# The lane "long" kills, and cuts the power, twice as often, and "make torture" even more often.
	export TW_SCALE=0.5
	attempt "twjobd builds without a warning" \
		make -s -C userspace/daemons OUTPUT="$build" CFLAGS="-O2 -g -Werror" jobs
	planned make -s -C userspace/daemons OUTPUT="$build" check-fuzz
	attempt "twjobd-postgresql builds without a warning" \
		make -s -C userspace/daemons OUTPUT="$build" CFLAGS="-O2 -g -Werror" \
		postgresql "$build"/checked/fuzz-postgresql
	attempt "the tests of a cluster build without a warning" \
		make -s -C userspace/daemons OUTPUT="$build" CFLAGS="-O2 -g -Werror" cluster
	http()
	{
		make -s -C userspace/http OUTPUT="$out/jobs/http" DAEMONS="$build" "$@"
	}
	attempt "twjob-http builds without a warning" http CFLAGS="-O2 -g -Werror"
	twjob()
	{
		make -s -C userspace/twjob OUTPUT="$out/jobs/twjob" "$@"
	}
	attempt "twjob builds without a warning" twjob CFLAGS="-O2 -g -Werror"
	web()
	{
		make -s -C userspace/web OUTPUT="$out/jobs/web" "$@"
	}
	attempt "twjob-web builds without a warning" web CFLAGS="-O2 -g -Werror"
	on_host()
	{
		for host; do
			planned make -s -C userspace/daemons OUTPUT="$build" check-"$host"
		done
	}
	# These tests sleep most of the time, on the host, and can run beside a guest.
	{
		on_host postgresql clients process
		planned twjob check
		planned web check DAEMONS="$build" TWJOB="$out/jobs/twjob"
		planned make -s -C userspace/calendar OUTPUT="$out/jobs" check
	} >"$out/jobs/host" &
	{
		on_host sockets takeover play
		planned make -s -C userspace/node check-jobs OUTPUT="$out/jobs/node" \
			DAEMONS="$build"
		planned http check
		attempt "the benchmark can make a store" \
			make -s -C userspace/bench/jobs OUTPUT="$build" check
	} >"$out/jobs/host.more" &
	make -s -C userspace/daemons OUTPUT="$build" check-jobs
	twjob guest-tests DAEMONS="$build" VM_OPTIONS="-t 570 -o $out/jobs/guest"
	wait
	cat "$out/jobs/host" "$out/jobs/host.more"
}
