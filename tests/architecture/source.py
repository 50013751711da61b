"""The package read as text and as syntax trees; nothing of it is imported."""

import ast
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "penstock"


def files(package: Path, *suffixes: str) -> Iterator[tuple[str, Path]]:
    """Pairs of a place such as "edge/server/app.py" and its path."""
    for path in sorted(package.rglob("*")):
        if path.suffix in suffixes and path.is_file():
            yield path.relative_to(package).as_posix(), path


def trees(package: Path) -> Iterator[tuple[str, ast.Module]]:
    for place, path in files(package, ".py"):
        yield place, _parsed(place, path.read_text(encoding="utf-8"))


@cache
def _parsed(place: str, text: str) -> ast.Module:
    return ast.parse(text, filename=place)


@cache
def names_used(tree: ast.Module) -> list[tuple[int, str]]:
    """Line and full name of all that is imported or mentioned, whatever it was imported as.

    `from time import monotonic as tick` gives "time.monotonic", and so does every later `tick`.
    """
    return list(_names_used(tree))


def _names_used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    meaning = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias, name in _imported_by(node):
                meaning[alias] = name
                yield node.lineno, name
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
            head, _, rest = dotted.partition(".")
            full = meaning.get(head, head)
            yield node.lineno, f"{full}.{rest}" if rest else full


def public_classes(package: Path) -> Iterator[tuple[str, int, str]]:
    """Place, line and name of each class at the top of a module."""
    for place, tree in trees(package):
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield place, node.lineno, node.name


def uses_of(
    banned: Container[str], package: Path, *, allowed_in: Container[str] = ()
) -> Iterator[str]:
    """Such as "runtime/reaper.py:12: time.time"."""
    for place, tree in trees(package):
        if place not in allowed_in:
            found = {(line, name) for line, name in names_used(tree) if name in banned}
            yield from (f"{place}:{line}: {name}" for line, name in sorted(found))


def plant(package: Path, place: str, text: str) -> Path:
    """Writes a file into a make-believe package and returns that package."""
    path = package / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return package


def _imported_by(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for name in node.names:
        if isinstance(node, ast.ImportFrom):
            yield name.asname or name.name, f"{node.module}.{name.name}"
        elif name.asname:
            yield name.asname, name.name
        else:
            head = name.name.partition(".")[0]
            yield head, head


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
