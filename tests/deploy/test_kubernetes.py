"""Helm renders the chart to valid resources, and the plain manifests are what it renders."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from penstock.edge.cli import registry
from penstock.settings.load import load
from penstock.version import __version__
from tests.deploy.manifests import manifest
from tests.deploy.tools import DEPLOY, program, run

CHART = DEPLOY / "helm" / "penstock"
MANIFESTS = DEPLOY / "kubernetes"
FLEETS = '[profiles.default]\n\n[fleets.mail]\nqueue = "mail"\nreplicas = {kind = "external"}\n'
WORKERS = {
    "mail": {"app": "shop.jobs:app", "image": {"repository": "shop", "tag": "1.0"}, "replicas": 2},
    "media": {"app": "shop.media:app", "slots": 2, "drainSeconds": 300, "keda": {"max": 5}},
}
EVERYTHING = {
    "workers": WORKERS,
    "autoscaler": {"enabled": True, "fleets": FLEETS},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}},
    "imagePullSecrets": [{"name": "registry"}],
    "server": {
        "settings": {"history": {"retention_days": 30}, "log": {"format": "json"}},
        "environment": [{"name": "TZ", "value": "UTC"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "queue", "operator": "Exists"}],
    },
}
POSTGRES = {"store": "postgres"}
VALUES = {
    "sqlite": {},
    "postgres": POSTGRES,
    "sqlite_everything": EVERYTHING,
    "postgres_everything": EVERYTHING | POSTGRES,
}
# Resources of KEDA and of the Prometheus operator, whose schemas are not Kubernetes'.
CUSTOM = ("keda.sh/", "monitoring.coreos.com/")


@pytest.fixture(scope="module")
def values_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("values")
    for name, values in VALUES.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(values))
    return folder


@cache
def render(values: Path) -> str:
    return run(program("helm"), "template", "penstock", CHART, "--values", values)


def resources(values: Path) -> Iterator[dict[str, Any]]:
    return (document for document in yaml.safe_load_all(render(values)) if document)


def find(values: Path, kind: str, name: str = "penstock") -> dict[str, Any]:
    [found] = [
        one for one in resources(values) if (one["kind"], one["metadata"]["name"]) == (kind, name)
    ]
    return found


def workloads(values: Path) -> list[dict[str, Any]]:
    return [one for one in resources(values) if "template" in one.get("spec", {})]


def pod_of(resource: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = resource["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize("name", VALUES)
def test_helm_accepts_the_chart(values_folder: Path, name: str) -> None:
    run(program("helm"), "lint", "--strict", CHART, "--values", values_folder / f"{name}.yaml")


@pytest.mark.parametrize("name", VALUES)
def test_every_resource_is_valid(values_folder: Path, name: str) -> None:
    for resource in resources(values_folder / f"{name}.yaml"):
        if not resource["apiVersion"].startswith(CUSTOM):
            kubernetes_validate.validate(resource, "1.37.0", strict=True)


@pytest.mark.parametrize("name", VALUES)
def test_every_container_is_locked_down(values_folder: Path, name: str) -> None:
    found = workloads(values_folder / f"{name}.yaml")

    for resource in found:
        pod = pod_of(resource)
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("name", ["sqlite_everything", "postgres_everything"])
def test_every_command_and_setting_is_valid(values_folder: Path, name: str, tmp_path: Path) -> None:
    values = values_folder / f"{name}.yaml"
    config = tmp_path / "penstock.toml"
    config.write_text(find(values, "ConfigMap")["data"]["penstock.toml"])

    assert tomllib.loads(config.read_text())["history"] == {"retention_days": 30}
    settings = load(config=config, env={}).settings
    assert settings.server.drain_ms == 10_000
    for resource in workloads(values):
        [container] = pod_of(resource)["containers"]
        words = [*container.get("command", ["penstock"]), *container["args"]]
        command, rest = registry.find_command(words[1:])
        assert command is not None
        registry.parser_of(command, registry.load(command), {}).read(rest)


def test_one_file_is_one_pod_with_a_volume(values_folder: Path) -> None:
    server = find(values_folder / "sqlite.yaml", "StatefulSet")

    [claim] = server["spec"]["volumeClaimTemplates"]
    assert server["spec"]["replicas"] == 1
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_nodes_on_postgresql_are_migrated_first_and_never_all_evicted(
    values_folder: Path,
) -> None:
    values = values_folder / "postgres.yaml"

    job = find(values, "Job", "penstock-migrate")

    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert find(values, "Deployment")["spec"]["replicas"] == 2
    assert find(values, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("name", ["sqlite_everything", "postgres_everything"])
def test_workers_have_more_time_than_their_drain_takes(values_folder: Path, name: str) -> None:
    worker = find(values_folder / f"{name}.yaml", "Deployment", "penstock-media")

    pod = pod_of(worker)
    assert "300s" in pod["containers"][0]["args"]
    assert pod["terminationGracePeriodSeconds"] == 310
    assert "replicas" not in worker["spec"]


@pytest.mark.parametrize("name", ["sqlite_everything", "postgres_everything"])
def test_workers_of_any_image_log_json(values_folder: Path, name: str) -> None:
    worker = find(values_folder / f"{name}.yaml", "Deployment", "penstock-mail")
    [container] = pod_of(worker)["containers"]
    environment = {one["name"]: one["value"] for one in container["env"] if "value" in one}

    parser = registry.parser_of("worker", registry.load("worker"), environment)

    assert parser.read(["shop.jobs:app"]).log_format == "json"


def test_keda_asks_for_the_fleet_that_the_workers_belong_to(values_folder: Path) -> None:
    values = values_folder / "postgres_everything.yaml"

    scaled = find(values, "ScaledObject", "penstock-media")
    [trigger] = scaled["spec"]["triggers"]

    assert trigger["metadata"]["url"] == "http://penstock:7654/v1/scaling/media/wanted"
    assert (
        "fleet=media"
        in pod_of(find(values, "Deployment", "penstock-media"))["containers"][0]["args"]
    )
    find(values, "TriggerAuthentication", trigger["authenticationRef"]["name"])


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_the_plain_manifest_is_what_the_chart_renders(values_folder: Path, name: str) -> None:
    """Repair: python -m tests.deploy.manifests"""
    committed = (MANIFESTS / f"{name}.yaml").read_text(encoding="utf-8")

    assert committed == manifest(name, render(values_folder / f"{name}.yaml"))


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_yamllint_finds_nothing() -> None:
    quoted = {"line-length": "disable", "document-start": "disable"}
    rules = {**quoted, "comments": {"min-spaces-from-content": 1}}
    config = yaml.safe_dump({"extends": "default", "rules": rules})

    files = [DEPLOY.parent / "compose.yaml", CHART / "values.yaml", CHART / "Chart.yaml"]
    assert run(program("yamllint"), "--strict", "-d", config, *files, MANIFESTS) == ""
