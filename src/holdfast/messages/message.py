"""Everything one node ever says to another."""

from __future__ import annotations

from holdfast.messages.publications import Accepted, Deliveries, Publications, Publish, Rejected
from holdfast.messages.session import Goodbye, Heartbeat, Hello, Welcome
from holdfast.messages.subscriptions import Confirmed, Refused, Subscribe, Table, Unsubscribe, Withdrawn

__all__ = ["Message"]

Message = (
    Hello
    | Welcome
    | Heartbeat
    | Goodbye
    | Subscribe
    | Confirmed
    | Refused
    | Unsubscribe
    | Withdrawn
    | Table
    | Publish
    | Accepted
    | Rejected
    | Publications
    | Deliveries
)
