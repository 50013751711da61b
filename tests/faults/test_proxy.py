"""Tests of the harness: the proxy that loses, holds and resets."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.faults.proxy import Proxy, Weather


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of an echo server."""
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


def said_back(port: int, *, patience_s: float = 10) -> bytes | None:
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as client:
        client.sendall(b"hello")
        try:
            return client.recv(100)
        except TimeoutError:
            return None


@pytest.mark.parametrize("weather", [Weather.BLACKHOLE, Weather.ANSWERS_LOST, Weather.HELD])
def test_nothing_comes_back_through_a_bad_network_and_all_through_a_good_one(
    echo: int, weather: Weather
) -> None:
    with Proxy(echo) as proxy:
        assert said_back(proxy.port) == b"hello"
        proxy.weather = weather
        assert said_back(proxy.port, patience_s=0.3) is None
        proxy.weather = Weather.FAIR
        assert said_back(proxy.port) == b"hello"


def test_data_that_the_proxy_delayed_arrives_later(echo: int) -> None:
    with Proxy(echo) as proxy:
        proxy.weather = Weather.HELD
        threading.Timer(0.1, lambda: setattr(proxy, "weather", Weather.FAIR)).start()

        assert said_back(proxy.port) == b"hello"


def test_a_reset_reaches_the_client_as_a_reset(echo: int) -> None:
    with (
        Proxy(echo) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client,
    ):
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"

        assert proxy.reset() == 2

        time.sleep(0.05)
        with pytest.raises(ConnectionResetError):
            client.recv(100)


def test_a_frozen_connection_stays_open_and_others_work(echo: int) -> None:
    with (
        Proxy(echo) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client,
    ):
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"

        proxy.freeze()
        client.sendall(b"hello")

        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(100)
        assert said_back(proxy.port) == b"hello"


def test_with_the_cable_pulled_nothing_is_acknowledged(echo: int) -> None:
    with (
        Proxy(echo) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client,
    ):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 300)
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"

        proxy.pull_cable()
        client.sendall(b"hello")

        client.settimeout(30)
        with pytest.raises(TimeoutError) as caught:
            client.recv(100)
        assert caught.value.errno == errno.ETIMEDOUT  # the kernel's; that of the call has none
