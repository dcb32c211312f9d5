"""Networks in which brokers next to each other crash together, more of them than δ as often as not."""

from __future__ import annotations

from random import Random

__all__ = ["draw_lapsing"]

FILTERS = ("#", "a", "a WHERE qty > 5", "b WHERE qty < 3")


def draw_lapsing(seed: int) -> tuple[str, str]:
    """A configuration and a script."""
    draw = Random(seed)
    delta = draw.choice((0, 0, 1, 1, 2, 3))
    brokers = draw.randint(delta + 2, delta + 7)
    parents = [0, *(max(0, i - draw.choice((1, 1, 1, 2))) for i in range(1, brokers))]
    publishers, subscribers = draw.randint(1, 3), draw.randint(1, 3)
    configuration = [
        "Guarantee reliable",
        f"Delta {delta}",
        f"Seed {seed}",
        f"DackEvery {draw.choice((200, 500, 1000))}",
        f"RoutingPolicy {draw.choice(('filter', 'flooding'))}",
        *(f"Site s{i} Parent {f's{parents[i]}' if i else 'none'}" for i in range(brokers)),
        *(f"Process b{i} is broker On s{i} URL tcp://localhost:0/b" for i in range(brokers)),
        *(_client(f"p{i}", "publisher", draw.randrange(brokers)) for i in range(publishers)),
        *(_client(f"u{i}", "subscriber", draw.randrange(brokers)) for i in range(subscribers)),
    ]
    script = [f"Subscriber u{i} Subscribe {draw.choice(FILTERS)} As w{i}" for i in range(subscribers)]
    for i in range(publishers):
        count, topic, interval = draw.choice((10, 200, 700)), draw.choice("ab"), draw.choice((5, 10))
        what = f"Publish {count} Ontopic {topic} Interval {interval} With qty=randint(1,9)"
        script.append(f"At {draw.randint(100, 1500)} Publisher p{i} {what}")
    script += _crashes(draw, delta, brokers)
    if draw.random() < 0.4:
        i, at = draw.randrange(1, brokers), draw.randint(300, 5000)
        ends = f"b{i} b{parents[i]}"
        script += [f"At {at} Cut {ends}", f"At {at + draw.randint(100, 2500)} Heal {ends}"]
    script.append("Wait 12000")
    if draw.random() < 0.5:
        script.append("Publisher p0 Publish 3 Ontopic a Interval 5 With qty=randint(1,9)")
    script.append("Drain 60000")
    return "".join(f"{line}\n" for line in configuration), "".join(f"{line}\n" for line in script)


def _client(name: str, kind: str, site: int) -> str:
    return f"Process {name} is {kind} On s{site} URL tcp://localhost:0/c"


def _crashes(draw: Random, delta: int, brokers: int) -> list[str]:
    """Of neighbourhoods; nobody crashes again before it has been up for a while."""
    script: list[str] = []
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
    return script
