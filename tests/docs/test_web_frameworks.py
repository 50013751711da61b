"""Every program on the pages about web frameworks runs, in its project."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from penstock.store.postgres.store import migrate
from tests.docs.snippets import ROOT
from tests.docs.test_jobs import run

URL = "postgresql://localhost/shop"

WORK = """
from tests.client.jobs.driver import JobDriver
for queue in app.queues:
    for act in JobDriver(app, app.clock, queue).run_due():
        print(queue, act.verb.value, act.text)
app.close()
"""

# What every Django project has, and the page does not show.
DJANGO_PROJECT = {
    "shop/__init__.py": "",
    "shop/settings.py": """
SECRET_KEY = "not a secret"
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
""",
    "shop/models.py": """
from django.db import models


class Order(models.Model):
    name = models.CharField(max_length=20, unique=True)
""",
}


def write_project(page: str, folder: Path, more: dict[str, str] | None = None) -> set[str]:
    """Write each program of the page into the file that its mark names."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = dict(re.findall(r"<!-- (\S+\.py) -->\n```python\n(.*?)```", text, re.DOTALL))
    own, _, _ = text.partition("\n## Penstock's own jobs\n")  # before it: parts of examples/django
    programs = text.count("```python") - (own.count("```python") if own != text else 0)
    assert len(blocks) == programs, "a program is not marked"
    for name, program in {**(more or {}), **blocks}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(program, encoding="utf-8")
    return set(blocks)


def run_tests(folder: Path, name: str) -> None:
    plugins = ["-p", "anyio", "-p", "penstock.testing.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        # Other plugins take longer to load than the test to run.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_fastapi_project_enqueues_and_its_test_passes(tmp_path: Path) -> None:
    blocks = write_project("docs/fastapi.md", tmp_path)

    shown = run(
        """
import asyncio
import httpx
from jobs import app
from web import lifespan, web

async def main():
    async with lifespan(web):
        transport = httpx.ASGITransport(app=web)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            for path in ("/users", "/users/sync"):
                answer = await client.post(path, params={"address": "ada@example.org"})
                print(answer.status_code, list(answer.json()))
    assert not app._lazy_backend.is_open

asyncio.run(main())
"""
        + WORK,
        tmp_path,
    )

    assert shown.splitlines()[:2] == ["202 ['job']"] * 2
    assert shown.count("mail complete None") == 2
    run_tests(tmp_path, "test_web.py")
    assert blocks == {"jobs.py", "web.py", "orders.py", "test_web.py"}


def test_the_fastapi_orders_commit_with_their_jobs(tmp_path: Path, postgres_url: str) -> None:
    write_project("docs/fastapi.md", tmp_path)
    orders = tmp_path / "orders.py"
    orders.write_text(orders.read_text().replace(URL, postgres_url))
    migrate(postgres_url)
    with psycopg.connect(postgres_url) as setup:
        setup.execute("CREATE TABLE orders (name text UNIQUE)")

    shown = run(
        """
import asyncio
import httpx
from orders import app, lifespan, web

async def main():
    async with lifespan(web):
        transport = httpx.ASGITransport(app=web, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            for _ in range(2):
                answer = await client.post("/orders", params={"name": "books"})
                print(answer.status_code)

asyncio.run(main())
"""
        + WORK,
        tmp_path,
    )

    assert shown.splitlines() == ["200", "500", "default complete None"]


def test_the_flask_project_enqueues_and_its_test_passes(tmp_path: Path) -> None:
    write_project("docs/flask.md", tmp_path)

    shown = run(
        """
from jobs import app
from web import web

answer = web.test_client().post("/users", data={"address": "ada@example.org"})
print(answer.status_code)
"""
        + WORK,
        tmp_path,
    )

    assert shown.splitlines() == ["202", "to ada@example.org", "mail complete None"]
    run_tests(tmp_path, "test_web.py")


def test_the_flask_jobs_have_an_application_context(tmp_path: Path) -> None:
    write_project("docs/flask.md", tmp_path)
    program = "from jobs_with_context import app, send_mail\nsend_mail.enqueue('ada')\n"

    shown = run(program + WORK, tmp_path)

    assert shown.splitlines() == ["from shop@example.org to ada", "default complete None"]


def test_the_flask_orders_commit_with_their_jobs(tmp_path: Path) -> None:
    write_project("docs/flask.md", tmp_path)

    shown = run(
        """
from orders import app, web

client = web.test_client()
print([client.post("/orders", data={"name": name}).status_code for name in ("books", "")])
"""
        + WORK,
        tmp_path,
    )

    assert "[200, 500]\ndefault complete None\n" in shown
    assert shown.count("complete") == 1


@pytest.mark.parametrize(
    "order",
    [
        "from shop.views import order\n"
        "def buy(name): return order(RequestFactory().post('/orders', {'name': name}))",
        "from shop.later import order_later as buy",
    ],
)
def test_the_django_project_enqueues_with_its_orders(tmp_path: Path, order: str) -> None:
    write_project("docs/django.md", tmp_path, DJANGO_PROJECT)

    shown = run(
        f"""
from shop.jobs import app
from django.core.management import call_command
from django.db import IntegrityError
from django.test import RequestFactory
{order}

call_command("migrate", run_syncdb=True, verbosity=0)
buy("books")
try:
    buy("books")
except IntegrityError:
    print("refused")
"""
        + WORK,
        tmp_path,
    )

    assert shown.splitlines() == ["refused", "receipt books", "mail complete None"]


def test_the_django_test_of_the_page_passes(tmp_path: Path) -> None:
    write_project("docs/django.md", tmp_path, DJANGO_PROJECT)

    run_tests(tmp_path, "test_shop.py")
