"""The words of the style guide that can be checked by a program."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, files, public_classes, trees

# Parts of names that say neither what is done nor what comes back, or that were renamed.
NAMES = ("told", "in_turn", "estate", "heir", "last_words", "goodbye", "errand")
# Records of the wire: ours, SQS's and Izenda's, each named by its protocol.
WIRE = ("api/", "edge/sqs/wire/", "edge/izenda/wire", "edge/sns/wire")
# File names that explain nothing.
MODULES = frozenset(
    [
        "nouns",
        "past",
        "books",
        "strangers",
        "journeys",
        "callers_door",
        "tx",
        "changes",
        "moments",
        "aside",
        "asking",
        "foreign",
        "backing",
        "outfit",
        "words",
        "ending",
    ]
)
PHRASES = (
    r"the seeds?(?:'s)?",
    r"row \d+",
    r"whoever",
    r"(?<!there )is no(?= (?!longer|more than|less than)\w)",
    r"(?<!there )(?-i:is none)",
    r"a part more",
    r"(?:no|some|every)body",
    r"(?:go|goes|went) on",
    r"(?:is|are|be) told(?! apart)",
    r"in vain",
    r"lets? go(?! to)",
    r"letting go",
    r"(?<!there )are no(?= (?!longer|more)\w)",
    r"tells",
    r"comes? again",
    r"(?:wait|waits|waiting|stand|stands|next|first|last|place) in line",
)
PROSE = (".py", ".sql", ".md", ".js", ".html", ".toml")
PLACES = ("src", "tests", "docs", "bench")
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Makefile",
    "pyproject.toml",
)
# Migrations stay as they were applied; the rest names what it bans.
NOT_READ = re.compile(r"/migrations/|/architecture/(test_)?language\.py$")

_PHRASE = re.compile(rf"\b(?:{'|'.join(PHRASES)})(?!\w)", re.IGNORECASE)
_NAME = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(NAMES)})(?![A-Za-z0-9])")
_UNIX_USER = re.compile(r"""getpwnam\("nobody"\)""")

Offender = tuple[str, int, str]
"""File, line, and what is wrong there."""


def offenders(root: Path = ROOT) -> Iterator[Offender]:
    for place, path in texts(root):
        text = path.read_text(encoding="utf-8")
        yield from ((place, line, f'"{said}"') for line, said in phrases(text))
        if path.suffix == ".py":
            yield from ((place, line, f"the name {name}") for line, name in names(text))
            yield from ((place, 1, f"a module called {name}") for name in _module_names(place))
    package = root / PACKAGE.relative_to(ROOT)
    yield from shared_classes(package, root)
    yield from renamed_twins(package, root)


def texts(root: Path) -> Iterator[tuple[str, Path]]:
    found = [path for name in PLACES for _, path in files(root / name, *PROSE)]
    for path in [*found, *(root / name for name in PAGES)]:
        place = path.relative_to(root).as_posix()
        if path.is_file() and not NOT_READ.search(f"/{place}"):
            yield place, path


def phrases(text: str) -> Iterator[tuple[int, str]]:
    """In prose and in names alike: `whoever_waits` is the phrase, too."""
    for number, line in enumerate(text.splitlines(), start=1):
        spoken = _UNIX_USER.sub("", line).replace("_", " ")
        yield from ((number, found.group().strip()) for found in _PHRASE.finditer(spoken))


def names(text: str) -> Iterator[tuple[int, str]]:
    if not _NAME.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and _NAME.search(token.string):
            yield token.start[0], token.string


def shared_classes(package: Path, root: Path) -> Iterator[Offender]:
    """Public classes of one name; wire records may have the name of what they show."""
    homes: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    for place, line, name in public_classes(package):
        wire = next((start for start in WIRE if place.startswith(start)), "")
        homes[name, wire].append((place, line))
    for (name, _), found in sorted(homes.items()):
        for place, line in found if len(found) > 1 else ():
            path = (package / place).relative_to(root).as_posix()
            yield path, line, f"one of {len(found)} public classes called {name}"


def renamed_twins(package: Path, root: Path) -> Iterator[Offender]:
    """Of classes with one name, a module names one by its module and not by an alias."""
    counts = Counter(name for _, _, name in public_classes(package))
    for place, tree in trees(package):
        path = (package / place).relative_to(root).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for name in node.names:
                    if counts[name.name] > 1 and name.asname not in (None, name.name):
                        yield path, node.lineno, f"{name.name} as {name.asname}"


def _module_names(place: str) -> frozenset[str]:
    parts = place.removesuffix(".py").split("/")
    own = parts[-2] if parts[-1] == "__init__" else parts[-1]
    return MODULES & {own.removeprefix("test_")}
