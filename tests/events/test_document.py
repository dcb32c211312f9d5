from __future__ import annotations

import pathlib
import resource
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from holdfast.errors import InvalidDocument
from holdfast.events.document import Document, DocumentLimits, is_xml, parse_document


@pytest.mark.parametrize(
    "content_type",
    [
        "application/xml",
        "text/xml",
        "Text/XML; charset=utf-8",
        "image/svg+xml",
        "application/atom+XML ;a=b",
        "a/b+xml",
    ],
)
def test_xml_content_types(content_type: str) -> None:
    assert is_xml(content_type)


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "xml",
        "image/xml",
        "text/plain",
        "application/xml+json",
        "/xml",
        "application/",
        "a/+xml",
        "a/b/c+xml",
        "application/json; x=application/xml",
        "text/xmlx",
        "application/xhtml",
    ],
)
def test_other_content_types_are_not_xml(content_type: str) -> None:
    assert not is_xml(content_type)


# The data model


def test_names_carry_their_namespace_and_only_theirs() -> None:
    document = parse_document(b'<a xmlns:n="urn:n"><n:b n:x="1" x="2"/><c xmlns="urn:d"/></a>')
    assert document.names == ["a", "{urn:n}b", "{urn:d}c"]
    assert document.attributes == [{}, {"{urn:n}x": "1", "x": "2"}, {}]


def test_text_nodes_are_those_of_xpath() -> None:
    document = parse_document(
        b"<a>one<!--c-->two<?pi?>three<b>in<![CDATA[n<er]]></b>&#52;&amp;<![CDATA[]]><b/></a>"
    )
    assert document.texts == [["one", "two", "three", "4&"], ["inn<er"], []]
    assert document.pieces == ["one", "two", "three", "inn<er", "4&"]
    assert [document.string_value(n) for n in range(3)] == ["onetwothreeinn<er4&", "inn<er", ""]


def test_an_element_view_walks_the_tree() -> None:
    root = parse_document(b"<a><b x='1'>t<c/></b><!-- no child --><d>u</d></a>").root
    assert [child.name for child in root.children] == ["b", "d"]
    first = next(root.children)
    assert (first.attributes, first.texts, [child.name for child in first.children]) == (
        {"x": "1"},
        ["t"],
        ["c"],
    )
    assert root.string_value == "tu"


@pytest.mark.parametrize(
    "payload",
    [
        "<?xml version='1.0' encoding='UTF-16'?><a>é€</a>".encode("utf-16"),
        "<a>é€</a>".encode("utf-16"),
        "<?xml version='1.0'?><a>é€</a>".encode("utf-16-le"),
        "<?xml version='1.0'?><a>é€</a>".encode("utf-16-be"),
        "<a>é€</a>".encode("utf-8-sig"),
        "<?xml version='1.0' encoding='ISO-8859-1'?><a>é&#x20ac;</a>".encode("latin-1"),
    ],
)
def test_encodings_are_recognised(payload: bytes) -> None:
    assert parse_document(payload).texts == [["é€"]]


@st.composite
def content(draw: st.DrawFn, depth: int = 3) -> str:
    parts = [""]
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from("tcpe" if depth else "tcp"))
        if kind == "e":
            name = draw(st.sampled_from(["a", "b", "n:b"]))
            parts.append(
                f"<{name} x='{draw(st.sampled_from(['', '1']))}'>{draw(content(depth - 1))}</{name}>"
            )
        else:
            parts.append({"t": "t&lt;", "c": "<!--c-->", "p": "<![CDATA[d]]>"}[kind])
    return "".join(parts)


@given(content())
def test_the_columns_say_what_lxml_says(inside: str) -> None:
    payload = f"<r xmlns:n='urn:n'>{inside}</r>".encode()
    document, elements = parse_document(payload), list(etree.fromstring(payload).iter(etree.Element))
    assert document.names == [element.tag for element in elements]
    assert document.parents == [
        elements.index(e.getparent()) if e.getparent() is not None else -1 for e in elements
    ]
    assert document.ends == [i + len(list(e.iter(etree.Element))) for i, e in enumerate(elements)]
    assert document.attributes == [dict(element.attrib) for element in elements]
    assert document.texts == [element.xpath("text()") for element in elements]
    assert [document.string_value(n) for n in range(len(elements))] == [e.xpath("string()") for e in elements]


# Limits


def refused(payload: bytes, limits: DocumentLimits | None = None) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as caught:
        parse_document(payload, limits or DocumentLimits())
    return caught.value


def nested(depth: int) -> bytes:
    return b"<a>" * depth + b"</a>" * depth


