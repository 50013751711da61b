"""Workers that programs of the user's count and scale: for platforms that nobody has thought of."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO

import msgspec

from penstock.domain.errors import FleetsRefused, ReplicasUnavailable
from penstock.domain.scaling.fleet import CommandSpec
from penstock.domain.scaling.recommendation import Replicas

NAMES = ("fleet", "wanted", "current", "change")
_FIELD = re.compile(r"\{([a-z]+)\}")  # other braces are the program's own
_MOST_CHARS = 300
_MOST_BYTES = 64 * 1024


class _Counted(msgspec.Struct, forbid_unknown_fields=True):
    """What a count may print in place of a number."""

    running: int
    starting: int = 0
    requested: int | None = None


class CommandReplicas:
    def __init__(self, fleet: str, spec: CommandSpec) -> None:
        """Raises FleetsRefused if a template asks for what is not known."""
        self._fleet = fleet
        self._spec = spec
        self._wanted: int | None = None  # by the last scale that worked
        for name, words, known in (("scale", spec.scale, NAMES), ("count", spec.count, NAMES[:1])):
            _check(f"fleets.{fleet}.replicas.{name}", words, known)

    def count(self, *, now: int) -> Replicas:
        said = self._run(self._spec.count, {"fleet": self._fleet}).strip()
        try:
            told = msgspec.json.decode(said, type=int | _Counted)
        except msgspec.MsgspecError:
            raise self._trouble(
                f"{self._spec.count[0]} printed {said[:_MOST_CHARS]!r}, and no number"
            ) from None
        counted = _Counted(told) if isinstance(told, int) else told
        requested = counted.requested
        if requested is None:
            total = counted.running + counted.starting
            requested = total if self._wanted is None else self._wanted
        return Replicas(running=counted.running, starting=counted.starting, requested=requested)

    def scale_to(self, wanted: int, *, now: int) -> None:
        current = self.count(now=now).total
        told = {"wanted": wanted, "current": current, "change": wanted - current}
        self._run(self._spec.scale, {"fleet": self._fleet, **told})
        self._wanted = wanted

    def tend(self, *, now: int) -> None:
        """That is for whoever the command speaks to."""

    def close(self) -> None:
        """They stay: they were not started here."""

    def _run(self, words: Sequence[str], told: Mapping[str, object]) -> str:
        """What it prints.  Files, not pipes: what it leaves running would hold those open."""
        command = [_FIELD.sub(lambda field: str(told[field[1]]), word) for word in words]
        with TemporaryFile() as out, TemporaryFile() as err:
            code = self._code(command, out, err)
            said, complaint = _text(out), _text(err)
        if code:
            why = _last_line(complaint) or _last_line(said) or "without a word"
            raise self._trouble(f"{command[0]} ended with {code}: {why}")
        return said

    def _code(self, command: list[str], out: IO[bytes], err: IO[bytes]) -> int:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # so that what it starts itself can be ended with it
            )
        except (OSError, ValueError) as error:
            raise self._trouble(f"{command[0]} cannot be run: {error}") from error
        try:
            return process.wait(self._spec.timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise self._trouble(
                f"{command[0]} took longer than {self._spec.timeout_ms} ms and was killed"
            ) from None

    def _trouble(self, why: str) -> ReplicasUnavailable:
        return ReplicasUnavailable(f"fleet {self._fleet}: {why}")


def _check(place: str, words: Sequence[str], known: Sequence[str]) -> None:
    for word in words:
        for name in _FIELD.findall(word):
            if name not in known:
                may = ", ".join(f"{{{each}}}" for each in known)
                raise FleetsRefused(f"{place}: {{{name}}} is not known; there is {may}")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_BYTES).decode(errors="replace")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_MOST_CHARS] if lines else ""
