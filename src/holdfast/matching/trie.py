"""Topic patterns with wildcards, in a trie over their levels.

A topic is walked down once, with all nodes that are still possible at each level; what it meets is marked with the
event's number, so that entries found by another road can be verified by looking at one field. Topics without
wildcards are not here: they are values, and hashed like any other.
"""

from __future__ import annotations

from holdfast.filters.topic import TopicPattern
from holdfast.matching.posting import Bucket

__all__ = ["TopicBucket", "TopicTrie"]


class _Node:
    __slots__ = ("children", "here", "level", "parent", "plus", "rest")

    def __init__(self, parent: _Node | None, level: str) -> None:
        self.parent = parent
        self.level = level
        self.children: dict[str, _Node] | None = None
        self.plus: _Node | None = None
        self.here: TopicBucket | None = None  #: the pattern that ends at this node
        self.rest: TopicBucket | None = None  #: the pattern that goes on with ``#``

    def child(self, level: str) -> _Node:
        if level == "+":
            if self.plus is None:
                self.plus = _Node(self, level)
            return self.plus
        if self.children is None:
            self.children = {}
        node = self.children.get(level)
        if node is None:
            node = self.children[level] = _Node(self, level)
        return node

    def is_idle(self) -> bool:
        return self.here is None and self.rest is None and self.plus is None and not self.children


class TopicBucket(Bucket):
    """One pattern: the entries filed under it, and how many entries need it, filed here or not."""

    __slots__ = ("node", "stamp", "uses")

    def __init__(self, node: _Node) -> None:
        super().__init__()
        self.node = node
        self.stamp = 0  #: the number of the last event whose topic matched
        self.uses = 0


class TopicTrie:
    """The wildcard patterns in use."""

    def __init__(self) -> None:
        self._root = _Node(None, "")
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find(self, pattern: TopicPattern) -> TopicBucket | None:
        """The bucket of a pattern, if it is in use."""
        node: _Node | None = self._root
        for level in pattern.levels:
            assert node is not None
            node = node.plus if level == "+" else (node.children or {}).get(level)
            if node is None:
                return None
        assert node is not None
        return node.rest if pattern.rest else node.here

    def acquire(self, pattern: TopicPattern) -> TopicBucket:
        """The bucket of a pattern, counted."""
        node = self._root
        for level in pattern.levels:
            node = node.child(level)
        bucket = node.rest if pattern.rest else node.here
        if bucket is None:
            bucket = TopicBucket(node)
            self._count += 1
            if pattern.rest:
                node.rest = bucket
            else:
                node.here = bucket
        bucket.uses += 1
        return bucket

    def release(self, bucket: TopicBucket) -> None:
        """Count one use less; an unused pattern leaves, with the nodes only it needed."""
        bucket.uses -= 1
        if bucket.uses:
            return
        self._count -= 1
        node = bucket.node
        if node.rest is bucket:
            node.rest = None
        else:
            node.here = None
        while node.parent is not None and node.is_idle():
            parent = node.parent
            if node.level == "+":
                parent.plus = None
            else:
                assert parent.children is not None
                del parent.children[node.level]
            node = parent

    def walk(self, levels: list[str], stamp: int) -> list[TopicBucket]:
        """Every pattern that matches, marked with ``stamp``."""
        met: list[TopicBucket] = []
        nodes = [self._root]
        for level in levels:
            below: list[_Node] = []
            for node in nodes:
                if node.rest is not None:
                    met.append(node.rest)
                children = node.children
                if children is not None:
                    child = children.get(level)
                    if child is not None:
                        below.append(child)
                if node.plus is not None:
                    below.append(node.plus)
            nodes = below
            if not below:
                break
        for node in nodes:
            if node.here is not None:
                met.append(node.here)
            if node.rest is not None:
                met.append(node.rest)
        for bucket in met:
            bucket.stamp = stamp
        return met
