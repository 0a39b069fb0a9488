# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: kernels that watch.

# That the kernels find what is wrong, and the verdict says so.
lane_negative()
{
	planned selftests/debug/negative "$out/negative"
}
