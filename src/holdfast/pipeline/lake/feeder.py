"""``python -m holdfast.pipeline.lake.feeder FOLDER``: answers a broker what its lake has, until its input ends.

The other end is ``runtime.lake_process``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

import msgspec

from holdfast.pipeline.lake.feeding import LakeFeed
from holdfast.runtime.lake_process import Ask, At, Failed, Said, read_frame, write_frame
from holdfast.runtime.priority import give_way
from holdfast.streams.store_lake import LakeUnreadable

__all__ = ["answer_all", "main"]

_questions: Final = msgspec.msgpack.Decoder(Ask)


def answer_all(folder: Path, asked: IO[bytes], said: IO[bytes]) -> None:
    """Answer one question after the other."""
    feed = LakeFeed(folder, lambda path, upto: write_frame(said, At(str(path), upto)))
    while frame := read_frame(asked):
        ask = _questions.decode(frame)
        try:
            write_frame(said, Said(feed.page(ask.pubend, ask.after, ask.upto, ask.limit)))
        except LakeUnreadable as error:
            write_frame(said, Failed(str(error)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Until the input ends."""
    [folder] = sys.argv[1:] if arguments is None else arguments
    give_way()
    answer_all(Path(folder), sys.stdin.buffer, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
