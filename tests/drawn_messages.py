"""Messages of every kind, drawn by Hypothesis, and a plain form in which two of them can be compared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from hypothesis import strategies as st

from holdfast.identity import Element, SubscriptionId
from holdfast.messages.message import Message
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
    Tag,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Welcome
from holdfast.messages.streams import Order, StreamOrder
from holdfast.messages.subscriptions import (
    Confirmed,
    Partition,
    Refused,
    Subscribe,
    Unsubscribe,
    Withdrawn,
)

__all__ = ["MESSAGES", "messages", "plain"]

#: Text as UTF-8 has it: everything but lone surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.one_of(
    st.integers(0, 300),
    st.sampled_from([-1, 2**16, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)]),
)
bodies = st.binary(max_size=60)
flags = st.booleans()

elements = st.builds(Element, names, numbers, st.none() | numbers)
vectors = st.lists(elements, max_size=4).map(tuple)
subscriptions = st.builds(SubscriptionId, names, numbers, numbers)
partitions = st.builds(Partition, names, numbers, numbers, st.lists(names, max_size=3).map(tuple))
partials = st.lists(partitions, max_size=3).map(tuple)
features = st.lists(names, max_size=3).map(tuple)
streams = st.lists(st.builds(StreamOrder, names, st.sampled_from(Order)), max_size=3).map(tuple)
tags = st.lists(st.builds(Tag, names, numbers, numbers, flags), max_size=3).map(tuple)
copies = st.none() | st.builds(Copy, numbers, vectors, tags)
publications = st.builds(Publication, names, numbers, bodies)
batches = st.lists(publications, max_size=20).map(Batch)


@st.composite
def picked(draw: st.DrawFn) -> tuple[str, Batch, list[int], list[Any] | None]:
    """A stream, a batch, positions in it, and copies for some of them."""
    batch = draw(batches)
    at = [i for i in range(len(batch)) if draw(flags)]
    marks = draw(st.none() | st.lists(copies, min_size=len(at), max_size=len(at)))
    return draw(names), batch, at, marks


@st.composite
def deliveries(draw: st.DrawFn) -> Deliveries:
    stream, batch, at, marks = draw(picked())
    lists = st.lists(numbers, max_size=20).map(tuple)
    return Deliveries(stream, batch, at, [draw(lists) for _ in at], marks)


MESSAGES: dict[type, st.SearchStrategy[Message]] = {
    Hello: st.builds(
        Hello, names, st.sampled_from(Kind), numbers, numbers, names, numbers, numbers, numbers, features
    ),
    Welcome: st.builds(
        Welcome, names, st.sampled_from(Kind), numbers, numbers, numbers, numbers, features, numbers, streams
    ),
    Heartbeat: st.builds(Heartbeat),
    Goodbye: st.builds(Goodbye, st.sampled_from(Farewell), names),
    Subscribe: st.builds(Subscribe, subscriptions, names, vectors),
    Confirmed: st.builds(Confirmed, subscriptions, partials),
    Refused: st.builds(Refused, subscriptions, names),
    Unsubscribe: st.builds(Unsubscribe, subscriptions),
    Withdrawn: st.builds(Withdrawn, subscriptions),
    Publish: st.builds(Publish, batches),
    Accepted: st.builds(Accepted, numbers, st.lists(numbers, max_size=5).map(tuple)),
    Rejected: st.builds(Rejected, numbers, names),
    Publications: picked().map(lambda drawn: Publications(*drawn)),
    Deliveries: deliveries(),
}


def messages() -> st.SearchStrategy[Message]:
    """Any message at all."""
    return st.one_of(*MESSAGES.values())


def plain(message: Any) -> Any:
    """What a message says, as plain data: a batch is what is picked from it, and copies without marks are none."""
    match message:
        case Publish(batch):
            return "Publish", batch.publications
        case Publications(stream, batch, at, marks):
            return "Publications", stream, [batch.publications[i] for i in at], _marks(at, marks)
        case Deliveries(stream, batch, at, lists, marks):
            picked = [batch.publications[i] for i in at]
            return "Deliveries", stream, picked, [*lists], _marks(at, marks)
    assert is_dataclass(message)
    return type(message).__name__, [getattr(message, field.name) for field in fields(message)]


def _marks(at: Any, marks: Any) -> list[Any]:
    return [None] * len(at) if marks is None else [*marks]
