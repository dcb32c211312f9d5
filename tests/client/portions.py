"""Portions as brokers send them, and what comes of them, in few words."""

from __future__ import annotations

from collections.abc import Sequence

from answered import EVENT
from holdfast.client.effect import Stretch
from holdfast.client.item import Gap, Silence
from holdfast.messages.durable import Portion
from holdfast.messages.publications import Batch, Publication

__all__ = ["portion", "said"]


def portion(
    *ticks: int,
    upto: int = 0,
    lost: int = 0,
    reason: str = "",
    number: int = 1,
    pubend: str = "s@b/1",
    incarnation: int = 1,
) -> Portion:
    """Events at these ticks, each of a publisher ``p`` and numbered by its tick; then nothing up to ``upto``."""
    batch = Batch([Publication("p", tick, EVENT) for tick in ticks])
    last = ticks[-1] if ticks else lost
    return Portion(
        number, pubend, incarnation, batch, ticks, range(len(ticks)), max(upto, last), lost, reason
    )


def said(stretches: Sequence[object]) -> list[int | Gap | Silence]:
    """What stretches say, in order: ticks of events, gaps, and silences behind them."""
    found: list[int | Gap | Silence] = []
    for stretch in stretches:
        assert isinstance(stretch, Stretch), stretch
        assert [each.n for each in stretch.publications] == list(stretch.ticks)
        gap = stretch.gap
        found += [] if gap is None else [gap]
        found += stretch.ticks
        last = stretch.ticks[-1] if stretch.ticks else max(stretch.after, stretch.lost_through)
        if stretch.upto > last:
            found.append(Silence(stretch.pubend, last, stretch.upto))
    return found
