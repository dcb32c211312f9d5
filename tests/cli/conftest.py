"""One running network for the tests of the commands that use one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from running import running_network


@pytest.fixture(scope="package")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The URLs of b1 and of b2 below it; events of more than 2000 bytes of payload are refused."""
    folder = tmp_path_factory.mktemp("network")
    with running_network(folder, "b1", extra="limits.payload_bytes = 2000") as found:
        yield found
