"""Which engine to use: the compiled one where it was built, the pure one elsewhere. Their answers are the same."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from holdfast.matching.hashed import HashedIndex
from holdfast.matching.index import MatchingIndex

__all__ = ["engines", "new_index"]


def engines() -> dict[str, Callable[[], MatchingIndex]]:
    """The engines there are, by name: always ``pure``, and ``compiled`` if it was built."""
    found: dict[str, Callable[[], MatchingIndex]] = {"pure": HashedIndex}
    try:
        module = import_module("holdfast.matching.compiled.hashed")
    except ImportError:
        return found
    found["compiled"] = module.HashedIndex
    return found


def new_index() -> MatchingIndex:
    """An empty index of the fastest kind there is."""
    found = engines()
    return found.get("compiled", found["pure"])()
