"""When the events of a log expire, as their publishers say (R1.33): a few stretches of ticks, not every event.

A stream may name an attribute that holds the time at which an event expires. What has expired may be given up although
somebody has not acknowledged it. But a log forgets from its beginning, so all that is asked is up to where everything
has expired; silence never stands in the way.

A *stretch* is one event, or neighbours that expire together. When there are too many, neighbours become one, which
expires when the last of them does: never too early, and such neighbours are less than a hundredth of the time apart
that the log spans. Stretches are saved with the pubend's row; what was logged after that is read from the log again.
What nobody knows the expiry of never expires.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from math import ceil, inf
from typing import Final

import msgspec

from holdfast.events.event import Content
from holdfast.messages.ticks import ORIGIN, Tick

__all__ = ["NEVER", "STRETCHES_MAX", "Expiries", "Expiring", "expiry_of"]

#: After every tick.
NEVER: Final = 2**63 - 1

#: So many are kept of one log, 18 KB in its row.
STRETCHES_MAX: Final = 1_000

#: How many are left, at most, when some had to become one; and with fewer than these, finer ones are made again.
_FEWER: Final = STRETCHES_MAX * 3 // 4
_FEW: Final = STRETCHES_MAX // 4

_TICKS: Final = 1_000_000  #: in a second
_FAR: Final = NEVER // _TICKS  #: in seconds: there is no such tick


class Expiries(msgspec.Struct, frozen=True, array_like=True):
    """What outlives a process: the attribute it was read from, and of each stretch its last tick and its expiry."""

    attribute: str
    lasts: list[Tick]
    expiries: list[Tick]


class Expiring:
    """Of one log. ``kept`` is what was saved of its events up to ``upto``, if anything was."""

    def __init__(self, attribute: str, kept: Expiries | None = None, upto: Tick = ORIGIN) -> None:
        self._attribute = attribute
        self._grain = 1  #: ticks: what ends in the same multiple of it is one stretch
        # By columns, ascending: an event costs half of what it would as a tuple.
        self._lasts: list[Tick] = []
        self._expiries: list[Tick] = []
        if kept is not None and kept.attribute == attribute:
            self._lasts += kept.lasts
            self._expiries += kept.expiries
        elif upto:  # another attribute was read, or none
            self._append(upto, NEVER)

    def add(self, events: Iterable[tuple[Tick, Content]]) -> None:
        """Events are in the log, behind all others."""
        for tick, content in events:
            self._append(tick, expiry_of(content.attributes.get(self._attribute)))
            if len(self._lasts) > STRETCHES_MAX:
                self._merge()

    def expired_through(self, now: Tick, released: Tick = ORIGIN) -> Tick:
        """Up to here everything has expired, or may go anyway, since it is not above ``released``."""
        through = ORIGIN
        for last, expiry in zip(self._lasts, self._expiries, strict=True):
            if expiry > now and last > released:
                break
            through = last
        return through

    def drop(self, through: Tick) -> None:
        """Everything up to here is given up."""
        gone = bisect_right(self._lasts, through)
        del self._lasts[:gone]
        del self._expiries[:gone]
        if len(self._lasts) < _FEW:
            self._grain = 1

    def kept(self) -> Expiries:
        """To be saved."""
        return Expiries(self._attribute, list(self._lasts), list(self._expiries))

    # Stretches

    def _append(self, last: Tick, expiry: Tick) -> None:
        lasts, expiries = self._lasts, self._expiries
        if lasts and (expiry == expiries[-1] or last // self._grain == lasts[-1] // self._grain):
            lasts[-1] = last
            expiries[-1] = max(expiry, expiries[-1])
        else:
            lasts.append(last)
            expiries.append(expiry)

    def _merge(self) -> None:
        """Make coarser ones. Joining the oldest only, again and again, would soon leave one for half of the log."""
        while len(self._lasts) > _FEWER:
            self._grain *= 2
            stretches = list(zip(self._lasts, self._expiries, strict=True))
            self._lasts, self._expiries = [], []
            for last, expiry in stretches:
                self._append(last, expiry)


def expiry_of(value: object) -> Tick:
    """The tick from which on an event has expired, of the value of its attribute: seconds since the epoch.

    What is no number, or no finite one, never comes; neither does what is not there.
    """
    if not isinstance(value, float) and type(value) is not int:  # a bool is an int to Python
        return NEVER
    if 0 < value < _FAR:
        return ceil(value * _TICKS)
    return ORIGIN if -inf < value <= 0 else NEVER
