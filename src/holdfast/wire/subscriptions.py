"""The kinds of frames of ``messages.subscriptions``; their bodies are maps, so that a later version may add fields."""

from __future__ import annotations

from typing import Final

from holdfast.messages.subscriptions import Confirmed, Refused, Subscribe, Unsubscribe, Withdrawn

__all__ = ["KINDS"]

KINDS: Final = {16: Subscribe, 17: Confirmed, 18: Refused, 19: Unsubscribe, 20: Withdrawn}
