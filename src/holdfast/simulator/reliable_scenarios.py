"""Reliable networks and their troubles, drawn from a seed as text: the scenarios of the guarantee ``reliable`` [KJ].

*Calm* troubles keep to the guarantee: they come in waves of at most δ, on different nodes and links, and between two
waves the network settles (3 dack periods and 2 probes [D.1], and the time to notice). One seed in five *rolls* instead:
one trouble after another, each as soon as whoever was down before is met again, which refill must survive [B0.16, I30].
Then nothing may be lost. *Wild* troubles do not keep to it: any number at a time, and no rest; in one seed in five a
broker crashes with everybody around it. Then nothing may be repeated, reordered, made up, or lost without a gap. All
end with everything repaired, a long rest, and a last round of publications that is owed for certain.

Everybody publishes, and subscriptions come and go, all the while. A failing run replays with ``holdfast puppet --sim``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from holdfast.simulator.swarm_scenarios import Scenario

__all__ = ["NODES_MAX", "draw_reliable", "settle_ms"]

NODES_MAX: Final = 40
PROBE_MS: Final = 200
DETECT_MS: Final = 500
#: So long a wave of calm troubles lasts at most, and a wild course in all.
WAVE_MS: Final = 4_000
WILD_MS: Final = 9_000
#: Until somebody who is back has been noticed, met and told.
ROLL_MS: Final = 1_500
#: One seed in so many is special.
SPECIAL_EVERY: Final = 5
#: After wild troubles: everybody is met, told and heard again, over any number of restarts.
WILD_SETTLE_MS: Final = 12_000

_TOPICS: Final = ("orders/eu", "orders/us", "alarms/eu", "alarms/us/east")
_PATTERNS: Final = ("#", "#", "orders/#", "+/eu", "alarms/us/#", *_TOPICS)
_CONDITIONS: Final = ("qty > 4", "qty IN (1, 2, 3)", "qty = 5 OR side = 'buy'", "side = 'sell'")


def settle_ms(dack_ms: int) -> int:
    """How long a network within the guarantee needs to be at rest."""
    return 3 * dack_ms + 2 * PROBE_MS + 2 * DETECT_MS


def draw_reliable(
    seed: int, *, wild: bool, acknowledge: str | None = None, routing: str | None = None
) -> Scenario:
    """The scenario of a seed; with a setting of one's own where two are to be compared [I36]."""
    drawing = _Drawing(seed, wild)
    script = drawing.script()
    return Scenario(drawing.configuration(acknowledge, routing), script)


