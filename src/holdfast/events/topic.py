"""Topics of events: levels separated by ``/``.

One leading ``/`` is dropped and nothing else is normalised: ``a/`` has an empty last level, ``//a`` an empty
first one, and ``/`` is one empty level.
"""

from __future__ import annotations

__all__ = ["canonical_topic", "topic_levels"]


def topic_levels(topic: str) -> list[str]:
    """The levels of an event's topic; at least one."""
    return (topic[1:] if topic.startswith("/") else topic).split("/")


def canonical_topic(topic: str) -> str:
    """The same levels, written without the leading ``/`` wherever the rest reads back as the same levels."""
    if topic.startswith("/") and len(topic) > 1 and topic[1] != "/":
        return topic[1:]
    return topic
