"""How much somebody keeps: the elements of every container that can be reached from an object.

Nothing is listed by hand, so nothing is forgotten: a container that somebody adds tomorrow is counted as well.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from functools import cache
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

__all__ = ["growth", "measure"]

#: What is not looked into: programs, and values that contain nothing.
_OPAQUE = (type, FunctionType, MethodType, ModuleType, str, bytes, int, float, bool, type(None))
_SEQUENCES = (list, tuple, set, frozenset, deque)
_ATTRIBUTES = (MemberDescriptorType, GetSetDescriptorType)  #: of slots, of Structs, of compiled classes


def measure(root: object, *, but: object = None) -> Counter[str]:
    """By the class and the attribute that holds them, the elements in all containers; containers in them included.

    ``but`` is not looked into, nor what can be reached by it only.
    """
    found: Counter[str] = Counter()
    seen: set[int] = {id(but)}
    kept: list[object] = []  # so that no id is used again
    todo: list[tuple[str, object]] = [("", root)]
    while todo:
        where, each = todo.pop()
        if isinstance(each, _OPAQUE) or id(each) in seen:
            continue
        seen.add(id(each))
        kept.append(each)
        if isinstance(each, dict):
            found[where] += len(each)
            todo += [(where, part) for item in each.items() for part in item]
        elif isinstance(each, _SEQUENCES):
            found[where] += len(each)
            todo += [(where, part) for part in each]
        else:
            todo += [(f"{type(each).__name__}.{name}", value) for name, value in _attributes(each)]
    return +found


def growth(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """What has become more, and by how much."""
    return dict(after - before)


def _attributes(each: object) -> Iterator[tuple[str, Any]]:
    yield from getattr(each, "__dict__", {}).items()
    kind: type = type(each)
    for name in _slots(kind):
        try:
            yield name, getattr(each, name)
        except AttributeError:
            continue  # not assigned yet


@cache
def _slots(kind: Hashable) -> tuple[str, ...]:
    assert isinstance(kind, type)
    return tuple(
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, _ATTRIBUTES) and not name.startswith("__")
    )
