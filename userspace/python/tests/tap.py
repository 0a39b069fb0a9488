# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests of the modules that are named and prints TAP.

Exit status: 0 all ok, 1 some not, 4 all skipped. A test that hangs ends it all,
and shows where its threads are.
"""

import faulthandler
import logging
import sys
import unittest
import warnings


HANGS = 60
"""Seconds after which a test is taken to hang."""


class TapResult(unittest.TestResult):
    """Prints one line for each test, and what went wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = 0

    def _line(self, result: str, test: unittest.TestCase, more: str = "") -> None:
        print(f"{result} {self.testsRun} - {test.id()}{more}", flush=True)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        faulthandler.dump_traceback_later(HANGS, exit=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._line("ok", test)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self._line("ok", test, f" # SKIP {reason}")

    def stopTest(self, test: unittest.TestCase) -> None:
        for _, told in self.errors + self.failures:
            self.failed += 1
            print("".join(f"# {line}\n" for line in told.splitlines()), end="")
            self._line("not ok", test)
        self.errors.clear()
        self.failures.clear()
        faulthandler.cancel_dump_traceback_later()
        super().stopTest(test)


def main(modules: list[str]) -> int:
    warnings.simplefilter("error")
    # A guest is slow, and asyncio would warn about it.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    tests = unittest.defaultTestLoader.loadTestsFromNames(modules)
    result = TapResult()
    print("TAP version 13")
    print(f"1..{tests.countTestCases()}", flush=True)
    tests.run(result)
    if result.failed:
        return 1
    return 4 if len(result.skipped) == result.testsRun else 0


sys.exit(main(sys.argv[1:]))
