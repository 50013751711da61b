"""What the site adds to docs/: pages of the root, the Python API, the order of all pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import penstock

ROOT = Path(__file__).resolve().parents[1]
INDEX = "README.md"
PYTHON_API = "python-api.md"
OF_THE_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md")
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")
_TO_ROOT = re.compile(r"\]\(\.\./([A-Z]+(?:\.md)?)((?:#[\w-]+)?)\)")
_TO_DOCS = re.compile(r"\]\(docs/")


def on_config(config: Any) -> Any:
    """The navigation is the index page's, so that both list the same pages."""
    version: dict[str, str] = {}
    exec((ROOT / "src" / "penstock" / "version.py").read_text(encoding="utf-8"), version)
    config["site_name"] = f"Penstock {version['__version__']}"
    index = (ROOT / "docs" / INDEX).read_text(encoding="utf-8")
    nav: list[Any] = [{"Documentation": INDEX}]
    for title, body in _SECTION.findall(index):
        pages = [{name: target.removeprefix("../")} for name, target in _LINK.findall(body)]
        nav.append({title: pages})
    config["nav"] = [
        *nav,
        {
            "Reference": [
                {"Python API": PYTHON_API},
                {"Changes": "CHANGELOG.md"},
                {"Security policy": "SECURITY.md"},
            ]
        },
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    for name in OF_THE_ROOT:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, PYTHON_API, content="".join(_python_api())))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    if page.file.src_uri in OF_THE_ROOT:
        return _TO_DOCS.sub("](", markdown)
    return _TO_ROOT.sub(r"](\1\2)", markdown)


def _python_api() -> Iterator[str]:
    """All that `import penstock` offers."""
    yield "# Python API\n\nGenerated from the code. [Jobs](jobs.md) explains how to use it.\n\n"
    for name in dir(penstock):
        found = getattr(penstock, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            yield f"::: {found.__module__}.{found.__qualname__}\n\n"
