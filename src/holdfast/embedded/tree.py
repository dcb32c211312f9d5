"""The tree of a network inside the process: each broker with its parent, the root first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.client.errors import InvalidOption

__all__ = ["BROKERS_MAX", "binary_tree", "checked_tree", "within_reach"]

BROKERS_MAX: Final = 1000


def binary_tree(brokers: int) -> dict[str, str | None]:
    """So many brokers, each with its parent, the root first."""
    if not isinstance(brokers, int) or not 1 <= brokers <= BROKERS_MAX:
        raise InvalidOption("brokers", f"is {brokers!r}; expected a number from 1 to {BROKERS_MAX}")
    return {f"b{i}": f"b{i // 2}" if i > 1 else None for i in range(1, brokers + 1)}


def checked_tree(tree: Mapping[str, str | None]) -> dict[str, str | None]:
    """The tree, its root first, and every broker after its parent."""
    if len(tree) > BROKERS_MAX:
        raise InvalidOption("tree", f"has {len(tree)} brokers, more than {BROKERS_MAX}")
    roots = [name for name, parent in tree.items() if parent is None]
    if len(roots) != 1:
        raise InvalidOption("tree", f"has {len(roots)} roots; expected one broker whose parent is None")
    for name, parent in tree.items():
        if parent is not None and parent not in tree:
            raise InvalidOption("tree", f"the parent of {name!r} is {parent!r}, which is no broker")
    ordered: dict[str, str | None] = {roots[0]: None}
    for name in _below(tree, roots[0]):
        ordered[name] = tree[name]
    lost = [name for name in tree if name not in ordered]
    if lost:
        raise InvalidOption("tree", f"{', '.join(lost)}: not below the root, but in a circle")
    return ordered


def _below(tree: Mapping[str, str | None], root: str) -> list[str]:
    """All brokers below one, each after its parent."""
    found: list[str] = []
    level = [root]
    while level:
        level = [name for name, parent in tree.items() if parent in level]
        found += level
    return found


def within_reach(parents: Mapping[str, str | None], broker: str, hops: int) -> list[tuple[str, str]]:
    """The brokers up to so many hops away, nearer ones first, each with the one before it on the way."""
    found: list[tuple[str, str]] = []
    seen = {broker}
    here = [broker]
    for _ in range(hops):
        farther: list[str] = []
        for name in here:
            above = parents[name]
            below = [child for child, parent in parents.items() if parent == name]
            for other in [*([] if above is None else [above]), *below]:
                if other not in seen:
                    seen.add(other)
                    farther.append(other)
                    found.append((other, name))
        here = farther
    return found
