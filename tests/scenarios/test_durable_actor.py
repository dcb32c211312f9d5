"""A subscriber and a publisher of a durable network driven by hand: what they tell, remember and acknowledge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.client.settings import Settings
from holdfast.clock import MILLISECOND
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.filters.parse import parse_filter
from holdfast.filters.text import filter_text
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Acknowledge, Credit, Logged, Portion, Run, Saved
from holdfast.messages.message import Message
from holdfast.messages.publications import Accepted, Batch, Publication
from holdfast.messages.session import Hello, Kind, Welcome
from holdfast.messages.subscriptions import Confirmed, Subscribe, Unsubscribe, Withdrawn
from holdfast.overlay.transport import Close, Connect, Connected, ConnectFailed, Received, Send, Trace, Wake
from holdfast.scenarios import commands
from holdfast.scenarios.actor import BUFFER_ITEMS, Actor
from holdfast.scenarios.actor_commands import (
    DoDisconnect,
    Done,
    DoPublish,
    DoReconnect,
    DoSlow,
    DoSubscribe,
    DoUnsubscribe,
    Remember,
    Wish,
)
from holdfast.scenarios.actor_record import SETTLE_NS
from holdfast.streams.checkpoint_token import Place, Token

KEPT = Wish("mine", "/orders", filter_text(parse_filter("/orders")), durable=True)
PASSING = Wish("hers", "/orders", filter_text(parse_filter("/orders")))
PUBEND = "scenario@b/0"


class Conversation:
    """An actor, the time, and a broker's side of it."""

    def __init__(self, **options: Any) -> None:
        self.actor = Actor(Settings("u", 1, "b:1"), **options)
        self.now = 0
        self.connections = 0
        self.step(Wake())

    def step(self, stimulus: Any) -> list[Any]:
        return self.actor.step(stimulus, self.now)

    def connect(self, peer: str = "") -> list[Any]:
        """Accept what was dialled, and welcome the guest."""
        self.connections += 1
        (said,) = self.step(Connected(self.connections, peer))
        (hello,) = said.messages
        assert isinstance(hello, Hello)
        return self.hear(Welcome("b", Kind.BROKER, 1, hello.session, 1000 * MILLISECOND))

    def hear(self, *messages: Message) -> list[Any]:
        return self.step(Received(self.connections, list(messages)))

    def confirm(self, effects: Sequence[Any], **places: int) -> list[Any]:
        """Answer the Subscribe messages among effects: they begin at these ticks of a pubend called x."""
        token = {pubend: (1, tick) for pubend, tick in places.items()}
        asked = [message for message in said(effects) if isinstance(message, Subscribe)]
        return self.hear(*(Confirmed(each.subscription, token=token) for each in asked))

    def portion(
        self,
        *ticks: int,
        upto: int | None = None,
        lost_through: int = 0,
        reason: str = "",
        number: int = 1,
        pubend: str = "x",
    ) -> list[Any]:
        batch = Batch([Publication("p", tick, pack(make_event("/orders"))) for tick in ticks])
        last = max(ticks, default=0) if upto is None else upto
        at = range(len(ticks))
        return self.hear(Portion(number, pubend, 1, batch, ticks, at, last, lost_through, reason))

    def settle(self) -> list[Any]:
        self.now += SETTLE_NS
        return self.step(Wake())


def said(effects: Sequence[Any]) -> list[Message]:
    return [message for effect in effects if isinstance(effect, Send) for message in effect.messages]


