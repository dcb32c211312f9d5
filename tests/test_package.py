"""What ``import holdfast`` gives, and how little it takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast


@pytest.mark.parametrize("name", holdfast.__all__)
def test_everything_the_package_names_is_there(name: str) -> None:
    assert getattr(holdfast, name) is not None
    assert name in dir(holdfast)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'holdfast' has no attribute 'conect'"):
        getattr(holdfast, "conect")  # noqa: B009  # mypy would refuse the attribute


def test_importing_the_package_loads_nothing_but_itself() -> None:
    program = "import sys; before = set(sys.modules); import holdfast; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = [name for name in loaded.stdout.split() if not name.startswith("importlib")]
    assert set(names) <= {"__future__", "holdfast", "warnings"}
