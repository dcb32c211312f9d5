"""Bytes no honest peer would send, drawn by seed: noise, sessions with damage, sessions in the wrong order.

Noise hardly gets past the first frame, so most of what is drawn is a valid session with one thing wrong: its bytes
are damaged somewhere, or the body of one frame is (and framed again, so that only the decoder can see it), or the
messages are those of somebody else, with values at the edges of their types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
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
from holdfast.messages.publications import (
    Accepted,
    Batch,
    Copy,
    Deliveries,
    Publication,
    Publications,
    Publish,
    Rejected,
    Tag,
)
from holdfast.messages.session import Farewell, Goodbye, Heartbeat, Hello, Kind, Overlay, Welcome
from holdfast.messages.subscriptions import (
    Cleared,
    Confirmed,
    Crossed,
    Grave,
    Heal,
    Healed,
    Known,
    Lore,
    Partition,
    Refused,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.wire.frame import encode, header
from hostile_durable import DURABLE, durable, resume, token
from hostile_values import damaged, number, publications, text
from raw_peer import frame_count, frames, hello

#: A broker the one under fire knows as its child, and may be impersonated.
NEIGHBOUR = "b2"

FILTERS = (
    "#",
    "a/#",
    "a WHERE n > 3",
    "a WHERE",
    "#/a",
    "",
    "a WHERE XPATH '//b'",
    "a WHERE " + "NOT " * 500 + "b",
    "(" * 999,
)


def subscription(draw: Random) -> SubscriptionId:
    return SubscriptionId(text(draw), number(draw), number(draw))


def vector(draw: Random) -> tuple[Element, ...]:
    return tuple(
        Element(text(draw), number(draw), draw.choice((None, number(draw)))) for _ in range(draw.randrange(4))
    )


def copies(draw: Random, count: int) -> list[Copy | None] | None:
    copy = Copy(number(draw), vector(draw), (Tag(text(draw), number(draw), number(draw), True),))
    return None if draw.random() < 0.5 else [draw.choice((None, copy)) for _ in range(count)]


def _publications(draw: Random) -> Publications:
    batch = publications(draw)
    return Publications(text(draw), Batch(batch), range(len(batch)), copies(draw, len(batch)))


def _deliveries(draw: Random) -> Deliveries:
    batch = publications(draw)
    mine = [tuple(number(draw) for _ in range(draw.randrange(3))) for _ in batch]
    return Deliveries(text(draw), Batch(batch), range(len(batch)), mine, copies(draw, len(batch)))


def _partial(draw: Random) -> tuple[Partition, ...]:
    return (Partition(text(draw), number(draw), number(draw), (text(draw),)),) * draw.randrange(3)


def _partition(draw: Random) -> Partition:
    return Partition(text(draw), number(draw), number(draw), (text(draw),))


def _route(draw: Random) -> tuple[str, ...]:
    return (text(draw),) * draw.randrange(4)


def _rows(draw: Random) -> tuple[Known, ...]:
    return tuple(
        Known(
            subscription(draw),
            draw.choice(FILTERS),
            (text(draw),) * draw.randrange(4),
            _partial(draw),
            durable(draw),
        )
        for _ in range(draw.randrange(4))
    )


def _lore(draw: Random) -> Lore:
    graves = (Grave(text(draw), number(draw), number(draw), number(draw)),) * draw.randrange(3)
    return Lore(_rows(draw), graves)


def _relay(draw: Random) -> Relay:
    """A way with a number for every event, or the frame would not be read."""
    batch = publications(draw)
    steps = tuple(Step(text(draw), draw.choice((None, number(draw)))) for _ in range(draw.randrange(4)))
    columns = [[number(draw) for _ in batch] for step in steps if step.incarnation is not None]
    tags = (Tag(text(draw), number(draw), number(draw), True),) * draw.randrange(2)
    lists = draw.choice((None, [(number(draw),) for _ in batch]))
    flags = (draw.random() < 0.5 for _ in range(3))
    return Relay(text(draw), Batch(batch), range(len(batch)), Trail(steps, columns), tags, lists, *flags)


def _holdings(draw: Random) -> tuple[Holding, ...]:
    return tuple(
        Holding(text(draw), number(draw), text(draw), number(draw), number(draw), number(draw))
        for _ in range(draw.randrange(4))
    )


def _overlay(draw: Random) -> Overlay | None:
    standing = Overlay(
        draw.choice(list(Role)), draw.choice((0, 1, number(draw))), True, text(draw), text(draw)
    )
    return draw.choice((None, standing))


def node_hello(node: str, role: Role = Role.BROKER, session: int = 1) -> Hello:
    """A node of the overlay introduces itself."""
    kind = Kind.BROKER if role is Role.BROKER else Kind.CLIENT
    home = None if role is Role.BROKER else "b1"
    standing = Overlay(role, 0, is_recovering=False, home=home)
    return replace(hello(node, kind, session=session), features=("routing=filter",), overlay=standing)


#: One of each kind of message, with values at the edges.
MESSAGES: dict[type, Callable[[Random], Message]] = {
    Hello: lambda draw: Hello(
        text(draw),
        draw.choice(list(Kind)),
        number(draw),
        number(draw),
        text(draw),
        number(draw),
        number(draw),
        number(draw),
        overlay=_overlay(draw),
    ),
    Welcome: lambda draw: Welcome(
        text(draw), draw.choice(list(Kind)), number(draw), number(draw), number(draw), overlay=_overlay(draw)
    ),
    Heartbeat: lambda draw: Heartbeat(),
    Goodbye: lambda draw: Goodbye(draw.choice(list(Farewell)), text(draw)),
    Subscribe: lambda draw: Subscribe(
        subscription(draw), draw.choice(FILTERS), vector(draw), durable(draw), resume(draw)
    ),
    Confirmed: lambda draw: Confirmed(subscription(draw), _partial(draw), token(draw)),
    Refused: lambda draw: Refused(subscription(draw), text(draw)),
    Unsubscribe: lambda draw: Unsubscribe(subscription(draw)),
    Withdrawn: lambda draw: Withdrawn(subscription(draw)),
    Publish: lambda draw: Publish(
        Batch(publications(draw, draw.choice((None, "hostile")))),
        draw.choice(("", "", text(draw))),
        number(draw),
    ),
    Accepted: lambda draw: Accepted(number(draw), (number(draw),) * draw.randrange(3)),
    Rejected: lambda draw: Rejected(number(draw), text(draw), text(draw)),
    Publications: _publications,
    Deliveries: _deliveries,
    Relay: _relay,
    DepthAck: lambda draw: DepthAck(_holdings(draw)),
    Confirmations: lambda draw: Confirmations([number(draw) for _ in range(draw.randrange(4))]),
    Join: lambda draw: Join(text(draw), draw.choice(list(Role)), text(draw), text(draw), number(draw)),
    Leave: lambda draw: Leave(text(draw), number(draw), text(draw)),
    Lapse: lambda draw: Lapse(text(draw), number(draw), number(draw), draw.random() < 0.5),
    Missing: lambda draw: Missing(text(draw), number(draw), number(draw), number(draw)),
    Present: lambda draw: Present(text(draw), number(draw)),
    Told: lambda draw: Told(number(draw), (text(draw),)),
    Ready: lambda draw: Ready(),
    Need: lambda draw: Need(draw.random() < 0.5),
    Lore: _lore,
    Heal: lambda draw: Heal(_partition(draw), _rows(draw), draw.random() < 0.7),
    Healed: lambda draw: Healed(_partition(draw), _partial(draw)),
    Upgraded: lambda draw: Upgraded(subscription(draw), _partial(draw), _partial(draw)),
    UpgradeTaken: lambda draw: UpgradeTaken(subscription(draw), _partial(draw)),
    Cleared: lambda draw: Cleared(_partition(draw)),
    Crossed: lambda draw: Crossed(_partition(draw)),
    **DURABLE,
}

#: How a session may begin, by who is pretended to speak.
OPENINGS: dict[str, list[Message]] = {
    "nobody": [],
    "a client": [hello("hostile", incarnation=2**63)],  # not below any other of this name
    "an unknown broker": [hello("b9", Kind.BROKER)],
    "a broker out of the overlay": [hello(NEIGHBOUR, Kind.BROKER)],
    "a neighbour": [node_hello(NEIGHBOUR)],
    "a neighbour that is ready": [node_hello(NEIGHBOUR), Told(), Ready()],
    "a member": [node_hello("hostile member", Role.PUBLISHER), Told(), Ready()],
}


def client_session(draw: Random) -> list[Message]:
    """What a client might say; under many names, so that one with a high incarnation does not bar the rest."""
    name = f"hostile {draw.randrange(1_000)}"
    mine = SubscriptionId(name, 1, draw.randrange(1, 100))
    batch = [Publication(name, n, pack(make_event("a/b", {"n": n}))) for n in range(1, 5)]
    return [
        hello(name, session=draw.randrange(1, 1_000)),
        Subscribe(mine, draw.choice(FILTERS[:3]), (Element(name, 1, 1),)),
        Heartbeat(),
        Publish(Batch(batch), draw.choice(("", "", "nowhere"))),
        Unsubscribe(mine),
        Goodbye(draw.choice((Farewell.LEAVING, Farewell.SILENT)), "bye"),
    ]


def neighbour_session(draw: Random) -> list[Message]:
    """What a broker might say."""
    theirs = SubscriptionId("s", 1, draw.randrange(1, 100))
    batch = Batch([Publication("p", n, pack(make_event("a/b", {"n": n}))) for n in range(1, 5)])
    return [
        node_hello(NEIGHBOUR, session=draw.randrange(1, 1_000)),
        Lore((Known(theirs, "a/#", ()),)),
        Told(),
        Ready(),
        Publications("default", batch, range(len(batch))),
        Relay("default", batch, range(4), Trail((Step(NEIGHBOUR, 1),), [[1, 2, 3, 4]])),
        Subscribe(theirs._replace(number=200), "a", (Element("s", 1, 2), Element(NEIGHBOUR, 1, 2))),
        Unsubscribe(theirs),
        Heartbeat(),
    ]


def member_session(draw: Random) -> list[Message]:
    """What a client that is a node of the overlay might say."""
    name = f"member {draw.randrange(1_000)}"
    mine = SubscriptionId(name, 1, draw.randrange(1, 100))
    batch = Batch([Publication(name, n, pack(make_event("a/b", {"n": n}))) for n in range(1, 5)])
    return [
        node_hello(name, draw.choice((Role.PUBLISHER, Role.SUBSCRIBER)), draw.randrange(1, 1_000)),
        Told(),
        Ready(),
        Subscribe(mine, draw.choice(FILTERS[:3]), (Element(name, 1, 1),)),
        Relay("default", batch, range(4), Trail((Step(name, 1),), [[1, 2, 3, 4]])),
        DepthAck((Holding(name, 1, "b1", 1, 1, 1),)),
        Unsubscribe(mine),
        Goodbye(draw.choice((Farewell.LEAVING, Farewell.SILENT)), "bye"),
    ]


def damaged_frame(draw: Random, messages: Sequence[Message]) -> bytes:
    """Frames that are all right, but for the body of one."""
    chosen = draw.randrange(len(messages))
    sent = frame_count(*messages[:chosen])
    kind, body = encode(messages[chosen])
    body = damaged(draw, body)
    wrong = header(kind, sent + 1, len(body)) + body
    return frames(*messages[:chosen]) + wrong + frames(*messages[chosen + 1 :], after=sent + 1)


def hostile_bytes(draw: Random) -> bytes:
    """What one hostile peer sends."""
    session = draw.choice((client_session, neighbour_session, member_session))(draw)
    match draw.randrange(6):
        case 0:
            return draw.randbytes(draw.choice((0, 1, 8, 9, 10, 100, 10_000, 100_000)))
        case 1:
            return damaged(draw, frames(*session))
        case 2:
            return damaged(draw, damaged(draw, damaged(draw, frames(*session))))
        case 3:
            return damaged_frame(draw, session)
        case 4:
            draw.shuffle(session)
            return frames(*session)
        case _:
            kinds = draw.choices(list(MESSAGES), k=draw.randrange(1, 6))
            opening = draw.choice(list(OPENINGS.values()))
            return frames(*opening, *(MESSAGES[kind](draw) for kind in kinds))


def hostile_request(draw: Random) -> bytes:
    """What a hostile peer sends to a port that speaks HTTP."""
    request = b"GET /%b HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n" % draw.choice(
        (b"livez", b"metrics", b"status", b"x")
    )
    match draw.randrange(5):
        case 0:
            return draw.randbytes(draw.choice((0, 1, 100, 10_000)))
        case 1:
            return damaged(draw, damaged(draw, request))
        case 2:
            return request * draw.choice((1, 2, 100))
        case 3:
            return request[:-2] + b"X: " + b"y" * draw.choice((10, 8_000, 100_000)) + b"\r\n\r\n"
        case _:
            return damaged(draw, request)
