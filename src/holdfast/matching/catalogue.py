"""The catalogue: where each subscription is filed, and what keeps it findable.

Filing starts from the normal form of a condition: ALL and ANY over "this column's value lies in that region". The
*access* of a formula is a set of members such that the formula can only hold if one of them does: of an ALL the access
of its cheapest part, of an ANY the accesses of all its parts together. So disjunctions are found through every branch
and negations through the region where they are false; nothing is ever scanned. The topic competes with the condition: a
topic without wildcards is a value like any other, patterns with wildcards live in a trie, XPath patterns in one
automaton. What is not access becomes a test.

The idea of registering a conjunction under its cheapest part, and a disjunction under all of them, is that of
A-Tree (Ji & Jacobsen, SIGMOD '21); the refused alternatives (counting, bitmaps) lose by a factor of a hundred at
a million subscriptions (docs/decisions/0001).
"""

from __future__ import annotations

from typing import Final, cast

from holdfast.filters.expression import Attribute, Relation, XPath
from holdfast.filters.normal import All, Formula, Member
from holdfast.filters.normal import Column as ColumnKey
from holdfast.filters.region import TRUE_ONLY, comparison_region
from holdfast.filters.topic import TopicPattern
from holdfast.matching.automaton import PatternAutomaton
from holdfast.matching.column import Column, Filed, SymbolTest
from holdfast.matching.posting import CONSTANT, NAN, ONCE, Branch, Bucket, Entry, Extra, Test, WideTest
from holdfast.matching.source import Computation, PathBucket, PathSource, computation
from holdfast.matching.trie import TopicBucket, TopicTrie

__all__ = ["Catalogue"]

LANES_PER_COLUMN: Final = 3
SMOOTHING: Final = 8.0  # subscriptions before the sample is believed
UNKNOWN_PRICE: Final = 0.2  # of a column nobody asked about so far
COMPUTED_PENALTY: Final = (
    0.25  # a computed column is evaluated for every event while something is filed there
)
PATH_FLOOR: Final = 0.02  # reading a document costs more than many candidates
PER_LITERAL_LEVEL: Final = 0.5  # each narrows a topic pattern with wildcards
NO_ACCESS: Final = 1e9
NOTHING: Final[tuple[Member, ...]] = ()


