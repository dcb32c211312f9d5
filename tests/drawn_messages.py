"""Messages of every kind, drawn by Hypothesis, and a plain form in which two of them can be compared."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st

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
    Ended,
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
    Withheld,
)
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
from holdfast.messages.staging import Commit, Committed, Discard, Discarded, Epoch, Share, Stage, Staged
from holdfast.messages.streams import Order, StreamOrder
from holdfast.messages.subscriptions import (
    NO_SEAT,
    Confirmed,
    Durable,
    Partition,
    Refused,
    Resume,
    Seat,
    Subscribe,
    Unsubscribe,
    Withdrawn,
)
from holdfast.messages.ticks import (
    ABSOLUTE,
    Follow,
    Items,
    Lost,
    Nack,
    Start,
    Taken,
    Unfollow,
    Wants,
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


# Durable streams

#: What is counted, as far as anybody believes it.
counts = st.integers(0, 300) | st.just(2**62)
ticks = st.integers(0, 300) | st.sampled_from([1_790_000_000_000_000, 2**62, ABSOLUTE])
steps = st.integers(1, 300) | st.sampled_from([2**16, 2**32, 2**40])
versions = st.integers(0, 5) | st.just(ABSOLUTE)
runs = st.lists(st.builds(Run, counts, ticks, counts), max_size=4).map(tuple)
refusals = st.lists(st.builds(Rejected, numbers, names, names), max_size=3).map(tuple)
ways = names, names  # of a letter: to whom, from whom
durables = st.none() | st.builds(Durable, names, counts)
tokens = st.none() | st.dictionaries(names, st.tuples(counts, counts), max_size=3)
consumed = st.none() | st.dictionaries(names, ticks, max_size=3)
births = st.none() | st.tuples(counts, names)
seats = st.just(NO_SEAT) | st.builds(Seat, counts, names, counts)
resumes = st.none() | st.builds(
    Resume, numbers, st.none() | names, st.none() | ticks, tokens, consumed, births, seats
)


def ascending(count: int) -> st.SearchStrategy[list[int]]:
    """So many ticks."""
    ways = st.tuples(st.integers(0, 2**50), st.lists(steps, min_size=count, max_size=count))
    return ways.map(lambda way: [*accumulate(way[1], initial=way[0])][1:])


def ranges(most: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Ranges of ticks in order; neighbours may touch."""
    edges = st.integers(0, most).flatmap(lambda count: ascending(2 * count))
    return edges.map(lambda edges: [*zip(edges[::2], edges[1::2], strict=True)])


@st.composite
def items(draw: st.DrawFn) -> Items:
    """Ticks that ascend, each item beginning where the last one ended or a little above."""
    said = draw(st.lists(st.none() | publications, max_size=20))
    ticks = draw(ascending(len(said)))
    before = [draw(st.integers(0, ticks[0] - 1)), *ticks[:-1]] if ticks else []
    starts = zip(before, ticks, strict=True)
    los = [draw(st.one_of(st.just(low), st.just(low), st.integers(low, tick - 1))) for low, tick in starts]
    lost = [Lost(after, upto, draw(names)) for after, upto in draw(ranges(4))]
    return Items(draw(names), draw(versions), los, ticks, said, lost, draw(flags))


@st.composite
def requests(draw: st.DrawFn) -> Requests:
    batch = draw(batches)
    before = st.just(BEGIN) | st.integers(0, 2**63)
    previous = draw(st.lists(before, min_size=len(batch), max_size=len(batch)))
    return Requests(draw(names), draw(names), draw(names), previous, batch, draw(versions))


@st.composite
def portions(draw: st.DrawFn) -> Portion:
    """Some of a batch whose ticks ascend, above what is lost."""
    batch = draw(batches)
    ticks = draw(ascending(len(batch)))
    at = [i for i in range(len(batch)) if draw(flags)]
    lost = draw(st.just(0) | st.integers(0, ticks[at[0]] - 1 if at else 2**40))
    upto = (ticks[at[-1]] if at else lost) + draw(st.integers(0, 300))
    common = draw(numbers), draw(names), draw(counts)
    return Portion(*common, batch, ticks, at, upto, lost, draw(names))


attempts = st.text("ab-", min_size=1, max_size=4)
epochs = st.builds(Epoch, names, names, counts)

