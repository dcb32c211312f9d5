"""Whole sessions of peers who lie about streams that are logged: all can be read, and none is what a correct peer says.

Readers, publishers and a broker; they know the names of pubends and what time it is, so that their ticks may be such as
there are. What they leave alone is where trust begins (docs/protocols/durable.md): the names of other durable
subscriptions, tokens ahead of a pubend, and what a broker says in another one's name.
"""

from __future__ import annotations

from random import Random

from holdfast.broker.durable.names import broker_filter, pubend_filter
from holdfast.events.event import make_event
from holdfast.events.packed import pack
from holdfast.identity import Element, SubscriptionId
from holdfast.messages.durable import (
    Acknowledge,
    Admit,
    Admitted,
    Answers,
    Claim,
    Credit,
    Detach,
    Ended,
    Fetch,
    Fetched,
    Moved,
    MovedTaken,
    Report,
    Reported,
    Requests,
    Resign,
    Run,
    Stand,
)
from holdfast.messages.message import Message
from holdfast.messages.overlay import Ready, Told
from holdfast.messages.publications import Batch, Publication, Publish
from holdfast.messages.subscriptions import Known, Lore, Resume, Subscribe, Unsubscribe
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Lost, Nack, Start, Unfollow, Wants
from hostile import NEIGHBOUR, damaged_frame, hostile_bytes, node_hello
from hostile_durable import born, seat
from hostile_values import INTS, damaged, number
from raw_peer import frames, hello

__all__ = ["hostile_logged_bytes"]

#: Of the brokers under fire, of the one that is impersonated, of the sequencer, and of nobody.
PUBENDS = ("orders@b1/0", "orders@b3/0", "orders@b2/0", "ledger@b1/0", "orders@b9/0", "default@b1/0")
OWN = "orders@b2/0"
SECOND = 1_000_000  #: in ticks
FILTERS = ("a/#", "a/b WHERE n > 2", "honest/#", "#", "$pubend/orders@b1/0", "$broker/b1", "$broker/b3")
#: Who is pretended to have published.
NAMES = ("honest b1", "honest b3", "nobody")


def hostile_logged_bytes(draw: Random, clock: int) -> bytes:
    """What one hostile peer sends; ``clock`` is a tick all pubends have just come to."""
    if draw.random() < 0.2:
        return hostile_bytes(draw)
    session = draw.choice((reader, publisher, broker, broker))(draw, clock)
    match draw.randrange(8):
        case 0:
            return damaged(draw, frames(*session))
        case 1:
            return damaged_frame(draw, session)
        case 2:
            draw.shuffle(session)
    return frames(*session)


def tick(draw: Random, clock: int) -> int:
    """One there may be, or may not."""
    ago = clock - draw.choice((0, SECOND, 3 * SECOND, 100 * SECOND))
    return draw.choice((ago, ago, draw.choice([each for each in INTS if each < clock])))


def impossible(draw: Random) -> int:
    """One no pubend of this network has come to, or will before long."""
    return draw.choice((-1, -(2**63), 2**53, 2**63 - 1, 2**64 - 1))


def publications(draw: Random, publisher: str, topic: str = "a/b") -> list[Publication]:
    first = draw.choice((1, 2, 1_000, 2**40))
    count = draw.choice((1, 3, 500))
    return [Publication(publisher, first + i, pack(make_event(topic, {"n": i}))) for i in range(count)]


# Clients


def reader(draw: Random, clock: int) -> list[Message]:
    """Tokens of another network, places nobody told it of, credit without end."""
    name = f"reader {draw.randrange(50)}"
    mine = [SubscriptionId(name, 1, n) for n in range(1, 4)]
    said: list[Message] = [hello(name, session=draw.randrange(1, 1_000))]
    for each in mine[: draw.randint(1, 3)]:
        places = {
            draw.choice(PUBENDS): (
                draw.choice((1, number(draw))),
                draw.choice((tick(draw, clock), impossible(draw))),
            )
            for _ in range(draw.randrange(4))
        }
        start = draw.choice((None, None, tick(draw, clock), impossible(draw)))
        durable = draw.choice((None, f"kept {draw.randrange(20)}"))
        consumed = {each: draw.choice((place[1], tick(draw, clock))) for each, place in places.items()}
        credit, token = draw.choice((0, 1, 10**6, number(draw))), draw.choice((None, places))
        resume = Resume(credit, durable, start, token, draw.choice((None, consumed)), born(draw), seat(draw))
        said.append(Subscribe(each, draw.choice(FILTERS), (Element(name, 1, each.number),), None, resume))
    for _ in range(draw.randrange(8)):
        n = draw.choice((1, 2, 3, 99))
        told = {draw.choice(PUBENDS): draw.choice((tick(draw, clock), impossible(draw))) for _ in range(2)}
        wishes = (
            Credit(n, draw.choice((1, 10**6, number(draw)))),
            Acknowledge(n, told, draw.choice((0, 1, number(draw)))),
            Detach(n),
            Unsubscribe(mine[0]),
        )
        said.append(draw.choice(wishes))
    return said


