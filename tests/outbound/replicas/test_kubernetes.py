"""Workers as pods: what is asked of Kubernetes, and what is made of its answers."""

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
from penstock.ports.fleet_registry import FLEET
from penstock.wiring.fleet_registry import StoreFleetRegistry
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
        told = {"name": "mailers", "namespace": "shop", "timeout_ms": 30_000, **more}
        spec = Kubernetes(**{"kubeconfig": str(cluster.kubeconfig(tmp_path)), **told})
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


def test_those_that_are_ready_run_and_the_others_are_starting(fleet, workload, cluster):
    assert fleet.count(now=NOON) == Replicas(running=2, starting=1, requested=3)
    workload.wanted = 5

    assert fleet.count(now=NOON) == Replicas(running=2, starting=1, requested=5)
    assert cluster.tokens == {"Bearer s3cret"}


def test_a_workload_at_zero_has_nobody(fleet, workload):
    workload.wanted = workload.there = workload.ready = 0

    assert fleet.count(now=NOON) == Replicas(running=0, requested=0)


def test_where_the_workload_itself_may_not_be_read_all_that_exist_run(fleet, workload, cluster):
    cluster.forbidden = ("GET deployments",)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=3)


@pytest.mark.parametrize("wanted", [0, 1, 7])
def test_scaling_says_how_many_there_shall_be(fleet, workload, wanted):
    fleet.scale_to(wanted, now=NOON)

    assert workload.wanted == wanted


def test_there_is_a_limit_whatever_is_wanted(make, cluster, workload):
    make(most=4).scale_to(1_000, now=NOON)

    assert workload.wanted == 4


def test_a_stateful_set_is_scaled_likewise(make, cluster):
    workload = cluster.workloads[("shop", "statefulsets", "mailers")] = Workload(2, 2, 1)
    fleet = make(resource="statefulset")

    assert fleet.count(now=NOON) == Replicas(running=1, starting=1, requested=2)
    fleet.scale_to(4, now=NOON)

    assert workload.wanted == 4


def test_who_changes_it_at_the_same_time_is_seen_before_it_is_tried_again(fleet, workload, cluster):
    cluster.conflicts = 2

    fleet.scale_to(6, now=NOON)

    assert workload.wanted == 6
    assert [seen.method for seen in cluster.backend.seen] == ["GET", "PUT"] * 3


def test_after_three_conflicts_the_next_run_shall_decide(fleet, workload, cluster):
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


def test_before_there_are_fewer_kubernetes_is_told_which_pods_are_busy(
    make, cluster, workload, pods
):
    fleet = make(spare_busy=True)

    fleet.scale_to(4, now=NOON)
    assert cluster.notes == {}
    fleet.scale_to(1, now=NOON)

    assert cluster.notes == {"mailers-a": {COST: "3"}, "mailers-b": {COST: "0"}}
    assert workload.wanted == 1


def test_where_that_cannot_be_told_there_are_fewer_all_the_same(
    make, cluster, workload, pods, caplog
):
    cluster.forbidden = ("PATCH pods",)

    make(spare_busy=True).scale_to(1, now=NOON)

    assert workload.wanted == 1
    assert "deletion costs could not be set: Kubernetes answered 403" in caplog.text


def test_unless_it_is_asked_for_no_pod_is_touched(fleet, cluster, workload, pods):
    fleet.scale_to(1, now=NOON)

    assert cluster.notes == {}


def test_what_is_forbidden_is_told_in_kubernetes_words(fleet, workload, cluster):
    cluster.forbidden = ("PUT deployments/scale",)

    told = r"fleet mail, deployment shop/mailers: .* 403: .*User cannot PUT deployments/scale"
    with pytest.raises(ReplicasUnavailable, match=told):
        fleet.scale_to(6, now=NOON)


def test_a_workload_that_is_not_there_is_told(fleet):
    with pytest.raises(ReplicasUnavailable, match="shop/mailers: Kubernetes answered 404"):
        fleet.count(now=NOON)


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (Hang(), "[Tt]imed? ?out"),
        (HangUp(), "Connection|Protocol"),
        (Answer(500, body=b"etcd is away"), "answered 500: .*etcd is away"),
        (Answer(200, body=b"<html>"), "fleet mail, deployment"),
    ],
)
def test_whatever_else_it_does_is_told_and_not_waited_for(make, cluster, workload, behaviour, told):
    cluster.backend.behave = lambda seen: behaviour
    fleet = make(timeout_ms=300 if isinstance(behaviour, Hang) else 30_000)

    with pytest.raises(ReplicasUnavailable, match=told):
        fleet.count(now=NOON)

    assert len(cluster.backend.wait_for(1)) == 1


def test_another_context_is_another_cluster(make, cluster, workload):
    fleet = make(context="elsewhere")

    with pytest.raises(ReplicasUnavailable):
        fleet.count(now=NOON)

    assert cluster.backend.seen == []


def test_without_any_configuration_it_is_told_and_tried_again_the_next_time(
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
