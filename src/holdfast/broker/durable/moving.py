"""Durable subscriptions that are read at another broker than before (B1.9).

Whoever presents the name reads it, at any broker. A client that keeps its own token says where it stands; for one that
does not, the broker that has the subscription is asked; and of one that does, too, since that broker knows up to where
nothing was for it (``wishes``). Only when the pubends wait for it at its new place is it forgotten at the old one:
nothing that it has not acknowledged goes in between. Each move has its number, the epoch, so that an old one, heard of
late, undoes nothing. It is a time by the wall clock, and above the last one's: so a broker that was down, and has not
heard of the last move, knows whether its client came after it.

Two clients may come at once to two brokers. The one that is asked gives it to the first. Where nobody could be asked,
because it is new or those who have it are out of reach, both begin it; they hear of each other, and the later claim
asks the other how far it is there, goes on where neither has been, and ousts it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.broker.durable.elsewhere import claim_of, rank
from holdfast.broker.durable.greeting import ADMIT_WITHIN_NS, others
from holdfast.broker.durable.joining import acknowledged, begun, had, joined
from holdfast.broker.durable.reader import Reader, withheld
from holdfast.clock import SECOND, Instant
from holdfast.messages.durable import Ended, Fetch, Fetched, Letter, Moved, MovedTaken, Stand, Withheld
from holdfast.messages.subscriptions import Durable
from holdfast.messages.ticks import ORIGIN
from holdfast.node.interest import Interest

if TYPE_CHECKING:
    from holdfast.broker.durable.plane import DurablePlane

__all__ = ["Moving"]

#: Whoever was told where a subscription stands has so long to read it before another is told.
GIVEN_FOR_NS: Final = SECOND

#: So long what it stands before is kept for them; a broker that has it has said so by then.
HELD_FOR_NS: Final = 60 * SECOND


class Moving:
    """Of one broker."""

    def __init__(self, plane: DurablePlane) -> None:
        self._plane = plane
        self._given: dict[str, tuple[str, Instant]] = {}  #: who was told last where one stands, and when

    def receive(self, letter: Letter) -> None:
        """Another broker has written."""
        match letter:
            case Fetch():
                self._on_fetch(letter)
            case Fetched():
                self._on_fetched(letter)
            case Withheld():
                self._plane.wishes.withhold(letter)
            case Moved():
                self._on_moved(letter)
            case Ended():
                self._on_ended(letter)
            case MovedTaken():
                self._on_moved_taken(letter)

    def repeat(self) -> None:
        """From time to time: whatever has no answer."""
        for reader in self._plane.readers.durable.values():
            if reader.moved_from:
                self._tell(reader)
        self._plane.readers.endings.repeat()
        self._let_go()

    # Where it stands

    def _on_fetch(self, letter: Fetch) -> None:
        readers, durable = self._plane.readers, letter.durable
        here, _ = readers.find(durable)
        is_awaited = here is not None and self._plane.wishes.waits_for(durable, letter.origin)
        # Who is awaited here has lost what it was told: both would wait.
        if durable in self._plane.wishes and not is_awaited:
            return  # it is about to be here; it will be asked again
        reader, places = readers.durable.get(durable), None
        if reader is not None:
            if letter.epoch and self._stays(reader, letter):
                return  # that broker will hear of it, or has by now
            reason = "" if letter.epoch else _withheld(reader, letter)
            if reason:
                refusal = Withheld(letter.origin, self._plane.name, durable, letter.seat, reason)
                self._plane.letters.post(refusal)
                return
            readers.oust(reader, f"{durable} is read at {letter.origin}")
            places = readers.greeting.stands(reader)
            if places is None or self.given_to(durable) not in (None, letter.origin):
                return  # it will ask again
            readers.places.hold(reader, is_held=True)
            readers.greeting.promise(reader, places)
            self._given[durable] = letter.origin, self._plane.now
        answer = Fetched(letter.origin, self._plane.name, durable, places)
        if reader is not None and reader.durable is not None:
            born, born_at = reader.born
            epoch = reader.durable.epoch
            answer = replace(
                answer, epoch=epoch, born=born, born_at=born_at, seat=reader.seat, start=reader.start
            )
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def _stays(self, reader: Reader, letter: Fetch) -> bool:
        """Whether one that another broker has, too, is here nevertheless: by a later claim, or by its client.

        If that one has begun it by itself, it is we who ask it how far it is there.
        """
        if rank(reader.durable, self._plane.name) > (letter.epoch, letter.origin):
            return True
        if not self._has_come_back(reader, letter):
            return False
        if reader.born[0] and letter.born != reader.born:
            reader.unmerged[letter.origin] = self._plane.now + ADMIT_WITHIN_NS
        return True

    def _has_come_back(self, reader: Reader, letter: Fetch | Moved) -> bool:
        """Whether its client has come here after another broker had claimed it: then it is ours, and so we claim it.

        So it has if there it is read by one that was only interrupted, and did not know that ours had come since.
        """
        is_later = reader.seat.is_after(letter.seat)
        has_come = reader.port is not None and (is_later or reader.seated_on > letter.epoch)
        if not has_come or letter.seat.is_after(reader.seat):
            return False
        reader.durable = Durable(letter.durable, max(reader.seated_on, letter.epoch + 1))
        reader.moved_from[letter.origin] = letter.epoch
        self._plane.readers.places.save_reader(reader)
        return True

    def given_to(self, durable: str) -> str | None:
        """The broker that was just told where a subscription stands, and is going to read it."""
        broker, at = self._given.get(durable, ("", 0))
        return broker if broker and self._plane.now < at + GIVEN_FOR_NS else None

    def _let_go(self) -> None:
        """What was told to somebody who has made nothing of it is kept for them no longer."""
        now, places = self._plane.now, self._plane.readers.places
        held = [reader for reader in self._plane.readers.durable.values() if reader.is_held]
        self._given = {reader.name: self._given.get(reader.name, ("", now)) for reader in held}
        for reader in held:
            _, at = self._given[reader.name]
            if now >= at + HELD_FOR_NS:
                places.hold(reader, is_held=False)

    def take_back(self, durable: str) -> None:
        """It is read here again."""
        self._given.pop(durable, None)

    def _on_fetched(self, letter: Fetched) -> None:
        if self._plane.wishes.answer(letter):
            return
        reader = self._plane.readers.durable.get(letter.durable)
        if reader is not None and letter.origin in reader.unmerged and _is_in_place(reader):
            self._merge(reader, letter)

    # That it is here now

    def on_rival(self, interest: Interest) -> None:
        """A broker has made a subscription known: if it is here by a later claim, it is to be forgotten there."""
        assert interest.durable is not None
        readers, (epoch, broker) = self._plane.readers, claim_of(interest)
        reader = readers.durable.get(interest.durable.name)
        if reader is None or rank(reader.durable, self._plane.name) < (epoch, broker):
            return
        if readers.endings.covers(interest.durable.name, (epoch, broker)):
            return
        reader.is_new = False
        known = reader.moved_from.get(broker, -1)
        # Not if its client has said where it stood, nor one that is over.
        if reader.born[0] and known <= epoch:
            reader.unmerged.setdefault(broker, self._plane.now + ADMIT_WITHIN_NS)
        if known < epoch:
            reader.moved_from[broker] = epoch
            readers.places.save_reader(reader)

    def _merge(self, reader: Reader, letter: Fetched) -> None:
        """It is at another broker, too: if it was begun there, it goes on here where nobody has been at either."""
        readers, broker = self._plane.readers, letter.origin
        claim, born = (letter.epoch, broker), (letter.born, letter.born_at)
        del reader.unmerged[broker]
        # Else it is what has come here since; 0: its client said where it stood.
        is_another = born != reader.born
        if letter.places is None or not is_another or reader.has_own_token:
            readers.places.save_reader(reader)
            readers.greeting.greet(reader)
            return
        is_first, theirs_is_first = reader.stood is None, born == claim
        places: dict[str, Stand] = {}
        goes_back = are_put_back = False
        for course in self._plane.courses_for(reader.filter):
            mine, theirs = readers.places.stand(reader, course), letter.places.get(course.pubend, begun(born))
            if mine is not None:
                position = joined(had(mine, is_first=is_first), had(theirs, is_first=theirs_is_first))
                places[course.pubend] = Stand(position, acknowledged(position, mine, theirs), position)
                goes_back |= position < mine.released
                are_put_back |= position < theirs.released
        if others(letter.start, letter.born) < others(reader.start, reader.born[0]):
            reader.start = letter.start if letter.born else others(letter.start, ORIGIN)
        reader.born = min(reader.born, born) if letter.born else reader.born
        if goes_back or are_put_back:
            readers.put_back(reader, letter, is_ousted=goes_back)
        if not reader.is_greeted:
            self._plane.operating.seeking.put(reader, places)
        readers.places.save_reader(reader)
        readers.greeting.say_born(reader)
        readers.greeting.greet(reader)

    def _tell(self, reader: Reader) -> None:
        """Where a subscription came from it need not be kept, once it is waited for here.

        Of one that was given away that is for those to say who have it now.
        """
        if not _is_in_place(reader) or reader.durable is None:
            return
        courses = self._plane.courses_for(reader.filter)
        if all(course.hosted.taken >= reader.pins.get(course.pubend, 0) for course in courses):
            me, (name, epoch) = self._plane.name, (reader.durable.name, reader.durable.epoch)
            for broker in reader.moved_from:
                moved = Moved(broker, me, name, epoch, reader.seat)
                merge = Fetch(broker, me, name, reader.seat, reader.born, epoch)
                self._plane.letters.post(merge if broker in reader.unmerged else moved)

    def _on_moved(self, letter: Moved) -> None:
        readers, reader = self._plane.readers, self._before(letter)
        if reader is not None:
            if self._has_come_back(reader, letter):
                return
            readers.give_away(reader, f"{letter.durable} is read at {letter.origin}")
        self._say_taken(letter)

    def _on_ended(self, letter: Ended) -> None:
        readers, reader = self._plane.readers, self._before(letter)
        if readers.endings.hear(letter) and reader is not None:
            readers.on_ended(reader, letter)
        self._say_taken(letter)

    def _before(self, letter: Moved | Ended) -> Reader | None:
        """What is here by an earlier claim than that of a letter."""
        reader = self._plane.readers.durable.get(letter.durable)
        if reader is None or rank(reader.durable, self._plane.name) > (letter.epoch, letter.origin):
            return None
        return reader

    def _say_taken(self, letter: Moved | Ended) -> None:
        """When it is so on disk; also that it had been before."""
        answer = MovedTaken(letter.origin, self._plane.name, letter.durable, letter.epoch)
        self._plane.saving.add(then=lambda: self._plane.letters.post(answer))

    def _on_moved_taken(self, letter: MovedTaken) -> None:
        readers, broker = self._plane.readers, letter.origin
        reader = readers.durable.get(letter.durable)
        if reader is not None and broker in reader.moved_from and self._has_told(reader, letter):
            del reader.moved_from[broker]
            readers.places.save_reader(reader)
        if readers.endings.on_taken(letter.durable, broker, letter.epoch):
            self._plane.wishes.on_taken(letter.durable)
            for interest in readers.elsewhere.of(letter.durable):
                if interest.subscription.subscriber == broker:  # it was begun anew there, or is about to go
                    self.on_rival(interest)

    def _has_told(self, reader: Reader, letter: MovedTaken) -> bool:
        """Whether an answer is to what was said of this subscription, and not to the end of one before it."""
        assert reader.durable is not None
        answered, last = (letter.epoch, self._plane.name), (reader.moved_from[letter.origin], letter.origin)
        return letter.epoch >= reader.durable.epoch and answered > last


def _withheld(reader: Reader, letter: Fetch) -> str:
    return withheld(reader.name, reader.seat, reader.born, had=letter.seat, read=letter.born)


def _is_in_place(reader: Reader) -> bool:
    """Whether it has all its places here, and not for somebody else."""
    return reader.is_confirmed and not reader.awaited and not reader.is_held
