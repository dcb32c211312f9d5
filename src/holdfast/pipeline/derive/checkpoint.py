"""The folder in which a query's progress is: whose it is, and that one process at a time goes on with it.

Spark keeps there how far the streams were read, and what windows hold. With another query, or another target, that
would be continued as something else. So what was begun is written beside it, first of all, and compared; as long as
Spark has not planned its first batch nothing has happened, and a query that was mended may still be another.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Final

import msgspec

from holdfast.pipeline.derive.errors import OtherCheckpoint

__all__ = ["Begun", "held_checkpoint"]

FILE: Final = "derive.json"
LOCK: Final = "derive.lock"
OFFSETS: Final = "offsets"  #: Spark's, in which each batch is planned before anything of it is done


class Begun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a checkpoint is of."""

    network: str
    query: str
    into: str
    topic: str | None = None


@contextmanager
def held_checkpoint(folder: Path, begun: Begun) -> Iterator[None]:
    """Begin in a folder, or go on there, as the only one, until the block ends.

    :raises OtherCheckpoint: if that is not possible, and why.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OtherCheckpoint(f"{folder}: {error.strerror}; expected a folder for the checkpoint") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OtherCheckpoint(f"{folder} is in use: another process runs this query") from error
        _begin(folder, begun)
        yield
    finally:
        os.close(lock)


def _begin(folder: Path, begun: Begun) -> None:
    file = folder / FILE
    written = file.with_suffix(".new")
    others = [each.name for each in folder.iterdir() if each.name not in (LOCK, written.name)]
    if file.exists() and any((folder / OFFSETS).glob("[0-9]*")):
        _compare(folder, _read(file), begun)
        return
    if others and not file.exists():
        problem = f"{folder} has {min(others)} in it, and was not begun by 'holdfast derive'"
        raise OtherCheckpoint(f"{problem}; expected an empty folder, or none")
    with written.open("wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(begun)))
        out.flush()
        os.fsync(out.fileno())
    written.rename(file)


def _read(file: Path) -> Begun:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Begun)
    except (OSError, msgspec.MsgspecError) as error:
        raise OtherCheckpoint(f"{file} cannot be read: {error}") from error


def _compare(folder: Path, before: Begun, now: Begun) -> None:
    """A checkpoint is of one query; whitespace at the ends of lines is not part of it."""
    was, is_now = _lines(before.query), _lines(now.query)
    problem = None
    if was != is_now:
        pairs = enumerate(zip_longest(was, is_now, fillvalue=""), 1)
        line, (old, new) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
        problem = f"another query: line {line} was {old!r} and is {new!r}"
    elif before.network != now.network:
        problem = f"the network {before.network}, and this is {now.network}"
    elif before.into != now.into:
        problem = f"the target {before.into}, and this is {now.into}"
    elif before.topic != now.topic:
        problem = f"--topic {before.topic}, and this is {now.topic}"
    if problem is not None:
        way_out = "go on with what it was, or say --checkpoint FOLDER to begin anew"
        raise OtherCheckpoint(f"the checkpoint {folder} was begun with {problem}; {way_out}")


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]
