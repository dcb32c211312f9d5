"""The processes that are measured: a broker on the real runtime, and the bare things it is held against.

Each prints a line of JSON with its port once it listens, and one with what it has used for every line it reads. When
its standard input ends, it does: so it never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from holdfast.bench.network_bare import Echo, FanOut, precomputed
from holdfast.bench.network_workload import Shape
from holdfast.broker.broker import Broker
from holdfast.broker.input import Stop
from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.matching.engine import engines
from holdfast.messages.streams import Guarantee
from holdfast.overlay.transport import Wake
from holdfast.runtime.collector import Collector
from holdfast.runtime.driver import Driver
from holdfast.runtime.loop import run

__all__ = ["main"]


def main() -> None:
    """Run the role asked for until standard input ends."""
    options = _arguments()
    profiler = cProfile.Profile() if options.profile is not None else None
    if profiler is not None:
        profiler.enable()
    match options.role:
        case "broker":
            run(serve_broker(options))
        case "fan-out":
            asyncio.run(serve_fan_out(Shape.from_text(options.shape)))
        case "echo":
            asyncio.run(serve_echo())
        case "source":
            pour(options.chunk)
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(options.profile)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=("broker", "fan-out", "echo", "source"))
    parser.add_argument("--name", default="broker", help="the broker's")
    parser.add_argument("--parent", nargs=2, metavar=("NAME", "ADDRESS"), help="the broker it dials")
    parser.add_argument("--child", action="append", default=[], metavar="NAME", help="a broker that dials it")
    parser.add_argument(
        "--beyond",
        action="append",
        default=[],
        nargs=3,
        metavar=("NAME", "BESIDE", "ADDRESS"),
        help="a broker farther away; - if it dials",
    )
    parser.add_argument("--incarnation", type=int, default=1, help="the broker's")
    parser.add_argument("--delta", type=int, default=0, help="how many may fail at a time")
    parser.add_argument(
        "--reliable", metavar="PATTERN", help="topics of a reliable stream, besides the default one"
    )
    parser.add_argument("--engine", choices=sorted(engines()), help="the matching engine [the fastest]")
    parser.add_argument("--profile", metavar="FILE", help="write a cProfile there")
    parser.add_argument("--shape", help="whose matching the bare loop is to know beforehand")
    parser.add_argument("--chunk", type=int, help="bytes in one send of a source")
    return parser.parse_args()


async def serve_broker(options: argparse.Namespace) -> None:
    """A broker, as `holdfast broker` runs it, but quiet."""
    neighbours = [Neighbour(child, None) for child in options.child]
    neighbours += [Neighbour(*options.parent)] if options.parent else []
    neighbours += [
        Neighbour(name, None if address == "-" else address, beside)
        for name, beside, address in options.beyond
    ]
    streams = (
        [Stream("reliable", (options.reliable,), guarantee=Guarantee.RELIABLE)] if options.reliable else []
    )
    index = None if options.engine is None else engines()[options.engine]()
    collector = Collector().start()
    settings = Settings(
        options.name,
        options.incarnation,
        tuple(neighbours),
        streams=(*streams, Stream("default", ("#",))),
        delta=options.delta,
    )
    broker = Broker(settings, index)
    driver = Driver(broker, log=_log, rest=collector.rest)
    _tell({"port": await driver.listen("127.0.0.1", 0)})
    await driver.start(Wake())
    await _wait_ended(lambda: {"turns": driver.turns, **broker.status()})
    driver.submit(Stop())
    await driver.stop()


async def serve_fan_out(shape: Shape) -> None:
    """The bare loop."""
    targets = precomputed(shape.workload())
    sinks: dict[int, FanOut] = {}
    await _serve(lambda: FanOut(targets, sinks))


async def serve_echo() -> None:
    """The bare echo."""
    await _serve(Echo)


async def _serve(protocol: Callable[[], asyncio.Protocol]) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, backlog=1024)
    async with server:
        _tell({"port": server.sockets[0].getsockname()[1]})
        await _wait_ended(dict)


def pour(chunk: int) -> None:
    """To whoever connects, one after the other, as many bytes as the socket takes, until it hangs up."""
    data = bytes(chunk)
    with socket.create_server(("127.0.0.1", 0)) as server:
        _tell({"port": server.getsockname()[1]})
        while server in select.select([server, sys.stdin], [], [])[0]:
            connection, _ = server.accept()
            with connection, suppress(ConnectionError):
                while True:
                    connection.sendall(data)


async def _wait_ended(state: Callable[[], dict[str, Any]]) -> None:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    while await reader.readline():
        _tell({"cpu": time.process_time(), **state()})


def _tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _log(level: str, text: str, fields: Mapping[str, Any]) -> None:
    if level == "error":
        sys.stderr.write(f"{level}: {text} {dict(fields)}\n")


if __name__ == "__main__":
    main()
