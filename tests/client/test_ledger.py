"""What the application is told of its subscriptions, whatever the client is."""

from __future__ import annotations

from holdfast.client.effect import Subscribed, SubscriptionRefused, Unsubscribed, Upgraded
from holdfast.client.input import AddSubscription
from holdfast.client.ledger import AWAITING_BUFFERS_MAX, Ledger
from holdfast.identity import SubscriptionId
from holdfast.messages.publications import Batch, Deliveries, Publication
from holdfast.messages.subscriptions import Partition

LOST, OTHER = Partition("b1", 1, 1, ("b2",)), Partition("b1", 1, 2, ("b3",))


def ledger(buffer: int = 4) -> Ledger:
    made = Ledger("me", 7, 100, 1_000_000)
    made.add(AddSubscription(1, "#", buffer))
    return made


def test_only_what_is_ours_concerns_us() -> None:
    mine = ledger()
    for stranger in (SubscriptionId("you", 7, 1), SubscriptionId("me", 6, 1), SubscriptionId("me", 7, 2)):
        assert mine.on_confirmed(stranger, ()) == []
        assert mine.on_upgraded(stranger, (LOST,), ()) == []
        assert mine.on_refused(stranger, "no") == []
        assert mine.on_withdrawn(stranger) == []


def test_from_the_wish_to_the_end() -> None:
    mine = ledger()
    assert mine.on_confirmed(mine.id(1), (LOST,)) == [Subscribed(1, (LOST,))]
    assert mine.on_upgraded(mine.id(1), (LOST,), ()) == [Upgraded(1, (LOST,), ())]
    assert mine.end(1)
    assert not mine.end(1)
    assert mine.on_withdrawn(mine.id(1)) == [Unsubscribed(1)]
    assert mine.on_withdrawn(mine.id(1)) == []


def test_a_confirmation_again_tells_what_has_become_of_the_partitions_meanwhile() -> None:
    """Whoever was disconnected when a partition ended learns it when it comes back [B0.32]."""
    mine = ledger()
    mine.on_confirmed(mine.id(1), (LOST, OTHER))
    assert mine.on_confirmed(mine.id(1), (LOST, OTHER)) == []
    assert mine.on_confirmed(mine.id(1), (OTHER,)) == [Upgraded(1, (LOST,), (OTHER,))]
    assert mine.on_confirmed(mine.id(1), ()) == [Upgraded(1, (OTHER,), ())]
    assert mine.on_confirmed(mine.id(1), ()) == []


def test_who_is_refused_is_gone() -> None:
    mine = ledger()
    assert mine.on_refused(mine.id(1), "no") == [SubscriptionRefused(1, "no")]
    assert mine.on_confirmed(mine.id(1), ()) == []


def test_whoever_waits_for_an_answer_reads_on_for_longer() -> None:
    mine = ledger(buffer=4)
    mine.on_confirmed(mine.id(1), ())
    batch = Batch([Publication("p", n, b"") for n in range(1, 1 + 4 * AWAITING_BUFFERS_MAX)])
    mine.inbox.take(Deliveries("s", batch, range(4), [(1,)] * 4))
    assert mine.is_full
    mine.outbox.submit([Publication("me", 1, b"")])
    assert not mine.is_full
    rest = range(4, len(batch))
    mine.inbox.take(Deliveries("s", batch, rest, [(1,)] * len(rest)))
    assert mine.is_full
    mine.outbox.accept(1)
    assert not mine.has_room
    mine.inbox.consume(1, 4 * AWAITING_BUFFERS_MAX - 2)
    assert mine.has_room
