# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh ARGUMENT...: runs Node with these arguments in a guest: the Node that was
# carried to this folder, and is unpacked where Debian has it: it looks for its parts there.
here=$PWD
[ ! -e node.tar ] || { tar -xf node.tar -C / && rm node.tar; }
export LD_LIBRARY_PATH=$here NODE_PATH=$here/node_modules
cd node && exec /usr/bin/node "$@"
