"""Durable subscriptions that are over, and not yet everywhere.

Where one had moved from it is forgotten only when that broker has heard of the move. If it is over before, the broker
has to hear of it all the same, or it would go on there when it comes back: hold its logs, and begin again for the next
who presents the name. So it is told until it answers, whoever is restarted meanwhile; and so is every other broker when
a client ends one: it may have been out of reach, and have begun it by itself.

Who comes to such a broker after the end, and before that has heard of it, has begun it anew: for them it goes on there.
So it does for who comes when it has heard of it, though it may be told once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from holdfast.broker.durable.elsewhere import Claim
from holdfast.broker.durable.network import Network
from holdfast.broker.durable.records import ENDED, EndedRow, change, joined
from holdfast.broker.durable.saving import Saving
from holdfast.clock import SECOND, Instant
from holdfast.messages.durable import Ended

__all__ = ["Endings"]

#: So many are told to a broker at a time.
TOLD_MAX = 1_000

#: So long it is remembered that one was heard of; no repetition is longer on its way.
HEARD_FOR_NS = 60 * SECOND

_NOTHING = EndedRow(-1, 0)


class Endings:
    """Of one broker."""

    def __init__(self, me: str, network: Network, saving: Saving) -> None:
        self._me = me
        self._network = network
        self._saving = saving
        self._owed: dict[str, dict[str, EndedRow]] = {}  #: by broker and name
        #: By name, each end as (epoch, broker), and when it was heard of last.
        self._heard: dict[str, dict[Claim, Instant]] = {}

    def __len__(self) -> int:
        """How many are to be told to somebody."""
        return sum(map(len, self._owed.values()))

    def restore(self, rows: Iterable[tuple[str, str, EndedRow]]) -> None:
        """What was found on disk, by name and broker."""
        for name, broker, row in rows:
            self._owed.setdefault(broker, {})[name] = row

    def owe(self, name: str, brokers: Iterable[str], epoch: int, known: int) -> None:
        """Brokers may still have a subscription that was ended in an epoch, when so much was known (``Ended``)."""
        for broker in brokers:
            owed = self._owed.setdefault(broker, {})
            before = owed.get(name, _NOTHING)
            if before.epoch < epoch:
                owed[name] = EndedRow(epoch, max(known, before.known))
                self._saving.add(change(ENDED, joined(name, broker), owed[name]))
        self._saving.add(then=lambda: self._tell(name))

    def hear(self, letter: Ended) -> bool:
        """Another broker has ended one; whether that is news."""
        heard, end = self._heard.setdefault(letter.durable, {}), (letter.epoch, letter.origin)
        is_news = end not in heard
        heard[end] = self._network.now
        return is_news

    def is_over(self, name: str) -> bool:
        """Whether no broker has it any more."""
        return not any(name in owed for owed in self._owed.values())

    def covers(self, name: str, claim: Claim) -> bool:
        """Whether a subscription that a broker still has is over."""
        _, broker = claim
        return (self._owed.get(broker, {}).get(name, _NOTHING).epoch, self._me) > claim

    def has_ended(self, name: str, claim: Claim) -> bool:
        """Whether one that a broker had is over by now, as far as is known here, whoever has ended it."""
        return self.covers(name, claim) or max(self._heard.get(name, ()), default=claim) > claim

    def last_of(self, name: str) -> int:
        """The last epoch in which a name is over, as far as is known; 0: it is not.

        Who begins it anew is above that, by any clock: an end is told until it is answered, however often.
        """
        owed = (owed[name].epoch for owed in self._owed.values() if name in owed)
        return max([*owed, *(epoch for epoch, _ in self._heard.get(name, ()))], default=0)

    def on_taken(self, name: str, broker: str, epoch: int) -> bool:
        """A broker has answered; whether it need not be told any more."""
        owed = self._owed.get(broker, {}).get(name)
        if owed is None or owed.epoch > epoch:
            return False
        del self._owed[broker][name]
        self._saving.add(change(ENDED, joined(name, broker), None))
        return True

    def forget(self, broker: str) -> bool:
        """A broker does not come back; whether it was to be told anything."""
        owed = self._owed.pop(broker, {})
        for name in owed:
            self._saving.add(change(ENDED, joined(name, broker), None))
        return bool(owed)

    def repeat(self) -> None:
        """From time to time: tell those who have not answered, and can be reached."""
        since = self._network.now - HEARD_FOR_NS
        for name, heard in list(self._heard.items()):
            self._heard[name] = {end: at for end, at in heard.items() if at > since}
            if not self._heard[name]:
                del self._heard[name]
        for broker, owed in self._owed.items():
            if self._network.reaches(broker):
                for name in islice(owed, TOLD_MAX):
                    self._say(name, broker, owed[name])

    def _tell(self, name: str) -> None:
        for broker, owed in self._owed.items():
            if name in owed:
                self._say(name, broker, owed[name])

    def _say(self, name: str, broker: str, over: EndedRow) -> None:
        ago = max(0, self._network.clock - over.epoch)
        self._network.post(Ended(broker, self._me, name, over.epoch, over.known, ago))
