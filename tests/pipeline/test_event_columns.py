"""Events by columns, against each event by itself: the same values, the same bytes [contracts.md §7]."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from examples import examples
from holdfast.errors import MalformedEvent
from holdfast.events.packed import PackedEvent
from holdfast.events.value import INT_MAX, INT_MIN, Value
from holdfast.messages.publications import Publication
from holdfast.storage.records import Records
from holdfast.streams.records import record_of

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from holdfast.pipeline import dividing
from holdfast.pipeline.alike import Engine, Reading
from holdfast.pipeline.event_columns import EventColumns
from holdfast.pipeline.exact import rest_of
from holdfast.pipeline.variant import VariantEncoder, encoded

Row = dict[str, Value]
TICK = 1_767_225_600_000_000
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["x" * 31, "x" * 32, "x" * 63, "é" * 32, "x" * 255, "x" * 256, "x" * 65_536]
)
EDGES = [
    sign * (1 << bits) + more
    for bits in (5, 7, 8, 15, 16, 31, 32, 62)
    for sign in (1, -1)
    for more in (-1, 0, 1)
]
INTEGERS = st.integers(INT_MIN, INT_MAX) | st.sampled_from([*EDGES, INT_MIN, INT_MAX])
BINARY = st.binary(max_size=40) | st.sampled_from([bytes(255), bytes(256), bytes(65_536)])
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
BY_KIND: dict[type, st.SearchStrategy[Value]] = {
    bool: st.booleans(),
    int: INTEGERS,
    float: FLOATS,
    str: TEXTS,
    bytes: BINARY,
}
VALUES = st.one_of(*BY_KIND.values())
NAMES = st.sampled_from(["price", "qty", "sym", "é", "\U0001f600", "n" * 40])
ROWS = st.dictionaries(NAMES, VALUES)
KINDS: dict[str, type] = {"price": float, "qty": int, "sym": str, "é": bool, "raw": bytes}

ENGINES = dividing.engines()
with_each_engine = pytest.mark.parametrize("engine", ENGINES)


@contextmanager
def used(engine: str) -> Iterator[None]:
    """Records are read by this engine, whatever there is."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(dividing, "new_engine", ENGINES[engine])
        yield


def columns_of(ticks: Sequence[int], pieces: Sequence[Records]) -> EventColumns:
    return EventColumns(np.array(ticks, np.int64), pieces)


def packed(row: Row, **others: Any) -> PackedEvent:
    """An event has its bytes behind its other attributes, whatever their order was."""
    binary = {name: value for name, value in row.items() if isinstance(value, bytes)}
    scalars = {name: value for name, value in row.items() if not isinstance(value, bytes)}
    rest = {"topic": "t", "content_type": "", "payload": b"", "time": None, **others}
    return PackedEvent(scalars=scalars, binary=binary, **rest)


def publication_of(event: PackedEvent, n: int, publisher: str = "p") -> Publication:
    return Publication(publisher, n, msgspec.msgpack.encode(event))


@st.composite
def of_few_kinds(draw: st.DrawFn) -> list[tuple[str, int, PackedEvent]]:
    """Events as they mostly are: of a few kinds, the names of one kind in one order, the values of one type."""
    few = draw(st.lists(ROWS, min_size=1, max_size=4))
    found = []
    for _ in range(draw(st.integers(1, 30))):
        row = {name: draw(BY_KIND[type(value)]) for name, value in draw(st.sampled_from(few)).items()}
        event = packed(
            row,
            topic=draw(TEXTS),
            content_type=draw(st.sampled_from(["", "text/plain"])),
            payload=draw(BINARY),
            time=draw(st.none() | INTEGERS),
        )
        found.append((draw(TEXTS), draw(INTEGERS), event))
    return found


def rows_of(rows: list[Row]) -> list[tuple[str, int, PackedEvent]]:
    return [("p", n, packed(row)) for n, row in enumerate(rows, 1)]


def events_by(monkeypatch: pytest.MonkeyPatch, found: list[tuple[str, int, PackedEvent]]) -> EventColumns:
    """Few events are read by columns here, though that would not be worth it."""
    monkeypatch.setattr(dividing, "EVENTS_MIN", 1)
    records = [record_of(publication_of(event, n, publisher)) for publisher, n, event in found]
    return columns_of([TICK + i for i in range(len(records))], [Records.of(records)])


