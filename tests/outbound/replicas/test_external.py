"""Workers that another system starts and stops."""

from __future__ import annotations

import pytest

from penstock.domain.errors import ReplicasUnavailable
from penstock.domain.scaling.fleet import External
from penstock.domain.scaling.recommendation import Replicas
from penstock.domain.worker import NewWorker
from penstock.outbound.replicas.registered import ExternalReplicas
from penstock.ports.scaling import FLEET
from penstock.wiring.autoscaling import StoreFleetRegistry
from tests.clocks import NOON


@pytest.fixture
def registry(workers, store, clock) -> StoreFleetRegistry:
    return StoreFleetRegistry(workers, store, clock)


def test_registered_workers_are_counted_whatever_was_wanted(registry, workers):
    fleet = ExternalReplicas("mail", External(), registry=registry, before=lambda name: 9)
    for name in ("mail", "mail", "reports"):
        workers.register(NewWorker(labels={FLEET: name})).result()
    draining = workers.register(NewWorker(labels={FLEET: "mail"})).result()
    workers.drain(draining.id).result()

    fleet.scale_to(5, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=2, requested=5)


def test_a_new_autoscaler_knows_from_the_store_how_many_are_still_requested(registry):
    fleet = ExternalReplicas("mail", External(), registry=registry, before=lambda name: 9)

    assert fleet.count(now=NOON) == Replicas(running=0, requested=9)


def test_for_workers_that_do_not_register_the_wanted_count_is_assumed(registry):
    fleet = ExternalReplicas(
        "mail", External(registered=False), registry=registry, before=lambda name: 4
    )

    assert fleet.count(now=NOON) == Replicas(running=4, requested=4)
    fleet.scale_to(2, now=NOON)
    assert fleet.count(now=NOON) == Replicas(running=2, requested=2)


def test_without_the_registry_nothing_is_known(registry, store):
    fleet = ExternalReplicas("mail", External(), registry=registry, before=lambda name: 0)
    store.close()

    with pytest.raises(ReplicasUnavailable):
        fleet.count(now=NOON)
