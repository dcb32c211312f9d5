"""What ``import holdfast.pipeline`` gives."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")

import holdfast.pipeline


@pytest.mark.parametrize("name", holdfast.pipeline.__all__)
def test_what_is_loaded_when_it_is_first_used_is_the_same_ever_after(name: str) -> None:
    """Of a module with the name of a function the second use would have been the module."""
    assert callable(getattr(holdfast.pipeline, name))
    assert callable(getattr(holdfast.pipeline, name))