class _Drawing:
    """One scenario in the making."""

    def __init__(self, seed: int, wild: bool) -> None:
        self.random = random = Random(f"reliable {seed}{' wild' if wild else ''}")
        self.seed = seed
        self.wild = wild
        self.is_special = seed % SPECIAL_EVERY == 3
        self.delta = random.choice((0, 1, 1, 1, 2, 2, 3))
        nodes = random.choice((random.randint(4, 10), random.randint(6, 16), random.randint(10, NODES_MAX)))
        clients = max(2, min(12, nodes // 3))
        self.brokers = [f"b{i}" for i in range(max(1, nodes - clients))]
        # Long ways matter more than wide trees: mostly the last few are built on.
        self.parents = [
            random.randrange(max(0, i - random.choice((1, 1, 1, 2, 4))), i)
            for i in range(1, len(self.brokers))
        ]
        publishers = random.randint(1, max(1, clients // 2))
        self.publishers = [f"p{i}" for i in range(publishers)]
        self.subscribers = [f"u{i}" for i in range(clients - publishers)]
        self.homes = {name: random.choice(self.brokers) for name in self.publishers + self.subscribers}
        self.edges = [(f"b{i + 1}", f"b{above}") for i, above in enumerate(self.parents)]
        self.edges += list(self.homes.items())
        self.dack_ms = random.choice((200, 500, 1000))
        self.acknowledge = random.choice(("dack", "dack", "dack", "conf"))
        self.routing = random.choice(("filter", "filter", "filter", "flooding"))
        self.refill = not wild or random.random() < 0.8
        self.has_slow_links = random.random() < 0.4
        self.links = [line for edge in self.edges for line in self.link(edge)]
        self.subscriptions: list[tuple[str, str]] = []
        self.touched: set[str] = set()  #: what the present wave has broken: nodes, and the ends of links

    # The network

    def link(self, edge: tuple[str, str]) -> list[str]:
        if self.random.random() < 0.8:
            return []
        jitter = self.random.choice(("", "", " Jitter 5", " Jitter 20"))
        return [f"Link {edge[0]} {edge[1]} Delay {self.random.randint(0, 40)}{jitter}"]

    def configuration(self, acknowledge: str | None, routing: str | None) -> str:
        lines = [
            f"Seed {self.seed}",
            "Guarantee reliable",
            f"Delta {self.delta}",
            f"RoutingPolicy {routing or self.routing}",
            f"Acknowledge {acknowledge or self.acknowledge}",
            f"Refill {'on' if self.refill else 'off'}",
            f"DackEvery {self.dack_ms}",
            "LoggingLevel full",
        ]
        for i, broker in enumerate(self.brokers):
            lines.append(f"Site s{i} Parent {'none' if i == 0 else f's{self.parents[i - 1]}'}")
            lines.append(f"Process {broker} is broker On s{i} URL tcp://localhost:0/{broker}")
        for kind, names in (("publisher", self.publishers), ("subscriber", self.subscribers)):
            for name in names:
                site = self.homes[name].replace("b", "s")
                lines.append(f"Process {name} is {kind} On {site} URL tcp://localhost:0/{name}")
        return _text(lines + self.links)

    # The script

    def script(self) -> str:
        random = self.random
        lines = [f"# reliable, seed {self.seed}, {'wild' if self.wild else 'calm'}"]
        lines += [self.subscribe(name) for name in self.subscribers if random.random() < 0.9]
        lines += [self.subscribe(random.choice(self.subscribers)) for _ in range(random.randint(0, 3))]
        troubles, end = self.wild_course() if self.wild else self.calm_course()
        lines += [f"At {at} {command}" for at, command in sorted(troubles, key=lambda each: each[0])]
        lines += [f"At {at} {command}" for at, command in self.traffic(end)]
        lines += [
            f"Wait {end}",
            *self.repairs(),
            f"Wait {WILD_SETTLE_MS if self.wild else settle_ms(self.dack_ms)}",
        ]
        lines += [self.publish(name, 3, 20) for name in self.publishers]
        return _text([*lines, "Drain 20000", f"Wait {3 * self.dack_ms + DETECT_MS}", "Status"])

    def filter(self) -> str:
        pattern = self.random.choice(_PATTERNS)
        return pattern if self.random.random() < 0.5 else f"{pattern} WHERE {self.random.choice(_CONDITIONS)}"

    def subscribe(self, name: str) -> str:
        subscription = f"w{len(self.subscriptions)}"
        self.subscriptions.append((name, subscription))
        return f"Subscriber {name} Subscribe {self.filter()} As {subscription}"

    def publish(self, name: str, count: int, interval_ms: int) -> str:
        topic = self.random.choice(_TOPICS)
        return (
            f"Publisher {name} Publish {count} Ontopic {topic} Interval {interval_ms}"
            " With qty=randint(1,9) side=choice(buy,sell)"
        )

    def traffic(self, end: int) -> Iterator[tuple[int, str]]:
        """Publishers publish throughout, a few times anew, and subscribers change their minds."""
        random = self.random
        share = max(1, len(self.publishers))
        for name in self.publishers:
            for _ in range(random.randint(1, 3)):
                begin = random.randint(0, end // 2)
                interval = random.choice((20, 50, 100)) * share
                count = min(random.randint(10, 150), max(1, (end - begin) // interval))
                yield begin, self.publish(name, count, interval)
        for _ in range(random.randint(0, 5)):
            yield random.randint(0, end), self.subscribe(random.choice(self.subscribers))
        for name, subscription in self.subscriptions:
            if random.random() < 0.25:
                yield random.randint(0, end), f"Subscriber {name} Unsubscribe {subscription}"

    # Troubles: each gives its commands with their times, and when it is over

    def calm_course(self) -> tuple[list[tuple[int, str]], int]:
        """Waves of at most δ troubles, each followed by a rest."""
        if self.is_special and self.delta:
            return self.rolling_course()
        random = self.random
        found: list[tuple[int, str]] = []
        begin = random.randint(100, 600)
        for _ in range(random.randint(1, 3)):
            over = begin
            self.touched.clear()
            for _ in range(random.randint(min(1, self.delta), self.delta)):
                trouble, end = self.trouble(begin + random.randint(0, WAVE_MS // 3))
                found += trouble
                over = max(over, end)
            if self.has_slow_links:
                trouble, end = self.slow_link(begin)
                found += trouble
                over = max(over, end)
            begin = over + settle_ms(self.dack_ms) + random.randint(0, 500)
        return found, begin

    def rolling_course(self) -> tuple[list[tuple[int, str]], int]:
        """One trouble after another, and hardly any rest."""
        found: list[tuple[int, str]] = []
        begin = self.random.randint(100, 600)
        for _ in range(self.random.randint(3, 8)):
            self.touched.clear()
            trouble, end = self.trouble(begin)
            found += trouble
            begin = end + ROLL_MS + self.random.randint(0, 500)
        return found, begin + settle_ms(self.dack_ms)

    def wild_course(self) -> tuple[list[tuple[int, str]], int]:
        """Any number of troubles at any time."""
        found: list[tuple[int, str]] = []
        over = WILD_MS
        for _ in range(self.random.randint(1, 2 * self.delta + 5)):
            self.touched.clear()
            begin = self.random.randint(0, WILD_MS - 1_000)
            for _ in range(self.random.choice((1, 1, 2, 3))):  # some things happen together
                kind = self.random.choice(
                    (self.trouble, self.trouble, self.trouble, self.bad_link, self.slow_link)
                )
                trouble, end = kind(begin)
                found += trouble
                over = max(over, end)
        if self.is_special:
            trouble, end = self.cluster(self.random.randint(0, WILD_MS - 1_000))
            found += trouble
            over = max(over, end)
        return found, over + 100

    def cluster(self, begin: int) -> tuple[list[tuple[int, str]], int]:
        """A broker and everybody around it."""
        center = self.random.choice(self.brokers)
        names = {center: None, **{a if b == center else b: None for a, b in self.edges if center in (a, b)}}
        ends = {name: begin + self.random.randint(1, 3_000) for name in names}
        crashes = [(begin + self.random.randint(0, 300), f"Crash {name}") for name in names]
        return crashes + [(end + 300, f"Restart {name}") for name, end in ends.items()], max(
            ends.values()
        ) + 300

    def trouble(self, begin: int) -> tuple[list[tuple[int, str]], int]:
        random = self.random
        length = random.choice(
            (random.randint(1, 300), random.randint(300, 1200), random.randint(700, WAVE_MS // 2))
        )
        end = begin + length
        kinds: list[Callable[[int, int], list[tuple[int, str]]]]
        kinds = [self.crash, self.crash, self.crash, self.freeze, self.cut, self.isolate, self.disconnect]
        return random.choice(kinds)(begin, end), end

    def node(self) -> str | None:
        """A process nothing has happened to in this wave; mostly a broker."""
        clients = self.publishers + self.subscribers
        name = self.random.choice(self.brokers if self.random.random() < 0.75 else clients)
        if name in self.touched:
            return None
        self.touched.add(name)
        return name

    def crash(self, begin: int, end: int) -> list[tuple[int, str]]:
        if (name := self.node()) is None:
            return []
        troubles = [(begin, f"Crash {name}"), (end, f"Restart {name}")]
        if name in self.publishers:
            troubles.append((end + 50, self.publish(name, self.random.randint(5, 40), 50)))
        return troubles

    def freeze(self, begin: int, end: int) -> list[tuple[int, str]]:
        if (name := self.node()) is None:
            return []
        return [(begin, f"Freeze {name}"), (end, f"Unfreeze {name}")]

    def isolate(self, begin: int, end: int) -> list[tuple[int, str]]:
        if (name := self.node()) is None:
            return []
        return [(begin, f"Isolate {name}"), (end, f"Heal {name}")]

    def cut(self, begin: int, end: int) -> list[tuple[int, str]]:
        a, b = self.random.choice(self.edges)
        if a in self.touched or b in self.touched:
            return []
        self.touched |= {a, b}
        return [(begin, f"Cut {a} {b}"), (end, f"Heal {a} {b}")]

    def disconnect(self, begin: int, end: int) -> list[tuple[int, str]]:
        name = self.random.choice(self.subscribers)
        if name in self.touched:
            return []
        self.touched.add(name)
        return [(begin, f"Subscriber {name} Disconnect"), (end, f"Subscriber {name} Reconnect")]

    def slow_link(self, begin: int) -> tuple[list[tuple[int, str]], int]:
        a, b = self.random.choice(self.edges)
        end = begin + self.random.randint(100, 2_000)
        delay = self.random.choice((60, 150, 400))
        return [(begin, f"Link {a} {b} Delay {delay}"), (end, f"Link {a} {b} Delay 10")], end

    def bad_link(self, begin: int) -> tuple[list[tuple[int, str]], int]:
        a, b = self.random.choice(self.edges)
        end = begin + self.random.randint(100, 2_000)
        trouble = self.random.choice(("Loss 0.05", "Duplicate 0.05", "Reorder 0.1"))
        return [(begin, f"Link {a} {b} Delay 10 {trouble}"), (end, f"Link {a} {b} Delay 10")], end

    def repairs(self) -> list[str]:
        """Whatever may be broken is whole again."""
        if not self.wild:
            return []
        lines = [f"Link {a} {b} Delay 10" for a, b in self.edges]
        for name in self.brokers + self.publishers + self.subscribers:
            lines += [f"Heal {name}", f"Unfreeze {name}", f"Restart {name}"]
        return lines + [f"Subscriber {name} Reconnect" for name in self.subscribers]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
