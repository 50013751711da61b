"""Durable steps in the processes of a worker."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from penstock import Penstock
from penstock.domain.message.lifecycle import State
from tests.edge.api import a_name
from tests.edge.cli.workers import application
from tests.edge.cli.workers.conftest import MakeWorker
from tests.edge.cli.workers.job_lookup import PATIENCE_S
from tests.support.waiting import eventually


def test_jobs_continue_behind_their_steps_after_a_crash_and_a_wait(
    any_app: Penstock, any_url: str, make_worker: MakeWorker, tmp_path: Path
) -> None:
    name = a_name("approved")
    jobs = {
        tmp_path / kind.kind: kind.enqueue(str(tmp_path / kind.kind), name)
        for kind in (application.fulfil, application.fulfil_async)
    }
    make_worker(any_url, "--slots", "1")

    def all_are(state: State) -> bool:
        return all(any_app.jobs.get(sent).state is state for sent in jobs.values())

    eventually(partial(all_are, State.WAITING), within_s=PATIENCE_S)
    any_app.signal(name, "ada")
    eventually(partial(all_are, State.DONE), within_s=PATIENCE_S)

    for file in jobs:
        assert file.read_text().splitlines() == ["charge", "approved by ada"]
