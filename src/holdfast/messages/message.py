"""Everything one node ever says to another."""

from __future__ import annotations

from holdfast.messages.durable import (
    Acknowledge,
    Admit,
    Admitted,
    Answers,
    Claim,
    Credit,
    Detach,
    Ended,
    Fetch,
    Fetched,
    Logged,
    Moved,
    MovedTaken,
    Ousted,
    Portion,
    Report,
    Reported,
    Requests,
    Resign,
    Saved,
    Withheld,
)
from holdfast.messages.overlay import (
    Confirmations,
    DepthAck,
    Join,
    Lapse,
    Leave,
    Missing,
    Need,
    Present,
    Ready,
    Relay,
    Told,
)
from holdfast.messages.publications import Accepted, Deliveries, Publications, Publish, Rejected
from holdfast.messages.session import Goodbye, Heartbeat, Hello, Welcome
from holdfast.messages.staging import Commit, Committed, Discard, Discarded, Stage, Staged
from holdfast.messages.subscriptions import (
    Cleared,
    Confirmed,
    Crossed,
    Heal,
    Healed,
    Lore,
    Refused,
    Subscribe,
    Unsubscribe,
    Upgraded,
    UpgradeTaken,
    Withdrawn,
)
from holdfast.messages.ticks import Follow, Items, Nack, Start, Taken, Unfollow, Wants

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
    | Publish
    | Accepted
    | Rejected
    | Publications
    | Deliveries
    | Join
    | Leave
    | Lapse
    | Missing
    | Present
    | Told
    | Ready
    | Need
    | Lore
    | Heal
    | Healed
    | Upgraded
    | UpgradeTaken
    | Crossed
    | Cleared
    | Relay
    | DepthAck
    | Confirmations
    | Wants
    | Follow
    | Unfollow
    | Taken
    | Start
    | Items
    | Nack
    | Requests
    | Answers
    | Admit
    | Admitted
    | Report
    | Reported
    | Resign
    | Claim
    | Moved
    | Ended
    | MovedTaken
    | Portion
    | Credit
    | Acknowledge
    | Saved
    | Detach
    | Fetch
    | Fetched
    | Withheld
    | Ousted
    | Logged
    | Stage
    | Staged
    | Commit
    | Committed
    | Discard
    | Discarded
)
