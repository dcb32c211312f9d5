"""A query of Spark as a durable subscriber: what it has had is acknowledged, and its log kept until then.

The subscription is an ordinary one, made by an ordinary client; but nobody reads it from a broker: the query reads the
logs themselves, and tells the broker that keeps the subscription how far it has come. That goes forward only, so it may
be said late, or twice: until it is heard, logs keep more than they must. Only the stream that is read counts: in the
logs of others that its filter matches it is carried along.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from holdfast.client import sync
from holdfast.errors import HoldfastError
from holdfast.filters.parse import parse_filter
from holdfast.pipeline.errors import BadOption, NoSubscription
from holdfast.runtime.admin_page import NoAnswer, Unwilling, tell_broker
from holdfast.runtime.kept_subscriptions import KeptSubscriptions, kept_subscriptions
from holdfast.runtime.network_file import Network
from holdfast.streams.checkpoint_token import Place, Token
from holdfast.streams.pubend_names import stream_in

__all__ = ["Acknowledging"]

ALL: Final = "#"
CONNECT_WITHIN_S: Final = 20.0
#: Where nothing happens the same is said again: that carries the subscription along in the logs of other streams.
AGAIN_AFTER_S: Final = 2.0


class Acknowledging:
    """The durable subscription of one query."""

    def __init__(self, network: Network, stream: str, name: str, filter: str | None) -> None:
        self._network = network
        self._stream = stream
        self._name = name
        self._filter = filter or ALL
        self._said: Token | None = None
        self._again_at = 0.0

    def place(self) -> Token | None:
        """How far it has come in the stream; None if there is none of this name.

        :raises BadOption: if it asks for something else than the query.
        :raises NoSubscription: if nobody can say, or somebody else reads it.
        """
        found = self._ask()
        kept = found.named(self._name)
        if kept is None:
            self._check_silent(found)
            return None
        if kept["client"] is not None:
            raise NoSubscription(f"{self._name} is being read by {kept['client']}: stop that first")
        if kept["filter"] != str(parse_filter(self._filter)):
            problem = f"{self._name} is a durable subscription to {kept['filter']}, not to {self._filter}"
            raise BadOption("subscription", f"{problem}; expected the same filter, or another name")
        return Token(
            {
                each["pubend"]: Place(each["incarnation"], each["acknowledged"])
                for each in kept["places"]
                if stream_in(each["pubend"]) == self._stream
            }
        )

    def make(self, start: Token) -> None:
        """Begin one at a place: from here on the logs keep what the query has not had.

        :raises NoSubscription: if no broker can be reached, or it refuses.
        """
        addresses = [f"holdfast://{broker.address}" for broker in self._network.brokers]
        try:
            with (
                sync.connect(
                    addresses,
                    name=f"spark-{self._name}",
                    timeout=CONNECT_WITHIN_S,
                    insecure=self._network.insecure,
                ) as network,
                network.subscribe(self._filter, durable=self._name, start=start),
            ):
                pass
        except HoldfastError as error:
            raise NoSubscription(f"the durable subscription {self._name} was not made: {error}") from error

    def acknowledge(self, upto: Token) -> None:
        """The query has had everything up to here. If its broker is away now, the next batch says so.

        :raises NoSubscription: if it has been ended, or somebody else reads it.
        """
        now = time.monotonic()
        if upto == self._said and now < self._again_at:
            return
        found = self._ask()
        kept = found.named(self._name)
        if kept is None:
            if found.silent:
                return  # it may be there; nobody has given up anything by itself
            raise NoSubscription(
                f"the durable subscription {self._name} was ended: nothing is kept for this query"
            )
        places = {
            each["pubend"]: Place(each["incarnation"], each["known"])
            for each in kept["places"]
            if stream_in(each["pubend"]) != self._stream
        }
        wish = {"name": self._name, "upto": str(Token({**places, **dict(upto.items())}))}
        admin = self._network.broker(kept["broker"]).admin
        assert admin is not None
        try:
            asyncio.run(tell_broker(admin, "/subscriptions/advance", wish))
        except NoAnswer:
            return
        except Unwilling as error:
            if kept["client"] is not None:
                raise NoSubscription(str(error)) from error
            return  # it waits for the network, or its disk: it is said again with the next batch
        self._said, self._again_at = upto, now + AGAIN_AFTER_S

    def _ask(self) -> KeptSubscriptions:
        return asyncio.run(kept_subscriptions(self._network))

    def _check_silent(self, found: KeptSubscriptions) -> None:
        """One that is kept by a broker that does not answer must not be made once more, at another place."""
        if found.silent:
            said = "; ".join(f"{name}: {problem}" for name, problem in found.silent.items())
            problem = f"no broker that answers has a durable subscription {self._name}"
            raise NoSubscription(f"{problem}, and some do not answer, which may have it ({said})")
