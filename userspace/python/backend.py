# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds a package out of a checkout, for pip (PEP 517) and for Makefiles.

    python3 backend.py FOLDER   the package's files, in FOLDER/timewheel

Nothing is needed but Python: pip downloads nothing for it. What the headers tell is generated
by ../man/generate.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from typing import Any

if sys.version_info < (3, 11):
    sys.exit("timewheel needs Python 3.11 or later")

import tomllib

GENERATED = ("_abi.py", "_uapi.py")
HERE = os.path.dirname(os.path.abspath(__file__))


def version() -> str:
    with open(os.path.join(HERE, "../lib/Makefile")) as file:
        found = re.search(r"^VERSION\s*:=\s*(\S+)", file.read(), re.M)
    assert found
    return found[1]


def record(files: dict[str, bytes], name: str) -> str:
    """Returns the list of a wheel's files, with their checksums."""
    lines = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(data)}\n")
    return "".join([*lines, f"{name},,\n"])


class Package:
    """The package whose pyproject.toml is in this folder. Its files are in a folder of its name
    there, except generated files."""

    def __init__(self, folder: str, generated: tuple[str, ...] = ()) -> None:
        self.folder, self.generated = folder, generated
        self.project: dict[str, Any] = tomllib.loads(
            self._contents("pyproject.toml").decode())["project"]
        self.module = self.project["name"].replace("-", "_")
        self.info = f"{self.module}-{version()}.dist-info"

    def _contents(self, path: str) -> bytes:
        with open(os.path.join(self.folder, path), "rb") as file:
            return file.read()

    def _modules(self) -> dict[str, bytes]:
        files = {name: self._contents(f"{self.module}/{name}")
                 for name in os.listdir(os.path.join(self.folder, self.module))
                 if name.endswith(".py") or name == "py.typed"}
        return files | {name: subprocess.run(
            [sys.executable, os.path.join(HERE, "../man/generate"), name],
            check=True, stdout=subprocess.PIPE).stdout for name in self.generated}

    def _metadata(self) -> str:
        project = self.project
        extras = project.get("optional-dependencies", {})
        lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
                 f"Summary: {project['description']}",
                 f"License: {project['license']['text']}",
                 f"Requires-Python: {project['requires-python']}",
                 *(f"Requires-Dist: {name}" for name in project.get("dependencies", ())),
                 *(f"Provides-Extra: {extra}" for extra in extras),
                 *(f'Requires-Dist: {name}; extra == "{extra}"'
                   for extra, names in extras.items() for name in names),
                 *(f"Classifier: {name}" for name in project["classifiers"]),
                 "Description-Content-Type: text/markdown", ""]
        return "\n".join([*lines, self._contents(project["readme"]).decode()])

    def _plugins(self) -> str:
        return "".join(f"[{group}]\n" + "".join(f"{name} = {what}\n"
                                                for name, what in names.items())
                       for group, names in self.project.get("entry-points", {}).items())

    def files(self) -> dict[str, bytes]:
        """Returns all files that are installed, except the list of them."""
        files = {f"{self.module}/{name}": data
                 for name, data in sorted(self._modules().items())}
        files[f"{self.info}/METADATA"] = self._metadata().encode()
        if plugins := self._plugins():
            files[f"{self.info}/entry_points.txt"] = plugins.encode()
        return files

    def wheel(self, folder: str) -> str:
        """Makes the file that pip installs. The same source gives the same bytes."""
        files = self.files()
        files[f"{self.info}/WHEEL"] = (b"Wheel-Version: 1.0\nGenerator: timewheel\n"
                                       b"Root-Is-Purelib: true\nTag: py3-none-any\n")
        files[f"{self.info}/RECORD"] = record(files, f"{self.info}/RECORD").encode()
        name = f"{self.module}-{version()}-py3-none-any.whl"
        with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
            for path, data in files.items():
                entry = zipfile.ZipInfo(path)
                entry.external_attr = 0o644 << 16
                wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
        return name

    def write(self, folder: str) -> None:
        for name, data in self.files().items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)


def build_wheel(wheel_directory: str, config_settings: Any = None,
                metadata_directory: str | None = None) -> str:
    """The hook that pip calls."""
    return Package(HERE, GENERATED).wheel(wheel_directory)


if __name__ == "__main__":
    Package(HERE, GENERATED).write(*sys.argv[1:])
