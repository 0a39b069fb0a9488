# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the fuzzer.

# The corpus, and what chance makes of it in 90 seconds.
lane_fuzz()
{
	selftests/fuzz/run -o "$out/fuzz" 60
}
