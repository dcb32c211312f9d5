"""Tenures: from when to when a subscription is owed something, and which deliveries are judged together.

A tenure begins with ``subscribe``. One that is not durable ends with its subscriber's life, and what is asked for again
is another one; a durable one goes on through all lives, moves and absences of its subscriber, until it is ended.
Something is owed from ``subscribed`` on, to ``unsubscribe``; or to where the subscriber went away, and not at all if it
was never confirmed [contracts.md §5].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

from holdfast.pipeline.audit.line import Line
from holdfast.pipeline.audit.troubles import Trouble, away_since

__all__ = ["Key", "Tenure", "tenures_of"]

Key: TypeAlias = tuple[str, str]  #: subscriber and subscription
FOR_EVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Tenure:
    """One subscription for as long as it is the same."""

    number: int  #: within its run
    key: Key
    filter: str
    durable: bool
    begin_i: int  #: of ``subscribe``; what the subscriber wrote behind that line,
    end_i: int  #: and before this one, is of this tenure
    ended_i: int  #: of ``unsubscribed``
    since: float  #: of ``subscribed``; infinity if it was never confirmed
    until: float  #: infinity if it stood at the end
    lines: tuple[Line, ...]  #: of asking for it
    upgrades: tuple[Line, ...]

    @property
    def is_partial(self) -> bool:
        """Whether it was confirmed before everybody knew it."""
        return any(line.partial for line in self.lines)


def tenures_of(
    asking: Mapping[Key, Sequence[Line]],
    upgraded: Mapping[Key, Sequence[Line]],
    troubles: Sequence[Trouble],
    guarantee: str,
) -> list[Tenure]:
    """All tenures of a run, by key and position; lines of asking are in their subscribers' order."""
    found: list[Tenure] = []
    for key in sorted(asking):
        parts = list(_parts(asking[key]))
        for lines, following in zip(parts, [*parts[1:], None], strict=True):
            begin_i = lines[0].i
            end_i = FOR_EVER if following is None else following[0].i
            ended = [line.i for line in lines if line.kind == "unsubscribed"]
            since = min((line.t for line in lines if line.kind == "subscribed"), default=inf)
            ends = [line.t for line in lines if line.kind == "unsubscribe"]
            ends += [] if following is None else [following[0].t]
            ends += _ends(troubles, lines[0], since, guarantee)
            found.append(
                Tenure(
                    number=len(found),
                    key=key,
                    filter=lines[0].filter or "",
                    durable=bool(lines[0].durable),
                    begin_i=begin_i,
                    end_i=end_i,
                    ended_i=min(ended, default=FOR_EVER),
                    since=since,
                    until=min(ends, default=inf),
                    lines=tuple(lines),
                    upgrades=tuple(_within(upgraded.get(key, ()), begin_i, end_i)),
                )
            )
    return found


def _parts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines of each tenure: a new one begins where something is asked for that did not stand already."""
    part: list[Line] = []
    for line in lines:
        is_ended = any(each.kind == "unsubscribe" for each in part)
        if line.kind == "subscribe" and part and (is_ended or not line.durable):
            yield part
            part = []
        if part or line.kind == "subscribe":
            part.append(line)
    if part:
        yield part


def _ends(troubles: Sequence[Trouble], asked: Line, since: float, guarantee: str) -> Iterator[float]:
    """When a subscription ends with its subscriber: at a crash, or when it leaves, or is away at the end.

    One that is not durable ends with its session, too, unless the subscriber is a node of a reliable network.
    """
    subscriber = asked.subscriber or ""
    yield from [away for away in [away_since(troubles, subscriber)] if away >= since]
    if asked.durable:
        return
    ending = ("crash", "leave") if guarantee == "reliable" else ("crash", "leave", "disconnect")
    for each in troubles:
        if each.kind in ending and each.begin >= since and _is_of(each, subscriber):
            yield each.begin


def _is_of(trouble: Trouble, subscriber: str) -> bool:
    return subscriber in trouble.nodes and (trouble.by_script or trouble.nodes == (subscriber,))


def _within(lines: Iterable[Line], begin_i: int, end_i: int) -> list[Line]:
    return [line for line in lines if begin_i < line.i < end_i]
