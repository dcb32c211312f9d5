"""The promised figures are read off the measurements, and a broken promise is said."""

from __future__ import annotations

from holdfast.bench.matching import Job, Measurement
from holdfast.bench.report import figures, markdown


def measured(kind: str, engine: str, size: int, us: float, bytes_each: float = 100.0) -> Measurement:
    return Measurement(Job(kind, engine, size), us, 10.0, add_us=1.0, remove_us=1.0, bytes_each=bytes_each)


def test_bounds_and_goals_are_judged() -> None:
    found = {
        figure.name: figure
        for figure in figures(
            [
                measured("predicates", "pure", 1_000, 10.0),
                measured("predicates", "pure", 1_000_000, 101.0, bytes_each=300.0),
                measured("predicates", "compiled", 1_000_000, 16.0),
                measured("xpath", "lxml", 10_000, 10_000.0),
                measured("xpath", "pure", 10_000, 50.0),
                measured("xpath", "compiled", 10_000, 100.0),
            ]
        )
    }
    assert found["pure: predicates, 1M"].verdict == "missed"
    assert found["pure: predicates, 1M over 1K"].verdict == "missed"
    assert found["pure: memory at 1M"].verdict == "holds"
    assert found["compiled: predicates, 1M"].verdict == "short of the goal"
    assert found["compiled: memory at 1M"].verdict == "goal reached"
    assert found["pure: XPath, lxml over ours at 10K"].verdict == "goal reached"
    assert found["compiled: XPath, lxml over ours at 10K"].verdict == "short of the goal"
    assert "pure: topics, 1M" not in found, "what was not measured is not promised"


def test_the_page_holds_every_measurement() -> None:
    page = markdown([measured("topics", "pure", 1_000_000, 16.0)], "holdfast bench matching")
    assert "| topics | pure | 1,000,000 | 10.0 | 16.0 | 1.0 | 1.0 | 100 |" in page
    assert "| pure: topics, 1M | 16.0 µs | ≤ 15 |  | missed |" in page
