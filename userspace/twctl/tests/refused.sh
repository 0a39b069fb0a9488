#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# twctl doctor where the kernel itself refuses the module: a guest with
# lockdown=integrity, as Secure Boot has it, and a module that is not signed.
# Needs beside itself: twctl, timewheel.ko, results.sh. Prints TAP.
set -u
mount -t securityfs securityfs /sys/kernel/security
dir=/lib/modules/$(uname -r)/extra
mkdir -p "$dir"
cp timewheel.ko "$dir"
tmp=/tmp
. ./results.sh

grep -q '\[integrity\]' /sys/kernel/security/lockdown
result $? 'the kernel is locked down'
! insmod "$dir/timewheel.ko" 2>/dev/null
result $? 'it refuses the module'
./twctl doctor >/tmp/out
[ $? = 1 ]
result $? 'doctor finds something'
grep -q '^bad *module *not signed, and refused by lockdown, as with Secure Boot' /tmp/out
result $? "$(grep ^bad /tmp/out)"
grep -q "^  sudo .*sign-file .*$dir/timewheel.ko, .*mokutil --import" /tmp/out
result $? "$(grep sudo /tmp/out)"
./twctl 2>/tmp/err
[ $? = 7 ]
result $? "$(cat /tmp/err)"
finish
