"""What whoever has pubends is asked: a log reader, a folder, the lake, or two of them together."""

from __future__ import annotations

from typing import Literal, Protocol

from holdfast.pipeline.pages import Page
from holdfast.pipeline.ranges import End, Silence
from holdfast.pipeline.requests import ReachAnswer, ReachRequest, ReadRequest

__all__ = ["From", "Logs", "Origin"]

#: The logs, the lake, or both: the lake where the logs have forgotten.
From = Literal["auto", "log", "lake"]


class Origin(Protocol):
    """What the pubends of one broker are asked; raises what ``Ranges`` does."""

    def ends(self, stream: str) -> dict[str, End]:
        """How far they go."""

    def reach(self, request: ReachRequest) -> ReachAnswer:
        """How far so many events go."""

    def page(self, request: ReadRequest) -> Page:
        """Rows."""


class Logs(Origin, Protocol):
    """The logs of one broker, which know more than a table: what cannot come any more."""

    def silence(self, stream: str) -> Silence:
        """Up to where."""
