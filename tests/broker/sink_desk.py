"""A broker at a desk, and the tasks and drivers of an application that writes epochs to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from durable_desk import Desk

from holdfast.events.event import make_event
from holdfast.events.packed import pack, unpack
from holdfast.messages.publications import Publication
from holdfast.messages.staging import Commit, Committed, Discard, Epoch, Share, Stage, Staged

APP = "app"


def event(mark: str, topic: str = "a") -> bytes:
    """One that can be told from all others."""
    return pack(make_event(topic, {"mark": mark}))


def mark_of(publication: Publication) -> str:
    return str(unpack(publication.event).attributes["mark"])


class SinkDesk(Desk):
    """Whoever stages and commits is the client ``spark``; a reader keeps everything."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.keeper = self.reader("keeper", "#", durable="keeper")
        self.spark = self.client("spark")

    def again(self) -> None:
        """The broker dies and is started again; everybody comes back."""
        self.restart()
        self.spark = self.client("spark")

    def stage(self, attempt: str, version: int, *marks: str, first: int = 0) -> list[Staged]:
        """What a task hands in, and what it hears."""
        events = tuple(event(mark) for mark in marks)
        self.say(self.spark, Stage(attempt, Epoch("orders", APP, version), first, events))
        return [each for each in self.said(self.spark, Staged) if each.attempt == attempt]

    def commit(self, version: int, *shares: tuple[str, int]) -> Committed | None:
        """What a driver asks for, and what it hears; None: nothing."""
        before = len(self.said(self.spark, Committed))
        epoch = Epoch("orders", APP, version)
        self.say(self.spark, Commit(epoch, tuple(Share(*each) for each in shares)))
        heard = self.said(self.spark, Committed)[before:]
        assert all(each.epoch == epoch for each in heard)
        return heard[-1] if heard else None

    def discard(self, *attempts: str) -> None:
        self.say(self.spark, Discard(attempts))

    def log(self) -> list[Publication]:
        """Everything that is visible, in order, as somebody reads it who has acknowledged nothing."""
        connection = self.reader(f"all{self._last}", "#", start=1)
        assert not self.gaps(connection)
        return [publication for _, publication in self.events(connection)]

    def marks(self) -> list[str]:
        published = self.log()
        numbers = [each.n for each in published]
        assert numbers == sorted(set(numbers)), "numbers ascend, and none is used twice"
        assert {each.publisher for each in published} <= {APP}
        return list(map(mark_of, published))

    @property
    def staged(self) -> Sequence[str]:
        return list(self.plane.epochs.staging.attempts)
