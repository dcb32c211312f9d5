"""What a durable subscription has consumed and its broker has not saved yet [R1.8, R1.31].

One message is on its way at a time; what is consumed meanwhile goes with the next. So many commits cost as many
messages as there are answers, and there is nothing to keep but the highest ticks of each pubend. What a broken session
leaves without an answer is said again.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.messages.durable import Acknowledge
from holdfast.messages.ticks import ORIGIN, Tick

__all__ = ["Acknowledging"]


class Acknowledging:
    """The commits of one subscription; each has a ticket, above the one before."""

    def __init__(self) -> None:
        self.places: dict[str, Tick] = {}  #: all that was ever consumed
        self._gathered: dict[str, Tick] = {}
        self._ticket = 0  #: of the last commit; 0: none yet
        self._on_its_way: dict[str, Tick] = {}
        self._ticket_on_its_way = 0  #: 0: nothing is
        self._ticket_saved = 0

    def commit(self, places: Mapping[str, Tick], ticket: int) -> None:
        """More is consumed; a place never goes back [B1.10]."""
        assert ticket > self._ticket, "tickets ascend"
        self._ticket = ticket
        _merge(self._gathered, places)
        _merge(self.places, places)

    def next_message(self, number: int) -> Acknowledge | None:
        """What to say now, if anything."""
        if self._ticket_on_its_way or self._ticket == self._ticket_saved:
            return None
        self._on_its_way, self._gathered = self._gathered, {}
        self._ticket_on_its_way = self._ticket
        return Acknowledge(number, dict(self._on_its_way), self._ticket)

    def on_saved(self, ticket: int) -> bool:
        """The broker has saved what was on its way under this ticket; False: there is no such thing."""
        if not ticket or ticket != self._ticket_on_its_way:
            return False
        self._ticket_saved = ticket
        self._ticket_on_its_way = 0
        self._on_its_way = {}
        return True

    def begin_again(self) -> None:
        """The session is another: what has no answer is to be said again."""
        _merge(self._on_its_way, self._gathered)
        self._gathered, self._on_its_way = self._on_its_way, {}
        self._ticket_on_its_way = 0


def _merge(places: dict[str, Tick], others: Mapping[str, Tick]) -> None:
    for pubend, tick in others.items():
        places[pubend] = max(tick, places.get(pubend, ORIGIN))
