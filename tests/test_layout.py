"""The shape of the project, held: who may import whom, and what stays pure [style.md §2]."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import compile_columns
import compile_matching

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "holdfast"

#: Imports point down this list of rows, never up and never sideways.
ROWS = [
    ["cli"],
    ["report"],
    ["bench"],
    ["web", "puppet", "gateways", "pipeline", "embedded"],
    ["simulator", "runtime"],
    ["scenarios"],
    ["broker", "client"],
    ["node"],
    ["archive", "ordering"],
    ["routing", "streams"],
    ["overlay", "matching", "storage", "wire"],
    ["messages"],
    ["filters"],
    ["events"],
    ["errors", "identity", "clock", "intervals"],
]
MAY_IMPORT = {
    package: {below for lower in ROWS[i + 1 :] for below in lower}
    for i, row in enumerate(ROWS)
    for package in row
}
PURE = {package for row in ROWS[6:] for package in row}
IMPURE_BY_NAME = ("storage/real_", "client/aio", "client/sync")  #: and those whose names begin so
IO_MODULES = {"asyncio", "socket", "ssl", "threading", "time", "random", "os"}
PACKAGES = sorted(
    {path.stem if path.is_file() else path.name for path in SRC.iterdir()} - {"__init__", "py", "__pycache__"}
)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it points"
            assert node.module is not None
            yield node.module
            if node.module == "holdfast":
                yield from (f"holdfast.{alias.name}" for alias in node.names)


def sources(package: str) -> list[Path]:
    folder = SRC / package
    found = folder.rglob("*.py") if folder.is_dir() else [SRC / f"{package}.py"]
    return sorted(path for path in found if "compiled" not in path.parts)


def violations(package: str, path: Path, names: Iterator[str]) -> Iterator[str]:
    for name in names:
        top, *rest = name.split(".")
        if (
            top == "holdfast"
            and rest
            and rest[0] not in MAY_IMPORT[package] | {package}
            and rest[0] != "__version__"
        ):
            yield f"{path}: {name} points up or sideways"
        if (
            package in PURE
            and not str(path.relative_to(SRC)).startswith(IMPURE_BY_NAME)
            and top in IO_MODULES
        ):
            yield f"{path}: {name} in a pure package"
        if top == "pyspark" and package != "pipeline" and path != SRC / "bench" / "pipeline_ready.py":
            yield f"{path}: pyspark outside the pipeline"
        if package == "pipeline" and name.startswith("holdfast.broker"):
            yield f"{path}: {name}: the pipeline reads logs, and asks no broker"


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_downwards(package: str) -> None:
    assert package in MAY_IMPORT, f"{package} is not in the table: give it its row"
    for path in sources(package):
        assert not list(violations(package, path, imports(path)))


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("filters", "holdfast.matching.hashed"),
        ("matching", "holdfast.storage.log"),
        ("matching", "time"),
        ("events", "random"),
        ("cli", "pyspark.sql"),
        ("pipeline", "holdfast.broker.broker"),
        ("errors", "holdfast.identity"),
    ],
)
def test_a_planted_import_is_caught(package: str, name: str) -> None:
    assert list(violations(package, SRC / package / "planted.py", iter([name])))


def test_no_lock_file_records_where_packages_come_from() -> None:
    for path in [ROOT / "pyproject.toml", *ROOT.glob("requirements*.txt")]:
        assert not re.search(r"https?://|index-url|find-links", path.read_text()), path


def conflicts_in(text: str) -> list[str]:
    return re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", text, re.MULTILINE)


def test_nothing_of_a_merge_is_left() -> None:
    assert conflicts_in("a\n" + "<" * 7 + " HEAD\nb\n" + "=" * 7 + "\nc\n"), "a planted one is caught"
    folders = [ROOT / name for name in ("docs", "examples", "src", "tests", "tools")]
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*"))]
    texts = [page for page in pages if page.suffix in (".md", ".py", ".toml", ".txt")]
    assert [str(page) for page in texts if conflicts_in(page.read_text())] == []


def test_every_runtime_dependency_is_pinned() -> None:
    for path in ROOT.glob("requirements*.txt"):
        for line in path.read_text().splitlines():
            assert not line or line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.]*", line), (
                f"{path}: {line}"
            )


def test_compiled_modules_are_as_old_as_their_sources() -> None:
    if compile_matching.TARGET.exists():
        built = (compile_matching.TARGET / "fingerprint").read_text()
        assert built == compile_matching.fingerprint(), "the compiled engine is stale: make compile"
    if compile_columns.STAMP.exists():
        built = compile_columns.STAMP.read_text()
        assert built == compile_columns.fingerprint(), "what reads logs by columns is stale: make compile"
