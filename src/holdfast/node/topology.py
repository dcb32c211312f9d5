"""The topology map: what one node knows of the tree around it [KJ §2.2].

Brokers and clients are nodes of one tree; a client is a leaf. A node knows everybody within its reach of δ+1 hops, each
with the path that leads there; what lies farther is known only as far as messages tell where they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.messages.overlay import Role

__all__ = ["Path", "Place", "Topology", "seen_from"]

#: Names from a node's neighbour to another node, both included; never the node itself.
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the tree, as seen from the one whose map this is."""

    name: str
    role: Role
    path: Path
    address: str | None = None  #: where it is dialled; None if it cannot be
    incarnation: int = 0  #: of a client: it is told apart from its earlier lives

    @property
    def distance(self) -> int:
        """Hops."""
        return len(self.path)

    @property
    def direction(self) -> str:
        """The neighbour it lies behind."""
        return self.path[0]


class Topology:
    """The places within reach.

    Invariant: with a place every place on its path is there, and every path is the path of the tree.
    """

    def __init__(self, me: str, reach: int) -> None:
        self.me = me
        self.reach = reach
        self._places: dict[str, Place] = {}
        self._beside: dict[str, dict[str, None]] = {me: {}}  #: who is known beside whom, farther out
        self.clients_beside = 0  #: how many clients hang on us

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    def get(self, name: str) -> Place | None:
        """A place, if it is within reach."""
        return self._places.get(name)

    def __getitem__(self, name: str) -> Place:
        return self._places[name]

    def add(
        self, name: str, role: Role, beside: str, address: str | None = None, incarnation: int = 0
    ) -> Place | None:
        """Enter a node that is a neighbour of ``beside``, or learn more of one; None if it is out of reach.

        A place never moves: who is known beside somebody else already stays there.
        """
        known = self._places.get(name)
        if known is not None:
            place = replace(
                known,
                role=role,
                address=address or known.address,
                incarnation=max(incarnation, known.incarnation),
            )
            self._places[name] = place
            self.clients_beside += _is_guest(place) - _is_guest(known)
            return place
        if name == self.me or (beside != self.me and beside not in self._places):
            return None
        before: Path = () if beside == self.me else self._places[beside].path
        if len(before) == self.reach:
            return None
        place = self._places[name] = Place(name, role, (*before, name), address, incarnation)
        self._beside.setdefault(beside, {})[name] = None
        self.clients_beside += _is_guest(place)
        return place

    def remove(self, name: str) -> None:
        """A leaf is gone."""
        place = self._places.pop(name)
        before = place.path[-2] if place.distance > 1 else self.me
        del self._beside[before][name]
        self.clients_beside -= _is_guest(place)
        assert not self._beside.pop(name, None), f"{name} is no leaf"

    def beyond(self, name: str) -> list[Place]:
        """The neighbours of a node that lie farther out, as far as the map reaches; of ``me``: the neighbours."""
        return [self._places[each] for each in self._beside.get(name, ())]

    def learn(self, route: Sequence[str], subscriber: str, incarnation: int) -> None:
        """A message has come this way, the nearest node first: what was not known of it is entered.

        A subscriber with the life it is in: a place without would outlive the news that this life is over.
        """
        before = self.me
        for name in route[: self.reach]:
            if name not in self._places and name == subscriber:
                self.add(name, Role.SUBSCRIBER, before, incarnation=incarnation)
            elif name not in self._places:
                self.add(name, Role.BROKER, before)
            before = name

    def toward(self, name: str) -> Path:
        """The path to a place."""
        return self._places[name].path


def _is_guest(place: Place) -> bool:
    """Whether it is a client that hangs on us."""
    return place.distance == 1 and place.role is not Role.BROKER


def seen_from(me: str, route: Path, back: Path, length: int, *, is_whole: bool = True) -> Path:
    """A route as another node sees it.

    ``route`` leads from a node E to somebody; ``back`` is the path from ``me`` to E. The answer leads from ``me`` to
    the same somebody, as far as ``length``; it is empty if that is ``me``, or cannot be known: a route that is not
    ``is_whole`` was cut short, and if it ends on the way to ``me`` it may go on from there anywhere, past ``me`` too.
    """
    there = (*reversed(back[:-1]), me)  # from E to me
    shared = 0
    while shared < min(len(there), len(route)) and route[shared] == there[shared]:
        shared += 1
    if shared == len(there):
        return route[shared:][:length]
    if shared == len(route) and not is_whole:
        return ()
    return (*back[: len(back) - shared], *route[shared:])[:length]
