# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: torture.

# This lane does everything to wheels at once, while processes are killed and memory
# is short.
lane_torture()
{
	attempt "torture builds without a warning" \
		make -s -C selftests/torture OUTPUT="$out/torture" CFLAGS="-O2 -g -Werror"
	OUTPUT=$out/torture selftests/torture/run 60s
}
