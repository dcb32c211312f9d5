"""`holdfast broker`: one broker of a file, until it is told to stop."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from holdfast.identity import is_first_life
from running import Running, write_network


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_broker_listens_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    path, (url,) = write_network(tmp_path)
    with Running("broker", "b1", "--network", str(path)) as broker:
        said = json.loads(broker.wait_for("\n", "err").splitlines()[0])
        assert (said["text"], said["node"], is_first_life(said["incarnation"])) == ("listening", "b1", True)
        assert said["address"] == url.removeprefix("holdfast://")
        broker.tell(number)
        assert broker.ended()[0] == 0


def test_every_life_is_a_new_incarnation(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    lives: list[int] = []
    for _ in range(2):
        with Running("broker", "b1", "--network", str(path), "--log-format", "text") as broker:
            broker.wait_for("b1 = listening  address='127.0.0.1:", "err")
            said = broker.wait_for("\n", "err")
            lives.append(int(said.partition("incarnation=")[2].split()[0]))
    assert lives[1] == lives[0] + 1
    assert (tmp_path / "data" / "b1").is_dir()


def test_the_environment_moves_the_one_broker_it_is_for(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1")
    _, (other,) = write_network(tmp_path / "..")
    address = other.removeprefix("holdfast://")
    environment = {"HOLDFAST_LISTEN": address, "HOLDFAST_DATA": str(tmp_path / "elsewhere")}
    with Running("broker", "b2", "--network", str(path), environment=environment) as broker:
        assert json.loads(broker.wait_for("\n", "err").splitlines()[0])["address"] == address
    assert (tmp_path / "elsewhere").is_dir()


def test_a_name_that_is_not_in_the_file_is_refused(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path, "b1")
    with Running("broker", "b3", "--network", str(path)) as broker:
        assert broker.ended() == (2, "", f"holdfast: {path}: there is no broker 'b3'; expected b1, b2\n")


def test_a_damaged_record_of_its_lives_stops_it(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    record = tmp_path / "data" / "b1" / "incarnation"
    record.parent.mkdir(parents=True)
    record.write_text("7")
    with Running("broker", "b1", "--network", str(path)) as broker:
        status, _, err = broker.ended()
    assert status == 1
    assert str(record) in err


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    (tmp_path / "data").write_text("no folder")
    with Running("broker", "b1", "--network", str(path)) as broker:
        status, _, err = broker.ended()
    assert status == 1
    assert err == f"holdfast: the folder of b1, {tmp_path / 'data' / 'b1'}: Not a directory\n"


def test_a_log_format_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path, _ = write_network(tmp_path)
    environment = {"HOLDFAST_LOG_FORMAT": "xml"}
    with Running("broker", "b1", "--network", str(path), environment=environment) as broker:
        assert broker.ended() == (2, "", "holdfast: HOLDFAST_LOG_FORMAT is 'xml'; expected json or text\n")
