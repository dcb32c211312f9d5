"""Compile `holdfast/pipeline/alike_compiled.pyx` with Cython, if there is a C compiler.

It reads records of a log by columns, as `alike_pure.py` does with numpy; both are there side by side, and the tests run
both. Without a compiler nothing is built and nothing fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from compile_matching import ROOT, SOURCES, compiler, replace

FOLDER = SOURCES / "holdfast" / "pipeline"
MODULE = "alike_compiled"
SOURCE = FOLDER / f"{MODULE}.pyx"
STAMP = FOLDER / f"{MODULE}.fingerprint"

SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
extension = Extension("{module}", ["{module}.pyx"], extra_compile_args=["-O3"])
setup(name="compiled", packages=[], ext_modules=cythonize([extension], quiet=True))
"""


def fingerprint() -> str:
    """What the compiled module was made from."""
    digest = hashlib.sha256(f"{sys.version}{sysconfig.get_platform()}".encode())
    digest.update(SOURCE.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Compile, unless there is nothing to do it with or nothing has changed."""
    wanted = fingerprint()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return
    cc = compiler()
    if cc is None:
        remove()  # better none than one that is older than its source
        print("no C compiler with Python headers: logs are read by columns with numpy")
        return
    tree = ROOT / "build" / "columns"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    shutil.copy2(SOURCE, tree)
    (tree / "setup.py").write_text(SETUP.format(module=MODULE))
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, env={**os.environ, "CC": cc}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"compiling {SOURCE.name} failed\n{done.stdout}\n{done.stderr}")
    remove()
    for path in tree.glob("*.so"):
        replace(path, FOLDER / path.name)
    STAMP.write_text(wanted)


def remove() -> None:
    """Whatever was built before."""
    for path in [STAMP, *FOLDER.glob(f"{MODULE}*.so")]:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
