"""A network as a whole, from what its brokers say of themselves: what has failed, who goes around it, what waits.

A broker that does not answer is not down as long as others speak with it; one that has no admin address only if a
neighbour has answered and does not. A link has failed if both its brokers are there and do not speak with each other.
How much of δ is left follows from that, as in the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from holdfast.cli.words import counted, listed, moment, they_are
from holdfast.messages.streams import Guarantee
from holdfast.runtime.network_file import Network
from holdfast.runtime.network_survival import Failures, Survival, Tree, link

__all__ = ["OverlayView"]


class OverlayView:
    """``pages`` are the status pages of the brokers that answered, by name."""

    def __init__(self, network: Network, pages: Mapping[str, Mapping[str, Any]]) -> None:
        self._network = network
        self._pages = {name: page["overlay"] for name, page in pages.items()}
        self._survival = Survival(
            Tree({broker.name: broker.parent for broker in network.brokers}), network.delta
        )

    # What has failed

    @cached_property
    def failures(self) -> Failures:
        """Brokers and links that are down; nothing if nobody answered."""
        spoken_with = {each["to"] for page in self._pages.values() for each in page["connections"]}
        tree = self._survival.tree
        heard_of = spoken_with | self._pages.keys() | self._unknown
        down = {name for name in tree.brokers if self._pages and name not in heard_of}
        silent = {
            link(one, other)
            for one, other in tree.links
            if not down & {one, other} and (one in self._pages or other in self._pages)
            if not self._speak(one, other)
        }
        return Failures(frozenset(down), frozenset(silent))

    @cached_property
    def _unknown(self) -> set[str]:
        """Who cannot be asked, and has no neighbour that answered."""
        silent = {broker.name for broker in self._network.brokers if broker.admin is None}
        return {name for name in silent if self._pages.keys().isdisjoint(self._survival.tree.beside(name))}

    def _speak(self, one: str, other: str) -> bool:
        """Whether two neighbours do; who does not answer us may still speak with the other."""
        said = [(one, other), (other, one)]
        return any(each["to"] == b for a, b in said for each in self._pages.get(a, {}).get("connections", ()))

    @property
    def budget(self) -> int:
        """How many more may fail where most have; below 0: more have than δ allows."""
        return self._network.delta - max(self._survival.used_near(self.failures).values())

    # In words

    def lines(self) -> Iterator[str]:
        """What an operator should know; of a whole network with nothing waiting, only how much of it may fail."""
        for name in self._survival.tree.brokers:
            if name in self.failures.brokers:
                yield f"{name} is down{self._around(name)}."
        for one, other in sorted(self.failures.links):
            yield f"{one} and {other} are up and do not reach each other{self._around(one, other)}."
        if self._pages:
            yield from self._budget_lines()
        yield from self._partition_lines()
        yield from self._waiting_lines()
        yield from self._lapse_lines()

    def _around(self, *names: str) -> str:
        """Who goes around a broker, or around the other end of a link."""
        ways = []
        for teller, page in self._pages.items():
            past = [name for name in names if name != teller and (len(names) == 1 or teller in names)]
            found = [each["to"] for each in page["bypassing"] if not set(past).isdisjoint(each["past"])]
            brokers = [name for name in found if name in self._survival.tree.brokers]
            if clients := len(found) - len(brokers):
                brokers.append(counted(clients, "client"))
            if found:
                ways.append(f"{teller} speaks with {listed(brokers)} past {listed(past)}")
        return f": {'; '.join(ways)}" if ways else ""

    def _budget_lines(self) -> Iterator[str]:
        delta = self._network.delta
        if not delta:
            return
        any_of_them = counted(delta, "broker or link", "brokers or links")
        if not len(self.failures):
            failed = "Nothing is known to have failed" if self._unknown else "Nothing has failed"
            yield f"{failed}: {any_of_them} may, whichever {they_are(delta)}."
            return
        used = self._survival.used_near(self.failures)
        most = max(used.values())
        near = [name for name, count in used.items() if count == most and name not in self.failures.brokers]
        where = f"near there ({listed(near)})" if near else "here"
        elsewhere = f"; where nothing has failed, {any_of_them} may" if 0 in used.values() else ""
        if most > delta:
            yield f"That is more than delta = {delta} allows: some events wait until a broker or link is back."
        elif most == delta:
            yield f"No more may fail {where}{elsewhere}."
        else:
            left = counted(delta - most, "more broker or link", "more brokers or links")
            yield f"{left.capitalize()} may fail {where}{elsewhere}."

    def _partition_lines(self) -> Iterator[str]:
        found: dict[tuple[str, int], dict[str, Any]] = {}
        for page in self._pages.values():
            for each in page["partitions"]:
                known = found.setdefault((each["lead"], each["seq"]), each)
                if each["subscriptions"] > known["subscriptions"]:
                    found[each["lead"], each["seq"]] = each
        for (lead, seq), each in found.items():
            count = each["subscriptions"]
            have = "subscription has" if count == 1 else "subscriptions have"
            yield (
                f"{count:,} {have} not been told to {listed(each['fragment'])}: what is published there may be missing"
                f" (partition {lead}/{seq})."
            )
        ending = {(each["lead"], each["seq"]) for page in self._pages.values() for each in page["crossings"]}
        for lead, seq in sorted(ending):
            yield f"Partition {lead}/{seq} is over, and its subscribers are being told."

    def _waiting_lines(self) -> Iterator[str]:
        for name, page in self._pages.items():
            for target, count in page["waiting"].items():
                if target in page["down"]:
                    yield f"{name} keeps {counted(count, 'event')} for {target}, which it does not reach."
            for direction in page["stalled"]:
                yield (
                    f"{name} sends nothing on towards {direction}: what is first there has passed too many failures"
                    " already, and nothing overtakes it."
                )
            for each in page["stalled_subscriptions"]:
                yield f"{name} cannot tell {each['at']} of the subscription {each['subscription']} yet."

    def _lapses(self) -> dict[str, datetime]:
        """When the last lapse was, by the broker that noticed it: as the first says who heard of it."""
        found: dict[str, tuple[tuple[int, int], datetime]] = {}
        for page in self._pages.values():
            for each in page["lapses"]:
                which, at = (each["life"], each["seq"]), datetime.fromisoformat(each["at"])
                known = found.get(each["by"], ((0, 0), at))
                if which > known[0] or (which == known[0] and at < known[1]):
                    found[each["by"]] = which, at
        return {by: at for by, (_, at) in found.items()}

    def _lapse_lines(self) -> Iterator[str]:
        """Of reliable streams; others promise nothing that could be broken."""
        lapses = self._lapses()
        if not lapses or all(each.guarantee is not Guarantee.RELIABLE for each in self._network.streams):
            return
        times = list(dict.fromkeys(map(moment, sorted(lapses.values()))))
        # not clients, which echo it
        noticed = [name for name in self._survival.tree.brokers if name in lapses]
        by = f", as {listed(noticed)} noticed" if noticed else ""
        yield (
            f"Events that were on their way at {listed(times)} may be lost: more brokers next to each other than delta"
            f" = {self._network.delta} lost their memory together{by}. Subscribers see where, by gaps."
        )

    # As data

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "down": sorted(self.failures.brokers),
            "links_down": [list(each) for each in sorted(self.failures.links)],
            "delta": self._network.delta,
            "budget": self.budget,
            "lapses": [{"by": by, "at": at.isoformat()} for by, at in self._lapses().items()],
            "words": list(self.lines()),
        }
