"""The wheel and the sdist hold all that they should, nothing else, and the same bytes again."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path

from penstock.version import __version__
from tests.packages.conftest import Packages, build, copy_tree, tracked_files

NAME = f"penstock_queue-{__version__}"
# What only people who work in a clone need.
NOT_IN_SDIST = (".ci/", ".editorconfig", ".github/")


def test_the_wheel_has_every_file_of_the_package_and_its_metadata_only(packages: Packages) -> None:
    names = set(zipfile.ZipFile(packages.wheel).namelist())
    metadata = {name for name in names if name.startswith(f"{NAME}.dist-info/")}

    package = {
        name.removeprefix("src/") for name in tracked_files() if name.startswith("src/penstock/")
    }
    assert names - metadata == package
    assert {name.rpartition("/")[2] for name in metadata} == {
        "LICENSE",
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
    }


def test_the_sdist_has_every_file_of_the_repository_that_builds_and_tests(
    packages: Packages,
) -> None:
    with tarfile.open(packages.sdist) as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}

    expected = {name for name in tracked_files() if not name.startswith(NOT_IN_SDIST)}
    assert names == expected | {"PKG-INFO"}


def test_another_clone_builds_the_same_bytes(packages: Packages, tmp_path: Path) -> None:
    """The wheel there is built from the tree, the first one was built from the sdist."""
    tree = copy_tree(tmp_path / "clone")

    again = build(tree, tmp_path / "dist", "--wheel", "--sdist")

    assert again.wheel.read_bytes() == packages.wheel.read_bytes()
    assert again.sdist.read_bytes() == packages.sdist.read_bytes()
