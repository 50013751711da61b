"""A worker that is killed with SIGKILL around the commit of a completion.

    python -m tests.faults.killed_completion URL MOMENT

It runs what is due in batches, and kills itself at the first completion with a result.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from penstock import Penstock
from penstock.domain.message.lease import LeaseAct, Verb
from penstock.store.commit.session import SqlSession
from penstock.store.verbs.acts import LeaseActs


class Moment(StrEnum):
    RETURNED = "the handler has returned"
    WRITTEN = "the statements have run"
    COMMITTED = "the commit is done"


app: Penstock = Penstock("sqlite:///unused.db")


@app.job(attempts=10)
def double(n: int) -> int:
    return 2 * n


def kill_at(moment: Moment) -> None:
    act, finish = LeaseActs.act, SqlSession.finish
    has_written = False

    def acted(self: LeaseActs, acts: Sequence[LeaseAct]) -> Any:
        nonlocal has_written
        has_written = any(one.verb is Verb.COMPLETE for one in acts)
        if has_written and moment is Moment.RETURNED:
            _die()
        return act(self, acts)

    def finished(self: SqlSession) -> None:
        if has_written and moment is Moment.WRITTEN:
            _die()
        finish(self)
        if has_written:
            _die()

    _replace(LeaseActs, "act", acted)
    _replace(SqlSession, "finish", finished)


def _replace(owner: type, name: str, function: Callable[..., Any]) -> None:
    setattr(owner, name, function)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    url, at = sys.argv[1:]
    app.use(url)
    kill_at(Moment(at))
    app.worker(burst=True).run()
