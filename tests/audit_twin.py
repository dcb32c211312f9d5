"""The audit once more, by brute force: every promise as a sentence over all lines of a trace, and no thought of time.

It knows the networks of ``audited`` and no others: nobody is away at the end, no gap is told, no confirmation is
partial, and no more is down at a time than is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any, TypeAlias

from audited import Trace, find
from holdfast.events.event import Event
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.pipeline.audit.plan import KNOWN_SECONDS
from holdfast.pipeline.audit.quiet import QUIET_SECONDS

#: Kind, node, i, subscriber, subscription, publisher, n: what a violation is about.
Found: TypeAlias = tuple[str, str, int, str, str, str, int]
Row: TypeAlias = dict[str, Any]


class Twin:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.run, self.end = trace[0], trace[-1]
        self.is_logged = self.run["guarantee"] == "durable"
        self.is_total = self.run["order"] == "TOTAL"
        self.published = find(trace, "publish")
        self.delivered = find(trace, "deliver")
        self.asking = [line for line in trace if line["kind"].rstrip("d").endswith("subscribe")]
        self.matchers: dict[str, Callable[[Subject], bool]] = {}

    # What lines mean

    def key(self, line: Row) -> tuple[str, str]:
        return line["subscriber"], line["subscription"]

    def event(self, line: Row) -> tuple[str, int]:
        return line["publisher"], line["n"]

    def first(self, event: tuple[str, int]) -> Row | None:
        lines = [line for line in self.published if self.event(line) == event]
        return min(lines, key=lambda line: (line["t"], line["node"], line["i"]), default=None)

    def matches(self, text: str, published: Row) -> bool:
        if text not in self.matchers:
            self.matchers[text] = compile_filter(parse_filter(text))
        return self.matchers[text](Subject(Event(published["topic"], published["attributes"])))

    def receipts(self, event: tuple[str, int]) -> list[Row]:
        return [line for line in find(self.trace, "accepted") if self.event(line) == event]

    def position(self, event: tuple[str, int]) -> tuple[str, int] | None:
        told = [line for line in self.receipts(event) if line["tick"]]
        told = told or [line for line in self.delivered if self.event(line) == event and line["tick"]]
        return min(((line["pubend"], line["tick"]) for line in told), default=None)

    def starts(self, key: tuple[str, str]) -> list[Row]:
        """The lines that begin something new."""
        found: list[Row] = []
        for line in sorted(
            (line for line in self.asking if self.key(line) == key), key=lambda line: line["i"]
        ):
            if line["kind"] == "subscribe":
                since = found[-1]["i"] if found else 0
                is_over = any(
                    each["kind"] == "unsubscribe" and self.key(each) == key and since < each["i"] < line["i"]
                    for each in self.asking
                )
                if not found or is_over or not line["durable"]:
                    found.append(line)
        return found

    def begin(self, line: Row) -> Row | None:
        """What a line of a subscriber belongs to."""
        return max(
            (start for start in self.starts(self.key(line)) if start["i"] < line["i"]),
            key=lambda start: start["i"],
            default=None,
        )

    def of(self, start: Row, *kinds: str) -> list[Row]:
        lines = [line for line in self.trace if line["kind"] in kinds and self.key(line) == self.key(start)]
        order = lambda line: (line["i"], line["t"], line["kind"] != "deliver", *self.tie(line))  # noqa: E731
        return sorted((line for line in lines if self.begin(line) is start), key=order)

    def tie(self, line: Row) -> tuple[Any, ...]:
        names = ("publisher", "n", "pubend", "tick") if line["kind"] == "deliver" else ("after", "upto")
        return tuple(line.get(name, 0) for name in names)

    def since(self, start: Row) -> float:
        return min((line["t"] for line in self.of(start, "subscribed")), default=inf)

    def until(self, start: Row) -> float:
        ends = [line["t"] for line in self.of(start, "unsubscribe")]
        ends += [line["t"] for line in self.starts(self.key(start)) if line["i"] > start["i"]][:1]
        if not start["durable"]:
            ending = ("crash", "disconnect") if self.is_logged else ("crash",)
            ends += [
                line["t"]
                for line in self.trace
                if line["kind"] in ending and line["nodes"] == [start["subscriber"]]
                if line["t"] >= self.since(start)
            ]
        return min(ends, default=inf)

    def all_starts(self) -> list[Row]:
        keys = sorted({self.key(line) for line in self.asking})
        return [start for key in keys for start in self.starts(key)]

    # What is wrong

    def found(self) -> set[Found]:
        return {
            *self.wrong(),
            *self.repeated(),
            *self.disorder(),
            *self.lost(),
            *self.streams(),
            *self.logs(),
            *self.unaccepted(),
            *self.no_interest(),
        }

    def row(self, kind: str, line: Row) -> Found:
        about = {"subscriber": "", "subscription": "", "publisher": "", "n": -1}
        named = {name: line.get(name, default) for name, default in about.items()}
        return (kind, line["node"], line["i"], *named.values())

    def wrong(self) -> Iterator[Found]:
        for line in self.delivered:
            start, published = self.begin(line), self.first(self.event(line))
            if (
                line["node"] != line["subscriber"]
                or published is None
                or line["t"] < published["t"]
                or line["topic"] != published["topic"]
                or (not self.is_logged and (line["pubend"], line["tick"]) != self.event(line))
                or start is None
                or not self.matches(start["filter"], published)
            ):
                yield self.row("wrong", line)
            elif any(line["i"] > ended["i"] for ended in self.of(start, "unsubscribed")):
                yield self.row("late", line)

    def repeated(self) -> Iterator[Found]:
        for line in self.published:
            if line is not self.first(self.event(line)):
                yield self.row("duplicate", line)
        for start in self.all_starts():
            lines = self.of(start, "deliver")
            for place, line in enumerate(lines):
                if any(self.event(each) == self.event(line) for each in lines[:place]):
                    yield self.row("duplicate", line)

    def disorder(self) -> Iterator[Found]:
        for start in self.all_starts():
            lines = self.of(start, "deliver")
            for place, line in enumerate(lines):
                before = [each for each in lines[:place] if each["publisher"] == line["publisher"]]
                is_new = all(each["n"] != line["n"] for each in before)
                if not self.is_logged and is_new and any(each["n"] > line["n"] for each in before):
                    yield self.row("misorder", line)

    def lost(self) -> Iterator[Found]:
        is_complete = self.end["drained"]
        for start in self.all_starts():
            got = {self.event(line) for line in self.of(start, "deliver")}
            for event in {self.event(line) for line in self.published} - got:
                line = self.first(event)
                assert line is not None
                is_on_its_way = not any(publisher == event[0] and n > event[1] for publisher, n in got)
                is_excused = is_on_its_way and (not is_complete or self.until(start) < inf)
                is_owed = (
                    self.receipts(event)
                    and self.since(start) < line["t"] < self.until(start)
                    and not is_excused
                )
                if self.matches(start["filter"], line) and (is_owed or self.is_passed(start, event)):
                    kind, node, i, *_ = self.row("lost", line)
                    yield (kind, node, i, *self.key(start), *event)

    def is_passed(self, start: Row, event: tuple[str, int]) -> bool:
        position = self.position(event)
        if not self.is_logged or position is None:
            return False
        ended = min((line["i"] for line in self.of(start, "unsubscribed")), default=inf)
        told = [line for line in self.of(start, "deliver", "silence") if line["i"] < ended]
        told = [line for line in told if line["pubend"] == position[0]]
        return any(self.after(line) < position[1] for line in told) and any(
            self.upto(line) > position[1] for line in told
        )

    def after(self, line: Row) -> int:
        return int(line["tick"] - 1 if line["kind"] == "deliver" else line["after"])

    def upto(self, line: Row) -> int:
        return int(line["tick"] if line["kind"] == "deliver" else line["upto"])

    def streams(self) -> Iterator[Found]:
        for start in self.all_starts() if self.is_logged else []:
            lines = self.of(start, "deliver", "silence")
            for place, line in enumerate(lines):
                before = [each for each in lines[:place] if each["pubend"] == line["pubend"]]
                reached = max((self.upto(each) for each in before), default=None)
                if line["kind"] == "deliver":
                    events = [self.event(each) for each in lines[:place] if each["kind"] == "deliver"]
                    is_new = self.event(line) not in events
                    if reached is not None and line["tick"] <= reached and is_new:
                        yield self.row("total-order" if self.is_total else "misorder", line)
                elif line["upto"] <= line["after"]:
                    yield self.row("unexplained", line)
                elif reached is not None and line["after"] != reached:
                    yield self.row("misorder" if line["after"] < reached else "unexplained", line)
            yield from self.lagging(start, lines)

    def lagging(self, start: Row, lines: list[Row]) -> Iterator[Found]:
        last = self.of(start, "subscribe", "subscribed", "unsubscribe", "unsubscribed")
        known = self.end["t"] - KNOWN_SECONDS
        if not self.end["drained"] or self.until(start) < inf or self.since(start) > known:
            return
        if (last or [start])[-1]["kind"] != "subscribed":
            return
        positions = {self.event(line): self.position(self.event(line)) for line in self.published}
        for pubend in sorted({position[0] for position in positions.values() if position}):
            logged = [
                (position[1], line["t"])
                for event, position in positions.items()
                if position and position[0] == pubend and (line := self.first(event)) and line["t"] <= known
            ]
            told = [self.upto(line) for line in lines if line["pubend"] == pubend]
            if logged and max(logged)[1] > self.since(start) and max(told, default=0) < max(logged)[0]:
                yield self.row("unexplained", {**last[-1], "publisher": "", "n": -1})

    def logs(self) -> Iterator[Found]:
        if not self.is_logged:
            return
        placed = "total-order" if self.is_total else "duplicate"
        for line in [*find(self.trace, "accepted"), *self.delivered]:
            position = self.position(self.event(line))
            is_judged = line["kind"] == "accepted" or self.begin(line) is not None
            is_told = is_judged and (line["tick"] or line["kind"] == "deliver")
            if position and is_told and (line["pubend"], line["tick"]) != position:
                yield self.row(placed, line)
        events = sorted({self.event(line) for line in self.published})
        positions = {event: position for event in events if (position := self.position(event))}
        for event, position in positions.items():
            published = self.first(event)
            assert published is not None
            others = [each for each in events if positions.get(each) == position and each < event]
            if others:
                yield self.row("wrong", published)
            is_elsewhere = position[0] != min(positions.values())[0]
            is_first = position == min(each for each in positions.values() if each[0] == position[0])
            if self.is_total and is_elsewhere and is_first and not others:
                yield self.row("total-order", published)
            if any(
                publisher == event[0]
                and other[0] == position[0]
                and (other, n) < (position, event[1])
                and n > event[1]
                for (publisher, n), other in positions.items()
            ):
                yield self.row("misorder", published)

    def unaccepted(self) -> Iterator[Found]:
        if self.end["drained"]:
            for event in {self.event(line) for line in self.published}:
                line = self.first(event)
                if line is not None and not self.receipts(event):
                    yield self.row("unaccepted", line)

    def no_interest(self) -> Iterator[Found]:
        changes = [line["t"] for line in self.trace if "nodes" in line or line in self.asking]
        moved = {node for line in find(self.trace, "reconnect", node="master") for node in line["nodes"]}
        for line in find(self.trace, "forward"):
            published = self.first(self.event(line))
            last = max((t for t in changes if t <= line["t"]), default=-inf)
            is_own = line["from"] == line["publisher"] and self.run["guarantee"] != "reliable"
            if published is None or is_own or line["t"] < last + QUIET_SECONDS:
                continue
            for key in {self.key(each) for each in self.asking}:
                asked = [each for each in self.asking if self.key(each) == key and each["t"] <= line["t"]]
                if asked and max(asked, key=lambda each: each["i"])["kind"] != "unsubscribed":
                    is_beyond = (key[0] in moved and self.is_logged) or self.is_beyond(line, key[0])
                    if is_beyond and self.matches(asked[-1]["filter"], published):
                        break
            else:
                yield self.row("no-interest", line)

    def is_beyond(self, line: Row, subscriber: str) -> bool:
        """Whether the way from the near end of a link to the subscriber leads over its far end."""
        tree = self.run["tree"]
        ways = [[line["from"]]]
        while ways[0][-1] != subscriber:
            here = ways.pop(0)
            ways += [
                [*here, node]
                for a, b in tree.items()
                for node, other in ((a, b), (b, a))
                if other == here[-1] and node is not None and node not in here
            ]
        return line["to"] in ways[0]
