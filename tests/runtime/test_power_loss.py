"""Power is lost, for real: ext4 on a loop device, shut down without a flush, while events are being accepted.

kill -9 does not show whether anything was synced, since the system still has what was written. Here it has not: what
the disk was not made to keep is gone. Subscribers are away, so nobody else has the events (measured.md: what others
lose there). R1.5: accepted means on disk. The simulator loses power all the time (``tests/simulation``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from durable_brokers import PATIENCE_S, Brokers, brokers_in, patiently, verified
from real_disks import Disk, disk_in

DISK_BYTES = 256 << 20  #: enough for room to be prepared
BEFORE = 500  #: so many are accepted before the plug is pulled
AMID = 5000  #: and so many are on their way then
READ = 20  #: so many of them were read, and committed
PARENTS = {"phb": None, "shb": "phb"}

#: Run in a broker's process first: it believes that it syncs its logs.
NEVER_SYNCS = "import os; os.fdatasync = lambda descriptor: None; del os.RWF_DSYNC"


async def lose_power(brokers: Brokers, disk: Disk, *, one_by_one: bool) -> list[int]:
    """Events are accepted, and more are on their way, when everything stops; the ticks of all that were accepted.

    ``one_by_one``: each is a commit of its own, and goes where zeros were, in room that was prepared.
    """
    async with holdfast.connect(brokers.url("phb"), name="p", timeout=PATIENCE_S) as network:
        receipts = await read_some(brokers, network)
        publisher = network.publisher(window=10_000)
        if one_by_one:
            receipts += [
                (await network.publish("t", {"i": i}, bytes(300), timeout=PATIENCE_S)).tick
                for i in range(BEFORE)
            ]
            [log] = (disk.at / "phb").glob("streams/events-*/*.segment")
            assert log.read_bytes().endswith(bytes(1 << 18)), "room is prepared"
            sent = [await publisher.send("t", {"i": BEFORE}, bytes(300))]
        else:
            sent = [await publisher.send("t", {"i": i}, bytes(300)) for i in range(BEFORE)]
            await publisher.flush(PATIENCE_S)
            sent += [await publisher.send("t", {"i": i}, bytes(300)) for i in range(AMID)]
            await sent[BEFORE].receipt(PATIENCE_S)
        for name in PARENTS:  # first, since a sync that the shutdown interrupts may return as if it were done
            brokers.freeze(name)
        disk.pull_the_plug()
        for name in PARENTS:
            brokers.kill(name)
        # when it returns we have read what they had still said
        await network.wait_while(holdfast.State.READY, PATIENCE_S)
        return receipts + [each.outcome.tick for each in sent if isinstance(each.outcome, holdfast.Receipt)]


async def read_some(brokers: Brokers, publisher: holdfast.Network) -> list[int]:
    """A durable subscriber comes, reads and commits some events, and leaves; their ticks."""
    async with (
        holdfast.connect(brokers.url("shb"), name="u", timeout=PATIENCE_S) as network,
        network.subscribe("#", durable="u", timeout=PATIENCE_S) as items,
    ):
        receipts = [await publisher.publish("t", {"i": i}, timeout=PATIENCE_S) for i in range(READ)]
        for _ in receipts:
            await items.get(PATIENCE_S)
        await items.commit(timeout=PATIENCE_S)
        return [receipt.tick for receipt in receipts]


async def read_rest(brokers: Brokers, last: int) -> list[holdfast.Item]:
    """The subscriber comes back: all it is given up to an event that is published now."""
    found: list[holdfast.Item] = []
    async with (
        holdfast.connect(brokers.url("phb"), name="q", timeout=PATIENCE_S) as publisher,
        holdfast.connect(brokers.url("shb"), name="u", timeout=PATIENCE_S) as network,
        network.subscribe("#", durable="u", timeout=PATIENCE_S) as items,
    ):
        receipt = await publisher.publish("t", timeout=PATIENCE_S)
        assert receipt.tick > last  # no tick is used twice (I19)
        while not found or not isinstance(found[-1], holdfast.LoggedEvent) or found[-1].publisher != "q":
            found.append(await items.get(PATIENCE_S))
    return found[:-1]


async def lost_power(
    folder: Path, first: str = "", *, one_by_one: bool = False
) -> tuple[list[int], list[holdfast.Item]]:
    """What was accepted and not read when the power went, and what was read when it was back."""
    with (
        disk_in(folder, DISK_BYTES) as disk,
        brokers_in(
            folder, PARENTS, first=first, folders={name: disk.at / name for name in PARENTS}
        ) as brokers,
    ):
        await brokers.start(*PARENTS)
        accepted = await lose_power(brokers, disk, one_by_one=one_by_one)
        disk.unplug()
        disk.plug_in()
        await brokers.start(*PARENTS)
        found = await read_rest(brokers, accepted[-1])
        for name in PARENTS:
            brokers.stop(name)
            assert all(verified(log)[0] == 0 for log in brokers.logs(name)) or first
        return accepted[READ:], found


@pytest.mark.parametrize("one_by_one", [False, True])
@patiently
async def test_what_was_accepted_outlives_a_loss_of_power(tmp_path: Path, one_by_one: bool) -> None:
    accepted, found = await lost_power(tmp_path, one_by_one=one_by_one)
    events = [item.tick for item in found if isinstance(item, holdfast.LoggedEvent)]
    assert len(accepted) >= BEFORE
    assert len(events) == len(found)  # nothing is a gap
    # What was logged and not yet told may be there as well, behind all that was.
    assert events[: len(accepted)] == accepted


@pytest.mark.parametrize("one_by_one", [False, True])
@patiently
async def test_a_broker_that_does_not_sync_loses_what_it_accepted(tmp_path: Path, one_by_one: bool) -> None:
    """Or the test above would not show anything. It may have lost so much that it does not start again."""
    try:
        accepted, found = await lost_power(tmp_path, NEVER_SYNCS, one_by_one=one_by_one)
    except AssertionError as ended:
        if "broken manifest" not in str(ended):
            raise
        return
    events = [item.tick for item in found if isinstance(item, holdfast.LoggedEvent)]
    assert not set(accepted) <= set(events)
