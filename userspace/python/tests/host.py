# SPDX-License-Identifier: GPL-2.0-only
"""What can be checked without a wheel: the types; whether pip makes a package that can be
installed; and whether Python says what the kernel's header says.

OUTPUT in the environment is the folder that has the package and the library.
"""

import ctypes
import faulthandler
import glob
import os
import pydoc
import shutil
import subprocess
import sys
import unittest
from typing import Any

import timewheel
from timewheel import _uapi

OUTPUT = os.environ["OUTPUT"]
PACKAGE = os.path.join(OUTPUT, "package")
SOURCE = os.path.abspath("..")
INCLUDE = "../../../kmod/include/uapi"
SIGNED = ctypes.c_int32, ctypes.c_int64


class Host(unittest.TestCase):
    def setUp(self) -> None:
        # Programs that take long are run here.
        faulthandler.dump_traceback_later(600, exit=True)

    def said(self, *command: str, status: int = 0, **environment: str) -> str:
        """Runs a program, which has to end with @status, where no package is seen. Returns what
        it says."""
        inherited = {name: value for name, value in os.environ.items()
                     if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
        run = subprocess.run(command, cwd="/", env=inherited | environment, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(status, run.returncode, run.stdout)
        return run.stdout

    def test_types(self) -> None:
        self.said("mypy", "--strict", "--cache-dir", f"{OUTPUT}/mypy", "--config-file",
                  f"{SOURCE}/pyproject.toml", f"{PACKAGE}/timewheel",
                  *(f"{SOURCE}/{name}" for name in ("backend.py", "examples", "tests")),
                  MYPYPATH=f"{PACKAGE}:{SOURCE}/tests:{SOURCE}/examples")

    def test_names(self) -> None:
        """help() describes what is loaded when it is asked for, and there is nothing else."""
        text = pydoc.plain(pydoc.render_doc(timewheel))
        for name in timewheel.__all__:
            self.assertRegex(text, rf"\b{name}\(")
        with self.assertRaises(AttributeError):
            timewheel.nothing  # type: ignore[attr-defined]

    def test_pip(self) -> None:
        """pip makes what can be published, and installs that in a fresh venv, without a network."""
        venv = os.path.join(OUTPUT, "venv")
        shutil.rmtree(venv, ignore_errors=True)
        self.said(sys.executable, "-m", "venv", venv)
        pip = f"{venv}/bin/pip", "--disable-pip-version-check"
        self.said(*pip, "wheel", "--no-index", "-w", venv, SOURCE, PIP_CONFIG_FILE=os.devnull)
        [wheel] = glob.glob(f"{venv}/timewheel-*.whl")
        self.said(*pip, "install", "--no-index", wheel, PIP_CONFIG_FILE=os.devnull)
        program = ("import importlib.metadata, timewheel; print(timewheel.__file__, "
                   "timewheel.Clock.BOOTTIME, importlib.metadata.version('timewheel'))")
        library = os.path.realpath(f"{OUTPUT}/lib/libtimewheel.so.1")
        self.assertRegex(
            self.said(f"{venv}/bin/python", "-c", program, LD_LIBRARY_PATH=f"{OUTPUT}/lib"),
            f"^{venv}/.* 1 {library.partition('.so.')[2]}$")

    def test_missing_library(self) -> None:
        """The error names the package that has the library."""
        # An empty file with the library's name comes before the system's library.
        broken = os.path.join(OUTPUT, "broken")
        os.makedirs(broken, exist_ok=True)
        with open(os.path.join(broken, "libtimewheel.so.1"), "w"):
            pass
        said = self.said(sys.executable, "-c", "import timewheel; timewheel.Wheel", status=1,
                         PYTHONPATH=PACKAGE, LD_LIBRARY_PATH=broken)
        self.assertRegex(said, "ImportError.* Debian's package libtimewheel1,")

    def test_header(self) -> None:
        """A C compiler checks each structure's size, each field's place, size and sign, and each
        constant's value."""
        claims = [f"{name} == {value}ULL" for name, value in vars(_uapi).items()
                  if name.startswith("TIMEWHEEL_")]
        structs: list[Any] = [item for item in vars(_uapi).values() if isinstance(item, type)]
        for cls in structs:
            struct = f"struct {cls.__name__}"
            claims.append(f"sizeof({struct}) == {ctypes.sizeof(cls)}")
            for field, kind in cls._fields_:
                place, member = getattr(cls, field), f"(({struct} *)0)->{field}"
                claims += [f"offsetof({struct}, {field}) == {place.offset}",
                           f"sizeof({member}) == {place.size}",
                           f"_Generic({member}, int: 1, long long: 1, default: 0) == "
                           f"{int(kind in SIGNED)}"]
            # No field of the header is left out.
            self.assertEqual(ctypes.sizeof(cls), sum(getattr(cls, field).size
                                                     for field, _ in cls._fields_))
        path = os.path.join(OUTPUT, "layout.c")
        with open(path, "w") as file:
            file.write("#include <stddef.h>\n#include <linux/timewheel.h>\n")
            file.writelines(f'_Static_assert({claim}, "{claim}");\n' for claim in claims)
        self.assertGreater(len(claims), 400)
        self.said("cc", "-fsyntax-only", f"-I{os.path.abspath(INCLUDE)}", path)
