"""What must hold between the values of a network file: one tree, one owner for every topic, name and address.

Each check looks only at values that were right by themselves, and notes what it finds as a problem of the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from holdfast.filters.topic import TopicPattern, parse_pattern
from holdfast.messages.streams import Guarantee, Order
from holdfast.runtime.addresses import Address, BadAddress, parse_address
from holdfast.runtime.network_document import Document
from holdfast.runtime.network_keys import OF_LOGS, written
from holdfast.wire.frame import FRAME_BYTES_MAX

__all__ = [
    "check_limits",
    "check_names",
    "check_policies",
    "check_streams",
    "check_timing",
    "check_tree",
    "checked_addresses",
]

#: Around the largest event there must be room for the rest of its frame.
FRAME_ROOM_BYTES: Final = 64 * 1024
_WILDCARD_HOSTS: Final = frozenset(("0.0.0.0", "::"))

Table = Mapping[str, Any]


def check_timing(document: Document, neighbours: Table) -> None:
    """Patience is longer than a heartbeat."""
    heartbeat, patience = neighbours.get("heartbeat_ms"), neighbours.get("detect_after_ms")
    if heartbeat and patience and patience <= heartbeat:
        problem = "detect_after_ms is not above heartbeat_ms, so healthy neighbours would be given up"
        document.problem(("neighbours", "detect_after_ms"), f"{problem}; expected some heartbeats' worth")


def check_limits(document: Document, limits: Table) -> None:
    """The largest event fits into a frame."""
    counted = ("topic_bytes", "attributes_bytes", "payload_bytes", "content_type_bytes", "publisher_bytes")
    largest = sum(limits.get(name, 0) for name in counted)
    most = FRAME_BYTES_MAX - FRAME_ROOM_BYTES
    if largest > most:
        problem = f"an event within these limits could have {largest:,} bytes, more than travels at once"
        document.problem(("limits",), f"{problem}; expected {' + '.join(counted)} of at most {most:,}")


def check_names(document: Document, array: str, tables: Sequence[Table], key: str = "name") -> None:
    """No two tables of an array have the same name (or what the key says)."""
    first: dict[str, int] = {}
    for i, table in enumerate(tables):
        value = table.get(key)
        if value is not None and (other := first.setdefault(value, i)) != i:
            problem = f"{key} is {written(value)}, the same as of {array} {other + 1}"
            document.problem((array, i, key), f"{problem}; expected another")


def check_tree(document: Document, brokers: Sequence[Table]) -> None:
    """One root, every parent there, nobody above itself."""
    if not brokers:
        document.problem(("broker",), "there is no broker; expected at least one [[broker]]")
    parents = {broker["name"]: broker.get("parent") for broker in brokers if "name" in broker}
    roots = [i for i, broker in enumerate(brokers) if "name" in broker and broker.get("parent", "") is None]
    for i in roots[1:]:
        problem = f"{brokers[i]['name']} has no parent, and neither has {brokers[roots[0]]['name']}"
        document.problem(("broker", i), f"{problem}; expected one root")
    for i, broker in enumerate(brokers):
        name, parent = broker.get("name"), broker.get("parent")
        if name is None or parent is None:
            continue
        problem = ""
        if parent not in parents:
            others = ", ".join(one for one in parents if one != name) or "no parent"
            problem = f"parent is {written(parent)}, which is no broker; expected {others}"
        elif _is_above_itself(name, parents):
            problem = f"{name} is above itself by way of its parent {parent}; expected a tree with one root"
        if problem:
            document.problem(("broker", i, "parent"), problem)


def _is_above_itself(name: str, parents: Mapping[str, str | None]) -> bool:
    at = parents[name]
    for _ in parents:
        if at is None or at == name:
            break
        at = parents.get(at)
    return at == name


def check_streams(document: Document, streams: Sequence[Table]) -> None:
    """A topic belongs to one stream."""
    patterns = [[parse_pattern(text) for text in stream.get("topics", ())] for stream in streams]
    for i, j in combinations(range(len(streams)), 2):
        clash = next(((a, b) for b in patterns[j] for a in patterns[i] if may_overlap(a, b)), None)
        if clash is not None:
            problem = (
                f"topics has {clash[1]}, which overlaps {clash[0]} of stream {streams[i].get('name', i + 1)}"
            )
            document.problem(("stream", j, "topics"), f"{problem}; expected every topic in one stream")


def check_policies(document: Document, streams: Sequence[Table], brokers: Sequence[Table]) -> None:
    """What a stream promises goes together."""
    names = [broker["name"] for broker in brokers if "name" in broker]
    for i, stream in enumerate(streams):
        if "guarantee" in stream and "order" in stream:
            _check_policy(document, i, stream, names)


def _check_policy(document: Document, i: int, stream: Table, brokers: Sequence[str]) -> None:
    guarantee, order = stream["guarantee"], stream["order"]
    if guarantee is not Guarantee.DURABLE:
        if order is Order.TOTAL:
            problem = f'order is "total" and guarantee "{guarantee}", which is not logged'
            document.problem(("stream", i, "order"), f'{problem}; expected guarantee = "durable"')
        for key in OF_LOGS:
            if document.says(("stream", i, key)):
                problem = f'{key} is for streams that are logged, and guarantee is "{guarantee}"'
                document.problem(("stream", i, key), f'{problem}; expected guarantee = "durable"')
        return
    sequencer = stream.get("sequencer")
    if sequencer is not None and order is not Order.TOTAL:
        problem = f'sequencer is {written(sequencer)} and order "{order}"'
        document.problem(("stream", i, "sequencer"), f'{problem}; expected order = "total"')
    elif sequencer is not None and sequencer not in brokers:
        problem = f"sequencer is {written(sequencer)}, which is no broker"
        document.problem(("stream", i, "sequencer"), f"{problem}; expected {', '.join(brokers)}")
    if order is Order.TOTAL and stream.get("pubends", 1) > 1:
        problem = f"pubends is {stream['pubends']}, and a stream in total order has one"
        document.problem(("stream", i, "pubends"), f"{problem}; expected 1")


def may_overlap(one: TopicPattern, other: TopicPattern) -> bool:
    """Whether there is a topic that both match; exact, since a level that both leave open can be anything."""
    shorter, longer = sorted((one, other), key=lambda pattern: len(pattern.levels))
    if len(shorter.levels) < len(longer.levels) and not shorter.rest:
        return False
    return all(a == b or "+" in (a, b) for a, b in zip(shorter.levels, longer.levels, strict=False))


def checked_addresses(
    document: Document, brokers: Sequence[Table], *, insecure: bool, delta: int
) -> list[dict[str, Address]]:
    """Every broker's addresses by key, each one that can be used."""
    found: list[dict[str, Address]] = []
    for i, broker in enumerate(brokers):
        of: dict[str, Address] = {}
        for key in ("listen", "address", "admin", "reader"):
            try:
                if broker.get(key) is not None:
                    of[key] = _usable(broker[key], insecure=insecure)
            except BadAddress as error:
                document.problem(("broker", i, key), f"{key} is {written(error.text)}: {error.problem}")
        found.append(of)
    _check_ports(document, brokers, found)
    _check_dialled(document, brokers, found, delta)
    return found


