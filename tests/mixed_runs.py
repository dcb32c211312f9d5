"""Networks with a best-effort, a reliable and a durable stream, simulated and judged stream by stream.

The scenario language knows one guarantee for a run. So a run of the durable kind is given brokers that have three
streams, and its trace is taken apart by topic: each part is a trace of one guarantee, which the checkers read as any
other. Scenarios are drawn from a seed: plain publishers that publish on all three at once, one window for all of it;
subscribers of everything, durable and not, and of each stream; brokers that crash, freeze or are cut off, and clients
that lose theirs and go to another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from random import Random
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Settings, Stream
from holdfast.client.inbox import OVERTAKEN
from holdfast.filters.parse import parse_filter
from holdfast.filters.topic import parse_pattern
from holdfast.messages.streams import Guarantee
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.checkers.history import History, precedes
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.script import parse_script
from holdfast.scenarios.trace import TraceLine
from holdfast.simulator.cast import MakeBroker
from holdfast.simulator.liveness import stuck
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.simulator.run import simulate

__all__ = ["STREAMS", "MixedRun", "Scenario", "draw_mixed", "judge", "mixed", "part_of", "run_mixed"]

STREAMS: Final = (
    Stream("hints", ("hints/#",)),
    Stream("alarms", ("alarms/#",), guarantee=Guarantee.RELIABLE),
    Stream("orders", ("orders/#",), guarantee=Guarantee.DURABLE),
)
TOPICS: Final = ("hints/a", "alarms/a", "orders/a")
_ABOUT_EVENTS: Final = ("publish", "accepted", "deliver")
_ASKING: Final = ("subscribe", "subscribed", "unsubscribe", "unsubscribed", "upgraded")


def mixed(make_broker: MakeBroker = Broker) -> MakeBroker:
    """Makes brokers that have the three streams, whatever their scenario says."""

    def make(settings: Settings, **options: Any) -> Broker:
        return make_broker(replace(settings, streams=STREAMS), **options)

    return make


# A trace, stream by stream


def part_of(trace: Sequence[TraceLine], stream: Stream) -> list[TraceLine]:
    """What a trace tells of one stream, as if there were no other.

    A gap names the pubend of a durable stream, or a publisher: then it speaks of every stream that is not logged.
    """
    asked = {
        (line["subscriber"], line["subscription"])
        for line in trace
        if line["kind"] == "subscribe" and _may_match(line["filter"], stream)
    }
    topics: dict[tuple[str, int], str] = {
        (line["publisher"], line["n"]): line["topic"] for line in trace if line["kind"] == "publish"
    }
    is_durable = stream.guarantee is Guarantee.DURABLE
    part: list[TraceLine] = []
    for line in trace:
        kind = line["kind"]
        if kind == "run":
            part.append({**line, "guarantee": str(stream.guarantee)})
        elif kind in _ABOUT_EVENTS:
            if _may_match(topics[line["publisher"], line["n"]], stream):
                part.append(line)
        elif kind in ("gap", "silence"):
            if ("@" in line["pubend"]) is is_durable:
                part.append(line)
        elif kind in _ASKING:
            if (line["subscriber"], line["subscription"]) in asked:
                part.append(line if is_durable or "durable" not in line else {**line, "durable": False})
        else:
            part.append(line)
    return list(_numbered(part))


def _numbered(part: Sequence[TraceLine]) -> Iterator[TraceLine]:
    """Each node's lines counted anew, in their order."""
    last: dict[str, int] = {}
    for line in part:
        last[line["node"]] = last.get(line["node"], 0) + 1
        yield {**line, "i": last[line["node"]]}


@cache
def _may_match(text: str, stream: Stream) -> bool:
    pattern = parse_filter(text).pattern
    return any(pattern.overlaps(parse_pattern(each)) for each in stream.topics)


# Judging


