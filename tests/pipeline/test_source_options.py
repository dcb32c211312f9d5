"""The options of the source: what they mean, and what is refused by name [contracts.md §7]."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from holdfast.pipeline.columns import COLUMNS, Shape, declared, spark_ddl
from holdfast.pipeline.errors import BadOption
from holdfast.pipeline.options import BATCH, STREAMING, Options, read_options
from holdfast.pipeline.origins import origins_of
from holdfast.runtime.addresses import Address
from holdfast.streams.checkpoint_token import Place, Token

LEAST = {"network": "network.toml", "stream": "orders"}
TOKEN = Token({"orders@lisbon/0": Place(1, 5)})


def read(**more: str) -> Options:
    return read_options({**LEAST, **more}, BATCH)


def test_what_is_not_said_has_its_default() -> None:
    options = read()
    assert (options.start, options.end, options.gaps) == ("earliest", "latest", "fail")
    assert options.shape.columns == tuple(name for name in COLUMNS if name != "a")
    assert read_options(LEAST, STREAMING).start == "latest"


def test_what_is_said_is_meant() -> None:
    options = read(
        ATTRIBUTES="price double, `order id` LONG",
        columns="tick, a",
        startingoffsets=str(TOKEN),
        endingTimestamp="1970-01-01T00:00:01.0000005Z",
        minPartitions="7",
        failOnDataLoss="false",
        emitSilence="true",
    )
    assert options.shape == Shape(("tick", "a"), {"price": "DOUBLE", "order id": "BIGINT"})
    assert spark_ddl(options.shape) == "`tick` BIGINT, `a` STRUCT<`price` DOUBLE, `order id` BIGINT>"
    assert (options.start, options.end) == (TOKEN, 1_000_000)  # what comes later is not before that moment
    assert (options.min_partitions, options.gaps, options.silence, options.local) == (
        7,
        "ignore",
        True,
        False,
    )
    assert read(startingTimestamp="1970-01-01T00:00:01Z").start == 999_999
    assert read(onGap="row").gaps == "row"


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("strem", "x", "option strem: is not known; did you mean stream?"),
        ("zzz", "x", "expected one of network, stream"),
        ("subscription", "x", "option subscription: is for streams, not for batches"),
        ("maxEventsPerTrigger", "5", "is for streams, not for batches"),
        ("filter", "a WHERE", "option filter: line 1, column 8"),
        ("attributes", "price", "declares no attribute; expected such as"),
        ("attributes", "price DATE", "price is DATE; expected BOOLEAN, BIGINT"),
        ("attributes", "p DOUBLE, P DOUBLE", "P is declared twice"),
        ("attributes", "p DOUBLE NOT NULL", "declares no attribute"),
        ("attributes", "p DOUBLE,", "declares no attribute"),
        ("columns", "tick,nothing", "there is no column 'nothing'"),
        ("columns", "tick,tick", "names a column twice"),
        ("columns", "a", "no attribute is declared"),
        ("startingOffsets", "now", "expected earliest, latest or a token"),
        ("endingOffsets", "earliest", "expected latest or a token"),
        ("startingTimestamp", "yesterday", "is not an RFC 3339 time"),
        ("minPartitions", "0", "expected a whole number from 1"),
        ("onGap", "cry", "expected fail or row or ignore"),
        ("emitSilence", "yes", "expected true or false"),
        ("readFrom", "disk", "expected auto or log or lake"),
        ("stream", "", "option stream: is missing"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(name: str, text: str, problem: str) -> None:
    with pytest.raises(BadOption) as refused:
        read(**{name: text})
    assert problem in str(refused.value)


def test_two_ways_to_say_one_thing_are_one_too_many() -> None:
    with pytest.raises(BadOption, match="says the same as startingOffsets"):
        read(startingOffsets="latest", startingTimestamp="1970-01-01T00:00:01Z")
    with pytest.raises(BadOption, match="another name for onGap"):
        read(onGap="row", failOnDataLoss="true")
    with pytest.raises(BadOption, match="is for batches, not for streams"):
        read_options({**LEAST, "endingOffsets": "latest"}, STREAMING)


def test_a_stream_may_be_read_as_a_subscription() -> None:
    assert read_options({**LEAST, "subscription": "lake"}, STREAMING).subscription == "lake"
    with pytest.raises(BadOption, match="option subscription: "):
        read_options({**LEAST, "subscription": ""}, STREAMING)


def test_names_of_attributes_may_be_quoted() -> None:
    assert declared("`a``b` STRING,c: BINARY") == {"a`b": "STRING", "c": "BINARY"}


NETWORK = """
name = "small"
insecure = true
[[broker]]
name = "a"
listen = "127.0.0.1:7000"
reader = "0.0.0.0:7200"
address = "a.example.org:7000"
[[broker]]
name = "b"
parent = "a"
listen = "127.0.0.1:7001"
{more}
[[stream]]
name = "orders"
topics = ["orders/#"]
[[stream]]
name = "prices"
topics = ["prices/#"]
guarantee = "best-effort"
"""


def test_where_a_stream_is_read_is_in_the_network_file(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(NETWORK.format(more='reader = "10.0.0.1:7201"'))
    places = origins_of(path, "orders", local=False).places
    assert places == {"a": Address("a.example.org", 7200), "b": Address("10.0.0.1", 7201)}
    places = origins_of(path, "orders", local=True).places
    assert places == {name: tmp_path / "data" / name / "streams" for name in ("a", "b")}
    with pytest.raises(BadOption, match=r"there is no stream order in .* expected orders, prices"):
        origins_of(path, "order", local=False)
    with pytest.raises(BadOption, match="prices is best-effort, and only durable streams are logged"):
        origins_of(path, "prices", local=False)
    path.write_text(NETWORK.format(more=""))
    with pytest.raises(BadOption, match=r"has no reader for b; expected reader = .host:port. for each"):
        origins_of(path, "orders", local=False)
    with pytest.raises(BadOption, match="'holdfast init' writes one"):
        origins_of(tmp_path / "missing.toml", "orders", local=False)
