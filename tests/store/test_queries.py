"""The named queries: shared by default, and an override has the same interface."""

import ast
import itertools
import re
from importlib import resources

import pytest

from penstock.store.queries import MESSAGE_COLUMNS, Queries
from tests.architecture.source import PACKAGE

DIALECTS = ("sqlite", "postgres", "mariadb")
SQL = resources.files("penstock.store").joinpath("sql")

NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
COMMENT = re.compile(r"--[^\n]*")
MARK = re.compile(r"\{[\w:.]+\}")
# Not parameters: quoted text, a column of JSON, and the second colon of a cast.
PARAMETER = re.compile(
    r"'(?:[^']|'')*'|\{json:[\w.]+\}|\{(?:found|slot):[^}]*\}"
    r"|(?<!:):([a-z_]\w*)|\{(?:list|slots|table):(\w+)[^}]*\}|<<each (\w+):"
)
EACH = "each"  # in an arm of MariaDB: one member of a list


def load(folder: str) -> dict[str, str]:
    """{"messages.claim": text} for every query of a folder."""
    texts = {}
    for file in SQL.joinpath(folder).iterdir():
        _, *parts = NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            texts[f"{file.name.removesuffix('.sql')}.{name}"] = text.strip()
    return texts


def statement(text: str) -> str:
    return COMMENT.sub("", text).strip()


def parameters(text: str) -> set[str]:
    found = PARAMETER.findall(statement(text))
    return {name for names in found for name in names if name} - {EACH}


COMMON = load("common")
OWN = {dialect: load(dialect) for dialect in DIALECTS}
OVERRIDES = [(d, name) for d in DIALECTS for name in sorted(OWN[d]) if name in COMMON]


@pytest.mark.parametrize(("dialect", "name"), OVERRIDES)
def test_an_override_takes_the_same_parameters_as_what_it_replaces(dialect, name):
    ours, common = OWN[dialect][name], COMMON[name]
    if not statement(ours) or not statement(common):
        return  # an empty statement takes no parameters

    assert parameters(ours) == parameters(common)


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(DIALECTS, 2)))
def test_queries_that_two_dialects_override_take_the_same_parameters(one, other):
    differing = {
        name
        for name in OWN[one].keys() & OWN[other].keys()
        if statement(OWN[one][name])
        and statement(OWN[other][name])
        and name not in COMMON
        and parameters(OWN[one][name]) != parameters(OWN[other][name])
    }

    assert differing == set()


@pytest.mark.parametrize("folder", ["common", *DIALECTS])
def test_every_query_says_what_it_is_for(folder):
    silent = [name for name, text in load(folder).items() if not text.startswith("-- ")]

    assert silent == []


@pytest.mark.parametrize("folder", ["common", *DIALECTS])
def test_no_name_is_given_twice_in_a_file(folder):
    for file in SQL.joinpath(folder).iterdir():
        names = NAME.findall(file.read_text(encoding="utf-8"))
        assert len(names) == len(set(names)), file.name


def uses() -> dict[str, set[str]]:
    """{module: names of queries, or beginnings of names} in the code of the store."""
    found: dict[str, set[str]] = {}
    for path in (PACKAGE / "store").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        texts = {text for text in constants if isinstance(text, str)}
        full = {text for text in texts if re.fullmatch(r"\w+\.\w*", text)}
        # A SelectedEntity names the conditions of its queries without the noun.
        full |= {f"{noun}.{text}" for noun in nouns(tree) for text in {"find", *texts}}
        found[str(path.relative_to(PACKAGE / "store"))] = full
    return found


def nouns(tree: ast.Module) -> list[str]:
    """The values of `noun = "…"` in the classes of a module."""
    return [
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == ["noun"]
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def is_named(name: str, texts: set[str]) -> bool:
    starts = {text for text in texts if text.endswith((".", "_"))}
    return name in texts or any(name.startswith(start) for start in starts)


def test_a_query_of_one_dialect_is_used_by_that_dialects_modules_only():
    everywhere = uses()
    del everywhere["maintenance/promote.py"]  # it has both dialects
    for dialect in DIALECTS:
        others = set().union(*(OWN[other] for other in DIALECTS if other != dialect))
        for name in OWN[dialect].keys() - COMMON.keys() - others:
            if name.startswith("promote."):
                continue
            askers = [module for module, texts in everywhere.items() if name in texts]
            assert askers, name
            assert all(dialect in module or "damage/" in module for module in askers), (
                name,
                askers,
            )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_query_is_used(dialect):
    texts = set().union(*uses().values())

    unused = [name for name in Queries(dialect).names() if not is_named(name, texts)]

    assert unused == []


def test_marks_are_filled_in():
    queries = Queries("sqlite")

    text = queries.text("messages.bodies", day=20_000)

    assert "body_20000" in text
    assert "json_each(:message_nos)" in text
    assert not MARK.search(text)
    assert ", ".join(MESSAGE_COLUMNS) in queries.text("messages.by_id")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_mark_is_left_over(dialect):
    queries = Queries(dialect)
    marks = {
        "day": 1,
        "to_day": 2,
        "conditions": "",
        "table": "t",
        "names": "a",
        "column": "a",
        "marks": "?",
    }
    marks |= {"lock": "", "columns": "a", "order": "a", "begin": "", "result": "NULL"}
    marks |= {"row": "a", "arrays": "a", "params": "a"}
    marks |= dict.fromkeys(("ready", "locked", "wanted", "condition", "limit"), "a")

    left = [name for name in queries.names() if MARK.search(queries.text(name, **marks))]

    assert left == []
