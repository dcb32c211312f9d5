"""One who publishes while many read under few durable names: what it has published, what of that matches, and when.

With silence, part of it does not match: a share that is drawn, and for whole phases nothing does. Then a log gets on
without anything for its readers, who have to hear that they are past it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Container, Iterator, Sequence
from random import Random

import holdfast
from holdfast.client.item import Gap
from names_world import World, let_pass

MATCHING, OTHER = "orders/eu", "orders/us"


class Publisher:
    """At one broker; its events have numbers, from 1."""

    def __init__(self, name: str, world: World, rng: Random, *, has_silence: bool) -> None:
        self.name = name
        self.published = self.accepted = 0
        self._world = world
        self._rng = rng
        self._has_silence = has_silence
        self._matching: list[int] = []
        self._accepted_at: list[float] = []
        self._receipts: list[holdfast.Receipt] = []

    async def publish(self, is_over: Callable[[], bool]) -> None:
        """Until that is so."""
        broker = self._rng.choice(self._world.brokers)
        pause = self._rng.choice((0.02, 0.1))
        is_matching = self._draw_matching() if self._has_silence else iter(lambda: True, None)
        async with self._world.connect([broker], self.name) as network:
            while not is_over():
                n = self.published + 1
                topic = OTHER
                if next(is_matching):
                    topic = MATCHING
                    self._matching.append(n)
                self.published = n
                receipt = await network.publish(topic, {"n": n}, n=n, timeout=self._world.patience)
                self._receipts.append(receipt)
                self.accepted = n
                self._accepted_at.append(self._world.now)
                await let_pass(self._world, pause)

    def _draw_matching(self) -> Iterator[bool]:
        share, phase_ends, is_silent = self._rng.choice((0.1, 0.5, 1.0)), 0.0, False
        while True:
            if self._world.now > phase_ends:
                phase_ends = self._world.now + self._rng.choice((0.3, 1.0, 3.0))
                is_silent = self._rng.random() < 0.5
            yield not is_silent and self._rng.random() < share

    # What is asked of it

    def is_in(self, pubend: str) -> bool:
        """Whether its events are there, or may be: none was accepted yet."""
        return not self._receipts or self._receipts[0].pubend == pubend

    def accepted_before(self, instant: float) -> int:
        """The last event that was."""
        return bisect(self._accepted_at, instant)

    def next_after(self, n: int) -> int | None:
        """The next that matches."""
        at = bisect(self._matching, n)
        return self._matching[at] if at < len(self._matching) else None

    def missing(self, after: int, upto: int, read: Container[tuple[str, int]]) -> Sequence[int]:
        """What matches between these and was not read."""
        between = self._matching[bisect(self._matching, after) : bisect(self._matching, upto)]
        return [n for n in between if (self.name, n) not in read]

    def told_of(self, gap: Gap, upto: int) -> Iterator[int]:
        """Those up to a number that are in a gap."""
        for n, receipt in enumerate(self._receipts[:upto], 1):
            if receipt.pubend == gap.pubend and gap.after < receipt.tick <= gap.upto:
                yield n
