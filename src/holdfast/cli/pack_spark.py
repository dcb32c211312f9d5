"""`holdfast pack-spark [FILE]`: what the executors of a cluster need, as one archive; see `docs/spark.md`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from holdfast.cli.failure import Trouble
from holdfast.cli.progress import progress
from holdfast.pipeline.packing import ARCHIVE, CannotPack, pack, settings_for

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast pack-spark [FILE]`."""
    command = commands.add_parser(
        "pack-spark",
        help="pack what Spark's executors need",
        description="Writes Holdfast and the packages it needs into one archive, for executors on which they are not"
        " installed: of YARN, of Kubernetes, of a standalone cluster. They need Spark, and this Python version.",
    )
    command.add_argument(
        "file", type=Path, nargs="?", default=Path(ARCHIVE), metavar="FILE", help=f"default: {ARCHIVE}"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Pack, and say what to do with it."""
    path: Path = options.file
    try:
        with progress() as shown:
            task = shown.add_task("files", total=None)
            count = pack(path, lambda done, of: shown.update(task, completed=done, total=of))
    except CannotPack as error:
        raise Trouble(str(error)) from error
    except OSError as error:
        raise Trouble(f"{path} cannot be written: {error.strerror or error}") from error
    python = ".".join(map(str, sys.version_info[:2]))
    sys.stdout.write(
        f"{path}: {count:,} files, {path.stat().st_size / 1e6:,.0f} MB, for Python {python} on {sys.platform}\n"
        f"  holdfast.pipeline.session(master=..., archive=Path({str(path)!r}))\n"
        f"  holdfast audit TRACE... --master URL --archive {path}\n"
        "or, with a Spark of your own:\n"
    )
    for name, value in settings_for(path).items():
        sys.stdout.write(f"  --conf {name}={value}\n")
    return 0
