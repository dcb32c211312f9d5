"""Between a pubend and those who read it: what is passed on, answered from memory, and asked for once [R1.4, R1.11].

The broker under test has the pubend of its neighbour left on one side, and the follower right on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from durable_desk import FAR, OWN, UNHEARD_NS, Desk, followed, items

from by_hand import a_publication
from holdfast.broker.settings import Routing
from holdfast.clock import SECOND
from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Publication
from holdfast.messages.subscriptions import Confirmed, Heal, Healed, Known, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Lost, Nack, Start, Tick, Unfollow, Wants

A, B = a_publication("q", 1, "a"), a_publication("q", 2, "b")


def relay(*filters: str, told: Tick = 100) -> tuple[Desk, int, int]:
    """Right follows the pubend for subscribers of its own, and left has begun to tell of it."""
    desk = Desk(["left", "right"])
    left, right = desk.meet("left", FAR), desk.meet("right", filters=filters or ("a",))
    desk.say(right, Wants(1), Follow(FAR))
    desk.say(left, Start(FAR, told))
    return desk, left, right


def events(messages: Sequence[Items]) -> list[tuple[Tick, Publication]]:
    return [
        (tick, publication)
        for each in messages
        for tick, publication in zip(each.ticks, each.publications, strict=True)
        if publication is not None
    ]


def asked(desk: Desk, connection: int) -> list[tuple[int, list[tuple[int, int]]]]:
    return [(each.version, list(each.spans)) for each in desk.said(connection, Nack)]


# Following


def test_who_is_followed_says_where_it_begins_and_follows_the_pubend_itself() -> None:
    desk, left, right = relay()
    assert desk.said(right, Start) == [Start(FAR, 0), Start(FAR, 100)], "it knew nothing when it was asked"
    assert desk.said(left, Follow) == [Follow(FAR)]
    wants, follow = [each for each in desk.heard[left] if isinstance(each, Wants | Follow)][:2]
    assert (type(wants), type(follow)) == (Wants, Follow), "what we want is known before anything is told"


def test_how_far_a_pubend_had_come_is_passed_on_since_it_may_be_at_rest() -> None:
    """Nothing more is told then, and who had been away would not ask (seed 6877 of the names swarm, narrow)."""
    desk, left, right = relay(told=100)
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A)], 200))
    desk.lose(left)
    left = desk.meet("left", FAR, incarnation=2)
    desk.say(left, Start(FAR, 300))
    assert [each.base for each in desk.said(right, Start)] == [0, 100, 300]
    last = [each for each in desk.heard[right] if isinstance(each, Start | Items)][-2:]
    assert isinstance(last[0], Items), "the silence after the event was kept back"
    assert (last[0].ticks, last[1]) == ([200], Start(FAR, 300))
    desk.say(right, Nack(FAR, 1, [(200, 300)]))
    assert asked(desk, left)[-1][1] == [(200, 300)]


def test_what_was_on_its_way_when_it_was_followed_anew_is_no_breach() -> None:
    desk, left, right = relay(told=100)
    desk.say(right, Unfollow(FAR))
    desk.say(right, Follow(FAR))
    assert desk.said(left, Follow) == [Follow(FAR)] * 2
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A)], 200))
    assert left not in desk.closed
    desk.say(left, Start(FAR, 200), items(FAR, ABSOLUTE, 200, [(250, A)], 300))
    assert left not in desk.closed
    assert [tick for tick, _ in events(desk.said(right, Items))] == [250]


def test_when_nobody_wants_it_any_more_it_is_not_followed() -> None:
    desk, left, right = relay()
    desk.say(right, Unfollow(FAR))
    assert desk.said(left, Unfollow) == [Unfollow(FAR)]
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A)], 200))
    assert desk.said(right, Items) == []
    assert left not in desk.closed, "what was on its way is no breach"


def test_a_follower_that_is_gone_is_as_one_that_does_not_follow() -> None:
    desk, left, right = relay()
    desk.lose(right)
    assert desk.said(left, Unfollow) == [Unfollow(FAR)]


def test_a_pubend_here_follows_nobody() -> None:
    desk = Desk(["left"])
    left = desk.meet("left", filters=["a"])
    desk.publisher("p", 1)
    desk.wait(UNHEARD_NS)
    desk.say(left, Wants(1), Follow(OWN))
    assert desk.said(left, Follow) == []
    assert [each.base >= desk.own.core.stable for each in desk.said(left, Start)] == [True]


# Passing on


def test_a_follower_is_told_what_is_wanted_beyond_it_and_the_rest_is_silence_under_its_version() -> None:
    """B1.2: silence is relative to what it wanted, which it counts."""
    desk, left, right = relay("a")
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A), (160, B), (170, A)], 200))
    assert events(desk.said(right, Items)) == [(150, A), (170, A)]
    assert {each.under for each in desk.said(right, Items)} == {1}
    desk.wait(SECOND)
    assert desk.said(right, Items)[-1].ticks[-1] == 200, "the silence behind it is told, too"


def test_a_loss_is_passed_on_with_its_reason() -> None:
    desk, left, right = relay()
    loss = Lost(100, 140, "max_retain")
    desk.say(left, items(FAR, ABSOLUTE, 140, [(150, A)], 150, lost=[loss]))
    told = [lost for each in desk.said(right, Items) for lost in each.lost]
    assert told == [loss]


def test_a_relay_that_missed_something_does_not_call_it_silence() -> None:
    """lo: what it does not know itself it leaves out, and the follower asks."""
    desk, left, right = relay()
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 120), items(FAR, ABSOLUTE, 140, [(150, A)], 150))
    told = [
        (lo, tick) for each in desk.said(right, Items) for lo, tick in zip(each.los, each.ticks, strict=True)
    ]
    assert all(not lo < tick_unknown <= tick for lo, tick in told for tick_unknown in range(121, 141))


def test_everything_is_passed_on_where_everything_floods() -> None:
    desk = Desk(["left", "right"], routing=Routing.FLOODING)
    left, right = desk.meet("left", FAR), desk.meet("right")
    desk.say(right, Follow(FAR))
    desk.say(left, Start(FAR, 100), items(FAR, ABSOLUTE, 100, [(150, A), (160, B)], 200))
    assert events(desk.said(right, Items)) == [(150, A), (160, B)]
    assert desk.said(left, Wants) == []


# Asking


def test_what_is_known_is_answered_from_memory_and_the_rest_is_asked_for_once() -> None:
    """R1.4: caches answer nacks, and nacks are consolidated."""
    desk, left, right = relay()
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A)], 200))
    before = len(desk.said(right, Items))
    desk.say(right, Nack(FAR, 1, [(140, 160)]))
    answer = desk.said(right, Items)[before]
    assert (answer.answers, events([answer])) == (True, [(150, A)])
    assert asked(desk, left) == []
    desk.say(right, Nack(FAR, 1, [(50, 100)]))
    desk.say(right, Nack(FAR, 1, [(50, 100)]))
    assert [spans for _, spans in asked(desk, left)] == [[(50, 100)]]
    desk.say(left, items(FAR, ABSOLUTE, 50, [(60, A)], 100, answers=True))
    assert events(desk.said(right, Items))[-1] == (60, A)


def test_what_has_no_answer_is_asked_for_again() -> None:
    desk, left, right = relay()
    desk.say(right, Nack(FAR, 1, [(50, 100)]))
    desk.wait(6 * SECOND)
    assert len(asked(desk, left)) >= 2


def test_an_answer_that_only_holds_for_what_was_wanted_before_is_no_answer_for_more() -> None:
    """B1.2: filtered silence under an older version leaves the tick unknown for the newer one."""
    desk, left, right = relay("a")
    older = desk.said(left, Wants)[-1].version
    desk.say(left, items(FAR, older, 100, [], 200))
    desk.tell(right, "right", "b")
    desk.say(right, Wants(2))
    desk.say(right, Nack(FAR, 2, [(100, 200)]))
    [(version, spans)] = asked(desk, left)
    assert (version > older, spans) == (True, [(100, 200)])


def test_who_asks_under_a_version_nobody_has_heard_of_is_asked_for_raw() -> None:
    desk, left, right = relay()
    desk.say(right, Nack(FAR, 9, [(50, 100)]))
    assert asked(desk, left) == [(ABSOLUTE, [(50, 100)])]


def test_a_raw_question_is_answered_with_everything() -> None:
    """For a subscriber that was elsewhere: it filters for itself (R1.32)."""
    desk, left, right = relay("a")
    desk.say(left, items(FAR, ABSOLUTE, 100, [(150, A), (160, B)], 200))
    before = len(desk.said(right, Items))
    desk.say(right, Nack(FAR, ABSOLUTE, [(140, 170)]))
    answer = desk.said(right, Items)[before]
    assert events([answer]) == [(150, A), (160, B)]
    assert answer.under == ABSOLUTE


def test_a_nack_of_a_pubend_here_is_answered_from_its_log() -> None:
    """R1.3: loss of a cache entry never affects correctness."""
    desk = Desk(["left"], cache_bytes=1)
    left = desk.meet("left", filters=["a"])
    desk.publisher("p", 1, 2, 3)
    desk.wait(UNHEARD_NS)
    last = desk.own.core.stable
    desk.say(left, Wants(1), Follow(OWN))
    desk.say(left, Nack(OWN, 1, [(desk.own.core.created, last)]))
    assert [publication.n for _, publication in events(desk.said(left, Items))] == [1, 2, 3]


# Ways


def test_what_is_wanted_is_not_said_to_who_has_not_installed_all_of_it() -> None:
    """[KJ §4.2.2]: a subscription that was stopped by a partition counts when that is over."""
    desk, left, _ = followed(durable="mine")
    said = desk.said(left, Wants)[-1].version
    desk.lose(left)
    desk.wait(SECOND)
    late = desk.reader("v", "b")
    desk.confirms = False
    left = desk.meet("left", FAR, incarnation=2)
    assert [each.fragment for each in desk.said(late, Confirmed)[0].partial] == [("left",)]
    assert all(each.version <= said for each in desk.said(left, Wants))
    [heal] = desk.said(left, Heal)
    desk.say(left, Healed(heal.partition))
    desk.wait(SECOND)
    assert desk.said(left, Wants)[-1].version > said


def test_a_new_session_is_a_new_beginning_and_what_was_missing_is_asked_for_again() -> None:
    desk, left, reader = followed(durable="mine")
    desk.say(left, items(FAR, ABSOLUTE, 120, [], 200))
    assert [spans for _, spans in asked(desk, left)] == [[(100, 120)]]
    desk.lose(left)
    left = desk.meet("left", FAR)
    assert desk.said(left, Follow) == [Follow(FAR)]
    desk.say(left, Start(FAR, 300))
    assert [span for _, spans in asked(desk, left) for span in spans] == [(100, 120), (200, 300)]
    desk.say(left, items(FAR, ABSOLUTE, 100, [(110, A)], 120, answers=True))
    desk.say(left, items(FAR, ABSOLUTE, 200, [], 300, answers=True))
    assert desk.got(reader) == [1]


def test_a_broker_that_is_bypassed_is_followed_no_longer_and_again_when_it_is_back() -> None:
    """δ = 1: the way to the pubend goes around it."""
    desk = Desk(["left"], beyond=[("far", "left")], delta=1)
    pubend = "orders@far/0"
    row = Known(SubscriptionId("far", 1, 1), f"$pubend/{pubend}", ("far",))
    left = desk.neighbour("left", [row])
    desk.reader("u")
    assert desk.said(left, Follow) == [Follow(pubend)]
    desk.lose(left)
    desk.wait(SECOND)
    assert "far" in desk.dialled
    far = desk.neighbour("far", [replace(row, route=())])
    assert desk.said(far, Follow) == [Follow(pubend)]
    left = desk.neighbour("left", [row], incarnation=2)
    desk.wait(SECOND)
    assert desk.said(far, Unfollow) == [Unfollow(pubend)]
    assert desk.said(left, Follow) == [Follow(pubend)]


def test_who_reads_no_more_lets_the_pubend_go_when_it_hears_of_it_next() -> None:
    desk, left, reader = followed()
    desk.say(reader, Unsubscribe(desk.said(reader, Confirmed)[0].subscription))
    desk.say(left, items(FAR, ABSOLUTE, 100, [], 200))
    assert desk.said(left, Unfollow) == [Unfollow(FAR)]


# Versions


@pytest.mark.parametrize("elsewhere", [True, False])
def test_versions_are_told_apart_no_longer_than_somebody_waits_for_what_is_between_them(
    elsewhere: bool,
) -> None:
    """Every fact is noted for each: where many had come one by one, an event took four times as long."""
    desk, left, _ = followed()
    at, counts = 100, []
    for i in range(20):
        if elsewhere:
            desk.tell(left, "left", f"b{i}")
        else:
            desk.reader(f"v{i}", f"b{i}")
        desk.say(left, items(FAR, desk.plane.following.version, at, [], at + 10))
        at += 10
        counts.append(len(desk.course(FAR).knowledge._versions))
    assert max(counts) <= 4


def test_a_version_that_a_follower_has_asked_for_is_told_apart_until_it_is_answered() -> None:
    desk, left, right = relay()
    version = desk.plane.following.version
    desk.say(right, Nack(FAR, 1, [(0, 50)]))
    [(asked_under, _)] = asked(desk, left)
    assert asked_under == version
    desk.reader("v", "b")
    desk.say(right, Wants(2))
    desk.say(left, items(FAR, version, 0, [], 30, answers=True), items(FAR, version + 1, 100, [], 120))
    assert [(each.under, list(each.ticks)) for each in desk.said(right, Items) if each.answers] == [(1, [30])]
    desk.say(left, items(FAR, version, 30, [], 50, answers=True))
    desk.say(left, items(FAR, desk.plane.following.version, 120, [], 140))
    assert len(desk.course(FAR).knowledge._versions) <= 2
