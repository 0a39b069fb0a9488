# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: Node.

lane_node()
{
	local build=$out/node/build

	planned make -s -C userspace/node check-host OUTPUT="$build"
	planned make -s -C userspace/node check-process OUTPUT="$build"
	make -s -C userspace/node check-guest OUTPUT="$build" \
		VM_OPTIONS="-k 6.1-cloud -o $out/node"
}
