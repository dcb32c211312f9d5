"""The oracle of durable networks, shown steps written by hand: each law kept, and each broken in one place."""

from __future__ import annotations

from typing import Any

from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.durable import Acknowledge, Portion
from holdfast.messages.publications import Batch, Publication
from holdfast.messages.subscriptions import Confirmed, Partition, Resume, Subscribe, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Items
from holdfast.overlay.transport import Received, Send
from holdfast.simulator.connection import Host
from holdfast.simulator.oracle.durable import DurableOracle
from holdfast.streams.storing import AppendEvents, ChopEvents, EventsRefused, EventsStable

PUBEND = "scenario@b/0"
BROKER, CLIENT = Host("b", 1), Host("u", 1)
MINE = SubscriptionId("u", 1, 1)


def event(n: int) -> Publication:
    return Publication("p", n, pack(make_event("a", {"qty": n})))


class Watched:
    """An oracle, and what it is shown."""

    def __init__(self, filter: str = "a") -> None:
        self.oracle = DurableOracle()
        self.filter = filter

    def step(self, host: Host, stimulus: Any, *effects: Any) -> None:
        self.oracle.step(0, host, stimulus, effects)

    def append(self, **ticks: int) -> None:
        """Events by number, as n1=tick."""
        numbers = [int(name[1:]) for name in ticks]
        self.step(BROKER, None, AppendEvents(PUBEND, [*ticks.values()], list(map(event, numbers)), 0))

    def stable(self, appends: int = 1) -> None:
        self.step(BROKER, EventsStable(PUBEND, appends, 0))

    def items(self, lo: int, tick: int, n: int | None = None, under: int = 1) -> None:
        publication = None if n is None else event(n)
        self.step(BROKER, None, Send(1, [Items(PUBEND, under, [lo], [tick], [publication])]))

    def subscribe(self, start: dict[str, tuple[int, int]], *partial: Partition) -> None:
        asked = Subscribe(MINE, self.filter, (Element("u", 1, 1),), resume=Resume(10, "u/mine"))
        self.step(CLIENT, None, Send(1, [asked]))
        self.step(CLIENT, Received(1, [Confirmed(MINE, partial, start)]))

    def laws(self, *, releases_early: bool = False) -> list[str]:
        """Those that were broken."""
        return [violation.kind for violation in self.oracle.broken(releases_early=releases_early)]


def test_a_log_that_is_written_once_and_told_of_as_it_is_breaks_no_law() -> None:
    shown = Watched()
    shown.append(n1=10, n2=20)
    shown.stable()
    shown.items(5, 10, 1)
    shown.items(10, 15)
    shown.items(15, 20, 2, under=ABSOLUTE)
    shown.items(20, 30, under=ABSOLUTE)
    shown.append(n3=40)
    shown.stable()
    assert not shown.laws()
    assert shown.oracle.events == 3


def test_i18_an_event_that_is_stable_at_two_ticks_is_seen() -> None:
    shown = Watched()
    shown.append(n1=10)
    shown.append(n1=20)
    shown.stable(2)
    assert shown.laws() == ["I18"]


def test_i18_what_was_refused_or_died_with_its_broker_may_be_logged_again() -> None:
    for end in (EventsRefused(PUBEND, "full", False), "crash"):
        shown = Watched()
        shown.append(n1=10)
        if end == "crash":
            shown.oracle.note(0, "b", "=", "crashed")
        else:
            shown.step(BROKER, end)
        shown.append(n1=20)
        shown.stable()
        assert not shown.laws()


def test_i19_a_tick_that_was_said_to_be_past_is_seen() -> None:
    shown = Watched()
    shown.items(0, 30)
    shown.append(n1=30)
    assert shown.laws() == ["I19"]
    shown = Watched()
    shown.step(BROKER, None, Send(1, [Portion(1, PUBEND, 1, Batch([]), [], [], 30)]))
    shown.append(n1=20)
    assert shown.laws() == ["I19"]


def test_i20_two_events_at_one_tick_are_seen() -> None:
    shown = Watched()
    shown.items(5, 10, 1)
    shown.items(5, 10, 2)
    assert shown.laws() == ["I20"]


def test_i20_silence_for_all_over_an_event_is_seen_and_silence_for_one_is_not() -> None:
    for lo, tick, under, expected in (
        (5, 15, ABSOLUTE, ["I20"]),
        (5, 10, ABSOLUTE, ["I20"]),
        (10, 15, ABSOLUTE, []),
        (5, 15, 7, []),
    ):
        shown = Watched()
        shown.items(0, 10, 1)
        shown.items(lo, tick, under=under)
        assert shown.laws() == expected


def chopped(
    through: int, *, acknowledged: int = 0, start: int = 5, ended: bool = False, filter: str = "a"
) -> Watched:
    shown = Watched(filter)
    shown.append(n1=10, n2=20)
    shown.stable()
    shown.subscribe({PUBEND: (1, start)})
    if acknowledged:
        shown.step(CLIENT, None, Send(1, [Acknowledge(1, {PUBEND: acknowledged}, 1)]))
    if ended:
        shown.step(CLIENT, None, Send(1, [Unsubscribe(MINE)]))
    shown.step(BROKER, None, ChopEvents(PUBEND, through))
    return shown


def test_i17_a_log_that_forgets_what_somebody_has_not_acknowledged_is_seen() -> None:
    assert chopped(10).laws() == ["I17"]
    assert chopped(10).laws(releases_early=True) == []
    assert chopped(20, acknowledged=10).laws() == ["I17"]


def test_i17_what_was_acknowledged_or_is_not_for_it_may_go() -> None:
    assert chopped(9).laws() == []
    assert chopped(10, acknowledged=10).laws() == []
    assert chopped(10, start=10).laws() == []
    assert chopped(20, ended=True).laws() == []
    assert chopped(10, filter="a WHERE qty > 1").laws() == []
    assert chopped(20, filter="a WHERE qty > 1").laws() == ["I17"]
    assert chopped(10).oracle.forgotten(PUBEND) == 1


def test_i17_whoever_comes_back_has_acknowledged_what_it_has_consumed() -> None:
    """A token is an acknowledgement (seed 10414): the client may die before it sends another."""
    for consumed, expected in ((None, []), ({PUBEND: 20}, []), ({PUBEND: 19}, ["I17"])):
        shown = chopped(0)
        resume = Resume(1, "u/mine", token={PUBEND: (1, 20)}, consumed=consumed)
        shown.step(CLIENT, None, Send(1, [Subscribe(MINE, "a", (), resume=resume)]))
        shown.step(BROKER, None, ChopEvents(PUBEND, 20))
        assert shown.laws() == expected


def test_i17_what_was_not_reached_when_it_was_subscribed_to_is_not_held_for_it() -> None:
    shown = Watched()
    shown.append(n1=10)
    shown.stable()
    shown.subscribe({}, Partition("b", 1, 1, (PUBEND,)))
    shown.step(BROKER, None, ChopEvents(PUBEND, 10))
    assert not shown.laws()
    whole = Watched()
    whole.append(n1=10)
    whole.stable()
    whole.subscribe({})
    whole.step(BROKER, None, ChopEvents(PUBEND, 10))
    assert whole.laws() == ["I17"], "a pubend that came later is for it from its beginning (B1.11)"
