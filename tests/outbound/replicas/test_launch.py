"""How a process of a fleet is started."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest

from penstock.domain.scaling.fleet import Processes, ReplicasSpec
from penstock.outbound.replicas.launch import Launch

STORE = "postgresql://me:s3cret@db/penstock"


def test_an_application_is_run_by_penstock_worker_with_the_labels_of_the_fleet():
    launch = _launch(app="shop.jobs:app")

    assert launch.command("abc") == [
        *(sys.executable, "-m", "penstock", "worker", "shop.jobs:app"),
        *("--queues", "mail", "--label", "fleet=mailers", "--label", "replica=abc"),
        *("--drain-for", "60000ms"),
    ]


def test_workers_of_a_fleet_with_several_queues_work_on_all_of_them():
    words = _launch(("mail", "post"), app="a:b").command("abc")

    assert words[words.index("--queues") + 1] == "mail,post"


def test_settings_of_the_file_are_passed_to_its_workers():
    launch = _launch(
        app="a:b", slots=3, queues=("x", "y"), drain_ms=500, arguments=("--beat", "1s")
    )

    words = launch.command("abc")

    assert words[words.index("--queues") + 1] == "x,y"
    assert words[words.index("--slots") + 1] == "3"
    assert words[words.index("--drain-for") + 1] == "500ms"
    assert words[-2:] == ["--beat", "1s"]


@pytest.mark.parametrize(
    ("options", "variable", "url"),
    [
        ({}, "PENSTOCK_WORKER_STORE", STORE),
        ({"url": "http://b:1"}, "PENSTOCK_WORKER_SERVER", "http://b:1"),
    ],
)
def test_the_store_url_is_passed_where_other_users_cannot_read_it(options, variable, url):
    launch = _launch(app="a:b", **options)

    assert launch.environment("abc")[variable] == url
    assert "s3cret" not in " ".join(launch.command("abc"))


def test_another_program_is_run_unchanged_and_gets_no_secrets():
    launch = _launch(run=("python", "consume.py"))

    assert launch.command("abc") == ["python", "consume.py"]
    assert launch.environment("abc") == {"PENSTOCK_FLEET": "mailers", "PENSTOCK_REPLICA": "abc"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "set either app or run"),
        ({"app": "a:b", "run": ["x"]}, "set either app or run"),
        ({"run": ["x"], "slots": 3}, "go with app"),
        ({"run": ["x"], "url": "http://b"}, "go with app"),
    ],
)
def test_replicas_with_missing_or_contradictory_keys_are_rejected(options, why):
    with pytest.raises(msgspec.ValidationError, match=why):
        msgspec.convert({"kind": "processes", **options}, ReplicasSpec)


def _launch(of: tuple[str, ...] = ("mail",), **options: Any) -> Launch:
    return Launch("mailers", Processes(**options), queues=of, store_url=STORE)
