"""The folder of a broker's store, written by hand: logs and tables as a broker would leave them, at any moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from holdfast.events.event import Event
from holdfast.events.packed import pack
from holdfast.messages.publications import Publication
from holdfast.messages.ticks import Lost
from holdfast.runtime.real_store import TABLES_FILE
from holdfast.storage.log import LogSettings, SegmentLog
from holdfast.storage.real_files import RealFiles
from holdfast.storage.real_tables import RealTables
from holdfast.storage.tables import Change
from holdfast.streams.ends import EVENTS, LEASES, PUBENDS, Leased, folder_of
from holdfast.streams.pubend import Kept
from holdfast.streams.records import record_of

PUBEND = "orders@lisbon/0"
STREAM = "orders"
#: The file of a network that has it in the folder ``streams`` beside the file.
NETWORK = """
name = "small"
[[broker]]
name = "lisbon"
listen = "127.0.0.1:7000"
data = "."
[[stream]]
name = "orders"
topics = ["#"]
"""


class HandWritten:
    """One pubend of ``STREAM``, ``PUBEND`` unless it is called otherwise, whose writer is the test."""

    def __init__(self, folder: Path, *, segment_bytes: int = 1 << 20, pubend: str = PUBEND) -> None:
        self.folder = folder
        self._pubend = pubend
        folder.mkdir(parents=True, exist_ok=True)
        self.log_folder = folder / folder_of(EVENTS, pubend)
        self._files = RealFiles(self.log_folder)
        self._log = SegmentLog(self._files, bytes(16), LogSettings(segment_bytes, retired_bytes=1))
        self._tables = RealTables(folder / TABLES_FILE)
        self._numbers: dict[str, int] = {}
        self.kept = Kept()
        self.save()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._files.close()
        self._tables.close()

    def publish(self, events: Mapping[int, Event]) -> None:
        """One commit of events under their ticks; nothing but the log knows of it."""
        records = []
        for event in events.values():
            publisher = event.publisher or "p"
            n = self._numbers[publisher] = self._numbers.get(publisher, 0) + 1
            records.append(record_of(Publication(publisher, n, pack(event))))
        self.write(list(events), records)

    def write(self, ticks: Sequence[int], records: Sequence[bytes]) -> None:
        """One commit of anything."""
        self._log.append(ticks, records)
        self._log.commit()

    def vouch(self, tick: int, silent: int = 0) -> None:
        """The tables learn that everything up to a tick was on disk, and up to where no more comes."""
        self._save(LEASES, Leased(max(tick, silent) + 1_000_000, tick, silent))

    def save(self) -> None:
        """The tables learn what is ``kept``."""
        self._save(PUBENDS, self.kept)

    def _save(self, table: str, row: object) -> None:
        self._tables.apply([Change(table, self._pubend, msgspec.msgpack.encode(row))])

    def release(self, upto: int, reason: str = "released") -> None:
        """Give up everything up to a tick, as a pubend does: first the tables know, then the log is chopped."""
        after = self.kept.released[-1].upto if self.kept.released else self.kept.created
        self.kept.released.append(Lost(after, upto, reason))
        self.kept.upto = max(self.kept.upto, upto)
        self.save()
        self._log.chop(upto)

    def flip(self, text: bytes) -> None:
        """Change one bit of the one place in the segments where a text stands."""
        for path in sorted(self.log_folder.glob("*.segment")):
            data = bytearray(path.read_bytes())
            at = data.find(text)
            if at >= 0:
                data[at] ^= 1
                path.write_bytes(data)
                return
        raise AssertionError(f"{text!r} stands nowhere")


def event(number: int, **attributes: bool | int | float | str | bytes) -> Event:
    """An event with its number in all of its parts."""
    payload = f"payload {number};".encode()
    topic = f"orders/{number % 3}"
    return Event(topic, {"i": number, **attributes}, payload, "text/plain", time=number * 1_000)


def events(ticks: Sequence[int]) -> dict[int, Event]:
    """One at each tick, which is its ``i``."""
    return {tick: event(tick) for tick in ticks}
