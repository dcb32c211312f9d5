"""Hostile peers at the ports of brokers with durable streams: no crash, no hang, no growth, and nobody else feels it.

A longer campaign of the same kind is part of `make soak`.
"""

from __future__ import annotations

import pytest

from fuzz_durable_campaign import campaign


def test_brokers_with_logs_outlive_a_campaign() -> None:
    """Events of others are neither lost nor repeated, and every log verifies."""
    assert campaign(0.0, 1) >= 4 * 30


CRASHES = """
from holdfast.broker.durable.readers import Readers
Readers.credit = lambda *_: 1 / 0
"""
LOSES = """
from holdfast.streams.constream import Constream
hand, told = Constream.hand, []
def forgetful(self, stretch, matches):
    told.extend(stretch.ticks)
    return hand(self, stretch, [[] if len(told) > 9 else found for found in matches])
Constream.hand = forgetful
"""
SABOTAGE = {
    "crashes": (CRASHES, "ZeroDivisionError"),
    "loses": (LOSES, "TimedOut"),
}


@pytest.mark.parametrize("fault", SABOTAGE)
def test_a_campaign_catches_brokers_of_which_one(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz_durable_campaign.SILENCE_S", 3.0)
    code, expected = SABOTAGE[fault]
    with pytest.raises(AssertionError, match=expected) as caught:
        campaign(0.0, 1, sabotage=code)
    assert "to repeat: python tests/fuzz_durable_campaign.py 0 1" in str(caught.value)
