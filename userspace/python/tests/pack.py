# SPDX-License-Identifier: GPL-2.0-only
"""pack.py ZIP SOURCE...: what a test guest's Python needs, as one file.

That is the standard library, as Debian's packages of it hold it, and these
sources, compiled. The same files give the same bytes. Packages that would only
fill the guest's memory are left out.
"""

import importlib.util
import marshal
import subprocess
import sys
import zipfile

LEFT_OUT = {"ensurepip", "lib2to3", "pydoc_data", "sqlite3", "test", "venv",
            "wsgiref", "xmlrpc"}


def library(root: str) -> dict[str, str]:
    """Returns the place of each source of the standard library."""
    name = "libpython{}.{}".format(*sys.version_info)
    files = subprocess.run(
        ["dpkg", "-L", f"{name}-minimal", f"{name}-stdlib"],
        check=True, capture_output=True, text=True).stdout.split("\n")
    found = {f[len(root):]: f for f in files
             if f.startswith(root) and f.endswith(".py")}
    return {place: f for place, f in found.items()
            if place.split("/")[0] not in LEFT_OUT}


def compiled(place: str, path: str) -> bytes:
    """Makes a .pyc that is taken as it is, without a look at any source."""
    with open(path, "rb") as file:
        code = compile(file.read(), place, "exec", dont_inherit=True)
    unchecked = 1
    return (importlib.util.MAGIC_NUMBER + unchecked.to_bytes(4, "little") +
            bytes(8) + marshal.dumps(code))


def own(sources: list[str]) -> dict[str, str]:
    """Returns the place of each of these sources; a file of no package is at the top."""
    return {f if f.startswith("timewheel/") else f.split("/")[-1]: f
            for f in sources}


def main(target: str, *sources: str) -> None:
    root = "/usr/lib/python{}.{}/".format(*sys.version_info)
    files = library(root) | own(list(sources))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, path in sorted(files.items()):
            entry = zipfile.ZipInfo(place + "c")
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, compiled(place, path))


main(*sys.argv[1:])
