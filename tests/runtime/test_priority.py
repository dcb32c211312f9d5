"""Which core is left to those who deliver."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.runtime import priority
from holdfast.runtime.priority import back_cores, interrupts_in

INTERRUPTS = """\
           CPU0       CPU1       CPU3
 24:          1          0          7  IO-APIC   5-edge      ACPI:Ged
 36:          0   12238604          2  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 11:   48811230    1207113          0  GICv3  27 Level     arch_timer
NMI:          0          0          0   Non-maskable interrupts
LOC:   97619861    8818099          0   Local timer interrupts
ERR:          0
"""


def test_devices_are_counted_and_clocks_are_not() -> None:
    assert interrupts_in(INTERRUPTS) == {0: 1, 1: 12_238_604, 3: 9}
    assert not interrupts_in("")


@pytest.mark.parametrize(
    ("cores", "text", "expected"),
    [
        ({0, 1}, INTERRUPTS, {0}),
        ({0, 3}, INTERRUPTS, {0}),
        ({0, 1, 2}, INTERRUPTS, {0, 2}),
        ({1}, INTERRUPTS, {1}),
        ({2, 5}, "nothing that is known", {5}),
        ({0, 1}, None, {1}),
    ],
)
def test_the_core_on_which_devices_interrupt_is_left_to_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cores: set[int], text: str | None, expected: set[int]
) -> None:
    path = tmp_path / "interrupts"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(priority, "_INTERRUPTS", path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    assert back_cores() == expected
