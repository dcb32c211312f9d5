"""Many clients under few durable names, on real processes: the short version of ``tests/real_names.py``."""

from __future__ import annotations

from pathlib import Path

import real_names


def test_brokers_are_killed_and_what_is_owed_under_a_name_is_read_by_somebody(tmp_path: Path) -> None:
    counts = real_names.performed(1, 8, tmp_path, lasts=5.0)
    assert counts["kills"] >= 1
    assert counts["confirmed"] > counts["kills"]
    assert counts["deliveries"] > 20
