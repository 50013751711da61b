"""Distinguishes a damaged log from one that ends where the power was cut.

A power cut may destroy any part of what was not synced: the commit that was being written, and
before it at most `MAX_UNSYNCED` commits of claims and extensions, which are not synced one by one.
That is an ordinary end: none of it was acknowledged as durable.  It is damage, and acknowledged
commits are lost,

- if the first frame that SQLite rejects differs from what was written by one bit, or
- if a commit behind it is known to be synced: it sent messages, and another one follows, or
- if more commits follow it than can be unsynced, or
- if the header is wrong: it is synced before the first frame is written.

A commit that sends messages writes the page that holds the last message number.
"""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import closing
from pathlib import Path

import msgspec

from penstock.domain.errors import StoreDamaged
from penstock.store.damage.log_frames import HEADER_BYTES, Frame, LogFile
from penstock.store.sqlite.log_sync import log_of

_log = logging.getLogger("penstock.store")

SYNC_AFTER = 16  # commits without a sync, per process, before the next one is synced
MAX_UNSYNCED = 4 * SYNC_AFTER  # with four processes that only claim and extend


class LogEnd(msgspec.Struct, frozen=True):
    """The first frame that SQLite rejects, and what follows it."""

    offset: int
    frames: int  # of this log, from there on
    commits: int  # … that SQLite does not read
    is_damage: bool


def find_log_end(
    path: Path, accepted: int = 0, *, numbers_page: int | None = None
) -> LogEnd | None:
    """The part of a store's log that SQLite will not read; None if it has no commit.

    `accepted`: the number of frames that SQLite is known to read; the others are verified here,
    which takes 0.2 ms each.  `numbers_page`: the page that every send writes, if all are synced.
    """
    log = log_of(path)
    if not log.exists() or log.stat().st_size <= HEADER_BYTES:
        return None
    try:
        file = LogFile(log)
    except ValueError:
        # Not even its page size is known; SQLite ignores the whole log.
        return LogEnd(offset=0, frames=0, commits=0, is_damage=True)
    with closing(file):
        if file.header.is_damaged:
            return _end(file, 1, [], is_damage=True)
        return _find_end(file, accepted, numbers_page)


def refuse_damaged_log(path: Path, end: LogEnd | None) -> None:
    if end is not None and end.is_damage:
        raise StoreDamaged(f"{describe_damage(path, end)}. {recovery_advice()}")


def log_dropped_end(path: Path, end: LogEnd) -> None:
    """Log an ordinary end; if several commits are dropped, keep a copy for an investigation."""
    if end.commits == 1:
        # A kill between the two writes of a frame leaves a commit frame without its page.
        _log.warning("an unfinished commit at the end of the log was dropped")
        return
    aside = copy_log(log_of(path), "unfinished")
    _log.warning(
        "dropped %d commits at the end of the log that were never synced; the log as it was: %s",
        end.commits,
        aside,
    )


def copy_log(log: Path, kind: str) -> Path:
    """Copy and sync it: its end may be dropped from the log afterwards."""
    aside = log.with_name(f"{log.name}.{kind}-{log.stat().st_mtime_ns}")
    shutil.copyfile(log, aside)
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.chmod(log.stat().st_mode & 0o777)
    return aside


def kept_logs(path: Path, kind: str) -> list[Path]:
    """Copies of logs that were made before their ends were dropped."""
    return sorted(path.parent.glob(f"{log_of(path).name}.{kind}-*"))


def describe_damage(path: Path, end: LogEnd) -> str:
    behind = f"{end.commits} commits in {end.frames} frames" if end.frames else "all of it"
    return (
        f"the write-ahead log {log_of(path)} is damaged at byte {end.offset}: SQLite cannot read "
        f"{behind} from there on"
    )


def recovery_advice() -> str:
    return (
        "Restore a backup, or copy what can be read into a new store with "
        "`penstock doctor --salvage NEW_STORE`, or continue without what follows the damage with "
        "`penstock doctor --accept-loss`"
    )


def _find_end(file: LogFile, accepted: int, numbers_page: int | None) -> LogEnd | None:
    seed = file.seed(accepted + 1)
    for no in range(accepted + 1, file.count + 1):
        frame = file.frame(no)
        if not file.is_sound(frame, seed):
            return _end(file, no, file.corrections(frame, seed), numbers_page=numbers_page)
        seed = frame.sums
    return None


def _end(
    file: LogFile,
    no: int,
    corrections: list[Frame],
    *,
    numbers_page: int | None = None,
    is_damage: bool = False,
) -> LogEnd | None:
    """`no`: the first frame that SQLite rejects; `is_damage`: the header is wrong."""
    own = [head for head in file.heads(no) if head.salts == file.header.salts]
    if corrections:
        own = [corrections[0], *(head for head in own if head.no != no)]
    commits = sum(head.is_commit for head in own)
    if not commits:
        return None  # the remains of an uncommitted transaction
    return LogEnd(
        offset=0 if is_damage else file.offset(no),
        frames=len(own),
        commits=commits,
        is_damage=is_damage
        or bool(corrections)
        or commits > MAX_UNSYNCED
        or _has_synced(own, numbers_page),
    )


def _has_synced(frames: list[Frame], numbers_page: int | None) -> bool:
    """Whether a commit that sent messages is followed by another: then its sync had succeeded."""
    is_send = is_over = False
    for frame in frames:
        if is_over:
            return True
        is_send = is_send or frame.page_no == numbers_page
        is_over = is_send and frame.is_commit
        is_send = is_send and not frame.is_commit
    return False
