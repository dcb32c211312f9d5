"""What has expired may go although somebody has not acknowledged it, up to the first that has not [R1.33, R1.15].

The broker under test has the pubend, and the attribute ``until`` of its events says when they expire.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from durable_desk import ORDERS, OWN, TOTAL, UNHEARD_NS, Desk

from by_hand import a_publication
from holdfast.broker.durable.own import KEEP
from holdfast.broker.durable.records import PUBENDS
from holdfast.broker.settings import Stream
from holdfast.clock import MILLISECOND, SECOND
from holdfast.messages.durable import BEGIN, Report, Requests
from holdfast.messages.publications import Batch, Publish
from holdfast.messages.ticks import Tick
from holdfast.streams.pubend import Kept
from holdfast.streams.release import Reason
from holdfast.streams.storing import ChopEvents, Save

EXPIRING = replace(ORDERS, expires="until")

#: After so long what all have acknowledged is gone.
KEPT_NS = 1_000 * KEEP + SECOND

#: When the next release is due, and some time more.
SOON_NS = 600 * MILLISECOND


class Shop:
    """A pubend whose first event is over, and a neighbour that has subscribers, here left to the test."""

    def __init__(self, stream: Stream = EXPIRING) -> None:
        self.desk = Desk(["left"], [stream])
        self.left = self.desk.meet("left", filters=["a"])
        self.publisher = self.desk.client("p")
        self._published = 0
        self._reports = 0
        self.publish(None)
        self.desk.wait(UNHEARD_NS)
        self.report(self.desk.own.core.stable)
        self.desk.wait(KEPT_NS + SECOND)

    def publish(self, *seconds: float | None, **attributes: Any) -> Tick:
        """Events that expire in so many seconds, or never; the tick of the last."""
        now = self.desk.clock / 1e6
        batch = []
        for each in seconds:
            self._published += 1
            expiry = attributes if each is None else {**attributes, "until": now + each}
            batch.append(a_publication("p", self._published, "a", **expiry))
        self.desk.say(self.publisher, Publish(Batch(batch)))
        return self.desk.own.core.stable

    def report(self, released: Tick | None = None, delivered: Tick | None = None) -> None:
        """What left has released, or the same as before, and delivered, or everything."""
        core = self.desk.own.core
        [last] = self.desk.own.minima.reports
        self._reports += 1
        released = last.released if released is None else released
        delivered = core.stable if delivered is None else delivered
        self.desk.say(self.left, Report("b", "left", OWN, self._reports, released, delivered))

    def restart(self, stream: Stream = EXPIRING) -> None:
        """Another life of the broker; left has not changed."""
        self.desk._settings["streams"] = (stream,)
        self.desk.restart()
        self.left = self.desk.meet("left", filters=["a"], incarnation=2)
        self.publisher = self.desk.client("p", 2)
        self.desk.wait(UNHEARD_NS)

    @property
    def forgotten(self) -> Tick:
        return self.desk.own.core.forgotten

    @property
    def reasons(self) -> list[str]:
        """Of what went although it was not acknowledged."""
        return [each.reason for each in self.desk.own.core.released if each.reason != Reason.ACKNOWLEDGED]


def lasts(row: bytes | None) -> list[Tick]:
    """Of a pubend's row: where its stretches end."""
    assert row is not None
    expiries = msgspec.msgpack.decode(row, type=Kept).expiries
    assert expiries is not None
    return expiries.lasts


# When


def test_what_has_expired_goes_and_not_before() -> None:
    shop = Shop()
    last = shop.publish(30, 20)
    shop.report()
    shop.desk.wait(29 * SECOND)
    assert (shop.forgotten < last - 1, shop.reasons) == (True, []), "the first of them has not expired"
    shop.desk.wait(2 * SECOND)
    assert (shop.forgotten, shop.reasons) == (last, ["expired"])


def test_nothing_goes_that_somebody_who_is_current_has_not_had() -> None:
    """R1.14: t ≤ T_d."""
    shop = Shop()
    had = shop.publish(1)
    last = shop.publish(1)
    shop.report(delivered=had)
    shop.desk.wait(20 * SECOND)
    assert shop.forgotten == had
    shop.report()
    shop.desk.wait(SOON_NS)
    assert shop.forgotten == last


def test_it_goes_up_to_the_first_that_has_not_expired_and_when_that_is_acknowledged_farther() -> None:
    shop = Shop()
    first = shop.publish(1)
    second = shop.publish(None)
    last = shop.publish(1)
    shop.report()
    shop.desk.wait(20 * SECOND)
    assert shop.forgotten == first, "however little that is, since nothing more follows"
    shop.report(second)
    shop.desk.wait(SOON_NS)
    assert shop.forgotten == last


def test_what_came_by_letter_from_another_broker_expires_too() -> None:
    desk = Desk(["left"], [replace(TOTAL, expires="until")])
    left = desk.meet("left", filters=["a"])
    desk.wait(UNHEARD_NS)
    until = desk.clock / 1e6 + 5
    batch = Batch([a_publication("q", 1, until=until), a_publication("q", 2)])
    desk.say(left, Requests("b", "left", OWN, [BEGIN, 1], batch))
    core = desk.own.core
    desk.say(left, Report("b", "left", OWN, 1, core.created, core.stable))
    desk.wait(4 * SECOND)
    assert core.forgotten == core.created
    desk.wait(2 * SECOND)
    assert core.forgotten == core.stable - 1


