"""What has arrived for a subscription and was not taken yet, and the token after what was.

Events stay packed until they are taken. Of logged streams every item has its place, and taking one moves the token
there [R1.8]: to the event, to the end of the gap, or over the silence behind them, which is an item only for those who
asked for it. Silence that nobody takes is kept once for each pubend, however much of it there is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.client.effect import Delivered, Stretch
from holdfast.client.errors import GapFound, InvalidOption
from holdfast.client.item import Gap, Item, LoggedEvent, Silence, TaggedEvent
from holdfast.events.event import Event
from holdfast.events.packed import unpack
from holdfast.messages.publications import Publication, Tag
from holdfast.messages.ticks import Tick
from holdfast.streams.checkpoint_token import Place, Token

__all__ = ["Entry", "Shelf"]


@dataclass(slots=True)
class _Run:
    """Events of one pubend, from ``at`` on."""

    pubend: str
    incarnation: int
    publications: Sequence[Publication]
    ticks: Sequence[Tick]
    at: int = 0


@dataclass(frozen=True, slots=True)
class _Lost:
    gap: Gap
    incarnation: int


@dataclass(slots=True)
class _Quiet:
    pubend: str
    incarnation: int
    after: Tick
    upto: Tick


_Plain = Publication | Gap | tuple[Publication, tuple[Tag, ...]]  #: of streams that are not logged

#: What stands on a shelf.
Entry = _Plain | _Run | _Lost | _Quiet


class Shelf:
    """The items of one subscription, in their order.

    Invariant: an entry at the head of the row is an item, or begins with one.
    """

    def __init__(self, *, silence: bool = False, raises_gaps: bool = False) -> None:
        self._gives_silence = silence
        self._raises_gaps = raises_gaps
        self._row: deque[Entry] = deque()
        self._quiet: dict[str, _Quiet] = {}  #: by pubend, those entries of the row that only such follow
        self._places: dict[str, Place] = {}
        self._moved: dict[str, Tick] = {}  #: where the token has moved to since somebody asked
        self.plain = 0  #: items of streams that are not logged
        self.logged = 0  #: events of those that are

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._row)

    @property
    def token(self) -> Token:
        """After everything that was taken."""
        return Token(self._places)

    def begin(self, token: Token, *, is_consumed: bool = False) -> None:
        """Where the subscription begins; ``is_consumed``: the application says that it has had what was before."""
        self._places = dict(token)
        if is_consumed:
            self._moved = {pubend: place.tick for pubend, place in token.items()}

    def pop_moved(self) -> dict[str, Tick]:
        """By pubend the places to which the token has moved since the last time this was asked."""
        moved, self._moved = self._moved, {}
        return moved

    def places_of(self, upto: Item | Token) -> dict[str, Tick]:
        """What is consumed with an item, of its pubend, or with a token; nothing of what is not logged.

        :raises InvalidOption: if it is neither.
        """
        if isinstance(upto, Token):
            places = {pubend: place.tick for pubend, place in upto.items()}
        elif isinstance(upto, Event):
            places = {upto.pubend: upto.tick} if isinstance(upto, LoggedEvent) else {}
        elif isinstance(upto, Gap | Silence):
            places = {upto.pubend: upto.upto}
        else:
            raise InvalidOption("upto", f"is {upto!r}; expected an item or a Token")
        return {pubend: tick for pubend, tick in places.items() if pubend in self._places}

    # Arriving

    def add_delivered(self, effect: Delivered) -> None:
        """Items of streams that are not logged."""
        self._quiet.clear()
        self._row += effect.items if not any(effect.copies) else _with_tags(effect)
        self.plain += len(effect.items)

    def add_stretch(self, stretch: Stretch) -> None:
        """More of a pubend."""
        pubend, incarnation = stretch.pubend, stretch.incarnation
        last = stretch.after
        gap = stretch.gap
        if gap is not None:
            self._quiet.clear()
            self._row.append(_Lost(gap, incarnation))
            last = gap.upto
        if stretch.ticks:
            self._quiet.clear()
            self._row.append(_Run(pubend, incarnation, stretch.publications, stretch.ticks))
            self.logged += len(stretch.ticks)
            last = stretch.ticks[-1]
        if stretch.upto > last:
            self._add_quiet(pubend, incarnation, last, stretch.upto)
        self._settle()

    def _add_quiet(self, pubend: str, incarnation: int, after: Tick, upto: Tick) -> None:
        quiet = self._quiet.get(pubend)
        if quiet is not None:
            quiet.incarnation, quiet.upto = incarnation, upto
            return
        quiet = self._quiet[pubend] = _Quiet(pubend, incarnation, after, upto)
        self._row.append(quiet)

    def pop_all(self) -> list[Entry]:
        """Give everything to another shelf, which is nearer to who takes."""
        entries = [*self._row]
        self.clear()
        return entries

    def put(self, entries: list[Entry]) -> None:
        """Take over what another shelf had."""
        self._quiet.clear()
        self._row += entries
        self.plain += sum(not isinstance(each, _Run | _Lost | _Quiet) for each in entries)
        self.logged += sum(len(each.ticks) - each.at for each in entries if isinstance(each, _Run))
        self._settle()

    def clear(self) -> None:
        """Nobody will take anything any more."""
        self._row.clear()
        self._quiet.clear()
        self.plain = self.logged = 0

    # Taking

    def take(self) -> Item:
        """The first item.

        :raises GapFound: if that is a gap, and those are raised; it is behind us then.
        """
        entry = self._row[0]
        item: Item
        if isinstance(entry, _Run):
            item = self._take_of(entry)
        else:
            self._row.popleft()
            item = self._opened(entry)
        self._settle()
        if self._raises_gaps and isinstance(item, Gap):
            raise GapFound(item)
        return item

    def take_batch(self) -> list[Item]:
        """All items, at least one; up to the next gap, if those are raised.

        :raises GapFound: if that is the first.
        """
        if self._raises_gaps and isinstance(self._row[0], Gap | _Lost):
            return [self.take()]  # which raises
        batch: list[Item] = []
        while self._row and not (self._raises_gaps and isinstance(self._row[0], Gap | _Lost)):
            entry = self._row.popleft()
            if isinstance(entry, _Run):
                batch += self._take_all_of(entry)
            elif self._gives_silence or not isinstance(entry, _Quiet):
                batch.append(self._opened(entry))
            else:
                self._pass(entry)
        return batch

    def _take_of(self, run: _Run) -> LoggedEvent:
        at, tick = run.at, run.ticks[run.at]
        run.at += 1
        if run.at == len(run.ticks):
            self._row.popleft()
        self.logged -= 1
        self._move(run.pubend, run.incarnation, tick)
        return LoggedEvent.of(run.publications[at], run.pubend, run.incarnation, tick)

    def _take_all_of(self, run: _Run) -> list[LoggedEvent]:
        pubend, incarnation = run.pubend, run.incarnation
        publications, ticks = run.publications, run.ticks
        if run.at:
            publications, ticks = publications[run.at :], ticks[run.at :]
        self.logged -= len(ticks)
        self._move(pubend, incarnation, ticks[-1])
        return [
            LoggedEvent.of(publication, pubend, incarnation, tick)
            for publication, tick in zip(publications, ticks, strict=True)
        ]

    def _opened(self, entry: _Plain | _Lost | _Quiet) -> Item:
        if isinstance(entry, _Quiet):
            self._pass(entry)
            return Silence(entry.pubend, entry.after, entry.upto)
        if isinstance(entry, _Lost):
            self._move(entry.gap.pubend, entry.incarnation, entry.gap.upto)
            return entry.gap
        self.plain -= 1
        if isinstance(entry, Gap):
            return entry
        publication, tags = (entry, ()) if isinstance(entry, Publication) else entry
        event = unpack(publication.event).event(publication.publisher, publication.n)
        return TaggedEvent.of(event, tags) if tags else event

    # The token

    def _settle(self) -> None:
        """Pass over silence nobody asked for."""
        row = self._row
        while row and not self._gives_silence and isinstance(quiet := row[0], _Quiet):
            row.popleft()
            self._pass(quiet)

    def _pass(self, quiet: _Quiet) -> None:
        if self._quiet.get(quiet.pubend) is quiet:
            del self._quiet[quiet.pubend]
        self._move(quiet.pubend, quiet.incarnation, quiet.upto)

    def _move(self, pubend: str, incarnation: int, tick: Tick) -> None:
        self._places[pubend] = Place(incarnation, tick)
        self._moved[pubend] = tick


def _with_tags(effect: Delivered) -> list[_Plain]:
    return [
        (item, copy.tags) if isinstance(item, Publication) and copy is not None and copy.tags else item
        for item, copy in zip(effect.items, effect.copies, strict=True)
    ]