def _check_ports(
    document: Document, brokers: Sequence[Table], addresses: Sequence[Mapping[str, Address]]
) -> None:
    """Nobody listens where another does. Who listens on every interface is on the machine that others dial."""
    taken: dict[tuple[str, int], str] = {}
    for i, (broker, of) in enumerate(zip(brokers, addresses, strict=True)):
        for key in ("listen", "admin", "reader"):
            if key not in of:
                continue
            host = of[key].host if of[key].host not in _WILDCARD_HOSTS else of.get("address", of[key]).host
            place = ("127.0.0.1" if host.lower() == "localhost" else host, of[key].port)
            if place in taken:
                problem = f"{key} is {written(broker[key])}, which is {taken[place]}"
                document.problem(("broker", i, key), f"{problem}; expected a port of its own")
            taken.setdefault(place, f"the {key} of {broker.get('name', f'broker {i + 1}')}")


def _check_dialled(
    document: Document, brokers: Sequence[Table], addresses: Sequence[Mapping[str, Address]], delta: int
) -> None:
    """Whoever is dialled has an address for that: who has children, and where brokers are bypassed, everybody."""
    parents = {broker.get("parent") for broker in brokers}
    for i, (broker, of) in enumerate(zip(brokers, addresses, strict=True)):
        dialled, name = of.get("address", of.get("listen")), broker.get("name")
        if dialled is None or name is None or dialled.host not in _WILDCARD_HOSTS:
            continue
        if name in parents:
            problem = f"the children of {name} cannot dial {dialled}"
        elif delta and len(brokers) > 1:
            problem = f"with delta = {delta} others than its parent dial {name}, and cannot dial {dialled}"
        else:
            continue
        document.problem(("broker", i, "listen"), f'{problem}; expected address = "host:port" beside it')


def _usable(text: str, *, insecure: bool) -> Address:
    address = parse_address(text, insecure=insecure)
    if address.port == 0:
        raise BadAddress(text, "the port is 0; expected one that others can be told, from 1 to 65535")
    return address
