"""The client without async in a reliable network: in real time, each connection in its own thread."""

from __future__ import annotations

import threading

import pytest

import holdfast
from holdfast import memory
from in_memory import number


def test_a_clients_own_broker_dies_and_nothing_is_missing() -> None:
    with (
        memory.Network("sync-reliable", brokers=3, delta=1) as net,
        holdfast.sync.connect(net.url, broker="b2", name="p") as p,
        holdfast.sync.connect(net.url, broker="b3", name="s") as s,
        s.subscribe("#") as items,
    ):
        assert p.is_member
        assert s.is_member
        halfway = threading.Event()

        def publish() -> None:
            with p.publisher() as out:
                for n in range(1, 401):
                    out.send("a", n=n)
                    if n == 200:
                        halfway.wait(20)

        publishing = threading.Thread(target=publish)
        publishing.start()
        got = [number(items.get(20)) for _ in range(100)]
        net.crash("b3")
        got += [number(items.get(20)) for _ in range(100)]
        halfway.set()
        got += [number(items.get(20)) for _ in range(200)]
        publishing.join(20)
        assert got == list(range(1, 401))


def test_a_partial_subscription_can_be_seen_waited_for_and_refused() -> None:
    tree = {"a": None, "b": "a", "c": "b"}
    with (
        memory.Network("sync-parts", tree=tree, delta=0) as net,
        holdfast.sync.connect(net.url, broker="a") as s,
    ):
        net.crash("b")
        with pytest.raises(holdfast.NotCovered):
            s.subscribe("#", whole=True, timeout=2).__enter__()
        with s.subscribe("#") as items:
            assert [part.fragment for part in items.partial] == [("b",)]
            net.restart("b")
            items.wait_whole(20)
            assert items.partial == ()
