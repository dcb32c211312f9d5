"""The logs keep what the lake does not have, and no more: release follows its commits, with real brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from kept_logs import publish

import holdfast
from durable_brokers import brokers_in, patiently
from holdfast.pipeline.lake.keeping import Keeping
from holdfast.pipeline.lake.run import take_round
from holdfast.pipeline.lake.table import LakeTable
from holdfast.pipeline.origins import origins_of
from holdfast.runtime.network_file import read_network

STREAMS = """
[[stream]]
name = "all"
topics = ["t/#"]
[[stream]]
name = "quiet"
topics = ["quiet/#"]
"""


@patiently
async def test_release_follows_the_lake_and_a_quiet_stream_holds_up_no_other(tmp_path: Path) -> None:
    with brokers_in(tmp_path, {"b1": None}, streams=STREAMS, readers=True) as brokers:
        await brokers.start("b1")
        network = read_network(brokers.file)
        followed = []
        for stream in ("all", "quiet"):
            origins = origins_of(brokers.file, stream, local=False)
            table = LakeTable.made(network.lake / stream, stream, {})
            followed.append((table, origins, Keeping(network, table, origins, "lake")))
        for _, _, keeping in followed:
            await asyncio.to_thread(keeping.begin)
        table, origins, _ = followed[0]

        async def forgotten(upto: int, again: Callable[[], object]) -> None:
            """Wait until the log has let go of everything up to a tick."""
            while (await asyncio.to_thread(origins.ends))[pubend].first < upto:
                await asyncio.to_thread(again)

        def acknowledge() -> None:
            for _, _, each in followed:
                each.acknowledge()

        await asyncio.to_thread(acknowledge)  # nothing is there yet, and that is said too
        async with (
            holdfast.connect(brokers.url("b1"), name="reader") as connected,
            connected.subscribe("t/#", durable="reader") as items,
        ):
            for numbers in (range(100), range(100, 150)):
                [(pubend, place)] = (await publish(brokers, "b1", numbers)).items()
                async for item in items:  # the one who reads is done with it, and the lake is not
                    await items.commit(item)
                    if isinstance(item, holdfast.LoggedEvent) and item.tick == place.tick:
                        break
                while (table.place(pubend) or 0) < place.tick:
                    await asyncio.to_thread(take_round, table, origins)
                if numbers.start == 0:
                    await forgotten(place.tick, acknowledge)
        assert sum(file.rows for file in table.files()) == 150, "no gap among them, nor silence"
        assert {file.zones["kind"].greatest for file in table.files()} == {"event"}
