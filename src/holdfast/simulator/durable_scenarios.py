"""Durable networks and their troubles, drawn from a seed as text: the scenarios of the guarantee ``durable`` [BZA].

The guarantee knows no measure of trouble: whatever breaks, however often and together, nothing accepted is lost. So
troubles come at any time and in any number: brokers crash, freeze and are cut off, clocks are set, disks run full or
fail for a while; subscribers go away, crash, come back where they were or elsewhere, and are slow; publishers go to
another broker when they lose theirs. All ends repaired, with a rest and a last round of publications.

What no script can say stands beside it (``Hazard``, ``others``). A failing run replays with its seed; without these
also with ``holdfast puppet --sim``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from holdfast.clock import MILLISECOND
from holdfast.scenarios.actor import BUFFER_ITEMS
from holdfast.simulator.world import World

__all__ = ["DurableScenario", "Hazard", "draw_durable"]

BROKERS_MAX: Final = 7
#: Everything but the last round happens within this time.
COURSE_MS: Final = 6_000
#: After the last repair: everybody is met, told, and has caught up.
SETTLE_MS: Final = 6_000
#: So long silence may take to carry everybody past the last event.
SILENCE_MS: Final = 2_500
#: Longer than brokers keep what everybody has acknowledged.
LONG_MS: Final = 12_000
#: What subscribers have room for that have hardly any.
BUFFERS: Final = (1, 1, 2, 3, 10)

_TOPICS: Final = ("orders/eu", "orders/us", "alarms/eu", "alarms/us/east")
_PATTERNS: Final = ("#", "#", "orders/#", "+/eu", "alarms/us/#", *_TOPICS)
_CONDITIONS: Final = ("qty > 4", "qty IN (1, 2, 3)", "qty = 5 OR side = 'buy'", "side = 'sell'")

_Course = list[tuple[int, str]]  #: commands, and when


@dataclass(frozen=True, slots=True)
class Hazard:
    """For a while a broker's disk has no room, or every sync fails."""

    broker: str
    kind: str  #: "full" or "failing"
    begin_ms: int
    end_ms: int

    def __str__(self) -> str:
        return f"# the disk of {self.broker} is {self.kind} from {self.begin_ms} to {self.end_ms}"

    def arrange(self, world: World) -> None:
        """Have it happen; the script begins now."""
        world.clock.at(world.now + self.begin_ms * MILLISECOND, self._begin, world)
        world.clock.at(world.now + self.end_ms * MILLISECOND, self._end, world)

    def _begin(self, world: World) -> None:
        disk = world.nodes[self.broker].disk
        if self.kind == "failing":
            disk.is_failing = True
        else:
            disk.become_full()

    def _end(self, world: World) -> None:
        disk = world.nodes[self.broker].disk
        disk.is_failing = False
        disk.have_room()


@dataclass(frozen=True, slots=True)
class DurableScenario:
    """A configuration and a script, as text, what happens beside it, and what the judges must know."""

    configuration: str
    script: str
    hazards: tuple[Hazard, ...]
    retain_ms: int | None
    clock_ms: int  #: by how much clocks are set, all together
    others: Mapping[str, tuple[str, ...]]  #: the brokers a publisher goes to when it loses its own
    lake: bool = False  #: behind every log
    buffer: int = BUFFER_ITEMS  #: so many events subscribers take, before they have consumed any

    @property
    def is_tight(self) -> bool:
        """Whether everybody falls behind all the time."""
        return self.buffer < BUFFER_ITEMS

    def __str__(self) -> str:
        beside = "".join(f"{hazard}\n" for hazard in self.hazards)
        beside += "".join(f"# {name} also goes to {' '.join(each)}\n" for name, each in self.others.items())
        beside += f"# subscribers take {self.buffer} events at a time\n" if self.is_tight else ""
        return f"# configuration\n{self.configuration}# script\n{beside}{self.script}"

    def beside(self, world: World) -> None:
        """To be called when the script begins."""
        for hazard in self.hazards:
            hazard.arrange(world)


def draw_durable(seed: int, *, faults: bool, lake: bool = False, tight: bool = False) -> DurableScenario:
    """The scenario of a seed; with or without anything breaking, beyond subscribers that come and go.

    With a ``lake`` the same, but logs give up all the earlier; if ``tight``, subscribers have hardly any room.
    """
    buffer = Random(f"durable {seed}, tight").choice(BUFFERS) if tight else BUFFER_ITEMS
    return replace(_Drawing(seed, faults, lake).scenario(), buffer=buffer)


