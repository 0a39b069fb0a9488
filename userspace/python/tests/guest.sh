# SPDX-License-Identifier: GPL-2.0-only
#
# sh guest.sh MODULE...: runs a module in a guest, with arguments and the Python that was
# carried to this folder.
here=$PWD
export PYTHONHOME=$here PYTHONPATH=$here/python.zip LD_LIBRARY_PATH=$here
exec "$here"/python3.* -m "$@"