def judge(trace: Sequence[TraceLine], *, within_delta: bool) -> list[Violation]:
    """All that is wrong with a run, of each stream by what that promises."""
    found = list(stuck(trace))
    for stream in STREAMS:
        part = part_of(trace, stream)
        retain = inf if stream.guarantee is Guarantee.DURABLE else None
        found += [
            Violation(each.kind, f"{stream.name}: {each.message}", each.lines)
            for each in check_all(part, retain_seconds=retain)
        ]
    if within_delta:
        found += needless_gaps(part_of(trace, STREAMS[1]))
    return found


def needless_gaps(trace: Sequence[TraceLine]) -> Iterator[Violation]:
    """Gaps told to who was never away from its broker, in a run in which no more failed than the network survives.

    Of an event that was overtaken its publisher has to have been away.
    """
    history = History(trace)
    for (subscriber, subscription), gaps in history.gaps.items():
        for gap in gaps:
            away = gap["pubend"] if gap["reason"] == OVERTAKEN else subscriber
            absences = history.faults_of(away, "disconnect", "crash")
            if not any(precedes(line, gap) for line in absences):
                yield Violation("needless", f"{subscriber} for {subscription} never was away: {gap}", (gap,))


# Drawing


@dataclass(frozen=True, slots=True)
class Scenario:
    """A configuration and a script as text, and the brokers a client goes to when it loses its own."""

    configuration: str
    script: str
    others: dict[str, tuple[str, ...]]
    within_delta: bool

    def __str__(self) -> str:
        beside = "".join(f"# {name} also goes to {' '.join(each)}\n" for name, each in self.others.items())
        return f"{self.configuration}{beside}{self.script}"


def draw_mixed(seed: int, *, within_delta: bool) -> Scenario:
    """The scenario of a seed. Within δ = 1 what has failed is whole again, and met, before anything else fails."""
    return _Drawing(seed, within_delta).scenario()


#: Subscribers, what each subscribes to, and how.
_WISHES: Final = {
    "all": "# As everything",
    "kept": "# As kept Durable",
    "both": ("# As once", "# As twice Durable", "alarms/# As alone"),
    "hear": "hints/# As hints",
    "heed": "alarms/# As alarms",
    "read": "orders/# As orders Durable",
}


