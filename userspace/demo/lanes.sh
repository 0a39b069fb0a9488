# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the demonstration.

lane_demo()
{
	make -s -C userspace/demo run OUTPUT="$out/demo"
}
