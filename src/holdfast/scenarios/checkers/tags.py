"""I11 (Lemma 3): what comes from behind an open partition says so, and never takes back that nothing is missing.

To a subscription that was confirmed without a fragment, whatever comes from behind it is tagged with the partition,
plain or barred, until it is upgraded. After the first barred one of a publisher there is no plain one more. Only
reliable streams carry tags.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.scenarios.checkers.history import History, SubscriptionKey, Trace
from holdfast.scenarios.checkers.partitions import Partition, partition_of
from holdfast.scenarios.checkers.violation import Violation
from holdfast.scenarios.trace import TraceLine

__all__ = ["tags"]


def tags(trace: Trace) -> list[Violation]:
    """Deliveries without a tag they need, or with one that cannot be true."""
    history = History.of(trace)
    if history.run is None or history.run["guarantee"] != "reliable":
        return []
    found: list[Violation] = []
    for key, asking in history.asking.items():
        for i, line in enumerate(asking):
            if line["kind"] == "subscribed" and line["partial"]:
                ends = asking[i + 1]["i"] if i + 1 < len(asking) else None
                found += _untagged(history, key, line, ends)
        found += _taken_back(history, key)
    return found


def _untagged(
    history: History, key: SubscriptionKey, subscribed: TraceLine, ends: int | None
) -> Iterator[Violation]:
    partitions = history.partitions(key, subscribed)
    for line in history.delivered.get(key, ()):
        if line["i"] < subscribed["i"] or (ends is not None and line["i"] > ends):
            continue
        tagged = {partition_of(tag) for tag in line["tags"]}
        for partition in partitions.tagging(line["publisher"], position=line["i"]):
            if partition not in tagged:
                event, behind = f"{line['publisher']}#{line['n']}", f"{partition.lead}'s {partition.seq}"
                message = f"{event} came to {key[0]} for {key[1]} from behind {behind}, untagged"
                yield Violation("untagged", message, (subscribed, line))


def _taken_back(history: History, key: SubscriptionKey) -> Iterator[Violation]:
    barred: dict[tuple[int, str, Partition], TraceLine] = {}
    for line in history.delivered.get(key, ()):
        for tag in line["tags"]:
            source = history.life_of(line), line["publisher"], partition_of(tag)
            if tag["bar"]:
                barred.setdefault(source, line)
            elif source in barred:
                before = barred[source]
                message = (
                    f"{line['publisher']}#{line['n']} came to {key[0]} plain after #{before['n']} had the bar"
                )
                yield Violation("untagged", message, (before, line))
