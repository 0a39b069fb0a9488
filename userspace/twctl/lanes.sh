# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: twctl.

lane_twctl()
{
	local build=$out/twctl/build

	twctl()
	{
		make -s -C userspace/twctl OUTPUT="$build" "$@"
	}
	attempt "twctl builds without a warning" twctl CFLAGS="-O2 -g -Werror"
	planned twctl check
	twctl guest-tests
}
