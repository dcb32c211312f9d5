"""From the logs into the table: what is stable and not in it yet, round by round, one commit each.

A round reads every pubend from where the table has it, up to so many rows, writes a file for each, and commits all
files and the new places together. Killed before the commit it leaves files that nobody knows of, and the next round
begins where this one did; killed after it, it is done. What the logs have lost is in the table as gaps, in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.errors import EnvironmentsFault
from holdfast.messages.ticks import Tick
from holdfast.pipeline.lake.errors import LakeBusy, LakeFailed
from holdfast.pipeline.lake.files import DataFile
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.lake.writing import FileWriter
from holdfast.pipeline.origins import Origins
from holdfast.pipeline.ranges import End
from holdfast.pipeline.reading import ahead, pages
from holdfast.pipeline.requests import ReadRequest

__all__ = ["Round", "take_round"]

ROUND_ROWS: Final = 500_000  #: of one pubend, in one commit


@dataclass(slots=True)
class Round:
    """What one commit has brought."""

    version: int = 0
    rows: int = 0
    gaps: int = 0
    size: int = 0  #: bytes of files
    ranges: dict[str, tuple[Tick, Tick]] = field(default_factory=dict)  #: by pubend: (after, upto]
    mistyped: Counter[str] = field(default_factory=Counter)
    #: by broker or pubend why it is missing
    problems: dict[str, EnvironmentsFault] = field(default_factory=dict)

    @property
    def note(self) -> Mapping[str, object]:
        """As the commit has it."""
        return {"ranges": self.ranges, "rows": self.rows, "gaps": self.gaps, "mistyped": self.mistyped}


def take_round(table: LakeTable, origins: Origins, rows_max: int = ROUND_ROWS) -> Round | None:
    """Take what is stable now, or a part of it, into the table; None if there is nothing new.

    A pubend that the table does not have yet is taken from the first tick that its log has. A broker that is away holds
    up nobody else: what is wrong with it is in the answer.

    :raises LakeBusy, LakeFailed: as ``LakeTable.append`` and ``FileWriter``; then nothing has happened to the table.
    :raises EnvironmentsFault: of whoever was asked, if nothing else was new.
    """
    ends, problems = origins.reachable()
    done = Round(problems=problems)
    files: list[DataFile] = []
    for pubend, end in sorted(ends.items()):
        place = table.place(pubend)
        after = end.first if place is None else place
        if after < end.last:
            try:
                files.append(_taken(table, origins, pubend, after, end, rows_max, done))
            except (LakeBusy, LakeFailed):
                raise
            except EnvironmentsFault as problem:
                done.problems[pubend] = problem
    if not files:
        for why in done.problems.values():
            raise why
        return None
    done.size = sum(each.size for each in files)
    places = {pubend: upto for pubend, (_, upto) in done.ranges.items()}
    table.append(files, places, done.note)
    done.version = table.version
    return done


def _taken(
    table: LakeTable, origins: Origins, pubend: str, after: Tick, end: End, rows_max: int, done: Round
) -> DataFile:
    """A file of what one pubend has from a tick on."""
    shape = table.shape
    request = ReadRequest(
        origins.stream, pubend, after, end.last, shape.columns, shape.attributes, gaps="row", silence=True
    )
    writer = FileWriter(table.folder, shape)
    try:
        covered = after
        for page in ahead(pages(origins.of(pubend), request, rows_max)):
            covered = page.covered
            for batch in page.batches:
                writer.add(batch)
        file = writer.close()
    except BaseException:
        writer.abandon()
        raise
    assert (file.after, file.tick) == (after, covered), "the rows of a range cover it"
    done.ranges[pubend] = (after, covered)
    done.rows += writer.rows
    done.gaps += writer.gaps
    done.mistyped.update(writer.mistyped)
    return file
