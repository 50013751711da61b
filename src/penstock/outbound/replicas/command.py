"""Replicas that the user's own commands count and scale, for any other platform."""

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
_MAX_CHARS = 300
_MAX_BYTES = 64 * 1024


class _Counted(msgspec.Struct, forbid_unknown_fields=True):
    """What a count command may print instead of a number."""

    running: int
    starting: int = 0
    requested: int | None = None


class CommandReplicas:
    def __init__(self, fleet: str, spec: CommandSpec) -> None:
        """Raises FleetsRefused if a command contains an unknown {field}."""
        self._fleet = fleet
        self._spec = spec
        self._wanted: int | None = None  # as of the last successful scale
        for name, words, known in (("scale", spec.scale, NAMES), ("count", spec.count, NAMES[:1])):
            _check(f"fleets.{fleet}.replicas.{name}", words, known)

    def count(self, *, now: int) -> Replicas:
        output = self._run(self._spec.count, {"fleet": self._fleet}).strip()
        try:
            parsed = msgspec.json.decode(output, type=int | _Counted)
        except msgspec.MsgspecError:
            raise self._trouble(
                f"{self._spec.count[0]} printed {output[:_MAX_CHARS]!r}, which is not a number"
            ) from None
        counted = _Counted(parsed) if isinstance(parsed, int) else parsed
        requested = counted.requested
        if requested is None:
            total = counted.running + counted.starting
            requested = total if self._wanted is None else self._wanted
        return Replicas(running=counted.running, starting=counted.starting, requested=requested)

    def scale_to(self, wanted: int, *, now: int) -> None:
        current = self.count(now=now).total
        fields = {"wanted": wanted, "current": current, "change": wanted - current}
        self._run(self._spec.scale, {"fleet": self._fleet, **fields})
        self._wanted = wanted

    def maintain(self, *, now: int) -> None:
        """Does nothing: the platform behind the command restarts workers."""

    def close(self) -> None:
        """Does nothing: the workers were not started here."""

    def _run(self, words: Sequence[str], fields: Mapping[str, object]) -> str:
        """Returns the output.  Files, not pipes: a background process would keep a pipe open."""
        command = [_FIELD.sub(lambda field: str(fields[field[1]]), word) for word in words]
        with TemporaryFile() as out, TemporaryFile() as err:
            code = self._code(command, out, err)
            output, errors = _text(out), _text(err)
        if code:
            why = _last_line(errors) or _last_line(output) or "no output"
            raise self._trouble(f"{command[0]} exited with {code}: {why}")
        return output

    def _code(self, command: list[str], out: IO[bytes], err: IO[bytes]) -> int:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,  # so that its child processes can be killed with it
            )
        except (OSError, ValueError) as error:
            raise self._trouble(f"{command[0]} cannot be started: {error}") from error
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
                allowed = ", ".join(f"{{{each}}}" for each in known)
                raise FleetsRefused(f"{place}: {{{name}}} is not known; use {allowed}")


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_BYTES).decode(errors="replace")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:_MAX_CHARS] if lines else ""
