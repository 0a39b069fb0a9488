# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the fuzzer.

# This lane runs the corpus, and random changes of it, for 60 seconds.
lane_fuzz()
{
	selftests/fuzz/run -o "$out/fuzz" 60
}
