"""SQL lives in .sql files, and those never ask the database for the time."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, files, plant, trees

# queries.py fills marks in the .sql files with each dialect's spelling of a list, and
# mariadb/dialect.py translates the common ones.
# Two files show users statements for the lake, which has no store.
HOME_OF_SQL = (
    *("store/sql/", "store/migrations/", "store/queries.py", "store/mariadb/dialect.py"),
    *("api/lake.py", "edge/cli/operate/sql.py"),
)
STATEMENT = (
    r"SELECT\b.+?\bFROM\b|INSERT\s+INTO\b|UPDATE\b.+?\bSET\b|DELETE\s+FROM\b"
    r"|(?:CREATE|DROP|ALTER)\s+(?:TABLE|INDEX|UNIQUE|TRIGGER|FUNCTION|VIEW)\b"
)
# In capitals anywhere in a text; in small letters, which may be prose, only where the text begins.
SQL_TEXT = re.compile(rf"\b(?:{STATEMENT})|\A\s*(?i:{STATEMENT})", re.DOTALL)
SQL_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
SQL_CLOCK = re.compile(
    r"\bnow\s*\(|\bCURRENT_(?:TIMESTAMP|TIME|DATE)\b|\bLOCALTIME(?:STAMP)?\b|\bunixepoch\s*\(\s*\)"
    r"|\b(?:clock|statement|transaction)_timestamp\b|\btimeofday\b|'now'"
    r"|\b(?:SYSDATE|UNIX_TIMESTAMP|CURDATE|UTC_TIMESTAMP)\b",
    re.IGNORECASE,
)


def test_no_sql_outside_its_folders():
    assert stray_sql(PACKAGE) == []


def test_no_sql_asks_the_database_for_the_time():
    assert clocks_in_sql(PACKAGE) == []


@pytest.mark.parametrize(
    "leak",
    [
        'query = "SELECT id FROM message"',
        'query = """\n  SELECT id\n    FROM message\n"""',
        'query = "select id from message"',
        'query = f"DELETE FROM {table}"',
        'query = f"UPDATE {table} SET state = 1"',
        'query = "INSERT " "INTO message (id) VALUES (1)"',
        'query = "WITH due AS (SELECT id FROM message) SELECT 1"',
        'query = "CREATE TABLE message (id INTEGER)"',
    ],
)
def test_planted_sql_is_found(tmp_path, leak):
    assert stray_sql(plant(tmp_path, "services/messages.py", leak))


def test_prose_is_not_sql(tmp_path):
    package = plant(
        tmp_path,
        "services/messages.py",
        '"""SELECT * FROM message is what this avoids."""\n'
        'help = "Choose messages: select them from the list, update and set them."',
    )

    assert stray_sql(package) == []


@pytest.mark.parametrize("place", ["store/sql/loader.py", "store/migrations/runner.py"])
def test_sql_is_at_home_in_its_folders(tmp_path, place):
    assert stray_sql(plant(tmp_path, place, 'query = "SELECT id FROM message"')) == []


@pytest.mark.parametrize(
    "leak",
    [
        "SELECT now()",
        "SELECT NOW ()",
        "UPDATE message SET due_at = CURRENT_TIMESTAMP",
        "SELECT clock_timestamp()",
        "SELECT UNIX_TIMESTAMP(SYSDATE(3))",
        "SELECT datetime('now')",
        "SELECT strftime('%s', 'now')",
        "SELECT unixepoch()",
    ],
)
def test_a_planted_clock_is_found_in_sql(tmp_path, leak):
    assert clocks_in_sql(plant(tmp_path, "store/sql/common/message.sql", leak))


def test_clock_sql_parameters_and_comments_may_contain_now(tmp_path):
    package = plant(tmp_path, "store/sql/postgres/clock.sql", "SELECT clock_timestamp()")
    package = plant(
        tmp_path, "store/sql/common/message.sql", "-- never now()\nSELECT :now, :due_at"
    )

    assert clocks_in_sql(package) == []


def stray_sql(package: Path) -> list[str]:
    return [
        f"{place}:{line}: {text.strip()[:60]}"
        for place, tree in trees(package)
        if not place.startswith(HOME_OF_SQL)
        for line, text in _texts(tree)
        if SQL_TEXT.search(text)
    ]


def clocks_in_sql(package: Path) -> list[str]:
    return [
        f"{place}: {found.group()}"
        for place, path in files(package, ".sql")
        if path.name != "clock.sql"
        for found in SQL_CLOCK.finditer(SQL_COMMENT.sub("", path.read_text(encoding="utf-8")))
    ]


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """String values; docstrings, being statements of their own, are none."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(p.value) if isinstance(p, ast.Constant) else "?" for p in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in prose:
            yield node.lineno, str(node.value)
