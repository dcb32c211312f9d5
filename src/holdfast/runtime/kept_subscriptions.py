"""The durable subscriptions of a running network, as its brokers say on their admin ports.

A durable subscription is kept by one broker; while it moves to another, by both, and the later one counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.runtime.admin_page import NoAnswer, subscriptions_page
from holdfast.runtime.network_file import BrokerEntry, Network

__all__ = ["KeptSubscriptions", "kept_subscriptions"]


class KeptSubscriptions(NamedTuple):
    """What the brokers of a network keep, and who did not say."""

    network: Network
    kept: list[dict[str, Any]]  #: the one that counts of each name, by name
    copies: dict[str, list[str]]  #: by name all brokers that keep it
    silent: dict[str, str]  #: by broker why it did not answer
    at_silent: list[dict[str, Any]]  #: what others know of those

    def named(self, name: str) -> dict[str, Any] | None:
        """The one of this name, if somebody has said that it is kept."""
        return next((each for each in self.kept if each["name"] == name), None)

    def at_silent_named(self, name: str) -> dict[str, Any] | None:
        """The one of this name, if its broker does not answer and others know of it."""
        return next((each for each in self.at_silent if each["name"] == name), None)


async def kept_subscriptions(network: Network) -> KeptSubscriptions:
    """Ask everybody."""
    pages = await _ask_all(network)
    kept: dict[str, dict[str, Any]] = {}
    copies: dict[str, list[str]] = {}
    elsewhere: dict[str, dict[str, Any]] = {}
    silent = {name: page for name, page in pages.items() if isinstance(page, str)}
    for name, page in pages.items():
        if isinstance(page, str):
            continue
        for each in page["subscriptions"]:
            copies.setdefault(each["name"], []).append(name)
            if each["name"] not in kept or each["epoch"] > kept[each["name"]]["epoch"]:
                kept[each["name"]] = {**each, "clock": page["clock"]}
        elsewhere |= {each["name"]: each for each in page["elsewhere"] if each["broker"] in silent}
    lost = [each for name, each in sorted(elsewhere.items()) if name not in kept]
    return KeptSubscriptions(network, [kept[name] for name in sorted(kept)], copies, silent, lost)


async def _ask_all(network: Network) -> dict[str, Mapping[str, Any] | str]:
    """By broker what it keeps, or why it does not say."""

    async def ask(broker: BrokerEntry) -> Mapping[str, Any] | str:
        if broker.admin is None:
            return "it has no admin address in the file"
        try:
            return await subscriptions_page(broker.admin)
        except NoAnswer as error:
            return str(error)

    pages = await asyncio.gather(*map(ask, network.brokers))
    return {broker.name: page for broker, page in zip(network.brokers, pages, strict=True)}
