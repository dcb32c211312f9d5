from __future__ import annotations

import pytest

from holdfast.identity import Element
from holdfast.overlay.sequence_vector import cut, extended


def vector(length: int) -> tuple[Element, ...]:
    return tuple(Element(f"n{i}", 1, i) for i in range(length))


@pytest.mark.parametrize("delta", range(4))
@pytest.mark.parametrize("length", range(14))
def test_a_vector_keeps_its_last_elements_and_the_forwarder_is_the_last(delta: int, length: int) -> None:
    me = Element("me", 2, None)
    sent = extended(vector(length), me, delta=delta)
    assert sent[-1] == me
    assert len(sent) == min(length + 1, 3 * delta + 1)
    assert sent[:-1] == vector(length)[length - len(sent) + 1 :]


@pytest.mark.parametrize("delta", range(4))
def test_what_is_cut_is_what_would_be_sent(delta: int) -> None:
    assert cut(vector(20), delta=delta) == vector(20)[-(3 * delta + 1) :]
    assert cut((), delta=delta) == ()
