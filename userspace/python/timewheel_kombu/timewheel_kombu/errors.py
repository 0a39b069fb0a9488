# SPDX-License-Identifier: LGPL-2.1-or-later
"""The errors of twjobd, and kombu's exceptions that tell them."""
from kombu.exceptions import ChannelError, OperationalError, VersionMismatch
from redis import exceptions as redis

AGAIN = ("BUSY", "LOADING", "UNAVAILABLE")
"""Codes of what is to be sent again."""

# redis-py cuts off the codes that it knows.
CODES = ((redis.BusyLoadingError, "LOADING"), (redis.ExecAbortError, "EXECABORT"),
         (redis.NoPermissionError, "NOPERM"), (redis.AuthenticationError, "NOAUTH"))
WORDS = ("BUSY", "BURIED", "DRAINING", "FULL", "HELD", "LOADING", "NOPERM", "NOQUEUE", "STALE",
         "TOOBIG", "UNAVAILABLE", "WRONGPASS", "EXECABORT", "ERR")

ADVICE = {
    "FULL": "wait until workers have done some of its jobs, or give it more room: "
            "twjob create QUEUE --max-jobs N",
    "TOOBIG": "put the data elsewhere and pass a reference to the task, or raise max-body "
              "in twjobd.conf(5)",
    "DRAINING": "an administrator drains this queue; twjob resume QUEUE ends that",
    "NOPERM": "ask the administrator of twjobd to allow it",
    "NOQUEUE": "it has been dropped meanwhile; twjob create QUEUE makes it again",
    "HELD": "a worker has the task",
}


class Refused(Exception):
    """An answer of twjobd that is an error; for a transaction also the command that failed."""

    def __init__(self, error, at=None):
        text = str(error)
        code = next((c for kind, c in CODES if isinstance(error, kind)), None)
        if text.split(" ", 1)[0] in WORDS:
            code, _, text = text.partition(" ")
        if code == "EXECABORT" and text.split(":", 1)[0].isdigit():
            number, _, text = text.partition(": ")
            at = int(number) - 1
            code, _, text = text.partition(" ")
        self.code, self.text, self.at = code or "ERR", text, at
        super().__init__(f"{self.code} {text}")


class Unreachable(OperationalError):
    """There is no connection to twjobd, or none that can do anything now. kombu tries again."""


class NotTaken(OperationalError, ChannelError):
    """A command that would be refused again. Celery's programs expect an OperationalError."""


class TooOld(NotTaken, VersionMismatch):
    pass


def unreachable(where, error):
    if isinstance(error, Refused) and error.code in ("NOAUTH", "WRONGPASS"):
        what = ("twjobd wants another password; give the one of its configuration in the URL: "
                "timewheel://:PASSWORD@HOST:PORT")
    elif isinstance(error, Refused):
        what = (f"twjobd refuses the connection: {error}; if there are too many, close some, or "
                "raise max-connections in twjobd.conf(5)")
    else:
        what = (f"twjobd cannot be reached: {str(error).strip()}; start it by "
                "systemctl start twjobd, or correct the URL of the broker")
    return Unreachable(f"{where}: {what}")


def told(refused, what):
    """Returns kombu's exception for an answer, which says what to do."""
    if refused.code in AGAIN:
        return Unreachable(f"{what}: twjobd cannot do it now: {refused}; its log "
                           "says why; send it again later")
    if refused.code == "ERR":
        return TooOld(f"{what}: twjobd does not understand this: {refused.text}; "
                      "it is older than this transport, and has to be upgraded: "
                      "apt install timewheel-jobs")
    advice = ADVICE.get(refused.code, "twjob-protocol(7) says more")
    return NotTaken(f"{what}: {refused}; {advice}")
