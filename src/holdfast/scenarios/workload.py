"""What a Publish command publishes: drawn from a generator of its own, so that it is the same in both worlds.

The generator is seeded by the text of (Seed, publisher, line), which ``random.Random`` turns into its state by SHA-512:
the same on every machine and under every hash seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from holdfast.events.value import Value, canonical_text
from holdfast.scenarios.commands import Publish

__all__ = ["Drawn", "draws"]

_BYTES_TYPE: Final = "application/octet-stream"
_XML_TYPE: Final = "application/xml"
_ELEMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACEMENT: Final = "\ufffd"
_ITEMS_MAX: Final = 3
_QUANTITY_MAX: Final = 9
_STOCK: Final = ("anchor", "bell", "compass", "rope")


class Drawn(NamedTuple):
    """One event, but for its topic and its number."""

    attributes: dict[str, Value]
    payload: bytes
    content_type: str


def draws(publish: Publish, seed: int) -> Iterator[Drawn]:
    """The events of one Publish command, ``count`` of them, in order."""
    random = Random(f"{seed} {publish.publisher} {publish.line}")
    for _ in range(publish.count):
        attributes = {name: given.draw(random) for name, given in publish.attributes}
        if publish.payload is None:
            yield Drawn(attributes, b"", "")
        elif publish.payload == "xml":
            yield Drawn(attributes, _document(attributes, random), _XML_TYPE)
        else:
            yield Drawn(attributes, random.randbytes(publish.payload), _BYTES_TYPE)


def _document(attributes: Mapping[str, Value], random: Random) -> bytes:
    """The attributes as elements, and a list of items, so that XPATH has depth, repetition and numbers to ask for.

    ::

        <event><price>101.5</price><items total="2"><item name="rope" quantity="3"><price>7</price></item>…
    """
    items = [_item(random) for _ in range(random.randint(1, _ITEMS_MAX))]
    parts = [*(_element(name, value) for name, value in attributes.items())]
    parts.append(f'<items total="{len(items)}">{"".join(items)}</items>')
    return f"<event>{''.join(parts)}</event>".encode()


def _element(name: str, value: Value) -> str:
    assert not isinstance(value, bytes), "scenarios draw no bytes"
    text = escape(_NOT_XML.sub(_REPLACEMENT, canonical_text(value)))
    if _ELEMENT_NAME.match(name):
        return f"<{name}>{text}</{name}>"
    return f"<attribute name={quoteattr(_NOT_XML.sub(_REPLACEMENT, name))}>{text}</attribute>"


def _item(random: Random) -> str:
    name = _STOCK[random.randrange(len(_STOCK))]
    quantity, price = random.randint(1, _QUANTITY_MAX), random.randint(1, 100)
    return f'<item name="{name}" quantity="{quantity}"><price>{price}</price></item>'
