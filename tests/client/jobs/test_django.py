"""Jobs in Django's transactions, with real Django on both databases."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
import pytest
from django.conf import settings
from django.db import connections, transaction
from django.db.utils import IntegrityError
from django.utils.connection import ConnectionProxy

from penstock import Penstock
from penstock.django.applications import DjangoApplication
from penstock.domain.errors import InvalidRequest, TransactionBusy
from tests.client.environments import Backend, Environment
from tests.client.jobs.driver import JobDriver
from tests.docs.snippets import ROOT
from tests.edge.api import a_name
from tests.store.driver import WAIT_S

pytestmark = pytest.mark.environments("own transaction", "Django")


@pytest.fixture
def alias(url: str, app: Penstock) -> Iterator[str]:
    """The name of the database in Django's settings; the application is open."""
    if not settings.configured:
        settings.configure(DATABASES={})
        django.setup()
    app.open()
    alias = a_name("db")
    about = connections.configure_settings({"default": database_of(url)})["default"]
    connections.databases[alias] = about
    with connections[alias].cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS shop_order (name varchar(20) UNIQUE)")
        cursor.execute("DELETE FROM shop_order")
    yield alias
    connections[alias].close()
    del connections[alias]
    del connections.databases[alias]


@pytest.fixture
def connection(alias: str) -> Any:
    """Like `django.db.connection` for the default database."""
    return ConnectionProxy(connections, alias)


def database_of(url: str) -> dict[str, Any]:
    if url.startswith("sqlite"):
        path = url.removeprefix("sqlite:///").partition("?")[0]
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": path}
    parts = urlsplit(url)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.removeprefix("/"),
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "PASSWORD": parts.password,
    }


