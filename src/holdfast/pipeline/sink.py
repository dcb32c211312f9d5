"""DataFrames and streaming queries of Spark, written into a durable stream exactly once [contracts.md §7].

A task stages its rows at the application's home under an attempt of its own, and tells the driver of it when they are
on disk. The driver's commit names the attempts that count. So a task that is run again, with whatever rows, leaves
nothing but an attempt nobody names; and an epoch that is replayed after its commit is found there (decision 0018).

The application of a streaming query is its id, its versions are the numbers of its batches, both of which outlive the
query in its checkpoint. Of a batch they are options; without them a batch is an application by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from holdfast.messages.staging import Epoch, Share
from holdfast.pipeline.conversation import Conversation
from holdfast.pipeline.homes import Homes
from holdfast.pipeline.sink_rows import Rows

__all__ = ["Attempted", "HoldfastStreamWriter", "HoldfastWriter", "Staging"]

_QUERY = "sql.streaming.queryId"
_BATCH = "streaming.sql.batchId"


@dataclass(frozen=True)
class Attempted(WriterCommitMessage):
    """What a task has staged."""

    app: str
    version: int
    attempt: str
    events: int


@dataclass(frozen=True, slots=True)
class Staging:
    """What tasks and driver do, wherever the epoch has its name from. Nothing is kept between two calls."""

    rows: Rows
    homes: Homes

    def stage(self, app: str, version: int, batches: Iterator[Any]) -> Attempted:
        """Stage rows, as a task; on disk when this returns.

        :raises BadRow: if a row cannot be an event; nothing is left of the others.
        :raises CannotPublish: if the broker will not have them, or does not answer.
        """
        attempt, epoch = uuid4().hex, Epoch(self.homes.stream, app, version)
        events = 0
        with Conversation(f"spark-{attempt}", self.homes.of(app)) as conversation:
            writer = conversation.writer
            try:
                for batch in batches:
                    packed = self.rows.packed(batch, time.time_ns())
                    events += len(packed)
                    if packed:
                        writer.stage(attempt, epoch, packed)
                        conversation.wait(lambda: writer.has_room)
                if events:
                    conversation.wait(lambda: writer.is_answered)
            except BaseException:
                if events and writer.problem is None:
                    writer.discard([attempt])
                    conversation.wait(lambda: writer.is_answered)
                raise
        return Attempted(app, version, attempt, events)

    def commit(self, attempts: Sequence[Attempted | None]) -> None:
        """Make an epoch visible, as the driver.

        :raises CannotPublish: if it is not known to be.
        """
        counted = [each for each in attempts if each is not None and each.events]
        if counted:
            app, version = counted[0].app, counted[0].version
            with Conversation(f"spark-{uuid4().hex}", self.homes.of(app)) as conversation:
                shares = [Share(each.attempt, each.events) for each in counted]
                conversation.writer.commit(Epoch(self.homes.stream, app, version), shares)
                conversation.wait(lambda: conversation.writer.is_answered)

    def discard(self, attempts: Sequence[Attempted | None]) -> None:
        """Give up an epoch, as the driver."""
        counted = [each for each in attempts if each is not None and each.events]
        if counted:
            with Conversation(f"spark-{uuid4().hex}", self.homes.of(counted[0].app)) as conversation:
                conversation.writer.discard([each.attempt for each in counted])
                conversation.wait(lambda: conversation.writer.is_answered)


class HoldfastWriter(DataSourceArrowWriter):
    """Of a batch."""

    def __init__(self, staging: Staging, app: str | None, version: int | None) -> None:
        self._staging = staging
        self._app = app or f"spark-{uuid4().hex}"
        self._version = version or 0

    def write(self, iterator: Iterator[Any]) -> Attempted:
        """The rows of a task."""
        return self._staging.stage(self._app, self._version, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks are done."""
        self._staging.commit(_attempted(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """One has failed for good."""
        self._staging.discard(_attempted(messages))


class HoldfastStreamWriter(DataSourceStreamArrowWriter):
    """Of a streaming query. Its commit may run in another process than its tasks: they tell it who they are."""

    def __init__(self, staging: Staging) -> None:
        self._staging = staging

    def write(self, iterator: Iterator[Any]) -> Attempted:
        """The rows of a task."""
        context = TaskContext.get()
        assert context is not None, "tasks have a context"
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        assert query is not None, "Spark tells tasks which query they are of"
        assert batch is not None, "and which batch"
        return self._staging.stage(query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """All tasks of a batch are done."""
        self._staging.commit(_attempted(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """One of them has failed for good."""
        self._staging.discard(_attempted(messages))


def _attempted(messages: list[WriterCommitMessage | None]) -> list[Attempted]:
    return [each for each in messages if isinstance(each, Attempted)]
