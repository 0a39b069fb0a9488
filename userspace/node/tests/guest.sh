# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh ARGUMENT...: runs Node with these arguments in a guest: the Node that was
# carried to this folder. It is unpacked where Debian has it, because it looks for its parts
# there.
here=$PWD
[ ! -e node.tar ] || { tar -xf node.tar -C / && rm node.tar; }
# A test becomes another user, which Node 20 refuses while libuv may use io_uring.
export UV_USE_IO_URING=0
export LD_LIBRARY_PATH=$here NODE_PATH=$here/node_modules
cd node && exec /usr/bin/node "$@"
