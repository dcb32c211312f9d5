"""Messages of the overlay, drawn by Hypothesis, and the plain form of one that carries events."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from drawn_messages import MESSAGES as OTHERS
from drawn_messages import (
    batches,
    durables,
    features,
    flags,
    names,
    numbers,
    partials,
    partitions,
    subscriptions,
    tags,
)
from drawn_messages import plain as plain_other
from holdfast.events.event import Limits
from holdfast.messages.message import Message
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Holding,
    Join,
    Lapse,
    Leave,
    Missing,
    Need,
    Present,
    Ready,
    Relay,
    Role,
    Step,
    Told,
    Trail,
)
from holdfast.messages.session import Hello, Invitation, Kind, Overlay, Welcome
from holdfast.messages.streams import Guarantee, Order, StreamOrder
from holdfast.messages.subscriptions import (
    Cleared,
    Crossed,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Upgraded,
    UpgradeTaken,
)

__all__ = ["MESSAGES", "messages", "plain", "relays"]

kinds = st.sampled_from(Kind)
roles = st.sampled_from(Role)
topics = st.lists(names, max_size=3).map(tuple)
orders = st.builds(StreamOrder, names, st.sampled_from(Order), st.sampled_from(Guarantee), topics)
streams = st.lists(orders, max_size=3).map(tuple)
optional_names = st.none() | names
standings = st.none() | st.builds(Overlay, roles, numbers, flags, optional_names, optional_names)
places = st.lists(st.builds(Join, names, roles, names, optional_names, numbers), max_size=3).map(tuple)
limits = st.builds(Limits, payload_bytes=numbers, topic_levels=numbers)
invitations = st.none() | st.builds(
    Invitation,
    numbers,
    places,
    numbers,
    names,
    flags,
    flags,
    numbers,
    numbers,
    numbers,
    numbers,
    limits,
)
routes = st.lists(names, max_size=4).map(tuple)
rows = st.lists(st.builds(Known, subscriptions, names, routes, partials, durables), max_size=4).map(tuple)
graves = st.lists(st.builds(Grave, names, numbers, numbers, numbers), max_size=4).map(tuple)
holdings = st.lists(st.builds(Holding, names, numbers, names, numbers, numbers, numbers), max_size=5).map(
    tuple
)
steps = st.lists(st.builds(Step, names, st.none() | numbers), max_size=7).map(tuple)


@st.composite
def relays(draw: st.DrawFn) -> Relay:
    """Some of a batch, a way with a column for each step that was not bypassed, and what else may stand beside it."""
    batch = draw(batches)
    at = [i for i in range(len(batch)) if draw(flags)]
    way = draw(steps)
    column = st.lists(numbers, min_size=len(at), max_size=len(at))
    columns = [draw(column) for step in way if step.incarnation is not None]
    own = st.lists(numbers, max_size=20).map(tuple)
    lists = draw(st.none() | st.lists(own, min_size=len(at), max_size=len(at)))
    return Relay(
        draw(names), batch, at, Trail(way, columns), draw(tags), lists, *(draw(flags) for _ in range(3))
    )


#: Every message there is; those that begin a session with and without a standing in the overlay.
MESSAGES: dict[type, st.SearchStrategy[Message]] = {
    **OTHERS,
    Hello: st.builds(
        Hello, names, kinds, numbers, numbers, names, numbers, numbers, numbers, features, standings
    ),
    Welcome: st.builds(
        Welcome,
        names,
        kinds,
        numbers,
        numbers,
        numbers,
        numbers,
        features,
        numbers,
        streams,
        standings,
        invitations,
    ),
    Relay: relays(),
    DepthAck: st.builds(DepthAck, holdings),
    Confirmations: st.builds(Confirmations, st.lists(numbers, max_size=5)),
    Join: st.builds(Join, names, roles, names, optional_names, numbers),
    Leave: st.builds(Leave, names, numbers, names),
    Lapse: st.builds(Lapse, names, numbers, numbers, flags),
    Missing: st.builds(Missing, names, numbers, numbers, numbers),
    Present: st.builds(Present, names, numbers),
    Told: st.builds(Told, numbers, st.lists(names, max_size=3).map(tuple)),
    Ready: st.builds(Ready),
    Need: st.builds(Need, flags),
    Lore: st.builds(Lore, rows, graves),
    Heal: st.builds(Heal, partitions, rows, flags),
    Healed: st.builds(Healed, partitions, partials),
    Upgraded: st.builds(Upgraded, subscriptions, partials, partials),
    UpgradeTaken: st.builds(UpgradeTaken, subscriptions, partials),
    Cleared: st.builds(Cleared, partitions),
    Crossed: st.builds(Crossed, partitions),
}


def messages() -> st.SearchStrategy[Message]:
    """Any message at all."""
    return st.one_of(*MESSAGES.values())


def plain(message: Any) -> Any:
    """What a message says, as plain data: a batch is what is picked from it."""
    if not isinstance(message, Relay):
        return plain_other(message)
    lists = None if message.subscriptions is None else [*message.subscriptions]
    return (
        "Relay",
        (message.stream, message.trail.steps, message.tags, message.again, message.refill, message.returned),
        [message.batch.publications[i] for i in message.at],
        lists,
        message.trail.numbers,
    )
