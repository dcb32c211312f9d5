"""The command `holdfast`: one file per command, each with its arguments and its work.

Exit status 0 when the work was done, 1 when it could not be done, 2 when something handed in was wrong, 130 when
interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import holdfast
from holdfast.cli.failure import Failure, Trouble

__all__ = ["main"]

#: In the order of the help; each is a module of this package, with _ for -.
COMMANDS: Final = (
    "demo",
    "init",
    "up",
    "broker",
    "pub",
    "sub",
    "status",
    "stream",
    "subscription",
    "network",
    "filter",
    "match",
    "cost",
    "log",
    "lake",
    "history",
    "derive",
    "puppet",
    "audit",
    "report",
    "pack-spark",
    "bench",
)
VERSION: Final = "--version"


def parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The arguments of the command that is called, or of all of them where none is: a broker needs no benchmarks."""
    top = argparse.ArgumentParser(prog="holdfast", description=(holdfast.__doc__ or "").split("\n")[0])
    top.add_argument(VERSION, action="version", version=f"holdfast {holdfast.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    first = arguments[0] if arguments else ""
    for command in () if first == VERSION else (first,) if first in COMMANDS else COMMANDS:
        import_module(f"holdfast.cli.{command.replace('-', '_')}").add_arguments(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    _open_standard_streams()
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except Failure as failure:
        sys.stderr.write(f"holdfast: {failure}\n")
        return 2
    except Trouble as trouble:
        sys.stderr.write(f"holdfast: {trouble}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        _drop_output()
        return 141
    except OSError as error:  # what no command has dealt with: most often that our output cannot be written
        _drop_output()
        sys.stderr.write(f"holdfast: {error.filename or 'input or output'}: {error.strerror or error}\n")
        return 1


def _run(given: Sequence[str]) -> int:
    if not given:
        parser(given).print_help(sys.stderr)
        return 2
    try:
        options = parser(given).parse_args(given)
        status: int = options.run(options)
    finally:  # also of --help, which ends by an exception: what cannot be written is to be noticed here
        sys.stdout.flush()
    return status


def _open_standard_streams() -> None:
    """Whoever started us may have closed them; then nothing is read there, and what is written goes nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  open for good


def _drop_output() -> None:
    """What could not be written is not to be tried, and complained about, once more at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
