"""The definitions file: formats, defaults and errors."""

import json

import pytest

from penstock.api.recurring import NewRecurring
from penstock.client.definitions.document import (
    Definitions,
    Format,
    parse_definitions,
    plain,
    read_definitions,
    render,
)
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.retry import Fixed
from penstock.domain.queue.queue import QueueSettings

pytestmark = pytest.mark.no_store("codec")

YAML = """
queues:
  mail: {lease_ms: 60000, max_attempts: null}
recurring:
  nightly: {queue: mail, every_ms: 1000, body: {on: [1, two]}}
"""
TOML = """
[queues.mail]
lease_ms = 60000
[recurring.nightly]
queue = "mail"
every_ms = 1000
body = {on = [1, "two"]}
"""


def test_yaml_toml_and_json_say_the_same():
    from_yaml = parse_definitions(YAML.replace(", max_attempts: null", ""), name="a.yaml")

    assert from_yaml == parse_definitions(TOML, name="a.toml")
    assert from_yaml == parse_definitions(render(from_yaml, Format.JSON), name="a.json")
    assert from_yaml == parse_definitions(render(from_yaml, Format.YAML), name="a.yml")


def test_a_field_may_be_null_and_a_body_any_json():
    read = parse_definitions(YAML, name="a.yaml")

    assert read.queues == {"mail": QueueSettings(lease_ms=60_000, max_attempts=None)}
    assert isinstance(read.recurring, dict)
    assert json.loads(bytes(read.recurring["nightly"].body)) == {"on": [1, "two"]}


def test_words_and_dates_of_yaml_stay_texts():
    read = parse_definitions(
        "queues: {mail: {labels: {on: no, since: 2026-11-19}, is_fair: true}}", name="a.yaml"
    )

    labels = {"on": "no", "since": "2026-11-19"}
    assert read.queues == {"mail": QueueSettings(labels=labels, is_fair=True)}


def test_an_empty_file_defines_nothing():
    assert parse_definitions("", name="a.yaml") == Definitions()


@pytest.mark.parametrize(
    ("text", "name", "complaint"),
    [
        ("queues: {mail: {lease_seconds: 3}}", "a.yaml", "lease_seconds"),
        ("queues: {mail: {lease_ms: soon}}", "a.yaml", r"\$\.queues\[\.\.\.\]\.lease_ms"),
        ("queue: {}", "a.yaml", "unknown field `queue`"),
        ("queues: [", "a.yaml", "a.yaml: "),
        ("queues = 3 =", "a.toml", "a.toml: "),
        ("{", "a.json", "a.json: "),
        ("- mail", "a.yaml", "Expected `object`"),
        ("", "a.ini", "must end in"),
    ],
)
def test_an_error_names_the_file_and_what_is_wrong(text, name, complaint):
    with pytest.raises(InvalidRequest, match=complaint):
        parse_definitions(text, name=name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidRequest, match=r"cannot read .*missing\.yaml"):
        read_definitions(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (QueueSettings(), {}),
        (QueueSettings(max_attempts=None), {"max_attempts": None}),
        (QueueSettings(backoff=Fixed(7)), {"backoff": {"type": "fixed", "delay_ms": 7}}),
        (
            BreakerSettings(unlock_queues=BreakerTask(interval_ms=77)),
            {"unlock_queues": {"interval_ms": 77}},
        ),
        (NewRecurring(queue="mail", every_ms=5), {"queue": "mail", "every_ms": 5}),
    ],
)
def test_only_values_that_differ_from_the_defaults_are_shown(record, shown):
    assert plain(record) == shown
