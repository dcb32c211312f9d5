"""Sequence vectors: the last nodes a message passed, each with the number it gave to the message [KJ §3.1]."""

from __future__ import annotations

from holdfast.identity import Element

__all__ = ["cut", "extended"]


def cut(vector: tuple[Element, ...], *, delta: int) -> tuple[Element, ...]:
    """The last 3δ+1 elements: all that anybody needs."""
    return vector[-(3 * delta + 1) :]


def extended(vector: tuple[Element, ...], element: Element, *, delta: int) -> tuple[Element, ...]:
    """The vector as a forwarder sends it on, with itself at the end."""
    return cut((*vector, element), delta=delta)
