"""``network.toml`` as a document: its values, where each came from, and everything that is wrong with them.

Above the file stand the variables ``HOLDFAST_*`` of the environment, above those the flags ``--set KEY=VALUE``. All
problems are collected, each with its place, so that one reading shows them all.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any, Final

from holdfast.errors import CallersFault
from holdfast.runtime.network_keys import BROKER, REQUIRED, STREAM, TABLES, Key, Unfit
from holdfast.runtime.toml_places import Path, line_of, places

__all__ = [
    "BROKER_VARIABLES",
    "VARIABLES",
    "Document",
    "NetworkFileError",
    "Override",
    "overrides_from_environment",
    "overrides_from_flags",
]

FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_KEYS_OF_ARRAYS: Final = {"broker": BROKER, "stream": STREAM}
_ANY_KEY: Final = sorted({*TABLES, *_KEYS_OF_ARRAYS} - {""})

#: The variables that set a key of the file, each with the key's path.
VARIABLES: Final[dict[str, Path]] = {
    f"HOLDFAST_{name}".upper(): path
    for table, keys in TABLES.items()
    for key in keys
    for name, path in [(f"{table}_{key}" if table else key, (table, key) if table else (key,))]
    if path != ("name",)
}
#: Those that set a key of the one broker a process runs.
BROKER_VARIABLES: Final = {
    f"HOLDFAST_{key}".upper(): key for key in ("listen", "address", "admin", "reader", "data")
}


class NetworkFileError(CallersFault):
    """A network file that cannot be used; ``problems`` has one line for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Override:
    """A value that stands above the file: who says so, of which key, and the text."""

    where: str
    path: Path  #: a broker or stream by its name
    text: str


def overrides_from_environment(environment: Mapping[str, str], broker: str | None = None) -> list[Override]:
    """What the environment sets; with ``broker``, also of that broker.

    :raises NetworkFileError: for a variable that is nearly one of ours: it was meant to set something.
    """
    known: dict[str, Path] = dict(VARIABLES)
    if broker is not None:
        known |= {variable: ("broker", broker, key) for variable, key in BROKER_VARIABLES.items()}
    problems = []
    for variable in sorted(environment):
        if variable.startswith("HOLDFAST_") and variable not in {*VARIABLES, *BROKER_VARIABLES}:
            near = get_close_matches(variable, VARIABLES, n=1, cutoff=0.85)
            problems += [f"{variable} in the environment is no setting; did you mean {one}?" for one in near]
    if problems:
        raise NetworkFileError(problems)
    return [Override(name, path, environment[name]) for name, path in known.items() if environment.get(name)]


def overrides_from_flags(flags: Sequence[str]) -> list[Override]:
    """What ``--set routing=flooding --set limits.clients_max=5 --set broker.b2.listen=…`` says.

    :raises NetworkFileError: naming every flag that is not of this form.
    """
    overrides, problems = [], []
    for flag in flags:
        key, equals, text = flag.partition("=")
        first, *rest = key.strip().split(".")
        path = (first, ".".join(rest[:-1]), rest[-1]) if len(rest) > 1 else (first, *rest)
        if not equals or not all(path):
            problems.append(f"--set {flag}: expected KEY=VALUE, such as --set limits.clients_max=100")
        overrides.append(Override(f"--set {key}", path, text))
    if problems:
        raise NetworkFileError(problems)
    return overrides


