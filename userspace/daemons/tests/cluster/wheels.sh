#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# This script runs in a guest: it unpacks the files that "pack" has packed, and runs
# cluster_wheels in the bed.
set -eu
tar -C / -xf cluster.tar
rm cluster.tar
mkdir -p /run
ln -s /test/bash /bin/bash
TWJOBD=/test/twjobd-postgresql TW_BED_DATA=/data exec ./bed run ./cluster_wheels
