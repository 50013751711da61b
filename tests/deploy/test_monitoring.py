"""The alert rules and the dashboard use metrics that servers have, and alert when they should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from penstock.edge.metrics import render_transactions
from tests.architecture.source import PACKAGE
from tests.deploy.tools import DEPLOY, program, run
from tests.edge.process import ServerProcess

RULES = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = DEPLOY / "grafana" / "penstock.json"
METRIC = re.compile(r"\b(?:penstock|messaging)_[a-z_]+\b")
LABELS = {"messaging_destination_name", "state", "route", "instance", "fleet", "outcome", "le"}


def promtool(*words: object) -> str:
    return run(program("promtool", "prometheus"), *(str(word) for word in words))


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for panel in panels() for target in panel["targets"])


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The metrics of a server on SQLite, and of PostgreSQL's transactions."""
    with ServerProcess(tmp_path_factory.mktemp("server") / "data") as server:
        text = urlopen(f"{server.url}/metrics").read().decode()
    return str(text) + render_transactions([], now=0)


def test_promtool_accepts_the_rules() -> None:
    promtool("check", "rules", RULES)


def test_each_alert_fires_in_its_case_and_only_there() -> None:
    promtool("test", "rules", RULES.with_name("alerts_test.yaml"))


def test_every_alert_is_tested_firing_and_silent() -> None:
    document = yaml.safe_load(RULES.with_name("alerts_test.yaml").read_text(encoding="utf-8"))
    silent, firing = (
        {check["alertname"] for check in one["alert_rule_test"]} for one in document["tests"]
    )

    assert silent == firing == {rule["alert"] for rule in alerts()}


def test_every_metric_exists(exposed: str) -> None:
    declared = set(re.findall(r"^# TYPE (\S+)", exposed, re.MULTILINE))
    source = (PACKAGE / "edge" / "metrics.py").read_text(encoding="utf-8")
    of_fleets = set(re.findall(r'"(penstock_fleet_[a-z_]+)"', source))  # only where one is reported

    used = {name for text in expressions() for name in METRIC.findall(text)} - LABELS

    assert {name.removesuffix("_bucket") for name in used} <= declared | of_fleets


def test_every_grouping_is_by_a_label_that_exists() -> None:
    named = [names for text in expressions() for names in re.findall(r"by \(([^)]*)\)", text)]

    assert {name.strip() for names in named for name in names.split(",")} <= LABELS


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels()}

    assert len(places) == len({panel["id"] for panel in panels()}) == len(panels())
