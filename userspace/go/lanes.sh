# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: Go.

lane_go()
{
	local build=$out/go/build

	planned make -s -C userspace/go check-host OUTPUT="$build"
	make -s -C userspace/go check-guest OUTPUT="$build" \
		VM_OPTIONS="-k 6.1-cloud -o $out/go"
}
