"""Peers that say of durable streams what no correct one would: their session ends, or nothing comes of it.

Whatever it is, a bystander reads on, and what is on disk stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from durable_desk import FAR, OWN, TOTAL, UNHEARD_NS, Desk, admitted, as_read, items

from by_hand import a_publication, publish
from holdfast.broker.durable.records import PLACES, READERS
from holdfast.clock import SECOND
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.durable import (
    BEGIN,
    Acknowledge,
    Admit,
    Admitted,
    Answers,
    Claim,
    Credit,
    Detach,
    Fetch,
    Fetched,
    Logged,
    Moved,
    MovedTaken,
    Ousted,
    Portion,
    Report,
    Reported,
    Requests,
    Resign,
    Run,
    Saved,
    Stand,
)
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.subscriptions import Durable, Refused, Resume, Subscribe, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Lost, Nack, Start, Unfollow, Wants
from holdfast.streams.storing import AppendEvents

EVENT = a_publication("q", 1)
OTHER = a_publication("q", 2)
NOWHERE = "orders@nowhere/0"  #: a pubend nobody has announced
MALFORMED = Publication("q", 9, b"\xc1")


def world() -> tuple[Desk, int, int, int]:
    """A pubend here and one at left; a durable reader of both, a publisher, and left, which is about to lie."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR, filters=["a"])
    publisher = desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    reader = desk.reader("u", durable="mine")
    desk.say(left, admitted(100))
    desk.say(left, Wants(5), Follow(OWN), Start(FAR, 100), items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    desk.wait(SECOND)
    assert desk.got(reader) == [1]
    return desk, left, publisher, reader


def is_undisturbed(desk: Desk, publisher: int, reader: int) -> bool:
    """Whoever is here publishes and reads on."""
    desk.say(publisher, publish("p", 2))
    assert [publication.id for _, publication in desk.events(reader)] == [("q", 1), ("p", 2)]
    assert desk.rows(READERS) == ["mine"]
    assert len(desk.rows(PLACES)) == 2
    assert not desk.gaps(reader)
    assert publisher not in desk.closed
    assert reader not in desk.closed
    desk.wait(SECOND)
    return True


# What ends a session

BREACHES: dict[str, Message] = {
    "a version that goes back": Wants(4),
    "a pubend of no durable stream": Follow("other@left/0"),
    "items from before the session": items(FAR, ABSOLUTE, 120, [(130, EVENT)], 140),
    "another event at a tick": items(FAR, ABSOLUTE, 149, [(150, OTHER)], 150, answers=True),
    "an event in what was silent": items(FAR, ABSOLUTE, 109, [(110, OTHER)], 110, answers=True),
    "ticks that do not ascend": Items(FAR, ABSOLUTE, [200, 210], [210, 205], [None, EVENT]),
    "columns of two lengths": Items(FAR, ABSOLUTE, [200], [210], []),
    "an event that cannot be read": items(FAR, ABSOLUTE, 200, [(210, MALFORMED)], 220),
    "what only clients say": Credit(1, 1),
    "what only clients acknowledge": Acknowledge(1, {OWN: 1}),
    "what only clients leave": Detach(1),
    "what is said to publishers": Logged(OWN, 1, (Run(1, 1, 1),)),
    "what is said to subscribers": Portion(1, OWN, 1, Batch([]), (), (), 5),
    "what is said of commits": Saved(1, 1),
    "what is said to who is ousted": Ousted(1, "go"),
}


@pytest.mark.parametrize("lie", BREACHES)
def test_a_neighbours_session_ends_with(lie: str) -> None:
    desk, left, publisher, reader = world()
    desk.say(left, BREACHES[lie])
    assert left in desk.closed
    assert is_undisturbed(desk, publisher, reader)


# What is not taken

FAR_AWAY = 2**62
IGNORED: dict[str, Sequence[Message]] = {
    "items of a pubend nobody has": [items(NOWHERE, ABSOLUTE, 0, [(5, EVENT)], 9)],
    "items of our own pubend": [items(OWN, ABSOLUTE, 0, [(5, EVENT)], 9)],
    "a beginning of a pubend nobody has": [Start(NOWHERE, 5)],
    "a second beginning": [Start(FAR, 1_000)],
    "following a pubend nobody has": [Follow(NOWHERE), Nack(NOWHERE, ABSOLUTE, [(0, 9)]), Unfollow(NOWHERE)],
    "not following what was not followed": [Unfollow(FAR), Unfollow(NOWHERE)],
    "questions about ticks to come": [Nack(OWN, 5, [(FAR_AWAY, FAR_AWAY + 1)])],
    "questions under a version to come": [Nack(OWN, 99, [(0, 1)])],
    "questions without an end": [Nack(OWN, ABSOLUTE, [(0, FAR_AWAY)])],
    "letters to nobody": [Admit("nobody", "left", OWN, None), Fetch("nobody", "left", "mine")],
    "letters for itself": [Fetch("left", "left", "mine")],
    "an admission to what is not here": [Admit("b", "left", NOWHERE, 0)],
    "an admission nobody wanted": [admitted(7), Admitted("b", "left", NOWHERE, 1, 7, 7, 7)],
    "a report of what is not here": [Report("b", "left", NOWHERE, 1, 1, 1)],
    "a report from the future": [Report("b", "left", OWN, 10**9, FAR_AWAY, FAR_AWAY)],
    "an answer to no report": [Reported("b", "left", FAR, 10**9, 1), Reported("b", "left", NOWHERE, 1, 1)],
    "a resignation of who was not there": [Resign("b", "nobody", OWN, 5), Resign("b", "left", NOWHERE, 5)],
    "a claim from the future": [Claim("b", "left", OWN, FAR_AWAY), Claim("b", "left", NOWHERE, 5)],
    "where a subscription stands that nobody asked for": [
        Fetched("b", "left", "mine", {OWN: Stand(1, 1, 1)}),
        Fetched("b", "left", "other", None),
    ],
    "a move of an old epoch": [Moved("b", "left", "mine", 1), Moved("b", "left", "other", 1)],
    "that a move was heard of which was none": [MovedTaken("b", "left", "mine", 1)],
    "answers nobody waits for": [Answers("b", "left", FAR, 1, "p", (Run(1, 1, 1),), hole=0)],
    "requests to what is not here": [Requests("b", "left", FAR, [BEGIN], Batch([EVENT]))],
}


@pytest.mark.parametrize("lie", IGNORED)
def test_nothing_comes_of(lie: str) -> None:
    desk, left, publisher, reader = world()
    for message in IGNORED[lie]:
        desk.say(left, message)
    assert left not in desk.closed
    assert desk.own.core.incarnation == 1
    assert is_undisturbed(desk, publisher, reader)


def test_a_loss_where_events_were_is_no_contradiction_and_takes_nothing_back() -> None:
    """The pubend may give up what we have; whoever had it, had it."""
    desk, left, publisher, reader = world()
    loss = [Lost(100, 160, "acknowledged")]
    desk.say(left, Items(FAR, ABSOLUTE, [], [], [], loss, answers=True))
    assert left not in desk.closed
    assert is_undisturbed(desk, publisher, reader)


# Numbers


@pytest.mark.parametrize(
    "lie",
    [
        Admitted("b", "left", FAR, 1, 100, 2**64 - 1, 0),
        Subscribe(SubscriptionId("left", 1, 9), "a", (Element("left", 1, 9),), Durable("x", 2**64 - 1)),
    ],
    ids=["report", "epoch"],
)
def test_a_number_that_cannot_be_counted_on_is_not_believed(lie: Message) -> None:
    """The next one could not be written."""
    desk = Desk(["left"])
    left = desk.meet("left", FAR)
    reader = desk.reader("u")
    for message in as_read(lie):
        desk.say(left, message)
    other = desk.reader("v", durable="x")
    desk.say(left, Fetched("b", "left", "x", {}), admitted(100))
    desk.wait(SECOND)
    desk.publisher("p", 1)
    assert desk.got(reader) == desk.got(other) == [1]


# Requests


def sequencer() -> tuple[Desk, int, int]:
    desk = Desk(["left"], [replace(TOTAL, topics=("orders/#", "a"))])
    left = desk.meet("left")
    return desk, left, desk.reader("u")


def test_a_request_that_cannot_be_read_is_not_logged() -> None:
    """Or the broker would stop whenever somebody reads it."""
    desk, left, reader = sequencer()
    desk.say(left, Requests("b", "left", OWN, [BEGIN], Batch([MALFORMED])))
    desk.publisher("p", 1)
    assert desk.got(reader) == [1]
    assert ("q", 9) not in [publication.id for _, publication in desk.events(reader)]


def test_requests_without_their_numbers_end_the_session() -> None:
    desk, left, reader = sequencer()
    desk.say(left, Requests("b", "left", OWN, [BEGIN, 1], Batch([EVENT])))
    assert left in desk.closed
    desk.publisher("p", 1)
    assert desk.got(reader) == [1]


def test_numbers_no_event_can_have_are_not_logged() -> None:
    desk, left, reader = sequencer()
    for n in (0, -1):
        desk.say(left, Requests("b", "left", OWN, [BEGIN], Batch([a_publication("q", n)])))
    assert desk.got(reader) == []


# Clients


def test_what_a_client_says_of_subscriptions_it_has_not_changes_nothing() -> None:
    desk, _, publisher, reader = world()
    stranger = desk.client("v")
    for message in (Credit(1, 2**62), Acknowledge(1, {OWN: FAR_AWAY, NOWHERE: 1}, 5), Detach(1)):
        desk.say(stranger, message)
    assert stranger not in desk.closed
    assert desk.said(stranger, Saved) == []
    assert is_undisturbed(desk, publisher, reader)


@pytest.mark.parametrize(
    "topic", [f"$pubend/{FAR}", f"$pubend/{OWN}", "$broker/left", "$broker/b", "$broker/#"]
)
@pytest.mark.parametrize("durable", [None, "theirs"])
def test_a_client_cannot_pass_for_a_broker_or_a_pubend(topic: str, durable: str | None) -> None:
    """Nothing would come from there any more, to anybody, for as long as the network runs."""
    desk, left, publisher, reader = world()
    stranger = desk.reader("v", topic, durable=durable)
    assert [refused.problem for refused in desk.said(stranger, Refused)] == [
        f"no event has a topic that {topic} could match"
    ]
    desk.lose(stranger)
    desk.wait(SECOND)
    desk.say(left, items(FAR, ABSOLUTE, 200, [(250, OTHER)], 300))
    assert desk.got(reader) == [1, 2]
    desk.say(publisher, publish("p", 2))
    assert desk.got(reader) == [1, 2, 2]


def test_a_broker_cannot_pass_for_another() -> None:
    """What a broker announces is its own, whatever a broker that was deceived, or lies, says."""
    desk = Desk(["left", "right"])
    left, right = desk.meet("left", FAR), desk.meet("right")
    lies = [desk.tell(right, "right", topic) for topic in (f"$pubend/{FAR}", "$broker/left")]
    reader = desk.reader("u", durable="mine")
    desk.say(left, admitted(100), Start(FAR, 100), items(FAR, ABSOLUTE, 100, [(150, EVENT)], 200))
    assert desk.got(reader) == [1]
    for lie in lies:
        desk.say(right, Unsubscribe(lie))
    desk.say(left, items(FAR, ABSOLUTE, 200, [(250, OTHER)], 300))
    assert desk.got(reader) == [1, 2]
    assert desk.said(right, Follow) == []


@pytest.mark.parametrize("numbers", [(5, 3), (5, 5), (1, 2**63 - 1, 2)])
def test_a_publisher_whose_numbers_do_not_increase_is_hung_up_on(numbers: Sequence[int]) -> None:
    """They were appended as they came, and the broker stopped when the disk had them."""
    desk, _, publisher, reader = world()
    stranger = desk.publisher("v", 1)
    desk.say(stranger, publish("v", *numbers))
    assert stranger in desk.closed
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    assert [publication.id for _, publication in desk.events(reader)] == [("q", 1), ("v", 1), ("p", 2)]


@pytest.mark.parametrize("message", [Wants(1), Follow(OWN), Fetch("b", "v", "mine"), Start(OWN, 5)])
def test_a_client_that_speaks_as_a_broker_is_hung_up_on(message: Message) -> None:
    desk, _, publisher, reader = world()
    stranger = desk.client("v")
    desk.say(stranger, message)
    assert stranger in desk.closed
    assert is_undisturbed(desk, publisher, reader)


@pytest.mark.parametrize(
    "resume",
    [
        Resume(-5, "x"),
        Resume(5, "x" * 100_000),
        Resume(5, None, -(2**63)),
        Resume(5, "x", None, {NOWHERE: (9, -7), OWN: (-1, -1)}),
        Resume(5, "x", None, {OWN: (1, FAR_AWAY)}),
    ],
)
def test_a_client_that_wants_the_impossible_is_refused_or_served_alone(resume: Resume) -> None:
    desk, _, publisher, reader = world()
    stranger = desk.client("v")
    desk.say(stranger, Subscribe(SubscriptionId("v", 1, 1), "b", (), None, resume))
    assert stranger not in desk.closed
    desk.lose(stranger)
    desk.wait(SECOND)
    desk.say(publisher, publish("p", 2))
    assert [publication.id for _, publication in desk.events(reader)] == [("q", 1), ("p", 2)]


@pytest.mark.parametrize("is_full", [False, True])
def test_a_token_ahead_of_a_pubend_that_is_being_written_takes_nothing_of_that_away(is_full: bool) -> None:
    """It may say that a backup was put back; what is on its way to the disk stands below what is taken for lost."""
    desk, _, publisher, reader = world()
    desk.hold(AppendEvents)
    desk.say(publisher, publish("p", 2))
    desk.say(publisher, publish("p", 3))
    ahead = desk.clock + 30 * SECOND // 1_000
    desk.reader("v", "b", durable="x", token={OWN: ahead})
    desk.say(publisher, publish("p", 4))
    if is_full:
        capacity, desk.disk.capacity = desk.disk.capacity, desk.disk.capacity - desk.disk.room()
        desk.hold()
        desk.disk.capacity = capacity
        desk.wait(2 * SECOND)
        desk.say(publisher, publish("p", 2, 3, 4, heard=4))
    desk.hold()
    desk.wait(SECOND)
    events = [(tick, each.n) for tick, each in desk.events(reader) if each.publisher == "p"]
    assert [n for _, n in events] == [2, 3, 4]
    assert [n for tick, n in events if tick > ahead] == ([2, 3, 4] if is_full else [4])
    assert desk.own.core.incarnation == 2
    assert desk.gaps(reader) == [(OWN, "restored from a backup")]


def test_a_beginning_in_the_future_is_refused() -> None:
    desk, _, _, _ = world()
    stranger = desk.client("v")
    desk.subscribe(stranger, "v", "b", durable="x", start=2**64 - 1)
    (refused,) = desk.said(stranger, Refused)
    assert refused.code == "token-ahead"
    assert refused.problem == "it is to begin at a time that has not come yet, by this broker's clock"
