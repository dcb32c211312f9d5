"""E1.2: how many subscribers one, two and four subscribers' brokers serve [BZA §5.1, Fig 4].

Four brokers' worth of load does not fit into two cores. So what work costs is measured with real processes, one
publisher's broker and one subscribers' broker, at the paper's 800 events a second: for each event, for each copy to a
subscribers' broker, for each delivery, and for each event that somebody catches up with. How much of each there is to
do is counted in the simulator, with one, two and four. A broker has as many subscribers as keep one core busy.

So that four brokers serve four times as many follows from the model, if the work of each stays the same: that is what
the count can refute. Costs are differences of measurements; where one is not positive, the noise was larger than it.
"""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.bench.durable_catch_up import caught_up
from holdfast.bench.durable_load import DurableLoad, subscribe_groups
from holdfast.bench.durable_process import BrokerProcess, start_chain
from holdfast.bench.durable_scale import DurableScale
from holdfast.bench.durable_wire import Publisher
from holdfast.bench.network_wire import PUBLISHER
from holdfast.bench.network_workload import GROUPS
from holdfast.bench.overlay_finding import Check, Finding
from holdfast.broker.broker import Broker
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.simulator.run import simulate
from holdfast.simulator.world import World

__all__ = ["Costs", "Work", "count_work", "run_scaling", "scaling"]

