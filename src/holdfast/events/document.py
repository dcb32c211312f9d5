"""XML payloads: read once into flat columns that matching can run over.

lxml only parses. The tree it makes is copied into columns indexed by *element number*, the position of the
start tag in the document: a parent comes before its children, and the descendants of ``n`` are exactly the
numbers from ``n + 1`` up to ``ends[n]``. Matching an event is then a loop over integers, with no call into
libxml2 and no object per element; ``Element`` is a view for those who would rather walk a tree.

Text follows the data model of XPath 1.0: CDATA is text, a comment or a processing instruction separates two text
nodes, and the string-value of an element is all text below it. All text nodes of the document stand in one list,
``pieces``, in document order, and an element's string-value is a range of it. It is not kept once made: in a deep
document the string-values of the ancestors would together be as large as text times depth.

A payload comes from a stranger. No entity may be declared, so there is nothing to expand and nothing to fetch;
a DOCTYPE may name an external DTD, which is never opened, and attributes that a DTD gives by default are not added.
Nothing but ``InvalidDocument`` is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lxml import etree

from holdfast.errors import InvalidDocument

__all__ = ["Document", "DocumentLimits", "Element", "is_xml", "parse_document"]


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What a document may be at most. libxml2 itself reads no more than 256 levels, whatever ``depth`` says."""

    bytes: int = 4 * 1024 * 1024
    depth: int = 256
    elements: int = 100_000


DEFAULT_LIMITS: Final = DocumentLimits()

# Shared by all elements that have none; never changed.
_NO_ATTRIBUTES: Final[dict[str, str]] = {}
_NO_TEXTS: Final[list[str]] = []

# collect_ids=False would be faster still, but with it libxml2 opens the external DTD although load_dtd is off.
_PARSER: Final[Any] = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    dtd_validation=False,
    huge_tree=False,
    recover=False,
)
_RESOURCE_LIMIT: Final = 114  # XML_ERR_RESOURCE_LIMIT
_UNDECLARED_ENTITY: Final = 27  # XML_WAR_UNDECLARED_ENTITY
_WARNINGS_MAX: Final = 100  # libxml2 reports no warning after this many (XML_MAX_ERRORS)


class Document:
    """The columns, by element number; see the module. Read them, never change them."""

    __slots__ = ("attributes", "ends", "names", "parents", "piece_ends", "piece_starts", "pieces", "texts")

    def __init__(self) -> None:
        #: ``name`` for an element in no namespace, ``{namespace}name`` for others
        self.names: list[str] = []
        #: number of the parent; -1 for the root element
        self.parents: list[int] = []
        #: one past the last descendant
        self.ends: list[int] = []
        self.attributes: list[dict[str, str]] = []
        #: an element's own text nodes, none of them empty
        self.texts: list[list[str]] = []
        #: every text node in document order; those below element n: ``pieces[piece_starts[n]:piece_ends[n]]``
        self.pieces: list[str] = []
        self.piece_starts: list[int] = []
        self.piece_ends: list[int] = []

    def __len__(self) -> int:
        return len(self.names)

    @property
    def root(self) -> Element:
        """The root element."""
        return Element(self, 0)

    def string_value(self, number: int) -> str:
        """All text below the element, as XPath's ``string()`` has it."""
        start, end = self.piece_starts[number], self.piece_ends[number]
        return self.pieces[start] if end - start == 1 else "".join(self.pieces[start:end])


@dataclass(frozen=True, slots=True)
class Element:
    """A view of one element of a document."""

    document: Document
    number: int

    @property
    def name(self) -> str:
        """``name``, or ``{namespace}name``."""
        return self.document.names[self.number]

    @property
    def attributes(self) -> dict[str, str]:
        """Values by name; namespace declarations are no attributes."""
        return self.document.attributes[self.number]

    @property
    def texts(self) -> list[str]:
        """The element's own text nodes."""
        return self.document.texts[self.number]

    @property
    def string_value(self) -> str:
        """All text below the element."""
        return self.document.string_value(self.number)

    @property
    def children(self) -> Iterator[Element]:
        """The child elements, in order."""
        number, end, ends = self.number + 1, self.document.ends[self.number], self.document.ends
        while number < end:
            yield Element(self.document, number)
            number = ends[number]


