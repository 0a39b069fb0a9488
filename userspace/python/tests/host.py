# SPDX-License-Identifier: GPL-2.0-only
"""host.py OUTPUT UAPI_H: all that can be checked without a device.

That is the types, by mypy; whether pip makes a package that can be installed; and
whether Python says what the header says: of each structure in timewheel/_uapi.py the
fields, their places and sizes, and of each constant the value, as a C program tells
them. Prints TAP.
"""

import ctypes
import glob
import os
import pydoc
import re
import shutil
import subprocess
import sys
from typing import Any

import timewheel
from timewheel import _uapi

SIGNED = (ctypes.c_int32, ctypes.c_int64)

STRUCTS: dict[str, Any] = {
    name: item for name, item in vars(_uapi).items()
    if isinstance(item, type) and issubclass(item, ctypes.Structure)}
CONSTANTS: dict[str, int] = {
    name: item for name, item in vars(_uapi).items()
    if name.startswith("TIMEWHEEL_")}


class Tap:
    """Counts results, and prints their plan at the end."""

    def __init__(self) -> None:
        self.count = 0
        self.failed = False

    def result(self, ok: bool, name: str, told: list[str]) -> None:
        for line in told:
            print(f"# {line}")
        self.count += 1
        self.failed |= not ok
        print(f"{'ok' if ok else 'not ok'} {self.count} - {name}", flush=True)

    def same(self, name: str, header: list[str], ours: list[str]) -> None:
        told = [f"in the header only: {line}" for line in header if line not in ours]
        told += [f"in Python only: {line}" for line in ours if line not in header]
        self.result(header == ours and bool(ours), name, told)


def header_fields(text: str) -> dict[str, list[str]]:
    """Returns the names of each structure's fields; of a union only the first."""
    text = re.sub(r"^\tunion \{\n\t(.*\n)(?:\t\t.*\n)*\t\};", r"\1", text, flags=re.M)
    return {
        name: re.findall(r"^\t\w+\s+(\w+)(?:\[\w+\])?;", body, re.M)
        for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.M | re.S)}


