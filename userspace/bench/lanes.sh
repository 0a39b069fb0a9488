# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the benchmarks.

# Shows that benchmarks run, and that no operation has become dearer than its budget of
# instructions; other figures need a quiet machine and "make bench".
lane_bench()
{
	planned make -s -C userspace/bench native-quick OUTPUT="$out/bench/build"
	planned make -s -C userspace/bench/guest check OUTPUT="$out/bench/guest"
}
