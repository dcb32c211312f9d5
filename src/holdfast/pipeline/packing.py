"""What executors need besides Spark and a Python, as one archive: Holdfast and the packages it imports.

Spark unpacks an archive into the folder an executor works in (``spark.archives``), and the executor's Python looks
there (``PYTHONPATH``): on YARN, on Kubernetes and in a standalone cluster alike. Some packages are compiled, so the
archive is of use to the same Python version on the same kind of machine, and has to be unpacked: a zip that Python
imports from (``--py-files``) would not do for them. Nothing of Spark is in it, for executors have their own.

Refused: an environment with a Python in it. What a virtual environment has of Python is a link to a folder of the
machine it was made on.
"""

from __future__ import annotations

import re
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Final

from holdfast.errors import EnvironmentsFault

__all__ = ["ARCHIVE", "FOLDER", "PACKED", "CannotPack", "pack", "settings_for"]

#: The name an archive has unless another is given.
ARCHIVE: Final = "holdfast-spark.tar.gz"
#: Where an executor has it, below the folder it works in.
FOLDER: Final = "holdfast_packages"
#: What Holdfast imports anywhere, and Spark to move rows into Python, as the index calls it. What these need in turn
#: comes with them.
PACKED: Final = (
    "deltalake",
    "google-crc32c",
    "lxml",
    "msgspec",
    "numpy",
    "pandas",
    "prometheus-client",
    "pyarrow",
    "rich",
    *(() if sys.platform == "win32" else ("uvloop",)),
)
#: Folders of packages that nobody imports from.
_LEFT_OUT: Final = {"__pycache__", "tests", "include"}
#: Speed: what is packed is compressed once and read over a network by a few.
_COMPRESSION: Final = 1


class CannotPack(EnvironmentsFault):
    """A package that is not installed here."""


def pack(path: Path, watch: Callable[[int, int], None] = lambda done, of: None) -> int:
    """Write the archive, and say how many files it has; ``watch`` is told how many are done, of how many.

    :raises CannotPack: if a package is missing here.
    :raises OSError: if it cannot be written.
    """
    found = {**_packages(), **_holdfast()}
    partial = path.with_name(f"{path.name}.partial")
    try:
        with tarfile.open(partial, "w:gz", compresslevel=_COMPRESSION) as archive:
            for done, (name, file) in enumerate(sorted(found.items())):
                watch(done, len(found))
                archive.add(file, name, recursive=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return len(found)


def settings_for(archive: Path) -> dict[str, str]:
    """What a session of Spark has to be told, for its executors to have an archive."""
    return {
        "spark.archives": f"{archive.resolve().as_uri()}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
    }


def _holdfast() -> dict[str, Path]:
    """Ourselves, from wherever we are."""
    root = Path(str(files("holdfast")))
    found = (path for path in root.rglob("*") if path.is_file())
    return {
        f"holdfast/{path.relative_to(root).as_posix()}": path
        for path in found
        if "__pycache__" not in path.parts
    }


def _packages() -> Mapping[str, Path]:
    """The files of all other packages."""
    found: dict[str, Path] = {}
    for each in _needed():
        for file in each.files or ():
            is_ours = ".." not in file.parts and _LEFT_OUT.isdisjoint(file.parts)
            path = Path(str(each.locate_file(file)))
            if is_ours and path.is_file():
                found[file.as_posix()] = path
    return found


def _needed() -> Iterator[Distribution]:
    """``PACKED``, and what these need in turn.

    What is needed under a condition, say by some versions of Python, is needed here if it is here, as it was installed
    with who needs it; but for extras, which nobody has asked for.
    """
    waiting, seen = [(name, True) for name in PACKED], set[str]()
    while waiting:
        name, is_certain = waiting.pop()
        if name in seen:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            if not is_certain:
                continue
            problem = (
                f"the package {name} is not installed here; install it with: pip install 'holdfast[spark]'"
            )
            raise CannotPack(problem) from None
        seen.add(name)
        yield found
        for text in found.requires or ():
            requirement, _, condition = text.partition(";")
            if "extra" not in condition:
                waiting.append((_name(requirement), not condition))


def _name(requirement: str) -> str:
    """Whom a requirement is about."""
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
