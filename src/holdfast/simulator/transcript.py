"""A readable record of a run: what every node heard, said and became.

Columns: the time in seconds since the world began; the node; a mark; what happened. The marks are ``<`` for what
came in, ``>`` for what went out, ``=`` for a state: a trace line, a log line, a start, a crash. Behind ``<`` and
``>`` stands the peer where the connection tells it::

           time  node           what
       0.000000  broker1      = started, incarnation 1
       0.000000  broker1      > dial broker0
       0.020000  broker1      < connected to broker0
       0.020000  broker1      > broker0: Hello(broker1, broker, incarnation 1, session 1)
       5.260000  broker5      < publisher00: Publish(publisher00#1)
       5.260000  broker5      > broker3: Publications(publisher00#1)
       5.260000  broker5      > subscriber5: Deliveries(publisher00#1 to 1)
       5.280000  B3           < B2: Relay(P#1, P#2; P:1-2 B1:⊥ B2:3-4)
       6.000000  B3           > B2: DepthAck(B3 has B2:4, P:2/1)

A ``Relay`` shows the way it came: each node with its numbers for these publications, ⊥ where it was bypassed, and the
node's incarnation, as in ``B2.3:4``, from its second on. A ``DepthAck`` shows what a node has of which other: up to the
number before the stroke it has come, up to the one behind it it has been discarded; without a stroke they are the same.
Heartbeats and wakes are left out: they would be most of it. Only the last ``lines_max`` lines are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Final

from holdfast.clock import SECOND, Instant
from holdfast.messages.message import Message
from holdfast.messages.overlay import DepthAck, Holding, Join, Relay, Step, Trail
from holdfast.messages.publications import Accepted, Deliveries, Publication, Publications, Publish, Tag
from holdfast.messages.session import Goodbye, Heartbeat, Hello, Welcome
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
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.overlay.transport import (
    Close,
    Connect,
    Connected,
    ConnectFailed,
    Disconnected,
    Log,
    Pause,
    Received,
    Resume,
    Send,
    Trace,
    Wake,
)
from holdfast.simulator.connection import Host

__all__ = ["HEADING", "LINES_MAX", "Transcript"]

LINES_MAX: Final = 100_000
HEADING: Final = "       time  node           what"
_SHOWN_MAX: Final = 3


class Transcript:
    """Collects lines; ``str()`` gives them with their heading."""

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        self.lines: deque[str] = deque(maxlen=lines_max)
        self.left_out = 0

    def __str__(self) -> str:
        omitted = [f"… {self.left_out} earlier lines"] if self.left_out else []
        return "".join(f"{line}\n" for line in [HEADING, *omitted, *self.lines])

    def note(self, now: Instant, node: str, mark: str, text: str) -> None:
        """Write one line."""
        self.left_out += len(self.lines) == self.lines.maxlen
        self.lines.append(f"{now / SECOND:11.6f}  {node:<12} {mark} {text}")

    def step(self, now: Instant, host: Host, stimulus: Any, effects: Sequence[Any]) -> None:
        """Write down an input and what came of it."""
        for text in _heard(host, stimulus):
            self.note(now, host.name, "<", text)
        for effect in effects:
            for mark, text in _done(host, effect):
                self.note(now, host.name, mark, text)


def _peer(host: Host, connection: int) -> str:
    end = host.ends.get(connection)
    return f"connection {connection}" if end is None else end.other.host.name


def _heard(host: Host, stimulus: Any) -> list[str]:
    match stimulus:
        case Received(connection, messages):
            return _said(_peer(host, connection), messages)
        case Connected(connection, peer):
            name = _peer(host, connection)
            return [f"connected to {name}" if peer is not None else f"connected from {name}"]
        case ConnectFailed(peer, reason):
            return [f"cannot reach {peer}: {reason}"]
        case Disconnected(connection, reason):
            return [f"connection {connection} lost: {reason}"]
        case Wake():
            return []
        case _:
            return [_shown(stimulus)]


def _done(host: Host, effect: Any) -> list[tuple[str, str]]:
    match effect:
        case Send(connection, messages):
            return [(">", text) for text in _said(_peer(host, connection), messages)]
        case Connect(peer, address):
            return [(">", f"dial {peer or address}")]
        case Close(connection, reason):
            return [(">", f"close {_peer(host, connection)}: {reason}")]
        case Pause(connection):
            return [(">", f"pause {_peer(host, connection)}")]
        case Resume(connection):
            return [(">", f"resume {_peer(host, connection)}")]
        case Trace(kind, fields):
            return [("=", f"{kind} " + " ".join(f"{name}={value}" for name, value in fields.items()))]
        case Log(level, text, fields):
            return [
                ("=", " ".join([f"{level}: {text}", *(f"{name}={value}" for name, value in fields.items())]))
            ]
        case _:
            return [("=", _shown(effect))]


def _said(peer: str, messages: Sequence[Message]) -> list[str]:
    return [f"{peer}: {_message(message)}" for message in messages if not isinstance(message, Heartbeat)]


def _message(message: Message) -> str:
    match message:
        case Hello(node, kind, incarnation, session):
            return f"Hello({node}, {kind}, incarnation {incarnation}, session {session})"
        case Welcome(node, _, incarnation, session):
            return f"Welcome({node}, incarnation {incarnation}, session {session})"
        case Goodbye(farewell, reason):
            return f"Goodbye({farewell}: {reason})"
        case Subscribe(subscription, filter):
            return f"Subscribe({subscription}, {filter})"
        case Confirmed(subscription) | Unsubscribe(subscription) | Withdrawn(subscription):
            return f"{type(message).__name__}({subscription})"
        case Publish(batch, home):
            return f"Publish({_ids(batch.publications)}{f' for {home}' if home else ''})"
        case Publications(_, batch, at):
            return f"Publications({_ids([batch.publications[i] for i in at])})"
        case Deliveries(_, batch, at, subscriptions):
            numbers = dict.fromkeys(number for each in subscriptions for number in each)
            picked = [batch.publications[i] for i in at]
            return f"Deliveries({_ids(picked)} to {', '.join(map(str, numbers))})"
        case Accepted(upto):
            return f"Accepted({upto})"
        case _:
            return _overlay_message(message)


def _overlay_message(message: Message) -> str:
    match message:
        case Relay():
            return f"Relay({_relay(message)})"
        case DepthAck(holdings):
            return f"DepthAck({_holdings(holdings)})"
        case Lore(rows, graves):
            told = _few([_known(row) for row in rows]), _few([_grave(grave) for grave in graves], "over: ")
            return f"Lore({'; '.join(filter(None, told))})"
        case Heal(partition, rows, last):
            told = _partition(partition), _few([_known(row) for row in rows], "; ")
            return f"Heal({''.join(told)}{'' if last else ' …'})"
        case Healed(partition, partial):
            return f"Healed({_partition(partition)}{_partitions(partial)})"
        case Upgraded(subscription, cleared, partial):
            return f"Upgraded({subscription}{_partitions(cleared, 'cleared')}{_partitions(partial)})"
        case UpgradeTaken(subscription, cleared):
            return f"UpgradeTaken({subscription}{_partitions(cleared, 'cleared')})"
        case Crossed(partition) | Cleared(partition):
            return f"{type(message).__name__}({_partition(partition)})"
        case Join(node, role, beside, _, incarnation):
            return f"Join({node}, {role}, incarnation {incarnation}, beside {beside})"
        case _:
            return _shown(message)


def _relay(relay: Relay) -> str:
    parts = [f"{_ids([relay.batch.publications[i] for i in relay.at])}; {_trail(relay.trail)}"]
    numbers = dict.fromkeys(number for each in relay.subscriptions or () for number in each)
    if numbers:
        parts.append(f"to {', '.join(map(str, numbers))}")
    if relay.tags:
        parts.append(f"tagged {_few([_tag(tag) for tag in relay.tags])}")
    marks = ("again", relay.again), ("refill", relay.refill), ("returned", relay.returned)
    parts += [mark for mark, is_so in marks if is_so]
    return "; ".join(parts)


def _trail(trail: Trail) -> str:
    columns = iter(trail.numbers)
    return " ".join(_step(step, columns) for step in trail.steps) or "from here"


def _step(step: Step, columns: Iterator[Sequence[int]]) -> str:
    if step.incarnation is None:
        return f"{step.node}:⊥"
    life = "" if step.incarnation == 1 else f".{step.incarnation}"
    return f"{step.node}{life}:{_span(next(columns, ()))}"


def _span(numbers: Sequence[int]) -> str:
    if not numbers:
        return "?"
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _holdings(holdings: Sequence[Holding]) -> str:
    by_node: dict[str, list[str]] = {}
    for each in holdings:
        life = "" if each.life == 1 else f".{each.life}"
        gone = "" if each.discarded == each.arrived else f"/{each.discarded}"
        by_node.setdefault(each.node, []).append(f"{each.numbered_by}{life}:{each.arrived}{gone}")
    return _few([f"{node} has {', '.join(has)}" for node, has in by_node.items()], between="; ")


def _known(row: Known) -> str:
    return f"{row.subscription} by {' '.join(row.route)}{_partitions(row.partial)}"


def _grave(grave: Grave) -> str:
    span = f"{grave.first}" if grave.first == grave.last else f"{grave.first}-{grave.last}"
    return f"{grave.subscriber}.{grave.incarnation}#{span}"


def _partition(partition: Partition) -> str:
    return (
        f"{partition.lead}.{partition.incarnation}#{partition.number} without {' '.join(partition.fragment)}"
    )


def _partitions(partitions: Sequence[Partition], word: str = "partial") -> str:
    return _few([_partition(each) for each in partitions], f", {word}: ")


def _tag(tag: Tag) -> str:
    return f"{tag.lead}.{tag.incarnation}#{tag.number}{'|' if tag.bar else ''}"


def _ids(publications: Sequence[Publication]) -> str:
    return _few([str(publication.id) for publication in publications])


def _few(texts: Sequence[str], before: str = "", *, between: str = ", ") -> str:
    """The first of them, and how many more there are; nothing at all if there are none."""
    if not texts:
        return ""
    more = len(texts) - _SHOWN_MAX
    return before + between.join(texts[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
