"""What hostile peers say of streams that are logged: one of each kind of message, with values at the edges.

They are such as can be written. What is not in order cannot be; what is out of range is for the reader to refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from random import Random

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
    Logged,
    Moved,
    MovedTaken,
    Ousted,
    Portion,
    Report,
    Reported,
    Requests,
    Resign,
    Run,
    Saved,
    Stand,
    Withheld,
)
from holdfast.messages.message import Message
from holdfast.messages.publications import Batch, Rejected
from holdfast.messages.subscriptions import NO_SEAT, Durable, Resume, Seat
from holdfast.messages.ticks import ABSOLUTE, Follow, Items, Lost, Nack, Start, Taken, Unfollow, Wants
from hostile_values import number, publications, text

__all__ = ["DURABLE", "PUBENDS", "durable", "resume", "token"]

#: A pubend of the broker under fire, one of its neighbour's, one of nobody's, and what is none.
PUBENDS = ("orders@b1/0", "orders@b2/0", "orders@b9/7", "default@b1/0", "orders", "@/", "", "x" * 300)


def pubend(draw: Random) -> str:
    return draw.choice(PUBENDS)


def letter(draw: Random) -> tuple[str, str]:
    """To whom, and from whom."""
    return draw.choice(("b1", "b1", "b1", text(draw))), text(draw)


def _runs(draw: Random) -> tuple[Run, ...]:
    return tuple(Run(number(draw), number(draw), number(draw)) for _ in range(draw.randrange(3)))


def _lost(draw: Random) -> list[Lost]:
    return [Lost(number(draw), number(draw), text(draw)) for _ in range(draw.randrange(3))]


def _items(draw: Random) -> Items:
    batch = [draw.choice((None, each)) for each in publications(draw)]
    after = abs(number(draw))
    ticks = list(accumulate((draw.choice((1, 2, 1_000, 2**40)) for _ in batch), initial=after))
    under = draw.choice((ABSOLUTE, 1, number(draw)))
    answers = draw.random() < 0.5
    return Items(pubend(draw), under, ticks[:-1], ticks[1:], batch, _lost(draw), answers)


def _requests(draw: Random) -> Requests:
    batch = publications(draw)
    previous = [draw.choice((-1, 0, 1, number(draw))) for _ in batch]
    return Requests(*letter(draw), pubend(draw), previous, Batch(batch), number(draw))


def _portion(draw: Random) -> Portion:
    batch = publications(draw)
    ticks = list(range(10, 10 + len(batch)))
    return Portion(
        number(draw), pubend(draw), number(draw), Batch(batch), ticks, range(len(batch)), 20, 5, text(draw)
    )


def _answers(draw: Random) -> Answers:
    refused = (Rejected(number(draw), text(draw), text(draw)),) * draw.randrange(3)
    hole = draw.choice((None, number(draw)))
    of = *letter(draw), pubend(draw), number(draw), text(draw)
    return Answers(*of, _runs(draw), _runs(draw), refused, hole)


def _stands(draw: Random) -> dict[str, Stand] | None:
    stand = Stand(number(draw), number(draw), number(draw))
    return draw.choice((None, {}, {pubend(draw): stand}))


def seat(draw: Random) -> Seat:
    return draw.choice((NO_SEAT, Seat(number(draw), text(draw), number(draw))))


def born(draw: Random) -> tuple[int, str] | None:
    return draw.choice((None, (number(draw), text(draw))))


def _spans(draw: Random) -> list[tuple[int, int]]:
    return [(number(draw), number(draw)) for _ in range(draw.randrange(4))]


def _places(draw: Random) -> dict[str, int]:
    return {pubend(draw): number(draw) for _ in range(draw.randrange(3))}


def durable(draw: Random) -> Durable | None:
    return draw.choice((None, Durable(text(draw), number(draw))))


def token(draw: Random) -> dict[str, tuple[int, int]] | None:
    return draw.choice((None, {}, {pubend(draw): (number(draw), number(draw)) for _ in range(3)}))


def resume(draw: Random) -> Resume | None:
    """How a client may want to go on."""
    name, start = draw.choice((None, text(draw))), draw.choice((None, number(draw)))
    consumed = draw.choice((None, {}, {pubend(draw): number(draw) for _ in range(3)}))
    return draw.choice(
        (None, Resume(number(draw), name, start, token(draw), consumed, born(draw), seat(draw)))
    )


#: One of each kind.
DURABLE: dict[type, Callable[[Random], Message]] = {
    Wants: lambda draw: Wants(number(draw)),
    Follow: lambda draw: Follow(pubend(draw)),
    Unfollow: lambda draw: Unfollow(pubend(draw)),
    Taken: lambda draw: Taken(draw.choice((0, 1, 2**40))),
    Start: lambda draw: Start(pubend(draw), number(draw)),
    Items: _items,
    Nack: lambda draw: Nack(pubend(draw), number(draw), _spans(draw)),
    Requests: _requests,
    Answers: _answers,
    Admit: lambda draw: Admit(*letter(draw), pubend(draw), draw.choice((None, number(draw)))),
    Admitted: lambda draw: Admitted(
        *letter(draw), pubend(draw), number(draw), number(draw), number(draw), number(draw)
    ),
    Report: lambda draw: Report(*letter(draw), pubend(draw), number(draw), number(draw), number(draw)),
    Reported: lambda draw: Reported(*letter(draw), pubend(draw), number(draw), number(draw)),
    Resign: lambda draw: Resign(*letter(draw), pubend(draw), number(draw)),
    Claim: lambda draw: Claim(*letter(draw), pubend(draw), number(draw)),
    Fetch: lambda draw: Fetch(*letter(draw), text(draw), seat(draw), born(draw), number(draw)),
    Fetched: lambda draw: Fetched(
        *letter(draw),
        text(draw),
        _stands(draw),
        number(draw),
        number(draw),
        text(draw),
        seat(draw),
        draw.choice((None, number(draw))),
    ),
    Withheld: lambda draw: Withheld(*letter(draw), text(draw), seat(draw), text(draw)),
    Moved: lambda draw: Moved(*letter(draw), text(draw), number(draw), seat(draw)),
    Ended: lambda draw: Ended(*letter(draw), text(draw), number(draw), number(draw), number(draw)),
    MovedTaken: lambda draw: MovedTaken(*letter(draw), text(draw), number(draw)),
    Portion: _portion,
    Credit: lambda draw: Credit(number(draw), number(draw)),
    Acknowledge: lambda draw: Acknowledge(number(draw), _places(draw), number(draw)),
    Saved: lambda draw: Saved(number(draw), number(draw)),
    Detach: lambda draw: Detach(number(draw)),
    Ousted: lambda draw: Ousted(number(draw), text(draw)),
    Logged: lambda draw: Logged(pubend(draw), number(draw), _runs(draw), _runs(draw)),
}
