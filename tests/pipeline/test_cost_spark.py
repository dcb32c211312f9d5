"""Both engines count the same, of files, of folders and of a network's log readers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from costed import by_hand, drawn, put_lines
from hand_written import STREAM, HandWritten

from holdfast.events.event import Event
from holdfast.filters.text import filter_text
from holdfast.pipeline.cost.engine import tally_history
from holdfast.pipeline.cost.history import stretches_of
from holdfast.pipeline.cost.spark import tally_in
from holdfast.pipeline.cost.stretches import BadLine, RemoteTicks, line_stretches
from holdfast.pipeline.cost.tally import added
from holdfast.pipeline.errors import CannotRead
from holdfast.pipeline.ranges import Ranges
from holdfast.pipeline.reader import LogReaderServer
from tested_spark import spark

NETWORK = """
name = "n"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "data"
reader = "127.0.0.1:{port}"
[[stream]]
name = "orders"
topics = ["#"]
"""


def test_both_engines_count_the_same_of_files(tmp_path: Path) -> None:
    filters, history = drawn(4_321, 20, 400)
    texts = tuple(filter_text(each) for each in filters)
    path = put_lines(tmp_path / "events.jsonl", history)
    parts = tally_in(spark(), line_stretches(path, 20_000), texts, 15)
    assert len(parts) > 1
    assert added(parts, 20) == by_hand(filters, 15, history)
    assert added(parts, 20) == tally_history(line_stretches(path), texts, 15, "local")


def test_a_bad_line_and_a_missing_file_are_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"topic": "a"}\n{"topic": 7}\n')
    with pytest.raises(BadLine, match=r"^[^\n]*events\.jsonl, line 2: topic[^\n]*$"):
        tally_in(spark(), line_stretches(path), ("#",), 1)
    stretches = line_stretches(path)
    path.unlink()
    with pytest.raises(CannotRead, match=r"^[^\n]*events\.jsonl[^\n]*$"):
        tally_in(spark(), stretches, ("#",), 1)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[tuple[Path, list[Event]]]:
    """A network file whose only broker has a log, and a log reader that serves it."""
    _, history = drawn(77, 1, 300)
    with (
        HandWritten(tmp_path / "data" / "streams") as written,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        written.publish({1_000_000 * (i + 1): each for i, each in enumerate(history)})
        written.vouch(300_000_000)
        server = LogReaderServer(Ranges(written.folder), listener)
        threading.Thread(target=server.serve, daemon=True).start()
        path = tmp_path / "network.toml"
        path.write_text(NETWORK.format(port=listener.getsockname()[1]))
        yield path, history
        listener.shutdown(socket.SHUT_RDWR)


def test_log_readers_and_segments_give_the_same_to_both_engines(network: tuple[Path, list[Event]]) -> None:
    """Attributes of all types travel as Variants, and match as they did."""
    path, history = network
    filters, _ = drawn(77, 15, 0)
    texts = tuple(filter_text(each) for each in filters)
    remote, local = stretches_of([path], STREAM), stretches_of([path], STREAM, local_segments=True)
    assert {type(each) for each in remote} == {RemoteTicks}
    found = tally_history(local, texts, 10, "local")
    assert found.counts == by_hand(filters, 10, history).counts
    assert (found.events, found.seconds) == (300, 299.0)
    assert tally_history(remote, texts, 10, "local") == found
    assert added(tally_in(spark(), remote, texts, 10), 15) == found
    assert added(tally_in(spark(), local, texts, 10), 15) == found
