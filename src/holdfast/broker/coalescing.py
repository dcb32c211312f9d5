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
    """The same messages, runs of ``Publish``, and of ``Publications`` of one stream, joined."""
    run: list[Publish | Publications] = []
    for message in messages:
        if run and _may_join(run, message):
            assert isinstance(message, Publish | Publications)
            run.append(message)
            continue
        if run:
            yield _joined(run)
            run = []
        if isinstance(message, Publish | Publications):
            run = [message]
        else:
            yield message
    if run:
        yield _joined(run)


def _may_join(run: list[Publish | Publications], message: Message) -> bool:
    count = sum(_count(each) for each in run)
    match run[0], message:
        case Publish(), Publish():
            return count < ENOUGH and count + _count(message) <= PUBLICATIONS_MAX
        case Publications(stream, _, _, None), Publications(other, _, _, None):
            return stream == other and count < ENOUGH and count + _count(message) <= PUBLICATIONS_MAX
    return False


def _count(message: Publish | Publications) -> int:
    return len(message.batch) if isinstance(message, Publish) else len(message.at)


def _joined(run: list[Publish | Publications]) -> Publish | Publications:
    first = run[0]
    if len(run) == 1:
        return first
    batch = Batch([publication for each in run for publication in _publications(each)])
    if isinstance(first, Publish):
        return Publish(batch)
    return Publications(first.stream, batch, range(len(batch)))


def _publications(message: Publish | Publications) -> list[Publication]:
    batch = message.batch
    return batch.publications if isinstance(message, Publish) else batch.picked(message.at).publications
