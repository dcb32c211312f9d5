"""How long a delivery takes at a thousand events a second: one hop, a chain of five, and a bare echo, taking turns.

The clock starts when the publisher hands an event to its socket and stops when the subscriber has read its last byte;
both are one process, so it is one clock. The echo sends the same bytes there and back. Load and servers have a core
each; what comes out where the system places them is measured beside it.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import Final

from holdfast.bench.cores import apart
from holdfast.bench.network_load import Load
from holdfast.bench.network_outcome import Outcome, Scale, latency_outcomes
from holdfast.bench.network_process import Measured
from holdfast.bench.network_wire import RECEIVE_BYTES, BenchFailed
from holdfast.bench.network_workload import Shape
from holdfast.bench.pace import read_until
from holdfast.clock import SECOND

__all__ = ["CHAIN", "ECHO", "LATENCY", "ONE_HOP", "PLACED", "TURNS", "latency", "start_chain"]

ECHO, ONE_HOP, CHAIN = "bare echo", "one hop", "chain of 5"
CHAIN_BROKERS: Final = 5
EVENTS_PER_SECOND: Final = 1_000
LATENCY, PLACED = "latency", "latency, cores as the system likes"
#: Many short turns for each.
TURNS: Final = 3
READY_SECONDS: Final = 30.0


def latency(scale: Scale) -> Iterator[Outcome]:
    """One hop and five against the echo."""
    workload = Shape("stream", 1, 1).workload()
    with ExitStack() as stack:
        echo = stack.enter_context(Measured("echo"))
        one = stack.enter_context(Measured("broker"))
        chain = start_chain(stack, CHAIN_BROKERS)
        loads = {
            ONE_HOP: stack.enter_context(Load(workload.fresh(), one.port)),
            CHAIN: stack.enter_context(Load(workload.fresh(), chain[0].port, chain[-1].port)),
        }
        frames = [body for _, body in workload.segment(EVENTS_PER_SECOND, frame_events=1).bodies]
        found: dict[str, dict[str, list[list[int]]]] = {
            job: {variant: [] for variant in (ECHO, ONE_HOP, CHAIN)} for job in (LATENCY, PLACED)
        }
        servers = [each.process_id for each in (echo, one, *chain)]
        seconds = scale.seconds / 2
        for _ in range(TURNS * scale.repetitions):
            for job, runs in found.items():
                with apart(servers) if job == LATENCY else nullcontext():
                    runs[ECHO].append(echo_paced(echo.port, frames, EVENTS_PER_SECOND, seconds))
                    for variant, load in loads.items():
                        load.run_paced(EVENTS_PER_SECOND, seconds)
                        runs[variant].append(load.sinks[0].latencies_ns)
        for load in loads.values():
            load.finish()
    for job, runs in found.items():
        yield from latency_outcomes(job, runs)


def start_chain(stack: ExitStack, brokers: int) -> list[Measured]:
    """Brokers in a row, each the child of the one before, all in session with their neighbours."""
    chain: list[Measured] = []
    for i in range(brokers):
        arguments = ["broker", "--name", f"b{i}"]
        if chain:
            arguments += ["--parent", f"b{i - 1}", f"127.0.0.1:{chain[-1].port}"]
        if i < brokers - 1:
            arguments += ["--child", f"b{i + 1}"]
        chain.append(stack.enter_context(Measured(*arguments)))
    deadline = time.monotonic() + READY_SECONDS
    while not all(_is_settled(broker) for broker in chain):
        if time.monotonic() > deadline:
            raise BenchFailed(f"a chain of {brokers} brokers did not form within {READY_SECONDS:g} s")
    return chain


def _is_settled(broker: Measured) -> bool:
    status = broker.ask()
    return bool(status["ready"]) and all(each["state"] == "active" for each in status["neighbours"])


def echo_paced(port: int, frames: Sequence[bytes], per_second: float, seconds: float) -> list[int]:
    """Send frames at a steady rate; how long each took to come back, in ns."""
    latencies: list[int] = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        epoll = select.epoll()  # not needed for one connection; the load of a broker waits like this
        epoll.register(connection, select.EPOLLIN)
        sent: list[tuple[int, int]] = []  # when, and how many bytes had been sent with it
        received = total = 0

        def read() -> None:
            nonlocal received
            received += len(connection.recv(RECEIVE_BYTES))
            _note(latencies, sent, received)

        def poll_and_read() -> None:
            epoll.poll(0)
            read()

        at = time.monotonic_ns()
        for i in range(max(1, round(per_second * seconds))):
            at += round(SECOND / per_second)
            read_until(at, epoll, poll_and_read)
            frame = frames[i % len(frames)]
            total += len(frame)
            sent.append((time.monotonic_ns(), total))
            connection.sendall(frame)
        while len(latencies) < len(sent):
            read()
        epoll.close()
    return latencies


def _note(latencies: list[int], sent: Sequence[tuple[int, int]], received: int) -> None:
    """Everything up to here is back."""
    now = time.monotonic_ns()
    while len(latencies) < len(sent) and sent[len(latencies)][1] <= received:
        latencies.append(now - sent[len(latencies)][0])