class Catalogue:
    """All the places entries are filed in, and the vector that events are laid out in."""

    def __init__(self) -> None:
        self.always = Bucket()  #: what every event must look at
        self.attributes: dict[str, Column] = {}
        self.computed: dict[ColumnKey, Column] = {}
        self.paths: dict[XPath, PathSource] = {}
        self.path_of: dict[int, PathSource] = {}  #: by the automaton's number
        self.automaton = PatternAutomaton()
        self.trie = TopicTrie()
        #: entries filed under an XPath, by the topic they ask for (None: any); and the paths with filed negations
        self.inside: dict[Bucket | None, int] = {}
        self.outside: dict[PathSource, None] = {}
        #: columns that must be looked at whatever the event has: computed ones, and those asked to be absent
        self.computed_access: dict[Column, None] = {}
        self.absent_access: dict[Column, None] = {}

        self.vector: list[float] = [CONSTANT]
        self.owners: list[Column | None] = [None]  #: of the lanes
        self._free_lanes: list[int] = []
        self.topics = self._new_column(None, "", None)

    # Filing

    def file(self, entry: Entry, pattern: TopicPattern, parts: tuple[Formula, ...]) -> None:
        """File an entry for a topic pattern and all of ``parts``."""
        chosen, access = self.plan(pattern, parts)
        by_topic = chosen < 0
        buckets: list[Bucket] = []
        tests: list[Test] = []
        topic = self._place_topic(pattern, by_topic, buckets, tests)
        settled = -1  # the part that needs no test, because all that finds the entry satisfies it
        exact = True
        if not by_topic:
            for member in access:
                exact = self._place_member(member, buckets) and exact
            if exact and len(access) == width(parts[chosen]):
                settled = chosen
        if len(buckets) > 1:
            buckets = list(dict.fromkeys(buckets))  # branches may share one
        for bucket in buckets:
            self._enter(bucket, entry, topic)
        branches: list[Branch] = []
        for i, part in enumerate(parts):
            if i == settled:
                self._observe(part)
            elif isinstance(part, Member):
                tests.append(self._test(part))
            else:
                branches.append(self._branch(part))
        wildcard = topic if isinstance(topic, TopicBucket) and not by_topic else None
        entry.ask(tests)
        entry.bucket = buckets[0]
        if branches or wildcard is not None or len(buckets) > 1:
            everywhere = tuple(buckets) if len(buckets) > 1 else ()
            # Buckets of one exact member exclude each other; any others may be open at once.
            found_once = len(buckets) == 1 or (exact and len(access) == 1)
            entry.extra = Extra(wildcard, tuple(branches), everywhere, ONCE if found_once else 0)

    def plan(self, pattern: TopicPattern, parts: tuple[Formula, ...]) -> tuple[int, tuple[Member, ...]]:
        """Which part to file an entry under, and the members that are its access; -1 and none for its topic."""
        price, chosen, access = self._topic_price(pattern), -1, NOTHING
        for i, part in enumerate(parts):
            part_price, members = self._access(part)
            if part_price < price:
                price, chosen, access = part_price, i, members
        return chosen, access

    def _access(self, formula: Formula) -> tuple[float, tuple[Member, ...]]:
        """The cheapest set of members of which one must hold if the formula does, and its price."""
        if isinstance(formula, Member):
            return self._member_price(formula), (formula,)
        options = [self._access(part) for part in formula.parts]
        if isinstance(formula, All):
            return min(options, key=price_of)
        return sum([option[0] for option in options]), tuple([m for option in options for m in option[1]])

    def _member_price(self, member: Member) -> float:
        key = member.column
        if isinstance(key, Attribute):
            column = self.attributes.get(key.name)
            return UNKNOWN_PRICE if column is None else column.price(member.region)
        if isinstance(key, XPath):
            source = self.paths.get(key)
            crowd = 0 if source is None else len(source.if_true)
            share = (crowd + 1) / (len(self.paths) + SMOOTHING)
            return max(share, PATH_FLOOR) if member.region == TRUE_ONLY else 1.0
        column = self.computed.get(key)
        return COMPUTED_PENALTY + (UNKNOWN_PRICE if column is None else column.price(member.region))

    def _topic_price(self, pattern: TopicPattern) -> float:
        if not pattern.levels and pattern.rest:
            return NO_ACCESS
        if pattern.is_literal:
            return self.topics.price(comparison_region(Relation.EQ, str(pattern)))
        literal_levels = len([level for level in pattern.levels if level != "+"])
        bucket = self.trie.find(pattern)
        crowd = 0 if bucket is None else len(bucket)
        return max(PER_LITERAL_LEVEL**literal_levels, (crowd + 1) / (len(self.trie) + SMOOTHING))

    def _place_topic(
        self, pattern: TopicPattern, by_topic: bool, buckets: list[Bucket], tests: list[Test]
    ) -> Bucket | None:
        """Make sure the topic is checked: by the bucket, by a test, or by the bucket returned."""
        if not pattern.levels and pattern.rest:
            if by_topic:
                buckets.append(self.always)
            return None
        if pattern.is_literal:
            region = comparison_region(Relation.EQ, str(pattern))
            if by_topic:
                self.topics.place(region, buckets)
                return buckets[0]
            test = self.topics.test(region)
            tests.append(test)
            assert isinstance(test, SymbolTest)
            return test.symbol
        bucket = self.trie.acquire(pattern)
        if by_topic:
            buckets.append(bucket)
        return bucket

    def _place_member(self, member: Member, buckets: list[Bucket]) -> bool:
        """List the buckets for a member; whether whatever finds an entry there satisfies it."""
        if isinstance(member.column, XPath):
            source = self._path(member.column)
            buckets.append(source.if_true if member.region == TRUE_ONLY else source.if_false)
            return True
        return self._column(member.column).place(member.region, buckets)

    def _enter(self, bucket: Bucket, entry: Entry, topic: Bucket | None) -> None:
        """File an entry that asks for ``topic`` in a bucket, and see to it that events look there."""
        if isinstance(bucket, Filed):
            column = bucket.column
            column.file(bucket, entry)
            if column.compute is not None:
                self.computed_access[column] = None
            elif column.absent:
                self.absent_access[column] = None
            return
        bucket.file(entry)
        if isinstance(bucket, PathBucket):
            source = bucket.source
            source.uses += 1
            if bucket is source.if_false:
                self.outside[source] = None
            self.inside[topic] = self.inside.get(topic, 0) + 1

    def _observe(self, part: Formula) -> None:
        """Even what is never tested tells where the numbers of a column lie."""
        if isinstance(part, Member):
            if isinstance(part.column, Attribute):
                self.attributes[part.column.name].observe(part.region)
        else:
            for inner in part.parts:
                self._observe(inner)

    def _test(self, member: Member) -> Test:
        if isinstance(member.column, XPath):
            source = self._path(member.column)
            source.uses += 1
            return WideTest(source, member.region)
        return self._column(member.column).test(member.region)

    def _branch(self, formula: Formula) -> Branch:
        assert not isinstance(formula, Member)
        tests = [self._test(part) for part in formula.parts if isinstance(part, Member)]
        branches = [self._branch(part) for part in formula.parts if not isinstance(part, Member)]
        return Branch(isinstance(formula, All), tuple(tests), tuple(branches))

    # Columns

    def _column(self, key: ColumnKey) -> Column:
        if isinstance(key, Attribute):
            column = self.attributes.get(key.name)
            if column is None:
                column = self.attributes[key.name] = self._new_column(key, key.name, None)
            return column
        column = self.computed.get(key)
        if column is None:
            column = self.computed[key] = self._new_column(key, "", computation(key))
        return column

    def _new_column(self, key: ColumnKey | None, name: str, compute: Computation | None) -> Column:
        if self._free_lanes:
            lane = self._free_lanes.pop()
        else:
            lane = len(self.vector)
            self.vector.extend([NAN] * LANES_PER_COLUMN)
            self.owners.extend([None] * LANES_PER_COLUMN)
        column = Column(key, name, compute, lane)
        for i in range(lane, lane + LANES_PER_COLUMN):
            self.owners[i] = column
        return column

    def _path(self, key: XPath) -> PathSource:
        source = self.paths.get(key)
        if source is None:
            source = self.paths[key] = PathSource(key, self.automaton.acquire(key.path))
            self.path_of[source.pattern] = source
        return source

    # Taking back

    def take_out(self, entry: Entry) -> None:
        """Take an entry out of every bucket, and let go of everything only it needed."""
        topic = self._topic_of(entry)
        tests, extra, buckets = entry.tests(), entry.extra, entry.buckets()
        entry.die()
        for bucket in buckets:
            self._bury(bucket, topic)
        for test in tests:
            self._release(test)
        if extra is not None:
            for branch in extra.branches:
                self._release_branch(branch)
            if extra.topic is not None:
                self.trie.release(cast(TopicBucket, extra.topic))

    def _topic_of(self, entry: Entry) -> Bucket | None:
        """The bucket of the topic an entry asks for, unless it is filed there."""
        if entry.extra is not None and entry.extra.topic is not None:
            return entry.extra.topic
        for test in entry.tests():
            if isinstance(test, SymbolTest) and test.symbol.column is self.topics:
                return test.symbol
        return None

    def _bury(self, bucket: Bucket, topic: Bucket | None) -> None:
        if isinstance(bucket, Filed):
            column = bucket.column
            column.bury(bucket)
            if not column.absent:
                self.absent_access.pop(column, None)
            if not column.filed:
                self.computed_access.pop(column, None)
            self._drop_if_idle(column)
            return
        bucket.bury()
        if isinstance(bucket, TopicBucket):
            self.trie.release(bucket)
        elif isinstance(bucket, PathBucket):
            self.inside[topic] -= 1
            if not self.inside[topic]:
                del self.inside[topic]
            source = bucket.source
            if not source.if_false.entries:
                self.outside.pop(source, None)
            self._release_path(source)

    def _release(self, test: Test) -> None:
        if isinstance(test, WideTest):
            source = test.source
            if isinstance(source, PathSource):
                self._release_path(source)
                return
            column = cast(Column, source)
        else:
            owner = self.owners[test.lane]
            assert owner is not None
            column = owner
        column.release(test)
        self._drop_if_idle(column)

    def _release_branch(self, branch: Branch) -> None:
        for test in branch.tests:
            self._release(test)
        for inner in branch.branches:
            self._release_branch(inner)

    def _release_path(self, source: PathSource) -> None:
        source.uses -= 1
        if not source.uses:
            self.automaton.release(source.pattern)
            del self.path_of[source.pattern]
            del self.paths[source.key]

    def _drop_if_idle(self, column: Column) -> None:
        if column.uses or column is self.topics:
            return
        if column.compute is None:
            del self.attributes[column.name]
        else:
            del self.computed[cast(ColumnKey, column.key)]
        self._free_lanes.append(column.number)


def price_of(option: tuple[float, tuple[Member, ...]]) -> float:
    """The price of an access."""
    return option[0]


def width(part: Formula) -> int:
    """How many members a part has at its own level; 0 if there is more below, so that none can stand for it."""
    if isinstance(part, Member):
        return 1
    return len(part.parts) if all(isinstance(inner, Member) for inner in part.parts) else 0