def is_xml(content_type: str) -> bool:
    """Whether a content type announces XML: ``application/xml``, ``text/xml`` or ``…/…+xml``."""
    kind, slash, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    if not (kind and slash) or "/" in subtype:
        return False
    if subtype == "xml":
        return kind in ("application", "text")
    return subtype.endswith("+xml") and subtype != "+xml"


def parse_document(payload: bytes, limits: DocumentLimits = DEFAULT_LIMITS) -> Document:
    """Read a payload.

    :raises InvalidDocument: if it is not well-formed XML, declares or leaves open an entity, or breaks a limit;
        ``limit`` then is ``bytes``, ``depth``, ``elements`` or ``entities``.
    """
    if len(payload) > limits.bytes:
        raise InvalidDocument(f"{len(payload)} bytes, at most {limits.bytes} are read", limit="bytes")
    try:
        root = etree.fromstring(payload, _PARSER)
    except etree.XMLSyntaxError as error:
        raise _refusal(error, limits) from None
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None:
        _refuse_entities(dtd)
    return _columns(root, limits)


def _refusal(error: Any, limits: DocumentLimits) -> InvalidDocument:
    """The parser's complaint in our words; its own limits on depth and expansion have the names of ours."""
    message = " ".join(str(error.msg).split())
    if error.code == _RESOURCE_LIMIT and "depth" in message:
        return InvalidDocument(f"elements nested deeper than {limits.depth}", limit="depth")
    if error.code == _RESOURCE_LIMIT and "amplification" in message:
        return InvalidDocument("entities or default attributes that expand without bound", limit="entities")
    return InvalidDocument(f"not well-formed: {message}")


def _refuse_entities(dtd: Any) -> None:
    for entity in dtd.iterentities():
        raise InvalidDocument(f"entity '{entity.name}' is declared; no entity may be", limit="entities")
    # Where an external DTD might declare it, an undeclared entity is only a warning, and the reference vanishes
    # from an attribute's value. So it does when the warning itself was suppressed.
    warnings = _PARSER.error_log
    if len(warnings) >= _WARNINGS_MAX or any(warning.type == _UNDECLARED_ENTITY for warning in warnings):
        raise InvalidDocument("a reference to an entity that is not declared", limit="entities")


def _columns(root: Any, limits: DocumentLimits) -> Document:
    """Copy lxml's tree, in one pass over its nodes in document order.

    The number of child nodes, comments included, tells when an element ends: ``begun`` holds the elements that
    have not ended yet, ``left`` how many child nodes each still waits for, ``tails`` the text after its end tag.
    """
    document = Document()
    names, parents, ends = document.names, document.parents, document.ends
    attributes, texts, pieces = document.attributes, document.texts, document.pieces
    piece_starts, piece_ends = document.piece_starts, document.piece_ends
    begun: list[int] = []
    left: list[int] = []
    tails: list[str | None] = []
    for node in root.iter():
        name = node.tag
        if name.__class__ is str:
            number = len(names)
            if number >= limits.elements:
                raise InvalidDocument(f"more than {limits.elements} elements", limit="elements")
            if len(begun) >= limits.depth:
                raise InvalidDocument(f"elements nested deeper than {limits.depth}", limit="depth")
            names.append(name)
            parents.append(begun[-1] if begun else -1)
            ends.append(number + 1)
            items = node.items()
            attributes.append(dict(items) if items else _NO_ATTRIBUTES)
            piece_starts.append(len(pieces))
            text = node.text
            if text:
                texts.append([text])
                pieces.append(text)
            else:
                texts.append(_NO_TEXTS)
            piece_ends.append(len(pieces))
            children = len(node)
            if children:
                begun.append(number)
                left.append(children)
                tails.append(node.tail)
                continue
        elif name is etree.Entity:
            raise InvalidDocument(f"a reference to the entity '{node.name}'", limit="entities")
        # The node has ended. The text after it belongs to the element around it, which may end here too.
        tail = node.tail
        while begun:
            parent = begun[-1]
            if tail:
                pieces.append(tail)
                if texts[parent]:
                    texts[parent].append(tail)
                else:
                    texts[parent] = [tail]
            left[-1] -= 1
            if left[-1]:
                break
            ends[parent] = len(names)
            piece_ends[parent] = len(pieces)
            begun.pop()
            left.pop()
            tail = tails.pop()
    return document