class Document:
    """The values of one file, with what stands above it laid over them."""

    def __init__(self, path: FilePath) -> None:
        """Read the file.

        :raises NetworkFileError: if it cannot be read, or is no TOML.
        """
        self.path = path
        text = _text_of(path)
        try:
            self._values: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise NetworkFileError([_syntax_error(path, text, error)]) from error
        self._places = places(text)
        self._above: dict[Path, str] = {}
        self._problems: list[tuple[int, str]] = []

    def override(self, override: Override) -> None:
        """Lay one value over the file's; of an unknown key, a problem."""
        path = self._located(override.path)
        key = _key_at(path)
        if key is None:
            expected = _nearest(override.path) or self._expected(override.path)
            problem = f"{'.'.join(map(str, override.path))} is no setting; expected {expected}"
            self._problems.append((0, f"{override.where}: {problem}"))
            return
        table: Any = self._values
        for part in path[:-1]:
            table = table.setdefault(part, {}) if isinstance(table, dict) else table[part]
        # if not, what should be a table is a value, and said to be one when it is read
        if isinstance(table, dict):
            table[path[-1]] = key.kind.from_text(override.text)
            self._above[path] = override.where

    def table(self, path: Path, keys: Mapping[str, Key]) -> dict[str, Any]:
        """The checked values of one table: what is wrong is left out, what is absent has its default."""
        found: Any = self._values
        for part in path:
            found = found.get(part, {}) if isinstance(found, dict) else found[part]
        if not isinstance(found, dict):
            self.problem(path, f"{path[-1]} is a value; expected a table: [{path[-1]}]")
            found = {}
        for name in found:
            if name not in keys and not (not path and name in _ANY_KEY):
                self.problem((*path, name), f"{name} is not known here{_hint(name, keys, path)}")
        checked: dict[str, Any] = {}
        for name, key in keys.items():
            value = found.get(name, key.default)
            if value is REQUIRED:
                self.problem(path, f"{name} is missing{_of(path)}")
            elif value is None:
                checked[name] = None
            else:
                self._check((*path, name), key, value, checked)
        return checked

    def tables(self, array: str, keys: Mapping[str, Key]) -> list[dict[str, Any]]:
        """The checked tables of an array, in the order of the file."""
        found = self._values.get(array, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            self.problem((array,), f"{array} is no array of tables; expected [[{array}]]")
            return []
        return [self.table((array, position), keys) for position in range(len(found))]

    def says(self, path: Path) -> bool:
        """Whether something stands at a path, whatever it is."""
        found: Any = self._values
        for part in path[:-1]:
            found = found.get(part, {}) if isinstance(found, dict) else found[part]
        return isinstance(found, dict) and path[-1] in found

    def problem(self, path: Path, text: str) -> None:
        """Note something wrong with what stands at a path."""
        where = self._above.get(path)
        line = 0 if where else line_of(self._places, path)
        self._problems.append((line, f"{where or f'{self.path}, line {line}'}: {text}"))

    def raise_problems(self) -> None:
        """End here if anything is wrong.

        :raises NetworkFileError: with all problems, in the order of the lines.
        """
        if self._problems:
            raise NetworkFileError([text for _, text in sorted(self._problems, key=lambda one: one[0])])

    def _check(self, path: Path, key: Key, value: object, checked: dict[str, Any]) -> None:
        name = str(path[-1])
        try:
            checked[name] = key.kind.check(value)
        except Unfit as unfit:
            self.problem(path, f"{name} {unfit}")

    def _expected(self, path: Path) -> str:
        """What a path that is no setting could have been."""
        array, *rest = path
        tables = self._values.get(str(array)) if array in _KEYS_OF_ARRAYS and len(rest) == 2 else None
        if not isinstance(tables, list):
            return "KEY, TABLE.KEY, broker.NAME.KEY or stream.NAME.KEY"
        names = [str(table.get("name")) for table in tables if isinstance(table, dict)]
        if rest[0] in names:
            return f"one of {', '.join(_KEYS_OF_ARRAYS[str(array)])}"
        return f"the name of a {array}: {', '.join(names)}"

    def _located(self, path: Path) -> Path:
        """The path with a broker's or stream's name replaced by its position, if it has one."""
        array, *rest = path
        if array not in _KEYS_OF_ARRAYS or len(rest) != 2 or not isinstance(self._values.get(array), list):
            return path
        for position, table in enumerate(self._values[str(array)]):
            if isinstance(table, dict) and table.get("name") == rest[0]:
                return (array, position, rest[1])
        return path


def _key_at(path: Path) -> Key | None:
    match path:
        case (str(key),):
            return TABLES[""].get(key)
        case (str(table), str(key)):
            return TABLES.get(table, {}).get(key)
        case (str(array), int(), str(key)):
            return _KEYS_OF_ARRAYS[array].get(key)
    return None


def _nearest(path: Path) -> str:
    """The setting a wrong path may have meant."""
    known = [".".join(map(str, one)) for one in VARIABLES.values()]
    return "".join(get_close_matches(".".join(map(str, path)), known, n=1, cutoff=0.6))


def _of(path: Path) -> str:
    match path:
        case (str(array), int(position)):
            return f" in {array} {position + 1}"
    return ""


def _hint(name: str, keys: Mapping[str, Key], path: Path) -> str:
    homes = [f"[{table}]" if table else "the top of the file" for table, of in TABLES.items() if name in of]
    if homes:
        return f"; it belongs to {homes[0]}"
    near = get_close_matches(name, [*keys, *([] if path else _ANY_KEY)], n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; expected one of {', '.join(keys)}"


def _text_of(path: FilePath) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        hint = "; 'holdfast init' writes one" if isinstance(error, FileNotFoundError) else ""
        raise NetworkFileError([f"{path}: {error.strerror}{hint}"]) from error
    if len(data) > FILE_BYTES_MAX:
        raise NetworkFileError([f"{path}: more than {FILE_BYTES_MAX} bytes; expected a network file"])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte 0x{data[error.start]:02X} is not UTF-8; expected UTF-8 text"
        raise NetworkFileError([f"{path}, line {line}: {problem}"]) from error


def _syntax_error(path: FilePath, text: str, error: tomllib.TOMLDecodeError) -> str:
    """Tomllib's own words, with the place where ours stands."""
    problem, _, place = str(error).partition(" (at ")
    found = re.match(r"line (\d+), column (\d+)", place)
    where = f"line {found[1]}, column {found[2]}" if found else f"line {text.rstrip().count(chr(10)) + 1}"
    return f"{path}, {where}: {problem[:1].lower()}{problem[1:]}"