MESSAGES: dict[type, st.SearchStrategy[Message]] = {
    Hello: st.builds(
        Hello, names, st.sampled_from(Kind), numbers, numbers, names, numbers, numbers, numbers, features
    ),
    Welcome: st.builds(
        Welcome, names, st.sampled_from(Kind), numbers, numbers, numbers, numbers, features, numbers, streams
    ),
    Heartbeat: st.builds(Heartbeat),
    Goodbye: st.builds(Goodbye, st.sampled_from(Farewell), names),
    Subscribe: st.builds(Subscribe, subscriptions, names, vectors, durables, resumes),
    Confirmed: st.builds(Confirmed, subscriptions, partials, tokens, births, seats),
    Refused: st.builds(Refused, subscriptions, names, names),
    Unsubscribe: st.builds(Unsubscribe, subscriptions),
    Withdrawn: st.builds(Withdrawn, subscriptions),
    Publish: st.builds(Publish, batches, names, st.integers(0, 2**63 - 1)),
    Accepted: st.builds(Accepted, numbers, st.lists(numbers, max_size=5).map(tuple)),
    Rejected: st.builds(Rejected, numbers, names, names),
    Publications: picked().map(lambda drawn: Publications(*drawn)),
    Deliveries: deliveries(),
    Wants: st.builds(Wants, versions),
    Follow: st.builds(Follow, names),
    Unfollow: st.builds(Unfollow, names),
    Taken: st.builds(Taken, st.integers(0, 2**63 - 1)),
    Start: st.builds(Start, names, ticks),
    Items: items(),
    Nack: st.builds(Nack, names, versions, ranges(5)),
    Requests: requests(),
    Answers: st.builds(Answers, *ways, names, counts, names, runs, runs, refusals, st.none() | counts),
    Admit: st.builds(Admit, *ways, names, st.none() | ticks),
    Admitted: st.builds(Admitted, *ways, names, counts, ticks, counts, ticks),
    Report: st.builds(Report, *ways, names, counts, ticks, ticks),
    Reported: st.builds(Reported, *ways, names, counts, counts),
    Resign: st.builds(Resign, *ways, names, counts),
    Claim: st.builds(Claim, *ways, names, ticks),
    Fetch: st.builds(Fetch, *ways, names, seats, births, counts),
    Fetched: st.builds(
        Fetched,
        *ways,
        names,
        st.none() | st.dictionaries(names, st.builds(Stand, ticks, ticks, ticks), max_size=3),
        counts,
        counts,
        names,
        seats,
    ),
    Withheld: st.builds(Withheld, *ways, names, seats, names),
    Moved: st.builds(Moved, *ways, names, counts, seats),
    Ended: st.builds(Ended, *ways, names, counts, counts, counts),
    MovedTaken: st.builds(MovedTaken, *ways, names, counts),
    Portion: portions(),
    Credit: st.builds(Credit, numbers, st.integers(1, 2**63)),
    Acknowledge: st.builds(Acknowledge, counts, st.dictionaries(names, ticks, max_size=4), counts),
    Saved: st.builds(Saved, counts, counts),
    Detach: st.builds(Detach, numbers),
    Ousted: st.builds(Ousted, numbers, names),
    Logged: st.builds(Logged, names, counts, runs, runs),
    Stage: st.builds(Stage, attempts, epochs, counts, st.lists(st.binary(max_size=5), max_size=3).map(tuple)),
    Staged: st.builds(Staged, names, counts, names),
    Commit: st.builds(Commit, epochs, st.lists(st.builds(Share, attempts, counts), max_size=3).map(tuple)),
    Committed: st.builds(Committed, epochs, counts, st.booleans(), names),
    Discard: st.builds(Discard, st.lists(attempts, max_size=3).map(tuple)),
    Discarded: st.just(Discarded()),
}


def messages() -> st.SearchStrategy[Message]:
    """Any message at all."""
    return st.one_of(*MESSAGES.values())


def plain(message: Any) -> Any:
    """What a message says, as plain data: a batch is what is picked from it, and copies without marks are none."""
    match message:
        case Publish(batch, home, heard):
            return "Publish", home, heard, batch.publications
        case Publications(stream, batch, at, marks):
            return "Publications", stream, [batch.publications[i] for i in at], _marks(at, marks)
        case Deliveries(stream, batch, at, lists, marks):
            picked = [batch.publications[i] for i in at]
            return "Deliveries", stream, picked, [*lists], _marks(at, marks)
        case Items(pubend, under, los, ticks, said, lost, answers):
            return "Items", (pubend, under, answers), [*los], [*ticks], [*said], [*lost]
        case Requests(to, origin, pubend, previous, batch, heard):
            return "Requests", (to, origin, pubend, heard), [*previous], batch.publications
        case Portion(number, pubend, incarnation, batch, ticks, at, upto, lost, reason):
            rows = [(ticks[i], batch.publications[i]) for i in at]
            return "Portion", (number, pubend, incarnation), rows, upto, (lost, reason)
    assert is_dataclass(message)
    return type(message).__name__, [getattr(message, field.name) for field in fields(message)]


def _marks(at: Any, marks: Any) -> list[Any]:
    return [None] * len(at) if marks is None else [*marks]
