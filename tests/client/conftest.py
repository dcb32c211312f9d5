"""PostgreSQL for real: a server of the package ``pgserver``, which brings the program along."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """Where a PostgreSQL is, with nothing in it but what tests have left.

    Not in a folder of pytest's: the server has a user of its own where we are root, who may not go there.
    """
    pgserver = pytest.importorskip(
        "pgserver", reason="PostgreSQL is not here: pip install -r requirements-dev.txt"
    )
    with TemporaryDirectory(prefix="holdfast-pg-") as folder:
        server = _started(pgserver, folder)
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def _started(pgserver: Any, folder: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its packages, about folders of the user's own that we do not use
        return pgserver.get_server(folder)


@pytest.fixture
def postgres(postgres_uri: str) -> str:
    """The same, with nothing in it."""
    with import_module("psycopg").connect(postgres_uri, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres_uri
