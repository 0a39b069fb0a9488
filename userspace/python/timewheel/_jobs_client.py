# SPDX-License-Identifier: LGPL-2.1-or-later
"""Commands to twjobd over redis-py, and what its errors mean to a program. This module
knows nothing of workers."""

import re
import time
from typing import Any
from urllib.parse import quote, urlsplit

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

DEFAULT_SERVER = "/run/twjobd/socket"
DEFAULT_PORT = 7076

AGAIN = 0.5
"""Seconds until a command that twjobd could not accept is sent again."""

LOST = (redis.ConnectionError, redis.TimeoutError, OSError, AttributeError)
"""What ends a connection. redis-py 4.3 has an AttributeError for a unix socket that was
reset, since such a connection has no host that could be told."""

ERRORS = (redis.RedisError, *LOST)

PASSING = ("BUSY", "UNAVAILABLE", "LOADING")
"""Codes of errors after which a command that is sent again may be carried out."""

# redis-py cuts off these codes, ERR, and those of passwords.
CODES = ((exceptions.BusyLoadingError, "LOADING"), (exceptions.NoPermissionError, "NOPERM"))

ADVICE = {
    "NOQUEUE": 'make it with "twjob create"',
    "FULL": 'give the queue more room with "twjob create", or work faster',
    "TOOBIG": "raise max-body in twjobd.conf, or put less into a body",
    "NOAUTH": "give the password in the server's URL, redis://:PASSWORD@HOST:PORT",
    "WRONGPASS": "give the password that twjobd.conf(5) tells",
    "NOPERM": "twjobd.conf(5) tells how it is allowed",
    "DRAINING": 'the queue takes jobs again after "twjob resume"',
    "HELD": "a worker has the job now",
}
WORDS = (*PASSING, *ADVICE, "STALE", "BURIED")


class JobError(Exception):
    """An error of twjobd, with what to do. Nothing was changed, unless the code is
    UNAVAILABLE. The code is the first word of the text, as FULL; it is UNAVAILABLE also
    if there is no answer."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.code = text.split(maxsplit=1)[0].rstrip(":")


def url_of(server: str) -> str:
    return f"unix://{quote(server)}" if server.startswith("/") else server


def where(server: str) -> str:
    """Returns the server without its password, which may be told."""
    url = urlsplit(url_of(server))
    return url.path if url.scheme == "unix" else f"{url.hostname}:{url.port or DEFAULT_PORT}"


def pool(server: str, timeout: float) -> Any:
    """Makes connections on which an answer is waited for so many seconds, and that do not
    repeat anything by themselves."""
    url = url_of(server)
    port = {} if url.startswith("unix:") else {"port": DEFAULT_PORT}
    return redis.ConnectionPool.from_url(url, socket_timeout=timeout,
                                         retry=Retry(NoBackoff(), 0), **port)


def explained(error: BaseException, server: str) -> JobError:
    text = str(error).strip()
    cut = next((code for kind, code in CODES if isinstance(error, kind)), "ERR")
    if isinstance(error, exceptions.AuthenticationError):
        cut = "WRONGPASS" if urlsplit(url_of(server)).password else "NOAUTH"
    if text.split(" ", 1)[0] not in WORDS:
        if cut == "ERR" and isinstance(error, LOST):
            return JobError(f"UNAVAILABLE twjobd does not answer at {where(server)}: is it "
                            f"running? ({text})")
        text = f"{cut} {text}"
    if re.match("ERR (unknown command|expected )", text):
        return JobError(f"{text}: this twjobd is too old; upgrade timewheel-jobs")
    if "too many connections" in text:
        return JobError(f"{text}: close some, or raise max-connections in twjobd.conf")
    told = JobError(text)
    return JobError(f"{text}: {ADVICE[told.code]}") if told.code in ADVICE else told


class Client:
    """Sends commands of any thread, each of which can be sent again."""

    def __init__(self, server: str, patience: float) -> None:
        self.server, self.patience = server, patience
        self.redis = redis.Redis(connection_pool=pool(server, max(patience, 1)))

    def ask(self, *words: Any) -> Any:
        end = time.monotonic() + self.patience
        while True:
            try:
                return self.redis.execute_command(*words)
            except ERRORS as error:
                told = explained(error, self.server)
            if told.code not in PASSING or time.monotonic() + AGAIN > end:
                raise told
            time.sleep(AGAIN)

    def ask_all(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        """Returns the answers to commands that are sent together, once. An error is a JobError
        among them."""
        pipe = self.redis.pipeline(transaction=False)
        try:
            for words in commands:
                pipe.execute_command(*words)
            answers = pipe.execute(raise_on_error=False)
        except ERRORS as error:
            answers = [error] * len(commands)
        return [explained(answer, self.server) if isinstance(answer, Exception) else answer
                for answer in answers]

    def close(self) -> None:
        self.redis.connection_pool.disconnect()
