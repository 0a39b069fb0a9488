# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh disable=SC2034,SC2154
#
# Scripts source this file, which needs $top, the folder of the sources. It makes the folder
# $folder, which lasts as long as the script, with a copy of PostgreSQL's programs, and sets PATH
# and LD_LIBRARY_PATH for them.

# A user without rights can look into this folder.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
cp -a "$("$top/selftests/vm/postgresql")/usr" "$folder"
PATH=$(echo "$folder"/usr/lib/postgresql/*/bin):$PATH
export PATH
LD_LIBRARY_PATH="$folder/usr/lib/$(gcc -print-multiarch)"
export LD_LIBRARY_PATH
# This command runs a server, see there.
server=$top/userspace/daemons/tests/postgresql/server