def c_program(fields: dict[str, list[str]]) -> str:
    """Returns a C program that tells each structure's size and fields, and each constant's
    value."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <linux/timewheel.h>",
             "int main(void)", "{"]
    for struct in STRUCTS:
        lines += [f'printf("{struct} size %zu\\n", sizeof(struct {struct}));',
                  f"struct {struct} {struct};"]
        for field in fields[struct]:
            member = f"{struct}.{field}"
            lines += [
                f'printf("{struct} %s at %zu, %zu bytes, signed %d\\n", "{field}",'
                f" offsetof(struct {struct}, {field}), sizeof({member}),"
                f" _Generic({member}, int: 1, long long: 1, default: 0));"]
    for name in CONSTANTS:
        lines += [f'printf("{name} %llu\\n", (unsigned long long){name});']
    return "\n".join([*lines, "return 0;", "}", ""])


def told_by_c(fields: dict[str, list[str]], output: str, include: str) -> list[str]:
    source = os.path.join(output, "layout.c")
    program = os.path.join(output, "layout")
    with open(source, "w") as file:
        file.write(c_program(fields))
    subprocess.run(["cc", include, "-o", program, source], check=True)
    told = subprocess.run([program], check=True, capture_output=True, text=True)
    return told.stdout.splitlines()


def told_by_python() -> list[str]:
    lines = []
    for struct, cls in STRUCTS.items():
        lines += [f"{struct} size {ctypes.sizeof(cls)}"]
        for field, kind in cls._fields_:
            place = getattr(cls, field)
            lines += [f"{struct} {field} at {place.offset}, {place.size} bytes,"
                      f" signed {int(kind in SIGNED)}"]
    return lines + [f"{name} {value}" for name, value in CONSTANTS.items()]


def check_types(tap: Tap, output: str) -> None:
    package = os.path.join(output, "package")
    run = subprocess.run(
        ["mypy", "--strict", "--cache-dir", os.path.join(output, "mypy"),
         os.path.join(package, "timewheel"), "backend.py", "examples", "tests"],
        env=os.environ | {"MYPYPATH": f"{package}:tests:examples"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.result(run.returncode == 0, "mypy --strict", run.stdout.splitlines())


def check_names(tap: Tap) -> None:
    """What is loaded when it is asked for is described, and mypy knows what is not there."""
    text = pydoc.plain(pydoc.render_doc(timewheel))
    absent = [name for name in timewheel.__all__ if not re.search(rf"\b{name}\(", text)]
    try:
        timewheel.nothing  # type: ignore[attr-defined]
        absent.append("AttributeError")
    except AttributeError:
        pass
    tap.result(not absent, "help() describes all that the package has", absent)


def run_in_venv(venv: str, command: list[str], **environment: str) -> tuple[int, str]:
    """Runs a program in the virtual environment, which sees no packages of this one. Returns
    how it ends, and what it says."""
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    run = subprocess.run(
        [os.path.join(venv, "bin", command[0]), *command[1:]], cwd="/",
        env=inherited | {"PIP_CONFIG_FILE": os.devnull} | environment,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return run.returncode, run.stdout


def check_pip(tap: Tap, output: str) -> None:
    """pip installs the package in a fresh venv, without a network."""
    venv = os.path.join(output, "venv")
    shutil.rmtree(venv, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", venv], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    tap.result(made.returncode == 0, "a fresh venv can be made", made.stdout.splitlines())

    pip = ["pip", "--disable-pip-version-check"]
    status, said = run_in_venv(venv, [*pip, "wheel", "--no-index", "-w", venv, os.getcwd()])
    tap.result(status == 0, "pip makes what can be published", said.splitlines())
    status, said = run_in_venv(venv, [*pip, "install", "--no-index",
                                      *glob.glob(f"{venv}/timewheel-*.whl")])
    tap.result(status == 0, "pip installs that without a network", said.splitlines())

    program = ("import importlib.metadata, timewheel; "
               "print(timewheel.__file__.startswith(%r), "
               "importlib.metadata.version('timewheel'), timewheel.Clock.BOOTTIME)" % venv)
    _, said = run_in_venv(venv, ["python", "-c", program],
                          LD_LIBRARY_PATH=os.path.join(output, "lib"))
    tap.same("the installed package has the library's version",
             [f"True {library_version()} {int(_uapi.TIMEWHEEL_CLOCK_BOOTTIME)}"],
             said.splitlines())

    # An empty file with the library's name comes before the system's library.
    broken = os.path.join(output, "broken")
    os.makedirs(broken, exist_ok=True)
    with open(os.path.join(broken, "libtimewheel.so.1"), "w"):
        pass
    status, said = run_in_venv(venv, ["python", "-c", "import timewheel; timewheel.Wheel"],
                               LD_LIBRARY_PATH=broken)
    tap.result(status == 1 and "ImportError" in said and
               "Debian's package libtimewheel1" in said,
               "a missing library is told with the name of its package",
               said.splitlines())


def library_version() -> str:
    with open("../lib/Makefile") as file:
        found = re.search(r"^VERSION\s*:=\s*(\S+)", file.read(), re.M)
    assert found
    return found[1]


def main(output: str, uapi_h: str) -> int:
    tap = Tap()
    os.makedirs(output, exist_ok=True)
    check_types(tap, output)
    check_names(tap)
    check_pip(tap, output)
    with open(uapi_h) as file:
        uapi = file.read()
    header = told_by_c(header_fields(uapi), output,
                       "-I" + os.path.dirname(os.path.dirname(uapi_h)))
    ours = told_by_python()
    for struct in STRUCTS:
        tap.same(f"struct {struct}",
                 [line for line in header if line.startswith(struct + " ")],
                 [line for line in ours if line.startswith(struct + " ")])
    tap.same("constants",
             [line for line in header if line.startswith("TIMEWHEEL_")],
             [line for line in ours if line.startswith("TIMEWHEEL_")])
    print(f"1..{tap.count}")
    return int(tap.failed)


sys.exit(main(*sys.argv[1:]))
