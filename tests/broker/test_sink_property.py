"""Any interleaving of attempts, retries, commits, replays and crashes: the named attempts, once, whole, in order."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sink_desk import SinkDesk

from examples import examples
from holdfast.clock import SECOND
from holdfast.messages.staging import Committed
from holdfast.streams.storing import AppendEvents, ChopEvents, ReadEvents, Save

#: What a driver, its tasks and the machine may do next, and how often.
ACTIONS = st.sampled_from(
    ["stage"] * 5
    + ["resend"] * 2
    + ["commit"] * 4
    + ["replay"] * 2
    + ["discard", "crash", "hold", "go", "go"]
)


class History:
    """One application at one broker; ``epochs`` are what its commits were answered with, by version."""

    def __init__(self, seed: int) -> None:
        self.desk = SinkDesk()
        self.desk.commit(0)
        self.random = Random(seed)
        self.version = 1
        self.count = 0
        self.staged: dict[str, tuple[int, list[str]]] = {}  #: by attempt its version, and what it says
        #: By version what its commits have named; one of them counts, and ``done`` knows once it was answered.
        self.named: dict[int, list[list[str]]] = {}
        self.done: set[int] = set()

    def act(self, action: str) -> None:
        desk, random = self.desk, self.random
        ours = [name for name, (version, _) in self.staged.items() if version == self.version]
        match action:
            case "stage":
                self._stage(self.version)
            case "resend" if ours:
                name = random.choice(ours)
                first = random.randint(0, len(self.staged[name][1]))
                desk.stage(name, self.version, *self.staged[name][1][first:], first=first)
            case "commit" if ours:
                self._commit(self.version, random.sample(ours, random.randint(1, len(ours))))
            case "replay" if self.version > 1:
                version = random.randint(1, self.version - 1)
                self._commit(version, [self._stage(version)])
            case "discard" if ours:
                name = random.choice(ours)
                del self.staged[name]
                desk.discard(name)
            case "crash":
                desk.again()
                desk.wait(3 * SECOND)
            case "hold":
                desk.hold(*random.sample([AppendEvents, ReadEvents, ChopEvents, Save], 2))
            case "go":
                desk.hold()

    def _stage(self, version: int) -> str:
        self.count += 1
        name, marks = f"t{self.count}", [f"{self.count}.{i}" for i in range(self.random.randint(1, 3))]
        self.staged[name] = version, marks
        self.desk.stage(name, version, *marks)
        return name

    def _commit(self, version: int, names: list[str]) -> None:
        marks = [mark for name in names for mark in self.staged[name][1]]
        self.named.setdefault(version, []).append(marks)
        answer = self.desk.commit(version, *((name, len(self.staged[name][1])) for name in names))
        self._hear(answer)

    def _hear(self, answer: Committed | None) -> None:
        for each in [answer, *self.desk.said(self.desk.spark, Committed)]:
            if each is not None and not each.problem:
                self.done.add(each.epoch.version)
        if self.version in self.done:
            self.version += 1

    def check(self) -> None:
        """When all is done that can be, whole epochs stand there, of each version one, and all that were done."""
        self.desk.hold()
        self.desk.again()
        self.desk.wait(3 * SECOND)
        left, found = self.desk.marks(), set()
        for version, named in sorted(self.named.items()):
            fits = [marks for marks in named if marks and left[: len(marks)] == marks]
            if fits:
                found.add(version)
                left = left[len(max(fits, key=len)) :]
        assert not left, left
        assert {version for version in self.done if version in self.named} <= found


def drawn(actions: list[str], seed: int) -> None:
    history = History(seed)
    for action in actions:
        history.act(action)
    history.check()


@given(st.lists(ACTIONS, min_size=5, max_size=30), st.integers(0, 2**32))
@examples(120)
def test_the_named_attempts_are_there_once_whole_and_in_order(actions: list[str], seed: int) -> None:
    drawn(actions, seed)


@pytest.mark.parametrize("broken", ["is_done", "attempts"])
def test_a_broker_that_repeats_a_version_or_loses_what_is_staged_is_caught(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay that is taken; and staged events that are committed though some are missing."""
    where = "holdfast.broker.durable.committing"
    if broken == "is_done":
        monkeypatch.setattr(f"{where}.is_done", lambda version, last: False)
    else:
        monkeypatch.setattr(f"{where}.Committing._problem", lambda self, commit: None)
        monkeypatch.setattr(f"{where}.Committing.on_read", _whatever_there_is)
    with pytest.raises((AssertionError, KeyError)):
        many()


def many() -> None:
    random = Random(1)
    for seed in range(50):
        drawn(random.choices(["stage", "commit", "replay", "resend", "discard", "crash", "go"], k=20), seed)


def _whatever_there_is(self: Any, read: Any, now: int) -> None:
    commit, self._reading = self._reading, None
    self._finish(commit, len(read.publications), is_repeat=False)