def order(connection: Any, name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop_order VALUES (%s)", [name])


def orders(connection: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM shop_order ORDER BY name")
        return [name for (name,) in cursor.fetchall()]


def kinds(driver: JobDriver) -> list[str | None]:
    return [work.kind for work in driver.claim()]


@pytest.mark.parametrize("is_proxy", [True, False])
def test_a_job_exists_exactly_if_the_atomic_block_commits(
    app, queue, driver, alias, connection, is_proxy
):
    tx = connection if is_proxy else connections[alias]

    for kind in ("rolled-back", "committed"):
        with transaction.atomic(alias):
            order(connection, kind)
            app.enqueue(kind, {}, queue=queue, tx=tx)
            transaction.set_rollback(kind == "rolled-back", alias)

    assert kinds(driver) == ["committed"]
    assert orders(connection) == ["committed"]


def test_a_nested_block_is_rolled_back_alone_with_its_jobs(app, queue, driver, alias, connection):
    @transaction.atomic(alias)
    def order_twice() -> None:
        app.enqueue("inner", {}, queue=queue, tx=connection)
        order(connection, "a")

    with transaction.atomic(alias):
        app.enqueue("outer", {}, queue=queue, tx=connection)
        order(connection, "a")
        with pytest.raises(IntegrityError):
            order_twice()
        with transaction.atomic(alias):
            app.enqueue("second", {}, queue=queue, tx=connection)
        with transaction.atomic(alias, savepoint=False):
            app.enqueue("third", {}, queue=queue, tx=connection)

    assert kinds(driver) == ["outer", "second", "third"]


def test_a_savepoint_by_hand_takes_its_jobs_along(app, queue, driver, alias, connection):
    with transaction.atomic(alias):
        order(connection, "a")
        savepoint = transaction.savepoint(alias)
        app.enqueue("undone", {}, queue=queue, tx=connection)
        transaction.savepoint_rollback(savepoint, alias)
        app.enqueue("kept", {}, queue=queue, tx=connection)

    assert kinds(driver) == ["kept"]


def test_events_and_notifications_take_it_too(app, queue, alias, connection):
    @app.subscribe(queue, name="s")
    def on_event(event: int) -> None: ...

    due = app.notifications(a_name())
    with transaction.atomic(alias):
        order(connection, "a")
        assert app.publish(queue, 1, tx=connection).messages == 1
        due.record("x", delay="1h", tags=("t",), tx=connection)

    assert len(list(due.find(tag1="t"))) == 1


def test_without_an_atomic_block_or_in_a_broken_one_it_is_refused(app, queue, alias, connection):
    with pytest.raises(InvalidRequest, match=r"use it inside transaction\.atomic\(\)"):
        app.enqueue("x", {}, queue=queue, tx=connection)
    with transaction.atomic(alias):
        transaction.set_rollback(True, alias)
        with pytest.raises(InvalidRequest, match="it can only be rolled back"):
            app.enqueue("x", {}, queue=queue, tx=connection)


def test_a_plain_enqueue_never_waits_for_its_own_atomic_block(
    app, queue, driver, alias, connection, environment: Environment
):
    with transaction.atomic(alias):
        orders(connection)
        app.enqueue("after a read", {}, queue=queue)
    with transaction.atomic(alias):
        order(connection, "a")
        if environment.backend is Backend.SQLITE:
            with pytest.raises(TransactionBusy, match=r"pass it as tx=django\.db\.connection"):
                app.enqueue("refused", {}, queue=queue)
            with pytest.raises(TransactionBusy, match="after its commit"):
                app.publish(queue, 1)
        transaction.set_rollback(True, alias)
    app.enqueue("after it", {}, queue=queue)

    assert kinds(driver) == ["after a read", "after it"]


def test_without_autocommit_a_task_belongs_to_the_open_transaction(
    app, queue, driver, alias, connection
):
    application = DjangoApplication(alias, {"database": alias})
    assert application.transaction is None
    with transaction.atomic(alias):
        assert application.transaction is connections[alias]

    transaction.set_autocommit(False, alias)
    order(connection, "a")
    app.enqueue("rolled back", {}, queue=queue, tx=application.transaction)
    transaction.rollback(alias)
    transaction.set_autocommit(True, alias)

    assert (orders(connection), kinds(driver)) == ([], [])


@pytest.mark.environments("file")
def test_a_block_of_another_thread_is_waited_for(app, queue, driver, alias, connection):
    is_begun, may_end = threading.Event(), threading.Event()

    def block() -> None:
        with transaction.atomic(alias):
            order(connections[alias], "a")
            is_begun.set()
            may_end.wait(WAIT_S)
        connections[alias].close()

    other = threading.Thread(target=block)
    other.start()
    assert is_begun.wait(WAIT_S)
    timer = threading.Timer(0.3, may_end.set)
    timer.start()
    with transaction.atomic(alias):
        orders(connection)  # a block that only reads holds no lock
        app.enqueue("waited", {}, queue=queue)
    other.join()
    timer.join()

    assert kinds(driver) == ["waited"]


@pytest.mark.environments("file")
def test_an_app_that_is_not_open_refuses_inside_the_block_too(url, alias, connection):
    closed = Penstock(url)

    with transaction.atomic(alias):
        order(connection, "a")
        with pytest.raises(TransactionBusy, match="pass it as tx="):
            closed.enqueue("x", {})
    closed.enqueue("x", {})
    closed.close()


@pytest.mark.no_store("process")
def test_a_program_that_only_imports_django_is_not_bothered(tmp_path: Path) -> None:
    program = """
import django.db
from penstock import Penstock

with Penstock("sqlite:///jobs.db?checksums=off") as app:
    app.enqueue("x", {})
"""
    _run(program, tmp_path)


@pytest.mark.environments("psycopg2")
def test_django_on_psycopg2_is_taken_as_well(url, app, queue, driver, tmp_path):
    program = f"""
import sys
sys.modules["psycopg"] = None  # Django takes psycopg2 then
import django.db.backends.postgresql.base
del sys.modules["psycopg"]
from django.conf import settings
from django.db import connection, transaction
from penstock import Penstock
from tests.client.jobs.test_django import database_of

settings.configure(DATABASES={{"default": database_of({url!r})}})
with Penstock({url!r}) as app:
    for kind in ("rolled-back", "committed"):
        with transaction.atomic():
            app.enqueue(kind, {{}}, queue={queue!r}, tx=connection)
            transaction.set_rollback(kind == "rolled-back")
assert type(connection.connection).__module__.startswith("psycopg2"), connection.connection
"""
    _run(program, tmp_path)

    assert kinds(driver) == ["committed"]


def _run(program: str, folder: Path) -> None:
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=folder, timeout=120)
