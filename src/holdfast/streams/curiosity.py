"""What is wanted of one pubend, and by whom: nacks, answered here or asked of the next node once [BZA §3, R1.4].

Askers are sessions to other nodes, and at a subscriber-hosting broker its own streams. Each asks for ranges under a
version of what *this node* wants (B1.2), or raw. Only what is known for that version answers: D, S0, L, and silence
that covers the asker. The rest is asked upstream, one nack for all who want it: a tick is asked for again only under a
version that no earlier nack covers, or when no answer has come for ``repeat_ns``, or on a new way. No answer means
unknown, never silence, never loss; so wishes are kept while there is no way at all.

Another node has at most ``window`` ranges on the way, its lowest, and no more than there is room for events, as if each
were one; the next ones follow as those are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from holdfast.clock import SECOND, Instant
from holdfast.intervals import Intervals, Span
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import ABSOLUTE, Items, Lost, Nack, Tick, Version
from holdfast.streams.knowledge import Knowledge
from holdfast.streams.tick import fitting, laid_out

__all__ = ["REPEAT_NS", "WINDOW", "Answer", "Asker", "Curiosity", "Wish"]

#: So many ranges of one asker are on the way at a time.
WINDOW: Final = 1_000

#: After so long without an answer a tick is asked for again: a session loses nothing, and long answers take time.
REPEAT_NS: Final = 5 * SECOND

#: Who asks. None is the node itself, which looks into its knowledge, and has its own windows.
Asker = Hashable | None
Wish = tuple[Asker, Version]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is known of an asker's ticks: all of ``parts``, with these events in it, and what is lost.

    Which of the events the asker wants is for whoever knows its filters to say.
    """

    pubend: str
    parts: Sequence[Span]
    ticks: Sequence[Tick]
    publications: Sequence[Publication]
    lost: Sequence[Lost]
    is_cut: bool = False  #: more is known than there was room for

    def __bool__(self) -> bool:
        return bool(self.parts or self.lost)

    def items(self, under: Version, at: Sequence[int]) -> Items:
        """As it is said to an asker that wants the events ``at`` these positions, and no other in its ``under``."""
        ticks = [self.ticks[i] for i in at]
        columns = laid_out(self.parts, ticks, [self.publications[i] for i in at])
        return Items(self.pubend, under, *columns, self.lost, answers=True)


class _Wanted:
    """What one asker wants under one version; ``fresh`` is the part of it that is not on the way to us."""

    __slots__ = ("all", "fresh")

    def __init__(self) -> None:
        self.all = Intervals()
        self.fresh = Intervals()

    @property
    def on_the_way(self) -> int:
        """How many ranges were asked for."""
        return len(self.all) - len(self.fresh)

    def remove(self, spans: Sequence[Span]) -> None:
        """Something is not wanted any more."""
        self.all.remove_all(spans)
        self.fresh.remove_all(spans)

    def refresh(self, spans: Sequence[Span]) -> None:
        """Whatever was asked for here is not on the way any more: it has come, or it never did."""
        self.fresh.add_all(self.all.within_all(spans))


