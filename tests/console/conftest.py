"""A browser, servers on both stores, and pages; any error of a page fails its test.

Screenshots go into the folder named by PENSTOCK_SCREENSHOTS, or into pytest's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from penstock.domain.access.api_key import Role
from penstock.wiring.broker import migrate
from tests.clocks import ManualClock
from tests.console.contexts import PATIENCE_MS, Contexts
from tests.console.driver import Console
from tests.edge.api import Api
from tests.edge.conftest import BACKENDS, NEVER_PUSHES, some_settings
from tests.edge.live import LiveServer
from tests.support import chromium

SCREENSHOTS = "PENSTOCK_SCREENSHOTS"

T = TypeVar("T")

OpenConsole = Callable[..., Console]
NewKey = Callable[..., str]


def run_in_thread(do: Callable[[], T]) -> T:
    """Run `do` in another thread: this one runs Playwright's event loop and must not block."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(do).result()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Closed after the last console test: other tests must not find Playwright's loop here."""
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        found = playwright.chromium.launch(
            executable_path=chromium.require(), args=list(chromium.FLAGS)
        )
        yield found
        found.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run most tests on SQLite: pages use the native API, which other tests check on both stores.

    Pages that depend on wake-ups run on both; they are marked `both_stores`.
    """
    stores = BACKENDS if metafunc.definition.get_closest_marker("both_stores") else BACKENDS[:1]
    for name in ("server", "server_with_keys"):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, stores, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """One server per backend, without keys.  Tests can advance its clock."""
    yield from _served(request, tmp_path_factory, "console")


@pytest.fixture(scope="session")
def server_with_keys(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """A server that requires a key."""
    yield from _served(request, tmp_path_factory, "server_with_keys", auth={"required": "always"})


def _served(
    request: pytest.FixtureRequest, folders: pytest.TempPathFactory, name: str, **settings: Any
) -> Iterator[LiveServer]:
    if request.param == "postgres":
        cluster = request.getfixturevalue("postgres_cluster")
        cluster.start()
        settings["store"] = {"url": cluster.new_database()}
    folder = folders.mktemp(f"{name}-{request.param}")
    chosen = some_settings(folder, **NEVER_PUSHES, **settings)
    run_in_thread(lambda: migrate(chosen))
    made = run_in_thread(lambda: LiveServer(chosen, clock=ManualClock(), has_duties=False))
    started = run_in_thread(made.start)
    yield started
    run_in_thread(started.stop)


@pytest.fixture
def clock(server: LiveServer) -> ManualClock:
    assert isinstance(server.clock, ManualClock)
    return server.clock


@pytest.fixture
def api(server: LiveServer) -> Iterator[Api]:
    client = Api(server.url)
    yield client
    client.close()


@pytest.fixture
def name(api: Api) -> str:
    """The name of a new queue."""
    return api.make_queue("one")


@pytest.fixture
def new_key(server_with_keys: LiveServer) -> NewKey:
    """new_key(Role.READ, queues=("mail*",)); all roles if none is given."""

    def make(*roles: Role, name: str = "a test", queues: tuple[str, ...] = ("*",)) -> str:
        def do() -> str:
            keys = server_with_keys.broker.keys
            made = keys.create(name, roles=roles or tuple(Role), queues=queues).result()
            server_with_keys.broker.refresh_keys()
            return made.secret

        return run_in_thread(do)

    return make


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    chosen = os.environ.get(SCREENSHOTS)
    place = Path(chosen) / request.node.path.stem if chosen else tmp_path
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture(scope="package")
def contexts(browser: Browser) -> Contexts:
    return Contexts(browser)


@pytest.fixture
def open_console(
    request: pytest.FixtureRequest, contexts: Contexts, folder: Path
) -> Iterator[OpenConsole]:
    """open_console(server.url, width=360, scheme="dark"): a browser without cookies and storage."""
    opened: list[Console] = []

    def make(
        url: str, *, width: int = 1280, height: int = 800, scheme: Any = "light", **options: Any
    ) -> Console:
        page = contexts.take(
            base_url=url,
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            timezone_id="UTC",
            **options,
        )
        console = Console(page, folder)
        opened.append(console)
        return console

    yield make

    has_failed = getattr(request.node, "has_failed", False)
    for number, console in enumerate(opened):
        if has_failed:
            console.shoot(f"failed-{request.node.name[:80].replace('/', '-')}-{number}")
        console.stop_listening()
        contexts.give_back(console.page)
    if not has_failed:
        assert [line for console in opened for line in console.complaints] == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call" and report.failed:
        item.has_failed = True  # type: ignore[attr-defined]
    return report


@pytest.fixture
def console(server: LiveServer, open_console: OpenConsole) -> Console:
    """A browser on the server without keys."""
    return open_console(server.url)
