"""All subscriptions a node knows of, and those it knows to be over.

What is known of one may grow: a longer way to its subscriber, partitions it is stopped by. What is over stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from holdfast.filters.expression import Filter
from holdfast.filters.parse import parse_filter
from holdfast.identity import SubscriptionId
from holdfast.messages.subscriptions import Grave, Known
from holdfast.node.graves import Graves, is_of_life, of_life
from holdfast.node.interest import Interest
from holdfast.node.partitions import Partitions
from holdfast.node.reach import Reach
from holdfast.node.settings import NodeSettings
from holdfast.node.station import Station
from holdfast.node.topology import Path, seen_from
from holdfast.node.trails import vector_length
from holdfast.routing.table import Entry, Table

__all__ = ["Interests"]


class Interests:
    """By id; the installed ones are in the routing table."""

    def __init__(
        self,
        settings: NodeSettings,
        reach: Reach,
        table: Table,
        partitions: Partitions,
        on_forgotten: Callable[[Interest], None],
        on_left: Callable[[str, int], None],
    ) -> None:
        self._me = settings.name
        self._incarnation = settings.incarnation
        self._delta = settings.delta
        self._subscriptions_max = settings.subscriptions_max
        self._reach = reach
        self._table = table
        self.partitions = partitions
        self._on_forgotten = on_forgotten
        self._on_left = on_left  #: a client has left for good
        self._interests: dict[SubscriptionId, Interest] = {}
        self._by_subscriber: dict[str, dict[SubscriptionId, None]] = {}
        self.graves = Graves()
        if settings.incarnation > 1:
            self.graves.add(of_life(settings.name, settings.incarnation - 1))

    def __len__(self) -> int:
        return len(self._interests)

    def __contains__(self, subscription: object) -> bool:
        return subscription in self._interests

    def __iter__(self) -> Iterator[SubscriptionId]:
        return iter(self._interests)

    def __getitem__(self, subscription: SubscriptionId) -> Interest:
        return self._interests[subscription]

    def get(self, subscription: SubscriptionId) -> Interest | None:
        """One of them, if it is known."""
        return self._interests.get(subscription)

    def last_life(self, subscriber: str) -> int:
        """The highest incarnation known of a subscriber, by its subscriptions; 0 if it has none."""
        ids = self._by_subscriber.get(subscriber, ())
        return max((each.incarnation for each in ids), default=0)

    def values(self) -> list[Interest]:
        """All of them."""
        return list(self._interests.values())

    def items(self) -> list[tuple[SubscriptionId, Interest]]:
        """All of them, with their ids."""
        return list(self._interests.items())

    def enter(self, interest: Interest) -> None:
        """Put it into the routing table."""
        numbers = () if interest.number is None else (interest.number,)
        self._table.add(Entry(interest.subscription, interest.filter, interest.port, numbers))

    def learn(self, row: Known, filter: Filter, route: Path) -> Interest:
        """A subscription made elsewhere; it is not installed yet."""
        port, number = self._target(row.subscription, route)
        known = Interest(row.subscription, filter, row.filter, route, port, number, durable=row.durable)
        return self.add(known)

    def _target(self, subscription: SubscriptionId, route: Path) -> tuple[Station, int | None]:
        """*from* [R0.6]: the subscriber, or the node δ+1 hops towards it; and its own number if it is the former."""
        topology = self._reach.topology
        topology.learn(route, subscription.subscriber, subscription.incarnation)
        for name in route[: topology.reach]:
            self._reach.enter(topology[name])
        port = self._reach[route[min(self._delta, len(route) - 1)]]
        return port, subscription.number if port.name == subscription.subscriber else None

    def add(self, interest: Interest) -> Interest:
        """One that was not known."""
        subscription = interest.subscription
        self._interests[subscription] = interest
        self._by_subscriber.setdefault(subscription.subscriber, {})[subscription] = None
        return interest

    def bury(self, grave: Grave) -> None:
        """These are over, here and now; if they are all of a subscriber's life, so is that."""
        self.graves.add(grave)
        if grave.first == grave.last:  # the usual one; a broker has as many as all its plain clients together
            self.forget(SubscriptionId(grave.subscriber, grave.incarnation, grave.first))
            return
        for subscription in list(self._by_subscriber.get(grave.subscriber, ())):
            if subscription in self.graves:
                self.forget(subscription)
        if is_of_life(grave):
            self._on_left(grave.subscriber, grave.incarnation)

    def forget(self, subscription: SubscriptionId) -> None:
        """It is over, or cannot be served any more."""
        interest = self._interests.pop(subscription, None)
        if interest is None:
            return
        of_subscriber = self._by_subscriber[subscription.subscriber]
        del of_subscriber[subscription]
        if not of_subscriber:
            del self._by_subscriber[subscription.subscriber]
        self._on_forgotten(interest)
        if interest.is_installed:
            self._table.remove(subscription)
        for partition in interest.partial:
            self.partitions.drop(partition, subscription)

    def check(self, subscription: SubscriptionId, route: Path) -> None:
        """See that a way can be one.

        :raises ValueError: if it leads in a circle.
        """
        if self._me in route or len(set(route)) < len(route):
            raise ValueError(f"a way to {subscription.subscriber} that leads in a circle")

    def read_from(self, sender: Station, rows: Sequence[Known]) -> dict[SubscriptionId, Filter]:
        """As ``read``, of rows somebody tells.

        :raises FilterError: if one is refused.
        :raises ValueError: if there is no room for them, or a way leads in a circle.
        """
        for row in rows:
            self.check(row.subscription, self._route(sender, row))
        return self.read(rows)

    def read(self, rows: Sequence[Known]) -> dict[SubscriptionId, Filter]:
        """The filters of what is new among rows: nothing is taken up before all of it is known to be right.

        :raises FilterError: if one is refused.
        :raises ValueError: if there is no room for them.
        """
        new = [row for row in rows if row.subscription not in self._interests]
        filters = {row.subscription: parse_filter(row.filter) for row in new}
        if len(self._interests) + len(filters) > self._subscriptions_max:
            raise ValueError(f"more than {self._subscriptions_max} subscriptions")
        return filters

    def is_news(self, grave: Grave) -> bool:
        """Whether something is over that was not known to be. What this life of ours made, nobody but we can end."""
        is_ours = grave.subscriber == self._me and grave.incarnation >= self._incarnation
        return not is_ours and not self.graves.covers(grave)

    def take_row(
        self, sender: Station, row: Known, filters: Mapping[SubscriptionId, Filter]
    ) -> Interest | None:
        """One subscription that is installed where it comes from; the interest if it is not installed here.

        It may be under way here; but what its teller sends next may be for it.
        """
        route = self._route(sender, row)
        interest = self._interests.get(row.subscription)
        if not route:
            return None
        if interest is None:
            interest = self.learn(row, filters[row.subscription], route)
        elif interest.route and len(route) > len(interest.route):
            self._reroute(interest, route)
        is_outward = sender.direction != route[0]
        for partition in row.partial:
            concerns_us = is_outward or self._lies_outward(partition.lead, interest)
            if concerns_us and not self.partitions.is_over(partition):
                interest.partial[partition] = None
                if interest.is_installed:
                    self.partitions.add(partition, row.subscription)
        return None if interest.is_installed else interest

    def _route(self, sender: Station, row: Known) -> Path:
        """The way to a subscriber as somebody tells it, seen from here."""
        is_whole = not row.route or row.route[-1] == row.subscription.subscriber
        return seen_from(self._me, row.route, sender.path, vector_length(self._delta), is_whole=is_whole)

    def _reroute(self, interest: Interest, route: Path) -> None:
        """More is known of the way to a subscriber; publications may be addressed to a node nearer to it."""
        interest.route = route
        port, number = self._target(interest.subscription, route)
        if port is interest.port:
            return
        interest.port, interest.number = port, number
        if interest.is_installed:
            self._table.remove(interest.subscription)
            self.enter(interest)

    def _lies_outward(self, lead: str, interest: Interest) -> bool:
        """Whether the lead of a partition is here, or near and not towards the subscriber."""
        place = self._reach.topology.get(lead)
        return lead == self._me or (place is not None and place.direction != interest.direction)

    def forget_behind(self, station: Station) -> None:
        """A leaf is gone, and whatever was for it."""
        for interest in [each for each in self._interests.values() if station.name in each.route]:
            self.forget(interest.subscription)
