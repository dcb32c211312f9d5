"""The kinds of frames of ``messages.staging``; their bodies are maps, so that a later version may add fields."""

from __future__ import annotations

from typing import Final

from holdfast.messages.staging import Commit, Committed, Discard, Discarded, Stage, Staged

__all__ = ["KINDS"]

KINDS: Final = {112: Stage, 113: Staged, 114: Commit, 115: Committed, 116: Discard, 117: Discarded}
