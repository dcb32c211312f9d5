"""Where computed values come from: expressions, comparisons, LIKE and SHARD as functions of an event, and XPath."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from holdfast.events.value import Value
from holdfast.filters.evaluate import compile_condition, compile_expression, shard_of
from holdfast.filters.expression import Arithmetic, Comparison, Like, Signed, XPath
from holdfast.filters.normal import Column as ColumnKey
from holdfast.filters.normal import ShardOf
from holdfast.filters.subject import Subject
from holdfast.matching.posting import Bucket, Source

__all__ = ["Computation", "PathBucket", "PathSource", "computation"]

Computation: TypeAlias = Callable[[Subject], Value | None]


class PathSource(Source):
    """Whether one XPath pattern selects something in the event's document."""

    __slots__ = ("if_false", "if_true", "key", "pattern")

    def __init__(self, key: XPath, pattern: int) -> None:
        super().__init__()
        self.key = key
        self.pattern = pattern
        self.if_true = PathBucket(self)
        self.if_false = PathBucket(self)


class PathBucket(Bucket):
    """What is filed under an XPath, or under its negation."""

    __slots__ = ("source",)

    def __init__(self, source: PathSource) -> None:
        super().__init__()
        self.source = source


def computation(key: ColumnKey) -> Computation:
    """How the value of a computed column follows from an event."""
    if isinstance(key, (Comparison, Like)):
        return compile_condition(key)
    if isinstance(key, ShardOf):
        return ShardComputation(key.attribute.name, key.count)
    assert isinstance(key, (Signed, Arithmetic))
    return compile_expression(key)


class ShardComputation:
    """The shard of an attribute's value."""

    __slots__ = ("count", "name")

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count

    def __call__(self, subject: Subject) -> Value | None:
        """The number of the shard, or None."""
        return shard_of(subject.attributes.get(self.name), self.count)
