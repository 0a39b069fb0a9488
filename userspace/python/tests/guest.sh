# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh MODULE...: runs a module in a guest, with arguments and the Python that was
# carried to this folder.
here=$PWD
export PYTHONHOME=$here PYTHONPATH=$here/python.zip LD_LIBRARY_PATH=$here
# The example has 2,000 connections.
ulimit -n 8192
exec "$here"/python3.* -m "$@"
