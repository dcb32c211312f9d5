"""Catching up: what durable subscribers missed while they were away, and while their broker was.

Away: they hang up, events are published, they come back and the clock runs from their asking until the last of them has
everything. An outage (E1.6): the subscribers' broker is killed while events go on being published, is started again on
the same disk, and everybody comes back at once. Whatever was missed goes from the publisher's broker to theirs once,
not once for each of them: its copies are counted where they leave.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.bench.durable_load import EVERYTHING, DurableLoad, group_filter
from holdfast.bench.durable_process import BrokerProcess, start_chain
from holdfast.bench.durable_reception import FIRST
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import Publisher, Subscriber
from holdfast.bench.network_outcome import Outcome
from holdfast.bench.network_wire import PUBLISHER
from holdfast.bench.network_workload import GROUPS

__all__ = [
    "ASKED_JOB",
    "CATCH_UP_JOB",
    "CURRENT_JOB",
    "ONE",
    "OUTAGE",
    "Caught",
    "Outage",
    "catch_up",
    "caught_up",
    "outage",
    "real_outages",
]

CATCH_UP_JOB: Final = "catching up"
ONE: Final = "one subscriber"
CURRENT_JOB: Final = "all current after an outage"
ASKED_JOB: Final = "copies sent to the broker for each event missed"
OUTAGE: Final = "the broker was killed"
PER_SECOND: Final = 800
SETTLED_SECONDS: Final = 2.0
CURRENT_EVENTS: Final = PER_SECOND // 10  #: whoever misses no more than these is current


class Caught(NamedTuple):
    """One return of everybody who was away."""

    events_per_second: float
    cpu_us: float  #: of their broker, for one event to one subscriber


def catch_up(scale: DurableScale) -> Iterator[Outcome]:
    """One of them alone, and many together."""
    for count, variant in ((1, ONE), (scale.together, f"{scale.together} together")):
        with scale.data() as folder:
            found = caught_up(scale, folder, count)
        used = min(each.cpu_us for each in found)
        remark = f"{scale.missed:,} missed by each; {used:.1f} µs of the broker's processor time an event"
        yield Outcome(
            CATCH_UP_JOB, variant, "events/s", tuple(each.events_per_second for each in found), remark
        )


def caught_up(scale: DurableScale, folder: Path, count: int) -> list[Caught]:
    """So many subscribers hang up, miss the same events, and come back; again and again."""
    found: list[Caught] = []
    with ExitStack() as stack:
        phb, shb = start_chain(stack, folder, ("phb", "shb"))
        watcher = _subscribed(shb.port, "watcher", EVERYTHING, FIRST, 1)
        load = stack.enter_context(DurableLoad(Publisher(phb.port, PUBLISHER), [watcher], 1))
        away = [_subscribed(shb.port, f"away-{i}", EVERYTHING, load.next, 1) for i in range(count)]
        load.join(away)
        for _ in range(scale.repetitions):
            load.leave(away)
            first = load.next
            load.publish(scale.missed)
            events = count * (load.next - first)
            before = shb.usage()
            took, away = _come_back(load, shb.port, away)
            used = shb.usage().since(before).cpu_seconds
            found.append(Caught(events / took, used / events * 1e6))
    return found


def _come_back(load: DurableLoad, port: int, away: list[Subscriber]) -> tuple[float, list[Subscriber]]:
    """Reconnect, and wait until nobody misses anything: how long that took, and who they are now."""
    back = [subscriber.again(port) for subscriber in away]
    began = time.perf_counter()
    for subscriber in back:
        subscriber.subscribe(EVERYTHING)
    load.join(back)
    load.wait_current()
    return time.perf_counter() - began, back


def _subscribed(port: int, name: str, filter: str, due: int, step: int) -> Subscriber:
    subscriber = Subscriber(port, name, due, step)
    subscriber.subscribe(filter)
    subscriber.wait_confirmed()
    return subscriber


def outage(scale: DurableScale) -> Iterator[Outcome]:
    """The subscribers' broker fails once in each repetition."""
    with scale.data() as folder:
        found = real_outages(scale, folder)
    remark = f"down {scale.outage_seconds:g} s, {scale.together} subscribers, {PER_SECOND} events/s go on"
    yield Outcome(CURRENT_JOB, OUTAGE, "s", tuple(each.current_seconds for each in found), remark)
    remark = f"{scale.together // GROUPS} subscribers want each"
    yield Outcome(ASKED_JOB, OUTAGE, "copies", tuple(each.copies for each in found), remark)


def real_outages(scale: DurableScale, folder: Path) -> list[Outage]:
    """One after the other."""
    with ExitStack() as stack:
        brokers = start_chain(stack, folder, ("phb", "shb"))
        subscribers = [
            _subscribed(brokers[1].port, f"sink-{i}", group_filter(i % GROUPS), FIRST + i % GROUPS, GROUPS)
            for i in range(scale.together)
        ]
        publisher = Publisher(brokers[0].port, PUBLISHER)
        load = stack.enter_context(DurableLoad(publisher, subscribers, scale.together // GROUPS))
        return [suffer(load, brokers, scale.outage_seconds) for _ in range(scale.repetitions)]


class Outage(NamedTuple):
    """One failure of the subscribers' broker."""

    current_seconds: float  #: from its start until everybody was current
    copies: float  #: that went to it, for each event published from its failure until then


def suffer(load: DurableLoad, brokers: Sequence[BrokerProcess], seconds: float) -> Outage:
    """Kill the second of two brokers for so long, and see everybody back; events go on all the time.

    It has been current for a while: one that dies again before it has noted how far it came is told all of it again.
    """
    phb, shb = brokers
    load.run_paced(PER_SECOND, min(SETTLED_SECONDS, seconds))
    first, copies = load.next, _forwarded(phb)
    away = list(load.subscribers)
    load.leave(away)
    shb.kill()
    until = time.monotonic() + seconds
    load.pace(PER_SECOND, lambda: time.monotonic() < until)
    began = time.monotonic()
    shb.start_again()
    load.pace(PER_SECOND, lambda: not shb.has_started())
    back = [subscriber.again(shb.port) for subscriber in away]
    for subscriber in back:
        subscriber.subscribe(group_filter(int(subscriber.name.split("-")[1]) % GROUPS))
    load.join(back)
    load.pace(PER_SECOND, lambda: load.is_behind(CURRENT_EVENTS))
    took = time.monotonic() - began
    load.wait_current()
    return Outage(took, (_forwarded(phb) - copies) / (load.next - first))


def _forwarded(broker: BrokerProcess) -> int:
    return int(broker.ask()["counters"]["forwarded"])
