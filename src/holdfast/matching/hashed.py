"""The index: each subscription filed under the most selective thing it asks for, the rest verified.

Where a subscription is filed is the business of ``catalogue``; here events are matched. The event is laid out in the
vector, which at the same time finds the buckets its values lead to; then every entry in them is tested. The payload is
parsed only if an entry that passed all its other tests asks about it, or if one filed under an XPath could match the
event's topic; and then once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from holdfast.events.event import Content
from holdfast.events.topic import topic_levels
from holdfast.events.value import Value
from holdfast.filters.expression import Filter
from holdfast.filters.normal import NEVER, All, Formula, Member, normalise
from holdfast.filters.subject import Subject
from holdfast.matching.catalogue import Catalogue
from holdfast.matching.column import Column
from holdfast.matching.posting import NAN, ONCE, Branch, Entry, Extra, Test, WideTest
from holdfast.matching.source import PathSource
from holdfast.matching.trie import TopicBucket

__all__ = ["HashedIndex"]


class HashedIndex:
    """A ``MatchingIndex`` whose cost follows what matches, not what is subscribed."""

    def __init__(self) -> None:
        self._entries: list[Entry | None] = []
        self._free: list[int] = []
        self._catalogue = Catalogue()

        # The event at hand. What carries its number belongs to it.
        self._stamp = 0
        self._event: Content | None = None
        self._subject: Subject | None = None
        self._matched: set[int] | None = None
        self._matched_stamp = 0

    def __len__(self) -> int:
        return len(self._entries) - len(self._free)

    # Subscriptions

    def add(self, filter: Filter) -> int:
        """Add a subscription and return its id."""
        if self._free:
            subscription = self._free.pop()
        else:
            subscription = len(self._entries)
            self._entries.append(None)
        entry = Entry(subscription)
        self._entries[subscription] = entry
        formula = normalise(filter.condition)
        if formula == NEVER:
            entry.die()  # it can never be true, so it is filed nowhere
        else:
            self._catalogue.file(entry, filter.pattern, parts_of(formula))
        return subscription

    def remove(self, subscription: int) -> None:
        """Remove a subscription; KeyError if there is none with this id."""
        entry = self._entries[subscription] if 0 <= subscription < len(self._entries) else None
        if entry is None:
            raise KeyError(subscription)
        self._entries[subscription] = None
        self._free.append(subscription)
        if entry.bucket is not None:
            self._catalogue.take_out(entry)

    def access_of(self, filter: Filter) -> tuple[Member, ...] | None:
        """What a filter would be filed under if it were added now: members, none for its topic, None for never."""
        formula = normalise(filter.condition)
        return None if formula == NEVER else self._catalogue.plan(filter.pattern, parts_of(formula))[1]

    # Matching

    def match(self, events: Sequence[Content]) -> list[list[int]]:
        """For each event the ids of the matching subscriptions, ascending."""
        results = [self._match(event) for event in events]
        self._event = self._subject = None  # a large payload must not stay until the next event
        return results

    def _match(self, event: Content) -> list[int]:
        self._stamp += 1
        self._event = event
        self._subject = None
        touched: list[int] = []
        found = self._find(event, touched)
        matches: list[int] = []
        vector = self._catalogue.vector
        for entries in found:
            for entry in entries:
                value = vector[entry.lane]
                # Bounds that are NaN mean that the first test is a wide one; it is asked among the others.
                if not (entry.lo <= value < entry.hi) and entry.lo == entry.lo:
                    continue
                if entry.more and not self._hold(entry.more):
                    continue
                extra = entry.extra
                if extra is None or self._holds_extra(extra):
                    matches.append(entry.subscription)
        for lane in touched:
            vector[lane] = NAN
        matches.sort()
        return matches

    def _hold(self, tests: tuple[Test, ...]) -> bool:
        vector = self._catalogue.vector
        for test in tests:
            value = vector[test.lane]
            # A wide test has NaN for bounds and is asked in full; any other has failed here.
            if not (test.lo <= value < test.hi) and (test.lo == test.lo or not self._holds_wide(test)):
                return False
        return True

    def _find(self, event: Content, touched: list[int]) -> list[list[Entry]]:
        """Lay the event out in the vector and collect the entries its values, topic and payload lead to."""
        vector = self._catalogue.vector
        found: list[list[Entry]] = []
        if self._catalogue.always.entries:
            found.append(self._catalogue.always.entries)
        columns = self._catalogue.attributes
        if columns:
            attributes = event.attributes
            for name, value in (attributes if isinstance(attributes, dict) else dict(attributes)).items():
                column = columns.get(name)
                if column is not None:
                    column.collect(value, vector, touched, found)
        for column in self._catalogue.absent_access:
            if column.name not in event.attributes:
                found.append(column.absent[None].entries)
        if self._catalogue.computed_access:
            self._find_computed(touched, found)
        if self._catalogue.topics.uses:
            self._catalogue.topics.collect(event.topic, vector, touched, found)
        if len(self._catalogue.trie) or self._catalogue.inside:
            self._find_by_pattern(event, found)
        return found

    def _find_computed(self, touched: list[int], found: list[list[Entry]]) -> None:
        for column in self._catalogue.computed_access:
            value = self._value(column)
            if value is not None:
                column.collect(value, self._catalogue.vector, touched, found)
            elif column.absent:
                found.append(column.absent[None].entries)

    def _find_by_pattern(self, event: Content, found: list[list[Entry]]) -> None:
        inside = self._catalogue.inside
        looks_inside = None in inside
        if len(self._catalogue.trie):
            for bucket in self._catalogue.trie.walk(topic_levels(event.topic), self._stamp):
                if bucket.entries:
                    found.append(bucket.entries)
                looks_inside = looks_inside or bucket in inside
        if inside and (looks_inside or self._catalogue.topics.strings.get(event.topic) in inside):
            self._find_by_path(found)

    def _find_by_path(self, found: list[list[Entry]]) -> None:
        matched = self._matched_paths()
        if matched is None:
            return
        for pattern in matched:
            bucket = self._catalogue.path_of[pattern].if_true
            if bucket.entries:
                found.append(bucket.entries)
        for source in self._catalogue.outside:
            if source.pattern not in matched:
                found.append(source.if_false.entries)

    def _matched_paths(self) -> set[int] | None:
        """The XPath patterns that select something in the event's document; None if it has none."""
        if self._matched_stamp != self._stamp:
            self._matched_stamp = self._stamp
            document = self._whole_subject().document
            self._matched = None if document is None else self._catalogue.automaton.match(document)
        return self._matched

    def _whole_subject(self) -> Subject:
        if self._subject is None:
            assert self._event is not None
            self._subject = Subject(self._event)
        return self._subject

    def _value(self, column: Column) -> Value | None:
        if column.compute is None:
            assert self._event is not None
            return self._event.attributes.get(column.name)
        if column.stamp != self._stamp:
            column.stamp = self._stamp
            column.memo = column.compute(self._whole_subject())
        return column.memo

    def _holds_wide(self, test: Test) -> bool:
        wide = cast(WideTest, test)
        source = wide.source
        if isinstance(source, PathSource):
            matched = self._matched_paths()
            return wide.region.contains(None if matched is None else source.pattern in matched)
        return wide.region.contains(self._value(cast(Column, source)))

    def _holds_extra(self, extra: Extra) -> bool:
        if extra.stamp != ONCE:
            if extra.stamp == self._stamp:
                return False  # looked at before: it is in several buckets
            extra.stamp = self._stamp
        if extra.topic is not None and cast(TopicBucket, extra.topic).stamp != self._stamp:
            return False
        return all(self._holds(branch) for branch in extra.branches)

    def _holds_test(self, test: Test) -> bool:
        if test.lo == test.lo:
            return test.lo <= self._catalogue.vector[test.lane] < test.hi
        return self._holds_wide(test)

    def _holds(self, branch: Branch) -> bool:
        """ALL: nothing in it fails. ANY: something in it holds."""
        decisive = not branch.conjunctive
        for test in branch.tests:
            if self._holds_test(test) == decisive:
                return decisive
        for inner in branch.branches:
            if self._holds(inner) == decisive:
                return decisive
        return branch.conjunctive


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """What must hold together."""
    return formula.parts if isinstance(formula, All) else (formula,)
