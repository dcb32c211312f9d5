"""What must hold of a tree of brokers (``grown_tree``), during any run and once it is at rest."""

from __future__ import annotations

from collections.abc import Callable

from grown_tree import Interest, Tree
from holdfast.broker.settings import Routing
from holdfast.client.item import Gap
from holdfast.filters.evaluate import compile_filter
from holdfast.filters.parse import parse_filter
from holdfast.filters.subject import Subject
from holdfast.identity import EventId, SubscriptionId
from holdfast.messages.publications import Publication
from holdfast.messages.streams import Order

__all__ = ["check_complete", "check_rest", "check_safe", "check_undisturbed"]


def _matcher(filter: str) -> Callable[[Subject], bool]:
    return compile_filter(parse_filter(filter))


def _events(interest: Interest) -> list[tuple[int, EventId]]:
    return [(moment, item.id) for moment, item in interest.delivered if isinstance(item, Publication)]


def check_safe(tree: Tree) -> None:
    """Whatever happened: nothing twice, nothing out of order, nothing unwanted or unheard of, nothing late."""
    for interest in tree.interests.values():
        matches = _matcher(interest.filter)
        seen: set[EventId] = set()
        highest: dict[str, int] = {}
        for moment, event in _events(interest):
            who = f"{interest.subscription} got {event}"
            assert event not in seen, f"{who} twice"
            seen.add(event)
            assert event in tree.published, f"{who}, which nobody published"
            assert matches(Subject(tree.published[event][1])), f"{who}, which it did not ask for"
            if tree.order is Order.FIFO:
                assert event.n > highest.get(event.publisher, 0), f"{who} after a later one"
            highest[event.publisher] = event.n
            assert interest.ended_at is None or moment < interest.ended_at, f"{who} after its end"


def _known_as(tree: Tree, subscription: SubscriptionId) -> SubscriptionId:
    """The network's id for a subscription: that of its client's broker."""
    port = tree.broker(tree.homes[subscription.subscriber]).clients.get(subscription.subscriber)
    assert port is not None, f"{subscription.subscriber} is not known to its broker"
    return port.numbers[subscription.number]


def check_rest(tree: Tree) -> None:
    """At rest: tables say exactly who wants what and where they are, everybody was answered, nothing is left over."""
    live = {_known_as(tree, key): each for key, each in tree.interests.items() if each.is_live}
    for name in tree.brokers:
        broker = tree.broker(name)
        found = {entry.subscription: (entry.port.name, str(entry.filter)) for entry in broker.table}
        expected = {
            key: (tree.next_hop(name, each.subscription.subscriber), str(parse_filter(each.filter)))
            for key, each in live.items()
            if tree.routing is Routing.FILTER or key.subscriber == name
        }
        assert found == expected, f"the table of {name}"
        spread = broker.node.spread
        assert not spread._rounds, f"{name} still waits for confirmations"
        assert not spread.partitions.open, f"{name} still knows of partitions"  # I31
        assert not spread.partitions.crossings, f"{name} still tags publications"  # I31
        assert broker.holds_undelivered == 0, f"{name} holds publications"
        assert broker.is_ready
        assert broker.node.is_connected_to_all
        assert {port.name for port in broker.clients.all()} == {c for c, b in tree.homes.items() if b == name}
        assert all(not port.at and not port.subscriptions for port in broker.clients.all())
    for name in tree.homes:
        client = tree.client(name)
        assert client.is_ready
        assert client.unacknowledged == 0, f"{name} waits for acknowledgements"
        assert not client.ledger.ending, f"{name} waits for withdrawals"
    for interest in tree.interests.values():
        if not interest.is_lost:
            answered = interest.subscribed_at or interest.ended_at
            assert answered is not None, f"{interest.subscription} was never confirmed"
            assert (interest.ended_at is None) == (interest.unsubscribed_at is None), interest.subscription


def check_complete(tree: Tree, since: int = 0) -> None:
    """Every confirmed subscription got what was published after its confirmation (and after ``since``).

    Of what was in flight when a subscription ended, a suffix per publisher may be missing.
    """
    for interest in tree.interests.values():
        if interest.subscribed_at is None or interest.is_lost:
            continue
        start = max(interest.subscribed_at, since)
        matches = _matcher(interest.filter)
        got = {event for _, event in _events(interest)}
        missing: set[str] = set()
        for event, (moment, content) in tree.published.items():
            if not start < moment < (interest.ended_at or moment + 1) or not matches(Subject(content)):
                continue
            if event not in got:
                assert interest.ended_at is not None, f"{interest.subscription} was owed {event}"
                missing.add(event.publisher)
            else:
                assert event.publisher not in missing, f"{interest.subscription} missed one before {event}"


def check_undisturbed(tree: Tree) -> None:
    """Without faults nothing is partial, dropped, refused, sent twice or announced as missing."""
    for name in tree.brokers:
        counters = tree.broker(name).counters
        assert (counters.dropped, counters.refusals, counters.duplicates, counters.rejected) == (0, 0, 0, 0)
    for interest in tree.interests.values():
        assert interest.partial == ()
        assert not any(isinstance(item, Gap) for _, item in interest.delivered)
    for name in tree.homes:
        assert tree.client(name).turned_away == 0
