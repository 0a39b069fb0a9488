# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: kernels with debugging options.

# This lane proves that the kernels find faults, and that the verdict reports them.
lane_negative()
{
	planned selftests/debug/negative "$out/negative"
}
