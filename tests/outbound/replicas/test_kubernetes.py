"""Workers as pods: requests to Kubernetes, and its answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.domain.errors import FleetsRefused, ReplicasUnavailable
from penstock.domain.scaling.fleet import Kubernetes
from penstock.domain.scaling.recommendation import Replicas
from penstock.domain.worker import NewWorker
from penstock.outbound.replicas.kubernetes import KubernetesReplicas
from penstock.ports.scaling import FLEET
from penstock.wiring.autoscaling import StoreFleetRegistry
from tests.clocks import NOON
from tests.outbound.replicas.cluster import Cluster, Workload
from tests.store.driver import StoreDriver
from tests.support.http_backend import Answer, Hang, HangUp, HttpBackend

Make = Callable[..., KubernetesReplicas]
COST = "controller.kubernetes.io/pod-deletion-cost"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with HttpBackend() as backend:
        yield Cluster(backend)


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return cluster.workloads.setdefault(
        ("shop", "deployments", "mailers"), Workload(wanted=3, there=3, ready=2)
    )


@pytest.fixture
def make(cluster, tmp_path, workers, store, clock) -> Iterator[Make]:
    made: list[KubernetesReplicas] = []

    def make(**more: Any) -> KubernetesReplicas:
        options = {"name": "mailers", "namespace": "shop", "timeout_ms": 30_000, **more}
        spec = Kubernetes(**{"kubeconfig": str(cluster.kubeconfig(tmp_path)), **options})
        made.append(
            KubernetesReplicas("mail", spec, registry=StoreFleetRegistry(workers, store, clock))
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def fleet(make: Make) -> KubernetesReplicas:
    return make()


def test_ready_pods_count_as_running_and_the_others_as_starting(fleet, workload, cluster):
    assert fleet.count(now=NOON) == Replicas(running=2, starting=1, requested=3)
    workload.wanted = 5

    assert fleet.count(now=NOON) == Replicas(running=2, starting=1, requested=5)
    assert cluster.tokens == {"Bearer s3cret"}


def test_a_workload_at_zero_has_no_replicas(fleet, workload):
    workload.wanted = workload.there = workload.ready = 0

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


def test_without_permission_to_read_the_workload_all_pods_count_as_running(
    fleet, workload, cluster
):
    cluster.forbidden = ("GET deployments",)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=3)


@pytest.mark.parametrize("wanted", [0, 1, 7])
def test_scaling_sets_the_number_of_replicas(fleet, workload, wanted):
    fleet.scale_to(wanted, now=NOON)

    assert workload.wanted == wanted


def test_the_number_of_replicas_is_limited(make, cluster, workload):
    make(most=4).scale_to(1_000, now=NOON)

    assert workload.wanted == 4


def test_a_stateful_set_is_scaled_likewise(make, cluster):
    workload = cluster.workloads[("shop", "statefulsets", "mailers")] = Workload(2, 2, 1)
    fleet = make(resource="statefulset")

    assert fleet.count(now=NOON) == Replicas(running=1, starting=1, requested=2)
    fleet.scale_to(4, now=NOON)

    assert workload.wanted == 4


def test_after_a_conflict_the_changed_resource_is_read_again(fleet, workload, cluster):
    cluster.conflicts = 2

    fleet.scale_to(6, now=NOON)

    assert workload.wanted == 6
    assert [seen.method for seen in cluster.backend.seen] == ["GET", "PUT"] * 3


def test_after_three_conflicts_scaling_fails_until_the_next_run(fleet, workload, cluster):
    cluster.conflicts = 3

    with pytest.raises(ReplicasUnavailable, match="answered 409"):
        fleet.scale_to(6, now=NOON)

    assert workload.wanted == 6  # three others have added one each


@pytest.fixture
def pods(workers, store, clock) -> None:
    """Two of the fleet, one of them busy."""
    driver = StoreDriver(store, clock)
    queue = driver.queue("mail")
    driver.send_many(queue, 3)
    for pod, holds in (("mailers-a", 3), ("mailers-b", 0)):
        worker = workers.register(NewWorker(host=pod, labels={FLEET: "mail"})).result()
        driver.claim(queue, holds or 1, claimed_by=worker.id)


def test_before_scaling_down_busy_pods_get_a_deletion_cost(make, cluster, workload, pods):
    fleet = make(spare_busy=True)

    fleet.scale_to(4, now=NOON)
    assert cluster.notes == {}
    fleet.scale_to(1, now=NOON)

    assert cluster.notes == {"mailers-a": {COST: "3"}, "mailers-b": {COST: "0"}}
    assert workload.wanted == 1


def test_scaling_down_succeeds_although_deletion_costs_cannot_be_set(
    make, cluster, workload, pods, caplog
):
    cluster.forbidden = ("PATCH pods",)

    make(spare_busy=True).scale_to(1, now=NOON)

    assert workload.wanted == 1
    assert "deletion costs could not be set: Kubernetes answered 403" in caplog.text


def test_without_spare_busy_no_pod_is_changed(fleet, cluster, workload, pods):
    fleet.scale_to(1, now=NOON)

    assert cluster.notes == {}


def test_a_forbidden_call_reports_the_reason_from_kubernetes(fleet, workload, cluster):
    cluster.forbidden = ("PUT deployments/scale",)

    expected = r"fleet mail, deployment shop/mailers: .* 403: .*User cannot PUT deployments/scale"
    with pytest.raises(ReplicasUnavailable, match=expected):
        fleet.scale_to(6, now=NOON)


def test_a_workload_that_does_not_exist_is_an_error(fleet):
    with pytest.raises(ReplicasUnavailable, match="shop/mailers: Kubernetes answered 404"):
        fleet.count(now=NOON)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Hang(), "[Tt]imed? ?out"),
        (HangUp(), "Connection|Protocol"),
        (Answer(500, body=b"etcd is away"), "answered 500: .*etcd is away"),
        (Answer(200, body=b"<html>"), "fleet mail, deployment"),
    ],
)
def test_any_other_answer_is_an_error_within_the_timeout(
    make, cluster, workload, behaviour, expected
):
    cluster.backend.behave = lambda seen: behaviour
    fleet = make(timeout_ms=300 if isinstance(behaviour, Hang) else 30_000)

    with pytest.raises(ReplicasUnavailable, match=expected):
        fleet.count(now=NOON)

    assert len(cluster.backend.wait_for(1)) == 1


def test_another_context_is_another_cluster(make, cluster, workload):
    fleet = make(context="elsewhere")

    with pytest.raises(ReplicasUnavailable):
        fleet.count(now=NOON)

    assert cluster.backend.seen == []


def test_without_any_configuration_it_fails_and_tries_again_the_next_time(
    make, tmp_path, cluster, workload
):
    fleet = make(kubeconfig=str(tmp_path / "later" / "kubeconfig"))

    with pytest.raises(ReplicasUnavailable, match="onfig"):
        fleet.count(now=NOON)
    (tmp_path / "later").mkdir()
    cluster.kubeconfig(tmp_path / "later")

    assert fleet.count(now=NOON).requested == 3


def test_without_the_library_the_fleet_is_refused_at_once(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "kubernetes", None)

    with pytest.raises(
        FleetsRefused, match=r"fleets.mail: .*pip install 'penstock-queue\[kubernetes\]'"
    ):
        make()
