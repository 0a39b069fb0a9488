# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the package as ../backend.py does its own.

    python3 backend.py FOLDER   what is installed, in FOLDER
"""
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("timewheel_backend", f"{HERE}/../backend.py")
common = importlib.util.module_from_spec(spec)
spec.loader.exec_module(common)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The hook that pip calls."""
    return common.Package(HERE).wheel(wheel_directory)


if __name__ == "__main__":
    common.Package(HERE).write(*sys.argv[1:])
