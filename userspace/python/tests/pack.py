# SPDX-License-Identifier: GPL-2.0-only
"""pack.py ZIP SOURCE...: what a test guest's Python needs, as one file.

That is the standard library and these sources, compiled. Packages that would only fill the
guest's memory are left out. PYTHONPYCACHEPREFIX is a folder for what is compiled.
"""

import glob
import os
import sys
import zipfile

LEFT_OUT = {"distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "sqlite3", "test",
            "tkinter", "turtledemo", "venv", "wsgiref", "xmlrpc"}

library = os.path.dirname(os.__file__)
packages = [os.path.dirname(path) for path in glob.glob(f"{library}/*/__init__.py")]
with zipfile.PyZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    for path in [library, *sorted(packages), *sys.argv[2:]]:
        if os.path.basename(path) not in LEFT_OUT:
            archive.writepy(path)
