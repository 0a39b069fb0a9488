# SPDX-License-Identifier: GPL-2.0-only
"""pip.py VENV: pip installs the folder, and Celery finds the transport by itself. Prints TAP."""
import os
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
    folder = os.path.dirname(os.getcwd())
    run(sys.executable, "-m", "venv", "--system-site-packages", venv)
    made = run(f"{venv}/bin/pip", "install", "--no-index", "--no-deps",
               "--disable-pip-version-check", folder)
    print(f"{'not ok' if made.returncode else 'ok'} 1 - pip installs the folder")
    said = run(f"{venv}/bin/python", "-W", "ignore", "-c", PROGRAM).stdout
    ok = said.startswith("timewheel timewheel_kombu.transport ")
    print(f"{'ok' if ok else 'not ok'} 2 - Celery finds the transport by itself\n1..2")
    return made.returncode or not ok


sys.exit(main(sys.argv[1]))
