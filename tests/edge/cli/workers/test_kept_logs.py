"""Jobs whose logs are kept, in worker processes and sandboxes."""

from __future__ import annotations

from penstock.client.resources.attempt_logs import AttemptLogClient
from tests.edge.cli.workers import application
from tests.edge.cli.workers.job_lookup import PATIENCE_S


def test_lines_of_threads_and_sandboxes_are_kept(any_app, any_url, make_worker):
    sent = {
        "print": application.log_in_a_sandbox.enqueue("from a sandbox"),
        "warning": application.log_in_a_thread.enqueue("from a thread"),
    }
    worker = make_worker(any_url)
    for one in sent.values():
        any_app.jobs.wait(one, timeout=f"{PATIENCE_S}s")

    logs = AttemptLogClient(any_app.backend.channel)
    for level, text in (("print", "from a sandbox"), ("warning", "from a thread")):
        assert [(line.level, line.text) for line in logs.of(sent[level].id).lines] == [
            (level, text)
        ]
        assert text in worker.log.read_text() or level == "print"
