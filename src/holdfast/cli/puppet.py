"""`holdfast puppet CONFIG SCRIPT`: a scenario, with real processes or in virtual time; see `docs/puppet.md`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from holdfast.cli.failure import Failure, Trouble, decode, read_bytes
from holdfast.puppet.run import Result, perform
from holdfast.puppet.summary import rows, summarise, verdict
from holdfast.runtime.addresses import Address
from holdfast.scenarios.checkers import check_all
from holdfast.scenarios.commands import At, ClockShift, Command, Join, SetLink, Slow
from holdfast.scenarios.configuration import parse_configuration
from holdfast.scenarios.language import ScenarioError, together
from holdfast.scenarios.roles import is_dialled
from holdfast.scenarios.script import Script, parse_script
from holdfast.scenarios.topology import Configuration
from holdfast.scenarios.trace import TraceLine, encode_line
from holdfast.scenarios.trace_fields import COMMON
from holdfast.simulator.run import NotConnected, simulate

__all__ = ["add_arguments"]


def add_arguments(commands: Any) -> None:
    """`holdfast puppet CONFIG SCRIPT [--sim] [--trace FILE] [--check]`."""
    command = commands.add_parser(
        "puppet",
        help="run a scenario: a network described in one file, what happens to it in another",
        description="Runs a scenario with a real process for each of its processes, or with --sim in virtual time,"
        " and says what was published and delivered and whether promises were kept.",
    )
    command.add_argument("configuration", type=Path, metavar="CONFIG", help="the network")
    command.add_argument("script", type=Path, metavar="SCRIPT", help="what happens")
    command.add_argument("--sim", action="store_true", help="in the simulator, in virtual time")
    command.add_argument("--trace", type=Path, metavar="FILE", help="write the trace there, as JSON Lines")
    command.add_argument("--check", action="store_true", help="exit with status 1 if a promise was broken")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the scenario, and say how it went."""
    configuration, script = _read_scenario(options.configuration, options.script)
    if not options.sim:
        _refuse_far_addresses(configuration, script, (str(options.configuration), str(options.script)))
        _note_simulated(configuration, script)
    with _opened(options.trace) as file:
        began = time.monotonic()
        result = _simulated(configuration, script) if options.sim else _performed(configuration, script)
        wall_seconds = time.monotonic() - began
        if file is not None:
            file.writelines(map(_encoded, result.trace))
    # where nothing began, nothing is told
    kept = not result.trace or _tell(result.trace, script, wall_seconds)
    if result.failure is not None:
        raise Trouble(str(result.failure))
    if result.is_interrupted:
        return 130
    return 1 if options.check and not kept else 0


# Reading


def _read_scenario(configuration: Path, script: Path) -> tuple[Configuration, Script]:
    try:
        network = parse_configuration(_read_text(configuration), str(configuration))
        return network, parse_script(_read_text(script), str(script), network)
    except ScenarioError as error:
        raise Failure(str(error)) from error


def _read_text(path: Path) -> str:
    lines = read_bytes(path).split(b"\n")
    return "\n".join(decode(line, str(path), number) for number, line in enumerate(lines, start=1))


def _refuse_far_addresses(configuration: Configuration, script: Script, files: tuple[str, str]) -> None:
    """A name in a URL could be anybody's; in the simulator it does no harm, nor where nobody dials it."""
    network, happenings = files
    joining = [(happenings, command.process) for command in _parts(script) if isinstance(command, Join)]
    errors: list[ScenarioError] = []
    for file, process in [*((network, process) for process in configuration.processes), *joining]:
        address = Address(*process.address)
        if is_dialled(configuration, process) and not address.is_loopback:
            problem = f"the address {address} may be another machine's"
            errors.append(ScenarioError(file, process.line, problem, "localhost, or a loopback address"))
    if errors:
        raise Failure(str(together(errors)))


def _parts(script: Script) -> list[Command]:
    """All commands, those that have their time among them."""
    return [command.command if isinstance(command, At) else command for command in script.commands]


def _note_simulated(configuration: Configuration, script: Script) -> None:
    """Tell which lines only a simulation can carry out."""
    parts = _parts(script)
    links = len(configuration.links) + sum(isinstance(command, SetLink) for command in parts)
    clocks = sum(isinstance(command, ClockShift) for command in parts)
    for count, word, why in (
        (links, "Link", "links are real"),
        (clocks, "Clock", "clocks are the machine's"),
    ):
        if count:
            lines = f"1 {word} line has" if count == 1 else f"{count} {word} lines have"
            sys.stderr.write(f"holdfast: {lines} no effect without --sim, where {why}\n")


def _opened(path: Path | None) -> AbstractContextManager[BinaryIO | None]:
    if path is None:
        return nullcontext()
    try:
        return path.open("wb")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


# Running


def _simulated(configuration: Configuration, script: Script) -> Result:
    try:
        run = simulate(configuration, script)
    except NotConnected as error:
        raise Trouble(str(error)) from error
    return Result(run.trace, run.drained)


def _performed(configuration: Configuration, script: Script) -> Result:
    return perform(configuration, script, say=_echo if sys.stderr.isatty() else _be_quiet)


def _echo(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def _be_quiet(line: str) -> None:
    pass


def _encoded(line: TraceLine) -> bytes:
    fields = {name: value for name, value in line.items() if name not in COMMON}
    return encode_line(line["t"], line["i"], line["node"], line["kind"], fields)


def _tell(trace: Sequence[TraceLine], script: Script, wall_seconds: float) -> bool:
    """Print what came of it; whether all promises were kept."""
    summary = summarise(trace)
    told = list(rows(summary, wall_seconds))
    width = max(len(name) for name, _ in told)
    for name, value in told:
        sys.stdout.write(f"{name:<{width}}  {value:>14}\n")
    slow = {command.subscriber for command in _parts(script) if isinstance(command, Slow)}
    violations = check_all(trace, slow=slow)
    sys.stdout.write(f"{verdict(violations, owes_everything=summary.owes_everything)}\n")
    return not violations
