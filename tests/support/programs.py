"""Programs that tests need from the machine; taken from Debian where they are missing."""

from __future__ import annotations

from tests.support import debian


def need(program: str, package: str | None = None) -> str:
    """The program's path.  Missing and not to be had is a failure, never a skip."""
    found = debian.find([program])
    if found is None:
        debian.install(package or program)
        found = debian.find([program])
    assert found, (
        f"this test needs {program}: install it (Debian: apt-get install {package or program})"
    )
    return str(found)
