"""Durable streams in virtual time: a publisher's broker, a subscribers' broker, and somebody who looks at it steadily.

Four topics, each event for a quarter of the subscribers. The simulator's processors take no time, so that how fast
somebody catches up is what the subscribers themselves take of time for an event: that is given, by ``Slow``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.bench.network_wire import BenchFailed
from holdfast.bench.network_workload import GROUPS
from holdfast.broker.broker import Broker
from holdfast.broker.durable.inspection import durable_status
from holdfast.broker.input import Input
from holdfast.broker.sessions import Effects
from holdfast.clock import MILLISECOND, Instant
from holdfast.messages.ticks import Items, Nack
from holdfast.overlay.transport import Send
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.run import simulate
from holdfast.simulator.world import World

__all__ = ["Asked", "Crowd", "Observed", "Sample", "catch_up_seconds", "observe", "slopes"]

PHB, SHB = "phb", "shb"


@dataclass(frozen=True, slots=True)
class Crowd:
    """The network and its load."""

    subscribers: int
    per_second: int  #: events each of them gets
    slow_ms: float  #: what one of them takes for an event

    def configuration(self) -> str:
        """The text of a configuration file."""
        lines = ["Guarantee durable", "Site a Parent none", "Site b Parent a"]
        lines += [f"Process {PHB} is broker On a URL tcp://localhost:0/x"]
        lines += [f"Process {SHB} is broker On b URL tcp://localhost:0/x"]
        lines += ["Process p is publisher On a URL tcp://localhost:0/x"]
        lines += [f"Process {name} is subscriber On b URL tcp://localhost:0/x" for name in self.names]
        return "".join(f"{line}\n" for line in lines)

    @property
    def names(self) -> list[str]:
        """The subscribers."""
        return [f"u{i}" for i in range(self.subscribers)]

    def script(self, seconds: int, beside: Sequence[str]) -> str:
        """Subscribe, publish for so long, and do something else beside that, at its time."""
        lines = [*beside]
        for i, name in enumerate(self.names):
            lines += [f"Subscriber {name} Subscribe t/{i % GROUPS} Durable", f"Slow {name} {self.slow_ms:g}"]
        count, interval = self.per_second * seconds, 1_000 / self.per_second
        lines += [f"Publisher p Publish {count} Ontopic t/{g} Interval {interval:g}" for g in range(GROUPS)]
        lines.append(f"Wait {seconds * 1_000}")
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Sample:
    """The subscribers' broker at an instant; positions are in ms of the pubend's clock."""

    t: float  #: seconds since the start of the script
    delivered_ms: float  #: latestDelivered
    released_ms: float
    catching_up: int


@dataclass(slots=True)
class Asked:
    """What one broker asked another for, and what the other sent."""

    nacks: int = 0
    answered: int = 0  #: events in answers to nacks
    told: int = 0  #: events that were sent without being asked for


@dataclass(frozen=True, slots=True)
class Observed:
    """A run, seen from outside."""

    trace: list[TraceLine]
    samples: list[Sample]
    asked: Asked = field(default_factory=Asked)


def observe(crowd: Crowd, seconds: int, beside: Sequence[str], every_ms: int = 100) -> Observed:
    """Play it.

    :raises BenchFailed: if a promise was not kept.
    """
    network = parse_configuration(crowd.configuration())
    script = parse_script(crowd.script(seconds, beside), "script", network)
    samples: list[Sample] = []
    asked = Asked()

    def watch(world: World) -> None:
        def look(t: float) -> None:
            core = world.nodes[SHB].core
            if isinstance(core, Broker) and core.durable is not None:
                samples.extend(_samples(core, t))

        for at_ms in range(0, seconds * 1_000, every_ms):
            world.clock.at(world.now + at_ms * MILLISECOND, look, at_ms / 1_000)

    result = simulate(network, script, make_broker=lambda *a, **k: _Counting(asked, *a, **k), beside=watch)
    violations = check_all(result.trace)
    if violations or not result.drained:
        raise BenchFailed(
            f"{len(violations)} promises were broken: {violations[:1]}; drained: {result.drained}"
        )
    return Observed(result.trace, samples, asked)


def _samples(broker: Broker, t: float) -> list[Sample]:
    assert broker.durable is not None
    return [
        Sample(t, each["delivered"] / 1e3, each["released"] / 1e3, each["catching_up"])
        for each in durable_status(broker.durable)["hosted"]
    ]


class _Counting(Broker):
    """A broker like any other."""

    def __init__(self, asked: Asked, *settings: object, **more: object) -> None:
        super().__init__(*settings, **more)  # type: ignore[arg-type]
        self._asked = asked

    def step(self, stimulus: Input, now: Instant) -> Effects:
        effects = super().step(stimulus, now)
        for effect in effects:
            if isinstance(effect, Send):
                for message in effect.messages:
                    if isinstance(message, Nack):
                        self._asked.nacks += 1
                    elif isinstance(message, Items):
                        events = sum(publication is not None for publication in message.publications)
                        if message.answers:
                            self._asked.answered += events
                        else:
                            self._asked.told += events
        return effects


def slopes(samples: Sequence[Sample], first: float, last: float, over_seconds: float) -> list[float]:
    """How many ms of ticks latestDelivered advanced in each second, over windows between two times."""
    inside = [sample for sample in samples if first <= sample.t <= last]
    found: list[float] = []
    begin = 0
    for end, sample in enumerate(inside):
        if sample.t - inside[begin].t >= over_seconds - 1e-9:
            found.append((sample.delivered_ms - inside[begin].delivered_ms) / (sample.t - inside[begin].t))
            begin = end
    return found


def catch_up_seconds(trace: Sequence[TraceLine], subscriber: str, since: float, lag_seconds: float) -> float:
    """How long it took from a time until a subscriber had an event no later than so long after its publishing."""
    published = {(line["publisher"], line["n"]): line["t"] for line in trace if line["kind"] == "publish"}
    for line in trace:
        is_its = line["kind"] == "deliver" and line["subscriber"] == subscriber and line["t"] >= since
        if is_its and line["t"] - published[line["publisher"], line["n"]] <= lag_seconds:
            return float(line["t"] - since)
    raise BenchFailed(f"{subscriber} never caught up after {since:g} s")
