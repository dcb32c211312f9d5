"""Traces written by hand for the checkers: one good run, and the lines to break it with."""

from __future__ import annotations

from typing import Any

from holdfast.scenarios.trace import TraceLine, encode_line, merge, read_trace

#: p publishes at b0; s1 hangs on b1, s2 on b2, both below b0.
TREE = {"b0": None, "b1": "b0", "b2": "b0", "p": "b0", "s1": "b1", "s2": "b2"}


class Lines:
    """Lines as they are written, node by node; ``trace`` merges them."""

    def __init__(self, **run: Any) -> None:
        self.lines: list[TraceLine] = []
        self._count: dict[str, int] = {}
        settings = {"guarantee": "best-effort", "order": "FIFO", "delta": 0, "routing": "filter", "seed": 0}
        self.add(0, "master", "run", **{**settings, "world": "test", "tree": TREE, **run})

    def add(self, t: float, node: str, kind: str, **fields: Any) -> TraceLine:
        """One line; ``from_`` stands for from."""
        self._count[node] = self._count.get(node, 0) + 1
        named = {name.rstrip("_"): value for name, value in fields.items()}
        (line,) = read_trace([encode_line(t, self._count[node], node, kind, named)])
        self.lines.append(line)
        return line

    def publish(self, t: float, n: int, topic: str = "a", accepted: bool = True, **attributes: Any) -> None:
        self.add(t, "p", "publish", publisher="p", n=n, topic=topic, attributes=attributes)
        if accepted:
            self.add(t + 0.01, "p", "accepted", publisher="p", n=n, pubend="p", tick=n)

    def ask(
        self,
        t: float,
        kind: str,
        subscriber: str = "s1",
        filter: str = "a",
        name: str = "all",
        durable: bool = False,
    ) -> None:
        asked: dict[str, Any] = {"subscription": name, "filter": filter, "durable": durable}
        partial: dict[str, Any] = {"partial": []} if kind == "subscribed" else {}
        self.add(t, subscriber, kind, subscriber=subscriber, **asked, **partial)

    def subscribe(
        self, t: float, subscriber: str = "s1", filter: str = "a", name: str = "all", durable: bool = False
    ) -> None:
        self.ask(t, "subscribe", subscriber, filter, name, durable)
        self.ask(t + 0.05, "subscribed", subscriber, filter, name, durable)

    def unsubscribe(self, t: float, subscriber: str = "s1", filter: str = "a", name: str = "all") -> None:
        self.ask(t, "unsubscribe", subscriber, filter, name)
        self.ask(t + 0.05, "unsubscribed", subscriber, filter, name)

    def deliver(
        self, t: float, n: int, topic: str = "a", subscriber: str = "s1", name: str = "all"
    ) -> TraceLine:
        asked = {"subscriber": subscriber, "subscription": name}
        event = {"publisher": "p", "n": n, "topic": topic, "pubend": "p", "tick": n, "tags": []}
        return self.add(t, subscriber, "deliver", **asked, **event)

    def forward(self, t: float, n: int, sender: str, receiver: str) -> TraceLine:
        return self.add(t, sender, "forward", from_=sender, to=receiver, publisher="p", n=n, again=False)

    def fault(self, t: float, kind: str, *nodes: str) -> None:
        self.add(t, "master", kind, nodes=list(nodes))

    def trace(self, t: float = 100, drained: bool = True) -> list[TraceLine]:
        """All lines, and the end."""
        self.add(t, "master", "end", drained=drained)
        return merge([self.lines])


def good_run(**run: Any) -> Lines:
    """s1 asks for a, s2 for a WHERE x > 1; three events; s1 leaves; one more event; nothing is wrong."""
    lines = Lines(**run)
    lines.subscribe(1)
    lines.subscribe(1, "s2", "/a WHERE x > 1", "dear")
    for n, x in enumerate((1, 2, 3), start=1):
        t = 3 + n
        lines.publish(t, n, x=x)
        lines.forward(t + 0.01, n, "p", "b0")
        lines.forward(t + 0.01, n, "b0", "b1")
        lines.forward(t + 0.02, n, "b1", "s1")
        lines.deliver(t + 0.03, n)
        if x > 1:
            lines.forward(t + 0.01, n, "b0", "b2")
            lines.forward(t + 0.02, n, "b2", "s2")
            lines.deliver(t + 0.03, n, subscriber="s2", name="dear")
    lines.unsubscribe(8)
    lines.publish(10, 4, x=0)
    return lines
