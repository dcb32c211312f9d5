"""The Publish commands of one publisher: what is due when, and under which number.

Each command has its own timetable, one event per interval from when it began; a publisher that could not keep
up catches up as fast as the window allows. What is due is published in the order of the timetables, ties in the
order of the commands, so that the same script gives the same numbers in both worlds, however late a real timer
fires.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from holdfast.clock import Instant
from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.events.topic import canonical_topic
from holdfast.messages.publications import Publication
from holdfast.overlay.transport import Trace
from holdfast.scenarios.actor_commands import Done, DoPublish, Reserve
from holdfast.scenarios.workload import Drawn, draws

__all__ = ["RESERVED_BLOCK", "Publishing"]

#: Numbers are reserved this many at a time; a crash wastes at most so many.
RESERVED_BLOCK: Final = 1_000


@dataclass(slots=True)
class _Running:
    ticket: int
    topic: str
    interval_ns: int
    due: Instant
    left: int
    drawn: Iterator[Drawn]


class Publishing:
    """Gives out publications as they fall due.

    Invariant: ``last_number`` is at most ``reserved``, which has been asked to be on disk.
    """

    def __init__(self, publisher: str, first_number: int) -> None:
        self.publisher = publisher
        self.last_number = first_number - 1
        self.reserved = first_number - 1
        self._running: list[_Running] = []

    @property
    def is_idle(self) -> bool:
        """Whether everything asked for has been given out."""
        return not self._running

    def start(self, command: DoPublish, now: Instant) -> None:
        """Begin a Publish command; its first event is due at its start, or now."""
        publish = command.publish
        due = now if command.start is None else command.start
        drawn = draws(publish, command.seed)
        topic = canonical_topic(publish.topic)
        self._running.append(_Running(command.ticket, topic, publish.interval_ns, due, publish.count, drawn))

    def stop(self) -> None:
        """Publish nothing more."""
        self._running.clear()

    def next_due(self) -> Instant | None:
        """When something is to be published next."""
        return min([running.due for running in self._running], default=None)

    def take_due(self, now: Instant, room: int, effects: list[Any]) -> tuple[list[Publication], list[Done]]:
        """What is due now, ``room`` events at most, and which commands are done with that.

        What must be on disk and in the trace before goes to ``effects``.
        """
        taken: list[Publication] = []
        done: list[Done] = []
        while self._running and len(taken) < room:
            running = min(self._running, key=_due)
            if running.due > now:
                break
            taken.append(self._next(running, effects))
            running.due += running.interval_ns
            running.left -= 1
            if not running.left:
                self._running.remove(running)
                done.append(Done(running.ticket))
        return taken, done

    def _next(self, running: _Running, effects: list[Any]) -> Publication:
        self.last_number += 1
        n = self.last_number
        if n > self.reserved:
            self.reserved = n + RESERVED_BLOCK - 1
            effects.append(Reserve(self.reserved))
        attributes, payload, content_type = next(running.drawn)
        fields = {"publisher": self.publisher, "n": n, "topic": running.topic, "attributes": attributes}
        effects.append(Trace("publish", fields))
        return Publication(
            self.publisher,
            n,
            pack(Event(running.topic, attributes, payload, content_type, self.publisher, n)),
        )


def _due(running: _Running) -> Instant:
    return running.due
