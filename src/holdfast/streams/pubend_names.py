"""How pubends are called: ``orders@lisbon/0`` is the first one of the stream orders at the broker lisbon."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

__all__ = ["owner_in", "pubend_name", "stream_in"]


@lru_cache(maxsize=1024)
def pubend_name(stream: str, broker: str, k: int) -> str:
    """The name of a pubend."""
    return f"{quote(stream, safe='')}@{quote(broker, safe='')}/{k}"


def stream_in(pubend: str) -> str:
    """The stream a pubend is of."""
    return unquote(pubend.partition("@")[0])


def owner_in(pubend: str) -> str:
    """The broker a pubend is at, to which letters about it go."""
    return unquote(pubend.partition("@")[2].rpartition("/")[0])
