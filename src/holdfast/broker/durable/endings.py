"""Durable subscriptions that are over, and not yet everywhere.

Where one had moved from it is forgotten only when that broker has heard of the move. If it is over before, the broker
has to hear of it all the same, or it would go on there when it comes back: hold its logs, and begin again for the next
who presents the name. So it is told until it answers, whoever is restarted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from holdfast.broker.durable.elsewhere import Claim
from holdfast.broker.durable.records import ENDED, EndedRow, change
from holdfast.broker.durable.saving import Saving
from holdfast.messages.durable import Moved

__all__ = ["Endings"]


class Endings:
    """Of one broker."""

    def __init__(self, me: str, saving: Saving, post: Callable[[Moved], None]) -> None:
        self._me = me
        self._saving = saving
        self._post = post
        self._owed: dict[
            str, dict[str, int]
        ] = {}  #: by name and broker, the epoch above which it is not over

    def restore(self, rows: Iterable[tuple[str, EndedRow]]) -> None:
        """What was found on disk."""
        self._owed = {name: dict(row.owed) for name, row in rows}

    def owe(self, name: str, brokers: Iterable[str], epoch: int) -> None:
        """Brokers may still have a subscription that is over, all of it up to an epoch."""
        owed = self._owed.setdefault(name, {})
        for broker in brokers:
            owed[broker] = max(epoch, owed.get(broker, 0))
        self._save(name)
        self._saving.add(then=lambda: self._tell(name))

    def is_over(self, name: str) -> bool:
        """Whether no broker has it any more."""
        return name not in self._owed

    def covers(self, name: str, claim: Claim) -> bool:
        """Whether a subscription that a broker still has is over."""
        epoch, broker = claim
        return (self._owed.get(name, {}).get(broker, 0), self._me) > (epoch, broker)

    def take(self, name: str) -> Mapping[str, int]:
        """The name is given anew: the brokers that are to be told, which is the new one's from now on."""
        owed = self._owed.pop(name, {})
        if owed:
            self._save(name)
        return owed

    def on_taken(self, name: str, broker: str, epoch: int) -> None:
        """A broker has answered."""
        owed = self._owed.get(name, {})
        if owed.get(broker, epoch + 1) <= epoch:
            del owed[broker]
            self._save(name)

    def repeat(self) -> None:
        """From time to time: tell those who have not answered."""
        for name in self._owed:
            self._tell(name)

    def _tell(self, name: str) -> None:
        for broker, epoch in self._owed.get(name, {}).items():
            self._post(Moved(broker, self._me, name, epoch))

    def _save(self, name: str) -> None:
        owed = self._owed.get(name)
        if not owed:
            self._owed.pop(name, None)
        self._saving.add(change(ENDED, name, EndedRow(dict(owed)) if owed else None))
