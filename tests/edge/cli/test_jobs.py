"""`penstock jobs` at a server, and without one on a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Bury, Penstock
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.store.postgres.store import migrate
from penstock.worker.claimed_job import JobAct
from tests.edge.api import a_name
from tests.edge.cli.conftest import Ran, Run
from tests.edge.live import LiveServer

Cli = Callable[..., Ran]


@pytest.fixture(params=("sqlite", "postgres", "server"))
def where(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The flag and the URL that name the store or the server."""
    if request.param == "sqlite":
        return "--store", f"sqlite:///{tmp_path / 'jobs.db'}"
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
        migrate(url)
        return "--store", url
    server: LiveServer = request.getfixturevalue("make_server")()
    return "--server", server.url


@pytest.fixture
def app(where: tuple[str, str]) -> Iterator[Penstock]:
    with Penstock(where[1]) as app:
        yield app


@pytest.fixture
def jobs(run: Run, where: tuple[str, str]) -> Cli:
    """jobs("show", id)"""
    return lambda *words: run("jobs", *words, *where)


def test_jobs_are_listed_counted_shown_and_changed(jobs: Cli, app: Penstock) -> None:
    queue = a_name()

    @app.job(queue=queue, kind="mail")
    def mail(n: int) -> None: ...

    first, second = mail.using(tags=["t"]).enqueue(1).id, mail.enqueue_in("1h", 2).id

    assert {job["id"] for job in jobs("list", "--queue", queue, "--json").record["jobs"]} == {
        first,
        second,
    }
    assert first in jobs("list", "--tag", "t").out
    assert second not in jobs("list", "--state", "ready").out
    assert jobs("show", first, "--json").record["body"] == {"n": 1}
    assert jobs("count", queue, "--json").record["ready"] == 1
    assert jobs("reschedule", second, "--delay", "0s") == (0, f"{second} ready\n", "")
    assert jobs("cancel", first, second, "--reason", "no").code == 0
    assert app.jobs.get(second).reason == "no"
    assert jobs("cancel", first).code == 1
    assert jobs("reschedule", second).code == 2


def test_a_running_job_is_cancelled_unless_the_flag_forbids_it(jobs: Cli, app: Penstock) -> None:
    queue = a_name()
    sent = app.job(queue=queue)(lambda: None).enqueue().id
    app.job_source().claim([queue], limit=1, lease_ms=60_000, worker_id="w")

    refused = jobs("cancel", sent, "--unless-running")
    assert (refused.code, "wrong_state" in refused.err) == (1, True)
    assert jobs("cancel", sent) == (0, f"{sent} cancelled\n", "")
    assert app.jobs.get(sent).state is State.CANCELLED


def test_dead_jobs_are_redriven_and_the_exit_code_of_wait_shows_how_a_job_ended(
    jobs: Cli, app: Penstock
) -> None:
    queue = a_name()

    @app.job(queue=queue)
    def broken() -> None:
        raise Bury("no")

    sent = broken.enqueue().id
    assert jobs("wait", sent, "--for", "50ms").code == 4
    work, _ = app.job_source().claim([queue], limit=1, lease_ms=60_000, worker_id="w")
    app.job_source().act([JobAct(receipt=work[0].receipt, verb=Verb.BURY)])

    assert jobs("wait", sent, "--for", "30s") == (1, f"{sent} dead\n", "")
    assert jobs("redrive", "--queue", queue) == (0, "1 redriven\n", "")
    assert jobs("redrive", sent).code == 1
    assert jobs("redrive").code == 2
    [again], _ = app.job_source().claim([queue], limit=1, lease_ms=60_000, worker_id="w")
    app.job_source().act([JobAct(receipt=again.receipt, verb=Verb.COMPLETE)])
    assert jobs("wait", sent) == (0, f"{sent} done\n", "")


def test_a_missing_store_is_not_created(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "typo.db"

    ran = run("jobs", "list", "--store", f"sqlite:///{missing}")

    assert (ran.code, str(missing) in ran.err) == (1, True)
    assert not missing.exists()


def test_a_result_is_printed_as_json(run: Run, where: tuple[str, str], app: Penstock) -> None:
    queue = a_name()

    @app.job(queue=queue, attempts=1)
    def price(what: str) -> dict[str, str]:
        if not what:
            raise Bury("nothing named")
        return {what: "9.990"}

    waiting, dead, done = (price.enqueue(what).id for what in ("pens", "", "paper"))
    app.jobs.reschedule(waiting, delay="1h")
    app.worker(queues=[queue], burst=True).run()

    assert run("result", done, *where) == (0, '{"paper":"9.990"}\n', "")
    shown = run("result", done, "--wait", "30s", "--json", *where).record
    assert shown == {"id": done, "result": {"paper": "9.990"}}
    ran = run("result", dead, *where)
    assert (ran.code, ran.out, "nothing named (job_failed)" in ran.err) == (1, "", True)
    ran = run("result", waiting, "--wait", "10ms", *where)
    assert (ran.code, ran.out, "still waiting (timeout)" in ran.err) == (4, "", True)