class Curiosity:
    """The wishes of all askers for one pubend, and what of them has been asked upstream."""

    def __init__(self, pubend: str, *, window: int = WINDOW, repeat_ns: int = REPEAT_NS) -> None:
        self.pubend = pubend
        self.window = window
        self.repeat_ns = repeat_ns
        self._wishes: dict[Wish, _Wanted] = {}
        self._asked: dict[Version, Intervals] = {}  #: on the way, by the version it was asked for
        self._log: deque[tuple[Instant, Version, Sequence[Span]]] = deque()  #: when that was

    # Askers

    def ask(self, asker: Asker, spans: Sequence[Span], version: Version = ABSOLUTE) -> None:
        """Somebody wants to know these ticks."""
        wanted = self._wishes.get((asker, version)) or _Wanted()
        new = wanted.all.gaps_all(list(Intervals(spans)))
        if new:
            wanted.all.add_all(new)
            wanted.fresh.add_all(new)
            self._wishes[asker, version] = wanted

    def withdraw(self, asker: Asker) -> None:
        """An asker is gone, or its session: it will ask again."""
        for wish in [wish for wish in self._wishes if wish[0] == asker]:
            del self._wishes[wish]

    def wanted(self, asker: Asker) -> list[Span]:
        """What somebody still wants, under whatever version."""
        wishes = [wanted.all for (who, _), wanted in self._wishes.items() if who == asker]
        return list(Intervals(span for wanted in wishes for span in wanted))

    @property
    def versions(self) -> list[Version]:
        """Under which anybody wants anything."""
        return [version for _, version in self._wishes]

    def _close(self, wish: Wish, wanted: _Wanted) -> None:
        if not wanted.all:
            del self._wishes[wish]

    # Answers

    def answers(
        self,
        knowledge: Knowledge,
        limit: int,
        news: Items | None = None,
        room: Callable[[Asker], int] | None = None,
    ) -> list[tuple[Wish, Answer]]:
        """What can be answered, to each asker at most ``limit`` events; with ``news``, where they tell something.

        ``room`` says how many bytes of events an asker takes now; one may go beyond it. What is answered is not wanted
        any more.
        """
        told = None if news is None else _spoken_of(news)
        found = []
        for wish, wanted in list(self._wishes.items()):
            spans = list(wanted.all) if told is None else wanted.all.within_all(told)
            if wish[0] is None:
                wanted.remove(knowledge.known(wish[1]).within_all(spans))
                self._close(wish, wanted)
            elif spans and (bytes_max := ABSOLUTE if room is None else room(wish[0])) > 0:
                answer = self._answer(wish, wanted, knowledge, limit, spans, bytes_max)
                if answer:
                    found.append((wish, answer))
        return found

    def answer(self, asker: Asker, version: Version, knowledge: Knowledge, limit: int) -> Answer:
        """What one asker can be told now."""
        wanted = self._wishes.get((asker, version))
        if wanted is None:
            return Answer(self.pubend, (), (), (), ())
        return self._answer((asker, version), wanted, knowledge, limit, list(wanted.all), ABSOLUTE)

    def _answer(
        self,
        wish: Wish,
        wanted: _Wanted,
        knowledge: Knowledge,
        limit: int,
        spans: Sequence[Span],
        bytes_max: int,
    ) -> Answer:
        lost = knowledge.lost
        answerable = knowledge.known(wish[1]).within_all(spans)
        ticks, publications, known = _cut(answerable, knowledge, limit, bytes_max)
        wanted.remove(known)
        self._close(wish, wanted)
        # All of a loss is told, asked for or not: nobody should ask piece by piece.
        gone = Intervals(lost.around(upto) for _, upto in lost.within_all(known))
        losses = [loss for span in gone for loss in knowledge.losses(*span)]
        return Answer(self.pubend, lost.gaps_all(known), ticks, publications, losses, known is not answerable)

    # Upstream

    def on_items(self, items: Items) -> None:
        """Something was told: it is not on the way any more, and if it is lost before it was answered, asked again."""
        if not self._asked:
            return
        told = _spoken_of(items)
        pairs = zip(items.ticks, items.publications, strict=True)
        events = [(tick - 1, tick) for tick, publication in pairs if publication is not None]
        lost = [(after, upto) for after, upto, _ in items.lost]
        for version, asked in self._asked.items():
            asked.remove_all(told if version <= items.under else events)
            asked.remove_all(lost)
        for (asker, version), wanted in self._wishes.items():
            if asker is not None:  # the node itself sees what it knows, and asks for the rest
                wanted.refresh(told if version <= items.under else events)
                wanted.refresh(lost)

    def become_reopened(self) -> None:
        """There is a new way to the pubend: what was asked on the old one is not on the way."""
        self._asked.clear()
        self._log.clear()
        for wanted in self._wishes.values():
            wanted.fresh = wanted.all.copy()

    def next_nacks(
        self, knowledge: Knowledge, now: Instant, room: Callable[[Asker], int] | None = None
    ) -> list[Nack]:
        """What is to be asked upstream now: wanted, unknown, and not on the way; by those who have ``room`` for it.

        At the node that has the pubend, upstream is the log.
        """
        self._expire(now)
        self._asked = {version: asked for version, asked in self._asked.items() if asked}
        nacks: dict[Version, Intervals] = {}
        # The highest version first: what is asked for it is asked for the lower ones too.
        for (asker, version), wanted in sorted(self._wishes.items(), key=_downwards):
            bytes_max = ABSOLUTE if asker is None or room is None else room(asker)
            if bytes_max <= 0:
                continue
            count_max = 1 + bytes_max // max(1, knowledge.average_bytes)
            holes = knowledge.known(version).gaps_all(self._next_spans(asker, wanted, count_max))
            if not holes:
                continue
            wanted.fresh.remove_all(holes)
            under = knowledge.asked_under(version)
            for asked_for, asked in self._asked.items():
                if asked_for >= under:
                    holes = asked.gaps_all(holes)
            self._asked.setdefault(under, Intervals()).add_all(holes)
            nacks.setdefault(under, Intervals()).add_all(holes)
        found = [Nack(self.pubend, version, list(spans)) for version, spans in nacks.items() if spans]
        self._log.extend((now, nack.version, nack.spans) for nack in found)
        return found

    def next_deadline(self) -> Instant | None:
        """When something may have to be asked for again."""
        return self._log[0][0] + self.repeat_ns if self._log and self._wishes else None

    def _next_spans(self, asker: Asker, wanted: _Wanted, count_max: int) -> list[Span]:
        """The lowest ranges there is room for. What is known of them stays: it is answered from here, or lost first."""
        window = min(self.window, count_max)
        return list(islice(wanted.fresh, None if asker is None else max(0, window - wanted.on_the_way)))

    def _expire(self, now: Instant) -> None:
        while self._log and self._log[0][0] + self.repeat_ns <= now:
            _, version, spans = self._log.popleft()
            self._asked.get(version, Intervals()).remove_all(spans)
            for wanted in self._wishes.values():
                wanted.refresh(spans)


def _downwards(entry: tuple[Wish, _Wanted]) -> int:
    return -entry[0][1]


def _spoken_of(items: Items) -> list[Span]:
    told = Intervals()
    told.add_all(list(zip(items.los, items.ticks, strict=True)))
    told.add_all([(after, upto) for after, upto, _ in items.lost])
    return list(told)


def _cut(
    spans: Sequence[Span], knowledge: Knowledge, limit: int, bytes_max: int
) -> tuple[list[Tick], list[Publication], Sequence[Span]]:
    """The events of ranges, and the ranges, cut where there would be more than so many, or so many bytes."""
    ticks: list[Tick] = []
    publications: list[Publication] = []
    room = bytes_max
    for i, (after, upto) in enumerate(spans):
        found, events = knowledge.events(after, upto, limit - len(ticks) + 1)
        keep = min(limit - len(ticks), fitting(events, room) if room > 0 else 0)
        ticks += found[:keep]
        publications += events[:keep]
        if keep < len(found):
            cut = (after, found[keep] - 1)
            return ticks, publications, [*spans[:i], cut] if cut[0] < cut[1] else spans[:i]
        room -= sum([len(event.event) for event in events])
    return ticks, publications, spans
