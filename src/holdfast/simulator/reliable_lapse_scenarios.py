"""Reliable networks that lose something, drawn from a seed as text: more brokers forget together than δ allows.

In one half neighbourhoods crash, more than δ of them in a row as often as not, while events pass. In the other half the
brokers on one side of a cut crash, after they have taken over what cannot pass it: whoever had sent it to them has
forgotten it by then, so it is lost more often than not where the row is long enough [B0.16]. Whatever is lost must be
announced; random troubles rarely lose anything, since whoever has passed something on keeps it for a while.

Everybody subscribes at the beginning, and all is whole again ``REST_MS`` before the end.
"""

from __future__ import annotations

from random import Random
from typing import Final

from holdfast.simulator.swarm_scenarios import Scenario

__all__ = ["REST_MS", "draw_lapsing"]

#: All troubles are over after so long, and then everybody is met, told and heard again.
COURSE_MS: Final = 8_000
REST_MS: Final = 4_000

_FILTERS: Final = ("#", "a", "a WHERE qty > 5", "b WHERE qty < 3")


def draw_lapsing(seed: int) -> Scenario:
    """The scenario of a seed."""
    draw = Random(f"lapses {seed}")
    delta = draw.choice((0, 0, 1, 1, 2, 3))
    brokers = draw.randint(delta + 3, delta + 7)
    parents = [0, *(max(0, i - draw.choice((1, 1, 1, 2))) for i in range(1, brokers))]
    publishers, subscribers = draw.randint(1, 3), draw.randint(1, 3)
    homes = {f"p{i}": draw.randrange(brokers) for i in range(publishers)}
    homes |= {f"u{i}": draw.randrange(brokers) for i in range(subscribers)}
    if draw.random() < 0.5:
        below = draw.randint(delta + 2, brokers - 1)
        homes["p0"], homes["u0"] = draw.randrange(below - delta - 1), below
        troubles = _held_up(draw, below, parents)
    else:
        troubles = _on_the_way(draw, delta, parents)
    configuration = [
        f"Seed {seed}",
        "Guarantee reliable",
        f"Delta {delta}",
        f"DackEvery {draw.choice((200, 500, 1000))}",
        f"RoutingPolicy {draw.choice(('filter', 'flooding'))}",
        "LoggingLevel full",
        *(f"Site s{i} Parent {f's{parents[i]}' if i else 'none'}" for i in range(brokers)),
        *(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b" for i in range(brokers)),
        *(_client(name, home) for name, home in homes.items()),
    ]
    filters = [draw.choice(_FILTERS) for _ in range(subscribers)]
    script = [f"Subscriber u{i} Subscribe {filter} As w{i}" for i, filter in enumerate(filters)]
    script += troubles
    for i in range(publishers):
        topic = draw.choice(filters)[0].replace("#", "a")
        count, interval = draw.choice((10, 200, 700)), draw.choice((5, 10))
        script.append(f"At {draw.randint(100, 1500)} {_publish(f'p{i}', count, topic, interval)}")
    script.append(f"Wait {COURSE_MS + REST_MS}")
    if draw.random() < 0.5:
        script.append(_publish("p0", 3, "a", 5))
    script += ["Drain 60000", "Wait 3500", "Status"]
    return Scenario(_text(configuration), _text(script))


def _client(name: str, home: int) -> str:
    kind = "publisher" if name.startswith("p") else "subscriber"
    return f"Process {name} is {kind} On s{home} URL tcp://localhost:0/c"


def _publish(name: str, count: int, topic: str, interval_ms: int) -> str:
    return f"Publisher {name} Publish {count} Ontopic {topic} Interval {interval_ms} With qty=randint(1,9)"


def _on_the_way(draw: Random, delta: int, parents: list[int]) -> list[str]:
    """Neighbourhoods crash; nobody again before it has been up for a while. A link may be cut besides."""
    script: list[str] = []
    brokers = len(parents)
    down: dict[int, list[tuple[int, int]]] = {}
    for _ in range(draw.randint(1, 3)):
        middle, at = draw.randrange(brokers), draw.randint(400, 5000)
        for i in range(max(0, middle - delta - 1), min(brokers, middle + delta + 2)):
            since = at + draw.randint(-30, 200)
            until = since + draw.randint(5, 1500)
            is_up = not any(start < until + 800 and since < end + 800 for start, end in down.get(i, ()))
            if is_up and draw.random() < 0.75:
                down.setdefault(i, []).append((since, until))
                script += [f"At {since} Crash b{i}", f"At {until} Restart b{i}"]
    if draw.random() < 0.4:
        i, at = draw.randrange(1, brokers), draw.randint(300, 5000)
        script += _cut(i, parents[i], at, at + draw.randint(100, 2500))
    return script


def _held_up(draw: Random, below: int, parents: list[int]) -> list[str]:
    """The link above a broker is cut; later nearly everybody above it crashes; later still it heals."""
    beyond = {below}
    for i in range(below + 1, len(parents)):
        if parents[i] in beyond:
            beyond.add(i)
    at = draw.randint(100, 1500)
    crash_at = over = at + draw.randint(700, 3000)
    script: list[str] = []
    for i in range(len(parents)):
        if i not in beyond and draw.random() < 0.95:
            since = crash_at + draw.randint(0, 100)
            until = since + draw.randint(100, 1500)
            over = max(over, until)
            script += [f"At {since} Crash b{i}", f"At {until} Restart b{i}"]
    return script + _cut(below, parents[below], at, over + draw.randint(0, 1500))


def _cut(i: int, j: int, begin: int, end: int) -> list[str]:
    return [f"At {begin} Cut b{i} b{j}", f"At {end} Heal b{i} b{j}"]


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
