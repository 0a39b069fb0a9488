# SPDX-License-Identifier: GPL-2.0-only
"""pip.py VENV: pip makes of the folder what can be published, and Celery finds the transport in
it by itself. Prints TAP."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

PROGRAM = """
import importlib.metadata
from celery import Celery
connection = Celery(broker="timewheel:///nowhere").connection()
print(connection.transport_cls, connection.transport.__module__,
      importlib.metadata.version("timewheel-kombu"))
"""


def main(venv):
    shutil.rmtree(venv, ignore_errors=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        done = subprocess.run(command, cwd="/", env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print("".join(f"# {line}\n" for line in done.stdout.splitlines()), end="")
        return done

    def pip(*words):
        return run(f"{venv}/bin/pip", "--disable-pip-version-check", *words, "--no-index",
                   "--no-deps")
    folder = pathlib.Path.cwd().parent
    version = re.search(r"^VERSION\s*:=\s*(\S+)", (folder / "../../lib/Makefile").read_text(), re.M)
    run(sys.executable, "-m", "venv", "--system-site-packages", venv)
    bad = pip("wheel", "-w", venv, folder).returncode or \
        pip("install", *glob.glob(f"{venv}/timewheel_kombu-*.whl")).returncode
    print(f"{'not ok' if bad else 'ok'} 1 - pip makes and installs what can be published")
    said = run(f"{venv}/bin/python", "-W", "ignore", "-c", PROGRAM).stdout.strip()
    found = said == f"timewheel timewheel_kombu.transport {version[1]}"
    print(f"{'ok' if found else 'not ok'} 2 - Celery finds the transport in it, which has the "
          "library's version\n1..2")
    return bad or not found


sys.exit(main(sys.argv[1]))
