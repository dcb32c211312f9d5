"""Tables of the lake, shown: all of them, or one."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from holdfast.cli.console import OutputConsole, foreign
from holdfast.cli.words import counted, sized

if TYPE_CHECKING:
    from holdfast.pipeline.lake.table import LakeTable

__all__ = ["list_tables", "moment_of", "show_table"]


def moment_of(tick: int) -> str:
    """A tick as a time, to the microsecond."""
    seconds, microseconds = divmod(tick, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{microseconds:06}Z"


def _as_json(stream: str, table: LakeTable | None) -> dict[str, Any]:
    if table is None:
        return {"stream": stream, "version": None}
    files = table.files()
    pubends: dict[str, dict[str, int]] = {}
    for file in files:
        found = pubends.setdefault(
            file.pubend, {"after": file.after, "upto": 0, "files": 0, "rows": 0, "bytes": 0}
        )
        found["upto"] = file.tick
        found["files"] += 1
        found["rows"] += file.rows
        found["bytes"] += file.size
    return {
        "stream": stream,
        "path": str(table.folder),
        "version": table.version,
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "attributes": table.attributes,
        "pubends": pubends,
    }


def list_tables(lake: str, found: Sequence[tuple[str, LakeTable | None]], output: str) -> None:
    """One line for each; streams without a table have one too."""
    tables = [_as_json(stream, table) for stream, table in found]
    if output == "json":
        sys.stdout.write(json.dumps({"lake": lake, "tables": tables}, ensure_ascii=False) + "\n")
        return
    shown = Table("stream", "rows", "size", "files", "up to", "version", box=SIMPLE_HEAD, show_edge=False)
    for each in tables:
        if each["version"] is None:
            shown.add_row(foreign(each["stream"]), "no table yet")
            continue
        upto = max((pubend["upto"] for pubend in each["pubends"].values()), default=None)
        last = "" if upto is None else moment_of(upto)
        told = [f"{each['rows']:,}", sized(each["bytes"]), str(each["files"]), last]
        shown.add_row(foreign(each["stream"]), *told, str(each["version"]))
    OutputConsole().print(shown)


def show_table(table: LakeTable, output: str) -> None:
    """All of one: its columns of attributes, and each of its pubends."""
    found = _as_json(table.stream, table)
    if output == "json":
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
        return
    kinds = ", ".join(f"{name} {kind}" for name, kind in found["attributes"].items()) or "none"
    rows = f"{counted(found['rows'], 'row')}, {sized(found['bytes'])}"
    lines = [f"{found['path']}: version {found['version']}, {rows}", f"columns of attributes: {kinds}"]
    for name, each in sorted(found["pubends"].items()):
        files = f"{counted(each['rows'], 'row')} in {counted(each['files'], 'file')}"
        lines.append(f"{name}: {files}, {moment_of(each['after'])} to {moment_of(each['upto'])}")
    console = OutputConsole()
    for line in lines:
        console.print(foreign(line), soft_wrap=True)
