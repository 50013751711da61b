"""Every import of the console's modules names a file; only a browser would notice otherwise."""

import re
from pathlib import Path

from tests.architecture.source import PACKAGE, files, plant

_IMPORT = re.compile(r"""\b(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")
_URL = re.compile(r"""new URL\(["']([^"']+)["'], import\.meta\.url\)""")


def test_every_import_of_the_console_names_a_file():
    assert unresolved(PACKAGE) == []


def test_a_planted_import_of_no_file_is_found(tmp_path):
    plant(tmp_path, "edge/console/static/kit/dom.js", "")
    package = plant(
        tmp_path,
        "edge/console/static/pages/queue.js",
        'import { h } from "../kit/dom.js";\nimport { get } from "../api.js";\n'
        'const icon = new URL("icon.svg", import.meta.url);\n',
    )

    assert unresolved(package) == [
        "edge/console/static/pages/queue.js: ../api.js",
        "edge/console/static/pages/queue.js: icon.svg",
    ]


def unresolved(package: Path) -> list[str]:
    return [
        f"{place}: {target}"
        for place, path in files(package, ".js")
        for pattern in (_IMPORT, _URL)
        for target in pattern.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).is_file()
    ]
