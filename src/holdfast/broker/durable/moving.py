"""Durable subscriptions that are read at another broker than before (B1.9).

Whoever presents the name reads it, at any broker. A client that keeps its own token says where it stands; for one that
does not, the broker that has the subscription is asked; and of one that does, too, since that broker knows up to where
nothing was for it. Only when the pubends wait for it at its new place is it
forgotten at the old one: nothing that it has not acknowledged goes in between. Each move has its number, the epoch, so
that an old one, heard of late, undoes nothing. It is a time by the wall clock, and above the last one's: so a broker
that was down, and has not heard of the last move, knows whether its client came after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.reader import Reader
from holdfast.clock import SECOND, Instant
from holdfast.filters.expression import Filter
from holdfast.identity import SubscriptionId
from holdfast.messages.durable import Fetch, Fetched, Letter, Moved, MovedTaken, Stand
from holdfast.messages.subscriptions import Durable, Refused, Resume
from holdfast.messages.ticks import Tick
from holdfast.overlay.transport import Send
from holdfast.routing.port import ClientPort

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Moving"]

#: So long a broker is asked where a subscription stands; less, if its client has a token.
FETCH_WITHIN_NS: Final = 5 * SECOND
CHECK_WITHIN_NS: Final = 3 * SECOND // 2


@dataclass(frozen=True, slots=True)
class _Wish:
    """A client wants to read what another broker has."""

    port: ClientPort
    connection: int | None
    subscription: SubscriptionId
    filter: Filter
    resume: Resume
    broker: str
    until: Instant


class Moving:
    """Of one broker."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane
        self._wishes: dict[str, _Wish] = {}  #: by durable name
        self._postponed: list[_Wish] = []

    def fetch(
        self, broker: str, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume
    ) -> None:
        """Ask a broker where a subscription stands; then it is read here."""
        assert resume.durable is not None
        until = self._plane.now + (FETCH_WITHIN_NS if resume.token is None else CHECK_WITHIN_NS)
        wish = _Wish(port, port.connection, subscription, filter, resume, broker, until)
        self._wishes[resume.durable] = wish
        self._ask(resume.durable, wish)

    def postpone(
        self, port: ClientPort, subscription: SubscriptionId, filter: Filter, resume: Resume, until: Instant
    ) -> None:
        """Whether a subscription is still here is not known yet: it is read later."""
        here = self._plane.name
        self._postponed.append(_Wish(port, port.connection, subscription, filter, resume, here, until))

    def _read_postponed(self) -> None:
        due = [wish for wish in self._postponed if self._plane.now >= wish.until]
        self._postponed = [wish for wish in self._postponed if self._plane.now < wish.until]
        for wish in due:
            if wish.connection is not None and wish.port.connection == wish.connection:
                self._plane.readers.read(wish.port, wish.subscription, wish.filter, wish.resume)

    def _ask(self, durable: str, wish: _Wish) -> None:
        self._plane.letters.post(Fetch(wish.broker, self._plane.name, durable))

    def receive(self, letter: Letter) -> None:
        """Another broker has written."""
        match letter:
            case Fetch():
                self._on_fetch(letter)
            case Fetched():
                self._on_fetched(letter)
            case Moved():
                self._on_moved(letter)
            case MovedTaken():
                self._on_moved_taken(letter)

    def repeat(self) -> None:
        """From time to time: whatever has no answer."""
        self._read_postponed()
        for reader in self._plane.readers.durable.values():
            self._tell(reader)
        for durable, wish in list(self._wishes.items()):
            if wish.port.connection != wish.connection or wish.connection is None:
                del self._wishes[durable]
            elif self._plane.now < wish.until:
                self._ask(durable, wish)
            elif wish.resume.token is not None:
                del self._wishes[durable]
                self._take_over(wish, wish.resume)
            else:
                del self._wishes[durable]
                problem = f"{durable!r} is kept at {wish.broker}, which does not answer: come later, or with its token"
                self._plane.emit(Send(wish.connection, [Refused(wish.subscription, problem)]))

    # Where it stands

    def _on_fetch(self, letter: Fetch) -> None:
        readers = self._plane.readers
        reader = readers.durable.get(letter.durable)
        if reader is not None and reader.port is not None:
            readers.oust(reader, f"{letter.durable} is read at {letter.origin}")
        places = None if reader is None else readers.places.stands(reader)
        answer = Fetched(letter.origin, self._plane.name, letter.durable, places)
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def _on_fetched(self, letter: Fetched) -> None:
        wish = self._wishes.get(letter.durable)
        if wish is None or wish.broker != letter.origin:
            return
        del self._wishes[letter.durable]
        if wish.connection is None or wish.port.connection != wish.connection:
            return
        resume = wish.resume
        if letter.places is not None:
            resume = replace(resume, token=_token(resume.token, letter.places))
        self._take_over(wish, resume)

    def _take_over(self, wish: _Wish, resume: Resume) -> None:
        presented = wish.resume.token
        self._plane.readers.take_over(wish.port, wish.subscription, wish.filter, resume, presented)

    # That it is here now

    def _tell(self, reader: Reader) -> None:
        """Where a subscription came from it need not be kept, once it is waited for here."""
        if not reader.moved_from or not reader.is_confirmed or reader.awaited or reader.durable is None:
            return
        courses = self._plane.courses_for(reader.filter)
        if all(course.hosted.taken >= reader.pins.get(course.pubend, 0) for course in courses):
            for broker in reader.moved_from:
                self._plane.letters.post(
                    Moved(broker, self._plane.name, reader.durable.name, reader.durable.epoch)
                )

    def _on_moved(self, letter: Moved) -> None:
        readers = self._plane.readers
        reader = readers.durable.get(letter.durable)
        answer = MovedTaken(letter.origin, self._plane.name, letter.durable, letter.epoch)
        if reader is None or reader.durable is None or reader.durable.epoch >= letter.epoch:
            self._plane.letters.post(answer)
            return
        if reader.port is not None and reader.seated_on > letter.epoch:  # its client has come back since
            reader.durable = Durable(letter.durable, reader.seated_on)
            reader.moved_from[letter.origin] = letter.epoch
            readers.places.save_reader(reader)
            return
        if reader.port is not None:
            readers.oust(reader, f"{letter.durable} is read at {letter.origin}")
        readers.remove(reader)
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def _on_moved_taken(self, letter: MovedTaken) -> None:
        reader = self._plane.readers.durable.get(letter.durable)
        if reader is not None and letter.origin in reader.moved_from:
            del reader.moved_from[letter.origin]
            self._plane.readers.places.save_reader(reader)


def _token(
    token: Mapping[str, tuple[int, Tick]] | None, stands: Mapping[str, Stand]
) -> dict[str, tuple[int, Tick]]:
    """Where a subscription goes on: what its client says counts, and what is known to be nothing is left out."""
    if token is None:
        return {pubend: (0, stand.released) for pubend, stand in stands.items()}
    found = dict(token)
    for pubend, (start, acknowledged, released) in stands.items():
        incarnation, tick = token.get(pubend, (0, min(start, acknowledged)))
        if tick >= acknowledged:
            found[pubend] = incarnation, max(tick, released)
    return found