PER_SECOND = 800
EACH_PER_SECOND = PER_SECOND // GROUPS
AWAY_SECONDS, AWAY_EVERY_SECONDS = 5, 300
BROKERS = (1, 2, 4)
PAPER = {1: (20_000, 17_600), 2: (None, None), 4: (79_200, 69_600)}
FEW, MANY = 20, 100  #: subscribers, between which the cost of a delivery shows


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time in µs."""

    event: float  #: of the publisher's broker, to log it
    copy: float  #: of it, to send it to a subscribers' broker
    arrival: float  #: of a subscribers' broker, for each event
    delivery: float  #: of it, for each subscriber that gets it
    caught_up: float  #: of it, for each event and subscriber that missed it


class Work(NamedTuple):
    """For one event published, as counted in the simulator."""

    copies: float  #: the publisher's broker sends
    deliveries: float  #: one subscribers' broker makes, for each of its subscribers


def run_scaling(scale: DurableScale) -> Finding:
    """Measure, count, and put together."""
    return scaling(measured_costs(scale), {brokers: count_work(brokers) for brokers in BROKERS})


def scaling(costs: Costs, work: dict[int, Work]) -> Finding:
    """Subscribers that fit, and what they get in a second, all together."""
    rows = [(brokers, *_capacity(costs, work[brokers], brokers)) for brokers in work]
    smallest, largest = rows[0], rows[-1]
    idle_before, idle_after = smallest[-1], largest[-1]
    grown, share = largest[2] / smallest[2], min(row[4] / row[2] for row in rows)
    names = ("event", "copy", "arrival", "delivery", "caught up")
    values = (costs.event, costs.copy, costs.arrival, costs.delivery, costs.caught_up)
    return Finding(
        "durable-scaling",
        "Subscribers' brokers (E1.2)",
        (
            "brokers",
            "subscribers",
            "events/s",
            "subscribers, disconnecting",
            "events/s, disconnecting",
            "PHB idle %",
        ),
        [tuple(round(cell, 1) for cell in row) for row in rows],
        (
            "brokers",
            "subscribers",
            "events/s",
            "subscribers, disconnecting",
            "events/s, disconnecting",
            "PHB idle %",
        ),
        rows,
        [
            Check(
                "every cost can be told from the noise of its measurement: it is positive",
                " ".join(f"{value:.1f}" for value in values),
                min(values) > 0,
            ),
            Check(
                "a broker's work for a subscriber does not grow with their number; so four serve 3.9 times as many",
                f"{grown:.2f} times",
                grown >= 3.9,
            ),
            Check("disconnections leave at least 88 % of it", f"{100 * share:.0f} %", share >= 0.88),
            Check(
                "the publisher's broker hardly notices: at most 15 % of a core more",
                f"{idle_before:.0f} % idle, then {idle_after:.0f} %",
                idle_before - idle_after <= 15,
            ),
        ],
        f"{PER_SECOND} events/s, {EACH_PER_SECOND} for each subscriber; disconnecting: everybody is away for "
        f"{AWAY_SECONDS} s every {AWAY_EVERY_SECONDS} s. Measured costs in µs: "
        f"{', '.join(f'{name} {value:.1f}' for name, value in zip(names, values, strict=True))}. In the paper 20,000 "
        "to 79,200 events/s, 17,600 to 69,600 with disconnections, idle 69 to 59 %.",
    )


def _capacity(costs: Costs, work: Work, brokers: int) -> tuple[float, float, float, float, float]:
    """Of all brokers together: subscribers and events a second, without and with disconnections; what is idle."""
    left_us = 1e6 / PER_SECOND - costs.arrival  # of a core, for the deliveries of one event
    away = AWAY_SECONDS / AWAY_EVERY_SECONDS
    mixed = (1 - away) * costs.delivery + away * costs.caught_up
    steady, disturbed = (brokers * left_us / (each * work.deliveries) for each in (costs.delivery, mixed))
    busy = PER_SECOND * (costs.event + costs.copy * work.copies) / 1e6
    return steady, steady * EACH_PER_SECOND, disturbed, disturbed * EACH_PER_SECOND, 100 * (1 - busy)


# Costs


def measured_costs(scale: DurableScale) -> Costs:
    """With real processes."""
    alone = _paced_costs(scale, 0)
    few, many = _paced_costs(scale, FEW), _paced_costs(scale, MANY)
    delivery = (many[1] - few[1]) / ((MANY - FEW) / GROUPS)
    with scale.data() as folder:
        caught = statistics.median(each.cpu_us for each in caught_up(scale, folder, FEW))
    arrival = few[1] - delivery * FEW / GROUPS
    return Costs(alone[0], few[0] - alone[0], arrival, delivery, caught)


def _paced_costs(scale: DurableScale, subscribers: int) -> tuple[float, float]:
    """What each of the two brokers takes for an event, at the paper's rate: the median of some runs."""
    found: list[tuple[float, float]] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scale.data())
        brokers = start_chain(stack, folder, ("phb", "shb"))
        sinks = subscribe_groups(brokers[1].port, subscribers)
        load = stack.enter_context(
            DurableLoad(Publisher(brokers[0].port, PUBLISHER), sinks, subscribers // GROUPS)
        )
        for _ in range(scale.repetitions):
            found.append(_paced_cost(load, brokers, scale.seconds))
    phb, shb = zip(*found, strict=True)
    return statistics.median(phb), statistics.median(shb)


def _paced_cost(load: DurableLoad, brokers: list[BrokerProcess], seconds: float) -> tuple[float, float]:
    before = [broker.usage() for broker in brokers]
    first = load.next
    load.run_paced(PER_SECOND, seconds)
    used = [broker.usage().since(then) for broker, then in zip(brokers, before, strict=True)]
    phb, shb = (usage.cpu_seconds / (load.next - first) * 1e6 for usage in used)
    return phb, shb


# Work


def count_work(brokers: int, subscribers_each: int = GROUPS, seconds: int = 5) -> Work:
    """So many subscribers' brokers, in virtual time."""
    lines = ["Guarantee durable", "Site a Parent none", "Process phb is broker On a URL tcp://localhost:0/x"]
    lines += ["Process p is publisher On a URL tcp://localhost:0/x"]
    script: list[str] = []
    for b in range(brokers):
        lines += [f"Site s{b} Parent a", f"Process shb{b} is broker On s{b} URL tcp://localhost:0/x"]
        for i in range(subscribers_each):
            lines.append(f"Process u{b}-{i} is subscriber On s{b} URL tcp://localhost:0/x")
            script.append(f"Subscriber u{b}-{i} Subscribe t/{i % GROUPS} Durable")
    script += [f"Publisher p Publish {20 * seconds} Ontopic t/{g} Interval 50" for g in range(GROUPS)]
    script += [f"Wait {seconds * 1_000 + 1_000}"]
    network = parse_configuration("".join(f"{line}\n" for line in lines))
    seen: list[World] = []
    simulate(
        network, parse_script("".join(f"{line}\n" for line in script), "script", network), beside=seen.append
    )
    cores = {name: node.core for name, node in seen[0].nodes.items() if isinstance(node.core, Broker)}
    published = cores["phb"].counters.published
    deliveries = sum(core.counters.delivered for core in cores.values()) / brokers / subscribers_each
    return Work(cores["phb"].counters.forwarded / published, deliveries / published)
