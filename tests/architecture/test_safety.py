"""Nothing turns input into running code."""

import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, files, plant, uses_of

UNSAFE = {
    *("pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"),
    *(f"pickle.{name}" for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler")),
    *(f"yaml.{name}" for name in ("load", "load_all", "unsafe_load", "full_load")),
    *("eval", "exec", "builtins.eval", "builtins.exec"),
    "os.system",
}


# Ways to have a text read as markup or as a script; pages are made with dom.js.
UNSAFE_IN_PAGES = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|createContextualFragment"
    r"|DOMParser"
    r"|\beval\(|new Function|javascript:|\.srcdoc|set(?:Timeout|Interval)\(\s*[\"'`]"
)


def test_no_page_of_the_console_reads_a_text_as_markup():
    assert unsafe_in_pages(PACKAGE) == []


@pytest.mark.parametrize(
    "leak",
    [
        "cell.innerHTML = body",
        "cell.insertAdjacentHTML('beforeend', body)",
        "document.write(body)",
        "new DOMParser().parseFromString(body, 'text/html')",
        "new Function(body)()",
        "setTimeout('go()', 10)",
    ],
)
def test_a_planted_leak_in_a_page_is_found(tmp_path, leak):
    assert unsafe_in_pages(plant(tmp_path, "edge/console/static/pages/a.js", leak))


def test_no_pickle_no_eval_no_unsafe_loading():
    assert unsafe(PACKAGE) == []


@pytest.mark.parametrize(
    "leak",
    [
        "import pickle",
        "from pickle import loads",
        "def load(text): return eval(text)",
        "exec('1')",
        "import yaml\nyaml.load(text)",
    ],
)
def test_planted_unsafe_code_is_found(tmp_path, leak):
    assert unsafe(plant(tmp_path, "client/codec.py", leak))


def test_executing_a_statement_of_the_store_is_safe(tmp_path):
    package = plant(tmp_path, "store/database.py", "def run(db): return db.execute(sql), db.exec()")

    assert unsafe(package) == []


def unsafe(package: Path) -> list[str]:
    return list(uses_of(UNSAFE, package))


def unsafe_in_pages(package: Path) -> list[str]:
    return [
        f"{place}: {found.group()}"
        for place, path in files(package, ".js", ".html")
        for found in UNSAFE_IN_PAGES.finditer(path.read_text(encoding="utf-8"))
    ]
