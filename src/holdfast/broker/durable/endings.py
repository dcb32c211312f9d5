"""Durable subscriptions that are over, and not yet everywhere.

Where one had moved from it is forgotten only when that broker has heard of the move. If it is over before, the broker
has to hear of it all the same, or it would go on there when it comes back: hold its logs, and begin again for the next
who presents the name. So it is told until it answers, whoever is restarted meanwhile; and so is a broker that was out
of reach, and may have begun it by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

from holdfast.broker.durable.elsewhere import Claim
from holdfast.broker.durable.network import Network
from holdfast.broker.durable.records import ENDED, EndedRow, change, joined
from holdfast.broker.durable.saving import Saving
from holdfast.messages.durable import Moved

__all__ = ["Endings"]

#: So many are told to a broker at a time.
TOLD_MAX = 1_000


class Endings:
    """Of one broker."""

    def __init__(self, me: str, network: Network, saving: Saving) -> None:
        self._me = me
        self._network = network
        self._saving = saving
        self._owed: dict[str, dict[str, int]] = {}  #: by broker and name, the epoch up to which it is over

    def __len__(self) -> int:
        """How many are to be told to somebody."""
        return sum(map(len, self._owed.values()))

    def restore(self, rows: Iterable[tuple[str, str, EndedRow]]) -> None:
        """What was found on disk, by name and broker."""
        for name, broker, row in rows:
            self._owed.setdefault(broker, {})[name] = row.epoch

    def owe(self, name: str, brokers: Iterable[str], epoch: int) -> None:
        """Brokers may still have a subscription that is over, all of it up to an epoch."""
        for broker in brokers:
            owed = self._owed.setdefault(broker, {})
            owed[name] = max(epoch, owed.get(name, 0))
            self._saving.add(change(ENDED, joined(name, broker), EndedRow(owed[name])))
        self._saving.add(then=lambda: self._tell(name))

    def is_over(self, name: str) -> bool:
        """Whether no broker has it any more."""
        return not any(name in owed for owed in self._owed.values())

    def covers(self, name: str, claim: Claim) -> bool:
        """Whether a subscription that a broker still has is over."""
        epoch, broker = claim
        return (self._owed.get(broker, {}).get(name, 0), self._me) > (epoch, broker)

    def take(self, name: str) -> Mapping[str, int]:
        """The name is given anew: the brokers that are to be told, which is the new one's from now on."""
        taken = {broker: owed[name] for broker, owed in self._owed.items() if name in owed}
        for broker in taken:
            self._drop(name, broker)
        return taken

    def on_taken(self, name: str, broker: str, epoch: int) -> None:
        """A broker has answered."""
        if self._owed.get(broker, {}).get(name, epoch + 1) <= epoch:
            self._drop(name, broker)

    def repeat(self) -> None:
        """From time to time: tell those who have not answered, and can be reached."""
        for broker, owed in self._owed.items():
            if self._network.reaches(broker):
                for name in islice(owed, TOLD_MAX):
                    self._network.post(Moved(broker, self._me, name, owed[name]))

    def _tell(self, name: str) -> None:
        for broker, owed in self._owed.items():
            if name in owed:
                self._network.post(Moved(broker, self._me, name, owed[name]))

    def _drop(self, name: str, broker: str) -> None:
        del self._owed[broker][name]
        self._saving.add(change(ENDED, joined(name, broker), None))
