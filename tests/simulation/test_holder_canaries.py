"""I12, the count: while somebody waits for a publication δ+1 nodes of its way hold it, less those that crashed with it.

The subscriber is cut off, so that what is published stays on the brokers before it. Each fault leaves every rule of
purging as it is: whoever is relied on has received the publication, and has it no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from judging import chain, found_in, kinds_of

from holdfast.node.plane import Plane
from holdfast.node.segment import Segment

Plant = Callable[[pytest.MonkeyPatch], None]

NETWORK = chain(6, ("p", "publisher", 0), ("u", "subscriber", 5), settings="DackEvery 200")
CUT_OFF = (
    "Subscriber u Subscribe # As all\nWait 300\nIsolate u\n"
    "Publisher p Publish 10 Ontopic t Interval 20\nWait 2000\n"
)
END = "Heal u\nWait 3000\nDrain 10000\nWait 1500\n"
WAITING = CUT_OFF + END
#: The last but one restarts while it and the last hold everything.
RESTARTED = CUT_OFF + "Crash b4\nWait 900\nRestart b4\nWait 1500\n" + END


@pytest.mark.parametrize("script", [WAITING, RESTARTED])
def test_a_sound_network_is_not_accused(script: str) -> None:
    assert kinds_of(found_in(NETWORK, script)) == set()


def _passing(patch: pytest.MonkeyPatch) -> None:
    """The last broker sends publications on, says that it has them, and does not keep them."""
    send = Plane._send_new

    def and_forget(plane: Plane, segment: Segment) -> list[Any]:
        effects = send(plane, segment)
        if plane._me == "b5":
            del plane.queue[segment.first]
        return effects

    patch.setattr(Plane, "_send_new", and_forget)


def _ungenerous(patch: pytest.MonkeyPatch) -> None:
    """Who has lost its memory is given nothing back."""
    patch.setattr(Plane, "refill_for", lambda plane, station: [])


@pytest.mark.parametrize(
    ("plant", "script", "said"),
    [
        (_passing, WAITING, "I12: of p#1, for which u waits, there are copies at ['b3'] only"),
        (_ungenerous, RESTARTED, "I12: b4 came back without p#1, which b5 holds"),
    ],
)
def test_a_planted_fault_is_caught(
    plant: Plant, script: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = "\n".join(map(str, found_in(NETWORK, script)))
    assert said in found, found
    assert "never had it" not in found, "the other half of I12 does not see it"
