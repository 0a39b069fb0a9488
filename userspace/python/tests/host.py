# SPDX-License-Identifier: GPL-2.0-only
"""host.py OUTPUT TIMEWHEEL_H UAPI_H: all that can be checked without a device.

That is the types, by mypy; and whether Python says what the headers say: of each
structure in timewheel/_uapi.py the fields, their places and sizes, of each constant
the value, as a C program tells them; and of each function in timewheel/_abi.py what
it takes and returns. When a header has grown, the line that is not ok tells what is
missing. Prints TAP.
"""

import ctypes
import os
import re
import subprocess
import sys
from ctypes import POINTER
from typing import Any

from timewheel import _abi, _uapi

C_TYPES: dict[str, Any] = {
    "void": None,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    "ssize_t": ctypes.c_ssize_t,
    "double": ctypes.c_double,
    "char *": ctypes.c_char_p,
}
SIGNED = (ctypes.c_int32, ctypes.c_int64)

STRUCTS: dict[str, Any] = {
    name: item for name, item in vars(_uapi).items()
    if isinstance(item, type) and issubclass(item, ctypes.Structure)}
CONSTANTS: dict[str, int] = {
    name: item for name, item in vars(_uapi).items()
    if name.startswith("TIMEWHEEL_")}
FUNCTIONS: dict[str, Any] = {
    name: item for name, item in vars(_abi).items() if name.startswith("tw_")}


class Tap:
    """Results, and their plan at the end."""

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
    """The names of each structure's fields."""
    return {
        name: re.findall(r"^\t\w+\s+(\w+)(?:\[\w+\])?;", body, re.M)
        for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.M | re.S)}


def c_program(fields: dict[str, list[str]]) -> str:
    """It tells each structure's size and fields, and each constant's value."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <timewheel.h>",
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


def told_by_c(fields: dict[str, list[str]], output: str,
              includes: list[str]) -> list[str]:
    source = os.path.join(output, "layout.c")
    program = os.path.join(output, "layout")
    with open(source, "w") as file:
        file.write(c_program(fields))
    subprocess.run(["cc", *includes, "-o", program, source], check=True)
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


def c_type(text: str) -> Any:
    """As ctypes has it; what the library keeps to itself is a void *."""
    text = " ".join(text.replace("const ", "").replace("*", " * ").split())
    if text in C_TYPES:
        return C_TYPES[text]
    if re.fullmatch(r"struct tw_\w+ \*", text):
        return ctypes.c_void_p
    if text.endswith(" *"):
        return POINTER(c_type(text[:-2]))
    return STRUCTS[text.removeprefix("struct ")]


def prototypes(text: str) -> dict[str, str]:
    """What each function returns and takes, as ctypes has it."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    found = re.findall(r"^(\w[\w ]*[ *])(tw_\w+)\(([^)]*)\);", text, re.M)
    return {
        name: signature(c_type(returns), [
            c_type(re.sub(r"\w+$", "", taken.strip()))
            for taken in takes.split(",")])
        for returns, name, takes in found if name in FUNCTIONS}


def signature(returns: Any, takes: Any) -> str:
    names = [getattr(t, "__name__", str(t)) for t in takes]
    return f"{getattr(returns, '__name__', None)}({', '.join(names)})"


def unused(text: str) -> list[str]:
    """Names in the headers that Python does not use, to be printed."""
    names = re.findall(r"^(?:#define |\t)(TIMEWHEEL_\w+)\s", text, re.M)
    names += re.findall(r"\b(tw_\w+)\(", text)
    ours = CONSTANTS.keys() | FUNCTIONS.keys()
    return sorted(set(n for n in names if n not in ours))


def check_types(tap: Tap, output: str) -> None:
    run = subprocess.run(
        ["mypy", "--strict", "--cache-dir", os.path.join(output, "mypy"),
         "timewheel", "examples", "tests"],
        env=os.environ | {"MYPYPATH": "tests:examples"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    tap.result(run.returncode == 0, "mypy --strict", run.stdout.splitlines())


def main(output: str, timewheel_h: str, uapi_h: str) -> int:
    tap = Tap()
    os.makedirs(output, exist_ok=True)
    check_types(tap, output)
    with open(timewheel_h) as file:
        functions = file.read()
    with open(uapi_h) as file:
        uapi = file.read()
    includes = ["-I" + os.path.dirname(timewheel_h),
                "-I" + os.path.dirname(os.path.dirname(uapi_h))]
    header = told_by_c(header_fields(uapi), output, includes)
    ours = told_by_python()
    for struct in STRUCTS:
        tap.same(f"struct {struct}",
                 [line for line in header if line.startswith(struct + " ")],
                 [line for line in ours if line.startswith(struct + " ")])
    tap.same("constants",
             [line for line in header if line.startswith("TIMEWHEEL_")],
             [line for line in ours if line.startswith("TIMEWHEEL_")])
    declared = {name: signature(f.restype, f.argtypes)
                for name, f in FUNCTIONS.items()}
    tap.same("functions",
             sorted(" ".join(item) for item in prototypes(functions).items()),
             sorted(" ".join(item) for item in declared.items()))
    print("# not used:", *unused(uapi + functions))
    print(f"1..{tap.count}")
    return int(tap.failed)


sys.exit(main(*sys.argv[1:]))
