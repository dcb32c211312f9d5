"""The bytes of an event out of its row: those that were logged, or none (issue 6, part 5)."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

np = pytest.importorskip("numpy", reason="numpy is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from examples import examples
from holdfast.events.event import Event
from holdfast.events.packed import PackedEvent, pack, unpack
from holdfast.messages.publications import Publication
from holdfast.pipeline.columns import table_shape
from holdfast.pipeline.event_columns import EventColumns
from holdfast.pipeline.exact import NotExact, publication_of, rest_of
from holdfast.pipeline.rows import RowBuilder
from holdfast.pipeline.variant_reading import VariantReader
from holdfast.storage.records import Records
from holdfast.streams.records import record_of
from strategies import events

TICK = 1_794_796_159_317_585
TIMES = st.none() | st.integers(-(2**62), 2**62)


def through_a_row(publication: Publication, **changes: object) -> Publication:
    """As a table has it and gives it back, some of its columns changed."""
    builder = RowBuilder(table_shape({}), "s", "s@b/0", 1)
    builder.add_events(TICK - 1, EventColumns(np.array([TICK]), [Records.of([record_of(publication)])]))
    [batch] = builder.batches()
    columns = {name: batch.column(name) for name in batch.schema.names}
    columns["time"] = columns["time"].cast("int64")
    row = {name: column.to_pylist()[0] for name, column in columns.items()} | changes
    attributes = VariantReader().attributes(row["attributes"]["value"], row["attributes"]["metadata"])
    return publication_of(
        row["tick"],
        row["publisher"],
        row["n"],
        row["topic"],
        attributes,
        row["content_type"] or "",
        row["payload"],
        row["time"],
        row["rest"],
    )


@examples(300)
@given(events(), TIMES, st.randoms(use_true_random=False))
def test_every_byte_comes_back(event: Event, time: int | None, random: Random) -> None:
    names = list(event.attributes)
    random.shuffle(names)
    event = replace(event, time=time, attributes={name: event.attributes[name] for name in names})
    publication = Publication("p", 7, pack(event))
    assert through_a_row(publication) == publication
    rest = rest_of(TICK, publication, unpack(publication.event))
    assert len(rest) == 6, "nothing is kept twice"


def test_whoever_packs_in_his_own_way_gets_his_own_bytes() -> None:
    """An int of one byte in nine: the same event, other bytes."""
    whole = msgspec.msgpack.encode(PackedEvent("a", {"i": 2**40}, {}, "", b"x", None))
    odd = whole.replace((2**40).to_bytes(8, "big"), (5).to_bytes(8, "big"))
    assert unpack(odd) == PackedEvent("a", {"i": 5}, {}, "", b"x", None)
    publication = Publication("p", 1, odd)
    assert publication.event != pack(unpack(odd).event("p", 1))
    assert through_a_row(publication) == publication


@pytest.mark.parametrize(
    "changes",
    [
        {"tick": TICK + 1},
        {"n": 8},
        {"publisher": "q"},
        {"topic": "b"},
        {"payload": b"y"},
        {"content_type": "text/plain"},
        {"time": 1},
        {"rest": b"\0\0\0\0\0\0"},
        {"rest": b""},
    ],
)
def test_a_row_that_was_changed_is_refused(changes: dict[str, object]) -> None:
    publication = Publication("p", 7, msgspec.msgpack.encode(PackedEvent("a", {"i": 1}, {}, "", b"x", 5_000)))
    assert through_a_row(publication) == publication
    with pytest.raises(NotExact):
        through_a_row(publication, **changes)
