"""An event as filters see it: what several filters need is worked out once, and only if one of them asks."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import InvalidDocument
from holdfast.events.document import Document, is_xml, parse_document
from holdfast.events.event import Content
from holdfast.events.topic import topic_levels
from holdfast.events.value import Value

__all__ = ["Subject"]


class Subject:
    """One event under evaluation."""

    __slots__ = ("_document", "_levels", "_parsed", "attributes", "event", "topic")

    def __init__(self, event: Content) -> None:
        self.event = event
        self.attributes: Mapping[str, Value] = event.attributes
        self.topic = event.topic
        self._levels: list[str] | None = None
        self._document: Document | None = None
        self._parsed = False

    @property
    def levels(self) -> list[str]:
        """The levels of the topic."""
        if self._levels is None:
            self._levels = topic_levels(self.topic)
        return self._levels

    @property
    def document(self) -> Document | None:
        """The payload as a document, or None if it does not say so or cannot be read; parsed at most once."""
        if not self._parsed:
            self._parsed = True
            if is_xml(self.event.content_type):
                try:
                    self._document = parse_document(self.event.payload)
                except InvalidDocument:
                    self._document = None  # XPATH is unknown there (contracts.md §2), which is not an error
        return self._document
