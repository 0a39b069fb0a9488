# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh FILE...: runs tests in a guest, with the Node that was carried to this
# folder, and is unpacked where Debian has it: it looks for its parts there.
here=$PWD
tar -xf node.tar -C / && rm node.tar
export LD_LIBRARY_PATH=$here NODE_PATH=$here/node_modules
exec /usr/bin/node --test-reporter=tap "$here/node/tests/all.js" "$@"
