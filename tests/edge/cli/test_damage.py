"""`penstock doctor` on damaged stores: before a decision, and after it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.edge.cli.conftest import Run
from tests.store.damage.stores import (
    COUNT,
    DONE,
    FILE,
    PAGE,
    ask,
    copy_of,
    fill,
    flip,
    log_of,
    overwrite,
    page_of,
)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("crashed"), is_crash=True)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("closed"), is_crash=False)


def failures(run: Run, data: Path) -> list[str]:
    ran = run("doctor", "--data", data)
    found = [line for line in ran.out.splitlines() if line.startswith("FAIL")]
    assert ran.code == (1 if found else 0)
    return found


def test_a_damaged_log_is_reported_refused_and_salvaged_in_full(run, crashed, tmp_path):
    data = copy_of(crashed, tmp_path / "data").parent
    log = log_of(data / FILE)
    flip(log, log.stat().st_size // 2, bit=0)

    [failure] = failures(run, data)
    refused = run("keys", "--data", data)
    salvaged = run("doctor", "--data", data, "--salvage", tmp_path / "new")

    assert f"{log} is damaged at byte" in failure
    assert refused.code == 1
    assert refused.err.endswith("(store_damaged)\n")
    assert salvaged.code == 0
    assert salvaged.out.splitlines()[0].startswith("corrected one flipped bit: frame")
    assert ask(tmp_path / "new" / FILE, "SELECT count(*) FROM message") == [(COUNT - DONE,)]
    assert failures(run, tmp_path / "new") == []


def test_an_accepted_loss_is_reported_until_the_copy_of_the_log_is_removed(run, crashed, tmp_path):
    data = copy_of(crashed, tmp_path / "data").parent
    flip(log_of(data / FILE), log_of(data / FILE).stat().st_size // 2)

    accepted = run("doctor", "--data", data, "--accept-loss")

    assert accepted.code == 0
    assert run("keys", "--data", data).code == 0
    [failure] = failures(run, data)
    [kept] = data.glob("*.damaged-*")
    assert "commits were dropped" in failure
    assert str(kept) in failure
    kept.unlink()
    assert failures(run, data) == []


def test_a_damaged_page_is_reported_with_its_table_and_lost_messages_with_their_ids(
    run, closed, tmp_path
):
    data = copy_of(closed, tmp_path / "data").parent
    page = page_of(closed, "message", 1)
    overwrite(data / FILE, (page - 1) * PAGE + 512, random.Random(1).randbytes(512))

    found = failures(run, data)
    salvaged = run("doctor", "--data", data, "--salvage", tmp_path / "new.db")
    again = run("doctor", "--data", data, "--salvage", tmp_path / "new.db")

    assert any(f"page {page} (table message" in line and "mail, orders" in line for line in found)
    assert any("--salvage NEW_STORE" in line for line in found)
    assert salvaged.code == 1
    lost = [line for line in salvaged.out.splitlines() if line.startswith("lost message")]
    [(kept,)] = ask(tmp_path / "new.db", "SELECT count(*) FROM message")
    assert len(lost) == COUNT - DONE - kept > 0
    assert again.code == 1
    assert "exists already" in again.err