class _Drawing:
    """One scenario in the making."""

    def __init__(self, seed: int, faults: bool, lake: bool) -> None:
        self.random = random = Random(f"durable {seed}{' faults' if faults else ''}")
        self.seed = seed
        self.faults = faults
        self.brokers = [f"b{i}" for i in range(random.randint(1, BROKERS_MAX))]
        self.parents = [
            random.randrange(max(0, i - random.choice((1, 1, 2, 4))), i) for i in range(1, len(self.brokers))
        ]
        self.publishers = [f"p{i}" for i in range(random.randint(1, 4))]
        self.subscribers = [f"u{i}" for i in range(random.randint(1, 4))]
        self.homes = {name: random.choice(self.brokers) for name in self.publishers + self.subscribers}
        self.edges = [(f"b{i + 1}", f"b{above}") for i, above in enumerate(self.parents)]
        self.edges += list(self.homes.items())
        self.is_total = random.random() < 0.3
        self.pubends = random.choice((1, 1, 2, 3))
        self.delta = random.choice((0, 0, 1, 2))
        self.retain_ms = random.choice((None, None, 1_000, 3_000))
        self.has_lake = lake
        if lake:
            self.retain_ms = (self.retain_ms or 500) // 2
        self.subscriptions: list[tuple[str, str]] = []
        self.moving = Random(f"durable {seed}, publishers")  # what else is drawn stays as it was without this
        self.others = {name: others for name in self.publishers if (others := self.further(name))}
        self.clock_ms = 0
        self.hazards: list[Hazard] = []

    def scenario(self) -> DurableScenario:
        script = self.script()
        hazards = tuple(self.hazards)
        return DurableScenario(
            self.configuration(),
            script,
            hazards,
            self.retain_ms,
            self.clock_ms,
            self.others,
            self.has_lake,
        )

    def further(self, publisher: str) -> tuple[str, ...]:
        """Other brokers a publisher may go to, if it is one that does."""
        others = [broker for broker in self.brokers if broker != self.homes[publisher]]
        return tuple(self.moving.sample(others, min(self.moving.choice((0, 1, 1, 2)), len(others))))

    # The network

    def configuration(self) -> str:
        lines = [
            f"Seed {self.seed}",
            "Guarantee durable",
            f"Ordering {'TOTAL' if self.is_total else 'FIFO'}",
            f"Pubends {self.pubends}",
            f"Delta {self.delta}",
        ]
        lines += [] if self.retain_ms is None else [f"Retain {self.retain_ms}"]
        for i, broker in enumerate(self.brokers):
            lines.append(f"Site s{i} Parent {'none' if i == 0 else f's{self.parents[i - 1]}'}")
            lines.append(f"Process {broker} is broker On s{i} URL tcp://localhost:0/{broker}")
        for kind, names in (("publisher", self.publishers), ("subscriber", self.subscribers)):
            for name in names:
                site = self.homes[name].replace("b", "s")
                lines.append(f"Process {name} is {kind} On {site} URL tcp://localhost:0/{name}")
        for a, b in self.edges:
            if self.random.random() < 0.2:
                lines.append(f"Link {a} {b} Delay {self.random.randint(0, 40)} Jitter 5")
        return _text(lines)

    # The script

    def script(self) -> str:
        random = self.random
        lines = [f"# durable, seed {self.seed}{', faults' if self.faults else ''}"]
        lines += [self.subscribe(name) for name in self.subscribers for _ in range(random.randint(1, 2))]
        course = self.traffic()
        for _ in range(random.randint(1, 5)):
            course += random.choice((self.absence, self.absence, self.absence, self.slowness))()
        if self.faults:
            for _ in range(random.randint(1, 8)):
                course += random.choice(self.kinds_of_faults())()
            course += [each for name in self.others for each in self.unsettle(name)]
        self.hazards = [each for each in self.hazards if not _starts_within(course, each)]
        lines += [f"At {at} {command}" for at, command in sorted(course, key=lambda each: each[0])]
        end = max([COURSE_MS, *(at for at, _ in course), *(each.end_ms for each in self.hazards)])
        lines += [f"Wait {end + 100}", *self.repairs(), f"Wait {SETTLE_MS}"]
        if self.moving.random() < 0.5:  # else pubends stay at rest: what was missed is had all the same
            lines += [self.publish(name, 3, 20) for name in self.publishers]
        return _text([*lines, "Drain 20000", f"Wait {SILENCE_MS}", "Status"])

    def moment(self) -> int:
        return self.random.randint(0, COURSE_MS)

    def span(self) -> tuple[int, int]:
        """From when to when something is otherwise: often too short to be noticed."""
        begin = self.random.randint(0, COURSE_MS - 1_000)
        return begin, begin + self.random.choice((1, 20, 100, 400, 700, 1_500, 3_000, 5_000))

    def subscribe(self, name: str) -> str:
        random = self.random
        pattern = random.choice(_PATTERNS)
        condition = f" WHERE {random.choice(_CONDITIONS)}" if random.random() < 0.5 else ""
        subscription = f"w{len(self.subscriptions)}"
        self.subscriptions.append((name, subscription))
        durable = " Durable" if random.random() < 0.75 else ""
        return f"Subscriber {name} Subscribe {pattern}{condition} As {subscription}{durable}"

    def publish(self, name: str, count: int, interval_ms: int) -> str:
        return (
            f"Publisher {name} Publish {count} Ontopic {self.random.choice(_TOPICS)} Interval {interval_ms}"
            " With qty=randint(1,9) side=choice(buy,sell)"
        )

    def traffic(self) -> _Course:
        """Publishers publish throughout, in several ways, and subscribers change their minds."""
        random = self.random
        course: _Course = []
        for name in self.publishers:
            for _ in range(random.randint(1, 3)):
                interval = random.choice((0, 1, 10, 50, 100))
                course.append((self.moment(), self.publish(name, random.randint(5, 80), interval)))
        for _ in range(random.randint(0, 3)):
            course.append((self.moment(), self.subscribe(random.choice(self.subscribers))))
        for name, subscription in self.subscriptions:
            if random.random() < 0.2:
                course.append((self.moment(), f"Subscriber {name} Unsubscribe {subscription}"))
        return course

    # Subscribers that come and go: what the guarantee is for

    def absence(self) -> _Course:
        random = self.random
        begin, end = self.span()
        if random.random() < 0.1:
            end += LONG_MS
        name = random.choice(self.subscribers)
        if random.random() < 0.3:
            return [(begin, f"Crash {name}"), (end, f"Restart {name}")]
        elsewhere = f" On {random.choice(self.brokers).replace('b', 's')}" if random.random() < 0.5 else ""
        return [(begin, f"Subscriber {name} Disconnect"), (end, f"Subscriber {name} Reconnect{elsewhere}")]

    def slowness(self) -> _Course:
        begin, end = self.span()
        name = self.random.choice(self.subscribers)
        return [(begin, f"Slow {name} {self.random.choice((2, 20, 100))}"), (end, f"Slow {name} 0")]

    # Faults

    def kinds_of_faults(self) -> list[Callable[[], _Course]]:
        often = [self.crash] * 4
        return [*often, self.freeze, self.cut, self.isolate, self.bad_link, self.clock, self.hazard]

    def process(self) -> str:
        others = self.publishers + self.subscribers
        return self.random.choice(self.brokers if self.random.random() < 0.8 else others)

    def crash(self) -> _Course:
        begin, end = self.span()
        name = self.process()
        troubles = [(begin, f"Crash {name}"), (end, f"Restart {name}")]
        if name in self.publishers:
            troubles.append((end + 50, self.publish(name, self.random.randint(5, 40), 20)))
        return troubles

    def freeze(self) -> _Course:
        begin, end = self.span()
        name = self.process()
        return [(begin, f"Freeze {name}"), (end, f"Unfreeze {name}")]

    def cut(self) -> _Course:
        begin, end = self.span()
        a, b = self.random.choice(self.edges)
        return [(begin, f"Cut {a} {b}"), (end, f"Heal {a} {b}")]

    def isolate(self) -> _Course:
        begin, end = self.span()
        name = self.process()
        return [(begin, f"Isolate {name}"), (end, f"Heal {name}")]

    def bad_link(self) -> _Course:
        begin, end = self.span()
        a, b = self.random.choice(self.edges)
        trouble = self.random.choice(("Loss 0.05", "Duplicate 0.05", "Reorder 0.1"))
        delay = self.random.choice((10, 10, 300))
        return [(begin, f"Link {a} {b} Delay {delay} {trouble}"), (end, f"Link {a} {b} Delay 10")]

    def clock(self) -> _Course:
        shift = self.random.choice((-4_000, -500, -20, 20, 500, 4_000))
        self.clock_ms += abs(shift)
        return [(self.moment(), f"Clock {self.random.choice(self.brokers)} Shift {shift}")]

    def hazard(self) -> _Course:
        """A full disk comes to itself; a failed one wants its broker started again. One at a time on each."""
        begin, end = self.span()
        broker = self.random.choice(self.brokers)
        if any(each.broker == broker for each in self.hazards):
            return []
        kind = self.random.choice(("full", "failing"))
        self.hazards.append(Hazard(broker, kind, begin, end))
        if kind == "full":
            return []
        return [(end + 10, f"Crash {broker}"), (end + 500, f"Restart {broker}")]

    def unsettle(self, publisher: str) -> _Course:
        """A publisher loses one broker after the other, so long that it notices, throughout."""
        course: _Course = []
        at = self.moving.randint(0, 1_500)
        for _ in range(self.moving.randint(0, 5)):
            broker = self.moving.choice((self.homes[publisher], *self.others[publisher]))
            end = at + self.moving.choice((600, 900, 1_500))
            course += [(at, f"Cut {publisher} {broker}"), (end, f"Heal {publisher} {broker}")]
            at = end + self.moving.choice((-300, 0, 300))
        return course

    def repairs(self) -> list[str]:
        """Whatever may be broken is whole again."""
        lines = [f"Link {a} {b} Delay 10" for a, b in self.edges] if self.faults else []
        for name in self.brokers + self.publishers + self.subscribers:
            lines += [f"Heal {name}", f"Unfreeze {name}"] if self.faults else []
            lines.append(f"Restart {name}")
        for name in self.subscribers:
            lines += [f"Slow {name} 0", f"Subscriber {name} Reconnect"]
        return lines


def _starts_within(course: _Course, hazard: Hazard) -> bool:
    """Whether a broker is started while its disk is not well, which is nothing it survives."""
    start = f"Restart {hazard.broker}"
    return any(command == start and hazard.begin_ms <= at <= hazard.end_ms for at, command in course)


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
