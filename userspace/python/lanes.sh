# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: Python, and frameworks.

lane_python()
{
	local build=$out/python/build

	planned make -s -C userspace/python check-host OUTPUT="$build"
	planned make -s -C userspace/python check-process OUTPUT="$build"
	make -s -C userspace/python check-guest OUTPUT="$build" \
		VM_OPTIONS="-k 6.1-cloud -o $out/python"
}

# Frameworks of other projects keep their jobs in twjobd, and so do programs without one.
lane_frameworks()
{
	local daemons=$out/frameworks/kombu/daemons

	planned make -s -C userspace/python/timewheel_kombu check OUTPUT="$out/frameworks/kombu"
	planned make -s -C userspace/php check OUTPUT="$out/frameworks/php" DAEMONS="$daemons"
	planned make -s -C userspace/python check-jobs OUTPUT="$out/frameworks/python" \
		DAEMONS="$daemons"
	planned make -s -C userspace/go check-jobs OUTPUT="$out/frameworks/go" DAEMONS="$daemons"
}
