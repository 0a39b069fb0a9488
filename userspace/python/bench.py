# SPDX-License-Identifier: GPL-2.0-only
"""[ROUNDS RUNS] Measures what a touch costs: of a wheel, and of asyncio's own timers.

A run has so many rounds of 512 touches.
"""

import asyncio
import random
import sys
import time
from typing import Callable

import timewheel

TOKENS = 10_000
BATCH = 512
ROUNDS, RUNS = map(int, sys.argv[1:]) if len(sys.argv) > 1 else (20, 2)
"""The last run is told. Those before it are for what is prepared once."""


def told(kind: str, run: Callable[[], None]) -> None:
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        run()
    ns = (time.perf_counter_ns() - start) / (BATCH * ROUNDS)
    print(f"= Python\t{kind}\t{TOKENS}\t{ns:.1f}", flush=True)


def wheel_touches(ids: list[int]) -> None:
    setup = timewheel.Setup(slots=31, tick=1, max_tokens=TOKENS)
    with timewheel.Wheel.open(setup) as wheel:
        batch = timewheel.Batch(TOKENS)
        for id in range(TOKENS):
            batch.register(id, 30)
        batch.run(wheel)
        handles = [token.handle for token in wheel.get_many(ids) if token]
        batch = timewheel.Batch(BATCH)

        def singly() -> None:
            for id in ids:
                wheel.touch(id)

        def by_handle() -> None:
            for handle in handles:
                wheel.touch(handle=handle)

        def run_batch() -> None:
            if batch.run(wheel):
                raise SystemExit("a touch has failed")
            batch.clear()

        def in_batches() -> None:
            for start in range(0, len(ids), BATCH):
                for id in ids[start:start + BATCH]:
                    batch.touch(id)
                run_batch()

        def in_batches_by_handle() -> None:
            for start in range(0, len(ids), BATCH):
                for handle in handles[start:start + BATCH]:
                    batch.touch(handle=handle)
                run_batch()

        def many() -> None:
            for start in range(0, len(ids), BATCH):
                batch.touch_many(ids[start:start + BATCH])
                run_batch()

        def many_by_handle() -> None:
            for start in range(0, len(ids), BATCH):
                batch.touch_many(handles=handles[start:start + BATCH])
                run_batch()

        told("wheel, singly", singly)
        told("wheel, singly, by handle", by_handle)
        told("wheel, batch of 512", in_batches)
        told("wheel, batch of 512, by handle", in_batches_by_handle)
        told("wheel, touch_many of 512", many)
        told("wheel, touch_many of 512, by handle", many_by_handle)


async def own_timers(ids: list[int]) -> None:
    loop = asyncio.get_running_loop()
    timers = [loop.call_later(30, print) for _ in range(TOKENS)]

    def touches() -> None:
        for id in ids:
            timers[id].cancel()
            timers[id] = loop.call_later(30, print)

    told("asyncio: cancel and call_later", touches)


def main() -> None:
    ids = random.Random(1).choices(range(TOKENS), k=BATCH * ROUNDS)
    wheel_touches(ids)
    asyncio.run(own_timers(ids))


main()