def lines(effects: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The trace lines that tell of reading."""
    found: list[tuple[Any, ...]] = []
    for effect in effects:
        if isinstance(effect, Trace) and effect.kind == "deliver":
            found.append(("deliver", effect.fields["pubend"], effect.fields["tick"]))
        elif isinstance(effect, Trace) and effect.kind in ("silence", "gap"):
            found.append((effect.kind, effect.fields["after"], effect.fields["upto"]))
    return found


def remembered(effects: Sequence[Any]) -> list[dict[str, int]]:
    return [
        {pubend: place.tick for pubend, place in effect.token.items()}
        for effect in effects
        if isinstance(effect, Remember)
    ]


@pytest.fixture
def talk() -> Conversation:
    """A subscriber with a durable subscription that begins at tick 10."""
    talk = Conversation()
    talk.connect()
    talk.confirm(talk.step(DoSubscribe(KEPT, 1)), x=10)
    return talk


# Subscribing


def test_a_durable_subscription_has_a_name_a_credit_and_a_line_that_says_so() -> None:
    talk = Conversation()
    talk.connect()
    effects = talk.step(DoSubscribe(KEPT, 7))
    line = next(effect for effect in effects if isinstance(effect, Trace))
    assert (line.kind, line.fields["durable"]) == ("subscribe", True)
    (asked,) = said(effects)
    assert isinstance(asked, Subscribe)
    assert asked.resume is not None
    assert (asked.resume.durable, asked.resume.credit) == ("u/mine", BUFFER_ITEMS)
    confirmed = talk.confirm(effects, x=10)
    assert remembered(confirmed) == [{"x": 10}], "where it begins is in the record before anything is read"
    assert Done(7) in confirmed


def test_a_subscription_that_is_not_kept_is_not_remembered() -> None:
    talk = Conversation()
    talk.connect()
    effects = talk.confirm(talk.step(DoSubscribe(PASSING, 1)), x=10)
    effects += talk.portion(12)
    effects += talk.settle()
    assert lines(effects) == [("deliver", "x", 12)]
    assert not remembered(effects)
    assert not [message for message in said(effects) if isinstance(message, Acknowledge)]


def test_where_there_was_no_pubend_yet_everything_is_to_come() -> None:
    """B1.11: the record says so, and not that nothing is known."""
    talk = Conversation()
    talk.connect()
    assert remembered(talk.confirm(talk.step(DoSubscribe(KEPT, 1)))) == [{}]
    talk.step(DoReconnect(5, "c:1"))
    (again,) = (message for message in said(talk.connect("socket 1 ")) if isinstance(message, Subscribe))
    assert again.resume is not None
    assert (again.resume.start, again.resume.token) == (0, {})


# Reading


def test_events_are_told_and_remembered_in_one_step_the_record_behind_the_lines(talk: Conversation) -> None:
    effects = talk.portion(12, 15)
    kinds = [effect.kind if isinstance(effect, Trace) else type(effect).__name__ for effect in effects]
    assert kinds == ["deliver", "deliver", "Remember"]
    assert lines(effects) == [("deliver", "x", 12), ("deliver", "x", 15)]
    assert remembered(effects) == [{"x": 15}]


def test_silence_is_told_after_a_while_and_remembered_then(talk: Conversation) -> None:
    effects = talk.portion(12, upto=20)
    effects += talk.portion(upto=30)
    assert lines(effects) == [("deliver", "x", 12)]
    assert remembered(effects) == [{"x": 12}]
    settled = talk.settle()
    assert lines(settled) == [("silence", 12, 30)]
    assert remembered(settled) == [{"x": 30}]


def test_silence_that_an_event_follows_is_not_told(talk: Conversation) -> None:
    talk.portion(upto=20)
    assert lines([*talk.portion(25), *talk.settle()]) == [("deliver", "x", 25)]


def test_a_gap_is_told_behind_the_silence_before_it(talk: Conversation) -> None:
    talk.portion(upto=20)
    effects = talk.portion(31, lost_through=30, reason="max_retain")
    assert lines(effects) == [("silence", 10, 20), ("gap", 20, 30), ("deliver", "x", 31)]


def test_a_pubend_nobody_had_told_of_begins_at_its_origin(talk: Conversation) -> None:
    """B1.11."""
    talk.portion(5, pubend="y", upto=8)
    assert ("silence", 5, 8) in lines(talk.settle())


def test_a_slow_application_reads_one_event_after_the_other_and_remembers_what_it_has_read(
    talk: Conversation,
) -> None:
    talk.step(DoSlow(100 * MILLISECOND))
    assert remembered(talk.portion(12, 13, upto=20)) == [{"x": 12}]
    assert not talk.actor.quiet
    talk.now += 100 * MILLISECOND
    assert remembered(talk.step(Wake())) == [{"x": 13}]


def test_credit_is_given_for_what_was_read() -> None:
    talk = Conversation()
    talk.connect()
    talk.confirm(talk.step(DoSubscribe(KEPT, 1)), x=10)
    effects = talk.portion(*range(11, 11 + BUFFER_ITEMS))
    assert [each for each in said(effects) if isinstance(each, Credit)] == [Credit(1, BUFFER_ITEMS)]


# Acknowledging


def test_what_was_read_is_acknowledged_in_batches_and_the_network_is_waited_for(talk: Conversation) -> None:
    assert not said(talk.portion(12))
    assert not said(talk.portion(13, upto=20))
    assert not talk.actor.quiet
    assert said(talk.settle()) == [Acknowledge(1, {"x": 20}, 1)]
    assert not talk.actor.quiet
    talk.hear(Saved(1, 1))
    assert talk.actor.quiet


def test_silence_is_acknowledged_too_and_not_waited_for(talk: Conversation) -> None:
    talk.settle()
    talk.hear(Saved(1, 1))
    talk.portion(upto=30)
    assert talk.actor.quiet
    assert said(talk.settle()) == [Acknowledge(1, {"x": 30}, 2)]
    assert talk.actor.quiet


def test_without_anything_new_nothing_is_due(talk: Conversation) -> None:
    talk.portion(12)
    talk.settle()
    talk.hear(Saved(1, 1))
    deadline = talk.actor.next_deadline()
    assert deadline is not None
    assert deadline > talk.now + SETTLE_NS, "only a heartbeat"


# Coming back


def test_a_new_life_goes_on_from_the_record() -> None:
    token = Token({"x": Place(1, 15)})
    talk = Conversation(wishes=[KEPT, PASSING], records={"mine": token})
    kept, passing = (message for message in said(talk.connect()) if isinstance(message, Subscribe))
    assert kept.resume is not None
    assert passing.resume is not None
    assert (kept.resume.durable, kept.resume.token) == ("u/mine", {"x": (1, 15)})
    assert (passing.resume.durable, passing.resume.token) == (None, None)


def test_a_reconnection_goes_on_from_what_was_received(talk: Conversation) -> None:
    talk.step(DoSlow(100 * MILLISECOND))
    talk.portion(12, 13)
    talk.step(DoDisconnect())
    talk.now += 50 * MILLISECOND
    talk.step(Wake())
    assert Connect("", "b:1") in talk.step(DoReconnect(5))
    (again,) = (message for message in said(talk.connect()) if isinstance(message, Subscribe))
    assert again.resume is not None
    assert again.resume.token == {"x": (1, 13)}


def test_at_another_broker_it_is_another_client_that_goes_on_from_the_record(talk: Conversation) -> None:
    talk.step(DoSlow(100 * MILLISECOND))
    talk.portion(12, 13)
    talk.step(DoDisconnect())
    effects = talk.step(DoReconnect(5, "c:1"))
    assert [effect for effect in effects if isinstance(effect, Connect)] == [Connect("socket 1 ", "c:1")]
    welcomed = talk.connect("socket 1 ")
    assert Done(5) in welcomed
    (again,) = (message for message in said(welcomed) if isinstance(message, Subscribe))
    assert again.subscription == SubscriptionId("u", 2, 2), "another client, and so another incarnation"
    assert again.resume is not None
    assert (again.resume.durable, again.resume.token) == ("u/mine", {"x": (1, 12)})
    talk.confirm(welcomed, x=12)
    talk.now += 100 * MILLISECOND
    assert lines(talk.portion(13, number=2)) == [("deliver", "x", 13)], "what it had not read comes again"


def test_who_moves_without_having_been_disconnected_is(talk: Conversation) -> None:
    effects = talk.step(DoReconnect(5, "c:1"))
    assert [effect for effect in effects if isinstance(effect, Close)]
    assert not talk.actor.is_connected


def test_whoever_answers_a_dial_of_the_client_before_is_hung_up_on(talk: Conversation) -> None:
    talk.step(DoDisconnect())
    talk.step(DoReconnect(5, "c:1"))
    assert talk.step(Connected(99, "")) == [Close(99, "disconnected by the script")]
    assert talk.step(ConnectFailed("", "refused")) == []
    assert Done(5) in talk.connect("socket 1 ")


def test_before_it_was_confirmed_it_has_nothing_to_go_on_from() -> None:
    talk = Conversation()
    talk.connect()
    talk.step(DoSubscribe(KEPT, 1))
    talk.step(DoReconnect(5, "c:1"))
    (again,) = (message for message in said(talk.connect("socket 1 ")) if isinstance(message, Subscribe))
    assert again.resume is not None
    assert (again.resume.start, again.resume.token) == (None, None)


def test_a_subscription_that_is_not_kept_goes_on_at_another_broker_too() -> None:
    talk = Conversation()
    talk.connect()
    talk.confirm(talk.step(DoSubscribe(PASSING, 1)), x=10)
    talk.portion(12)
    talk.step(DoReconnect(5, "c:1"))
    (again,) = (message for message in said(talk.connect("socket 1 ")) if isinstance(message, Subscribe))
    assert again.resume is not None
    assert (again.resume.durable, again.resume.token) == (None, {"x": (1, 12)})


def test_what_is_ending_tells_no_silence_any_more(talk: Conversation) -> None:
    talk.portion(12, upto=20)
    talk.step(DoUnsubscribe("mine", 8))
    assert not lines(talk.settle())


def test_what_was_ending_is_ended_at_the_new_broker(talk: Conversation) -> None:
    talk.step(DoUnsubscribe("mine", 8))
    talk.step(DoReconnect(5, "c:1"))
    subscribe, unsubscribe = said(talk.connect("socket 1 "))
    assert isinstance(subscribe, Subscribe)
    assert isinstance(unsubscribe, Unsubscribe)
    effects = talk.hear(Withdrawn(unsubscribe.subscription))
    assert Done(8) in effects
    assert [effect.kind for effect in effects if isinstance(effect, Trace)] == ["unsubscribed"]


# Publishing


def test_a_receipt_says_where_an_event_stands() -> None:
    talk = Conversation()
    talk.connect()
    publish = commands.Publish("u", 3, "/orders", 0, line=1)
    talk.step(DoPublish(publish, 0, 1))
    effects = talk.hear(Logged(PUBEND, 1, (Run(1, 50, 2),), (Run(3, 0, 1),)), Accepted(3))
    accepted = [effect.fields for effect in effects if isinstance(effect, Trace)]
    assert [(line["n"], line["pubend"], line["tick"]) for line in accepted] == [
        (1, PUBEND, 50),
        (2, PUBEND, 51),
        (3, PUBEND, 0),
    ]
