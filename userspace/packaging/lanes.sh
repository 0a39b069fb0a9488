# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the packages.

# The packages are built, installed in a bare Debian, used there and in a guest, and removed.
lane_packages()
{
	planned userspace/packaging/check "$out/packages"
}
