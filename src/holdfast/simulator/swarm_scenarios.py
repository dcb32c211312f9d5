"""Scenarios drawn from a seed, as text: what fails can be saved and replayed with ``holdfast puppet --sim``.

A drawn network is a random tree of brokers with publishers and subscribers anywhere on it. A drawn script
subscribes and unsubscribes, publishes, and in the second mode breaks things: crashes, freezes, cuts, slow and
bad links, disconnections. It then heals everything it broke, waits ``SETTLE_MS``, and publishes a last round:
what is owed of that round is owed for certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["SETTLE_MS", "Scenario", "draw_scenario"]

BROKERS_MAX: Final = 12
PUBLISHERS_MAX: Final = 3
SUBSCRIBERS_MAX: Final = 6
FAULTS_MAX: Final = 8
#: Everything but the last round happens within this time.
COURSE_MS: Final = 5_000
#: After the last repair: until the broken is noticed, dialled again, told the tables, and lost clients are forgotten.
SETTLE_MS: Final = 9_000

_TOPICS: Final = ("orders/eu", "orders/us", "orders", "alarms/eu", "alarms/us/east")
_PATTERNS: Final = ("#", "orders/#", "+/eu", "alarms/+/east", "alarms/us/#", *_TOPICS)
_CONDITIONS: Final = (
    "price > 100",
    "price BETWEEN 50 AND 120 AND qty >= 3",
    "qty = 5",
    "sym = 'IBM' OR qty IN (1, 2)",
    "sym LIKE 'S%' AND NOT price <= 20",
    "side IS NULL",
    "side = 'buy' AND price * qty > 300",
    "XPATH '/event/items/item[@quantity > 5]'",
    "XPATH '//item[@name=\"rope\"]/price'",
)
_ATTRIBUTES: Final = (
    "price=uniform(1,200)",
    "qty=randint(1,9)",
    "sym=choice(IBM,SAP,SUN)",
    "side=choice(buy,sell)",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A configuration and a script, as text."""

    configuration: str
    script: str

    def __str__(self) -> str:
        return f"# configuration\n{self.configuration}# script\n{self.script}"


