"""Pubends hop by hop: who follows whom, what is told, what is asked for, under which versions [BZA §3; design.md §3].

A broker follows a pubend by the next broker on the way to it, if anybody beyond it or here wants to know of it. What
counts as silence is relative to what the follower wants, which it counts (``Wants``): it says so only when the one it
follows has installed all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.beyond import Beyond
from holdfast.broker.durable.course import Course
from holdfast.broker.durable.flow import Flows
from holdfast.broker.durable.names import stream_in
from holdfast.broker.settings import Routing, Settings
from holdfast.broker.statistics import Counters
from holdfast.intervals import Intervals
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import (
    ABSOLUTE,
    ORIGIN,
    SPANS_MAX,
    Follow,
    Items,
    Nack,
    Tick,
    Unfollow,
    Version,
    Wants,
)
from holdfast.node.breach import Breach
from holdfast.node.node import Node
from holdfast.node.station import Station
from holdfast.overlay.transport import Trace
from holdfast.streams.curiosity import Asker
from holdfast.streams.istream import Receiver
from holdfast.streams.storing import ReadEvents, ReadLake
from holdfast.streams.tick import fitting

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Following"]

#: An answer to a nack, or a reading of the log, has about so many events; and so many events are told at once.
ANSWER_MAX: Final = 1_000
ITEMS_MAX: Final = 4_000

#: A reading has such a part of what may be on its way to a neighbour.
READ_PARTS: Final = 2


class Following:
    """Of one broker, all its pubends."""

    def __init__(self, plane: DurablePlane, settings: Settings, node: Node, counters: Counters) -> None:
        self._plane = plane
        self._settings = settings
        self._node = node
        self._counters = counters
        self._floods = settings.routing is Routing.FLOODING
        self._beyond = Beyond(node.table)
        self.flows = Flows(settings.told_bytes, plane.say)
        self._wants_heard: dict[str, Version] = {}  #: by station
        self._wants_said: dict[str, Version] = {}

    def on_gone(self, station: Station) -> None:
        """A session is over, and what was agreed on it."""
        self._wants_heard.pop(station.name, None)
        self._wants_said.pop(station.name, None)
        self.flows.on_gone(station.name)

    def on_taken(self, sender: Station, taken: int) -> None:
        """A follower has room for more.

        :raises Breach: if it cannot have.
        """
        self.flows.on_taken(sender.name, taken)
        for course in self._plane.courses.values():
            if sender.name in course.senders:
                self._plane.touch(course)

    def on_wants(self, sender: Station, version: Version) -> None:
        """A follower wants more than it did, and we have installed all of it.

        :raises Breach: if it counts backwards.
        """
        if version < self._wants_heard.get(sender.name, 0):
            raise Breach(f"version {version} after {self._wants_heard[sender.name]}")
        self._wants_heard[sender.name] = version
        for course in self._plane.courses.values():
            silence = course.become_version(sender.name, version, self.version)
            if silence is not None:
                self._plane.say(sender.name, silence)

    def on_follow(self, sender: Station, pubend: str) -> None:
        """A neighbour follows a pubend by us.

        :raises Breach: if it is none of ours.
        """
        if stream_in(pubend) not in self._plane.streams:
            raise Breach(f"{pubend} is a pubend of no durable stream here")
        course = self._plane.course(pubend)
        under = ABSOLUTE if self._floods else self._wants_heard.get(sender.name, 0)
        sender_of = course.follow(sender.name, under, self.version)
        self._plane.say(sender.name, sender_of.start)
        self._plane.touch(course)

    @property
    def version(self) -> Version:
        """What we want, counted."""
        return ABSOLUTE if self._floods else self._node.table.additions

    def find_ways(self, pubends: dict[str, None]) -> None:
        """Follow by the next on the way, whom we do not follow yet; and say what we want."""
        for pubend in pubends:
            course = self._plane.courses[pubend]
            if course.is_own:
                continue
            station = self._plane.toward(self._plane.ways.get(pubend)) if course.is_wanted else None
            name = None if station is None else station.name
            if name == course.upstream:
                continue
            if course.upstream is not None and (name is not None or not course.is_wanted):
                course.receivers.pop(course.upstream, None)
                self._plane.say(course.upstream, Unfollow(pubend))
                course.upstream = None
            if name is not None:
                self._say_wants(name)
                course.upstream = name
                course.receivers[name] = Receiver(course.knowledge)
                course.curiosity.become_reopened()
                self._plane.say(name, Follow(pubend))
        self.say_all_wants()

    def say_all_wants(self) -> None:
        """Tell those whom we follow what we want, if that has changed and they have it all."""
        followed = {course.upstream: None for course in self._plane.courses.values()}
        for name in followed:
            if name is not None:
                self._say_wants(name)

    def _say_wants(self, name: str) -> None:
        """Tell a neighbour that it has installed all we want, once it has [KJ §4.2.2: not before a partition ends]."""
        is_withheld = any(name in partition.fragment for partition in self._node.spread.partitions.open)
        if not self._floods and not is_withheld and self.version > self._wants_said.get(name, 0):
            self._wants_said[name] = self.version
            self._plane.say(name, Wants(self.version))

    def pass_on(self, course: Course) -> None:
        """What is new, to those who follow and have room for it."""
        self._pass_on_items(course)
        self._pass_on_start(course)

    def _pass_on_start(self, course: Course) -> None:
        """That a pubend had come farther than we know when we began to follow it: it may be at rest."""
        told = course.edge_told()
        for name, sender in course.senders.items() if told > course.knowledge.edge else ():
            if course.knowledge.edge <= sender.edge < told:
                silence = sender.come_to(told)
                if len(silence):
                    self._say_items(name, silence)
                self._plane.say(name, sender.start)

    def _pass_on_items(self, course: Course) -> None:
        knowledge = course.knowledge
        behind = {
            name: each
            for name, each in course.senders.items()
            if each.edge < knowledge.edge and self.flows.room(name) > 0
        }
        if not behind:
            return
        lowest = min(sender.edge for sender in behind.values())
        ticks, publications = knowledge.events(lowest, knowledge.edge)
        wanted = self._wanted(course, behind, ticks, publications)
        for name, sender in behind.items():
            at = [i for i in wanted[name] if ticks[i] > sender.edge]
            events = [publications[i] for i in at]
            fits = fitting(events, self.flows.room(name))
            upto = knowledge.edge
            if fits < len(at):
                upto = ticks[at[fits]] - 1
                self._plane.touch_later(course)
            items = sender.pass_on([ticks[i] for i in at[:fits]], events[:fits], upto)
            if len(items) or items.lost:
                self._say_items(name, items)

    def _wanted(
        self,
        course: Course,
        followers: Iterable[str],
        ticks: Sequence[Tick],
        publications: Sequence[Publication],
    ) -> dict[str, list[int]]:
        """By follower the positions of what somebody beyond it wants."""
        if self._floods:
            return {name: list(range(len(publications))) for name in followers}
        return self._beyond.wanted(followers, course.contents(ticks, publications))

    def _say_items(self, name: str, items: Items) -> None:
        if self._plane.station(name) is None:
            return
        self.flows.on_told(name, items)
        if self._settings.trace_forwards:
            for publication in items.publications:
                if publication is not None:
                    copy = {"from": self._plane.name, "to": name, "publisher": publication.publisher}
                    self._plane.emit(Trace("forward", {**copy, "n": publication.n, "again": items.answers}))
        self._counters.forwarded += sum(publication is not None for publication in items.publications)
        for start in range(0, max(1, len(items)), ITEMS_MAX):
            end = start + ITEMS_MAX
            part = Items(
                items.pubend,
                items.under,
                items.los[start:end],
                items.ticks[start:end],
                items.publications[start:end],
                items.lost if not start else (),
                items.answers,
            )
            self._plane.say(name, part)

    def answer(self, course: Course) -> None:
        """What followers have asked for and is known by now."""
        answers = course.curiosity.answers(course.knowledge, ANSWER_MAX, room=self._room)
        for (asker, version), answer in answers:
            assert isinstance(asker, str)
            sender = course.senders.get(asker)
            if sender is None:
                continue
            is_raw = version == ABSOLUTE
            wanted = (
                range(len(answer.ticks))
                if is_raw
                else self._wanted(course, [asker], answer.ticks, answer.publications)[asker]
            )
            self._say_items(asker, answer.items(sender.under_of(version), list(wanted)))
            if answer.is_cut:
                self._plane.touch_later(course)

    def _room(self, asker: Asker) -> int:
        assert isinstance(asker, str)
        return self.flows.room(asker)

    def ask(self, course: Course) -> None:
        """What is missing, of the next on the way, or of the log and the lake."""
        if course.is_own:
            self._read(course)
            return
        if course.upstream is None:
            return
        for nack in course.curiosity.next_nacks(course.knowledge, self._plane.now, self._room):
            for start in range(0, len(nack.spans), SPANS_MAX):
                self._plane.say(
                    course.upstream, Nack(nack.pubend, nack.version, nack.spans[start : start + SPANS_MAX])
                )

    def _read(self, course: Course) -> None:
        """What is missing of a pubend here: in its log, and in the lake, of what the log has given up.

        Each is read by itself: a lake may take long. What is asked for while the one in question is busy is asked for
        again when that has answered, as everything is (``Curiosity.become_reopened``).
        """
        may_read = not course.is_reading
        may_read_lake = course.has_lake and not course.is_reading_lake
        if not may_read and not may_read_lake:
            return
        nacks = course.curiosity.next_nacks(course.knowledge, self._plane.now, self._room)
        wanted = Intervals(span for nack in nacks for span in nack.spans)
        in_lake_through = self._plane.own[course.pubend].in_lake_through
        above, below = wanted.within(in_lake_through, ABSOLUTE), wanted.within(ORIGIN, in_lake_through)
        if above and may_read:
            course.is_reading = True
            bytes_max = self._settings.told_bytes // READ_PARTS
            self._plane.emit(ReadEvents(course.pubend, above, ANSWER_MAX, bytes_max))
        if below and may_read_lake and self._plane.now >= course.lake_again_at:
            course.is_reading_lake = True
            self._plane.emit(ReadLake(course.pubend, below, ANSWER_MAX))
