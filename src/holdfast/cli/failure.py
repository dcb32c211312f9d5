"""What ends a command early: ``Failure``, the user's, with exit status 2; ``Trouble``, the world's, with 1."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Failure", "Trouble", "decode", "read_bytes"]


class Failure(Exception):
    """Something the user handed in is wrong; the message says what, and where."""


class Trouble(Exception):
    """What was asked for is right and could not be done."""


def read_bytes(path: Path) -> bytes:
    """A whole file.

    :raises Failure: if it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


def decode(data: bytes, name: str, line: int) -> str:
    """One line of a file of UTF-8 text; a byte order mark at the start of the file is dropped.

    :raises Failure: naming the line and column of the first byte that is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig" if line == 1 else "utf-8")
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode("utf-8")) + 1
        problem = f"byte 0x{data[error.start]:02X} is not UTF-8; expected UTF-8 text"
        raise Failure(f"{name}, line {line}, column {column}: {problem}") from error
