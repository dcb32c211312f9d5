"""Where events may be missing: from the break of a session until a publisher is heard again.

When a session breaks, every subscription that was confirmed is in doubt about every publisher, from the last
tick that came of it. The next event of that publisher ends the doubt of those the network knows again, and its
tick tells how much may be missing. A subscription that is not confirmed again yet may be passed by, by this
event too: it stays in doubt, and only what really reaches it tells it something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["Doubts"]


@dataclass(slots=True)
class _Doubt:
    """About one publisher. Most are never looked at one subscription at a time, so they share a list until then."""

    after: int
    shared: Sequence[int]
    own: dict[int, int] = field(default_factory=dict)  #: subscription to the tick its doubt begins after

    def opened(self) -> dict[int, int]:
        """Each subscription with its own beginning."""
        if self.shared:
            self.own = {**dict.fromkeys(self.shared, self.after), **self.own}
            self.shared = ()
        return self.own


class Doubts:
    """By publisher, for the subscriptions of one client."""

    def __init__(self) -> None:
        self._doubts: dict[str, _Doubt] = {}
        self._known: set[int] = set()  #: who was confirmed at the last break

    def __contains__(self, pubend: str) -> bool:
        return pubend in self._doubts

    def begin(self, highest: Mapping[str, int], confirmed: Sequence[int]) -> None:
        """The session broke; ``highest`` is the last tick that came of each publisher."""
        newcomers = [number for number in confirmed if number not in self._known]
        for pubend, after in highest.items():
            doubt = self._doubts.get(pubend)
            if doubt is None:
                self._doubts[pubend] = _Doubt(after, confirmed)
                continue
            for number in newcomers if doubt.shared else confirmed:
                doubt.own.setdefault(number, after)
        self._known = set(confirmed)

    def hear(
        self, pubend: str, tick: int, reached: Sequence[int], current: Mapping[int, bool]
    ) -> Iterator[tuple[int, int]]:
        """A publisher is heard: who learns something from it, and the tick their doubt began after.

        ``reached`` are the subscriptions the event is for; ``current`` says of each that has not ended whether the
        network knows it again.
        """
        doubt = self._doubts[pubend].opened()
        for number, after in list(doubt.items()):
            if number not in current:
                del doubt[number]
            elif tick <= after:
                continue  # a late one, on a stream without order: it tells nothing
            elif current[number]:
                del doubt[number]
                yield number, after
            elif number in reached:
                doubt[number] = tick
                yield number, after
        if not doubt:
            del self._doubts[pubend]
