# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the core in user space.

# The lane is shorter than "make check-core", which the lane "long" runs.
lane_core()
{
	planned make -s -C selftests/core check STEPS=2000000
}