@pytest.mark.parametrize("value", [True, False, "0", b"0", "absent"])
def test_what_is_no_time_never_comes(value: Any) -> None:
    """bool is not a number."""
    shop = Shop()
    last = shop.publish(None, **({} if value == "absent" else {"until": value}))
    shop.report()
    shop.desk.wait(60 * SECOND)
    assert (shop.forgotten < last, shop.reasons) == (True, [])


def test_without_the_setting_the_attribute_is_one_like_others() -> None:
    shop = Shop(ORDERS)
    last = shop.publish(1)
    shop.report()
    shop.desk.wait(20 * SECOND)
    assert (shop.forgotten < last, shop.reasons) == (True, [])


def test_of_several_policies_the_first_to_want_it_gone_is_the_reason() -> None:
    shop = Shop(replace(EXPIRING, retain_ns=10 * SECOND))
    first = shop.publish(5)
    shop.desk.wait(SECOND)
    last = shop.publish(20)
    shop.report()
    shop.desk.wait(6 * SECOND)
    assert (shop.forgotten, shop.reasons[-1]) == (first, "expired")
    shop.desk.wait(6 * SECOND)
    assert (shop.forgotten, shop.reasons[-1]) == (last, "max_retain")


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_went_for_another_reason_does_not_stand_in_the_way_of_what_expires(is_restarted: bool) -> None:
    shop = Shop(replace(EXPIRING, retain_ns=10 * SECOND))
    first = shop.publish(None)
    shop.desk.wait(5 * SECOND)
    second = shop.publish(7)
    last = shop.publish(None)
    shop.report()
    shop.desk.wait(5 * SECOND + SOON_NS)
    assert first <= shop.forgotten < second
    if is_restarted:
        shop.restart(replace(EXPIRING, retain_ns=10 * SECOND))
    shop.desk.wait(7 * SECOND + SOON_NS - (shop.desk.clock - second) * 1_000)
    assert (shop.forgotten, shop.reasons[-1], second < last) == (second, "expired", True)


def test_who_looks_is_told_the_attribute() -> None:
    [log] = Shop().desk.broker.status()["durable"]["pubends"]
    assert log["expires"] == "until"


# Who reads


def test_who_is_current_has_no_gap_and_who_was_away_has_one_and_then_the_rest() -> None:
    desk = Desk(streams=[EXPIRING])
    publisher = desk.publisher("p")
    here, away = desk.reader("u", durable="here"), desk.reader("v", durable="away")
    desk.lose(away)
    now = desk.clock / 1e6
    for n, until in ((1, now + 1), (2, now + 2), (3, now + 60), (4, now + 3)):
        desk.say(publisher, Publish(Batch([a_publication("p", n, until=until)])))
    desk.wait(10 * SECOND)
    again = desk.reader("v", durable="away", incarnation=2)
    assert desk.gaps(again) == [(OWN, "expired")]
    assert desk.got(again) == [3, 4]
    assert (desk.gaps(here), desk.got(here)) == ([], [1, 2, 3, 4])


# Crashes


def test_what_was_logged_after_the_row_was_saved_is_read_from_the_log() -> None:
    shop = Shop()
    first = shop.publish(5)
    last = shop.publish(500)
    shop.report()
    shop.restart()
    assert shop.forgotten < first
    shop.desk.wait(5 * SECOND)
    assert (shop.forgotten, shop.reasons) == (first, ["expired"])
    shop.restart()
    shop.desk.wait(100 * SECOND)
    assert first <= shop.forgotten < last


def test_what_was_saved_with_the_row_is_not_read_again_and_not_forgotten() -> None:
    shop = Shop()
    first = shop.publish(1)
    middle = shop.publish(30)
    last = shop.publish(None)
    shop.report()
    shop.desk.wait(5 * SECOND)  # the row is saved before the first goes
    assert lasts(shop.desk.tables.read(PUBENDS)[OWN]) == [first, middle, last]
    shop.restart()
    assert lasts(shop.desk.own.row().value) == [middle, last], "what is given up is over"
    shop.desk.wait(10 * SECOND)
    assert shop.forgotten < middle
    shop.desk.wait(20 * SECOND)
    assert middle <= shop.forgotten < last


@pytest.mark.parametrize("held", [Save, ChopEvents])
def test_a_power_cut_between_expiry_and_release_does_no_harm(held: type) -> None:
    shop = Shop()
    first = shop.publish(3)
    last = shop.publish(30)
    shop.report()
    shop.desk.hold(held)
    shop.desk.wait(5 * SECOND)
    assert shop.desk.queue, "the power goes before it is done"
    shop.restart()
    shop.desk.wait(10 * SECOND)
    assert (shop.forgotten, shop.reasons) == (first, ["expired"])
    shop.desk.wait(20 * SECOND)
    assert shop.forgotten == last


@pytest.mark.parametrize("before", [ORDERS, replace(ORDERS, expires="other")])
def test_what_was_logged_before_the_setting_never_expires(before: Stream) -> None:
    """Nobody has read when it does; what comes behind it waits for it."""
    shop = Shop(before)
    over = shop.publish(1)
    shop.desk.wait(SECOND)
    old = shop.publish(1)
    begun = shop.forgotten
    shop.report(over)
    shop.desk.wait(KEPT_NS)
    assert begun < shop.forgotten <= over, "the row is saved, and with it that nothing is known of the other"
    shop.restart()
    last = shop.publish(1)
    shop.report()
    shop.desk.wait(20 * SECOND)
    assert shop.forgotten < old
    shop.report(old)
    shop.desk.wait(SOON_NS)
    assert shop.forgotten == last
