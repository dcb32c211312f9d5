"""Messages: all that is ever said, as values nobody changes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, is_dataclass
from typing import get_args

import pytest

from holdfast.identity import Element, EventId, SubscriptionId
from holdfast.messages import durable, overlay, publications, session, staging, streams, subscriptions, ticks
from holdfast.messages.durable import Letter
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Copy, Publication, Tag
from holdfast.messages.session import VERSION, Farewell, Goodbye, Hello, Invitation, Kind, Overlay
from holdfast.messages.streams import StreamOrder
from holdfast.messages.subscriptions import Durable, Grave, Known, Partition, Resume, Subscribe

#: What messages are made of, and is never said alone.
PARTS = {Batch, Copy, Tag, Partition, Known, Grave, StreamOrder, Overlay, Invitation, Durable, Resume, Letter}


def test_every_message_of_every_protocol_is_in_the_union() -> None:
    declared = {
        thing
        for module in (session, subscriptions, publications, streams, overlay, durable, staging, ticks)
        for thing in vars(module).values()
        if isinstance(thing, type) and is_dataclass(thing) and thing.__module__ == module.__name__
    }
    assert declared - PARTS == set(get_args(Message))


@pytest.mark.parametrize("kind", get_args(Message), ids=lambda kind: kind.__name__)
def test_messages_are_frozen_and_have_no_room_for_more(kind: type) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert hasattr(kind, "__slots__")


def test_a_message_cannot_be_changed() -> None:
    goodbye = Goodbye(Farewell.LEAVING, "")
    with pytest.raises(FrozenInstanceError):
        goodbye.reason = "other"  # type: ignore[misc]


def test_a_hello_offers_the_version_we_speak() -> None:
    hello = Hello("n", Kind.CLIENT, 1, 1, "p", 1)
    assert hello.version_min <= VERSION <= hello.version_max


def test_incarnations_are_compared_before_numbers() -> None:
    assert SubscriptionId("s", 2, 1) > SubscriptionId("s", 1, 9)
    assert Element("n", 2, 1) > Element("n", 1, 9)


def test_ids_read_as_people_write_them() -> None:
    assert str(Publication("p", 7, b"").id) == str(EventId("p", 7)) == "p#7"
    assert str(Subscribe(SubscriptionId("s", 2, 3), "#", ()).subscription) == "s.2#3"
