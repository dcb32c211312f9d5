"""From an invitation to what a client is as a node of the overlay; and what a broker's welcome must not say."""

from __future__ import annotations

from typing import Final

from holdfast.client.settings import Settings
from holdfast.clock import MILLISECOND, SECOND
from holdfast.errors import FilterError
from holdfast.filters.topic import parse_pattern
from holdfast.messages.overlay import Join, Role
from holdfast.messages.session import Invitation, Welcome
from holdfast.messages.subscriptions import VECTOR_MAX
from holdfast.node.settings import Acknowledge, NodeSettings
from holdfast.node.trails import vector_length
from holdfast.overlay.session import heartbeat_problem

__all__ = ["membership_of", "welcome_problem"]

PERIOD_MIN_NS: Final = 1 * MILLISECOND
PERIOD_MAX_NS: Final = 24 * 3600 * SECOND


def welcome_problem(welcome: Welcome) -> str | None:
    """Why a client cannot come under a welcome, or follow its invitation, if it cannot. A broker may say anything."""
    try:
        for stream in welcome.streams:
            for pattern in stream.topics:
                parse_pattern(pattern)
    except FilterError as error:
        return f"a stream whose topics are no pattern: {error}"
    return _invitation_problem(welcome.invitation)


def _invitation_problem(invitation: Invitation | None) -> str | None:
    if invitation is None:
        return None
    if not 0 <= invitation.delta <= VECTOR_MAX or vector_length(invitation.delta) > VECTOR_MAX:
        return f"an invitation with delta {invitation.delta}"
    if invitation.acknowledge not in set(Acknowledge):
        return f"an invitation to acknowledge by {invitation.acknowledge!r}"
    for period_ns in (invitation.detect_after_ns, invitation.probe_every_ns, invitation.dack_every_ns):
        if not PERIOD_MIN_NS <= period_ns <= PERIOD_MAX_NS:
            return f"an invitation with a period of {period_ns} ns"
    return heartbeat_problem(invitation.heartbeat_ns)


def membership_of(settings: Settings, welcome: Welcome, address: str | None) -> NodeSettings:
    """What the invited client is as a node. Its incarnation is above all before, whatever its clock says."""
    invitation = welcome.invitation
    assert invitation is not None
    home = Join(welcome.node, Role.BROKER, settings.name, settings.broker, 0)
    return NodeSettings(
        settings.name,
        max(settings.incarnation, invitation.incarnation + 1),
        Role.SUBSCRIBER,
        invitation.delta,
        (home, *invitation.places),
        home=welcome.node,
        address=address,
        acknowledge=Acknowledge(invitation.acknowledge),
        refill=invitation.refill,
        floods=invitation.floods,
        heartbeat_ns=invitation.heartbeat_ns,
        detect_after_ns=invitation.detect_after_ns,
        probe_every_ns=invitation.probe_every_ns,
        dack_every_ns=invitation.dack_every_ns,
    )
