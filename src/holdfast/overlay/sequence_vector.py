"""Sequence vectors: the last nodes a message passed, each with the number it gave to the message [KJ §3.1]."""

from __future__ import annotations

from holdfast.identity import Element

__all__ = ["extended"]


def extended(vector: tuple[Element, ...], element: Element, *, delta: int) -> tuple[Element, ...]:
    """The vector as a forwarder sends it on: with itself at the end, cut to the last 3δ+1 elements."""
    return (*vector, element)[-(3 * delta + 1) :]