def draw_scenario(seed: int, *, faults: bool) -> Scenario:
    """The scenario of a seed; with or without anything breaking."""
    drawing = _Drawing(seed, faults)
    return Scenario(drawing.configuration(), drawing.script())


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class _Drawing:
    """One scenario in the making."""

    def __init__(self, seed: int, faults: bool) -> None:
        self.random = Random(f"swarm {seed}{' faults' if faults else ''}")
        self.seed = seed
        self.faults = faults
        count = self.random.randint
        self.brokers = [f"b{i}" for i in range(count(1, BROKERS_MAX))]
        self.parents = [self.random.randrange(i) for i in range(1, len(self.brokers))]
        self.publishers = [f"p{i}" for i in range(count(1, PUBLISHERS_MAX))]
        self.subscribers = [f"u{i}" for i in range(count(1, SUBSCRIBERS_MAX))]
        self.homes = {name: self.random.choice(self.brokers) for name in self.publishers + self.subscribers}
        self.edges = [(f"b{i + 1}", f"b{above}") for i, above in enumerate(self.parents)]
        self.edges += list(self.homes.items())
        self.subscriptions: list[tuple[str, str]] = []

    # The network

    def configuration(self) -> str:
        choice = self.random.choice
        lines = [
            f"Seed {self.seed}",
            f"RoutingPolicy {choice(['filter', 'filter', 'filter', 'flooding'])}",
            f"Ordering {choice(['NO', 'FIFO'])}",
            "LoggingLevel full",
        ]
        for i, broker in enumerate(self.brokers):
            lines.append(f"Site s{i} Parent {'none' if i == 0 else f's{self.parents[i - 1]}'}")
            lines.append(f"Process {broker} is broker On s{i} URL tcp://localhost:0/{broker}")
        for kind, names in (("publisher", self.publishers), ("subscriber", self.subscribers)):
            for name in names:
                site = self.homes[name].replace("b", "s")
                lines.append(f"Process {name} is {kind} On {site} URL tcp://localhost:0/{name}")
        for a, b in self.edges:
            if self.random.random() < 0.3:
                lines.append(
                    f"Link {a} {b} Delay {self.random.randint(0, 40)} Jitter {choice([0, 0, 5, 20])}"
                )
        return _text(lines)

    # The script

    def script(self) -> str:
        random = self.random
        lines = [f"# seed {self.seed}{', faults' if self.faults else ''}"]
        lines += [self.subscribe() for _ in range(random.randint(1, 6))]
        lines += [self.publish() for _ in range(random.randint(1, 4))]
        lines += self.churn()
        if self.faults:
            for _ in range(random.randint(1, FAULTS_MAX)):
                lines += random.choice(self.kinds_of_faults())()
        lines.append(f"Wait {COURSE_MS}")
        lines += self.repairs()
        lines += ["Drain 10000", f"Wait {SETTLE_MS}"]
        lines += [self.publish() for _ in range(random.randint(1, 2))]
        return _text([*lines, "Drain 20000", "Status"])

    def moment(self, until: int = COURSE_MS) -> int:
        return self.random.randint(0, until)

    def filter(self) -> str:
        pattern = self.random.choice(_PATTERNS)
        return pattern if self.random.random() < 0.4 else f"{pattern} WHERE {self.random.choice(_CONDITIONS)}"

    def subscribe(self) -> str:
        subscriber = self.random.choice(self.subscribers)
        name = f"w{len(self.subscriptions)}"
        self.subscriptions.append((subscriber, name))
        return f"Subscriber {subscriber} Subscribe {self.filter()} As {name}"

    def publish(self) -> str:
        random = self.random
        interval = random.choice([0, 1, 5, 20, 50])
        drawn = [attribute for attribute in _ATTRIBUTES if random.random() < 0.7]
        payload = random.choice(["", " Payload 40", " Payload xml"])
        return (
            f"Publisher {random.choice(self.publishers)} Publish {random.randint(5, 120)}"
            f" Ontopic {random.choice(_TOPICS)} Interval {interval}"
            f"{' With ' + ' '.join(drawn) if drawn else ''}{payload}"
        )

    def churn(self) -> list[str]:
        """Publishing, subscribing and unsubscribing while the rest goes on."""
        random = self.random
        lines = [f"At {self.moment()} {self.publish()}" for _ in range(random.randint(0, 4))]
        ends = [pair for pair in self.subscriptions if random.random() < 0.3]
        for _ in range(random.randint(0, 4)):
            lines.append(f"At {self.moment()} {self.subscribe()}")
            if random.random() < 0.3:
                ends.append(self.subscriptions[-1])
        lines += [f"At {self.moment()} Subscriber {who} Unsubscribe {name}" for who, name in ends]
        if random.random() < 0.2:
            lines.append(
                f"At {self.moment()} Slow {random.choice(self.subscribers)} {random.choice([0, 2, 20])}"
            )
        return lines

    # Faults: each is a few lines, ``At`` its time

    def kinds_of_faults(self) -> list[Callable[[], list[str]]]:
        return [self.crash, self.crash, self.freeze, self.cut, self.isolate, self.bad_link, self.disconnect]

    def span(self) -> tuple[int, int]:
        """From when to when something is broken: often too short to be noticed."""
        begin = self.moment(COURSE_MS - 1000)
        return begin, begin + self.random.choice([1, 20, 100, 400, 700, 1500, 3000])

    def process(self) -> str:
        clients = self.publishers + self.subscribers
        return self.random.choice(self.brokers if self.random.random() < 0.7 else clients)

    def crash(self) -> list[str]:
        begin, end = self.span()
        name = self.process()
        return [f"At {begin} Crash {name}", f"At {end} Restart {name}"]

    def freeze(self) -> list[str]:
        begin, end = self.span()
        name = self.process()
        return [f"At {begin} Freeze {name}", f"At {end} Unfreeze {name}"]

    def cut(self) -> list[str]:
        begin, end = self.span()
        a, b = self.random.choice(self.edges)
        return [f"At {begin} Cut {a} {b}", f"At {end} Heal {a} {b}"]

    def isolate(self) -> list[str]:
        begin, end = self.span()
        name = self.process()
        return [f"At {begin} Isolate {name}", f"At {end} Heal {name}"]

    def bad_link(self) -> list[str]:
        begin, end = self.span()
        a, b = self.random.choice(self.edges)
        trouble = self.random.choice(
            ["Loss 0.05", "Duplicate 0.05", "Reorder 0.1", "Loss 0.02 Duplicate 0.02 Reorder 0.02"]
        )
        delay = self.random.choice([10, 10, 300, 1200])
        return [f"At {begin} Link {a} {b} Delay {delay} {trouble}", f"At {end} Link {a} {b} Delay 10"]

    def disconnect(self) -> list[str]:
        begin, end = self.span()
        name = self.random.choice(self.subscribers)
        return [f"At {begin} Subscriber {name} Disconnect", f"At {end} Subscriber {name} Reconnect"]

    def repairs(self) -> list[str]:
        """Whatever may be broken is whole again."""
        if not self.faults:
            return []
        lines = [f"Link {a} {b} Delay 10" for a, b in self.edges]
        for name in self.brokers + self.publishers + self.subscribers:
            lines += [f"Heal {name}", f"Unfreeze {name}", f"Restart {name}"]
        return lines + [f"Subscriber {name} Reconnect" for name in self.subscribers]
