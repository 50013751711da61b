"""Programs that tests need from the machine; installed from Debian if missing."""

from __future__ import annotations

from tests.support import debian


def need(program: str, package: str | None = None) -> str:
    """Return the program's path.  If it cannot be installed, the test fails, never skips."""
    found = debian.find([program])
    if found is None:
        debian.install(package or program)
        found = debian.find([program])
    assert found, (
        f"this test needs {program}: install it (Debian: apt-get install {package or program})"
    )
    return str(found)
