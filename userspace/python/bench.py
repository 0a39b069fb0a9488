# SPDX-License-Identifier: GPL-2.0-only
"""What a touch costs in Python: of a wheel, and of asyncio's own timers."""

import asyncio
import random
import time
from typing import Callable

import timewheel

TOKENS = 10_000
BATCH = 512
ROUNDS = 20


def told(kind: str, run: Callable[[], None], touches: int) -> None:
    """The second time: the first is for what is prepared once."""
    run()
    start = time.perf_counter_ns()
    run()
    print(f"= Python\t{kind}\t{TOKENS}\t{(time.perf_counter_ns() - start) / touches:.1f}",
          flush=True)


def wheel_touches(ids: list[int]) -> None:
    setup = timewheel.Setup(slots=31, tick=1, max_tokens=TOKENS)
    with timewheel.Wheel.open(setup) as wheel:
        handles = [wheel.register(id, 30) for id in range(TOKENS)]

        def singly() -> None:
            for id in ids:
                wheel.touch(id)

        def by_handle() -> None:
            for id in ids:
                wheel.touch(handle=handles[id])

        def in_batches() -> None:
            batch = timewheel.Batch(BATCH)
            for start in range(0, len(ids), BATCH):
                for id in ids[start:start + BATCH]:
                    batch.touch(id)
                if batch.run(wheel):
                    raise SystemExit("a touch has failed")
                batch.clear()

        told("wheel, singly", singly, len(ids))
        told("wheel, singly, by handle", by_handle, len(ids))
        told("wheel, batch of 512", in_batches, len(ids))
        told("wheel, batch of 512, by handle", in_batches_by_handle(wheel, [handles[id] for id in ids]), len(ids))


def in_batches_by_handle(wheel: timewheel.Wheel, handles: list[int]) -> Callable[[], None]:
    def run() -> None:
        batch = timewheel.Batch(BATCH)
        for start in range(0, len(handles), BATCH):
            for handle in handles[start:start + BATCH]:
                batch.touch(handle=handle)
            if batch.run(wheel):
                raise SystemExit("a touch has failed")
            batch.clear()
    return run


async def own_timers(ids: list[int]) -> None:
    loop = asyncio.get_running_loop()
    timers = [loop.call_later(30, print) for _ in range(TOKENS)]

    def touches() -> None:
        for id in ids:
            timers[id].cancel()
            timers[id] = loop.call_later(30, print)

    told("asyncio: cancel and call_later", touches, len(ids))


def main() -> None:
    ids = random.Random(1).choices(range(TOKENS), k=BATCH * ROUNDS)
    wheel_touches(ids)
    asyncio.run(own_timers(ids))


main()
