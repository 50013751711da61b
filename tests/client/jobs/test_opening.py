"""An application is opened when needed, once, again in a forked child, and closed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.client.local.lazy_backend import LazyBackend
from penstock.domain.errors import StoreRefused
from tests.docs.snippets import ROOT


@pytest.mark.no_store("embedded")
def test_nothing_is_opened_before_it_is_needed(tmp_path):
    app = Penstock(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.job
    def mail() -> None: ...

    assert list(tmp_path.iterdir()) == []
    mail.enqueue()
    assert (tmp_path / "jobs.db").exists()
    app.close()


def test_it_can_be_closed_and_used_again(app, queue, driver):
    app.enqueue("one", {}, queue=queue)
    app.close()
    app.close()

    app.enqueue("two", {}, queue=queue)

    assert [work.kind for work in driver.claim()] == ["one", "two"]


def test_a_with_block_opens_and_closes(url):
    with Penstock(url) as app:
        assert app._lazy_backend.is_open
    assert not app._lazy_backend.is_open


@pytest.mark.no_store("declaring")
def test_threads_that_come_at_the_same_time_open_it_once():
    opened = []
    may_continue = threading.Event()

    class Nothing:
        def close(self) -> None: ...

    def open_it():
        opened.append(1)
        may_continue.wait(20)
        return Nothing()

    opening = LazyBackend(open_it)
    threads = [threading.Thread(target=opening.get) for _ in range(4)]
    for thread in threads:
        thread.start()
    threads[-1].join(0.05)  # all of them wait now
    may_continue.set()
    for thread in threads:
        thread.join()

    assert opened == [1]


@pytest.mark.environments("fork")
def test_a_forked_child_opens_its_own_and_leaves_that_of_its_parent_alone(app, queue, driver):
    app.enqueue("parent", {}, queue=queue)
    of_parent = app.backend

    child = os.fork()
    if child == 0:
        code = 1
        try:
            app.enqueue("child", {}, queue=queue)
            code = 2 if app.backend is of_parent else 0
            app.close()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    app.enqueue("parent again", {}, queue=queue)

    assert status == 0
    assert app.backend is of_parent
    assert [work.kind for work in driver.claim()] == ["parent", "child", "parent again"]


@pytest.mark.no_store("embedded")
def test_a_database_without_our_schema_is_refused_until_it_is_migrated(postgres_url, queue):
    app = Penstock(postgres_url)

    with pytest.raises(StoreRefused, match="migrate"):
        app.enqueue("mail", {}, queue=queue)
    assert app.migrate()
    app.enqueue("mail", {}, queue=queue)
    app.close()


@pytest.mark.no_store("embedded")
def test_an_application_that_only_enqueues_starts_no_duties(tmp_path):
    with Penstock(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        before = _duty_loops()  # other applications of this process may run duties
        app.enqueue("mail", {})
        assert _duty_loops() == before

        app.start_duties()
        app.start_duties()
        assert _duty_loops() == before + 1


@pytest.mark.no_store("process")
def test_the_package_imports_its_parts_only_when_they_are_asked_for(tmp_path: Path):
    program = "import sys, penstock; assert 'penstock.client' not in sys.modules; dir(penstock)\n"
    program += "from penstock import Penstock, Retry, Snooze, Cancel, Bury, current, Job, Unique\n"
    program += "assert 'granian' not in sys.modules and 'penstock.edge' not in sys.modules"

    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=tmp_path)


def _duty_loops() -> int:
    return sum(thread.name == "penstock-duties" for thread in threading.enumerate())
