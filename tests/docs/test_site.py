"""`make docs` builds a site with all pages, whose parts all come from the site itself."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.version import __version__
from tests.docs.snippets import ROOT

_LOADED = re.compile(r"<(?:link|script|img|iframe|source)\b[^>]*(?:href|src)=\"(https?:)?//", re.I)
_LOADED_BY_CSS = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as strictly as `make docs` does: a broken link or anchor fails the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", "site/mkdocs.yml"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_every_page_is_in_the_site_and_in_its_navigation(site: Path) -> None:
    pages = {path.stem for path in ROOT.glob("docs/*.md")} - {"README"}
    front = (site / "index.html").read_text(encoding="utf-8")

    assert {path.stem for path in site.glob("*.html")} >= pages | {"CONTRIBUTING", "CHANGELOG"}
    assert [page for page in pages if f'href="{page}.html"' not in front] == []
    assert f"Penstock {__version__}" in front


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    html = [path for path in site.rglob("*.html") if _LOADED.search(path.read_text())]
    css = [path for path in site.rglob("*.css") if _LOADED_BY_CSS.search(path.read_text())]

    assert (html, css) == ([], [])


def test_the_python_api_is_generated_from_the_code(site: Path) -> None:
    page = (site / "python-api.html").read_text(encoding="utf-8")

    anchors = set(re.findall(r'id="penstock\.([\w.]+)"', page))

    assert {"client.app.Penstock.job", "client.jobs.job.Job.enqueue"} <= anchors
    assert {"client.jobs.handle.Enqueued.result", "domain.message.outcome.Retry"} <= anchors


def test_the_search_finds_pages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))

    found = {entry["location"] for entry in index["docs"] if "dead-letter" in entry["text"]}

    assert any(location.startswith("lifecycle.html") for location in found)
