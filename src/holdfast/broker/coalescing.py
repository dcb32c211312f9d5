"""Batches that arrived together are worked on together.

A publisher under load sends many small batches between two turns of its broker. Routed one by one they would
leave as many small messages by every way out, and a message costs about as much as ten deliveries. So
neighbouring batches of one turn become one: whatever has accumulated goes on together, and nothing waits for
more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.messages.message import Message
from holdfast.messages.publications import PUBLICATIONS_MAX, Batch, Publication, Publications, Publish

__all__ = ["merged"]

#: A batch that has this many events is not joined by more.
ENOUGH: Final = 1_024


def merged(messages: list[Message]) -> Iterator[Message]:
    """The same messages, runs of ``Publish`` to one home, and of ``Publications`` of one stream, joined."""
    run: list[Publish | Publications] = []
    count = 0  #: of events in the run; an empty message counts too, so that no run is long
    for message in messages:
        if not isinstance(message, Publish | Publications):
            if run:
                yield _joined(run)
                run = []
            yield message
            continue
        more = max(1, _count(message))
        if run and not (_is_alike(run[0], message) and count < ENOUGH and count + more <= PUBLICATIONS_MAX):
            yield _joined(run)
            run = []
        count = count + more if run else more
        run.append(message)
    if run:
        yield _joined(run)


def _is_alike(first: Publish | Publications, message: Publish | Publications) -> bool:
    match first, message:
        case Publish(), Publish():
            return (first.home, first.heard) == (message.home, message.heard)
        case Publications(stream, _, _, None), Publications(other, _, _, None):
            return stream == other
    return False


def _count(message: Publish | Publications) -> int:
    return len(message.batch) if isinstance(message, Publish) else len(message.at)


def _joined(run: list[Publish | Publications]) -> Publish | Publications:
    first = run[0]
    if len(run) == 1:
        return first
    batch = Batch([publication for each in run for publication in _publications(each)])
    if isinstance(first, Publish):
        return Publish(batch, first.home, first.heard)
    return Publications(first.stream, batch, range(len(batch)))


def _publications(message: Publish | Publications) -> list[Publication]:
    batch = message.batch
    return batch.publications if isinstance(message, Publish) else batch.picked(message.at).publications
