"""The brokers of a network inside the process, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from holdfast.broker.broker import Broker
from holdfast.broker.settings import Neighbour, Settings, Stream
from holdfast.client.errors import InvalidOption
from holdfast.clock import MILLISECOND
from holdfast.embedded.tree import within_reach
from holdfast.errors import FilterError
from holdfast.filters.topic import parse_pattern
from holdfast.messages.streams import Guarantee, Order
from holdfast.overlay.transport import Core
from holdfast.simulator.world import address_of
from holdfast.streams.storing import Recovered

__all__ = ["DELTA_MAX", "common_settings", "new_broker"]

DELTA_MAX: Final = 10

#: As in a network file: a receipt of a reliable stream takes about so long.
DACK_EVERY_NS: Final = 100 * MILLISECOND


def common_settings(
    delta: int | None, streams: Mapping[str, tuple[str, ...]] | None, root: str
) -> dict[str, Any]:
    """What all brokers are told alike."""
    if delta is not None and (not isinstance(delta, int) or not 0 <= delta <= DELTA_MAX):
        raise InvalidOption("delta", f"is {delta!r}; expected a number of failures from 0 to {DELTA_MAX}")
    if streams is None:
        guarantee = Guarantee.BEST_EFFORT if delta is None else Guarantee.RELIABLE
        made = [Stream("default", ("#",), guarantee=guarantee)]
    else:
        made = [_stream(name, each, root) for name, each in streams.items()]
    return {"delta": delta or 0, "streams": tuple(made), "dack_every_ns": DACK_EVERY_NS}


def _stream(name: str, described: tuple[str, ...], root: str) -> Stream:
    is_well = isinstance(described, tuple) and all(isinstance(each, str) for each in described)
    if not is_well or len(described) not in (2, 3):
        problem = f"is {described!r}; expected its topics, its guarantee, and its order if that is not fifo"
        raise InvalidOption("streams", f"{name} {problem}")
    topics, guarantee, order = (*described, Order.FIFO)[:3]
    try:
        parse_pattern(topics)
    except FilterError as error:
        raise InvalidOption("streams", f"{name}: {error}") from None
    for what, word, known in (("guarantee", guarantee, Guarantee), ("order", order, Order)):
        if word not in list(known):
            raise InvalidOption("streams", f"{name}: its {what} is {word!r}; expected {', '.join(known)}")
    is_total = order == Order.TOTAL
    if is_total and guarantee != Guarantee.DURABLE:
        raise InvalidOption("streams", f"{name}: its order is total, and it is {guarantee}; expected durable")
    return Stream(name, (topics,), Order(order), Guarantee(guarantee), sequencer=root if is_total else None)


def new_broker(
    name: str,
    parents: Mapping[str, str | None],
    common: Mapping[str, Any],
    recovered: Callable[[], Recovered],
    incarnation: int,
) -> Core:
    """One life of a broker, which knows the others within its reach, and what its former lives left on its disk."""
    neighbours = [
        Neighbour(
            other,
            None if parents[other] == name else address_of(other),
            None if beside == name else beside,
            answers_at=address_of(other),
        )
        for other, beside in within_reach(parents, name, common["delta"] + 1)
    ]
    settings = Settings(name, incarnation, tuple(neighbours), brokers=tuple(parents), **common)
    return Broker(settings, recovered=recovered())
