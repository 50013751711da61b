"""Files and folders stay small, and the version is the same wherever it is written."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

from tests.architecture.source import PACKAGE, ROOT, files, plant

MAX_LINES = 400
MAX_MODULES = 20
FIELD, MAX_MODULES_WITH_FIELD = "retries_timeouts", 8  # a field of messages, as an example
GENERATED = "store/schema/"


def test_no_file_is_too_long_to_be_about_one_thing():
    assert too_long(PACKAGE) == []


def test_a_planted_long_file_is_found(tmp_path):
    package = plant(tmp_path, "services/messages.py", "x = 1\n" * (MAX_LINES + 1))

    assert too_long(package) == [f"services/messages.py: {MAX_LINES + 1} lines"]


def test_no_folder_has_too_many_modules_to_find_one_in():
    assert too_full(PACKAGE) == []


def test_a_planted_full_folder_is_found(tmp_path):
    for number in range(MAX_MODULES + 1):
        package = plant(tmp_path, f"services/part_{number}.py", "")
    for name in ("services/__init__.py", "services/inner/one.py"):
        plant(tmp_path, name, "")

    assert too_full(package) == [f"services: {MAX_MODULES + 1} modules"]


def test_a_field_of_messages_is_named_in_few_modules():
    found = [
        place
        for place, path in files(PACKAGE, ".py")
        if re.search(rf"\b{FIELD}\b", path.read_text(encoding="utf-8"))
    ]

    assert len(found) <= MAX_MODULES_WITH_FIELD, found


def test_the_version_is_in_one_file_and_the_changelogs_top_entry():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()

    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/penstock/version.py"
    assert own_version(PACKAGE) == [top_entry(changelog)]


def test_the_top_entry_is_the_first_with_a_number():
    changelog = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n\n## [1.1.0]\n"

    assert top_entry(changelog) == "1.2.0"


def too_long(package: Path) -> list[str]:
    sizes = {
        place: len(path.read_text(encoding="utf-8").splitlines())
        for place, path in files(package, ".py", ".sql", ".html", ".js", ".css")
        if not place.startswith(GENERATED)
    }
    return [f"{place}: {lines} lines" for place, lines in sizes.items() if lines > MAX_LINES]


def too_full(package: Path) -> list[str]:
    found = Counter(
        path.parent.relative_to(package).as_posix()
        for place, path in files(package, ".py", ".js")
        if path.name != "__init__.py"
    )
    return [f"{place}: {count} modules" for place, count in found.items() if count > MAX_MODULES]


def top_entry(changelog: str) -> str:
    headings = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]?", changelog, re.MULTILINE)
    return str(headings[0])


def own_version(package: Path) -> list[str]:
    """`__version__` of the package, read and not imported; nothing while there is none."""
    start = package / "version.py"
    text = start.read_text(encoding="utf-8") if start.exists() else ""
    return [
        str(ast.literal_eval(node.value))
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        if "__version__" in {ast.unparse(target) for target in node.targets}
    ]
