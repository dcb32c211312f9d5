"""What ends a command with exit status 2: the message says what was wrong, and where."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Failure", "read_text"]


class Failure(Exception):
    """Something the user handed in is wrong."""


def read_text(path: Path) -> str:
    """A whole file of UTF-8 text.

    :raises Failure: if it cannot be read, or is not UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    return decode(data, str(path), 1)


def decode(data: bytes, name: str, line: int) -> str:
    """UTF-8 text that begins at a line of a file; a byte order mark at the start of a file is dropped.

    :raises Failure: naming the line and column of the first byte that is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        row, column = line + before.count("\n"), len(before) - (before.rfind("\n") + 1) + 1
        raise Failure(
            f"{name}, line {row}, column {column}: byte 0x{data[error.start]:02X} is not UTF-8"
        ) from error
