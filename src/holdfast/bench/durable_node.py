"""A broker of durable streams as a process that is measured: the real runtime, and a data folder on the real disk.

It prints a line of JSON with its port once it listens, and one with how it is for every line it reads. When its
standard input ends, it does: so it never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.messages.streams import Guarantee
from holdfast.runtime.addresses import Address
from holdfast.runtime.broker_process import BrokerService
from holdfast.runtime.collector import Collector
from holdfast.runtime.disk import next_incarnation
from holdfast.runtime.loop import run

__all__ = ["main"]


def main() -> None:
    """Run a broker until standard input ends."""
    options = _arguments()
    profiler = cProfile.Profile() if options.profile is not None else None
    if profiler is not None:
        profiler.enable()
    run(serve(options))
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(options.profile)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="the broker's")
    parser.add_argument("data", type=Path, help="its folder")
    parser.add_argument("--port", type=int, default=0, help="where it listens [any that is free]")
    parser.add_argument("--parent", nargs=2, metavar=("NAME", "ADDRESS"), help="the broker it dials")
    parser.add_argument("--child", action="append", default=[], metavar="NAME", help="a broker that dials it")
    parser.add_argument("--pubends", type=int, default=1, help="how many it has for its publishers")
    parser.add_argument("--profile", metavar="FILE", help="write a cProfile there")
    return parser.parse_args()


async def serve(options: argparse.Namespace) -> None:
    """A broker, as `holdfast broker` runs it, with one durable stream."""
    neighbours = [Neighbour(child, None) for child in options.child]
    neighbours += [Neighbour(*options.parent)] if options.parent else []
    stream = Stream("everything", ("#",), guarantee=Guarantee.DURABLE, pubends=options.pubends)
    settings = Settings(options.name, next_incarnation(options.data), tuple(neighbours), streams=(stream,))
    collector = Collector()
    address = Address("127.0.0.1", options.port)
    service = BrokerService(settings, address, data=options.data, rest=collector.rest)
    await service.start()
    collector.start()
    _tell({"port": service.listen.port})
    await _wait_ended(service)
    await service.stop()


async def _wait_ended(service: BrokerService) -> None:
    """Answer until nobody asks any more, or the broker has failed; then that is in the log."""
    asked = asyncio.ensure_future(_answer_all(service))
    failed = asyncio.ensure_future(service.driver.wait_stopped())
    await asyncio.wait((asked, failed), return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if failed.done():
        failed.result()
    failed.cancel()


async def _answer_all(service: BrokerService) -> None:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.readline():
        _tell({"cpu": time.process_time(), "written": written_bytes(), **service.status()})


def written_bytes() -> int:
    """What this process has had written to a disk, since it began."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("write_bytes:"):
            return int(line.split()[1])
    raise AssertionError("a /proc without write_bytes")


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
