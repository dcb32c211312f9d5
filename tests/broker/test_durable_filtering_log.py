"""Who comes while the filtering log knows more than its broker: matches are noted above that, nowhere else (B1.5).

What is written is not written again. So a subscription that began below it would have matches that nobody noted, and
whoever came back to it would be told that there was nothing.
"""

from __future__ import annotations

from durable_desk import FAR, Desk, admitted, followed, items

from by_hand import a_publication
from holdfast.clock import SECOND
from holdfast.messages.durable import Reported, Resign
from holdfast.messages.subscriptions import Confirmed, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Start
from holdfast.streams.storing import Save

EVENTS = [(150, a_publication("q", 1)), (160, a_publication("q", 2)), (170, a_publication("q", 3))]
WRITTEN = 160  #: of the first two it is on disk who matched


def away_and_back(desk: Desk, connection: int, name: str, filter: str = "a") -> int:
    """A durable reader leaves without having acknowledged anything, and comes again."""
    desk.lose(connection)
    desk.wait(SECOND)
    back = desk.reader(name, filter, durable=name, incarnation=2)
    desk.wait(SECOND)
    return back


def due(desk: Desk, connection: int) -> list[int]:
    """What a reader is to get: all that stands above where it was confirmed."""
    return [event.n for tick, event in EVENTS if tick > desk.place(connection, FAR)]


def written_and_crashed() -> Desk:
    """Matches are on disk, and that everything up to them was delivered is not."""
    desk, left, _ = followed(durable="old")
    desk.wait(SECOND)
    desk.hold(Save)
    desk.say(left, items(FAR, ABSOLUTE, 100, EVENTS[:2], WRITTEN))
    desk.wait(SECOND)
    desk.restart()
    return desk


def test_who_comes_new_after_a_crash_gets_again_what_it_did_not_acknowledge() -> None:
    desk = written_and_crashed()
    left = desk.meet("left", FAR)
    new = desk.reader("new", durable="new")
    desk.say(left, Start(FAR, 100), items(FAR, ABSOLUTE, 100, EVENTS, 180))
    desk.wait(SECOND)
    assert desk.got(new) == due(desk, new) == [3], "the others were there before it was"
    back = away_and_back(desk, new, "new")
    assert desk.got(back) == [3]
    assert not desk.gaps(back)


def test_who_was_there_before_a_crash_gets_everything_from_the_log() -> None:
    desk = written_and_crashed()
    left = desk.meet("left", FAR)
    desk.say(left, Start(FAR, 100), items(FAR, ABSOLUTE, 100, EVENTS, 180))
    desk.wait(3 * SECOND)
    back = desk.reader("u", durable="old", incarnation=2)
    desk.wait(SECOND)
    assert desk.got(back) == [1, 2, 3]


def resigned() -> tuple[Desk, int, int]:
    """Nobody wants the pubend any more, and its filtering log is still there; with the number of the last letter."""
    desk, left, reader = followed(durable="old")
    desk.say(left, items(FAR, ABSOLUTE, 100, EVENTS[:2], WRITTEN))
    desk.wait(SECOND)
    desk.say(reader, Unsubscribe(desk.said(reader, Confirmed)[0].subscription))
    desk.wait(8 * SECOND)
    number = desk.said(left, Resign)[0].number
    desk.say(left, Reported("b", "left", FAR, number, 1))
    return desk, left, number


def test_who_comes_with_an_older_token_after_a_resignation_gets_again_what_it_did_not_acknowledge() -> None:
    """It is filtered once more up to where the log ends (R1.32)."""
    desk, left, number = resigned()
    mover = desk.reader("mover", durable="mover", token={FAR: 120})
    desk.say(left, admitted(120, number), Start(FAR, 100), items(FAR, ABSOLUTE, 100, EVENTS, 180))
    desk.wait(SECOND)
    assert desk.got(mover) == due(desk, mover) == [1, 2, 3]
    back = away_and_back(desk, mover, "mover")
    assert desk.got(back) == [1, 2, 3]
    assert not desk.gaps(back)


def test_matches_of_who_had_a_number_in_an_earlier_life_are_not_anothers() -> None:
    """Numbers of readers that are gone are given again after a start (I21)."""
    desk, left, number = resigned()
    desk.restart()
    left = desk.meet("left", FAR)
    mover = desk.reader("mover", "b", durable="mover", token={FAR: 120})
    events = [*EVENTS, (175, a_publication("q", 4, topic="b"))]
    desk.say(left, admitted(120, number), Start(FAR, 100), items(FAR, ABSOLUTE, 100, events, 180))
    desk.wait(SECOND)
    assert desk.durable("mover").number == 1
    assert desk.got(mover) == [4]
    back = away_and_back(desk, mover, "mover", "b")
    assert desk.got(back) == [4]
