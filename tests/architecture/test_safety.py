"""Nothing that turns bytes from outside into running code."""

from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, plant, uses_of

UNSAFE = {
    *("pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve"),
    *(f"pickle.{name}" for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler")),
    *(f"yaml.{name}" for name in ("load", "load_all", "unsafe_load", "full_load")),
    *("eval", "exec", "builtins.eval", "builtins.exec"),
    "os.system",
}


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
