"""Take the pictures of docs/console.md, on a server with the story's data.

make pictures                          into docs/pictures
python -m tests.console.pictures DIR   into another folder
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, sync_playwright

from penstock.wiring.broker import migrate
from tests.clocks import ManualClock
from tests.console.conftest import run_in_thread
from tests.console.driver import Console
from tests.console.story import Story
from tests.edge.api import Api
from tests.edge.conftest import NEVER_PUSHES, some_settings
from tests.edge.live import LiveServer
from tests.support import chromium

FOLDER = Path("docs/pictures")
MAX_BYTES = 150_000
SETTLING_MS = 2_500  # for graphs and the next live update


class Shot(NamedTuple):
    name: str
    path: str  # {message} and others are ids from the story
    scheme: str = "light"
    width: int = 1200
    height: int = 780
    dialog: str | None = None  # the action whose dialog is open
    seconds: int = 0  # seconds of live traffic before the picture


SHOTS = (
    Shot("overview", "/console", seconds=12),
    Shot("queue", "/console/queues/thumbnails", scheme="dark"),
    Shot("messages", "/console/messages?queue=mail&kind=welcome", dialog="Cancel"),
    Shot("message", "/console/messages/{message}"),
    Shot("flow", "/console/flows/{flow}", height=1100),
    Shot("flow-phone", "/console/flows/{flow}", scheme="dark", width=390, height=1200),
    Shot("circuit", "/console/circuits/{circuit}"),
    Shot("insights", "/console/insights", scheme="dark", height=950),
    Shot("phone", "/console/workers", width=360, height=720),
)


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium.require(), args=list(chromium.FLAGS)
        )
        server, story, found = run_in_thread(lambda: _served(Path(data)))
        try:
            sizes = [_take(browser, server.url, shot, story, found, folder) for shot in SHOTS]
        finally:
            run_in_thread(server.stop)
            browser.close()
    for path, size in sizes:
        print(f"{path} {size:,} bytes")
    return int(any(size > MAX_BYTES for _, size in sizes))


def _served(data: Path) -> tuple[LiveServer, Story, dict[str, str]]:
    settings = some_settings(data, **NEVER_PUSHES)
    migrate(settings)
    clock = ManualClock()
    server = LiveServer(settings, clock=clock, has_duties=False).start()
    story = Story(server, Api(server.url), clock)
    return server, story, story.play()


def _take(
    browser: Browser, url: str, shot: Shot, story: Story, found: dict[str, str], folder: Path
) -> tuple[Path, int]:
    scheme: Any = shot.scheme
    context = browser.new_context(
        base_url=url,
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=scheme,
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    console = Console(context.new_page(), folder)
    console.open(shot.path.format(**found))
    for _ in range(shot.seconds):
        run_in_thread(story.second)
        console.page.wait_for_timeout(1_000)
    if shot.dialog is not None:
        console.ask(shot.dialog).box.locator(".counted:not(:empty)").wait_for()
    if not shot.seconds:
        console.page.wait_for_timeout(SETTLING_MS)
    assert console.page.locator("main .trouble").count() == 0, shot.path
    path = folder / f"{shot.name}.png"
    console.page.screenshot(path=path)
    assert console.complaints == [], console.complaints
    context.close()
    return path, path.stat().st_size


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
