"""The parts of the harness on trial: the disk that forgets and the proxy that loses."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.directory import Directory, Names
from tests.faults.disk import FileOnDisk, Loss
from tests.faults.proxy import Proxy, Weather

DICE = random.Random(0)


class Written:
    """A file on the faulty disk, written as the VFS writes it."""

    def __init__(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        self.path = path
        self.disk = FileOnDisk(path, is_new=False)

    def write(self, data: bytes, at: int) -> None:
        self.disk.before_write(at, len(data))
        with self.path.open("r+b") as file:
            file.seek(at)
            file.write(data)


@pytest.fixture
def file(tmp_path: Path) -> Written:
    return Written(tmp_path / "file", b"old" * 1000)


def test_what_was_not_synced_is_gone_after_a_power_cut(file: Written) -> None:
    file.write(b"NEW", at=0)
    file.write(b"MORE" * 1000, at=2000)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"old" * 1000


def test_what_was_synced_survives_a_power_cut(file: Written) -> None:
    file.write(b"NEW", at=0)
    file.disk.synced()
    file.write(b"LATER", at=100)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"NEW" + b"old" * 999


def test_what_a_failed_sync_dropped_is_not_saved_by_the_next_one(file: Written) -> None:
    file.write(b"LOST", at=0)
    file.disk.sync_failed()
    file.write(b"KEPT", at=1024)
    file.disk.synced()

    file.disk.lose(Loss.EVERYTHING, DICE)

    content = file.path.read_bytes()
    assert (content[:4], content[1024:1028]) == (b"oldo", b"KEPT")


def test_a_truncation_that_was_not_synced_is_undone(file: Written) -> None:
    file.disk.before_truncate(100)
    with file.path.open("r+b") as raw:
        raw.truncate(100)

    file.disk.lose(Loss.EVERYTHING, DICE)

    assert file.path.read_bytes() == b"old" * 1000


def test_a_torn_write_leaves_some_sectors_old_and_some_new(tmp_path: Path) -> None:
    file = Written(tmp_path / "file", b"o" * 65536)
    file.write(b"n" * 65536, at=0)

    file.disk.lose(Loss.RANDOM_SECTORS, random.Random(1))

    content = file.path.read_bytes()
    sectors = {content[start : start + 512] for start in range(0, 65536, 512)}
    assert sectors == {b"o" * 512, b"n" * 512}


def test_a_prefix_of_the_writes_survives(tmp_path: Path) -> None:
    file = Written(tmp_path / "file", b"o" * 512 * 20)
    for number in range(20):
        file.write(b"n" * 512, at=number * 512)

    file.disk.lose(Loss.ALL_BUT_A_PREFIX, random.Random(2))

    content = file.path.read_bytes()
    assert content == b"n" * content.count(b"n") + b"o" * content.count(b"o")


@pytest.mark.parametrize(("names", "is_left"), [(Names.EXT4, True), (Names.POSIX, False)])
def test_a_synced_file_whose_name_was_not_synced(
    tmp_path: Path, names: Names, is_left: bool
) -> None:
    directory, path = Directory(tmp_path), tmp_path / "new"
    path.write_bytes(b"")
    directory.opened(path, is_new=True).synced()

    directory.lose_power(Loss.EVERYTHING, names, DICE)

    assert path.exists() == is_left


def test_a_deleted_file_comes_back_unless_the_deletion_was_synced(tmp_path: Path) -> None:
    directory = Directory(tmp_path)
    for name in ("back", "gone"):
        path = tmp_path / name
        path.write_bytes(b"content")
        directory.opened(path, is_new=False)
        path.unlink()
        directory.deleted(path)
        if name == "gone":
            directory.synced(tmp_path)
            path = tmp_path / "again"
            path.write_bytes(b"content")
            directory.opened(path, is_new=False)
            path.unlink()
            directory.deleted(path)

    directory.lose_power(Loss.EVERYTHING, Names.POSIX, DICE)

    assert [path.name for path in tmp_path.iterdir()] == ["again"]
    assert (tmp_path / "again").read_bytes() == b"content"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a server that says back what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError):
                while data := client.recv(100):
                    client.sendall(data)

        def serve() -> None:
            try:
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=answer, args=(client,), daemon=True).start()
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])


def said_back(port: int, *, patience_s: float = 0.3) -> bytes | None:
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as client:
        client.sendall(b"hello")
        try:
            return client.recv(100)
        except TimeoutError:
            return None


@pytest.mark.parametrize("weather", [Weather.BLACKHOLE, Weather.ANSWERS_LOST, Weather.HELD])
def test_nothing_comes_back_through_bad_weather_and_all_through_fair(
    echo: int, weather: Weather
) -> None:
    with Proxy(echo) as proxy:
        assert said_back(proxy.port) == b"hello"
        proxy.weather = weather
        assert said_back(proxy.port) is None
        proxy.weather = Weather.FAIR
        assert said_back(proxy.port) == b"hello"


def test_what_was_held_arrives_later(echo: int) -> None:
    with Proxy(echo) as proxy:
        proxy.weather = Weather.HELD
        threading.Timer(0.1, lambda: setattr(proxy, "weather", Weather.FAIR)).start()

        assert said_back(proxy.port, patience_s=2) == b"hello"


def test_a_reset_reaches_the_client_as_a_reset(echo: int) -> None:
    with (
        Proxy(echo) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=2) as client,
    ):
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"

        assert proxy.reset() == 2

        time.sleep(0.05)
        with pytest.raises(ConnectionResetError):
            client.recv(100)
