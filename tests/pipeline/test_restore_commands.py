"""`penstock pipeline restore` and `resend`, from a lake into another store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.domain.datetimes import moment_of
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.edge.cli.main import main
from penstock.settings import Settings
from penstock.wiring import archive_commands
from penstock.wiring.broker import open_broker
from tests.store.driver import StoreDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[..., list[Any]]


@contextmanager
def open_driver(folder: Path) -> Iterator[StoreDriver]:
    with closing(open_broker(Settings(data=str(folder)))) as broker:
        driver = StoreDriver(broker.store, broker.clock)  # type: ignore[arg-type]
        found = driver.read(lambda s: s.queues.page(prefix="", after="", limit=100))
        driver.queues.extend(found)
        yield driver


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object, code: int = 0) -> list[Any]:
        capsys.readouterr()
        assert main([str(word) for word in (*words, "--json")]) == code
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def shared_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session of all tests, which a command must not end."""

    @contextmanager
    def session(args: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("penstock.edge.cli.pipeline.spark_command.session", session)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store that has archived its past: one done, one dead, two that are ready."""
    folder = tmp_path / "old"
    with open_driver(folder) as driver:
        mail = driver.queue("mail", max_attempts=1)
        driver.send(mail, body='"done"')
        driver.complete(driver.claim(mail)[0])
        driver.send(mail, body='"dead"', kind="letter", attributes={"a": "b"}, tags=("t",))
        driver.act(Verb.FAIL, driver.claim(mail)[0], text="broken")
        driver.send(mail, body='"ready"')
        driver.send(mail, body='"later"', delay_ms=3_600_000, group="g")
    settings = Settings(data=str(folder))
    archive_commands.run(settings, new_lake=False, progress=lambda done, total: None)
    archive_commands.snapshot(settings, progress=lambda done, total: None)
    return folder


def now_of(folder: Path) -> str:
    with open_driver(folder) as driver:
        return moment_of(driver.now).isoformat()


def states(driver: StoreDriver) -> dict[str, list[str]]:
    [mail] = driver.queues
    found = (State.READY, State.WAITING, State.DEAD)
    return {s.value: [body(driver, m) for m in driver.browse(mail, s)] for s in found}


def body(driver: StoreDriver, message: Message) -> str:
    content = driver.read(lambda s: s.messages.content(message))
    assert content is not None
    return content.body


def test_a_store_is_restored_and_a_second_run_changes_nothing(run, old, tmp_path):
    new = tmp_path / "new"
    words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake", "--data", new]

    counted = run(*words, "--dry-run")
    assert [(row["kind"], row["state"], row["messages"], row["known"]) for row in counted] == [
        (None, "ready", 1, 0), (None, "waiting", 1, 0), ("letter", "dead", 1, 0),
    ]  # fmt: skip
    assert not (new / "penstock.db").exists()

    first = run(*words, "--rate", 1000)[-1]
    again = run(*words)[-1]

    assert (first["restored"], first["known"]) == (3, 0)
    assert (again["restored"], again["known"]) == (0, 3)
    with open_driver(new) as driver, open_driver(old) as before:
        assert states(driver) == states(before)
        assert states(driver) == {
            "ready": ['"ready"'], "waiting": ['"later"'], "dead": ['"dead"'],
        }  # fmt: skip
        assert driver.queues[0].settings == before.queues[0].settings
        assert {m.id for m in driver.browse(driver.queues[0], State.READY)} == {
            m.id for m in before.browse(before.queues[0], State.READY)
        }


def test_people_read_what_was_restored_and_what_was_sent(old, tmp_path, capsys):
    restore = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake"]
    resend = [
        "pipeline", "resend", "again", "--lake", old / "lake", "--from", "2000-01-01",
        "--to", "2100-01-01", "--target", f"sqlite:///{old}/penstock.db",
    ]  # fmt: skip

    def last_line(words: list[Any]) -> str:
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out.splitlines()[-1]

    assert last_line([*restore, "--data", tmp_path / "new"]) == (
        "3 restored, 0 already present, 0 without a body, 0 refused"
    )
    assert last_line([*restore, "--data", old]) == (
        "0 restored, 3 already present, 0 without a body, 0 refused"
    )
    assert last_line(resend) == "1 sent, 0 sent before, 0 without a body, 0 refused"


def test_only_matching_messages_are_restored(run, old, tmp_path):
    new = tmp_path / "new"
    words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake", "--data", new]
    assert run(*words, "--state", "ready", "--queue", "mail")[-1]["restored"] == 1
    assert run(*words, "--kind", "nothing-like-it") == []
    assert [row["state"] for row in run(*words, "--group", "g", "--dry-run")] == ["waiting"]


def test_one_tenant_is_restored_into_a_store_in_use(run, old, tmp_path):
    """Nothing that the store has, or has had, is restored again."""
    new = tmp_path / "new"
    words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake", "--data", new]
    with open_driver(new) as driver:
        mail = driver.queue("mail")
        driver.send(mail, body='"of the new store"')

        assert run(*words, "--tag", "t")[-1]["restored"] == 1

        [dead] = driver.browse(mail, State.DEAD)
        assert (dead.kind, dead.tag1, dead.attempts, dead.reason) == (
            "letter", "t", 1, "attempts_exhausted",
        )  # fmt: skip
        counted = run(*words, "--dry-run")
        assert {row["state"]: row["known"] for row in counted} == {
            "dead": 1, "ready": 0, "waiting": 0,
        }  # fmt: skip
        assert run(*words)[-1]["restored"] == 2
        assert states(driver)["ready"] == ['"of the new store"', '"ready"']
        assert run(*words)[-1]["restored"] == 0


def test_messages_that_ended_since_are_not_restored_into_the_lakes_own_store(run, old):
    """Not even when the store has dropped that day of its history."""
    before = now_of(old)
    with open_driver(old) as driver:
        [mail] = driver.queues
        driver.complete(driver.claim(mail)[0])
    settings = Settings(data=str(old))
    archive_commands.run(settings, new_lake=False, progress=lambda done, total: None)
    with open_driver(old) as driver:
        [day] = driver.read(lambda s: s.transaction.partitions.days())  # type: ignore[attr-defined]
        delete = f"DELETE FROM history_{day}"
        driver.write(lambda s: s.db.execute(delete))  # type: ignore[attr-defined]

    words = ["pipeline", "restore", "--at", before, "--lake", old / "lake"]
    own = run(*words, "--data", old)[-1]
    other = run(*words, "--data", old.parent / "new")[-1]

    assert (own["restored"], own["known"]) == (0, 3)
    assert (other["restored"], other["known"]) == (3, 0)


def test_both_engines_restore_the_same_store(run, shared_spark, old, tmp_path):
    found = []
    for engine in ("local", "spark"):
        words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake"]
        more = ["--data", tmp_path / engine, "--engine", engine]
        result = run(*words, *more)
        with open_driver(tmp_path / engine) as driver:
            found.append((result, states(driver), [q.settings for q in driver.queues]))

    assert found[0] == found[1]


def test_a_lake_that_is_too_large_for_one_process_goes_to_spark(
    run, shared_spark, old, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("penstock.pipeline.files.local_lake.MAX_HELD_BYTES", 10)
    words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake"]
    words += ["--data", tmp_path / "new", "--dry-run"]

    assert run(*words, "--engine", "local", code=1) == []
    assert sum(row["messages"] for row in run(*words)) == 3


def test_a_lake_is_restored_without_spark_too(run, old, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.edge.cli.pipeline.engines.MAX_LOCAL_BYTES", 0)
    monkeypatch.setattr("penstock.edge.cli.pipeline.engines._has_spark", lambda: False)
    words = ["pipeline", "restore", "--at", now_of(old), "--lake", old / "lake"]

    assert run(*words, "--data", tmp_path / "new")[-1]["restored"] == 3


def test_an_empty_lake_is_reported(run, tmp_path, capsys):
    words = ["pipeline", "restore", "--at", "2030-01-01", "--lake", tmp_path, "--engine", "local"]

    assert main([str(word) for word in words]) == 1
    assert "is empty; run penstock archive run first (invalid_request)" in capsys.readouterr().err


def test_dead_messages_are_sent_again_under_a_name(run, old):
    words = [
        "pipeline", "resend", "after-the-outage", "--lake", old / "lake", "--data", old,
        "--from", "2000-01-01", "--to", "2100-01-01", "--kind", "letter",
        "--target", f"sqlite:///{old}/penstock.db",
    ]  # fmt: skip
    assert [(row["state"], row["messages"]) for row in run(*words, "--dry-run")] == [("dead", 1)]

    assert run(*words)[-1]["restored"] == 1
    assert run(*words)[-1] == {"restored": 0, "known": 1, "without_body": 0, "refused": []}

    with open_driver(old) as driver:
        [mail] = driver.queues
        [_, again] = driver.browse(mail, State.READY)
        content = driver.read(lambda s: s.messages.content(again))
        assert content is not None
        assert (content.body, content.attributes) == ('"dead"', {"a": "b"})
        assert (again.kind, again.tag1, again.attempts) == ("letter", "t", 0)
