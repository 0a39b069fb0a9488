# SPDX-License-Identifier: GPL-2.0-only
"""worker.py KIND SOCKET QUEUE FILE: works on jobs until it is killed or told to stop; FILE gets
a line of each that is done."""

import asyncio
import random
import signal
import sys
import time

from timewheel.jobs import AsyncWorker, Job, Worker


def main(kind: str, server: str, queue: str, path: str) -> None:
    def note(job: Job) -> None:
        with open(path, "a") as file:
            file.write(f"{job.body.decode()}\n")

    def work(job: Job) -> None:
        time.sleep(random.random() / 100)
        note(job)

    async def work_async(job: Job) -> None:
        await asyncio.sleep(random.random() / 100)
        note(job)

    async def loop() -> None:
        worker = AsyncWorker(queue, work_async, concurrency=3, server=server)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.stop)
        await worker.run()

    if kind == "threads":
        worker = Worker(queue, work, concurrency=3, server=server)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run()
    else:
        asyncio.run(loop())


main(*sys.argv[1:])