def test_depth_is_limited_exactly() -> None:
    assert len(parse_document(nested(256))) == 256
    assert refused(nested(257)).limit == "depth"
    assert len(parse_document(nested(9), DocumentLimits(depth=9))) == 9
    assert refused(nested(10), DocumentLimits(depth=9)).limit == "depth"


def test_the_number_of_elements_is_limited_exactly() -> None:
    limits = DocumentLimits(elements=5)
    assert len(parse_document(b"<a>" + b"<!-- no element --><b/>" * 4 + b"</a>", limits)) == 5
    assert refused(b"<a>" + b"<b/>" * 5 + b"</a>", limits).limit == "elements"


def test_the_size_is_limited_exactly() -> None:
    assert len(parse_document(b"<abcd/>", DocumentLimits(bytes=7))) == 1
    assert refused(b"<abcd/>", DocumentLimits(bytes=6)).limit == "bytes"


def test_ten_thousand_levels_are_refused_without_reading_on() -> None:
    started = time.process_time()
    assert refused(nested(10_000)).limit == "depth"
    assert time.process_time() - started < 0.5


# Entities and strangers' files

BOMB = b"<!DOCTYPE a [<!ENTITY e0 'lol'>" + b"".join(
    b"<!ENTITY e%d '%s'>" % (i, b"&e%d;" % (i - 1) * 10) for i in range(1, 10)
)
PARAMETER_BOMB = b"<!DOCTYPE a [<!ENTITY % e0 '<!--lol-->'>" + b"".join(
    b"<!ENTITY %% e%d '%s'>" % (i, b"&#37;e%d;" % (i - 1) * 10) for i in range(1, 10)
)
LONG = b"x" * 50_000


@pytest.mark.parametrize(
    "payload",
    [
        BOMB + b"]><a>&e9;</a>",
        BOMB + b"]><a b='&e9;'/>",
        BOMB + b"<!ATTLIST a b CDATA '&e9;'>]><a/>",
        BOMB + b"]><a/>",
        PARAMETER_BOMB + b"%e9;]><a/>",
        b"<!DOCTYPE a [<!ENTITY e '" + LONG + b"'>]><a>" + b"&e;" * 50_000 + b"</a>",
        b"<!DOCTYPE a [<!ENTITY e '" + LONG + b"'>]><a b='" + b"&e;" * 50_000 + b"'/>",
        b"<!DOCTYPE a [<!ATTLIST b c CDATA '" + LONG * 20 + b"'>]><a>" + b"<b/>" * 90_000 + b"</a>",
        (BOMB + b"]><a>&e9;</a>").decode().encode("utf-16"),
    ],
)
def test_bombs_are_refused_quickly_and_in_little_memory(payload: bytes) -> None:
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    assert refused(payload).limit == "entities"
    assert time.process_time() - started < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB


@pytest.mark.parametrize(
    "payload",
    [
        b"<!DOCTYPE a [<!ENTITY harmless 'x'>]><a/>",
        b"<!DOCTYPE a [<!ENTITY lt '&#38;#60;'>]><a>&lt;</a>",
        b"<!DOCTYPE a [<!ENTITY % p 'x'>]><a/>",
        b"<!DOCTYPE a [<!NOTATION n SYSTEM 'n'><!ENTITY u SYSTEM 'u' NDATA n>]><a/>",
        b"<!DOCTYPE a [%undeclared;]><a/>",
        b"<!DOCTYPE a SYSTEM 'a.dtd'><a>&open;</a>",
        b"<!DOCTYPE a SYSTEM 'a.dtd'><a b='x&open;'/>",
        b"<!DOCTYPE a SYSTEM 'a.dtd'><a>" + b"<b xmlns='relative'/>" * 200 + b"<b c='x&open;'/></a>",
    ],
)
def test_declared_and_unresolved_entities_are_refused(payload: bytes) -> None:
    assert refused(payload).limit == "entities"


def test_a_doctype_without_entities_is_allowed() -> None:
    declarations = b"<!ELEMENT a ANY><!ATTLIST a b CDATA 'default'>"
    payload = b"<!DOCTYPE a PUBLIC '-//X//Y' 'a.dtd' [" + declarations + b"]><a c='1'>&amp;</a>"
    assert parse_document(payload).attributes == [{"c": "1"}]


