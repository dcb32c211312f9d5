"""Real processes: a subscriber is killed, and its broker gives it up [B0.25]."""

from __future__ import annotations

import json
from pathlib import Path

from running import Running, write_network

#: Five times this is how long b2 asks b1 for the dead.
IMPATIENT = ("--set", "neighbours.detect_after_ms=300")


def overlay_of(path: Path, broker: str) -> dict[str, object]:
    with Running("status", "--network", str(path), "--output", "json", "--over", "0.1") as status:
        _, out, _ = status.ended()
    found: dict[str, object] = next(
        each["status"]["overlay"] for each in json.loads(out)["brokers"] if each["name"] == broker
    )
    return found


def test_a_subscriber_that_is_killed_is_expelled_and_nothing_is_kept_for_it(tmp_path: Path) -> None:
    extra = "delta = 1\nclients.member_grace_ms = 1000"
    path, urls = write_network(tmp_path, "b1", extra=extra, guarantee="reliable")
    with Running("up", "--network", str(path), *IMPATIENT) as up:
        up.wait_for("ready; connect to")
        with Running("sub", "#", "--url", urls[1], "--name", "killed") as sub:
            sub.wait_for("subscribed", "err")
            assert overlay_of(path, "b2")["members"] == ["killed"]
            sub.process.kill()
            sub.process.wait()
        with Running("pub", "a", "--url", urls[0], "--timeout", "20") as pub:
            pub.write('{"attributes": {"n": 1}}\n')
            said = up.wait_for("a member is expelled")
            assert "it was not heard of for" in said.partition("a member is expelled")[2]
            status, _, told = pub.ended()
        assert status == 0, told
        left = overlay_of(path, "b2")
        assert (left["members"], left["queued"]) == ([], 0)
