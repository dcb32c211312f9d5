"""Whether nothing is under way any more in a network of processes, judged by what they report.

Each process says how much it has sent and received in each of its sessions. The
reports of one round are not given at the same moment. Still, if what each end has sent the other has received, session
by session, nothing was under way: the first message anybody sent after his report must have been the answer to one that
arrived after his report too, and that one is missing in his count (sums over all sessions would not do: a message under
way can be made up for by one that came too early). That holds as long as processes act only on messages. They also act
by the clock, when they dial or give somebody up, so two rounds must agree; heartbeats are not counted, and all Publish
commands must have ended.

A session that only one end knows of is about to be lost or was just begun, so it is waited for. A connection on which
the peer has not introduced itself is no session yet: nothing but introductions can be under way there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from holdfast.puppet.control import Reported, Traffic

__all__ = ["Reports", "are_at_rest", "is_consistent"]

#: One round, by process; those that are down or frozen do not report.
Reports: TypeAlias = Mapping[str, Reported]


def are_at_rest(earlier: Reports | None, later: Reports) -> bool:
    """Whether two rounds of reports, one after the other, prove that nothing is under way."""
    if earlier is None or earlier.keys() != later.keys():
        return False
    if any(_sessions(earlier[name]) != _sessions(later[name]) for name in later):
        return False
    return is_consistent(earlier) and is_consistent(later)


def is_consistent(reports: Reports) -> bool:
    """Whether what one end of each session has sent the other has received."""
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for name, report in reports.items():
        for session in _sessions(report):
            if (name, session.peer) in seen:
                return False  # one of the two is about to be replaced
            seen[name, session.peer] = (session.sent, session.received)
    return all(seen.get((peer, name)) == (received, sent) for (name, peer), (sent, received) in seen.items())


def _sessions(report: Reported) -> list[Traffic]:
    return [session for session in report.sessions if session.peer]
