"""What a node keeps of the publications that passed it, until others have them [KJ §2.2, §8].

Publications that came together, on one way, are one segment. The node numbered them one after another, and matched
them once; each of its targets has a share of them, and the segment is kept until every target's share is safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.messages.overlay import Trail
from holdfast.messages.publications import Batch, Tag
from holdfast.node.station import Station
from holdfast.node.trails import numbered

__all__ = ["Segment", "Share"]


@dataclass(slots=True)
class Share:
    """What one target gets of a segment: positions, and for a client its own numbers of the subscriptions."""

    at: list[int]
    subscriptions: list[tuple[int, ...]]


@dataclass(slots=True, eq=False)
class Segment:
    """A batch in the queue. Invariant: ``shares`` are those of the targets not known to be safe."""

    stream: str
    batch: Batch
    first: int  #: our own number of its first publication; those of the others follow
    trail: Trail  #: as it was accepted, and never improved [B0.10]
    tags: tuple[Tag, ...]
    upstream: str | None  #: the neighbour it came from the direction of; None: it began here
    shares: dict[Station, Share]
    caps: dict[str, tuple[int, int]]  #: of those it bypassed, the mark when it came [B0.38]
    is_returned: bool = False  #: it was given back to the client that published it
    kept: dict[Station, Share] = field(default_factory=dict)  #: of those that are, but not for good
    aliases: dict[tuple[str, int], int] = field(default_factory=dict)  #: lowest of its repeats [B0.11]
    sent: set[str] = field(default_factory=set)  #: whom it has been sent to
    confirmed: dict[str, set[int]] = field(default_factory=dict)  #: by station, our numbers it confirmed
    senders: dict[str, list[int]] = field(default_factory=dict)  #: who waits to be told of its numbers
    size: int = field(init=False)  #: its bytes, about

    def __post_init__(self) -> None:
        self.size = sum([len(publication.event) for publication in self.batch.publications])

    @property
    def last(self) -> int:
        """Our own number of its last publication."""
        return self.first + len(self.batch) - 1

    def take_for(self, endpoint: Station, *, replays: bool = False) -> Share | None:
        """What goes to one station: the shares of all targets at it or beyond it, each publication once.

        Who has lost its memory gets what it was known to hold once more.
        """
        name, place = endpoint.name, endpoint.distance - 1
        shares = {**self.kept, **self.shares} if replays else self.shares
        found = [
            (target, share)
            for target, share in shares.items()
            if len(target.path) > place and target.path[place] == name
        ]
        if not found:
            return None
        if len(found) == 1:
            target, share = found[0]
            return share if target is endpoint else Share(share.at, [])
        positions: dict[int, tuple[int, ...]] = {}
        for target, share in found:
            own = share.subscriptions if target is endpoint else [()] * len(share.at)
            for i, subscriptions in zip(share.at, own or [()] * len(share.at), strict=True):
                positions[i] = positions.get(i, ()) + subscriptions
        at = sorted(positions)
        return Share(at, [positions[i] for i in at] if endpoint in shares else [])

    def lowest(self) -> list[tuple[tuple[str, int], int]]:
        """For every life of a node that numbered it, the lowest number, repeats included."""
        found = {
            (step.node, step.incarnation or 0): column[0] for step, column in numbered(self.trail) if column
        }
        for life, number in self.aliases.items():
            found[life] = min(number, found.get(life, number))
        return list(found.items())

    def add_alias(self, trail: Trail, positions: Sequence[int]) -> list[tuple[tuple[str, int], int]]:
        """A repeat of some of it came another way, numbered by others; by whom, and their lowest numbers."""
        found: list[tuple[tuple[str, int], int]] = []
        for step, column in numbered(trail):
            life = step.node, step.incarnation or 0
            low = min(column[i] for i in positions)
            self.aliases[life] = min(low, self.aliases.get(life, low))
            found.append((life, low))
        return found