#: What each column has of an event, by itself.
PLAIN: dict[str, Callable[[int, Publication, PackedEvent], object]] = {
    "publisher": lambda _, publication, __: publication.publisher,
    "n": lambda _, publication, __: publication.n,
    "topic": lambda _, __, event: event.topic,
    "content_type": lambda _, __, event: event.content_type or None,
    "payload": lambda _, __, event: event.payload,
    "rest": rest_of,
}


@with_each_engine
@examples(60)
@given(of_few_kinds())
@example(rows_of([{}]))
@example(rows_of([{}, {"sym": "x"}, {}]))
@example(rows_of([{"sym": "x" * 64}, {"sym": "x"}]))
@example(rows_of([{"sym": "x" * 63, "é": "x" * 63, "qty": "x" * 63, "price": "x" * 63}] * 2))
@example(rows_of([{"sym": "x" * 63, "é": "x" * 63, "qty": "x" * 63, "price": "x" * 60}] * 2))
@example(rows_of([{"sym": "x", "qty": 1}, {"qty": 2, "sym": "y"}]))
@example(rows_of([{"raw": bytes(300)}]))
@example(rows_of([{f"a{i}": True for i in range(300)}]))
@example(rows_of([{f"a{i}": True for i in range(count)} for count in (15, 16, 17)]))
@example(rows_of([{f"a{i}": True} for i in range(dividing.KINDS_MAX + 1)]))
@example(rows_of([{"n" * 256: True}, {"n" * 255: True}, {"n" * 31: True}, {"n" * 32: True}]))
@example([("p", n, packed({"qty": n}, time=n)) for n in EDGES])
def test_the_columns_are_those_of_each_event_by_itself(
    engine: str, found: list[tuple[str, int, PackedEvent]]
) -> None:
    with used(engine), pytest.MonkeyPatch.context() as monkeypatch:
        columns = events_by(monkeypatch, found)
    publications = [publication_of(event, n, publisher) for publisher, n, event in found]
    events = [event for _, _, event in found]
    for name, of in PLAIN.items():
        assert columns.plain(name).to_pylist() == list(
            map(of, columns.ticks.tolist(), publications, events)
        ), name
    times = columns.plain("time").cast("int64").to_pylist()
    assert times == [None if event.time is None else event.time // 1_000 for event in events]
    values, metadata = columns.variants(VariantEncoder())
    made = list(zip(values.to_pylist(), metadata.to_pylist(), strict=True))
    assert made == [encoded(event.attributes) for event in events]
    for name, kind in KINDS.items():
        expected = [value if type(value := event.attributes.get(name)) is kind else None for event in events]
        assert columns.declared(name, kind).to_pylist() == expected


@with_each_engine
def test_events_of_a_few_kinds_are_not_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    rows: list[Row] = [{"price": 1.5, "sym": "x"} if i % 3 else {"price": i, "raw": b"y"} for i in range(50)]
    found = rows_of(rows)
    expected = [encoded(event.attributes) for _, _, event in found]
    monkeypatch.delattr(VariantEncoder, "encode")
    monkeypatch.setattr("holdfast.pipeline.event_columns.read_records", None)
    with used(engine):
        values, metadata = events_by(monkeypatch, found).variants(VariantEncoder())
    assert list(zip(values.to_pylist(), metadata.to_pylist(), strict=True)) == expected


class Counted:
    """An engine of which is known how often it was asked."""

    def __init__(self, engine: Engine, tries: list[int]) -> None:
        self._engine = engine
        self._tries = tries
        self.record = engine.record

    def __len__(self) -> int:
        return len(self._engine)

    def read(self, which: Any) -> Reading:
        self._tries.append(len(which))
        return self._engine.read(which)


@with_each_engine
def test_a_kind_for_each_event_is_given_up_soon(monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Each is divided from all others by its name; that would take as long as there are events."""
    found = rows_of([{f"name {i}": i} for i in range(2_000)])
    tries: list[int] = []
    new_engine = ENGINES[engine]

    def counted(pieces: Sequence[Records]) -> Engine:
        return Counted(new_engine(pieces), tries)

    monkeypatch.setattr(dividing, "new_engine", counted)
    columns = columns_of(
        range(2_000), [Records.of([record_of(publication_of(e, n, p)) for p, n, e in found])]
    )
    assert len(tries) <= dividing.TRIES_MAX
    assert columns.declared("name 7", int).to_pylist() == [7 if i == 7 else None for i in range(2_000)]


#: The event whose attribute ``i`` is 7, as others may pack it; ours is the first.
HEAD, TAIL = b"\x96\xa1t\x81", b"\x80\xa0\xc4\x00\xc0"
OWN_WAYS = {
    "as we do": HEAD + b"\xa1i\x07" + TAIL,
    "a long number": HEAD + b"\xa1i\xcc\x07" + TAIL,
    "a longer one": HEAD + b"\xa1i\xd3" + (7).to_bytes(8, "big") + TAIL,
    "a long name": HEAD + b"\xd9\x01i\x07" + TAIL,
    "a long topic": b"\x96\xd9\x01t\x81\xa1i\x07" + TAIL,
    "a long map": b"\x96\xa1t\xde\x00\x01\xa1i\x07" + TAIL,
    "a longer map": b"\x96\xa1t\xdf\x00\x00\x00\x01\xa1i\x07" + TAIL,
    "a long array": b"\xdc\x00\x06\xa1t\x81\xa1i\x07" + TAIL,
    "twice": b"\x96\xa1t\x82\xa1i\x06\xa1i\x07" + TAIL,
    "a long payload": HEAD + b"\xa1i\x07\x80\xa0\xc5\x00\x00\xc0",
}


@pytest.mark.parametrize("way", OWN_WAYS)
@pytest.mark.parametrize("beside", [0, 1, 40])
@with_each_engine
def test_an_event_may_be_packed_in_ones_own_way(way: str, beside: int, engine: str) -> None:
    """It is read, and its rest has its very bytes; those beside it are what they are."""
    own = Publication("p", 1, OWN_WAYS[way])
    events = [own, *[publication_of(packed({"i": n}), n) for n in range(beside)]]
    records = [record_of(event) for event in events]
    with used(engine):
        columns = columns_of(range(len(events)), [Records.of(records[:5]), Records.of(records[5:])])
    assert columns.declared("i", int).to_pylist() == [7, *range(beside)]
    rest = columns.plain("rest").to_pylist()
    assert rest[0][6:] == (b"" if way == "as we do" else own.event)
    assert all(len(each) == 6 for each in rest[1:])


FLOAT_32 = HEAD + b"\xa1i\xca\x3f\x80\x00\x00" + TAIL


@with_each_engine
def test_a_short_float_is_a_float(engine: str) -> None:
    records = [record_of(Publication("p", n, FLOAT_32)) for n in range(3)]
    with used(engine):
        columns = columns_of(range(3), [Records.of(records)])
    assert columns.declared("i", float).to_pylist() == [1.0] * 3


GOOD = record_of(publication_of(packed({"i": 1, "s": "x"}, payload=b"payload", time=5), 1))


@pytest.mark.parametrize("beside", [0, 40])
@with_each_engine
def test_whatever_is_cut_off_or_changed_is_malformed_or_read_as_by_itself(beside: int, engine: str) -> None:
    """Every byte of a record, changed to many others, and every shorter record: nothing is read beyond it."""
    damaged = [GOOD[:size] for size in range(len(GOOD))]
    damaged += [GOOD[:i] + bytes([b]) + GOOD[i + 1 :] for i in range(len(GOOD)) for b in range(0, 256, 3)]
    damaged += [GOOD[:i] + bytes([b]) + GOOD[i + 1 :] for i in range(len(GOOD)) for b in range(0xC0, 0xE0)]
    for record in {*damaged, GOOD + b"\0"}:
        records = [record, *[GOOD] * beside]
        with used(engine):
            check_first(records, beside)


def check_first(records: list[bytes], beside: int) -> None:
    """The first record is read as by itself, or refused; those beside it are what they are."""
    try:
        publication = msgspec.msgpack.decode(records[0], type=Publication)
        event = msgspec.msgpack.decode(publication.event, type=PackedEvent)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError, MalformedEvent)):
            columns_of(range(len(records)), [Records.of(records)])
        return
    columns = columns_of(range(len(records)), [Records.of(records)])
    assert columns.plain("topic")[0].as_py() == event.topic
    assert columns.plain("payload")[0].as_py() == event.payload
    assert columns.plain("n")[0].as_py() == publication.n
    values, _ = columns.variants(VariantEncoder())
    assert values[0].as_py() == encoded(event.attributes).value
    assert columns.plain("topic").to_pylist()[1:] == ["t"] * beside


#: Bytes that stand for a text, and are none: too short, too long, surrogates, beyond the last character.
NO_TEXTS = [
    *(
        b"\x80",
        b"\xbf",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xc3",
        b"\xc3(",
        b"\xe0\x9f\xbf",
        b"\xe2\x82",
        b"\xe2(\xa1",
    ),
    *(
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x8f\xbf\xbf",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
    ),
    *(b"\xff", b"12345678\x80", b"1234567\xc3", b"\xc3\xa9\xc3"),
]


@pytest.mark.parametrize("place", ["publisher", "topic", "name", "value", "content type"])
@with_each_engine
def test_a_text_that_is_none_is_malformed(place: str, engine: str) -> None:
    """Alone or beside others, wherever it stands."""
    texts = dict.fromkeys(("publisher", "topic", "name", "value", "content type"), b"t")
    for text in NO_TEXTS:
        parts = {each: bytes([0xA0 + len(it)]) + it for each, it in {**texts, place: text}.items()}
        packed_event = b"\x96%b\x81%b%b\x80%b\xc4\x00\xc0" % tuple(list(parts.values())[1:])
        record = b"\x93" + parts["publisher"] + b"\x01\xc4" + bytes([len(packed_event)]) + packed_event
        for records in ([record], [record] * 40, [record, *[GOOD] * 40], [*[GOOD] * 40, record]):
            with used(engine), pytest.raises((msgspec.MsgspecError, UnicodeDecodeError, MalformedEvent)):
                columns_of(range(len(records)), [Records.of(records)])


@with_each_engine
@examples(200)
@given(st.binary(max_size=12))
def test_any_bytes_are_a_text_just_where_python_says_so(engine: str, text: bytes) -> None:
    event = b"\x96" + bytes([0xA0 + len(text)]) + text + b"\x80\x80\xa0\xc4\x00\xc0"
    record = b"\x93\xa1p\x01\xc4" + bytes([len(event)]) + event
    try:
        expected = text.decode()
    except UnicodeDecodeError:
        with used(engine), pytest.raises(MalformedEvent):
            columns_of([1], [Records.of([record])])
    else:
        with used(engine):
            assert columns_of([1], [Records.of([record])]).plain("topic").to_pylist() == [expected]


@pytest.mark.skipif("compiled" not in ENGINES, reason="no C compiler was found")
def test_columns_outlive_what_they_were_read_from() -> None:
    """The compiled engine knows parts of records by their addresses: memory must not go while it does."""
    records = [record_of(publication_of(packed({"sym": f"s{i}"}, payload=bytes(1000)), i)) for i in range(50)]
    pieces = [Records.of(records[:25]), Records.of(records[25:])]
    with used("compiled"):
        columns = columns_of(range(50), pieces)
    del records, pieces
    gc.collect()
    filler = [bytes([255]) * 2_000 for _ in range(1_000)]
    assert columns.declared("sym", str).to_pylist() == [f"s{i}" for i in range(50)]
    assert columns.plain("n").to_pylist() == list(range(50)), len(filler)


@with_each_engine
@pytest.mark.parametrize("odd", [0, 1], ids=["alike", "one of them is not"])
def test_what_was_read_goes_at_once_and_not_when_garbage_is_collected(odd: int, engine: str) -> None:
    records = [record_of(publication_of(packed({"qty": n}, time=n), n)) for n in range(40)]
    records[:odd] = [record_of(publication_of(packed({"price": 1.0}), 0))] * odd
    joined = Records.of(records)
    content = memoryview(joined.content)
    gone = weakref.ref(content)
    gc.disable()
    try:
        with used(engine):
            columns = columns_of(range(40), [Records(content, joined.lengths)])
            for name in (*PLAIN, "time"):
                columns.plain(name)
            columns.variants(VariantEncoder())
            columns.declared("qty", int)
        assert gone() is not None
        del columns, content
        assert gone() is None
    finally:
        gc.enable()