class _Drawing:
    """One scenario in the making."""

    def __init__(self, seed: int, within_delta: bool) -> None:
        self.random = random = Random(f"mixed {seed}{' within' if within_delta else ''}")
        self.seed = seed
        self.within_delta = within_delta
        self.brokers = [f"b{i}" for i in range(random.randint(3, 6))]
        self.parents = {
            f"b{i}": f"b{random.randrange(max(0, i - 2), i)}" for i in range(1, len(self.brokers))
        }
        self.publishers = ["p0", "p1"]
        self.homes = {name: random.choice(self.brokers) for name in (*self.publishers, *_WISHES)}
        self.others = {name: self.further(name) for name in self.homes if random.random() < 0.6}

    def further(self, client: str) -> tuple[str, ...]:
        others = [broker for broker in self.brokers if broker != self.homes[client]]
        return tuple(self.random.sample(others, self.random.choice((1, 1, 2))))

    def scenario(self) -> Scenario:
        lines = ["Guarantee durable", "Delta 1", "DackEvery 100", f"Seed {self.seed}"]
        for broker in self.brokers:
            above = self.parents.get(broker, "none").replace("b", "s")
            lines.append(f"Site {broker.replace('b', 's')} Parent {above}")
            lines.append(f"Process {broker} is broker On {broker.replace('b', 's')} URL tcp://localhost:0/b")
        for name, broker in self.homes.items():
            kind = "publisher" if name in self.publishers else "subscriber"
            site = broker.replace("b", "s")
            lines.append(f"Process {name} is {kind} On {site} URL tcp://localhost:0/c")
        return Scenario(_text(lines), _text(list(self.script())), self.others, self.within_delta)

    def script(self) -> Iterator[str]:
        for name, wishes in _WISHES.items():
            for wish in [wishes] if isinstance(wishes, str) else wishes:
                yield f"Subscriber {name} Subscribe {wish}"
        for name in self.publishers:  # who was never heard is not missed
            yield from self.publish(name, 2, 1)
        yield from ("Wait 2000", "Drain 5000")
        course: list[tuple[int, str]] = []
        for name in self.publishers:
            for begin in (2_500, 5_000):
                interval = self.random.choice((25, 40, 50))
                course += [(begin, line) for line in self.publish(name, 2_000 // interval, interval)]
        troubles = self.troubles()
        course += troubles
        yield from (f"At {at} {line}" for at, line in sorted(course, key=lambda each: each[0]))
        yield f"Wait {max([6_000, *(at for at, _ in troubles)])}"
        for name in (*self.brokers, *self.homes):
            yield from (f"Heal {name}", f"Unfreeze {name}", f"Restart {name}")
        yield "Wait 6000"
        for name in self.publishers:
            yield from self.publish(name, 3, 20)
        yield from ("Drain 20000", "Wait 2500", "Status")

    def publish(self, name: str, count: int, interval_ms: int) -> list[str]:
        return [f"Publisher {name} Publish {count} Ontopic {each} Interval {interval_ms}" for each in TOPICS]

    def troubles(self) -> list[tuple[int, str]]:
        """From 2,500 ms on; within δ one after the other."""
        random = self.random
        found: list[tuple[int, str]] = []
        at = 2_600
        for _ in range(random.randint(2, 4)):
            if not self.within_delta:
                at = random.randint(2_500, 7_000)
            end = at + random.choice((30, 300, 800, 1_500))
            found += self.trouble(at, end)
            at = end + 2_500
        return found

    def trouble(self, at: int, end: int) -> list[tuple[int, str]]:
        random = self.random
        kind = random.choice(("crash", "crash", "freeze", "cut", "lose", "lose"))
        broker = random.choice(self.brokers)
        if kind == "crash":
            return [(at, f"Crash {broker}"), (end, f"Restart {broker}")]
        if kind == "freeze":
            return [(at, f"Freeze {broker}"), (end, f"Unfreeze {broker}")]
        if kind == "cut":
            below, above = random.choice(list(self.parents.items()))
            return [(at, f"Cut {below} {above}"), (end, f"Heal {below} {above}")]
        client = random.choice(list(self.homes))
        own = random.choice((self.homes[client], *self.others.get(client, ())))
        return [(at, f"Cut {client} {own}"), (end, f"Heal {client} {own}")]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# Running


@dataclass(frozen=True, slots=True)
class MixedRun:
    """What became of a seed."""

    scenario: Scenario
    trace: list[TraceLine]
    violations: list[Violation]

    def __str__(self) -> str:
        found = "\n".join(f"  {each.kind}: {each.message}" for each in self.violations[:20])
        return f"{found}\n{self.scenario}"


def run_mixed(
    seed: int, *, within_delta: bool, make_broker: MakeBroker = Broker, lines_max: int = 0
) -> MixedRun:
    """Draw, run and judge."""
    scenario = draw_mixed(seed, within_delta=within_delta)
    network = parse_configuration(scenario.configuration, "configuration")
    script = parse_script(scenario.script, "script", network)
    oracle = DurableOracle(lines_max=lines_max)
    result = simulate(
        network,
        script,
        wire=seed % 4 == 0,
        transcript=oracle,
        make_broker=mixed(make_broker),
        others=scenario.others,
    )
    found = [*judge(result.trace, within_delta=within_delta), *oracle.broken(releases_early=False)]
    return MixedRun(scenario, result.trace, found)


# python tests/mixed_runs.py FIRST COUNT [within]: every seed that fails, and how many did
if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    runs = (
        (seed, run_mixed(seed, within_delta="within" in sys.argv)) for seed in range(first, first + count)
    )
    failed = [sys.stdout.write(f"seed {seed}:\n{run}\n") for seed, run in runs if run.violations]
    sys.exit(f"{len(failed)} of {count} seeds failed" if failed else 0)
