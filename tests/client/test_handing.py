"""What a member publishes on best-effort streams: one broker has all of it, until it is lost."""

from __future__ import annotations

from answered import numbered
from holdfast.client.handing import Handing
from holdfast.messages.overlay import Role
from holdfast.messages.publications import Accepted, Publish
from holdfast.node.station import Station
from holdfast.node.topology import Place
from holdfast.overlay.transport import Send


def station(name: str, connection: int) -> Station:
    made = Station(Place(name, Role.BROKER, (name,)))
    made.connection = connection
    return made


def sent(effects: list[Send]) -> list[tuple[int, list[int]]]:
    found = []
    for effect in effects:
        numbers = [
            each.n
            for said in effect.messages
            if isinstance(said, Publish)
            for each in said.batch.publications
        ]
        found.append((effect.connection, numbers))
    return found


def test_what_is_published_before_anybody_is_there_goes_to_the_first_who_is() -> None:
    handing = Handing()
    assert handing.add(numbered(1, 2)) == []
    assert sent(handing.hand_to([station("home", 7)])) == [(7, [1, 2])]


def test_it_stays_with_a_broker_as_long_as_that_is_there() -> None:
    handing, home, other = Handing(), station("home", 7), station("other", 8)
    handing.hand_to([other])
    assert handing.hand_to([home, other]) == []
    assert sent(handing.add(numbered(1))) == [(8, [1])]


def test_what_a_lost_broker_has_not_answered_goes_to_the_next() -> None:
    handing, home, other = Handing(), station("home", 7), station("other", 8)
    handing.hand_to([home])
    handing.add(numbered(1, 2, 3))
    assert handing.accept(Accepted(1)) == [1]
    handing.on_gone(home)
    assert sent(handing.hand_to([other])) == [(8, [2, 3])]


def test_answers_count_once() -> None:
    handing = Handing()
    handing.hand_to([station("home", 7)])
    handing.add(numbered(1, 2, 3))
    handing.reject(2)
    assert handing.accept(Accepted(3)) == [1, 3]
    assert handing.accept(Accepted(3)) == []
