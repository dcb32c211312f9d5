"""Compile the hot modules of `holdfast.matching` with mypyc, if there is a C compiler.

The sources stay what they are: a copy of each module is compiled as `holdfast.matching.compiled.<module>`, with its
imports of the other hot modules redirected to their compiled copies. So the pure and the compiled engine live side by
side in one process, and the tests and benchmarks run both. Without a compiler nothing is built and nothing fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
TARGET = SOURCES / "holdfast" / "matching" / "compiled"
BELOW = ("errors.py", "identity.py", "clock.py")
PACKAGES = ("events", "filters", "matching")
MODULES = (
    "posting",
    "bounds",
    "interval",
    "column",
    "trie",
    "linear_path",
    "reading",
    "automaton",
    "source",
    "catalogue",
    "hashed",
)

SETUP = """
from mypyc.build import mypycify
from setuptools import setup
setup(name="compiled", packages=[], ext_modules=mypycify({files!r}, opt_level="3", group_name="holdfast_matching"))
"""


def compiler() -> str | None:
    """A C compiler that can build a module for this Python: the one Python was told of, or any; None without one."""
    names = [(sysconfig.get_config_var("CC") or "cc").split()[0], "cc", "gcc", "clang"]
    found = (path for name in names if (path := shutil.which(name)))
    return next((path for path in found if compiles(path)), None)


def compiles(cc: str) -> bool:
    """Whether a compiler finds Python's headers and its own."""
    include = sysconfig.get_paths()["include"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("#include <Python.h>\n")
        command = [cc, f"-I{include}", "-c", str(source), "-o", str(source.with_suffix(".o"))]
        return subprocess.run(command, capture_output=True).returncode == 0


def fingerprint() -> str:
    """What the compiled modules were made from."""
    digest = hashlib.sha256(f"{sys.version}{sysconfig.get_platform()}".encode())
    for package in PACKAGES:
        for path in sorted((SOURCES / "holdfast" / package).glob("*.py")):
            digest.update(path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def copy_sources(tree: Path) -> list[str]:
    """A copy of what matching needs, in which the hot modules stand a second time, to be compiled."""
    (tree / "holdfast").mkdir()
    (tree / "holdfast" / "__init__.py").write_text("")
    for module in BELOW:
        shutil.copy2(SOURCES / "holdfast" / module, tree / "holdfast" / module)
    for folder in PACKAGES:
        shutil.copytree(
            SOURCES / "holdfast" / folder,
            tree / "holdfast" / folder,
            ignore=shutil.ignore_patterns("compiled", "__pycache__"),
        )
    package = tree / "holdfast" / "matching" / "compiled"
    package.mkdir()
    (package / "__init__.py").write_text('"""The hot modules of `holdfast.matching`, compiled."""\n')
    redirected = re.compile(rf"\bholdfast\.matching\.(?=(?:{'|'.join(MODULES)})\b)")
    for module in MODULES:
        source = (SOURCES / "holdfast" / "matching" / f"{module}.py").read_text()
        (package / f"{module}.py").write_text(redirected.sub("holdfast.matching.compiled.", source))
    return [f"holdfast/matching/compiled/{module}.py" for module in MODULES]


def build(tree: Path, files: list[str], cc: str) -> None:
    """Run mypyc and the C compiler inside the copied tree."""
    (tree / "setup.py").write_text(SETUP.format(files=files))
    (tree / "pyproject.toml").write_text("[tool.mypy]\nignore_missing_imports = true\n")
    environment = {**os.environ, "CC": cc, "MYPYPATH": str(tree)}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compiling holdfast.matching failed\n{done.stdout}\n{done.stderr}")


def main() -> None:
    """Compile, unless there is nothing to do it with or nothing has changed."""
    stamp, wanted = TARGET / "fingerprint", fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    cc = compiler()
    if cc is None:
        shutil.rmtree(TARGET, ignore_errors=True)  # better none than one that is older than its sources
        print("no C compiler with Python headers: holdfast.matching runs as pure Python")
        return
    tree = ROOT / "build" / "compiled"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    build(tree, copy_sources(tree), cc)
    install(tree)
    stamp.write_text(wanted)


def install(tree: Path) -> None:
    """Put the compiled modules into the package, and the library they share beside it, as mypyc has it."""
    built = tree / "holdfast" / "matching" / "compiled"
    TARGET.mkdir(exist_ok=True)
    for old in set(TARGET.iterdir()) - {TARGET / path.name for path in built.iterdir()}:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for path in [built / "__init__.py", *built.glob("*.so")]:
        replace(path, TARGET / path.name)
    for path in tree.glob("*.so"):
        replace(path, SOURCES / path.name)


def replace(source: Path, target: Path) -> None:
    """Put a new file in the place of an old one; a process that has the old one loaded keeps it."""
    beside = target.with_name(f"{target.name}.new")
    shutil.copy2(source, beside)
    beside.replace(target)


if __name__ == "__main__":
    main()
