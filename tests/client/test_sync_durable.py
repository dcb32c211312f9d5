"""Durable subscriptions without async: the token is after what was taken here, not after what was fetched."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from logged_port import BEGIN, PUBEND, LoggedPort

import holdfast
from holdfast.client import effect as effects
from holdfast.client import input as inputs
from holdfast.client import sync_subscription
from holdfast.client.item import Item, LoggedEvent, Silence
from holdfast.client.sync import Network, Subscription
from holdfast.client.sync_thread import LoopThread
from holdfast.streams.checkpoint_token import Place, Token


class Served:
    """A network without async over a port that does as it is told."""

    def __init__(self) -> None:
        self.port = LoggedPort()
        self.thread = LoopThread("holdfast of a test")
        self.network = Network(self.thread, self.thread.run(self.port.connect().__aenter__()))

    def do(self, something: Callable[[], None]) -> None:
        """In the thread of the loop."""

        async def doing() -> None:
            something()

        self.thread.run(doing())

    def give(self, *ticks: int, upto: int = 0) -> None:
        self.do(lambda: self.port.give(*ticks, upto=upto))


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    with served.network:
        yield served


def ticks(items: list[Item]) -> list[int]:
    return [item.tick for item in items if isinstance(item, LoggedEvent)]


def at(tick: int) -> Token:
    return Token({PUBEND: Place(1, tick)})


def test_the_token_moves_with_what_is_taken(served: Served) -> None:
    with served.network.subscribe("a", durable="d") as items:
        assert (items.durable, items.token) == ("d", BEGIN)
        served.give(101, 102, 103, upto=110)
        assert ticks([items.get()]) == [101]
        assert items.token == at(101), "though all three were fetched"
        assert ticks([next(items)]) == [102]
        assert ticks(items.get_batch()) == [103]
        assert items.token == at(110)
    assert served.port.heard[-1] == inputs.EndSubscription(1, keep=True)


def test_silence_moves_the_token_of_who_waits(served: Served) -> None:
    with served.network.subscribe("a") as items:
        served.give(upto=110)
        assert items.token == BEGIN
        with pytest.raises(holdfast.TimedOut, match=r"nothing within 0\.01 s$"):
            items.get(timeout=0.01)
        assert items.token == at(110)


def test_who_waits_behind_another_thread_is_told_how_long_it_wanted_to(served: Served) -> None:
    with served.network.subscribe("a") as items:
        waits = pytest.raises(holdfast.TimedOut, match=r"nothing within 0\.01 s, while other threads")
        with items._fetching, waits:
            items.get(timeout=0.01)


def test_a_timeout_may_be_longer_than_threads_can_wait_and_is_a_time(served: Served) -> None:
    no_time: Any = "x"
    with served.network.subscribe("a") as items:
        served.give(101, 102)
        assert ticks([items.get(timeout=math.inf)]) == [101]
        with pytest.raises(holdfast.InvalidOption, match="timeout: is 'x'"):
            items.get(no_time)
        assert ticks(items.get_batch(timeout=1e300)) == [102]


def test_who_asks_for_silence_is_given_it(served: Served) -> None:
    with served.network.subscribe("a", silence=True) as items:
        served.give(101, upto=110)
        assert ticks([items.get()]) == [101]
        assert items.get() == Silence(PUBEND, 101, 110)


def test_a_commit_is_of_what_was_taken(served: Served) -> None:
    with served.network.subscribe("a", durable="d") as items:
        served.give(101, 102, 103, 104)
        first = items.get()
        items.get()
        items.commit()
        items.commit(first)
        items.get()
        items.commit(items.token)
        assert served.port.commits == [{PUBEND: 102}, {PUBEND: 101}, {PUBEND: 103}]
        served.port.saves = False
        with pytest.raises(holdfast.TimedOut):
            items.commit(items.get(), timeout=0.01)


def deal_with(items: Subscription, count: int) -> None:
    for _ in range(count):
        items.get()


def test_what_was_taken_before_more_was_asked_for_is_committed(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served.network.subscribe("a", durable="d", acknowledge="auto") as items:
        served.give(*range(101, 111))
        deal_with(items, 5)
        assert served.port.commits == []
    assert served.port.commits == [{PUBEND: 105}], "at the end all of it"

    monkeypatch.setattr(sync_subscription, "EVERY_SECONDS", 0.0)
    with served.network.subscribe("a", durable="d", acknowledge="auto") as again:
        served.do(lambda: served.port.give(101, 102, number=2))
        deal_with(again, 2)
        again._thread.run(again._hand_over({}))  # the thread has heard of it
        auto = again._subscription._auto
        assert auto is not None
        assert auto._done == {PUBEND: 101}, "the last one is still being dealt with"


def leave_by_an_error(served: Served) -> None:
    with served.network.subscribe("a", durable="d", acknowledge="auto") as items:
        served.give(101, 102)
        deal_with(items, 2)
        raise KeyError("mine")


def test_who_leaves_by_an_error_has_not_dealt_with_what_it_took_last(served: Served) -> None:
    with pytest.raises(KeyError):
        leave_by_an_error(served)
    assert served.port.commits == [{PUBEND: 101}]


def test_it_is_ended_for_good_by_name(served: Served) -> None:
    with served.network.subscribe("a", durable="d") as items:
        served.give(101)
        items.unsubscribe()
        assert served.port.heard[-1] == inputs.EndSubscription(1, keep=False)
        with pytest.raises(holdfast.Closed, match="the subscription was ended"):
            items.get()


def test_who_is_ousted_hears_of_it_in_whatever_waits(served: Served) -> None:
    with served.network.subscribe("a", durable="d") as items, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(items.get, None)
        served.do(lambda: served.port.say(effects.Ousted(1, "read by other")))
        with pytest.raises(holdfast.TakenOver, match="'d': read by other"):
            waiting.result()


@pytest.mark.parametrize("acknowledge", ["manual", "auto"])
def test_what_was_fetched_is_not_handed_out_when_another_gets_it(
    served: Served, acknowledge: Literal["manual", "auto"]
) -> None:
    with served.network.subscribe("a", durable="d", acknowledge=acknowledge) as items:
        served.give(101, 102, 103)
        assert ticks([items.get()]) == [101]
        served.do(lambda: served.port.say(effects.Ousted(1, "read by other")))
        for call in (
            items.get,
            items.get_batch,
            lambda: next(items),
            lambda: next(items.batches()),
            items.commit,
        ):
            with pytest.raises(holdfast.TakenOver, match="'d': read by other"):
                call()
        assert items.token == at(101)
    assert served.port.commits == []


def test_many_threads_take_each_item_once(served: Served) -> None:
    with served.network.subscribe("a") as items, ThreadPoolExecutor(8) as pool:
        for first in range(101, 401, 50):
            served.give(*range(first, first + 50))
        taken = list(pool.map(lambda _: items.get(), range(300)))
    assert sorted(ticks(taken)) == list(range(101, 401))
