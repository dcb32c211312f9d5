"""What the guarantee ``reliable`` costs: a chain of five brokers that survives two failures, as real processes.

Two such chains differ in nothing but the guarantee of their stream, and take turns under the same load: at one end a
raw publisher, at the other a raw subscriber, both plain clients of their brokers. A publication passes four times from
broker to broker.

*Control bytes* are counted on the connection between two brokers in the middle, everything that is no publication, at
5,000 events a second. *Stall*: the broker in the middle is killed, or stopped, while a thousand events a second pass;
the longest any delivery took. Everything must still come, once and in order, or the run fails. *Told*: a broker
restarts beside one that knows 2,600 subscriptions; from when it listens until it has been told them and is ready.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from holdfast.bench.network_load import Load
from holdfast.bench.network_outcome import Outcome, Scale
from holdfast.bench.network_process import Measured
from holdfast.bench.network_tap import Tap
from holdfast.bench.network_wire import BenchFailed, RawConnection
from holdfast.bench.network_workload import Shape
from holdfast.clock import SECOND
from holdfast.wire.overlay import ENCODERS

__all__ = [
    "BEST_EFFORT",
    "CHAIN_JOB",
    "CONTROL_JOB",
    "DACK",
    "KILLED",
    "RELIABLE",
    "STALL_JOB",
    "STALL_MS_MAX",
    "STOPPED",
    "TOLD_JOB",
    "reliable",
]

BEST_EFFORT, RELIABLE = "best-effort", "reliable"
DACK: Final = "dack"
KILLED, STOPPED = "killed: longest delivery", "stopped: longest delivery"
CHAIN_JOB: Final = "chain of 5, δ = 2"
CONTROL_JOB: Final = "reliable, control bytes at 5,000 events/s"
STALL_JOB: Final = "reliable, a broker fails"
TOLD_JOB: Final = "reliable, a broker is told 2,600 subscriptions"
BROKERS: Final = 5
DELTA: Final = 2
DETECT_MS: Final = 500  #: a broker's default
STALL_MS_MAX: Final = DETECT_MS + 200
WARM_EVENTS: Final = 2_000
EVENTS_MAX: Final = 700_000
#: A run takes so many times what is asked for: several periods of depth-acknowledgements must pass in it, for it is
#: with them that queues are purged.
LONGER: Final = 3
CONTROL_RATE: Final = 5_000
STALL_RATE: Final = 1_000
READY_SECONDS: Final = 60.0
SUBSCRIPTIONS: Final = 2_600
#: What a link between brokers carries of a reliable stream; everything else is control.
RELAY: Final = next(kind for kind, _ in ENCODERS.values())


def reliable(scale: Scale) -> Iterator[Outcome]:
    """Throughput, control bytes, stall, and what a broker that restarts is told."""
    yield from _throughput(scale)
    yield from _control(scale)
    yield from _stall(scale)
    yield from _told(scale)


def _load(stack: ExitStack, chain: list[Measured]) -> Load:
    return stack.enter_context(Load(Shape("stream", 1, 1).workload(), chain[0].port, chain[-1].port))


def _start_chain(
    stack: ExitStack, variant: str = RELIABLE, *, tapped: bool = False
) -> tuple[list[Measured], Tap | None]:
    """The brokers, each the child of the one before; with a tap between the second and the third, if it is wanted."""
    chain: list[Measured] = []
    ports: list[int] = []  #: where each is dialled by its child
    tap: Tap | None = None
    for i in range(BROKERS):
        arguments = ["broker", "--name", f"b{i}", "--delta", str(DELTA)]
        if variant == RELIABLE:
            arguments += ["--reliable", "#"]
        if i:
            arguments += ["--parent", f"b{i - 1}", f"127.0.0.1:{ports[-1]}"]
        if i < BROKERS - 1:
            arguments += ["--child", f"b{i + 1}"]
        for hops in range(2, DELTA + 2):
            if i >= hops:
                address = f"127.0.0.1:{chain[i - hops].port}"
                arguments += ["--beyond", f"b{i - hops}", f"b{i - hops + 1}", address]
            if i + hops < BROKERS:
                arguments += ["--beyond", f"b{i + hops}", f"b{i + hops - 1}", "-"]
        chain.append(stack.enter_context(Measured(*arguments)))
        ports.append(chain[-1].port)
        if tapped and i == 1:
            tap = stack.enter_context(Tap(chain[-1].port))
            ports[-1] = tap.port
    _wait_settled(chain)
    return chain, tap


def _wait_settled(brokers: list[Measured]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not all(_is_settled(broker) for broker in brokers):
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(brokers)} brokers did not meet within {READY_SECONDS:g} s")


def _is_settled(broker: Measured) -> bool:
    status = broker.ask()
    return bool(status["ready"]) and all(each["state"] == "active" for each in status["neighbours"])


def _throughput(scale: Scale) -> Iterator[Outcome]:
    with ExitStack() as stack:
        chains = {variant: _start_chain(stack, variant)[0] for variant in (BEST_EFFORT, RELIABLE)}
        loads = {variant: _load(stack, chain) for variant, chain in chains.items()}
        counts: dict[str, int] = {}
        for variant, load in loads.items():
            warm = min(WARM_EVENTS, max(100, int(WARM_EVENTS * scale.seconds)))
            per_second = load.run(warm).events_per_second
            counts[variant] = max(100, min(EVENTS_MAX, int(per_second * scale.seconds * LONGER)))
        runs: dict[str, list[float]] = {variant: [] for variant in loads}
        used: dict[str, list[float]] = {variant: [] for variant in loads}
        for _ in range(scale.repetitions):
            for variant, load in loads.items():
                before = _cpu(chains[variant])
                run = load.run(counts[variant])
                runs[variant].append(run.events_per_second)
                used[variant].append((_cpu(chains[variant]) - before) / run.events * 1e6)
        for load in loads.values():
            load.finish()
    for variant, found in runs.items():
        remark = f"{min(used[variant]):.1f} µs of processor time an event, of all brokers"
        yield Outcome(CHAIN_JOB, variant, "events/s", tuple(found), remark)


def _cpu(chain: list[Measured]) -> float:
    return sum(float(broker.ask()["cpu"]) for broker in chain)


def _control(scale: Scale) -> Iterator[Outcome]:
    shares: list[float] = []
    with ExitStack() as stack:
        chain, tap = _start_chain(stack, tapped=True)
        assert tap is not None
        load = _load(stack, chain)
        for _ in range(scale.repetitions):
            before = tap.bytes_by_kind()
            load.run_paced(CONTROL_RATE, max(0.2, scale.seconds))
            after = tap.bytes_by_kind()
            spent = {kind: size - before.get(kind, 0) for kind, size in after.items()}
            shares.append(100 * (1 - spent[RELAY] / sum(spent.values())))
        load.finish()
    yield Outcome(CONTROL_JOB, DACK, "% of all bytes", tuple(shares), "both ways between two brokers")


def _stall(scale: Scale) -> Iterator[Outcome]:
    for variant, number in ((KILLED, signal.SIGKILL), (STOPPED, signal.SIGSTOP)):
        found: list[float] = []
        for _ in range(scale.repetitions):
            with ExitStack() as stack:
                chain, _ = _start_chain(stack)
                load = _load(stack, chain)
                seconds = max(0.2, scale.seconds)
                timer = threading.Timer(seconds / 2, chain[BROKERS // 2].signal, [number])
                timer.start()
                load.run_paced(STALL_RATE, seconds)
                timer.join()
                chain[BROKERS // 2].signal(signal.SIGKILL)
                found.append(max(load.sinks[0].latencies_ns) / SECOND * 1_000)
        remark = f"the detector's timeout is {DETECT_MS} ms"
        yield Outcome(STALL_JOB, variant, "ms", tuple(found), remark)


def _told(scale: Scale) -> Iterator[Outcome]:
    found: list[float] = []
    common = ("broker", "--delta", str(DELTA), "--reliable", "#", "--name")
    for _ in range(scale.repetitions):
        with ExitStack() as stack:
            knowing = stack.enter_context(Measured(*common, "knowing", "--child", "told"))
            leaf = (*common, "told", "--parent", "knowing", f"127.0.0.1:{knowing.port}")
            first = stack.enter_context(Measured(*leaf))
            _wait_settled([knowing, first])
            client = RawConnection(knowing.port, "client")
            stack.callback(client.close)
            client.subscribe([f"orders/{i}" for i in range(SUBSCRIPTIONS)])
            client.wait_confirmed(SUBSCRIPTIONS)
            first.signal(signal.SIGKILL)
            told = stack.enter_context(Measured(*leaf, "--incarnation", "2"))
            began = time.perf_counter()
            _wait_settled([told])
            found.append((time.perf_counter() - began) * 1_000)
            installed = told.ask()["subscriptions"]["installed"]
            if installed != SUBSCRIPTIONS:
                raise BenchFailed(f"a broker is ready and knows {installed} of {SUBSCRIPTIONS} subscriptions")
    yield Outcome(TOLD_JOB, "until it is ready", "ms", tuple(found))
