"""What a subscriber of a reliable network is handed: the promises of the edge, each shown a node that breaks it.

I1 once, I2 in order, I3 without silent gaps, I4 only what was asked for, I11 tagged where something may be missing.
Each fault is planted in one method of the real code, and the same schedule is played with a sound network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from judging import chain, found_in, kinds_of

from holdfast.client.member import MemberCore
from holdfast.messages.publications import Tag
from holdfast.node.partitions import Partitions
from holdfast.node.plane import Plane
from holdfast.node.segment import Segment, Share
from holdfast.node.station import Station
from holdfast.ordering.fifo import Fifo
from holdfast.ordering.watchful import Watchful
from holdfast.scenarios.actor_reading import Reading

Plant = Callable[[pytest.MonkeyPatch], None]

ENDS = ("p", "publisher", 0), ("u", "subscriber", 3)

#: Four brokers restart one after another, from the publisher on, and nothing is acknowledged before all have: each is
#: sent again what it has lost. In the end no node on the way has seen both copies but the subscriber [B0.8].
ROLLING = (
    chain(4, *ENDS, settings="DackEvery 15000"),
    "Subscriber u Subscribe # As all\nPublisher p Publish 3 Ontopic t Interval 10\nWait 1000\n"
    + "".join(f"Crash b{i}\nWait 900\nRestart b{i}\nWait 1000\n" for i in range(4))
    + "Drain 30000\nWait 4000\n",
)

#: Two subscriptions of one slow subscriber, one of which ends while its events wait.
TWO = (
    chain(4, *ENDS, settings="DackEvery 200"),
    (
        "Subscriber u Subscribe orders As some\nSubscriber u Subscribe # As all\nSlow u 30\nWait 300\n"
        "Publisher p Publish 10 Ontopic orders Interval 20\nPublisher p Publish 10 Ontopic alarms Interval 20\n"
        "Wait 150\nSubscriber u Unsubscribe all\nDrain 10000\n"
    ),
)

#: v subscribes while nobody on its side can speak with anybody on r's; w, beside it, wanted some of the same before.
#: Until the partition is over, what is not for w does not come [X11].
PARTED = (
    chain(6, ("v", "subscriber", 0), ("w", "subscriber", 0), ("r", "publisher", 4), settings="DackEvery 200"),
    (
        "Subscriber w Subscribe a As early\nWait 300\nCut b1 b2\nCut b0 b2\nCut b1 b3\nWait 1500\n"
        "Subscriber v Subscribe # As late\n"
        "Publisher r Publish 40 Ontopic a Interval 100\nPublisher r Publish 40 Ontopic b Interval 100\n"
        "Wait 500\nHeal b0\nHeal b1\nWait 4000\nDrain 10000\nWait 1500\n"
    ),
)


@pytest.mark.parametrize("run", [ROLLING, TWO])
def test_a_sound_network_is_not_accused(run: tuple[str, str]) -> None:
    assert kinds_of(found_in(*run)) == set()


def test_beyond_delta_a_sound_network_is_only_late() -> None:
    assert kinds_of(found_in(*PARTED)) <= {"delayed"}


# The faults


def _admitting(patch: pytest.MonkeyPatch) -> None:
    """The edge turns nothing away."""
    for edge in (Fifo, Watchful):
        patch.setattr(edge, "admits", lambda edge, pubend, tick: True)


def _dropping(patch: pytest.MonkeyPatch) -> None:
    """A node takes its seventh copy for sent, and has not sent it."""
    copy = Plane._copy

    def all_but_one(plane: Plane, segment: Segment, endpoint: Station, share: Share) -> list[Any]:
        is_time = segment.first == 7 and plane._me == "b1"
        return [] if is_time else copy(plane, segment, endpoint, share)

    patch.setattr(Plane, "_copy", all_but_one)


def _careless(patch: pytest.MonkeyPatch) -> None:
    """Whatever comes to a client is for all its subscriptions."""
    deliver = MemberCore._deliver

    def to_all(
        client: MemberCore, stream: str, batch: Any, at: list[int], _: Any, tags: Any, **flags: bool
    ) -> None:
        numbers = tuple(client.ledger.inbox.subscriptions)
        deliver(client, stream, batch, at, [numbers] * len(at), tags, **flags)

    patch.setattr(MemberCore, "_deliver", to_all)


def _clinging(patch: pytest.MonkeyPatch) -> None:
    """An application that is slow is still handed what waits for a subscription when that has ended."""
    patch.setattr(Reading, "forget", lambda reading, number: None)


def _reassuring(patch: pytest.MonkeyPatch) -> None:
    """Every tag says that nothing is missing after it."""
    at_edge = Partitions.tags_at_edge

    def barred(partitions: Partitions, publisher: str, tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
        found = at_edge(partitions, publisher, tags)
        return tuple(Tag(tag.lead, tag.incarnation, tag.number, True) for tag in found)

    patch.setattr(Partitions, "tags_at_edge", barred)


def _wavering(patch: pytest.MonkeyPatch) -> None:
    """The first tag of a publisher says that nothing is missing after it, and the next one takes it back."""
    at_edge = Partitions.tags_at_edge
    heard: set[tuple[str, str]] = set()

    def first_barred(partitions: Partitions, publisher: str, tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
        found = at_edge(partitions, publisher, tags)
        key = partitions._me, publisher
        is_first = key not in heard
        heard.update(key for _ in found)
        return tuple(Tag(tag.lead, tag.incarnation, tag.number, tag.bar or is_first) for tag in found)

    patch.setattr(Partitions, "tags_at_edge", first_barred)


@pytest.mark.parametrize(
    ("plant", "run", "said"),
    [
        (_admitting, ROLLING, ("duplicate: u got p#1 again for all", "misorder: u got p#1 after #3 for all")),
        (_dropping, TWO, ("lost: p#7 never reached u for some",)),
        (_careless, TWO, ("was delivered to u for some: it does not match orders",)),
        (_clinging, TWO, ("for all: the subscription had ended",)),
        (_reassuring, PARTED, ("never reached v for late",)),
        (_wavering, PARTED, ("came to v plain after",)),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Plant, run: tuple[str, str], said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = "\n".join(map(str, found_in(*run)))
    assert all(each in found for each in said), found
