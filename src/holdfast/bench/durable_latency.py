"""How long it takes from publishing to a durable subscriber, and to the receipt, beside a bare append and fdatasync.

One broker at 800 events/s; a chain of five at the same rate (E1.1), with subscribers at its end only, and at all of
its brokers, each of which then has a filtering log; and a publisher's broker with a subscribers' broker, a hundred
subscribers, at 5,000 events/s, where the publisher is a process of its own. Turns are short and many: where the
processes happen to lie moves a median.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from holdfast.bench.durable_bare import sync_latencies_ns
from holdfast.bench.durable_load import EVERYTHING, DurableLoad, subscribe_groups
from holdfast.bench.durable_pacer import Pacer
from holdfast.bench.durable_process import BrokerProcess, start_chain
from holdfast.bench.durable_reception import FIRST, Reception
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import Publisher, Subscriber
from holdfast.bench.network_outcome import Outcome, latency_outcomes
from holdfast.bench.network_wire import PUBLISHER

__all__ = [
    "ALL_LOG",
    "CHAIN",
    "CHAIN_JOB",
    "LATENCY_JOB",
    "OFFERED_JOB",
    "ONE_BROKER",
    "PAIR",
    "RECEIPT",
    "SYNC",
    "chain_latency",
    "latency",
    "offered",
]

PER_SECOND: Final = 800
OFFERED: Final = 5_000
LATENCY_JOB: Final = f"latency at {PER_SECOND} events/s"
OFFERED_JOB: Final = f"latency at {OFFERED:,} events/s, 25 deliveries each"
SYNC, ONE_BROKER, RECEIPT = "append + fdatasync", "publish to delivery", "publish to receipt"
PAIR: Final = "publish to delivery"
TURNS: Final = 2  #: for each repetition


def latency(scale: DurableScale) -> Iterator[Outcome]:
    """One broker, one subscriber."""
    found: dict[str, list[list[int]]] = {SYNC: [], ONE_BROKER: [], RECEIPT: []}
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        broker = stack.enter_context(BrokerProcess("phb", folder / "phb"))
        load = stack.enter_context(_to_all_at([broker], broker))
        for _ in range(TURNS * scale.repetitions):
            found[SYNC].append(sync_latencies_ns(folder, PER_SECOND, scale.seconds / 2))
            found[ONE_BROKER].append(load.run_paced(PER_SECOND, scale.seconds / 2))
            found[RECEIPT].append(load.publisher.latencies_ns)
    yield from latency_outcomes(LATENCY_JOB, found)


CHAIN_JOB: Final = f"chain, {PER_SECOND} events/s"
CHAIN: Final = "subscribers at the end"
ALL_LOG: Final = "subscribers at every broker"


def chain_latency(scale: DurableScale) -> Iterator[Outcome]:
    """From one end of a chain to the other."""
    found: dict[str, list[list[int]]] = {SYNC: [], CHAIN: [], ALL_LOG: []}
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        loads = {
            CHAIN: stack.enter_context(_chain_load(stack, folder / "one", scale.brokers, all_log=False)),
            ALL_LOG: stack.enter_context(_chain_load(stack, folder / "all", scale.brokers, all_log=True)),
        }
        for _ in range(TURNS * scale.repetitions):
            found[SYNC].append(sync_latencies_ns(folder, PER_SECOND, scale.seconds / 2))
            for variant, load in loads.items():
                load.run_paced(PER_SECOND, scale.seconds / 2)
                found[variant].append(load.subscribers[-1].latencies_ns)
    yield from latency_outcomes(CHAIN_JOB, found)


def _chain_load(stack: ExitStack, folder: Path, brokers: int, *, all_log: bool) -> DurableLoad:
    folder.mkdir()
    chain = start_chain(stack, folder, [f"b{i}" for i in range(brokers)])
    return _to_all_at(chain if all_log else chain[-1:], chain[0])


def _to_all_at(hosts: list[BrokerProcess], first: BrokerProcess) -> DurableLoad:
    """A publisher at one broker, and a subscriber to everything at each of some."""
    subscribers = [Subscriber(host.port, f"sink-{host.name}", FIRST, 1) for host in hosts]
    for subscriber in subscribers:
        subscriber.subscribe(EVERYTHING)
        subscriber.wait_confirmed()
    return DurableLoad(Publisher(first.port, PUBLISHER), subscribers, len(subscribers))


def offered(scale: DurableScale) -> Iterator[Outcome]:
    """A publisher's broker and a subscribers' broker, more events than single ones can be synced."""
    found: dict[str, list[list[int]]] = {SYNC: [], PAIR: []}
    turns = TURNS * scale.repetitions
    events = max(1, round(OFFERED * scale.seconds))
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        phb, shb = start_chain(stack, folder, ("phb", "shb"))
        subscribers = subscribe_groups(shb.port, scale.subscribers)
        reception = stack.enter_context(Reception(subscribers))
        pacer = stack.enter_context(Pacer(phb.port, turns * events))
        for _ in range(turns):
            found[SYNC].append(sync_latencies_ns(folder, PER_SECOND, scale.seconds / 2))
            pacer.begin(OFFERED, events)
            found[PAIR].append(reception.take(events, pacer.sent_at))
            pacer.wait()
    yield from latency_outcomes(OFFERED_JOB, found)
