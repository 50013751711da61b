"""Migrations that have landed are neither edited, renumbered nor removed.

Stores keep the checksum of each migration that they have applied and refuse to open when it is not
shipped any more.  `migrations.sha256` has the digest of every migration; new ones are added with

    python -m tests.architecture.test_migrations
"""

from hashlib import sha256
from pathlib import Path

from tests.architecture.source import PACKAGE

FOLDER = PACKAGE / "store" / "migrations"
MANIFEST = Path(__file__).with_name("migrations.sha256")


def test_landed_migrations_are_as_they_were():
    assert broken(FOLDER, manifest_text=MANIFEST.read_text()) == []


def test_every_migration_is_in_the_manifest():
    assert new_lines(FOLDER, manifest_text=MANIFEST.read_text()) == [], __doc__


def test_the_databases_have_migrations_up_to_the_same_number():
    last = {folder.name: max(path.name[:4] for path in folder.glob("*.sql"))
            for folder in FOLDER.iterdir()}  # fmt: skip

    assert len(set(last.values())) == 1, last


def test_an_edit_a_new_number_and_a_removal_are_found(tmp_path):
    folder = tmp_path / "sqlite"
    folder.mkdir()
    for name in ("0001_core.sql", "0002_more.sql", "0003_last.sql"):
        (folder / name).write_text(f"-- {name}\n")
    landed = "".join(new_lines(tmp_path, manifest_text=""))
    assert broken(tmp_path, manifest_text=landed) == []

    (folder / "0001_core.sql").write_text("-- edited\n")
    (folder / "0002_more.sql").rename(folder / "0004_more.sql")
    (folder / "0003_last.sql").unlink()

    assert broken(tmp_path, manifest_text=landed) == [
        "sqlite/0001_core.sql was edited",
        "sqlite/0002_more.sql is gone",
        "sqlite/0003_last.sql is gone",
    ]
    assert len(new_lines(tmp_path, manifest_text=landed)) == 1


def broken(folder: Path, *, manifest_text: str) -> list[str]:
    found = []
    for place, digest in landed_digests(manifest_text).items():
        path = folder / place
        if not path.exists():
            found.append(f"{place} is gone")
        elif digest_of(path) != digest:
            found.append(f"{place} was edited")
    return found


def new_lines(folder: Path, *, manifest_text: str) -> list[str]:
    """What the manifest lacks, in the form of sha256sum."""
    landed = landed_digests(manifest_text)
    places = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.sql"))]
    return [f"{digest_of(folder / p)}  {p}\n" for p in places if p not in landed]


def landed_digests(text: str) -> dict[str, str]:
    pairs = (line.split("  ") for line in text.splitlines())
    return {place: digest for digest, place in pairs}


def digest_of(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    known = MANIFEST.read_text() if MANIFEST.exists() else ""
    MANIFEST.write_text(known + "".join(new_lines(FOLDER, manifest_text=known)))