@pytest.fixture
def external(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file next door."""
    return tmp_path / "external"


def test_an_external_dtd_is_never_read(external: pathlib.Path) -> None:
    external.write_text("<!ATTLIST is not finished")
    payload = f"<!DOCTYPE a SYSTEM '{external.as_uri()}'><a/>".encode()
    with pytest.raises(etree.XMLSyntaxError, match="ATTLIST"):  # who reads it stumbles
        etree.fromstring(payload, etree.XMLParser(load_dtd=True))
    assert parse_document(payload).names == ["a"]


def test_an_entity_of_an_external_dtd_stays_unknown(external: pathlib.Path) -> None:
    external.write_text("<!ENTITY inside 'read from disk'>")
    payload = f"<!DOCTYPE a SYSTEM '{external.as_uri()}'><a>&inside;</a>".encode()
    trusting = etree.XMLParser(load_dtd=True, resolve_entities=True)
    assert etree.fromstring(payload, trusting).text == "read from disk", "the file can be read"
    assert refused(payload).limit == "entities"


def test_an_external_entity_is_never_read(external: pathlib.Path) -> None:
    external.write_text("read from disk")
    payload = f"<!DOCTYPE a [<!ENTITY file SYSTEM '{external.as_uri()}'>]><a>&file;</a>".encode()
    trusting = etree.XMLParser(resolve_entities=True)
    assert etree.fromstring(payload, trusting).text == "read from disk", "the file can be read"
    assert "read from disk" not in str(refused(payload))
    assert (
        refused(payload.replace(b"ENTITY file", b"ENTITY % file").replace(b"]>", b" %file;]>")).limit
        == "entities"
    )


def test_xinclude_and_catalogs_are_left_alone(external: pathlib.Path) -> None:
    external.write_text("read from disk")
    uri = external.as_uri()
    include = f"<a xmlns:x='http://www.w3.org/2001/XInclude'><x:include href='{uri}' parse='text'/></a>"
    assert parse_document(include.encode()).pieces == []
    catalog = f"<?oasis-xml-catalog catalog='{uri}'?><!DOCTYPE a SYSTEM 'b.dtd'><a/>"
    assert len(parse_document(catalog.encode())) == 1


def test_nothing_is_fetched_from_the_network() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/a"
        parse_document(f"<!DOCTYPE a SYSTEM '{url}.dtd'><a/>".encode())
        refused(f"<!DOCTYPE a [<!ENTITY e SYSTEM '{url}'>]><a>&e;</a>".encode())
        refused(f"<!DOCTYPE a [<!ENTITY % e SYSTEM '{url}'>%e;]><a/>".encode())
        with pytest.raises(BlockingIOError):
            server.accept()


# Nothing else escapes


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b" ",
        b"\0",
        b"<a",
        b"<a>",
        b"<a></b>",
        b"<a/><b/>",
        b"<a>\xff</a>",
        b"<p:a/>",
        b"<a>&open;</a>",
        b"<a>\0</a>",
        b"<?xml version='1.0' encoding='no such'?><a/>",
        b"<a b='1' b='2'/>",
        b"<" + b"n" * 60_000 + b"/>",
        b"not xml",
    ],
)
def test_what_is_not_well_formed_is_refused_with_a_reason(payload: bytes) -> None:
    error = refused(payload)
    assert error.limit is None
    assert error.problem.startswith("not well-formed: ")
    assert "line 1" in error.problem


def parsed_or_refused(payload: bytes) -> Document | None:
    try:
        return parse_document(payload)
    except InvalidDocument:
        return None


@given(st.binary(max_size=200))
def test_random_bytes_are_parsed_or_refused(payload: bytes) -> None:
    parsed_or_refused(payload)


SEEDS = [
    b"<?xml version='1.0' encoding='utf-8'?><a x='1'><b>t&#65;&amp;</b><!--c--><?p i?><![CDATA[d]]></a>",
    b"<!DOCTYPE a SYSTEM 's' [<!ELEMENT a ANY><!ATTLIST a b CDATA 'd'><!ENTITY e 'v'>]><a c='&e;'>&e;</a>",
    "<?xml version='1.0' encoding='utf-16'?><a xmlns:n='u'><n:b n:c=''/></a>".encode("utf-16"),
]


@given(st.sampled_from(SEEDS), st.data())
def test_mutated_documents_are_parsed_or_refused(seed: bytes, data: st.DataObject) -> None:
    payload = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        end = data.draw(st.integers(at, min(len(payload), at + 8)))
        payload[at:end] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"<", b"&e;", b"]>", b"<a>", b"%e;", b"'"])
        )
        payload = payload or bytearray(seed)
    document = parsed_or_refused(bytes(payload))
    if document is not None:
        assert len(document.names) == len(document.parents) == len(document.ends) == len(document.texts)
        assert document.ends[0] == len(document)
