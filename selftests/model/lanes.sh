# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154
#
# Lanes of selftests/check: the models.

lane_model()
{
	planned make -s -C selftests/model check MARKS=1
}
