"""When a peer is too slow, in either world.

What was sent and not read waits. Some waiting is no fault of the peer's: one turn may bring much. A peer for
which more than its buffer has waited for ``SLOW_NS``, or ever ``BURST_BUFFERS_MAX`` buffers, is given up: what
waits is dropped, and it has ``LINGER_NS`` to read why.
"""

from __future__ import annotations

from typing import Final

from holdfast.clock import SECOND

__all__ = ["BROKER_BUFFER_BYTES", "BURST_BUFFERS_MAX", "CLIENT_BUFFER_BYTES", "LINGER_NS", "SLOW_NS"]

CLIENT_BUFFER_BYTES: Final = 8 * 1024 * 1024
BROKER_BUFFER_BYTES: Final = 64 * 1024 * 1024
SLOW_NS: Final = 1 * SECOND
BURST_BUFFERS_MAX: Final = 4
LINGER_NS: Final = 10 * SECOND