def publisher(draw: Random, clock: int) -> list[Message]:
    """Events in the name of others, numbers that go back, the same ones again."""
    name = f"publisher {draw.randrange(50)}"
    said: list[Message] = [hello(name, session=draw.randrange(1, 1_000))]
    for _ in range(draw.randint(1, 4)):
        forged = draw.random() < 0.3
        batch = (
            publications(draw, name) if not forged else publications(draw, draw.choice(NAMES), "honest/fifo")
        )
        said += [Publish(Batch(batch))] * draw.choice((1, 2))
    return said


# A broker


def broker(draw: Random, clock: int) -> list[Message]:
    """What the neighbour b2 says of pubends: of its own what it likes, of others what it cannot know."""
    ours = [str(broker_filter(NEIGHBOUR)), str(pubend_filter(OWN)), "a/#"]
    rows = tuple(Known(SubscriptionId(NEIGHBOUR, 1, n), text, ()) for n, text in enumerate(ours, 1))
    said: list[Message] = [node_hello(NEIGHBOUR, session=draw.randrange(1, 1_000))]
    said += [Lore(rows if draw.random() < 0.7 else ()), Told(), Ready(), Wants(draw.randint(1, 9))]
    for _ in range(draw.randint(1, 12)):
        said += draw.choice((_asking, _telling, _writing))(draw, clock)
    return said


def _asking(draw: Random, clock: int) -> list[Message]:
    pubend = draw.choice(PUBENDS)
    ends = [(0, 2**62), (clock - SECOND, clock), (clock, clock + 10**9), (-5, 5), (7, 7), (9, 3)]
    spans = [draw.choice(ends) for _ in range(draw.choice((0, 1, 3)))]
    comb = [(clock - 2 * i, clock - 2 * i + 1) for i in range(1_000, 0, -1)]
    nack = Nack(pubend, draw.choice((ABSOLUTE, 1, 9, 10**9)), draw.choice((spans, comb)))
    return [draw.choice((Follow(pubend), Unfollow(pubend), nack, nack))]


def _telling(draw: Random, clock: int) -> list[Message]:
    pubend = draw.choice((*PUBENDS, OWN, OWN))
    at = clock - draw.randrange(SECOND)
    batch = publications(draw, "nobody")
    ticks = [at + i for i in range(1, len(batch) + 1)]
    items = Items(
        pubend,
        draw.choice((ABSOLUTE, 1, 9)),
        [at, *ticks[:-1]],
        ticks,
        draw.choice((batch, [None] * len(batch))),
        [Lost(at - SECOND, at, "max_retain")] * draw.randrange(2),
        answers=draw.random() < 0.5,
    )
    return [Start(pubend, at), items] if draw.random() < 0.5 else [items]


def _writing(draw: Random, clock: int) -> list[Message]:
    """Letters, to whoever is there and to nobody; only from itself, or from nobody."""
    to = draw.choice(("b1", "b3", "b1", "b3", NEIGHBOUR, "b9", ""))
    origin, pubend = draw.choice((NEIGHBOUR, NEIGHBOUR, "b9", "")), draw.choice(PUBENDS)
    name, at, n = f"kept {draw.randrange(20)}", tick(draw, clock), draw.choice((0, 1, 7, number(draw)))
    stand = Stand(at, at, draw.choice((at, impossible(draw))))
    batch = publications(draw, "nobody")
    letters: tuple[Message, ...] = (
        Admit(to, origin, pubend, draw.choice((None, at, impossible(draw)))),
        Admitted(to, origin, pubend, 1, at, n, at),
        Report(to, origin, pubend, n, at, draw.choice((at, impossible(draw)))),
        Reported(to, origin, pubend, n, 1),
        Resign(to, origin, pubend, n),
        Claim(to, origin, pubend, draw.choice((at, impossible(draw)))),
        Fetch(to, origin, name),
        Fetched(
            to, origin, name, draw.choice((None, {}, {pubend: stand})), number(draw), number(draw), origin
        ),
        Moved(to, origin, name, draw.choice((at, impossible(draw)))),
        Ended(to, origin, name, draw.choice((at, impossible(draw))), at, impossible(draw)),
        MovedTaken(to, origin, name, at),
        Requests(to, origin, pubend, [draw.choice((-1, 0, each.n - 1)) for each in batch], Batch(batch)),
        Answers(to, origin, pubend, n, "honest b3", (Run(1, at, 1),), hole=draw.choice((None, 0, 5))),
    )
    return [draw.choice(letters)]
